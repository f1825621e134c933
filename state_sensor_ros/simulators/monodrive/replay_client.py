# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Client of a simulator in Replay Mode: it sends a trajectory and steps through it at its pace.

Replay Mode accepts strict JSON with an actor tagged ego in each frame
(doc/protocol/trajectories.md).

The requests are described in doc/protocol/trajectories.md#replay-by-index. States::

    state        event                              next state
    -----------  ---------------------------------  ----------
    CONFIGURING  simulator and sensor configured    PLAYING
    PLAYING      pause_or_resume() before a step    PAUSED
    PAUSED       pause_or_resume()                  PLAYING

In any state, ``stop()``, ``abort()``, the end of the trajectory or a failure ends
:meth:`ReplayClient.run`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
import io
import threading
import time

import msgspec

from state_sensor_ros.simulators import (
    ConfigError,
    EGO_TAG,
    failed_stream,
    has_ego_tag,
    ignore,
    no_frames,
    parse_settings,
    Reading,
    restated,
    TrajectoryFormatError,
    TransportError,
)
from state_sensor_ros.simulators.connections import OnSilence, TcpSource
from state_sensor_ros.simulators.json_values import is_strict_json
from state_sensor_ros.simulators.monodrive.control_session import (
    CONFIGURE_SENSORS,
    CONFIGURE_SIMULATOR,
    CONFIGURE_TRAJECTORY,
    ControlSession,
    STEP,
)
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.simulators.monodrive.recording import JsonFrame, JsonRecording
from state_sensor_ros.simulators.monodrive.sensor_config import read_json, state_sensor
from state_sensor_ros.simulators.monodrive.source import open_sensor_port
from state_sensor_ros.simulators.monodrive.trajectory import TrajectoryWriter
from state_sensor_ros.simulators.monodrive.wire import V2
from state_sensor_ros.simulators.recordings import MAX_GAP_S, PERIOD_S


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A trajectory that Replay Mode accepts."""

    name: str
    text: bytes  # the array as JSON
    game_times: tuple[float, ...]  # of its frames, s, NaN for those without
    tags: tuple[str, ...]  # that occur in it

    @property
    def n_frames(self) -> int:
        """Return the number of frames, at least one."""
        return len(self.game_times)

    def span_s(self, from_index: int, to_index: int) -> float:
        """Return the time between two frames."""
        # Returns s, not negative; at 20 Hz if the game times are unknown or equal, or the clock
        # has a step between them.
        span = abs(self.game_times[to_index] - self.game_times[from_index])
        n_frames = abs(to_index - from_index)
        return span if 0 < span <= MAX_GAP_S * n_frames else PERIOD_S * n_frames


def read_trajectory(name: str, frames: Iterable[JsonFrame]) -> Trajectory:
    text = io.BytesIO()
    writer = TrajectoryWriter(text)
    decoder = Decoder()
    game_times: list[float] = []
    tags: dict[str, None] = {}
    for frame in frames:
        tags.update(dict.fromkeys(_checked(frame, decoder, name)))
        game_times.append(frame.game_time)
        writer.write(frame.text)
    if not game_times:
        raise no_frames(name)
    writer.close()
    return Trajectory(name, text.getvalue(), tuple(game_times),
                      tuple(tag for tag in tags if tag))


def _checked(frame: JsonFrame, decoder: Decoder, name: str) -> list[str]:
    """Return the tags of a frame; refuse one that :mod:`inspection` reports as not replayable."""
    where = f'{name}: {frame.place}: frame {frame.number}'
    with restated(TrajectoryFormatError, where):
        frames = [decoded.frame for decoded in decoder.decode(frame.text)]
    if not is_strict_json(frame.text):
        raise TrajectoryFormatError(where, 'JSON that only lenient readers accept',
                                    'strict JSON, which has no NaN or Infinity')
    tags = [tag for frame in frames for actor_tags in frame.tags for tag in actor_tags]
    if not has_ego_tag(tags):
        raise TrajectoryFormatError(where, f'no actor tagged {EGO_TAG}',
                                    'one in each frame: Replay Mode needs it')
    return tags


class Cursor:
    """Index of the frame that the simulator shows, and of the next one."""

    # step: frames to advance at a time, at least 1.

    def __init__(self, n_frames: int, *, step: int = 1, start: int = 0, loop: bool = False,
                 is_backwards: bool = False) -> None:
        self.index = -1  # before the first frame, as after configuring
        self.is_backwards = is_backwards
        self._n_frames, self._step, self._start, self._loop = n_frames, step, start, loop

    def target(self) -> int | None:
        """Return the index of the next frame; None at the end."""
        if self.index < 0:
            return self._start
        target = self.index + (-self._step if self.is_backwards else self._step)
        if 0 <= target < self._n_frames:
            return target
        other_end = self._n_frames - 1 if self.is_backwards else 0
        return other_end if self._loop and other_end != self.index else None


# As for a reply: the simulator may be drawing.
_PACKET_TIMEOUT_S = 25.0
# A sensor port may open a little after the reply to its configuration.
_CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Parameters of a replay."""

    host: str
    control_port: int
    port: int | None  # of the State sensor to create and read, None for no sensor
    rate: float  # of the pace relative to ``game_time``, 0 = as fast as the simulator
    step: int
    start: int | None  # index of the first frame, None for the first one in the direction
    loop: bool
    is_backwards: bool
    simulator: object | None = None  # its configuration, sent first


class ReplayState(str, Enum):
    """State of a :class:`ReplayClient`; the values are the texts of the progress bar."""

    CONFIGURING = 'configuring'
    PLAYING = 'playing'
    PAUSED = 'paused'

    # As text, a member is its value in all versions of Python.
    __str__ = str.__str__


class ReplayClient:
    """
    Step a simulator through a trajectory, one request at a time.

    :meth:`run` is called in one thread, the other methods from any.
    """

    def __init__(self, trajectory: Trajectory, plan: Plan,
                 on_silence: OnSilence = ignore) -> None:
        last = trajectory.n_frames - 1
        start = plan.start
        if start is None:
            start = last if plan.is_backwards else 0
        if start > last:
            raise ConfigError('--start', str(start),
                              f'at most {last}, the last frame of {trajectory.name}')
        self.trajectory = trajectory
        self.cursor = Cursor(trajectory.n_frames, step=plan.step, start=start, loop=plan.loop,
                             is_backwards=plan.is_backwards)
        self.state = ReplayState.CONFIGURING
        self._plan = plan
        self._session = ControlSession(plan.host, plan.control_port, on_silence=on_silence)
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self._is_stopping = self._is_paused = self._is_connected = False
        self._n_packets = 0
        self._source: TcpSource | None = None

    @property
    def index(self) -> int:
        """Return the index of the frame that is shown."""
        return self.cursor.index

    @property
    def n_frames(self) -> int:
        return self.trajectory.n_frames

    @property
    def is_at_end(self) -> bool:
        """Return whether there is no further frame in its direction."""
        return self.cursor.target() is None

    def pause_or_resume(self) -> None:
        """Pause before the next step, or resume."""
        with self._changed:
            self._is_paused = not self._is_paused
            self._changed.notify_all()

    def turn_round(self) -> None:
        """Reverse the direction from the next step on."""
        self.cursor.is_backwards = not self.cursor.is_backwards

    def stop(self) -> None:
        """End :meth:`run` after the outstanding reply."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def abort(self) -> None:
        """End :meth:`run` at once."""
        self.stop()
        self._session.close()

    def run(self) -> None:
        """
        Replay to the end, or to :meth:`stop`.

        Then the connections are closed, that of the sensor first. The simulator keeps its
        configuration, which the protocol has no command to revert.
        """
        try:
            self._session.connect()
            self._configure()
            self._connect()
            self._step_through()
        except TransportError:
            if not self._is_stopping:
                raise
        finally:
            if self._source is not None:
                self._source.close()
            self._session.close()

    def _configure(self) -> None:
        if self._plan.simulator is not None:
            self._session.request(CONFIGURE_SIMULATOR, self._plan.simulator)
        self._session.request(CONFIGURE_TRAJECTORY, msgspec.Raw(self.trajectory.text))
        if self._plan.port is not None:
            settings = parse_settings({
                'port': self._plan.port, 'desired_tags': self.trajectory.tags})
            self._session.request(CONFIGURE_SENSORS, state_sensor(settings))

    def _connect(self) -> None:
        """Connect to the sensor port and count its packets in a thread."""
        if self._plan.port is None or self._is_stopping:
            return
        self._source = open_sensor_port(
            parse_settings({'host': self._plan.host, 'port': self._plan.port}),
            after_connect=self._connected)
        threading.Thread(target=self._read, name='read', daemon=True).start()
        if not self._await(lambda: self._is_connected, _CONNECT_TIMEOUT_S):
            raise failed_stream(f'{self._plan.host}:{self._plan.port}',
                                self._source.health.last_error,
                                'no sensor port after the sensor was configured')

    def _connected(self) -> None:
        with self._changed:
            self._is_connected = True
            self._changed.notify_all()

    def _read(self) -> None:
        assert self._source is not None
        for _ in self._source.frames():
            with self._changed:
                self._n_packets += 1
                self._changed.notify_all()

    def _step_through(self) -> None:
        due_s = time.monotonic()
        while not self._is_stopping and (target := self.cursor.target()) is not None:
            self.state = ReplayState.PLAYING
            if self.cursor.index >= 0 and self._plan.rate > 0:
                due_s += self._span_s(target) / self._plan.rate
            if self._wait_until(due_s):
                # After a pause the direction may differ, and the pace starts anew.
                due_s = time.monotonic()
                continue
            # A late step does not shorten the time to the next one.
            due_s = max(due_s, time.monotonic())
            if not self._is_stopping:
                self._show(target)

    def _span_s(self, target: int) -> float:
        """Return the time to the frame ``target``, s; from one end to the other a period."""
        index = self.cursor.index
        if (target < index) is not self.cursor.is_backwards:
            return PERIOD_S
        return self.trajectory.span_s(index, target)

    def _wait_until(self, due_s: float) -> bool:
        """Wait until the time or the end; return whether there was a pause."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping or self._is_paused,
                                   min(max(due_s - time.monotonic(), 0.0), threading.TIMEOUT_MAX))
            if not self._is_paused or self._is_stopping:
                return False
            self.state = ReplayState.PAUSED
            self._changed.wait_for(lambda: self._is_stopping or not self._is_paused)
            return not self._is_stopping

    def _show(self, target: int) -> None:
        """Step to the frame of index ``target`` and wait for its packet."""
        n_before = self._n_packets
        self._session.request(STEP, {'amount': target - self.cursor.index})
        self.cursor.index = target
        if self._source is not None and not self._await(
                lambda: self._n_packets > n_before, _PACKET_TIMEOUT_S):
            raise TransportError(f'{self._plan.host}:{self._plan.port}',
                                 f'no packet in {_PACKET_TIMEOUT_S:g} s after {STEP}')

    def _await(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for a condition or for the end; return False after a time-out."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_stopping or condition(), timeout_s)


def open_replay(options: argparse.Namespace, reading: Reading,
                warn: Callable[[str], None]) -> ReplayClient:
    """Read the recording, and prepare its replay."""
    # reading: progress display, as for :meth:`Simulator.open_replay`; ``warn`` likewise.
    return ReplayClient(_read(options, reading, warn), _plan(options), warn)


def _read(options: argparse.Namespace, reading: Reading,
          warn: Callable[[str], None]) -> Trajectory:
    # Frames of other simulators are sent as V2.
    recording = JsonRecording(options.file, V2, options.read_options)
    try:
        with reading(recording) as frames:
            trajectory = read_trajectory(options.file, frames)
    finally:
        recording.close()
    if recording.lost:
        warn(f'{options.file}: {V2} does not carry: {", ".join(recording.lost)}')
    return trajectory


def _plan(options: argparse.Namespace) -> Plan:
    simulator = None
    if options.simulator is not None:
        simulator = read_json(options.simulator)
        if not isinstance(simulator, dict):
            raise ConfigError(options.simulator, 'no object',
                              'an object with map, simulation_mode')
    return Plan(host=options.host, control_port=options.control_port,
                port=None if options.no_sensor else options.port, rate=options.rate,
                step=options.step, start=options.start, loop=options.loop,
                is_backwards=options.is_backwards, simulator=simulator)

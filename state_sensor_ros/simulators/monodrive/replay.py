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
(doc/protocol/trajectories.md). The requests are described in
doc/protocol/trajectories.md#replay-by-index. States::

    state        event                              next state
    -----------  ---------------------------------  ----------
    configuring  simulator and sensor configured    playing
    playing      pause_or_resume() before a step    paused
    paused       pause_or_resume()                  playing

In any state, ``stop()``, ``abort()``, the end of the trajectory or a failure ends
:meth:`ReplayClient.run`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from itertools import chain, cycle
import threading
import time
from typing import TypeAlias

import msgspec

from state_sensor_ros import errors
from state_sensor_ros.classes import EGO_TAG, has_ego_tag
from state_sensor_ros.files import format_of_name, open_any, ReadOptions
from state_sensor_ros.files.recording import PERIOD_S, RecordingReader
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import parse_settings
from state_sensor_ros.simulators import json_text
from state_sensor_ros.simulators.monodrive import control
from state_sensor_ros.simulators.monodrive.encoding import encode, losses, written_as
from state_sensor_ros.simulators.monodrive.schema import GENERATIONS
from state_sensor_ros.simulators.monodrive.simulator import read_json, SensorPort
from state_sensor_ros.simulators.monodrive.trajectory import TrajectoryRecording
from state_sensor_ros.source import LOST, MAX_GAP_S

# As for a reply: the simulator may be drawing.
_PACKET_TIMEOUT_S = 25.0
# A sensor port may open a little after the reply to its configuration.
_CONNECT_TIMEOUT_S = 5.0


def open_whole(path: str, options: ReadOptions) -> RecordingReader:
    """Open a recording, but no table: it lacks parts of a frame."""
    found = format_of_name(path)
    if found is not None and found.name in ('parquet', 'csv'):
        raise errors.TrajectoryFormatError(
            path, 'a table', 'a trajectory, a bag or another recording with whole frames; '
            '`state_sensor convert` makes a trajectory of a .parquet file')
    recording = open_any(path, options)
    recording.is_timed = recording.details = not isinstance(recording, TrajectoryRecording)
    return recording


def texts_of(recording: RecordingReader, frames: Iterator[Frame], lost: dict[str, None],
             generation: str = '') -> Iterator[tuple[bytes, Frame, str]]:
    """
    Yield each frame as JSON, those of a trajectory as they are in the file, and its place.

    :param lost: to which the names of the parts are added that are not carried.
    :param generation: for frames of other simulators.
    :raises TrajectoryFormatError: for what is no frame.
    """
    faults = recording.faults
    for frame in frames:
        _refuse_lost(recording)
        place = f'{recording.name}: {faults.place or "a frame"}: frame {faults.index}'
        if isinstance(recording, TrajectoryRecording):
            yield recording.payload, frame, place
            continue
        chosen = written_as(frame.generation) if frame.generation in GENERATIONS \
            else generation or written_as('')
        lost.update(dict.fromkeys(losses(frame, chosen)))
        yield encode(frame, chosen), frame, place
    _refuse_lost(recording)


def _refuse_lost(recording: RecordingReader) -> None:
    for fault in recording.faults.take():
        if fault.kind == LOST:
            raise errors.TrajectoryFormatError(
                f'{recording.name}: {fault.place}: frame {fault.index}: {fault.error.where}',
                fault.error.found, fault.error.expected)


# Shows the progress of a recording while its frames are read.
Reading: TypeAlias = Callable[[RecordingReader], AbstractContextManager[Iterator[Frame]]]


def read_trajectory(recording: RecordingReader, frames: Iterator[Frame],
                    lost: dict[str, None]) -> tuple[bytes, list[float], tuple[str, ...]]:
    """
    Read a recording; refuse frames that Replay Mode would.

    :returns: the frames as a JSON array, their game times, s, NaN for those without, and the tags
        that occur in them.
    """
    texts: list[bytes] = []
    game_times: list[float] = []
    tags: dict[str, None] = {}
    for text, frame, where in texts_of(recording, frames, lost):
        if not json_text.is_strict(text):
            raise errors.TrajectoryFormatError(where, 'JSON that only lenient readers accept',
                                               'strict JSON, which has no NaN or Infinity')
        found = [tag for actor_tags in frame.tags for tag in actor_tags]
        if not has_ego_tag(found):
            raise errors.TrajectoryFormatError(where, f'no actor tagged {EGO_TAG}',
                                               'one in each frame: Replay Mode needs it')
        tags.update(dict.fromkeys(found))
        game_times.append(frame.game_time)
        texts.append(text)
    if not texts:
        raise errors.no_frames(recording.name)
    return b'[' + b',\n'.join(texts) + b']', game_times, tuple(filter(None, tags))


def targets(n_frames: int, *, step: int = 1, start: int | None = None,
            loop: bool = False) -> Iterable[int]:
    """Return the indices of the frames to show; ``step``: from one to the next, not 0."""
    begin, end = (0, n_frames) if step > 0 else (n_frames - 1, -1)
    once, again = range(begin if start is None else start, end, step), range(begin, end, step)
    return chain(once, cycle(again)) if loop and len(again) > 1 else once


class ReplayClient:
    """
    Steps a simulator through a trajectory, one request at a time.

    :meth:`run` is called in one thread, the other methods from any.

    :param options: options of `replay`: the recording, the simulator and the pace.
    :param reading: iterates over the frames of the recording while it is read.
    :param warn: called with one line about what is lost, and about a silent simulator.
    """

    def __init__(self, options: argparse.Namespace, reading: Reading,
                 warn: Callable[[str], None]) -> None:
        lost: dict[str, None] = {}
        with closing(open_whole(options.file, options.read_options)) as recording, \
                reading(recording) as frames:
            self._text, self._game_times, tags = read_trajectory(recording, frames, lost)
        if lost:
            warn(f'{options.file}: Replay Mode does not carry: {", ".join(lost)}')
        self._simulator = None if options.simulator is None else read_json(options.simulator)
        if not isinstance(self._simulator, dict | None):
            raise errors.ConfigError(options.simulator, 'no object',
                                     'an object with map, simulation_mode')
        self.n_frames = len(self._game_times)
        last = self.n_frames - 1
        if (options.start or 0) > last:
            raise errors.ConfigError('--start', str(options.start),
                                     f'at most {last}, the last frame of {recording.name}')
        self.index = -1  # of the frame that the simulator shows; none after configuring
        self._step = -options.step if options.backwards else options.step
        self._targets = targets(self.n_frames, step=self._step, start=options.start,
                                loop=options.loop)
        # Text of the progress bar.
        self.state = 'configuring'
        self._rate = options.rate
        # Of the State sensor to create and read.
        self._sensor = parse_settings({
            'host': options.host, 'port': options.port, 'desired_tags': tags})
        self._session = control.ControlSession(options.host, options.control_port, warn)
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self._is_stopping = self._is_paused = False
        self._n_arrived = 0  # connections and packets
        self._source: SensorPort | None = None

    def pause_or_resume(self) -> None:
        """Pause before the next step, or resume."""
        with self._changed:
            self._is_paused = not self._is_paused
            self._changed.notify_all()

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
            if self._simulator is not None:
                self._session.request(control.CONFIGURE_SIMULATOR, self._simulator)
            self._session.request(control.CONFIGURE_TRAJECTORY, msgspec.Raw(self._text))
            self._session.request(control.CONFIGURE_SENSORS, control.state_sensor(self._sensor))
            self._connect()
            self._step_through()
        except errors.TransportError:
            if not self._is_stopping:
                raise
        finally:
            if self._source is not None:
                self._source.close()
            self._session.close()

    def _connect(self) -> None:
        """Connect to the sensor port and count its packets in a thread."""
        if self._is_stopping:
            return
        self._source = SensorPort(self._sensor, after_connect=self._note_arrival)
        threading.Thread(target=self._read, name='read', daemon=True).start()
        if not self._await(0, _CONNECT_TIMEOUT_S):
            raise errors.failed_stream(f'{self._sensor.host}:{self._sensor.port}',
                                       self._source.health.last_error,
                                       'no sensor port after the sensor was configured')

    def _note_arrival(self) -> None:
        with self._changed:
            self._n_arrived += 1
            self._changed.notify_all()

    def _read(self) -> None:
        assert self._source is not None
        for _ in self._source.frames():
            self._note_arrival()

    def _step_through(self) -> None:
        due_s = time.monotonic()
        for target in self._targets:
            if self.index >= 0 and self._rate > 0:
                due_s += self._span_s(target) / self._rate
            self._wait_until(due_s)
            if self._is_stopping:
                return
            self.state = 'playing'
            # A late step or a pause does not shorten the time to the next one.
            due_s = max(due_s, time.monotonic())
            self._show(target)

    def _span_s(self, target: int) -> float:
        """Return the time to the frame ``target``, s, as at 20 Hz where the clock has a step."""
        index, times = self.index, self._game_times
        if (target < index) is not (self._step < 0):
            return PERIOD_S  # from one end to the other
        span_s, n_frames = abs(times[target] - times[index]), abs(target - index)
        return span_s if 0 < span_s <= MAX_GAP_S * n_frames else PERIOD_S * n_frames

    def _wait_until(self, due_s: float) -> None:
        """Wait until the time and the end of a pause, or until the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping or self._is_paused,
                                   min(max(due_s - time.monotonic(), 0.0), threading.TIMEOUT_MAX))
            if self._is_paused:
                self.state = 'paused'
                self._changed.wait_for(lambda: self._is_stopping or not self._is_paused)

    def _show(self, target: int) -> None:
        """Step to the frame of index ``target`` and wait for its packet."""
        n_before = self._n_arrived
        self._session.request(control.STEP, {'amount': target - self.index})
        self.index = target
        if not self._await(n_before, _PACKET_TIMEOUT_S):
            raise errors.TransportError(
                f'{self._sensor.host}:{self._sensor.port}',
                f'no packet in {_PACKET_TIMEOUT_S:g} s after {control.STEP}')

    def _await(self, n_before: int, timeout_s: float) -> bool:
        """Wait for an arrival or for the end; return False after a time-out."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._is_stopping or self._n_arrived > n_before, timeout_s)

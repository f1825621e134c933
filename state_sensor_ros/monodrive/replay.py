# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A simulator in its Replay Mode: configured, stepped through a trajectory at its pace, let go.

May know: in which order to ask, when the next step is due. Must not know: terminals, options, what
is in a frame. Source: PROTOCOL 2.5, 2.6 and 6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import threading
import time

import msgspec

from state_sensor_ros.connections.tcp import TcpSource
from state_sensor_ros.connections.wait import ignore_silence, OnSilence
from state_sensor_ros.errors import ConfigError, TransportError
from state_sensor_ros.monodrive.control_messages import (
    CONFIGURE_SENSORS,
    CONFIGURE_SIMULATOR,
    CONFIGURE_TRAJECTORY,
    STEP,
)
from state_sensor_ros.monodrive.control_session import ControlSession
from state_sensor_ros.monodrive.replay_trajectory import Cursor, Trajectory
from state_sensor_ros.monodrive.sensor_config import state_sensor
from state_sensor_ros.monodrive.sensor_port import open_sensor_port
from state_sensor_ros.settings import parse_settings

# As long as for a reply: the simulator may be drawing.
_PACKET_TIMEOUT_S = 25.0
# A sensor port may open a little after the sensor was configured (PROTOCOL 1.1).
_CONNECT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """
    How to replay.

    ``port`` of the State sensor to make and to read, None to make none; ``rate`` pace against
    ``game_time``, 0 = as fast as the simulator is; ``start`` the frame to begin with, None for
    that at the end it starts from; ``simulator`` its configuration, sent first.
    """

    host: str
    control_port: int
    port: int | None
    rate: float
    step: int
    start: int | None
    loop: bool
    is_backwards: bool
    simulator: object | None = None


class Replay:
    """
    Step a simulator through a trajectory, one request at a time.

    Whoever made it calls :meth:`run` in one thread and everything else from others.

    :param on_silence: called with one line when a reply has not come for a second.
    :raises ConfigError: where the plan does not fit the trajectory.
    """

    def __init__(self, trajectory: Trajectory, plan: Plan,
                 on_silence: OnSilence = ignore_silence) -> None:
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
        self.state = 'configuring'
        self._plan = plan
        self._session = ControlSession(plan.host, plan.control_port, on_silence=on_silence)
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self._is_stopping = self._is_paused = self._is_connected = False
        self._n_packets = 0
        self._source: TcpSource | None = None

    def pause_or_resume(self) -> None:
        """Stop before the next step, or go on."""
        with self._changed:
            self._is_paused = not self._is_paused
            self._changed.notify_all()

    def turn_round(self) -> None:
        """Go in the other direction from the next step on."""
        self.cursor.is_backwards = not self.cursor.is_backwards

    def stop(self) -> None:
        """Have :meth:`run` end after the answer that is outstanding."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def abort(self) -> None:
        """Have :meth:`run` end at once."""
        self.stop()
        self._session.close()

    def run(self) -> None:
        """
        Replay to the end, or to :meth:`stop`.

        What was configured stays in the simulator, as the protocol has no command to take it
        back; it stands still, nobody is owed an answer, and the connections are closed, that of
        the sensor first.

        :raises TransportError: with what the simulator said, or did not say.
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
        """Read the sensor's packets from now on."""
        if self._plan.port is None or self._is_stopping:
            return
        self._source = open_sensor_port(
            parse_settings({'host': self._plan.host, 'port': self._plan.port}),
            after_connect=self._connected)
        threading.Thread(target=self._read, name='read', daemon=True).start()
        if not self._await(lambda: self._is_connected, _CONNECT_TIMEOUT_S):
            raise TransportError(f'{self._plan.host}:{self._plan.port}',
                                 f'no sensor port ({self._source.health.last_error})',
                                 'one after the sensor was configured')

    def _connected(self) -> None:
        with self._changed:
            self._is_connected = True
            self._changed.notify_all()

    def _read(self) -> None:
        assert self._source is not None
        for _ in self._source.packets():
            with self._changed:
                self._n_packets += 1
                self._changed.notify_all()

    def _step_through(self) -> None:
        """Step by step, each when it is due."""
        due_s = time.monotonic()
        while not self._is_stopping and (target := self.cursor.target()) is not None:
            self.state = 'playing'
            if self.cursor.index >= 0 and self._plan.rate > 0:
                due_s += self.trajectory.span_s(self.cursor.index, target) / self._plan.rate
            if self._wait_until(due_s):
                # Paused meanwhile: it may go the other way now, and time has passed.
                due_s = time.monotonic()
                continue
            # Late: the others are not hurried.
            due_s = max(due_s, time.monotonic())
            if not self._is_stopping:
                self._show(target)

    def _wait_until(self, due_s: float) -> bool:
        """Wait for the time or for the end; True where there was a pause."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping or self._is_paused,
                                   max(due_s - time.monotonic(), 0.0))
            if not self._is_paused or self._is_stopping:
                return False
            self.state = 'paused'
            self._changed.wait_for(lambda: self._is_stopping or not self._is_paused)
            return not self._is_stopping

    def _show(self, target: int) -> None:
        """Step to a frame and wait for its packet."""
        n_before = self._n_packets
        self._session.request(STEP, {'amount': target - self.cursor.index})
        self.cursor.index = target
        if self._source is not None and not self._await(
                lambda: self._n_packets > n_before, _PACKET_TIMEOUT_S):
            raise TransportError(f'{self._plan.host}:{self._plan.port}',
                                 f'no packet in {_PACKET_TIMEOUT_S:g} s after {STEP}', 'one')

    def _await(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for a condition or for the end; False where neither comes in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_stopping or condition(), timeout_s)

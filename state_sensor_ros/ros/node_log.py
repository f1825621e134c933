# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What the node reports about itself: lines of its log, and the statuses of /diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
import struct
import time
import traceback
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.logging import LoggingSeverity
from rclpy.node import Node

from state_sensor_ros.cdr.templates import CdrWriter, COUNT, ENCAPSULATION
from state_sensor_ros.pipeline.counters import Counters
from state_sensor_ros.ros.diagnostics import Status
from state_sensor_ros.ros.rclpy_inside import await_delivery
from state_sensor_ros.source import Health, SourceState
from state_sensor_ros.texts import counted, one_line

# Shortest period of log lines of one kind.
_PERIOD_S = 1.0
# How long subscribers have for the last status, s.
_DELIVERY_S = 0.2
# Of failures that repeat, one in so many is logged.
_REPEATS = 10
# The rate is measured over this time after the first frame.
_RATE_S = 1.0
# A silence after the connect that is logged.
_SILENCE_S = 3.0
# Advice for a source without more specific advice.
_SILENCE = 'is the simulation running?'
_READING = 'its first frame is still being read'
# States in which the stream can be described.
_VERBS = {SourceState.CONNECTED: 'connected to', SourceState.PLAYING: 'playing',
          SourceState.PAUSED: 'playing', SourceState.ENDED: 'played'}


class NodeLog:
    """Throttled lines of the log of a node; from any thread."""

    def __init__(self, logger: RcutilsLogger) -> None:
        self._logger = logger
        self._logged_ns: dict[str, int] = {}

    def warn(self, kind: str, text: str) -> None:
        """Log a fault of the stream."""
        # kind: kind of the fault; it is logged at most once per second.
        if self._may_log(kind):
            self._logger.log(one_line(text), LoggingSeverity.WARN)

    def info(self, text: str) -> None:
        """Log what is usual."""
        self._logger.info(one_line(text))

    def defect(self, error: Exception) -> None:
        """Log an unexpected exception with its traceback."""
        if self._may_log('defect'):
            lines = ''.join(traceback.format_exception(error)).splitlines()
            self._logger.error('\n'.join((
                'internal error, please report it', *map(one_line, lines))))

    def _may_log(self, kind: str) -> bool:
        now_ns = time.monotonic_ns()
        if now_ns - self._logged_ns.get(kind, -10**18) < _PERIOD_S * 1e9:
            return False
        self._logged_ns[kind] = now_ns
        return True


class DiagnosticsTopic:
    """Publish the statuses of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)

    def publish(self, hardware_id: str, statuses: Mapping[str, Status]) -> None:
        stamp = self._node.get_clock().now().to_msg()
        node_name = self._node.get_fully_qualified_name().lstrip('/')
        # Messages of rclpy take a tenth of the CPU of a node without subscribers.
        writer = CdrWriter(0)
        writer.pack(4, struct.pack('<iI', stamp.sec, stamp.nanosec))
        writer.pack_text('')
        writer.pack(4, COUNT.pack(len(statuses)))
        for name, status in statuses.items():
            writer.pack(1, bytes([status.level]))
            for text in (f'{node_name}: {name}', status.message, hardware_id):
                writer.pack_text(text)
            writer.pack(4, COUNT.pack(len(status.values)))
            for pair in status.values:
                for text in pair:
                    writer.pack_text(text)
        self._publisher.publish(ENCAPSULATION + bytes(writer.data))

    def flush(self) -> None:
        """Wait until subscribers have the last message, which is lost with the node."""
        await_delivery([self._publisher], _DELIVERY_S)


class Line(NamedTuple):
    """A line of the log: a warning, or information."""

    is_warning: bool
    text: str


class ConnectionLog:
    """
    Turn the health of one source, read periodically, into a line for each change.

    A connection that was lost and made again between two readings is two changes. The error of a
    recording is one change. Of failures that repeat, with nothing new between them, every tenth
    is logged.
    """

    def __init__(self) -> None:
        self._n_losses = self._n_connects = self._n_failures = 0
        # The last failure that was logged.
        self._failure = ''

    def new_lines(self, health: Health) -> list[Line]:
        """Return a line for each change since the last call, the oldest first."""
        # health: health of the source; its counters begin at 0.
        # In this order: the source's thread counts a connect, then its loss, then the failure of
        # the next attempt.
        n_losses, n_connects, failure = health.n_losses, health.n_connects, health.last_error
        n_failures = health.failures.n
        is_repeated = n_failures > 1
        is_due = n_failures // _REPEATS > self._n_failures // _REPEATS
        times = f' for the {n_failures}th time' if is_due else ''
        lines = []
        if n_losses > self._n_losses:
            self._failure = health.loss
            if is_due or not is_repeated:
                lines.append(Line(True, f'connection lost{times}: {health.loss}'))
        if health.state is SourceState.CONNECTED:
            if n_connects > self._n_connects:
                # StreamLog logs the first connection.
                lines += [Line(False, 'connected again')] * (n_connects > 1 and not is_repeated)
                # After a successful connect, the same failure is logged again.
                self._n_connects, self._failure = n_connects, failure
        elif failure != self._failure or (is_due and not lines):
            self._failure = failure
            is_attempt = health.state in (SourceState.CONNECTING, SourceState.WAITING)
            # The text of a failed connect already says so.
            text = f'not connected{times}: {failure}' if is_attempt and not failure.startswith(
                'cannot connect') else failure
            lines.append(Line(True, text))
        self._n_losses, self._n_failures = n_losses, n_failures
        return lines


class StreamLog:
    """Describe the state of a stream, each part of it in one line."""

    # source: ``host:port`` or the path of a recording.

    def __init__(self, source: str, max_actor_topics: int, counters: Counters) -> None:
        self._source, self._max_actor_topics = source, max_actor_topics
        self._n_before = counters.n_published
        self._written: set[str] = set()
        # Time of the first reading with a connection, s, and of the first with a frame.
        self._connected_s: float | None = None
        self._first_frame: tuple[float, int] | None = None

    @property
    def has_rate(self) -> bool:
        """Whether the line with the rate has been written."""
        return 'connected' in self._written

    def new_lines(self, now_s: float, health: Health, counters: Counters) -> list[Line]:
        """Return the lines that have become due; called several times a second."""
        lines: dict[str, Line] = {}
        # Read first: afterward the counters of an ended recording do not change.
        has_ended = health.state is SourceState.ENDED and counters.n_in_flight == 0
        n_frames = counters.n_published - self._n_before
        if self._connected_s is None and health.n_connects:
            self._connected_s = now_s
        if n_frames and self._first_frame is None:
            self._first_frame = now_s, n_frames
            lines['first'] = Line(False, f'first frame: {counted(counters.n_actors, "actor")}, '
                                  f'{counters.n_egos} with the ego tag')
        if self._first_frame is not None:
            elapsed_s = now_s - self._first_frame[0]
            n_more = n_frames - self._first_frame[1]
            if health.state in _VERBS and (elapsed_s >= _RATE_S or has_ended):
                # Three digits, without an exponent; no rate if part of the time is after the end.
                is_playing = health.state is not SourceState.ENDED
                rate_hz = float(f'{n_more / elapsed_s:.3g}') if is_playing else 0.0
                rate = f'{rate_hz:g} Hz, ' if rate_hz else ''
                lines['connected'] = Line(
                    False, f'{_VERBS[health.state]} {self._source}: generation '
                    f'{counters.generation}, {rate}{counted(counters.n_actors, "actor")}')
            if counters.n_without_topics:
                n_without = counted(counters.n_without_topics, 'actor')
                lines['limit'] = Line(False, f'max_actor_topics is {self._max_actor_topics}: '
                                      f'{n_without} without topics of their own')
        elif self._connected_s is not None and now_s - self._connected_s >= _SILENCE_S:
            advice = _READING if health.state is SourceState.PLAYING else _SILENCE
            lines['silence'] = Line(True, f'no frame from {self._source} in {_SILENCE_S:g} s: '
                                    f'{health.silence or advice}')
        if has_ended:
            # A live stream has a reason for its end.
            what = f'{health.loss}: end of the stream' if health.loss else 'end of the recording'
            lines['end'] = Line(False, f'{what} {self._source}: {counted(n_frames, "frame")} '
                                'published')
        new = [line for kind, line in lines.items() if kind not in self._written]
        self._written |= lines.keys()
        return new

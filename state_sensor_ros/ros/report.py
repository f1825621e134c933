# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
What the node reports of itself: lines of its log, and the statuses of /diagnostics.

Both speak from :func:`describe` and from the same counters; levels follow REP-107, and
doc/reference/diagnostics.md lists the keys.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
import math
from statistics import median
import struct
import time
import traceback
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.logging import LoggingSeverity
from rclpy.node import Node

from state_sensor_ros.cdr.templates import CdrWriter, COUNT, ENCAPSULATION
from state_sensor_ros.pipeline.checks import Checks
from state_sensor_ros.pipeline.counters import Counters
from state_sensor_ros.ros.rclpy_inside import await_delivery
from state_sensor_ros.source import Health, latest, SourceState
from state_sensor_ros.texts import counted, one_line

# Shortest period of log lines of one kind, s; how long subscribers have for the last status, s.
_PERIOD_S, _DELIVERY_S = 1.0, 0.2
# Of failures that repeat, one in so many is logged.
_REPEATS = 10
# Number of latencies for the 99th percentile: three minutes at 20 Hz.
_N_RECENT = 4096
_VERBS = {SourceState.CONNECTED: 'connected to', SourceState.ENDED: 'played'}
# Counters whose increase since the last report is a warning, with noun and text of the warning.
_FAULTS = (('n_skipped', 'frame', 'skipped'), ('n_dropped_actors', 'actor', 'dropped'),
           ('n_duplicates', 'actor', 'with the name of another'),
           ('n_bad_poses', 'actor', 'without a usable pose'))


class Level(IntEnum):
    """Levels of ``diagnostic_msgs/DiagnosticStatus``."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


@dataclass(frozen=True, slots=True)
class Status:
    """One status: a level, one line, and key-value pairs in their order."""

    level: Level
    message: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StreamReading:
    """State of the stream at one instant."""

    at_s: float  # time of a steady clock
    silence_s: float  # time since the last packet
    health: Health
    counters: Counters
    n_missed: int  # samples of the simulator that were not received
    n_coarse: int  # frames with a too coarse ``game_time``


def describe(health: Health, silence_s: float, stale_after: float) -> tuple[Level, str, str]:
    """
    Return how a connection is: a level, what is said, and why; empty texts for nothing.

    :param silence_s: time since the last packet, s.
    :param stale_after: silence that counts as stale, s.
    """
    if health.state in (SourceState.CONNECTING, SourceState.WAITING):
        return Level.ERROR, 'not connected', health.reason
    # A live stream has a reason for its end.
    end = health.loss if health.state is SourceState.ENDED else ''
    is_held = health.state in (SourceState.ENDED, SourceState.PAUSED)
    if silence_s > stale_after and (end or not is_held):
        return Level.STALE, f'nothing received for {silence_s:.1f} s', end or health.silence
    if is_held:
        return Level.OK, end or health.silence or f'the recording is {health.state}', ''
    return Level.OK, '', ''


def joined(what: str, why: str) -> str:
    return f'{what}: {why}' if why else what


class Line(NamedTuple):
    """A line of the log: a warning, or information."""

    is_warning: bool
    text: str


class StreamReport:
    """
    Describe one stream, read about once a second: its status, and lines for what has changed.

    :param source: ``host:port`` or the path of a recording.
    :param stale_after: silence that counts as stale, s.
    """

    def __init__(self, source: str, stale_after: float, max_actor_topics: int) -> None:
        self._source, self._stale_after = source, stale_after
        self._max_actor_topics = max_actor_topics
        self._last: StreamReading | None = None
        self._recent_ms: deque[float] = deque(maxlen=_N_RECENT)
        self.restart(0)

    def restart(self, n_published: int) -> None:
        """Begin the log of a new source; ``n_published``: frames before it."""
        self._n_before = n_published
        self._n_losses = self._n_connects = self._n_failures = 0
        # The last failure that was logged, and which lines were, once each.
        self._failure = ''
        self._written: set[str] = set()

    @property
    def is_described(self) -> bool:
        """Whether the line about the first frame is written."""
        return 'first' in self._written

    def condition(self, now: StreamReading) -> tuple[Level, str, str]:
        """Return what :func:`describe` does."""
        return describe(now.health, now.silence_s, self._stale_after)

    def lines(self, now: StreamReading) -> list[Line]:
        """
        Return a line for each change since the last call, the oldest first.

        A connection that was lost and made again in between is two changes. Of failures that
        repeat, with nothing new between them, every tenth is logged.
        """
        # The counters are read first: afterward those of an ended recording do not change.
        health, counters = now.health, now.counters
        has_ended = health.state is SourceState.ENDED and counters.n_in_flight == 0
        n_frames = counters.n_published - self._n_before
        lines = self._connection_lines(health, *self.condition(now))
        if n_frames:
            lines += self._once('first', f'{_VERBS.get(health.state, "playing")} {self._source}: '
                                f'generation {counters.generation}, '
                                f'{counted(counters.n_actors, "actor")}, {counters.n_egos} with '
                                'the ego tag')
        if has_ended:
            what = f'{health.loss}: end of the stream' if health.loss else 'end of the recording'
            lines += self._once('end', f'{what} {self._source}: {counted(n_frames, "frame")} '
                                'published')
        return lines

    def _once(self, kind: str, text: str) -> list[Line]:
        is_new = kind not in self._written
        self._written.add(kind)
        return [Line(False, text)] if is_new else []

    def _connection_lines(self, health: Health, level: Level, what: str, why: str) -> list[Line]:
        # In this order: the source's thread counts a connect, then its loss, then the failure of
        # the next attempt.
        n_losses, n_connects, failure = health.n_losses, health.n_connects, health.last_error
        n_failures, lines = health.failures.n, list[Line]()
        is_due = n_failures // _REPEATS > self._n_failures // _REPEATS
        times = f' for the {n_failures}th time' if is_due else ''
        if n_losses > self._n_losses:
            self._failure = health.loss
            if is_due or n_failures <= 1:
                lines.append(Line(True, f'connection lost{times}: {health.loss}'))
        if health.state is SourceState.CONNECTED:
            if n_connects > self._n_connects:
                # The line about the first frame says the first one.
                lines += [Line(False, 'connected again')] * (n_connects > 1 and n_failures <= 1)
                # After a successful connect, the same failure is logged again.
                self._n_connects, self._failure = n_connects, failure
        elif failure != self._failure or (is_due and not lines):
            self._failure = failure
            text = joined(what + times, why) if level is Level.ERROR else failure
            lines.append(Line(True, text))
        if level is not Level.STALE:
            self._written.discard('stale')
        elif 'stale' not in self._written:
            self._written.add('stale')
            lines.append(Line(True, joined(f'{self._source}: {what}', why)))
        self._n_losses, self._n_failures = n_losses, n_failures
        return lines

    def status(self, reading: StreamReading, latencies_ns: Sequence[int]) -> Status:
        """Return the status of the interval that ends with ``reading``."""
        last = self._last or replace(reading, health=Health(), counters=Counters(), n_missed=0,
                                     n_coarse=0)
        # Copies: other threads change the counters, and the next interval begins with these.
        now = self._last = replace(reading, health=replace(reading.health),
                                   counters=replace(reading.counters))
        level, message = self._level(last, now)
        return Status(level, message, self._values(last, now, latencies_ns))

    def truth(self, now: StreamReading, checks: Checks) -> Status:
        """Return the status ``<node>: truth``, whose name is part of the interface."""
        condition, missing, _ = self.condition(now)
        complaints, of = checks.complaints, checks.figures()
        level = Level.WARN if complaints else Level.OK
        message = '; '.join(complaints) or checks.reason or 'twist and pose agree'
        if condition > Level.WARN:
            level, message = Level.STALE, f'{missing}; before that: {message}'
        return Status(level, message, (
            ('displacement per velocity x time', _slope(of.displacement)),
            ('rotation per angular velocity x time', _slope(of.rotation)),
            ('linear residual (m)', shown(of.linear_residual)),
            ('angular residual (rad)', shown(of.angular_residual)),
            ('slip (sine)', shown(of.slip)),
            ('pairs compared', str(checks.n_pairs)),
            ('jumps', '; '.join(checks.jumps.lines) or 'none'),
        ))

    def _level(self, last: StreamReading, now: StreamReading) -> tuple[Level, str]:
        n_defects = now.counters.n_defects - last.counters.n_defects
        if n_defects:
            return Level.ERROR, (f'{counted(n_defects, "internal error")}: '
                                 f'{now.counters.last_defect}; the log has the traceback')
        level, what, why = self.condition(now)
        if what:
            return level, joined(what, why)
        warnings = self._warnings(last, now)
        return (Level.WARN, '; '.join(warnings)) if warnings else \
            (Level.OK, counted(now.counters.n_actors, 'actor'))

    def _warnings(self, last: StreamReading, now: StreamReading) -> list[str]:
        warnings = []
        for name, noun, words in _FAULTS:
            n_new = getattr(now.counters, name) - getattr(last.counters, name)
            if n_new > 0:
                warnings.append(f'{counted(n_new, noun)} {words}')
        n_dropped = now.counters.n_dropped - last.counters.n_dropped
        if n_dropped > 0:
            warnings.append(f'{counted(n_dropped, "frame")} dropped: the stream is faster than '
                            'this machine')
        if now.n_missed > last.n_missed:
            n_missed = counted(now.n_missed - last.n_missed, 'sample')
            warnings.append(f'{n_missed} missing in the stream')
        if now.health.n_reconnects > last.health.n_reconnects:
            warnings.append('the connection was lost and re-established')
        if now.n_coarse > last.n_coarse:
            warnings.append('game_time, a float32, has grown too large for this rate: restart the '
                            'simulation')
        if now.counters.n_without_topics:
            n_without = counted(now.counters.n_without_topics, 'actor')
            warnings.append(f'{n_without} without topics of their own: max_actor_topics is '
                            f'{self._max_actor_topics}')
        if now.counters.n_actors and now.counters.n_egos != 1:
            warnings.append(f'{counted(now.counters.n_egos, "actor")} with the ego tag')
        return warnings

    def _values(self, last: StreamReading, now: StreamReading,
                latencies_ns: Sequence[int]) -> tuple[tuple[str, str], ...]:
        health, counters = now.health, now.counters
        elapsed_s = max(now.at_s - last.at_s, 1e-9) if last.at_s < now.at_s else math.nan
        n_new = counters.n_received - last.counters.n_received
        has_pace = n_new and counters.n_restarts == last.counters.n_restarts
        pace = (counters.game_time - last.counters.game_time) / elapsed_s
        milliseconds = [latency / 1e6 for latency in latencies_ns]
        self._recent_ms.extend(milliseconds)
        values: list[tuple[str, object]] = [
            ('connection state', health.state),
            ('generation', counters.generation),
            ('frame rate', shown(n_new / elapsed_s)),
            ('frames received', counters.n_received),
            ('frames published', counters.n_published),
            ('frames skipped', counters.n_skipped),
            ('frames dropped', counters.n_dropped),
            ('frames repeated', counters.n_repeated),
            ('samples missed', now.n_missed),
            ('bytes', health.n_bytes),
            ('reconnects', health.n_reconnects),
            ('protocol errors', health.n_protocol_errors),
            ('cut packets', health.n_cut_packets),
            ('simulator restarts', counters.n_restarts),
            ('internal errors', counters.n_defects),
            ('last error', latest(health.error, counters.last_error).text),
            ('actors', counters.n_actors),
            ('actors dropped', counters.n_dropped_actors),
            ('duplicate names', counters.n_duplicates),
            ('unusable poses', counters.n_bad_poses),
            ('unknown velocities', counters.n_unknown_velocities),
            ('actors without topics', counters.n_without_topics),
            ('game time', shown(counters.game_time)),
            ('stream-to-publish latency median (ms)',
             shown(median(milliseconds) if milliseconds else math.nan)),
            ('stream-to-publish latency max (ms)',
             shown(max(milliseconds, default=math.nan))),
            # Over all recent frames: those of one second are too few for a 99th percentile.
            ('stream-to-publish latency p99 (ms)', shown(percentile(self._recent_ms, 0.99))),
            ('sim/real factor', shown(pace if has_pace else math.nan)),
        ]
        return tuple((key, str(value)) for key, value in values)


def _slope(value: float) -> str:
    return 'velocity is 0' if math.isinf(value) else shown(value)


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that a share of all values do not exceed: NaN without values."""
    ranked = sorted(values)
    return ranked[math.ceil(share * len(ranked)) - 1] if ranked else math.nan


def shown(value: float) -> str:
    """Return a number as text, ``''`` for NaN."""
    return '' if math.isnan(value) else f'{value:.6g}'


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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The two statuses of /diagnostics as plain values: of the stream, and of its consistency.

Their levels follow REP-107; doc/reference/diagnostics.md lists their keys.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
import math
from statistics import median

from state_sensor_ros.pipeline.checks import Checks
from state_sensor_ros.pipeline.counters import Counters
from state_sensor_ros.source import Health, latest
from state_sensor_ros.texts import counted

# Number of latencies for the 99th percentile: three minutes at 20 Hz.
_N_RECENT = 4096


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


# States of a source without a connection.
_UNCONNECTED = ('connecting', 'waiting')
# Counters whose increase since the last report is a warning, with noun and text of the warning.
_FAULTS = (('n_skipped', 'frame', 'skipped'), ('n_dropped_actors', 'actor', 'dropped'),
           ('n_duplicates', 'actor', 'with the name of another'),
           ('n_bad_poses', 'actor', 'without a usable pose'))


class StreamDiagnosis:
    """Turn readings, one per second, into the status ``<node>: stream``."""

    # stale_after: silence that counts as stale, s.

    def __init__(self, stale_after: float, max_actor_topics: int) -> None:
        self._stale_after = stale_after
        self._max_actor_topics = max_actor_topics
        self._last: StreamReading | None = None
        self._recent_ms: deque[float] = deque(maxlen=_N_RECENT)

    def status(self, reading: StreamReading, latencies_ns: Sequence[int]) -> Status:
        """Return the status of the interval that ends with ``reading``."""
        last = self._last or replace(reading, health=Health(), counters=Counters(), n_missed=0,
                                     n_coarse=0)
        # Copies: other threads change the counters, and the next interval begins with these.
        now = self._last = replace(reading, health=replace(reading.health),
                                   counters=replace(reading.counters))
        level, message = self._level(last, now)
        return Status(level, message, self._values(last, now, latencies_ns))

    def missing(self, now: StreamReading) -> str:
        """Return why no frames arrive, ``''`` if they do or a recording was read to its end."""
        if now.health.state in _UNCONNECTED:
            return 'not connected'
        is_expected = now.health.state in ('ended', 'paused') and not self._end_of(now.health)
        if now.silence_s > self._stale_after and not is_expected:
            return f'nothing received for {now.silence_s:.1f} s'
        return ''

    @staticmethod
    def _end_of(health: Health) -> str:
        """Return why a live stream has ended, empty if it has not, and for a recording."""
        return health.loss if health.state == 'ended' else ''

    def _level(self, last: StreamReading, now: StreamReading) -> tuple[Level, str]:
        health, counters = now.health, now.counters
        n_defects = counters.n_defects - last.counters.n_defects
        if n_defects:
            return Level.ERROR, (f'{counted(n_defects, "internal error")}: '
                                 f'{counters.last_defect}; the log has the traceback')
        if missing := self.missing(now):
            is_connected = health.state not in _UNCONNECTED
            why = self._end_of(health) or (
                health.silence if is_connected else health.last_error or health.silence)
            return (Level.STALE if is_connected else Level.ERROR,
                    f'{missing}: {why}' if why else missing)
        if health.state in ('ended', 'paused'):
            return Level.OK, self._end_of(health) or (
                health.silence or f'the recording is {health.state}')
        warnings = self._warnings(last, now)
        return (Level.WARN, '; '.join(warnings)) if warnings else \
            (Level.OK, counted(counters.n_actors, 'actor'))

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


def checks_status(checks: Checks, missing: str = '') -> Status:
    """Return the status ``<node>: truth``, whose name is part of the interface."""
    # missing: reason why no frames arrive, as of :meth:`StreamDiagnosis.missing`.
    complaints, of = checks.complaints, checks.figures()
    level = Level.WARN if complaints else Level.OK
    message = '; '.join(complaints) or checks.reason or 'twist and pose agree'
    if missing:
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


def _slope(value: float) -> str:
    return 'velocity is 0' if math.isinf(value) else shown(value)


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that a share of all values do not exceed: NaN without values."""
    ranked = sorted(values)
    return ranked[math.ceil(share * len(ranked)) - 1] if ranked else math.nan


def shown(value: float) -> str:
    """Return a number as text, ``''`` for NaN."""
    return '' if math.isnan(value) else f'{value:.6g}'

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
What the node reports: lines of its log, and the statuses of /diagnostics.

Both are made of what :meth:`StreamReport.describe` returns; levels follow REP-107, and
doc/reference/diagnostics.md lists the keys.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
import math
from statistics import median
import time
import traceback
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.node import Node

from state_sensor_ros.pipeline.pipeline import Pipeline
from state_sensor_ros.pipeline.stream import StreamThreads
from state_sensor_ros.ros.sink import await_delivery
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import latest, SourceState
from state_sensor_ros.texts import counted, one_line

# Shortest period of log lines of one kind, s; how long subscribers have for the last status, s.
_PERIOD_S, _DELIVERY_S = 1.0, 0.2
# Number of latencies for the 99th percentile: three minutes at 20 Hz.
_N_RECENT = 4096
_VERBS = {SourceState.CONNECTED: 'connected to', SourceState.ENDED: 'played'}
# Keys of the status with the attributes of the counters and of the health.
_COUNTS = {
    'frames received': 'n_received', 'frames published': 'n_published',
    'frames skipped': 'n_skipped', 'frames dropped': 'n_dropped', 'frames repeated': 'n_repeated',
    'simulator restarts': 'n_restarts', 'internal errors': 'n_defects', 'actors': 'n_actors',
    'actors dropped': 'n_dropped_actors', 'duplicate names': 'n_duplicates',
    'unusable poses': 'n_bad_poses', 'unknown velocities': 'n_unknown_velocities',
    'actors without topics': 'n_without_topics'}
_OF_HEALTH = {'bytes': 'n_bytes', 'reconnects': 'n_reconnects',
              'protocol errors': 'n_protocol_errors', 'cut packets': 'n_cut_packets'}
# Counts whose increase since the last report is a warning, with noun and text of the warning.
_FAULTS = (('frames skipped', 'frame', 'skipped'), ('actors dropped', 'actor', 'dropped'),
           ('duplicate names', 'actor', 'with the name of another'),
           ('unusable poses', 'actor', 'without a usable pose'),
           ('frames dropped', 'frame', 'dropped: the stream is faster than this machine'),
           ('samples missed', 'sample', 'missing in the stream'),
           ('reconnects', 'connection', 'lost and made again'))


class Level(IntEnum):
    """Levels of ``diagnostic_msgs/DiagnosticStatus``."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


class Status(NamedTuple):
    """One status: a level, one line, and key-value pairs in their order."""

    level: Level
    message: str
    values: Mapping[str, object]


class StreamReport:
    """
    Describe one stream, about once a second: its status, and lines for what has changed.

    :param address: ``host:port`` or the path of a recording.
    :param use_sim_time: that of the node: who sets it knows that stamps are game time.
    """

    def __init__(self, address: str, settings: Settings, stream: StreamThreads,
                 pipeline: Pipeline, *, use_sim_time: bool) -> None:
        self._address, self._settings = address, settings
        self._stream, self._pipeline = stream, pipeline
        is_told = use_sim_time or settings.stamp_source != 'game_time'
        self._stamps = settings.stamp_source.replace('_', ' ') + (
            '' if is_told else ', not the time of day: nodes that use them need use_sim_time')
        self._recent_ms: deque[float] = deque(maxlen=_N_RECENT)
        # Numbers at the last status, and frames before the stream and at the last line.
        self._last = self._counts()
        self._n_before = self._n_published = pipeline.counters.n_published
        self._n_losses = self._n_connects = self._error_ns = 0
        self._n_dropped = pipeline.counters.n_dropped
        # What was logged: all but the lines of a whole stream are logged again after a frame.
        self._written: set[str] = set()

    def _counts(self) -> dict[str, float]:
        """Return the counts of the status, and what else is compared with the last one."""
        counters, health = self._pipeline.counters, self._stream.source.health
        return {**{key: getattr(counters, name) for key, name in _COUNTS.items()},
                **{key: getattr(health, name) for key, name in _OF_HEALTH.items()},
                'samples missed': self._pipeline.stamper.n_missed,
                'coarse': self._pipeline.stamper.n_coarse,
                'game time': counters.game_time, 'at': time.monotonic()}

    @property
    def is_described(self) -> bool:
        """Whether the line about the first frame is written."""
        return 'first' in self._written

    def describe(self) -> tuple[Level, str, str]:
        """Return how the connection is: a level, what is said, and why; empty for nothing."""
        health = self._stream.source.health
        silence_s = (time.perf_counter_ns() - self._stream.last_receipt_ns) / 1e9
        if health.state in (SourceState.CONNECTING, SourceState.WAITING):
            return Level.ERROR, 'not connected', health.reason
        # A live stream has a reason for its end.
        end = health.loss if health.state is SourceState.ENDED else ''
        is_held = health.state in (SourceState.ENDED, SourceState.PAUSED)
        if silence_s > self._settings.stale_after and (end or not is_held):
            return Level.STALE, f'nothing received for {silence_s:.1f} s', end or health.silence
        if is_held:
            return Level.OK, end or health.silence or f'the recording is {health.state}', ''
        return Level.OK, '', ''

    def lines(self) -> list[tuple[bool, str]]:
        """
        Return a line for each change since the last call, and whether it is a warning.

        Of a connection that is lost and made again without a frame, each change is one line.
        """
        # The counters are read first: afterward those of an ended recording do not change.
        health, counters = self._stream.source.health, self._pipeline.counters
        has_ended = health.state is SourceState.ENDED and counters.n_in_flight == 0
        n_frames = counters.n_published - self._n_before
        if counters.n_published > self._n_published:
            self._n_published = counters.n_published
            self._written &= {'first', 'end', 'dropped'}
        level, what, why = self.describe()
        lines: list[tuple[bool, str]] = []

        def write(text: str, kind: str, *, is_warning: bool = False) -> None:
            if kind not in self._written:
                self._written.add(kind)
                lines.append((is_warning, text))

        n_dropped = counters.n_dropped - self._n_dropped
        self._n_dropped += n_dropped
        if n_dropped:
            write(f'{counted(n_dropped, "frame")} dropped: they came faster than this machine '
                  'publishes them; queue_size and overflow decide', 'dropped', is_warning=True)
        else:
            self._written.discard('dropped')
        if health.n_losses > self._n_losses:
            write(f'connection lost: {health.loss}', f'lost {health.loss}', is_warning=True)
        elif health.error.at_ns != self._error_ns and health.state is not SourceState.CONNECTED:
            write(joined(what, why) if level is Level.ERROR else health.last_error,
                  health.last_error, is_warning=True)
        if health.n_connects > max(self._n_connects, 1):
            write('connected again', 'connected')
        self._n_losses, self._n_connects = health.n_losses, health.n_connects
        self._error_ns = health.error.at_ns
        if level is Level.STALE:
            write(joined(f'{self._address}: {what}', why), 'stale', is_warning=True)
        else:
            self._written.discard('stale')
        if n_frames:
            write(f'{_VERBS.get(health.state, "playing")} {self._address}: generation '
                  f'{counters.generation}, {counted(counters.n_actors, "actor")}, '
                  f'{counters.n_egos} with the ego tag; stamps are {self._stamps}', 'first')
        if has_ended:
            cause = f'{health.loss}: end of the stream' if health.loss else 'end of the recording'
            write(f'{cause} {self._address}: {counted(n_frames, "frame")} published', 'end')
        return lines

    def status(self) -> Status:
        """Return the status of the interval since the last one."""
        health, counters = self._stream.source.health, self._pipeline.counters
        last, self._last = self._last, self._counts()
        new = {key: value - last[key] for key, value in self._last.items()}
        elapsed_s = max(new['at'], 1e-9)
        has_pace = new['frames received'] and not new['simulator restarts']
        milliseconds = [latency / 1e6 for latency in counters.take_latencies()]
        self._recent_ms.extend(milliseconds)
        level, message = self._judged(new)
        counts = {key: value for key, value in self._last.items() if key not in ('coarse', 'at')}
        return Status(level, message, {
            'connection state': health.state, 'generation': counters.generation, **counts,
            'last error': latest(health.error, counters.last_error).text,
            'game time': shown(counters.game_time), 'stamps': self._stamps,
            'frame rate': shown(new['frames received'] / elapsed_s),
            'stream-to-publish latency median (ms)':
                shown(median(milliseconds) if milliseconds else math.nan),
            'stream-to-publish latency max (ms)': shown(max(milliseconds, default=math.nan)),
            # Over all recent frames: those of one second are too few for a 99th percentile.
            'stream-to-publish latency p99 (ms)': shown(percentile(self._recent_ms, 0.99)),
            'sim/real factor': shown(new['game time'] / elapsed_s if has_pace else math.nan)})

    def _judged(self, new: Mapping[str, float]) -> tuple[Level, str]:
        """Return level and text of a status; ``new``: what was counted since the last one."""
        counters = self._pipeline.counters
        if new['internal errors']:
            return Level.ERROR, (f'{counted(int(new["internal errors"]), "internal error")}: '
                                 f'{counters.last_defect}; the log has the traceback')
        level, what, why = self.describe()
        if what:
            return level, joined(what, why)
        warnings = [f'{counted(int(new[key]), noun)} {words}' for key, noun, words in _FAULTS
                    if new[key] > 0]
        if new['coarse'] > 0:
            warnings.append('game_time, a float32, has grown too large for this rate: restart the '
                            'simulation')
        if counters.n_without_topics:
            warnings.append(f'{counted(counters.n_without_topics, "actor")} without topics of '
                            f'their own: max_actor_topics is {self._settings.max_actor_topics}')
        if counters.n_actors and counters.n_egos != 1:
            warnings.append(f'{counted(counters.n_egos, "actor")} with the ego tag')
        return (Level.WARN if warnings else Level.OK,
                '; '.join(warnings) or counted(counters.n_actors, 'actor'))

    def truth(self) -> Status:
        """Return the status ``<node>: truth``, whose name is part of the interface."""
        (condition, missing, _), checks = self.describe(), self._pipeline.checks
        complaints, of = checks.complaints, checks.figures()
        level = Level.WARN if complaints else Level.OK
        message = '; '.join(complaints) or checks.reason or 'twist and pose agree'
        if condition > Level.WARN:
            level, message = Level.STALE, f'{missing}; before that: {message}'
        return Status(level, message, {
            'displacement per velocity x time': _slope(of.displacement),
            'rotation per angular velocity x time': _slope(of.rotation),
            'linear residual (m)': shown(of.linear_residual),
            'angular residual (rad)': shown(of.angular_residual), 'slip (sine)': shown(of.slip),
            'pairs compared': checks.n_pairs, 'jumps': '; '.join(checks.jumps.lines) or 'none'})


def joined(what: str, why: str) -> str:
    return f'{what}: {why}' if why else what


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
        self._logged_s: dict[str, float] = {}

    def warn(self, kind: str, text: str) -> None:
        """Log a fault of the stream."""
        # kind: kind of the fault; it is logged at most once per second.
        if self._may_log(kind):
            self._logger.warning(one_line(text))

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
        now_s = time.monotonic()
        if now_s - self._logged_s.get(kind, -math.inf) < _PERIOD_S:
            return False
        self._logged_s[kind] = now_s
        return True


class DiagnosticsTopic:
    """Publish the statuses of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)

    def publish(self, hardware_id: str, statuses: Mapping[str, Status]) -> None:
        node_name = self._node.get_fully_qualified_name().lstrip('/')
        message = DiagnosticArray(status=[DiagnosticStatus(
            level=bytes([status.level]), name=f'{node_name}: {name}', hardware_id=hardware_id,
            message=one_line(status.message), values=[
                KeyValue(key=key, value=one_line(str(value)))
                for key, value in status.values.items()]) for name, status in statuses.items()])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    def flush(self) -> None:
        """Wait until subscribers have the last message, which is lost with the node."""
        await_delivery([self._publisher], _DELIVERY_S)


# Name that rmw gives the node of a publisher that is discovered before the node.
_UNKNOWN = '_NODE_NAME_UNKNOWN_'
# Text that stands for it.
UNDISCOVERED = 'a node that is not discovered yet'


def rival_publishers(node: Node, types: Mapping[str, str]) -> list[str]:
    """Return the names of the nodes that publish topics if these have several publishers."""
    # types: by topic the type whose messages arrive, ``package/msg/Name``; empty for any.
    # Returns a name with its namespace for each publisher, sorted; empty for fewer than two.
    if sum(map(node.count_publishers, types)) < 2:
        return []
    names = sorted(
        UNDISCOVERED if publisher.node_name == _UNKNOWN
        else f'{publisher.node_namespace.rstrip("/")}/{publisher.node_name}'
        for topic, type_name in types.items()
        for publisher in node.get_publishers_info_by_topic(topic)
        if not type_name or publisher.topic_type == type_name)
    return names if len(names) > 1 else []


def other_publishers(node: Node, topic: str) -> str:
    """Return the names of the other nodes that publish a topic of a node, once they have names."""
    names = set(rival_publishers(node, {topic: ''}))
    if not names or UNDISCOVERED in names:
        return ''
    names.discard(node.get_fully_qualified_name())
    return ', '.join(sorted(names)) or 'a node of the same name'


class GraphWatch:
    """
    Warn once of each other node of the same name, publisher of an own topic, and unread publisher.

    An unread publisher is one on a topic to which the node subscribes, of another type: rclpy
    itself names one of another QoS. All of them may start long after the node.

    :ivar exclusive: names of topics that are wrong with a second publisher, as those of a stack.
    """

    def __init__(self, node: Node, warn: Callable[[str], None]) -> None:
        self._node, self._warn = node, warn
        self.exclusive: set[str] = set()
        self._n_nodes = 1
        self._unread: set[tuple[str, str, str]] = set()

    def search(self) -> None:
        """Look at what is discovered now."""
        name = self._node.get_name(), self._node.get_namespace()
        n_nodes = self._node.get_node_names_and_namespaces().count(name)
        if n_nodes > self._n_nodes:
            self._warn(f'{n_nodes} nodes have the name {self._node.get_fully_qualified_name()} '
                       'and publish on the same topics: start each with a name of its own '
                       '(--ros-args -r __node:=NAME) or end the others')
        self._n_nodes = max(n_nodes, 1)
        self.find_others()
        self.find_unread()

    def find_others(self) -> None:
        """Find other publishers of exclusive topics, once their nodes have names."""
        for topic in sorted(self.exclusive):
            if others := other_publishers(self._node, topic):
                self.exclusive.remove(topic)
                self._warn(f'{topic} has another publisher, {others}')

    def find_unread(self) -> None:
        """Find publishers whose messages are not received."""
        for subscription in self._node.subscriptions:
            type_, topic = subscription.msg_type, subscription.topic_name
            expected = f'{"/".join(type_.__module__.split(".")[:2])}/{type_.__name__}'
            for publisher in self._node.get_publishers_info_by_topic(topic):
                found = topic, bytes(publisher.endpoint_gid).hex(), publisher.topic_type
                if publisher.topic_type != expected and publisher.node_name != _UNKNOWN \
                        and found not in self._unread:
                    self._unread.add(found)
                    self._warn(f'{topic}: {publisher.node_namespace.rstrip("/")}/'
                               f'{publisher.node_name} publishes {publisher.topic_type}; expected '
                               f'{expected}: its messages are not received')

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The recorder of the demonstration: every topic of the driver into a bag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
import math
from pathlib import Path
import re
import statistics
import struct
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions

from state_sensor_ros.files.bag_writer import BagSink
from state_sensor_ros.ros.topic_sink import message_class
from state_sensor_ros.topics.topic import LATCHED, ORDINARY, Topic

ALWAYS = ('/tf', '/diagnostics', '/clock')
START_TIMEOUT_S = 30.0
# The recording begins when no new topic was found for this time; traffic that goes on arriving is
# not waited for any longer after the first frame.
SETTLE_S, MOST_SETTLE_S = 1.0, 5.0
LOOK_PERIOD_S = 0.2
# The last frame has reached all topics within this time.
END_S = 2.0
# Topics of the frames begin with a stamp, with a header, or as arrays with their length.
STAMP, STAMP_OF_ARRAY = struct.Struct('<4xiI'), struct.Struct('<8xiI')
ARRAYS = ('tf2_msgs/msg/TFMessage', 'visualization_msgs/msg/MarkerArray')
# Of other times than those of the frames.
WITHOUT_STAMP = ('/diagnostics', '/transition_event')
LATENCY_KEYS = ('stream-to-publish latency median (ms)', 'stream-to-publish latency p99 (ms)')


@dataclass
class Row:
    """Messages of one topic, or of one kind of topic of all actors."""

    type_name: str = ''
    n_topics: int = 0
    n_messages: int = 0
    rates_hz: list[float] = field(default_factory=list)


class Recorder:
    """
    Records the topics of a node, serialized, into a bag.

    The recording begins and ends with the same frame on every topic.

    :param bag: folder of the bag.
    :param name: full name of the node, which publishes ~/frame.
    """

    def __init__(self, bag: Path, name: str) -> None:
        self._name = name
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node('demo_recorder', context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._sink = BagSink(bag)
        self._topics: dict[str, Topic] = {}
        self._times_ns: dict[str, list[int]] = {}
        self._latched: list[tuple[Topic, bytes]] = []
        self._found_s = time.monotonic()
        # The last stamp of each topic, and those that the recording is between, ns.
        self._stamps_ns: dict[str, int] = {}
        self._after_ns = self._until_ns = math.inf
        #: median and 99th percentile of each second, ms
        self.latencies_ms: list[tuple[float, float]] = []

    def record(self, duration_s: float, check: Callable[[], None]) -> None:
        """
        Record for a time once frames arrive and all topics are found.

        :param check: called often; an exception ends the recording without a bag.
        :raises TimeoutError: when no frame arrives.
        """
        try:
            self._spin(START_TIMEOUT_S, check, lambda: bool(self._stamps_ns))
            if not self._stamps_ns:
                raise TimeoutError(f'no frame arrived within {START_TIMEOUT_S:g} s')
            self._spin(MOST_SETTLE_S, check,
                       lambda: time.monotonic() > self._found_s + SETTLE_S)
            self._after_ns = max(self._stamps_ns.values())
            self._sink.publish(self._latched, time.time_ns())
            for topic, _ in self._latched:
                self._times_ns[topic.name] = [time.time_ns()]
            self._spin(duration_s, check, lambda: False)
            self._until_ns = max(self._stamps_ns.values())
            # Those that had the frames of the last second; the actors of others have left.
            topics = [name for name, stamp_ns in self._stamps_ns.items()
                      if stamp_ns > self._until_ns - 1e9]
            self._spin(END_S, check, lambda: all(
                self._stamps_ns[name] >= self._until_ns for name in topics))
            self._sink.finish()
        finally:
            self._sink.abort()
            self._node.destroy_node()
            self._context.shutdown()

    def _spin(self, seconds: float, check: Callable[[], None],
              is_done: Callable[[], bool]) -> None:
        deadline, look_s = time.monotonic() + seconds, 0.0
        while (now := time.monotonic()) < deadline and not is_done():
            if now >= look_s:
                self._subscribe_to_new()
                look_s = now + LOOK_PERIOD_S
            check()
            self._executor.spin_once(min(0.05, deadline - now))

    def _subscribe_to_new(self) -> None:
        for name, [type_name, *_] in self._node.get_topic_names_and_types():
            # Names with an underscore are hidden, such as those of actions.
            if name in self._topics or '/_' in name or not name.startswith(
                    (f'{self._name}/', *ALWAYS)):
                continue
            publishers = self._node.get_publishers_info_by_topic(name)
            if publishers:
                durability = publishers[0].qos_profile.durability
                is_latched = durability == DurabilityPolicy.TRANSIENT_LOCAL
                topic = Topic(name, type_name, LATCHED if is_latched else ORDINARY)
                self._topics[name], self._found_s = topic, time.monotonic()
                self._sink.open([topic])
                self._node.create_subscription(
                    message_class(type_name), name, partial(self._take, topic),
                    QoSProfile(depth=100, durability=durability), raw=True)

    def _take(self, topic: Topic, data: bytes) -> None:
        if topic.name == '/diagnostics':
            self._add_latency(data)
        elif topic.qos.latched and self._after_ns == math.inf:
            self._latched.append((topic, data))
        elif not topic.qos.latched and not topic.name.endswith(WITHOUT_STAMP):
            layout = STAMP_OF_ARRAY if topic.type_name in ARRAYS else STAMP
            seconds, nanoseconds = layout.unpack_from(data)
            stamp_ns = self._stamps_ns[topic.name] = seconds * 10 ** 9 + nanoseconds
            if not self._after_ns < stamp_ns <= self._until_ns:
                return
        if self._after_ns < math.inf:
            self._sink.publish([(topic, data)], time.time_ns())
            self._times_ns.setdefault(topic.name, []).append(time.time_ns())

    def _add_latency(self, data: bytes) -> None:
        array = deserialize_message(
            data, message_class('diagnostic_msgs/msg/DiagnosticArray'))
        for status in array.status:
            values = {item.key: item.value for item in status.values}
            if all(values.get(key) for key in LATENCY_KEYS):
                median_ms, p99_ms = (float(values[key]) for key in LATENCY_KEYS)
                self.latencies_ms.append((median_ms, p99_ms))

    def rows(self) -> dict[str, Row]:
        """Return a row for each topic; those of all actors are one row per kind."""
        rows: dict[str, Row] = {}
        for name, topic in sorted(self._topics.items()):
            row = rows.setdefault(re.sub(f'^({self._name}/actors)/[^/]+/', r'\1/*/', name), Row())
            times_ns = self._times_ns.get(name, [])
            row.type_name = topic.type_name
            row.n_topics += 1
            row.n_messages += len(times_ns)
            # A latched topic has a message when something changes: it has no rate.
            if len(times_ns) > 1 and not topic.qos.latched:
                row.rates_hz.append((len(times_ns) - 1) * 1e9 / (times_ns[-1] - times_ns[0]))
        return rows

    def show(self) -> None:
        """Print a table of the recorded topics, and the latency."""
        table = [('topic', 'type', 'topics', 'messages', 'rate of each')]
        for name, row in self.rows().items():
            rate = f'{statistics.median(row.rates_hz):.1f} Hz' if row.rates_hz else '-'
            table.append((name, row.type_name, str(row.n_topics), str(row.n_messages), rate))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        print()
        for cells in table:
            print('  '.join(cell.ljust(width) if i < 2 else cell.rjust(width)
                            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))))
        if self.latencies_ms:
            # The driver's 99th percentile is over all frames so far.
            print('\nlatency, last byte received to last topic published: median '
                  f'{statistics.median(median for median, _ in self.latencies_ms):.2f} ms, '
                  f'p99 {self.latencies_ms[-1][1]:.2f} ms')

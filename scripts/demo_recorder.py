# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Record what a node publishes into a bag, and print a table of its topics and its latency."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
import re
import statistics
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions

from state_sensor_ros.files.bag_writer import BagSink
from state_sensor_ros.ros.sink import message_class
from state_sensor_ros.topics.topic import LATCHED, ORDINARY, Topic

ALWAYS = ('/tf', '/diagnostics', '/clock')
START_TIMEOUT_S, LOOK_PERIOD_S = 30.0, 0.2
LATENCY_KEYS = ('stream-to-publish latency median (ms)', 'stream-to-publish latency p99 (ms)')


class Recorder:
    """
    Records the topics of a node, serialized, into a bag.

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
        #: median and 99th percentile of each second, ms
        self.latencies_ms: list[tuple[float, ...]] = []

    def record(self, duration_s: float, check: Callable[[], object]) -> None:
        """
        Record until frames have arrived for a time.

        :param check: called often; an exception ends the recording without a bag.
        :raises TimeoutError: when no frame arrives.
        """
        try:
            frames = f'{self._name}/frame'
            self._spin(START_TIMEOUT_S, check, lambda: frames in self._times_ns)
            if frames not in self._times_ns:
                raise TimeoutError(f'no frame arrived within {START_TIMEOUT_S:g} s')
            self._spin(duration_s, check, lambda: False)
            self._sink.finish()
        finally:
            self._sink.abort()
            self._node.destroy_node()
            self._context.shutdown()

    def _spin(self, seconds: float, check: Callable[[], object],
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
                self._topics[name] = topic
                self._sink.open([topic])
                self._node.create_subscription(
                    message_class(type_name), name, partial(self._take, topic),
                    QoSProfile(depth=100, durability=durability), raw=True)

    def _take(self, topic: Topic, data: bytes) -> None:
        if topic.name == '/diagnostics':
            self._add_latency(data)
        self._sink.publish([(topic, data)], time.time_ns())
        self._times_ns.setdefault(topic.name, []).append(time.time_ns())

    def _add_latency(self, data: bytes) -> None:
        array = deserialize_message(data, message_class('diagnostic_msgs/msg/DiagnosticArray'))
        for status in array.status:
            values = {item.key: item.value for item in status.values}
            if all(values.get(key) for key in LATENCY_KEYS):
                self.latencies_ms.append(tuple(float(values[key]) for key in LATENCY_KEYS))

    def rows(self) -> dict[str, tuple[str, int, int, str]]:
        """Return type, topics, messages and rate of each topic; those of all actors are one."""
        kinds: dict[str, list[str]] = {}
        for name in sorted(self._topics):
            kind = re.sub(f'^({self._name}/actors)/[^/]+/', r'\1/*/', name)
            kinds.setdefault(kind, []).append(name)
        rows = {}
        for kind, names in kinds.items():
            times_ns = [self._times_ns.get(name, []) for name in names]
            # A latched topic has a message when something changes: it has no rate.
            rates_hz = [(len(each) - 1) * 1e9 / (each[-1] - each[0]) for each in times_ns
                        if len(each) > 1 and not self._topics[names[0]].qos.latched]
            rate = f'{statistics.median(rates_hz):.1f} Hz' if rates_hz else '-'
            rows[kind] = (self._topics[names[0]].type_name, len(names),
                          sum(map(len, times_ns)), rate)
        return rows

    def show(self) -> None:
        """Print a table of the recorded topics, and the latency."""
        table = [('topic', 'type', 'topics', 'messages', 'rate of each'), *(
            (name, *map(str, row)) for name, row in self.rows().items())]
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recorder of the demonstration: every topic of a node, serialized, into a bag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
import math
from pathlib import Path
import re
import statistics
import struct
import time

from demo_graph import Graph, looking
from diagnostic_msgs.msg import DiagnosticArray

from state_sensor_ros.files.bag_writer import BagSink
from state_sensor_ros.topics.topic import Topic

ALWAYS = ('/tf', '/diagnostics', '/clock')
START_TIMEOUT_S = 30.0
LOOK_PERIOD_S = 0.2
# The last frame has reached all topics within this time.
END_S = 2.0
# Topics of the frames begin with a stamp, with a header, or as arrays with their length.
STAMP = struct.Struct('<4xiI')
STAMP_OF_ARRAY = struct.Struct('<8xiI')
ARRAYS = ('tf2_msgs/msg/TFMessage', 'visualization_msgs/msg/MarkerArray')
# Of other times than those of the frames.
WITHOUT_STAMP = ('/diagnostics', '/transition_event')
# All topics are found when no new one was found for this time.
SETTLE_S = 1.0
# Traffic that goes on arriving is not waited for any longer after the first frame.
MOST_SETTLE_S = 5.0
LATENCY_KEYS = ('stream-to-publish latency median (ms)', 'stream-to-publish latency p99 (ms)')


@dataclass
class Row:
    """Messages of one topic, or of one kind of topic of all actors."""

    type_name: str = ''
    n_topics: int = 0
    n_messages: int = 0
    rates_hz: list[float] = field(default_factory=list)


@dataclass
class Recording:
    """
    Result: a row per topic, and the median and 99th percentile of each second, ms.

    ``frame_hz`` frames per second of wall time; ``simulated_hz`` frames per second of simulated
    time, which is that of the wall in a simulation in real time; both 0 without two frames.
    """

    rows: dict[str, Row]
    latencies_ms: list[tuple[float, float]]
    frame_hz: float = 0.0
    simulated_hz: float = 0.0


def record(bag: Path, node: str, duration_s: float, check: Callable[[], None]) -> Recording:
    """
    Record all topics of a node, the transforms and the diagnostics into a bag.

    :param bag: folder of the bag.
    :param node: full name of the node, which publishes ~/frame.
    :param duration_s: duration of the recording, s.
    :param check: called every LOOK_PERIOD_S; an exception ends the recording without a bag.
    :raises TimeoutError: when no frame arrives.
    """
    with looking() as graph:
        recorder = Recorder(graph, bag, node)
        try:
            return recorder.run(duration_s, check)
        finally:
            recorder.close()


def stamp_of(type_name: str, data: bytes) -> int:
    """
    Return the stamp of a frame's message, ns.

    :param type_name: type of the message.
    :param data: the message, serialized; an array has at least one element.
    """
    layout = STAMP_OF_ARRAY if type_name in ARRAYS else STAMP
    seconds, nanoseconds = layout.unpack_from(data)
    return int(seconds) * 10 ** 9 + int(nanoseconds)


class Recorder:
    """
    Records the topics of a node, serialized, into a bag.

    The recording begins and ends with the same frame on every topic: it has the messages with a
    stamp after the last one that was received on any topic before it began, until the last one
    that was received on any topic before it ends.
    """

    def __init__(self, graph: Graph, bag: Path, node: str) -> None:
        self._graph, self._name = graph, node
        self._sink = BagSink(bag)
        self._topics: dict[str, Topic] = {}
        self._times_ns: dict[str, list[int]] = {}
        self._latencies_ms: list[tuple[float, float]] = []
        self._frame_stamps_ns: list[int] = []
        self._latched: list[tuple[Topic, bytes]] = []
        self._last_found_s = time.monotonic()
        self._is_recording = False
        # The last stamp of each topic, and those that the recording is between, ns.
        self._stamps_ns: dict[str, int] = {}
        self._after_ns = self._until_ns = math.inf
        graph.subscribe('/diagnostics', 'diagnostic_msgs/msg/DiagnosticArray', self._add_latency)

    def run(self, duration_s: float, check: Callable[[], None]) -> Recording:
        """Record for ``duration_s`` once frames arrive and all topics are found."""
        deadline, first_frame_s = time.monotonic() + START_TIMEOUT_S, math.inf
        while (now := time.monotonic()) < deadline:
            self._subscribe_to_new()
            check()
            self._graph.spin(min(LOOK_PERIOD_S, deadline - now))
            if not self._stamps_ns:
                first_frame_s = now
            elif not self._is_recording and now > min(self._last_found_s + SETTLE_S,
                                                      first_frame_s + MOST_SETTLE_S):
                self._begin()
                deadline = time.monotonic() + duration_s
        if not self._is_recording:
            raise TimeoutError(f'no frame arrived within {START_TIMEOUT_S:g} s')
        self._end(check)
        self._sink.finish()
        return Recording(self._rows(), self._latencies_ms, *self._frame_rates())

    def _begin(self) -> None:
        """
        Begin to write.

        Subscribing takes a second: messages queued meanwhile would be recorded as a burst.
        """
        self._is_recording = True
        self._after_ns = max(self._stamps_ns.values(), default=-math.inf)
        for topic, data in self._latched:
            self._take(topic, data)

    def _end(self, check: Callable[[], None]) -> None:
        """Receive the last frame on the topics that have not had it yet."""
        self._until_ns = max(self._stamps_ns.values())
        # Those that had the frames of the last second; the actors of others have left.
        topics = [name for name, stamp_ns in self._stamps_ns.items()
                  if stamp_ns > self._until_ns - 1e9]

        def have_ended() -> bool:
            check()
            return all(self._stamps_ns[name] >= self._until_ns for name in topics)

        self._graph.spin(END_S, have_ended)

    def close(self) -> None:
        """Remove an unfinished bag."""
        self._sink.abort()

    def _subscribe_to_new(self) -> None:
        for name in self._graph.topics():
            if name in self._topics or not name.startswith((f'{self._name}/', *ALWAYS)):
                continue
            topic = self._graph.offer(name)
            if topic is not None:
                self._topics[name] = topic
                self._last_found_s = time.monotonic()
                self._sink.open([topic])
                self._graph.subscribe(name, topic.type_name, partial(self._take, topic), raw=True)

    def _take(self, topic: Topic, data: bytes) -> None:
        if not topic.qos.latched and not topic.name.endswith(WITHOUT_STAMP):
            stamp_ns = stamp_of(topic.type_name, data)
            self._stamps_ns[topic.name] = stamp_ns
            if not self._after_ns < stamp_ns <= self._until_ns:
                return
            if self._is_recording and topic.name == f'{self._name}/frame':
                self._frame_stamps_ns.append(stamp_ns)
        if not self._is_recording:
            if topic.qos.latched:
                self._latched.append((topic, data))
            return
        now_ns = time.time_ns()
        self._sink.publish([(topic, data)], now_ns)
        self._times_ns.setdefault(topic.name, []).append(now_ns)

    def _add_latency(self, array: DiagnosticArray) -> None:
        for status in array.status:
            values = {item.key: item.value for item in status.values}
            if all(values.get(key) for key in LATENCY_KEYS):
                median_ms, p99_ms = (float(values[key]) for key in LATENCY_KEYS)
                self._latencies_ms.append((median_ms, p99_ms))

    def _frame_rates(self) -> tuple[float, float]:
        """Return the rates of frames by the clock on the wall and by that of the simulator."""
        times_ns = self._times_ns.get(f'{self._name}/frame', [])
        steps_ns = [after - before for before, after in pairwise(self._frame_stamps_ns)]
        if not steps_ns or times_ns[-1] == times_ns[0]:
            return 0.0, 0.0
        return (len(steps_ns) * 1e9 / (times_ns[-1] - times_ns[0]),
                1e9 / statistics.median(steps_ns))

    def _rows(self) -> dict[str, Row]:
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor record --topics`: the driver's frames and topics of a stack in one bag."""

from __future__ import annotations

import argparse
from functools import partial
import math
import struct
import time

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.printing import print_line, waiting_named
from state_sensor_ros.commands.summary import show_result, size_of
from state_sensor_ros.errors import ConfigError, failed_stream, TransportError
from state_sensor_ros.files.bags.bag_writer import BagSink
from state_sensor_ros.parameters import near_names
from state_sensor_ros.ros.graph import Graph, looking
from state_sensor_ros.texts import counted
from state_sensor_ros.topics.topic import Topic

# Longest wait for the driver, and time between two searches for topics, s.
_FIND_S, _SEARCH_S = 5.0, 0.5
# Seconds and nanoseconds of the header that begins a serialized frame.
_STAMP = struct.Struct('<4xiI')


def record_topics(args: argparse.Namespace, storage: str, interruption: Interruption) -> None:
    """Record until the end set by the options, or a signal; what was received is kept."""
    interruption.unblock_errors()
    with looking(lambda: bool(interruption.number)) as graph:
        interruption.describe(lambda: '', lambda: None)
        try:
            nodes = graph.find_nodes('', _FIND_S)
        except TransportError:
            interruption.end_without_frame()
            raise
        if len(nodes) != 1:
            raise ConfigError('ROS', f'{len(nodes)} drivers: {", ".join(nodes)}', 'one driver; '
                              'start the others with another ROS_DOMAIN_ID')
        sink = interruption.made(lambda: BagSink(
            args.out, storage=storage, compression=args.compression or 'zstd',
            overwrite=args.force, node_name=nodes[0]))
        recorder = TopicRecorder(graph, sink, nodes[0], args.topics)
        with waiting_named(recorder.frame, lambda: recorder.n_frames > 0, lambda: '',
                           is_quiet=args.quiet):
            is_whole = recorder.run(args.seconds or math.inf, args.frames or math.inf)
        topics = graph.topics()
        silent = {topic: graph.n_publishers(topic) for topic in recorder.silent}
    for topic, n_publishers in silent.items():
        remedy = f'`state_sensor echo {topic}` shows when it sends one' if n_publishers \
            else f'start one{near_names([topic], topics)}'
        print_line(f'warning: {args.out}: no message on {topic}, which has '
                   f'{counted(n_publishers, "publisher")} in ROS domain {graph.domain}; {remedy}')
    if not recorder.n_frames:
        sink.abort()
        interruption.end_without_frame()
        raise failed_stream(recorder.frame, '', 'no frame received')
    with interruption.committing():
        sink.complete()
        sink.finish()
    if not is_whole and (args.seconds or args.frames):
        raise KeyboardInterrupt
    show_result(args.out, [counted(recorder.n_frames, 'frame'), *size_of(args.out)],
                is_quiet=args.quiet)


class TopicRecorder:
    """
    Writes ``~/frame``, the driver's latched topics and the chosen ones, as published.

    All log times are stamps of frames, so that the bag has one clock.
    """

    def __init__(self, graph: Graph, sink: BagSink, node: str, topics: list[str]) -> None:
        self._graph, self._sink, self._node = graph, sink, node
        self.frame, self.n_frames = f'{node}/frame', 0
        self.silent = list(dict.fromkeys(topics))
        self._wanted, self._known = {self.frame, *topics}, set[str]()
        self._stamp_ns = 0

    def run(self, seconds: float, n_frames: float) -> bool:
        """Receive for ``seconds`` from the first frame on; return whether no signal ended it."""
        end_s = math.inf
        while self.n_frames < n_frames and time.monotonic() < end_s:
            for topic in (self._wanted | {*self._graph.topics_of(self._node)}) - self._known:
                self._subscribe(topic)
            if self.n_frames:
                self._sink.flush()
            # The first frame begins the time.
            n_next = n_frames if self.n_frames else 1
            self._graph.spin(min(_SEARCH_S, end_s - time.monotonic()),
                             partial(self._has, n_next))
            if self.n_frames and end_s == math.inf:
                end_s = time.monotonic() + seconds
            if self._graph.is_over():
                return False
        return True

    def _has(self, n_frames: float) -> bool:
        return self.n_frames >= n_frames

    def _subscribe(self, name: str) -> None:
        topic = self._graph.offer(name)
        if topic is None:
            return
        self._known.add(name)
        if name in self._wanted or topic.qos.latched:
            self._sink.open([topic])
            self._graph.subscribe(name, topic.type_name, partial(self._take, topic), raw=True)

    def _take(self, topic: Topic, data: bytes) -> None:
        if topic.name == self.frame:
            seconds, nanoseconds = _STAMP.unpack_from(data)
            self._stamp_ns = seconds * 10 ** 9 + nanoseconds
            self.n_frames += 1
        if topic.name in self.silent:
            self.silent.remove(topic.name)
        if self.n_frames:
            self._sink.publish([(topic, data)], self._stamp_ns)
        elif topic.qos.latched:
            self._sink.latch(topic, data)

#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Run the node as its program does, with a stopwatch around each frame.

Prints ``ready`` once the expected number of readers has subscribed. A line on standard input is
the number of frames to wait for; once all were published or dropped, prints as JSON: the number of
each published frame, the time of the receipt of its last byte and of its last publish (ns of the
steady clock), and the number of dropped frames.
"""

import argparse
import json
import math
import sys
import threading
import time

from configured_node import configured_node


class Stopwatch:
    """Record when each packet was received and published."""

    def __init__(self, node):
        self.frames, self.received_ns, self.done_ns = [], [], []
        self._sent_ns = 0
        self._process, self._publish = node._pipeline.process, node._sink.publish
        node._pipeline.process, node._sink.publish = self.process, self.publish

    def publish(self, messages, stamp_ns):
        self._publish(messages, stamp_ns)
        self._sent_ns = time.perf_counter_ns()

    def process(self, packet, received_ns, number):
        is_processed = self._process(packet, received_ns, number)
        self.received_ns.append(received_ns)
        self.done_ns.append(self._sent_ns)
        self.frames.append(packet.sample_count)
        return is_processed


class Limit(threading.Thread):
    """Read the number of frames from standard input."""

    def __init__(self):
        super().__init__(daemon=True)
        self.n_frames = math.inf

    def run(self):
        self.n_frames = int(sys.stdin.readline())


def main():
    """Run until the number of frames from standard input was published or dropped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--n-readers', type=int, required=True)
    parser.add_argument('--parameters', nargs='*', default=[], help='NAME:=VALUE')
    args = parser.parse_args()
    with configured_node(args.parameters) as (node, executor):
        watch = Stopwatch(node)
        node.trigger_activate()
        counters, limit = node._pipeline.counters, Limit()
        topics = node._sink._open
        while not watch.frames or sum(
                topic.count_subscriptions() for topic in topics.values()) < args.n_readers:
            executor.spin_once(0.1)
        print('ready', flush=True)
        limit.start()
        while len(watch.frames) + counters.n_dropped < limit.n_frames:
            executor.spin_once(0.1)
        print(json.dumps({'frames': watch.frames, 'received_ns': watch.received_ns,
                          'done_ns': watch.done_ns, 'n_dropped': counters.n_dropped}))


if __name__ == '__main__':
    main()

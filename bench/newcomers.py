#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""
Print the extra cost of a frame in which an actor appears or leaves, ms, as JSON.

Every topic is subscribed, so that all messages are laid out again. Each new actor has a new name,
so that it gets publishers, which are destroyed seconds after it has left. The cost of a frame is
that of the node until the last publish. The pause after it, in which publishers are made and
destroyed, is measured separately.
"""

import gc
import itertools
import json
from statistics import median
import sys
import time

import rclpy
from rclpy.lifecycle import LifecycleNode
from traffic import Cycle
from worker import FIXED_TOPICS, NODE_NAME, pipeline_into, SETTINGS

from state_sensor_ros.payloads import Packet
from state_sensor_ros.ros.topic_sink import TopicSink
from state_sensor_ros.topics.topic import NOTHING, Qos, Subscriptions

RATE_HZ = 50.0
CHANGES = ('appears', 'is subscribed', 'leaves', 'is forgotten')
N_REPEATS = 40
N_STEADY = 3  # frames after a new actor; one more after it has left


class AllSubscribed(TopicSink):
    """A sink that reports a subscriber for every topic."""

    subscribed = NOTHING

    def subscriptions(self):
        return self.subscribed

    def find_subscribers(self):
        """Count each open topic as subscribed."""
        self.subscribed = Subscriptions.of([each.topic for each in self._open.values()])


class Stopwatch:
    """Process frames and record their cost."""

    def __init__(self, cycle):
        self._cycle, self._numbers = cycle, itertools.count()
        self._sink = AllSubscribed(LifecycleNode(NODE_NAME), FIXED_TOPICS, Qos())
        self._pipeline = pipeline_into(self._sink)
        self.costs_ms = {}

    def take(self, what, make, *args, skipped=0):
        """Measure a frame, and the pause after it."""
        number = next(itertools.islice(self._numbers, skipped, None))
        payload = make(self._cycle, number, *args)
        began_s = time.thread_time()
        self._pipeline.process(Packet(payload, 0.0, 0, 0), time.perf_counter_ns())
        took_s = time.thread_time() - began_s
        self.costs_ms.setdefault(what, []).append(1e3 * took_s)
        while self._sink.catch_up():
            pass
        self.costs_ms.setdefault(f'pause after {what}', []).append(
            1e3 * (time.thread_time() - began_s - took_s))
        if what in ('start', 'appears', 'is forgotten'):
            self._sink.find_subscribers()


def extra_ms(costs_ms, what):
    """Compare each frame with the steady ones of its round, as the machine's speed varies."""
    steady = zip(*[iter(costs_ms['steady'])] * (N_STEADY + 1), strict=True)
    return median(cost - median(beside) for cost, beside
                  in zip(costs_ms[what], steady, strict=True))


def main():
    """Measure; the first argument is the number of actors."""
    rclpy.init()
    watch = Stopwatch(Cycle(int(sys.argv[1]), RATE_HZ))
    alone, with_newcomer = Cycle.payload_without_last, Cycle.payload_with_newcomer
    for _ in range(5):
        watch.take('start', alone)
    gc.collect()
    gc.freeze()
    timeout = round(SETTINGS.actor_timeout * RATE_HZ) + 1
    for i in range(N_REPEATS):
        newcomer = f'newcomer_{i}'
        watch.take('appears', with_newcomer, newcomer)
        watch.take('is subscribed', with_newcomer, newcomer)
        for _ in range(N_STEADY):
            watch.take('steady', with_newcomer, newcomer)
        watch.take('leaves', alone)
        watch.take('steady', alone)
        watch.take('is forgotten', alone, skipped=timeout)
        for _ in range(N_STEADY):
            watch.take('after', alone)
    print(json.dumps({**{what: extra_ms(watch.costs_ms, what) for what in CHANGES},
                      'in the pause behind': median(watch.costs_ms['pause after appears'])}),
          flush=True)
    rclpy.try_shutdown()


if __name__ == '__main__':
    main()

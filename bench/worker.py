#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003,I100
"""
Process frames by one path in a process of its own and print their cost, as JSON.

Back to back it is the CPU time of a batch, for each line on standard input; with ``--rate`` it is
the duration of each frame after a pause, once.

Paths: ``rival`` (bench/rival.py), ``ours``, ``bound`` (orjson and as many publishes of ready
buffers, by ``publish(bytes)``), ``tight`` (typed decoding of the needed members and the same).
"""

import argparse
from collections.abc import Callable
import gc
import itertools
import json
import sys
import time

from msgspec import Struct
from msgspec.json import Decoder as JsonDecoder
import orjson
import rclpy
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile
import rival
from traffic import Cycle

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.pipeline.pipeline import Pipeline
from state_sensor_ros.ros.sink import message_class, TopicSink
from state_sensor_ros.settings import parse_settings
from state_sensor_ros.simulators.monodrive.frames import Decoder
from state_sensor_ros.simulators.monodrive.schema import (
    ControlState,
    Odometry,
    Quaternion,
    Vector,
)
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, Qos

NODE_NAME = 'bench'
SETTINGS = parse_settings({'frame': False, 'debug_drawing': True, 'labels': False,
                           'max_actor_topics': 65536})
FIXED_TOPICS = Encoder(SETTINGS, load_definitions()).topics


class Recorder:
    """A sink that keeps the messages of the last frame."""

    def __init__(self):
        self.messages, self.topics = [], []

    def subscriptions(self):
        return EVERYTHING

    def open(self, topics):
        self.topics += topics

    def shut(self, topics):
        """Topics stay: the number of publishers is what counts."""

    def publish(self, messages, stamp_ns):
        self.messages = list(messages)


def pipeline_into(sink):
    """Return a pipeline to ``sink``."""
    encoder = Encoder(SETTINGS, load_definitions())
    return Pipeline(SETTINGS, lambda _: encoder, sink, report=lambda kind, text: None)


def ours(cycle: Cycle) -> tuple[Callable[[bytes], None], Callable[[], int]]:
    """Process with this package."""
    node = LifecycleNode(NODE_NAME)
    sink = TopicSink(node, FIXED_TOPICS, Qos())
    pipeline, decoder = pipeline_into(sink), Decoder()

    def process(payload):
        [frame] = decoder.frames(payload)
        pipeline.process(frame, time.perf_counter_ns())
        # As the stream of the node does after each frame.
        decoder.details = pipeline.details
        sink.catch_up()

    process(cycle.payload(0))
    while sink.catch_up():
        pass
    return process, lambda: sum(topic.count_subscriptions() for topic in sink._open.values())


def ready_buffers(cycle, decode):
    """Publish messages encoded beforehand, after ``decode`` of the payload."""
    recorder = Recorder()
    pipeline, decoder = pipeline_into(recorder), Decoder()
    for payload in (cycle.payload(0), cycle.payload(1)):
        [frame] = decoder.frames(payload)
        pipeline.process(frame, time.perf_counter_ns())
    node = LifecycleNode(NODE_NAME)
    publishers = {}
    for topic in (*FIXED_TOPICS, *recorder.topics):
        durability = DurabilityPolicy.TRANSIENT_LOCAL if topic.qos.latched \
            else DurabilityPolicy.VOLATILE
        publishers[topic.name] = node.create_publisher(
            message_class(topic.type_name), topic.name,
            QoSProfile(depth=topic.qos.depth, durability=durability))
    messages = [(publishers[topic.name].publish, data) for topic, data in recorder.messages]

    def process(payload):
        decode(payload)
        for publish, data in messages:
            publish(data)

    def count_subscriptions():
        return sum(publisher.get_subscription_count() for publisher in publishers.values())

    return process, count_subscriptions


def bound(cycle):
    """Decode everything generically, then publish ready buffers."""
    return ready_buffers(cycle, orjson.loads)


class Box(Struct, gc=False):
    """Members of a box that markers need."""

    center: Vector
    extents: Vector
    orientation: Quaternion
    scale: Vector


class State(Struct, gc=False):
    """Members of an actor that the messages need."""

    name: str
    odometry: Odometry
    tags: tuple[str, ...]
    oriented_bounding_box: tuple[Box, ...]


class Vehicle(Struct, gc=False):
    """Members of a vehicle that the messages need."""

    state: State
    control_state: ControlState


class Actors(Struct, gc=False):
    """All actors."""

    objects: tuple[State, ...]
    vehicles: tuple[Vehicle, ...]


class Frame(Struct, gc=False):
    """Members of a payload that the messages need. The decoder of this package skips some."""

    frame: Actors
    game_time: float
    sample_count: int
    time: int


def tight(cycle):
    """Decode the needed members with types, then publish ready buffers."""
    return ready_buffers(cycle, JsonDecoder(Frame).decode)


def idiomatic(cycle):
    """Process with the rival."""
    node = rival.Rival()

    def count_subscriptions():
        return sum(publisher.get_subscription_count() for publisher in node.publishers)

    return node.process, count_subscriptions


PATHS = {'rival': idiomatic, 'ours': ours, 'bound': bound, 'tight': tight}
N_WARM = 5
RATE_HZ = 50.0
AWAIT_S = 120.0


def await_readers(count_subscriptions, n_readers, process, payloads):
    """Publish until the expected number of subscriptions exists."""
    deadline = time.monotonic() + AWAIT_S
    while count_subscriptions() < n_readers:
        if time.monotonic() > deadline:
            raise SystemExit(
                f'error: only {count_subscriptions()} of {n_readers} readers subscribed')
        process(next(payloads))
        time.sleep(0.05)


def paced_ms(process, payloads, args):
    """Return how long each frame takes, ms, one every ``1 / args.rate`` s."""
    batch = [next(payloads) for _ in range(args.frames)]
    times_ms, next_s = [], time.perf_counter()
    for payload in batch:
        time.sleep(max(next_s - time.perf_counter(), 0.0))
        began_s = time.perf_counter()
        process(payload)
        times_ms.append(1e3 * (time.perf_counter() - began_s))
        next_s = began_s + 1.0 / args.rate
    return times_ms


def batch_ms(process, payloads, n_frames):
    """Return the CPU milliseconds per frame of ``n_frames`` back to back."""
    batch = [next(payloads) for _ in range(n_frames)]
    # All threads: DDS works in threads of its own.
    cpu_before_s = time.process_time()
    for payload in batch:
        process(payload)
    return 1e3 * (time.process_time() - cpu_before_s) / n_frames


def measure(args):
    """Print what ``args`` choose, once the readers have subscribed."""
    cycle = Cycle(args.actors, RATE_HZ)
    rclpy.init()
    process, count_subscriptions = PATHS[args.path](cycle)
    numbers = itertools.count(1)
    payloads = (cycle.payload(next(numbers)) for _ in iter(int, 1))
    for _ in range(N_WARM):
        process(next(payloads))
    print('ready', flush=True)
    await_readers(count_subscriptions, args.n_readers, process, payloads)
    gc.collect()
    gc.freeze()
    if args.rate:
        print(json.dumps({'times_ms': paced_ms(process, payloads, args)}), flush=True)
    else:
        for _ in sys.stdin:
            print(json.dumps({'cpu_ms': batch_ms(process, payloads, args.frames)}), flush=True)
    rclpy.try_shutdown()


def main():
    """Measure one path; each result is a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('path', choices=PATHS)
    parser.add_argument('--actors', type=int, required=True)
    parser.add_argument('--frames', type=int, required=True, help='of a batch')
    parser.add_argument('--rate', type=float, default=0.0, help='Hz; 0: back to back')
    parser.add_argument('--n-readers', type=int, default=0, help='wait for so many subscriptions')
    measure(parser.parse_args())


if __name__ == '__main__':
    main()

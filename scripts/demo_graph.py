# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The ROS graph as the recorder of the demonstration sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import os
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.topic_or_service_is_hidden import topic_or_service_is_hidden

from state_sensor_ros.ros.topic_sink import message_class
from state_sensor_ros.topics.topic import ORDINARY, Qos, Topic

SPIN_S, DEPTH = 0.05, 100


class Graph:
    """Topics with publishers, and subscriptions to them."""

    def __init__(self) -> None:
        self._node = rclpy.create_node(f'state_sensor_look_{os.getpid()}')
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)

    def spin(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Receive for some seconds, or until a condition is true."""
        end_s = time.monotonic() + seconds
        while not until() and time.monotonic() < end_s:
            self._executor.spin_once(SPIN_S)

    def topics(self) -> list[str]:
        """Return the names of topics that have a publisher and are not hidden."""
        return [topic for topic, _ in self._node.get_topic_names_and_types()
                if self._node.count_publishers(topic) and not topic_or_service_is_hidden(topic)]

    def offer(self, name: str) -> Topic | None:
        """Return a topic with the QoS of its publisher; None without one."""
        for info in self._node.get_publishers_info_by_topic(name):
            profile = info.qos_profile
            return Topic(name, info.topic_type, Qos(
                profile.reliability == ReliabilityPolicy.RELIABLE,
                profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
                # Some middlewares do not report it.
                profile.depth or ORDINARY.depth))
        return None

    def subscribe(self, topic: str, type_name: str, receive: Callable[..., None], *,
                  raw: bool = False) -> None:
        """Receive the messages of a topic with the QoS of its publisher; ``raw``: serialized."""
        profile, info = QoSProfile(depth=DEPTH), self._node.get_publishers_info_by_topic(topic)
        if info:
            profile.reliability = info[0].qos_profile.reliability
            profile.durability = info[0].qos_profile.durability
        self._node.create_subscription(message_class(type_name), topic, receive, profile, raw=raw)


@contextmanager
def looking() -> Iterator[Graph]:
    """Join the ROS graph while the block runs."""
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield Graph()
    finally:
        rclpy.try_shutdown()

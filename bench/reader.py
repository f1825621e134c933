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
Subscribe to a publisher's topics without deserializing: the cheapest reader.

It ends at a signal, or at the end of its standard input, when the benchmark has ended.
"""

import select
import signal
import sys
import time

from nav_msgs.msg import Odometry
import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from state_sensor_ros.msg import ControlStateArray, StateFrame
from state_sensor_ros.ros.sink import message_class

SCAN_S = 0.5


class Reader(Node):
    """Subscriber of the topics of the node ``owner``."""

    def __init__(self, owner):
        super().__init__('reader')
        self._owner = owner
        self._subscribed = set()

    def subscribe(self, topic, type_):
        """Subscribe once."""
        if topic not in self._subscribed:
            self._subscribed.add(topic)
            self.create_subscription(type_, topic, lambda data: None, 10, raw=True)

    def subscribe_like_rviz(self):
        """Subscribe to the topics of a display of the scene."""
        self.subscribe('/tf', TFMessage)
        self.subscribe(f'/{self._owner}/markers', MarkerArray)
        self.subscribe(f'/{self._owner}/ego/odometry', Odometry)

    def subscribe_to_arrays(self):
        """Subscribe to the poses and the lanes of all actors, each in one message."""
        self.subscribe('/tf', TFMessage)
        self.subscribe(f'/{self._owner}/control_states', ControlStateArray)

    def subscribe_to_scene(self):
        """Subscribe to the topics that show and hold all of a frame."""
        self.subscribe('/tf', TFMessage)
        self.subscribe(f'/{self._owner}/markers', MarkerArray)
        self.subscribe(f'/{self._owner}/frame', StateFrame)

    def subscribe_to_all(self):
        """Subscribe to all topics that exist."""
        for topic, types in self.get_topic_names_and_types():
            if topic == '/tf' or topic.startswith(f'/{self._owner}/'):
                self.subscribe(topic, message_class(types[0]))


def main():
    """
    Read some topics.

    ``rviz``: /tf, markers, one odometry; ``arrays``: /tf, lanes; ``scene``: /tf, markers, ~/frame;
    or ``all`` topics.
    """
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    kind, owner = sys.argv[1:]
    reader = Reader(owner)
    if kind == 'rviz':
        reader.subscribe_like_rviz()
    if kind == 'scene':
        reader.subscribe_to_scene()
    if kind == 'arrays':
        reader.subscribe_to_arrays()
    next_scan_s = 0.0
    while not ended and not select.select([sys.stdin], [], [], 0.0)[0]:
        if kind == 'all' and time.monotonic() > next_scan_s:
            reader.subscribe_to_all()
            next_scan_s = time.monotonic() + SCAN_S
        rclpy.spin_once(reader, timeout_sec=0.1)
    reader.destroy_node()
    rclpy.try_shutdown()


if __name__ == '__main__':
    main()

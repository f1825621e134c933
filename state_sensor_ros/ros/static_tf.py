# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The transforms on /tf_static, sent by tf2_ros if it is installed."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from tf2_msgs.msg import TFMessage


class StaticFrame:
    """
    Publish static transforms once, latched.

    :param node: owner of the publisher.
    :param data: serialised TFMessage.
    """

    def __init__(self, node: Node, data: bytes) -> None:
        self._node = node
        try:
            from tf2_ros import StaticTransformBroadcaster
        except ImportError:  # tf2_ros is part of a full ROS 2 only; the message is the same
            latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self._publisher: Any = node.create_publisher(TFMessage, '/tf_static', latched)
            self._publisher.publish(data)
        else:
            broadcaster = StaticTransformBroadcaster(node)
            broadcaster.sendTransform(deserialize_message(data, TFMessage).transforms)
            self._publisher = broadcaster.pub_tf

    def close(self) -> None:
        """Destroy the publisher: later subscribers receive no transform."""
        self._node.destroy_publisher(self._publisher)

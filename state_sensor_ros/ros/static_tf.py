# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The transforms on /tf_static, sent by tf2_ros where it is installed."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from tf2_msgs.msg import TFMessage


class StaticFrame:
    """
    Publish static transforms once, latched.

    :param node: owns the publisher.
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

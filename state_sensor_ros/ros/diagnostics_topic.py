# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The topic /diagnostics: statuses as messages."""

from __future__ import annotations

from collections.abc import Mapping

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from state_sensor_ros.ros.diagnostics import Status


class DiagnosticsTopic:
    """
    Publish the statuses of a node.

    :param node: node whose name each status begins with.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)

    def publish(self, hardware_id: str, statuses: Mapping[str, Status]) -> None:
        """
        Publish statuses in one message.

        :param hardware_id: address of the simulator, or path of the recording.
        :param statuses: statuses by the last part of their names.
        """
        array = DiagnosticArray()
        array.header.stamp = self._node.get_clock().now().to_msg()
        node_name = self._node.get_fully_qualified_name().lstrip('/')
        array.status = [DiagnosticStatus(
            level=bytes([status.level]), name=f'{node_name}: {name}', message=status.message,
            hardware_id=hardware_id,
            values=[KeyValue(key=key, value=value) for key, value in status.values])
            for name, status in statuses.items()]
        self._publisher.publish(array)

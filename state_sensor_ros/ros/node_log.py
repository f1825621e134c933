# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What the node reports about itself: faults in its log, and the statuses of /diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
import struct
import time
import traceback

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.logging import LoggingSeverity
from rclpy.node import Node

from state_sensor_ros.cdr.cdr_writer import CdrWriter, COUNT, ENCAPSULATION
from state_sensor_ros.errors import one_line
from state_sensor_ros.ros.diagnostics import Status
from state_sensor_ros.ros.topic_sink import await_delivery

# Shortest period of log lines of one kind.
_PERIOD_S = 1.0
# How long subscribers have for the last status, s.
_DELIVERY_S = 0.2


class NodeLog:
    """
    Throttled lines of the log of a node; from any thread.

    :param logger: logger of the node.
    """

    def __init__(self, logger: RcutilsLogger) -> None:
        self._logger = logger
        self._logged_ns: dict[str, int] = {}

    def warn(self, kind: str, text: str) -> None:
        """
        Log a fault of the stream.

        :param kind: kind of the fault; it is logged at most once per second.
        :param text: one line.
        """
        if self._may_log(kind):
            self._logger.log(one_line(text), LoggingSeverity.WARN)

    def defect(self, error: Exception) -> None:
        """
        Log an unexpected exception with its traceback.

        :param error: the exception.
        """
        if self._may_log('defect'):
            lines = ''.join(traceback.format_exception(error)).splitlines()
            self._logger.error('\n'.join((
                'internal error, please report it', *map(one_line, lines))))

    def _may_log(self, kind: str) -> bool:
        now_ns = time.monotonic_ns()
        if now_ns - self._logged_ns.get(kind, -10**18) < _PERIOD_S * 1e9:
            return False
        self._logged_ns[kind] = now_ns
        return True


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
        stamp = self._node.get_clock().now().to_msg()
        node_name = self._node.get_fully_qualified_name().lstrip('/')
        # Messages of rclpy take a tenth of the CPU of a node without subscribers.
        writer = CdrWriter(0)
        writer.pack(4, struct.pack('<iI', stamp.sec, stamp.nanosec))
        writer.pack_text('')
        writer.pack(4, COUNT.pack(len(statuses)))
        for name, status in statuses.items():
            writer.pack(1, bytes([status.level]))
            for text in (f'{node_name}: {name}', status.message, hardware_id):
                writer.pack_text(text)
            writer.pack(4, COUNT.pack(len(status.values)))
            for pair in status.values:
                for text in pair:
                    writer.pack_text(text)
        self._publisher.publish(ENCAPSULATION + bytes(writer.data))

    def flush(self) -> None:
        """Wait until subscribers have the last message, which is lost with the node."""
        await_delivery([self._publisher], _DELIVERY_S)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The node of the package within a program that measures it."""

from contextlib import contextmanager
import sys

import rclpy
from rclpy.executors import SingleThreadedExecutor

from state_sensor_ros.ros.node import StateSensorNode


@contextmanager
def configured_node(parameters):
    """Yield a node with parameters `NAME:=VALUE`, configured but not active, and its executor."""
    rclpy.init(args=[sys.argv[0], '--ros-args', *[
        part for parameter in parameters for part in ('-p', parameter)]])
    node = StateSensorNode()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    node.trigger_configure()
    yield node, executor
    node.trigger_shutdown()
    executor.shutdown(0.0)
    node.destroy_node()
    rclpy.try_shutdown()

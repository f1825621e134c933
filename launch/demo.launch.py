# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The stand-in simulator with endless synthetic traffic, the driver on it, and RViz."""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import ExecutableInPackage, FindPackageShare

PACKAGE = 'state_sensor_ros'


def generate_launch_description() -> LaunchDescription:
    """Return the processes; all of them end with the simulator, and with the driver."""
    port = LaunchConfiguration('port')
    share = FindPackageShare(PACKAGE)
    return LaunchDescription([
        DeclareLaunchArgument('rviz', default_value='true', choices=['true', 'false'],
                              description='start RViz'),
        DeclareLaunchArgument('port', default_value='8700',
                              description='sensor port of the simulator, on this machine only'),
        ExecuteProcess(
            cmd=[ExecutableInPackage(package=PACKAGE, executable='state_sensor'),
                 'simulate', '--port', port],
            name='simulator', output='both', on_exit=Shutdown(reason='the simulator has ended')),
        IncludeLaunchDescription(
            PathJoinSubstitution([share, 'launch', 'state_sensor.launch.py']),
            launch_arguments={
                'host': '127.0.0.1', 'port': port, 'rviz': LaunchConfiguration('rviz'),
                'params_file': PathJoinSubstitution([share, 'config', 'demo.yaml'])}.items()),
        RegisterEventHandler(OnProcessExit(on_exit=_end_with_driver)),
    ])


def _end_with_driver(event: ProcessExited, context: LaunchContext) -> Shutdown | None:
    is_driver = event.process_name.startswith('state_sensor_node')
    return Shutdown(reason='the driver has ended') if is_driver else None

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A simulator with endless traffic, the driver on it, and RViz."""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    RegisterEventHandler,
    Shutdown,
)
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution, PythonExpression
from launch_ros.substitutions import ExecutableInPackage, FindPackageShare

PACKAGE = 'state_sensor_ros'


def generate_launch_description() -> LaunchDescription:
    """Return the processes; all of them end with the simulator, and with the driver."""
    port, simulator = LaunchConfiguration('port'), LaunchConfiguration('simulator')
    share = FindPackageShare(PACKAGE)
    return LaunchDescription([
        DeclareLaunchArgument('rviz', default_value='true', choices=['true', 'false'],
                              description='start RViz'),
        DeclareLaunchArgument('port', default_value='8700',
                              description='sensor port of the stand-in, on this machine only'),
        DeclareLaunchArgument('simulator', default_value='monodrive',
                              choices=['monodrive', 'carla', 'sumo'],
                              description='stand-in of monoDrive or CARLA, or SUMO itself'),
        ExecuteProcess(
            # The driver itself starts SUMO.
            condition=IfCondition(PythonExpression(["'", simulator, "' != 'sumo'"])),
            cmd=[ExecutableInPackage(package=PACKAGE, executable='state_sensor'),
                 'simulate', '--source', simulator, '--port', port],
            name='simulator', output='both', on_exit=Shutdown(reason='the simulator has ended')),
        IncludeLaunchDescription(
            PathJoinSubstitution([share, 'launch', 'state_sensor.launch.py']),
            launch_arguments={
                'host': _chosen(simulator, 'sumo', '', '127.0.0.1'),
                'port': _chosen(simulator, 'sumo', '', port), 'rviz': LaunchConfiguration('rviz'),
                'params_file': PathJoinSubstitution([share, 'config', _chosen(
                    simulator, 'monodrive', 'demo.yaml', ['demo_', simulator, '.yaml'])]),
            }.items()),
        RegisterEventHandler(OnProcessExit(on_exit=_end_with_driver)),
    ])


def _chosen(simulator: LaunchConfiguration, name: str, then: str,
            otherwise: str | LaunchConfiguration | list[str | LaunchConfiguration],
            ) -> PythonExpression:
    """Return a value that depends on whether the simulator has a name."""
    others = otherwise if isinstance(otherwise, list) else [otherwise]
    return PythonExpression([f"'{then}' if '", simulator, f"' == '{name}' else '", *others, "'"])


def _end_with_driver(event: ProcessExited, context: LaunchContext) -> Shutdown | None:
    is_driver = event.process_name.startswith('state_sensor_node')
    return Shutdown(reason='the driver has ended') if is_driver else None

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A simulator with endless traffic, the driver on it, and RViz; the ego driven on request."""

from __future__ import annotations

import sys

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
from launch_ros.actions import SetParameter
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
                              description='port of the mock simulator, on this machine only'),
        DeclareLaunchArgument('simulator', default_value='monodrive',
                              choices=['monodrive', 'sumo'],
                              description='mock of monoDrive, or SUMO itself'),
        DeclareLaunchArgument('drive', default_value='false', choices=['true', 'false'],
                              description='drive the ego along a recorded line'),
        DeclareLaunchArgument(
            'params_file', default_value=PathJoinSubstitution([share, 'config', _chosen(
                simulator, 'monodrive', 'demo.yaml', ['demo_', simulator, '.yaml'])]),
            description='YAML file of parameters in place of that of the demo'),
        # The driver itself starts SUMO.
        ExecuteProcess(
            condition=IfCondition(_is_chosen('monodrive')),
            cmd=[ExecutableInPackage(package=PACKAGE, executable='state_sensor'), 'simulate',
                 '--port', port, '--control-port', _sum(port, 1)],
            name='simulator', output='both',
            on_exit=Shutdown(reason='the simulator has ended')),
        SetParameter('map_file', PathJoinSubstitution([share, 'resource', 'lines',
                                                       'monodrive.xodr']),
                     condition=IfCondition(_is_chosen('monodrive'))),
        *_driven(port),
        IncludeLaunchDescription(
            PathJoinSubstitution([share, 'launch', 'state_sensor.launch.py']),
            launch_arguments={
                'port': _chosen(simulator, 'sumo', '', port), 'rviz': LaunchConfiguration('rviz'),
                'params_file': LaunchConfiguration('params_file')}.items()),
        RegisterEventHandler(OnProcessExit(on_exit=_end_with_driver)),
    ])


def _driven(port: LaunchConfiguration) -> list[SetParameter | ExecuteProcess]:
    """Return the parameters and the program that drive the ego, if that is chosen."""
    share = FindPackageShare(PACKAGE)
    is_chosen = LaunchConfiguration('drive')
    return [
        SetParameter('control_input', 'twist', condition=IfCondition(is_chosen)),
        SetParameter('control_port', _sum(port, 1),
                     condition=IfCondition(_is_chosen('monodrive', is_chosen))),
        ExecuteProcess(
            condition=IfCondition(is_chosen), name='line_follower', output='both',
            cmd=[sys.executable, PathJoinSubstitution([share, 'examples', 'follow_line.py']),
                 PathJoinSubstitution([share, 'resource', 'lines', PythonExpression(
                     ["'", LaunchConfiguration('simulator'), ".json.gz'"])])])]


def _is_chosen(name: str, further: LaunchConfiguration | None = None) -> PythonExpression:
    """Return whether a simulator is chosen, and a further argument is true."""
    more = [] if further is None else [" and '", further, "' == 'true'"]
    return PythonExpression(
        ["'", LaunchConfiguration('simulator'), f"' == '{name}'", *more])


def _sum(port: LaunchConfiguration, number: int) -> PythonExpression:
    return PythonExpression([port, f' + {number}'])


def _chosen(simulator: LaunchConfiguration, name: str, then: str,
            otherwise: str | LaunchConfiguration | list[str | LaunchConfiguration],
            ) -> PythonExpression:
    """Return a value that depends on whether the simulator has a name."""
    others = otherwise if isinstance(otherwise, list) else [otherwise]
    return PythonExpression([f"'{then}' if '", simulator, f"' == '{name}' else '", *others, "'"])


def _end_with_driver(event: ProcessExited, context: LaunchContext) -> Shutdown | None:
    is_driver = event.process_name.startswith('state_sensor_node')
    return Shutdown(reason='the driver has ended') if is_driver else None

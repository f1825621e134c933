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

from pathlib import Path
import sys

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import SetParameter
from launch_ros.substitutions import ExecutableInPackage, FindPackageShare

from state_sensor_ros.settings import CORE

PACKAGE = 'state_sensor_ros'


def generate_launch_description() -> LaunchDescription:
    """Return the processes; all of them end with the simulator, and with the driver."""
    return LaunchDescription([
        DeclareLaunchArgument('rviz', default_value='true', choices=['true', 'false'],
                              description='Start RViz, with boxes and names.'),
        DeclareLaunchArgument('port', default_value='8700',
                              description='Port of the mock simulator, on this machine only.'),
        DeclareLaunchArgument('simulator', default_value='monodrive',
                              choices=['monodrive', 'sumo'],
                              description='Mock of monoDrive, or SUMO itself.'),
        DeclareLaunchArgument('drive', default_value='false', choices=['true', 'false'],
                              description='Drive the ego along a recorded line.'),
        DeclareLaunchArgument('params_file', default_value='',
                              description='YAML file of parameters. Left out: that of the demo.'),
        OpaqueFunction(function=_simulator),
        # The other arguments are passed on as they are.
        IncludeLaunchDescription(
            PathJoinSubstitution([FindPackageShare(PACKAGE), 'launch', 'state_sensor.launch.py']),
            launch_arguments=[(name, LaunchConfiguration(name))
                              for name in ('port', 'rviz', 'params_file')]),
        RegisterEventHandler(OnProcessExit(on_exit=_end_with_driver)),
    ])


def _simulator(context: LaunchContext) -> list[SetParameter | ExecuteProcess]:
    """Return the simulator, what drives the ego, and parameters of the driver, as chosen."""
    given = context.launch_configurations
    share = Path(FindPackageShare(PACKAGE).perform(context))
    name, is_driven = given['simulator'], given['drive'] == 'true'
    file = 'demo.yaml' if name == 'monodrive' else f'demo_{name}.yaml'
    given['params_file'] = given['params_file'] or str(share / 'config' / file)
    actions: list[SetParameter | ExecuteProcess] = []
    if name == 'monodrive':
        control_port = int(CORE.find('port').parsed(given['port'])) + 1
        actions += [
            ExecuteProcess(
                cmd=[ExecutableInPackage(package=PACKAGE, executable='state_sensor'), 'simulate',
                     '--port', given['port'], '--control-port', str(control_port)],
                name='simulator', output='both',
                on_exit=Shutdown(reason='the simulator has ended')),
            SetParameter('map_file', str(share / 'resource' / 'lines' / 'monodrive.xodr'))]
        if is_driven:
            actions.append(SetParameter('control_port', control_port))
    else:
        # The driver itself starts it.
        given['port'] = ''
    if is_driven:
        actions += [
            SetParameter('control_input', 'twist'),
            ExecuteProcess(cmd=[sys.executable, str(share / 'examples' / 'follow_line.py'),
                                str(share / 'resource' / 'lines' / f'{name}.json.gz')],
                           name='line_follower', output='both')]
    return actions


def _end_with_driver(event: ProcessExited, context: LaunchContext) -> Shutdown | None:
    is_driver = event.process_name.startswith('state_sensor_node')
    return Shutdown(reason='the driver has ended') if is_driver else None

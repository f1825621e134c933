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
The driver, and optionally RViz and a recorder.

A launch argument without a value leaves the default of the node's parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
import re
from typing import Any

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch.logging import launch_config
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare
from launch_ros.utilities import make_namespace_absolute, prefix_namespace
import yaml

from state_sensor_ros.commands.parameters import parameters_of
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.settings import DEFAULTS, parse_settings
from state_sensor_ros.texts import one_line

PACKAGE = 'state_sensor_ros'
YES_NO = ['true', 'false']
# The frame that the view of state_sensor.rviz follows.
FOLLOWED = 'base_link'

# What `autoware:=true` sets; `outputs` is added to those of a file.
AUTOWARE = {'ego_frame': FOLLOWED, 'tf': 'ego', 'publish_clock': True}
STACK_TOPICS = '/perception/.*|/localization/.*|/vehicle/.*'

# Arguments that become parameters of the node if they have a value.
PARAMETERS = {'host': str, 'port': int, 'config_file': str, 'use_sim_time': bool}

ARGUMENTS = (
    DeclareLaunchArgument('host', default_value='', description='host of the simulator'),
    DeclareLaunchArgument('port', default_value='', description='sensor port on that host'),
    DeclareLaunchArgument('config_file', default_value='',
                          description="the simulator's sensor configuration file"),
    DeclareLaunchArgument(
        'params_file', default_value='',
        description='YAML file of parameters; other arguments take precedence over it'),
    DeclareLaunchArgument('namespace', default_value='', description='namespace of the node'),
    DeclareLaunchArgument('name', default_value='state_sensor', description='name of the node'),
    DeclareLaunchArgument('use_sim_time', default_value='', choices=['', *YES_NO],
                          description='true: all nodes take the time from /clock, which another '
                                      'program publishes; default: RViz, from the driver'),
    DeclareLaunchArgument('rviz', default_value='false', choices=YES_NO,
                          description='start RViz, with boxes and names'),
    DeclareLaunchArgument(
        'autoware', default_value='false', choices=YES_NO,
        description='publish what Autoware reads: objects, the ego at base_link, /clock'),
    DeclareLaunchArgument(
        'record', default_value='',
        description='folder of an MCAP bag to record all topics in; true: named by the time'),
    DeclareLaunchArgument('log_level', default_value='info',
                          choices=['debug', 'info', 'warn', 'error', 'fatal'],
                          description='lowest level of the lines that the driver logs'),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and the processes that depend on their values."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=_processes)])


def _processes(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    given = {argument.name: LaunchConfiguration(argument.name).perform(context)
             for argument in ARGUMENTS}
    namespace = prefix_namespace(
        context.launch_configurations.get('ros_namespace'), given['namespace'] or None)
    node = f'{make_namespace_absolute(namespace or "/").rstrip("/")}/{given["name"]}'
    in_file = _parameters_in(given['params_file'], node)
    parameters = _parameters(given, in_file)
    # The driver last: if RViz is not installed, the launch fails before it starts the driver.
    processes: list[LaunchDescriptionEntity] = []
    if given['rviz'] == 'true':
        processes.append(_rviz(context, given, node, {**in_file, **parameters}))
    if given['record'] not in ('', 'false'):
        processes.append(_recorder(given))
    # They show and record what the driver publishes: all end with it.
    ends_all = Shutdown(reason='the driver has ended') if processes else None
    return [*processes, _driver(given, node, parameters, ends_all)]


def _parameters_in(file: str, node: str) -> dict[str, Any]:
    """
    Return the parameters that a file gives to a node.

    :param file: path of a YAML file of parameters, ``''`` for none.
    :param node: full name.
    :raises ConfigError: when there is no such file, or it is no YAML.
    """
    if not file:
        return {}
    if not Path(file).is_file():
        raise ConfigError('params_file', f'there is no file {file}')
    try:
        return parameters_of(yaml.safe_load(Path(file).read_bytes()), node) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f'params_file {file}', one_line(str(error)), 'YAML') from error


def _parameters(given: Mapping[str, str], in_file: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the parameters of the driver that precede those of the file.

    :param given: value of each launch argument.
    :param in_file: parameters of the file.
    :raises ConfigError: when an argument cannot be the value of its parameter.
    """
    found: dict[str, Any] = {}
    for name, type_ in PARAMETERS.items():
        if given[name]:
            text = given[name]
            is_number = type_ is int and re.fullmatch('[+-]?[0-9]+', text)
            found[name] = int(text) if is_number else text == 'true' if type_ is bool else text
    parse_settings({name: value for name, value in found.items() if name != 'use_sim_time'})
    if given['autoware'] == 'true':
        others = in_file.get('outputs') or []
        if not isinstance(others, list):
            raise ConfigError('params_file', f'outputs: {others!r}', 'a list of names')
        found |= {**AUTOWARE, 'outputs': ['autoware', *(
            output for output in others if output not in ('', 'autoware'))]}
    if given['rviz'] == 'true':
        found['debug_drawing'] = True
        # The view follows the ego, whose frame must exist and have a known name.
        if not ({**in_file, **found}).get('ego_frame'):
            found['ego_frame'] = f'{in_file.get("frame_prefix", "")}{FOLLOWED}'
        if ({**in_file, **found}).get('tf') == 'none':
            found['tf'] = 'ego'
        # Only a clock that jumps back tells tf2 in RViz that the simulator has begun again. With
        # use_sim_time, another program publishes the clock.
        if not given['use_sim_time']:
            found.setdefault('publish_clock', in_file.get('publish_clock', True))
    return found


def _driver(given: Mapping[str, str], node: str, parameters: Mapping[str, Any],
            on_exit: Shutdown | None) -> Node:
    files: list[object] = [given['params_file']] if given['params_file'] else []
    # One dictionary after the file: the wildcards of the file would override the first of two.
    overrides = {name: value if isinstance(value, list) else
                 ParameterValue(value, value_type=type(value))
                 for name, value in parameters.items()}
    # Of this node alone: without its name, the level is also that of the libraries of ROS.
    logger = node.strip('/').replace('/', '.')
    # The node configures and activates itself by its parameter autostart.
    return Node(
        package=PACKAGE, executable='state_sensor_node', name=given['name'],
        namespace=given['namespace'], parameters=[*files, overrides] if overrides else files,
        ros_arguments=['--log-level', f'{logger}:={given["log_level"]}'], output='both',
        emulate_tty=True, on_exit=on_exit)


def _rviz(context: LaunchContext, given: Mapping[str, str], node: str,
          parameters: Mapping[str, Any]) -> Node:
    """
    Return RViz with the shipped configuration, in the frames of the driver.

    :param parameters: of the driver, those that are not defaults; with its ``ego_frame``.
    """
    config = Path(FindPackageShare(PACKAGE).perform(context), 'config', 'state_sensor.rviz')
    if parameters['ego_frame'] != FOLLOWED:
        text = config.read_text(encoding='utf-8').replace(
            f'Target Frame: {FOLLOWED}', f'Target Frame: {parameters["ego_frame"]}')
        config = Path(launch_config.log_dir, f'{node.strip("/").replace("/", ".")}.rviz')
        config.write_text(text, encoding='utf-8')
    # Relative targets are resolved in the namespace of this node.
    return Node(
        package='rviz2', executable='rviz2', namespace=given['namespace'],
        arguments=['-d', str(config),
                   '-f', parameters.get('global_frame', DEFAULTS.global_frame)],
        parameters=[{'use_sim_time': given['use_sim_time'] == 'true'
                     or bool(parameters.get('publish_clock'))}],
        remappings=[(f'/state_sensor/{topic}', f'{given["name"]}/{topic}')
                    for topic in ('markers', 'map', 'ego/odometry')], output='both')


def _recorder(given: Mapping[str, str]) -> ExecuteProcess:
    if given['record'] != 'true' and Path(given['record']).exists():
        raise ConfigError('record', f'{given["record"]}, which exists', 'a new folder')
    # The namespace may begin with a slash or not, and may be nested in another one.
    node = f'(/.*)?/?{given["namespace"].rstrip("/")}/{given["name"]}/.*'
    if given['autoware'] == 'true':
        node = f'{STACK_TOPICS}|{node}'
    command = ['ros2', 'bag', 'record', '--storage', 'mcap',
               '--storage-preset-profile', 'zstd_fast',
               '--regex', f'^(/tf|/tf_static|/clock|/diagnostics|{node})$']
    if given['record'] != 'true':
        command += ['--output', given['record']]
    if given['use_sim_time'] == 'true':
        command.append('--use-sim-time')
    return ExecuteProcess(cmd=command, output='both')

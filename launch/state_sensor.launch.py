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
import gc
import os
from pathlib import Path
from typing import Any

from ament_index_python import get_packages_with_prefixes
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    OpaqueCoroutine,
    OpaqueFunction,
    Shutdown,
)
from launch.logging import get_logger, launch_config
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare
from launch_ros.utilities import make_namespace_absolute, prefix_namespace
import yaml

from state_sensor_ros.commands.parameters import parameters_of, refuse_aliases
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.parameters import as_yaml, near_names
from state_sensor_ros.settings import CORE, DEFAULTS
from state_sensor_ros.texts import one_line

PACKAGE = 'state_sensor_ros'
YES_NO = ['true', 'false']
# The frame that the view of state_sensor.rviz follows.
FOLLOWED = 'base_link'

# What `autoware:=true` sets; `outputs` is added to those that are given.
AUTOWARE = {'ego_frame': FOLLOWED, 'tf': 'ego'}
STACK_TOPICS = '/perception/.*|/localization/.*|/vehicle/.*'

# Arguments that become parameters of the node if they have a value.
PARAMETERS = ('source', 'host', 'port', 'control_port', 'config_file', 'trajectory_file',
              'desired_tags', 'undesired_tags', 'include_obb', 'debug_drawing', 'global_frame',
              'frame_prefix', 'ego_frame', 'publish_clock', 'outputs')
# Arguments that launch itself reads, declared or not.
OF_LAUNCH = {'launch-prefix', 'launch-prefix-filter', 'emulate_tty', 'sigterm_timeout',
             'sigkill_timeout'}
# By argument: the packages that the node runs without.
PACKAGES = {'rviz': ('rviz2',), 'record': ('ros2bag', 'rosbag2_storage_mcap')}


def _of_parameter(name: str) -> DeclareLaunchArgument:
    found = CORE.find(name)
    text, default = found.rule.help, found.default
    if found.rule.choices:
        text += f' One of {", ".join(found.rule.choices)}' + ('.' if found.item is None else
                                                              ', or several: a,b.')
    elif found.item is not None:
        text += ' Several: a,b.'
    without = 'that of the source' if name == 'port' else as_yaml(default) if default else ''
    text += f' Left out: as in params_file{without and ", or " + without}.'
    return DeclareLaunchArgument(name, default_value='', description=text,
                                 choices=['', *YES_NO] if found.type is bool else None)


ARGUMENTS = (
    *map(_of_parameter, PARAMETERS),
    DeclareLaunchArgument(
        'params_file', default_value='',
        description='YAML file of parameters, these and others; arguments take precedence.'),
    DeclareLaunchArgument('namespace', default_value='', description='Namespace of the node.'),
    DeclareLaunchArgument('name', default_value='state_sensor', description='Name of the node.'),
    DeclareLaunchArgument(
        'use_sim_time', default_value='', choices=['', *YES_NO],
        description='Take the time from /clock. Left out: RViz does if the driver publishes it.'),
    DeclareLaunchArgument('rviz', default_value='false', choices=YES_NO,
                          description='Start RViz, with boxes and names.'),
    DeclareLaunchArgument(
        'autoware', default_value='false', choices=YES_NO,
        description='Publish all that planning and control of Autoware wait for.'),
    DeclareLaunchArgument(
        'record', default_value='',
        description='Folder of an MCAP bag to record all topics in; true: named by the time.'),
    DeclareLaunchArgument('log_level', default_value='info',
                          choices=['debug', 'info', 'warn', 'error', 'fatal'],
                          description='Lowest level of the lines that the driver logs.'),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and the processes that depend on their values."""
    return LaunchDescription([
        *ARGUMENTS, OpaqueFunction(function=_check_packages), OpaqueFunction(function=_processes),
        OpaqueCoroutine(coroutine=_name_undeclared)])


async def _name_undeclared(context: LaunchContext) -> None:
    """Warn of arguments that no launch file declares: launch drops them in silence."""
    # All files are loaded before this runs. launch has no list of what they declare.
    declared = {each.name for each in gc.get_objects()
                if issubclass(type(each), DeclareLaunchArgument)} | OF_LAUNCH
    unknown = [name for name, mark, _ in (word.partition(':=') for word in context.argv)
               if mark and name not in declared]
    if unknown:
        get_logger(PACKAGE).warning(
            f'no launch file declares {", ".join(unknown)}: without effect; parameters that are '
            f'no arguments go into params_file{near_names(unknown, declared)}')


def _check_packages(context: LaunchContext) -> None:
    """Refuse an argument for which packages are missing, before anything starts."""
    installed = get_packages_with_prefixes()
    for name, packages in PACKAGES.items():
        value = context.launch_configurations[name]
        missing = [package for package in packages if package not in installed]
        if missing and value not in ('', 'false'):
            distribution = os.environ.get('ROS_DISTRO', '$ROS_DISTRO')
            names = [f'ros-{distribution}-{each.replace("_", "-")}' for each in missing]
            raise ConfigError(name, f'{value} without the package {" and ".join(missing)}',
                              f'apt install {" ".join(names)}, or {name}:=false')


def _processes(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    given = {argument.name: LaunchConfiguration(argument.name).perform(context)
             for argument in ARGUMENTS}
    namespace = prefix_namespace(
        context.launch_configurations.get('ros_namespace'), given['namespace'] or None)
    node = f'{make_namespace_absolute(namespace or "/").rstrip("/")}/{given["name"]}'
    in_file = _parameters_in(given['params_file'], node)
    parameters = _parameters(given, in_file)
    all_parameters = {**in_file, **parameters}
    processes: list[LaunchDescriptionEntity] = []
    if given['rviz'] == 'true':
        processes.append(_rviz(context, given, node, all_parameters))
    if given['record'] not in ('', 'false'):
        processes.append(_recorder(given, all_parameters))
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
        text = Path(file).read_bytes()
        refuse_aliases(yaml.parse(text))
        content = yaml.safe_load(text)
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f'params_file {file}', one_line(str(error)), 'YAML') from error
    return parameters_of(content, node) or {}


def _parameters(given: Mapping[str, str], in_file: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the parameters of the driver that precede those of the file.

    :param given: value of each launch argument.
    :param in_file: parameters of the file.
    :raises ConfigError: when an argument cannot be the value of its parameter.
    """
    found: dict[str, Any] = {}
    for name in PARAMETERS:
        if text := given[name]:
            is_list = CORE.find(name).item is not None
            value = CORE.find(name).parsed(f'[{text.strip("[]")}]' if is_list else text)
            found[name] = list(value) if isinstance(value, tuple) else value
    if given['use_sim_time']:
        found['use_sim_time'] = given['use_sim_time'] == 'true'
    if given['autoware'] == 'true':
        others = {**in_file, **found}.get('outputs') or []
        if not isinstance(others, list):
            raise ConfigError('params_file', f'outputs: {others!r}', 'a list of names')
        found = {**AUTOWARE, **found, 'outputs': ['autoware', *(
            output for output in others if output not in ('', 'autoware'))]}
    if given['rviz'] == 'true':
        found.setdefault('debug_drawing', True)
        # The view follows the ego, whose frame must exist and have a known name.
        if not ({**in_file, **found}).get('ego_frame'):
            found['ego_frame'] = f'{({**in_file, **found}).get("frame_prefix", "")}{FOLLOWED}'
        if ({**in_file, **found}).get('tf') == 'none':
            found['tf'] = 'ego'
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
    # Only a clock that jumps back tells tf2 in RViz that the simulator has begun again.
    has_clock = parameters.get('publish_clock', DEFAULTS.publish_clock) \
        and parameters.get('stamp_source', DEFAULTS.stamp_source) == 'game_time'
    is_simulated = given['use_sim_time'] == 'true' or (not given['use_sim_time'] and has_clock)
    # Relative targets are resolved in the namespace of this node.
    return Node(
        package='rviz2', executable='rviz2', namespace=given['namespace'],
        arguments=['-d', str(config),
                   '-f', parameters.get('global_frame', DEFAULTS.global_frame)],
        parameters=[{'use_sim_time': is_simulated}],
        remappings=[(f'/state_sensor/{topic}', f'{given["name"]}/{topic}')
                    for topic in ('markers', 'map', 'ego/odometry')], output='both')


def _recorder(given: Mapping[str, str], parameters: Mapping[str, Any]) -> ExecuteProcess:
    if given['record'] != 'true' and Path(given['record']).exists():
        raise ConfigError('record', f'{given["record"]}, which exists', 'a new folder')
    # The namespace may begin with a slash or not, and may be nested in another one.
    node = f'(/.*)?/?{given["namespace"].rstrip("/")}/{given["name"]}/.*'
    if 'autoware' in (parameters.get('outputs') or ()):
        node = f'{STACK_TOPICS}|{node}'
    command = ['ros2', 'bag', 'record', '--storage', 'mcap',
               '--storage-preset-profile', 'zstd_fast',
               '--regex', f'^(/tf|/tf_static|/clock|/diagnostics|{node})$']
    if given['record'] != 'true':
        command += ['--output', given['record']]
    if given['use_sim_time'] == 'true':
        command.append('--use-sim-time')
    return ExecuteProcess(cmd=command, output='both')

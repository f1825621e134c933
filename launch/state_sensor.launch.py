# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The driver, and optionally RViz and a recorder.

A launch argument without a value leaves the default of the node's parameter.
"""

from __future__ import annotations

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

PACKAGE = 'state_sensor_ros'
YES_NO = ['true', 'false']

# Arguments that become parameters of the node where they have a value.
PARAMETERS = {'host': str, 'port': int, 'config_file': str, 'use_sim_time': bool}

ARGUMENTS = (
    DeclareLaunchArgument('host', default_value='', description='host of the simulator'),
    DeclareLaunchArgument('port', default_value='', description='sensor port on that host'),
    DeclareLaunchArgument('config_file', default_value='',
                          description="the simulator's own sensor JSON"),
    DeclareLaunchArgument(
        'params_file', default_value='',
        description='YAML file of parameters; other arguments take precedence over it'),
    DeclareLaunchArgument('namespace', default_value='', description='namespace of the node'),
    DeclareLaunchArgument('name', default_value='state_sensor', description='name of the node'),
    DeclareLaunchArgument('use_sim_time', default_value='', choices=['', *YES_NO],
                          description='take the time of all nodes started here from /clock'),
    DeclareLaunchArgument('rviz', default_value='false', choices=YES_NO,
                          description='start RViz, and have the boxes drawn for it'),
    DeclareLaunchArgument(
        'record', default_value='',
        description='folder of an MCAP bag to record all topics in; true: named by the time'),
    DeclareLaunchArgument('log_level', default_value='info',
                          description='debug, info, warn, error or fatal'),
)


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, and the processes that depend on their values."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=_processes)])


def _processes(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    given = {argument.name: LaunchConfiguration(argument.name).perform(context)
             for argument in ARGUMENTS}
    # The driver last: where RViz is not installed, the launch fails before it starts the driver.
    processes: list[LaunchDescriptionEntity] = []
    if given['rviz'] == 'true':
        processes.append(_rviz(given))
    if given['record'] not in ('', 'false'):
        processes.append(_recorder(given))
    return [*processes, _driver(given)]


def _driver(given: dict[str, str]) -> Node:
    parameters: list[object] = [given['params_file']] if given['params_file'] else []
    # One dictionary after the file: the wildcards of the file would override the first of two.
    overrides: dict[str, object] = {
        name: ParameterValue(LaunchConfiguration(name), value_type=type_)
        for name, type_ in PARAMETERS.items() if given[name]}
    if given['rviz'] == 'true':
        overrides['debug_drawing'] = True
    if overrides:
        parameters.append(overrides)
    # The node configures and activates itself by its parameter autostart.
    return Node(
        package=PACKAGE, executable='state_sensor_node', name=given['name'],
        namespace=given['namespace'], parameters=parameters,
        ros_arguments=['--log-level', given['log_level']], output='both', emulate_tty=True)


def _rviz(given: dict[str, str]) -> Node:
    config = PathJoinSubstitution([FindPackageShare(PACKAGE), 'config', 'state_sensor.rviz'])
    # Relative targets are resolved in the namespace of this node.
    return Node(
        package='rviz2', executable='rviz2', namespace=given['namespace'],
        arguments=['-d', config], parameters=[{'use_sim_time': given['use_sim_time'] == 'true'}],
        remappings=[(f'/state_sensor/{topic}', f'{given["name"]}/{topic}')
                    for topic in ('markers', 'ego/odometry')], output='both')


def _recorder(given: dict[str, str]) -> ExecuteProcess:
    # The namespace may begin with a slash or not, and may be nested in another one.
    node = f'(/.*)?/?{given["namespace"].rstrip("/")}/{given["name"]}/.*'
    command = ['ros2', 'bag', 'record', '--storage', 'mcap',
               '--regex', f'^(/tf|/tf_static|/clock|/diagnostics|{node})$']
    if given['record'] != 'true':
        command += ['--output', given['record']]
    if given['use_sim_time'] == 'true':
        command.append('--use-sim-time')
    return ExecuteProcess(cmd=command, output='both')

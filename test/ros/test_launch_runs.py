# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The launch files with ROS's own `launch`, until Ctrl-C."""

from importlib.util import find_spec
import os
import re
import signal
import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT, SAMPLE
from ports import free_ports
import pytest
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import parameter_value_to_python
from rig import Remote

pytestmark = pytest.mark.skipif(find_spec('launch_ros') is None,
                                reason='needs launch_ros: a full ROS 2')

LAUNCH = ROOT / 'launch'
# What `ros2 launch FILE NAME:=VALUE …` does.
PROGRAM = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
given = [word.split(':=', 1) for word in sys.argv[2:]]
service = LaunchService(argv=sys.argv[2:], noninteractive=True)
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(
    PythonLaunchDescriptionSource(sys.argv[1]), launch_arguments=given)]))
sys.exit(service.run())
"""


@pytest.fixture
def launched(domain, tmp_path):
    """Return a function that launches a file; what it started is ended at the end."""
    running = []

    def launch(file, /, **arguments):
        words = [f'{key}:={value}' for key, value in arguments.items()]
        process = subprocess.Popen(
            [sys.executable, '-c', PROGRAM, str(LAUNCH / f'{file}.launch.py'), *words],
            env={**os.environ, 'ROS_DOMAIN_ID': str(domain), 'ROS_LOG_DIR': str(tmp_path),
                 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'})
        running.append(process)
        return process

    yield launch
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(AWAIT_S)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Stand for RViz and `ros2 bag record`: print the arguments, and run until ended."""
    for package in ('rviz2', 'ros2bag', 'rosbag2_storage_mcap'):
        marker = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages' / package
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    for program in (tmp_path / 'lib' / 'rviz2' / 'rviz2', tmp_path / 'bin' / 'ros2'):
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\necho {program.name} "$@"\nexec sleep 1000\n')
        program.chmod(0o755)
    for name, folder in (('AMENT_PREFIX_PATH', tmp_path), ('PATH', tmp_path / 'bin')):
        monkeypatch.setenv(name, f'{folder}{os.pathsep}{os.environ[name]}')


def test_launch_forwards_every_argument_and_names_others(
        launched, listener, tmp_path, capfd, programs):
    """All of them in one start."""
    parameters, config = tmp_path / 'parameters.yaml', tmp_path / 'config.json'
    parameters.write_text('/**: {ros__parameters: {tf: none, port: 1, labels: false}}')
    config.write_text('[{"type": "State", "listen_port": 2, "desired_tags": ["a"]}]')
    expected = {
        'source': 'file', 'host': '127.0.0.2', 'port': free_ports(2),
        'control_port': free_ports(2) + 1, 'config_file': str(config),
        'trajectory_file': str(SAMPLE), 'desired_tags': ['car', 'truck'],
        'undesired_tags': ['ghost'], 'include_obb': False, 'debug_drawing': True,
        'global_frame': 'world', 'frame_prefix': 'sim/', 'ego_frame': 'car',
        'publish_clock': False, 'outputs': [output for output, package in (
            ('derived_objects', 'derived_object_msgs'), ('vision', 'vision_msgs'))
            if find_spec(package)]}
    process = launched(
        'state_sensor', params_file=parameters, namespace='sim1', name='truth', rviz='true',
        record=tmp_path / 'bag', use_sim_time='true', log_level='error', autoware='false',
        sorce='carla9', labels='true', **{
            name: ','.join(value) if isinstance(value, list) else str(value).lower()
            if isinstance(value, bool) else value for name, value in expected.items()})
    found = Remote(listener, '/sim1/truth').call(
        GetParameters, names=[*expected, 'tf', 'labels', 'use_sim_time']).values
    values = [parameter_value_to_python(value) for value in found]
    assert [list(value) if isinstance(expected.get(name), list) else value
            for name, value in zip(expected, values, strict=False)] == [*expected.values()]
    assert values[len(expected):] == ['ego', False, True]
    process.send_signal(signal.SIGINT)
    assert process.wait(AWAIT_S) == 0
    log = ''.join(capfd.readouterr())
    assert re.search(r'rviz2 -d \S+ -f world --ros-args .*__ns:=/sim1', log), log
    assert re.search(r'ros2 bag record --storage mcap .*sim1/truth/\.\*.* --output \S+/bag '
                     '--use-sim-time', log), log
    assert 'debug_drawing has no effect' not in log
    [line] = [line for line in log.splitlines() if 'no launch file declares' in line]
    assert 'declares sorce, labels: without effect' in line
    assert line.endswith("did you mean 'source'?")


@pytest.mark.parametrize('simulator', ['monodrive', pytest.param('sumo', marks=pytest.mark.skipif(
    find_spec('libsumo') is None, reason='needs libsumo'))])
def test_launch_demo_brings_its_simulator_and_ends_without_a_fault(
        launched, listener, capfd, simulator):
    own = {} if simulator == 'monodrive' else {'simulator': simulator}
    process = launched('demo', rviz='false', port=free_ports(3) + 1, global_frame='world', **own)
    received = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    listener.until(lambda: len(received) >= 3 and frames, what='odometry of the ego')
    assert (received[0].header.frame_id, received[0].child_frame_id) == ('world', 'base_link')
    assert frames[0].generation == own.get('simulator', 'v2')
    process.send_signal(signal.SIGINT)
    assert process.wait(AWAIT_S) == 0
    log = ''.join(capfd.readouterr())
    assert 'connecting to' in log
    # A machine that is busy elsewhere drops frames, which is no defect.
    assert not re.search(r'connection lost|\[WARN\](?!.* dropped)|Traceback', log), log


def test_launch_ends_where_the_driver_dies_at_start(launched, tmp_path, programs):
    parameters = tmp_path / 'parameters.yaml'
    parameters.write_text('/**: {ros__parameters: {port: -1}}')
    assert launched('state_sensor', record='bag', params_file=parameters).wait(AWAIT_S) in (0, 1)


def test_launch_with_a_wrong_argument_fails_and_names_it(launched, capfd):
    assert launched('state_sensor', port='abc').wait(AWAIT_S) == 1
    assert "port: found 'abc'; expected a whole number" in ''.join(capfd.readouterr())

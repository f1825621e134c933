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
from itertools import count
import os
import re
import signal
import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT
from ports import free_ports
import pytest
from rig import framed

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


def test_launch_driver_under_another_name_until_interrupted(launched, listener, simulator):
    process = launched('state_sensor', port=simulator.port, namespace='sim1', name='truth')
    received = listener.subscribe('/sim1/truth/frame', 'state_sensor_ros/StateFrame')
    simulator.accept()
    listener.matched('/sim1/truth/frame')
    numbers = count(1)
    listener.until(lambda: simulator.send(framed(next(numbers))) or len(received) >= 2,
                   what='two frames')
    process.send_signal(signal.SIGINT)
    assert process.wait(AWAIT_S) == 0
    listener.until(lambda: listener.node.count_publishers('/sim1/truth/frame') == 0)


@pytest.mark.parametrize('simulator', ['monodrive', pytest.param('sumo', marks=pytest.mark.skipif(
    find_spec('libsumo') is None, reason='needs libsumo'))])
def test_launch_demo_brings_its_simulator_and_ends_without_a_fault(
        launched, listener, capfd, simulator):
    own = {} if simulator == 'monodrive' else {'simulator': simulator}
    process = launched('demo', rviz='false', port=free_ports(3) + 1, **own)
    received = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    listener.until(lambda: len(received) >= 3 and frames, what='odometry of the ego')
    assert received[0].child_frame_id == 'base_link'
    assert frames[0].generation == own.get('simulator', 'v2')
    process.send_signal(signal.SIGINT)
    assert process.wait(AWAIT_S) == 0
    log = ''.join(capfd.readouterr())
    assert 'connecting to' in log
    assert not re.search(r'connection lost|\[WARN\]|Traceback', log), log


def test_launch_ends_where_the_driver_dies_at_start(launched, tmp_path, monkeypatch):
    # A recorder that runs until it is ended, and a parameter that the driver refuses.
    recorder = tmp_path / 'bin' / 'ros2'
    recorder.parent.mkdir()
    recorder.write_text('#!/bin/sh\nexec sleep 1000\n')
    recorder.chmod(0o755)
    monkeypatch.setenv('PATH', f'{recorder.parent}{os.pathsep}{os.environ["PATH"]}')
    parameters = tmp_path / 'parameters.yaml'
    parameters.write_text('/**: {ros__parameters: {port: -1}}')
    assert launched('state_sensor', record='bag', params_file=parameters).wait(AWAIT_S) in (0, 1)


@pytest.mark.parametrize(('argument', 'words'), [
    ({'params_file': '/nowhere.yaml'}, 'params_file: there is no file /nowhere.yaml'),
    ({'port': 'abc'}, "port: found 'abc'; expected a whole number")], ids=str)
def test_launch_with_a_wrong_argument_fails_and_names_it(launched, capfd, argument, words):
    assert launched('state_sensor', **argument).wait(AWAIT_S) == 1
    assert words in ''.join(capfd.readouterr())

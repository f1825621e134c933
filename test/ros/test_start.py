# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What is beside the node when it starts: libraries, files of parameters, a folder for the log."""

from __future__ import annotations

from itertools import count
import os

from blocked_modules import environment_without
from missing_libraries import OPTIONAL
import pytest
from rig import framed, NodeProcess

from state_sensor_ros.commands.parameters import parameters_of, read_parameter_file
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.ros.main import choose_log_folder

GOOD = 'state_sensor:\n  ros__parameters:\n    port: 5\n'


@pytest.mark.parametrize(('text', 'found', 'expected'), [
    (GOOD.replace('5', '[5'), 'line 3', 'YAML'),
    ('port: 5\n', 'a file without parameters', 'ros__parameters:')])
def test_start_refuses_a_file_without_parameters(tmp_path, text, found, expected):
    file = tmp_path / 'ä.yaml'
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_parameter_file(file, '--params-file')
    assert caught.value.where == f'--params-file {file}'
    assert found in caught.value.found
    assert expected in caught.value.expected


@pytest.mark.parametrize(('names', 'expected'), [
    ('/**', {'port': 5}), ('state_sensor', {'port': 5}), ('/sim/state_sensor', None),
    ('other', None), ('/*', {'port': 5})])
def test_start_finds_the_parameters_of_a_node(names, expected):
    assert parameters_of({names: {'ros__parameters': {'port': 5}}}, '/state_sensor') == expected


def test_start_reads_a_list_as_launch_ros_writes_it(domain, listener, tmp_path):
    path = tmp_path / 'launch_params'
    path.write_text('/state_sensor:\n  ros__parameters:\n    outputs: !!python/tuple\n'
                    '    - vision\n    object_classes: !!python/tuple [car]\n')
    with NodeProcess(domain, autostart=False, arguments=['--params-file', str(path)]):
        listener.until(lambda: 'state_sensor' in listener.node.get_node_names(),
                       what='the node')


def test_start_warns_of_a_parameter_file_for_other_nodes(domain, listener, tmp_path):
    file = tmp_path / 'other.yaml'
    file.write_text(GOOD.replace('state_sensor', 'sensor'))
    with NodeProcess(domain, autostart=False, arguments=['--params-file', str(file)]) as node:
        listener.until(lambda: 'no parameter of this node, /state_sensor' in node.log,
                       what='the warning')


@pytest.mark.parametrize('home', [None, '/dev/null', ''])
def test_start_logs_elsewhere_where_home_cannot_be_written(monkeypatch, tmp_path, capsys, home):
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    for name in ('ROS_LOG_DIR', 'ROS_HOME', 'HOME'):
        monkeypatch.setenv(name, str(tmp_path))
        monkeypatch.delenv(name)
    if home is not None:
        monkeypatch.setenv('HOME', home or str(tmp_path))
    choose_log_folder()
    is_elsewhere = 'ROS_LOG_DIR' in os.environ
    assert is_elsewhere is (home != '')
    line = capsys.readouterr().err
    assert not is_elsewhere or (
        '/dev/null/.ros/log: not a directory' in line and os.environ['ROS_LOG_DIR'] in line)


def test_start_needs_rclpy_messages_numpy_and_msgspec_alone(
        domain, listener, simulator, tmp_path):
    others = {'apsw', 'lz4', 'zstandard', *OPTIONAL} - {'rclpy', 'yaml'}
    received = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    with NodeProcess(domain, port=simulator.port, debug_drawing=True, parent_frame='earth',
                     environment=environment_without(' '.join(others), tmp_path)):
        simulator.accept()
        numbers = count(1)
        listener.until(lambda: simulator.send(framed(next(numbers))) or received, what='a frame')

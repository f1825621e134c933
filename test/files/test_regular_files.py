# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Pipes, sockets and devices where a recording is expected: refused without a wait."""


from contextlib import closing
import os
import socket

from paths import SAMPLE
import pytest

from state_sensor_ros.commands.cli import main
from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files import open_any
from state_sensor_ros.files.input import check_regular
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.opening import Input


def ignore(kind, text):
    pass


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / 'pipe'
    os.mkfifo(path)
    return path


def test_special_files_are_named(tmp_path, pipe):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / 'socket'))
        (tmp_path / 'link').symlink_to(pipe)
        for path in (pipe, tmp_path / 'link', tmp_path / 'socket', '/dev/null'):
            with pytest.raises(TrajectoryFormatError, match=f'{path}: found a pipe, a socket or'):
                check_regular(path)


def test_node_refuses_a_pipe_as_a_recording(pipe):
    settings = Settings(source='file', trajectory_file=str(pipe))
    with pytest.raises(TrajectoryFormatError, match='found a pipe, a socket or a device'):
        Input(settings, ignore)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_bag_with_a_pipe_for_a_file_is_refused(tmp_path, storage):
    bag = tmp_path / 'bag'
    assert main(['convert', str(SAMPLE), str(bag), '--storage', storage]) == 0
    (file,) = [path for path in bag.iterdir() if path.name != 'metadata.yaml']
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(TrajectoryFormatError, match=f'{file}: found a pipe, '), \
            closing(open_any(str(bag))):
        pass

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA's client library runs in another Python where this one has none."""

import shlex
import subprocess
import sys

from blocked_modules import environment_without
from budgets import AWAIT_S
from carla9_server.scenes import TrafficScene
from carla9_server.server import WorldOptions, WorldServer
import pytest

from state_sensor_ros import open_recording


def python_without(path, modules, note=''):
    """Write a program that acts like a Python without some modules, and notes that it ran."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\necho {note} "$@" >>{shlex.quote(str(path))}.ran\n'
                    f'BLOCKED="{modules}" exec {shlex.quote(sys.executable)} "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def record(tmp_path):
    """Return a function that records from a mock server in a Python without carla."""
    environment = environment_without('carla', tmp_path) | {'PATH': str(tmp_path / 'bin')}

    def recorded(*words):
        with WorldServer(TrafficScene(3, 0, seed=1), WorldOptions()) as server:
            return subprocess.run(
                [sys.executable, '-m', 'state_sensor_ros', 'record', str(tmp_path / 'drive.json'),
                 '--source', 'carla9', '--port', str(server.port), '--frames', '5', *words],
                env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=AWAIT_S)
    return recorded


def test_first_python_on_the_path_with_the_library_is_used(tmp_path, record):
    pytest.importorskip('carla')
    python_without(tmp_path / 'bin' / 'python3.13', 'carla')
    python_without(tmp_path / 'bin' / 'python3.12', '')
    done = record()
    assert done.returncode == 0, done.stderr
    with open_recording(tmp_path / 'drive.json') as recording:
        assert len(list(recording)) == 5
    assert 'carla_process' in (tmp_path / 'bin' / 'python3.12.ran').read_text()
    assert 'carla_process' not in (tmp_path / 'bin' / 'python3.13.ran').read_text()


@pytest.mark.thorough
def test_python_is_chosen_by_a_parameter(tmp_path, record):
    pytest.importorskip('carla')
    done = record('-p', f'carla9.python:={python_without(tmp_path / "any", "")}')
    assert done.returncode == 0, done.stderr
    assert 'carla_process' in (tmp_path / 'any.ran').read_text()


@pytest.mark.parametrize(('modules', 'problem'), [
    ('carla numpy', 'without carla and numpy'), (None, 'no Python that runs')])
def test_chosen_python_that_cannot_be_used_is_one_line(tmp_path, record, modules, problem):
    path = tmp_path / 'any'
    if modules is not None:
        python_without(path, modules)
    done = record('-p', f'carla9.python:={path}')
    assert done.returncode == 1
    assert done.stderr == (
        f'error: carla9.python: found {path}, {problem}; expected a Python 3.10 or later with '
        'carla, numpy and msgspec\n')


def test_no_python_with_the_libraries_is_one_line(tmp_path, record):
    pytest.importorskip('carla')
    # Such as one of pyenv without a version.
    broken = python_without(tmp_path / 'bin' / 'python3.11', '')
    broken.write_text('#!/bin/sh\nexit 127\n')
    assert record().stderr.startswith(
        'error: source carla9: found no module carla; expected the library carla: ')

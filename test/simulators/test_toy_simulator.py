# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A simulator of another package: read into a bag and inspected, without a change here."""

from pathlib import Path
import subprocess

from budgets import AWAIT_S
from paths import ROOT
from programs import ENVIRONMENT, PIPES, start_script
import pytest
from rosbags.rosbag2 import Reader

HERE = Path(__file__).parent
MAX_LINES = 80
# The search for simulators is repeated: a fork may have made one before.
PROGRAM = """
import sys

sys.path.append({site!r})
from state_sensor_ros.commands.command_line import main
from state_sensor_ros.simulators import simulator_list

simulator_list._entries.cache_clear()
simulator_list.simulators.cache_clear()
sys.exit(main())
"""


@pytest.fixture
def site(tmp_path):
    """Return a folder for sys.path in which the toy simulator is installed."""
    return installed_toy(tmp_path / 'site')


def installed_toy(folder, value='toy_simulator:ToySimulator'):
    """Make a folder in which a package with an entry point of a simulator is installed."""
    (folder / 'toy_simulator-1.0.dist-info').mkdir(parents=True)
    (folder / 'toy_simulator.py').write_bytes((HERE / 'toy_simulator.py').read_bytes())
    (folder / 'toy_simulator-1.0.dist-info' / 'METADATA').write_text(
        'Metadata-Version: 2.1\nName: toy-simulator\nVersion: 1.0\n')
    (folder / 'toy_simulator-1.0.dist-info' / 'entry_points.txt').write_text(
        f'[state_sensor_ros.simulators]\ntoy = {value}\n')
    return folder


def state_sensor(site, *words):
    script = site.parent / 'program.py'
    script.write_text(PROGRAM.format(site=str(site)))
    with start_script([str(script), *map(str, words)], cwd=ROOT, env=ENVIRONMENT,
                      **PIPES) as process:
        output, errors = process.communicate(timeout=AWAIT_S)
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / 'drive.ball'
    path.write_text(''.join(f'{i / 10} {i} -2.5\n' for i in range(5)))
    return path


def test_toy_simulator_is_short():
    lines = (HERE / 'toy_simulator.py').read_text().splitlines()
    assert len([line for line in lines if not line.startswith('#')]) < MAX_LINES


def test_toy_recording_becomes_a_bag(site, recording, tmp_path):
    bag = tmp_path / 'bag'
    ended = state_sensor(site, 'convert', recording, bag)
    assert (ended.returncode, ended.stderr) == (0, '')
    with Reader(bag) as reader:
        counts = {one.topic: one.msgcount for one in reader.connections}
    assert counts['/state_sensor/frame'] == counts['/state_sensor/actors/ball/odometry'] == 5
    ended = state_sensor(site, 'inspect', recording)
    assert ended.returncode == 0
    assert f'{recording} (lines)' in ended.stdout
    assert 'ball' in ended.stdout


def test_toy_recording_becomes_a_trajectory(site, recording, tmp_path):
    ended = state_sensor(site, 'convert', recording, tmp_path / 'a.json')
    assert ended.returncode == 1
    assert 'found none, and frames of generation toy; expected one of' in ended.stderr
    ended = state_sensor(site, 'convert', recording, tmp_path / 'a.json', '--generation', 'v1')
    assert ended.returncode == 0
    ended = state_sensor(site, 'convert', tmp_path / 'a.json', tmp_path / 'bag')
    assert (ended.returncode, ended.stderr) == (0, '')


def test_toy_recording_with_a_fault_is_one_warning(site, recording, tmp_path):
    recording.write_text('0.0 1 2\n0.1 1\n0.2 3 4\n')
    ended = state_sensor(site, 'convert', recording, tmp_path / 'bag')
    assert ended.returncode == 0
    assert 'line 2: line: found' in ended.stderr
    assert ended.stderr.count('\n') == 1


def test_toy_has_no_stand_in(site):
    ended = state_sensor(site, 'simulate', '--protocol', 'toy')
    assert ended.returncode == 2
    assert 'found toy; expected a simulator that has a stand-in' in ended.stderr


def test_simulator_that_cannot_be_loaded_is_named(tmp_path, recording):
    site = installed_toy(tmp_path / 'site', 'toy_simulator:NoSuchClass')
    ended = state_sensor(site, 'convert', recording, tmp_path / 'bag')
    assert ended.returncode == 1
    assert ended.stderr.startswith(
        'warning: the simulator toy (toy_simulator:NoSuchClass) is left out: AttributeError: ')
    assert ended.stderr.count('\n') == 2

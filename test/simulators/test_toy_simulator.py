# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A simulator of another package: all that a user does with one, without a change here."""

import json
from pathlib import Path
import re
import socket
import subprocess

from budgets import AWAIT_S, one_of
from paths import GOOD, ROOT
from programs import ENVIRONMENT, PIPES, start_script
import pytest
from toy_server import ToyServer

HERE = Path(__file__).parent
# The search for simulators is repeated: a fork may have made one before.
PROGRAM = """
import sys

sys.path.append({site!r})
from state_sensor_ros.{module} import main
from state_sensor_ros.simulators import simulator_list

for cached in (simulator_list._entries, simulator_list._loaded, simulator_list.simulators):
    cached.cache_clear()
sys.exit(main())
"""


@pytest.fixture
def site(tmp_path):
    """Return a folder for sys.path in which the toy simulator is installed."""
    return installed_toy(tmp_path / 'site')


def installed_toy(folder, value='toy_simulator:ToySimulator', content=None):
    """Make a folder in which a package with an entry point of a simulator is installed."""
    (folder / 'toy_simulator-1.0.dist-info').mkdir(parents=True)
    (folder / 'toy_simulator.py').write_text(
        (HERE / 'toy_simulator.py').read_text() if content is None else content)
    (folder / 'toy_simulator-1.0.dist-info' / 'METADATA').write_text(
        'Metadata-Version: 2.1\nName: toy-simulator\nVersion: 1.0\n')
    (folder / 'toy_simulator-1.0.dist-info' / 'entry_points.txt').write_text(
        f'[state_sensor_ros.simulators]\ntoy = {value}\n')
    return folder


def program_with(site, module):
    """Write a program that has what is installed in a folder; return its path."""
    script = site.parent / 'program.py'
    script.write_text(PROGRAM.format(site=str(site), module=module))
    return str(script)


def start_state_sensor(site, *words):
    return start_script([program_with(site, 'commands.cli'), *map(str, words)], cwd=ROOT,
                        env=ENVIRONMENT, **PIPES)


def state_sensor(site, *words):
    with start_state_sensor(site, *words) as process:
        output, errors = process.communicate(timeout=AWAIT_S)
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / 'drive.ball'
    path.write_text(''.join(f'{i / 10} {i} -2.5\n' for i in range(5)))
    return path


@pytest.fixture
def port():
    """Return the port of a mock server that sends twenty frames to one client."""
    with ToyServer(speed=2.0, n_frames=20) as server:
        yield server.port


def test_toy_server_reads_commands_that_are_cut():
    """What ends in the middle of a command ended the server, and the ball with it."""
    with ToyServer(speed=0.0) as server, socket.create_connection(
            ('127.0.0.1', server.port), timeout=AWAIT_S) as connection:
        lines = connection.makefile('rb')
        for part in (b'1.0', b'00000 0.000000\n1.000000 0.0', b'00000\n'):
            connection.sendall(part)
            # It reads once for each frame, so that the next part comes apart.
            rows = [[*map(float, lines.readline().split())] for _ in range(4)]
        (t0, x0, _), (t1, x1, _) = rows[-2:]
        assert (x1 - x0) / (t1 - t0) == pytest.approx(2.0, rel=1e-3)


def test_toy_library_that_a_parameter_needs_is_named(tmp_path):
    text = (HERE / 'toy_simulator.py').read_text()
    declared = "'Radius of the ball, m.', "
    assert text.count(declared) == 1
    site = installed_toy(tmp_path / 'site', content=text.replace(
        declared, f"{declared}libraries={{'1.5': ('toy_client', 'json'), '': ('json',)}}, "))
    for value, error in (
            (1.5, ('source toy: found no module toy_client; expected the library toy_client: pip '
                   'install toy_client')),
            (2.0, 'error: 127.0.0.1:1: connection refused\n')):
        ended = state_sensor(site, 'record', 'out.json', '--source', 'toy', '--port', '1',
                             '-p', f'toy.radius:={value}')
        assert error in ended.stderr
        assert (ended.returncode, ended.stdout) == (1, '')


def test_toy_recording_with_a_fault_is_one_warning(site, recording, tmp_path):
    recording.write_text('0.0 1 2\n0.1 1\n0.2 3 4\n')
    ended = state_sensor(site, 'convert', recording, tmp_path / 'bag')
    assert ended.returncode == 0
    assert 'frame 1: line: found' in ended.stderr
    assert ended.stderr.count('\n') == 1


def test_toy_parameters_change_its_recordings(site, recording, tmp_path):
    parquet = pytest.importorskip('pyarrow.parquet')
    table = tmp_path / 'drive.parquet'
    ended = state_sensor(site, 'convert', recording, table, '-p', 'toy.radius:=2.5',
                         '-p', 'toy.tag:=globe')
    assert (ended.returncode, ended.stderr) == (0, '')
    [row, *_] = parquet.read_table(table).to_pylist()
    assert (row['length'], row['tags'], row['road_id'], row['s']) == (5.0, ['globe'], 7, 0.0)
    ended = state_sensor(site, 'convert', recording, table, '--force', '-p', 'toy.radius:=0')
    assert ended.returncode == 1
    assert 'toy.radius: found 0.0; expected 0.01 to 10: Radius of the ball, m.' in ended.stderr
    ended = state_sensor(site, 'convert', recording, table, '--force', '-p', 'toy.radios:=1')
    assert 'toy.radios: unknown parameter; did you mean toy.radius?' in ended.stderr


def test_help_names_the_added_simulator(site):
    for command in ('record', 'inspect'):
        ended = state_sensor(site, command, '--help')
        assert ended.returncode == 0
        assert 'monodrive, carla' in ' '.join(ended.stdout.split())
        assert re.search(r', toy\b', ended.stdout)


IMPORT = 'from state_sensor_ros.simulators import Simulator\n'
BROKEN = {
    'no-module': ('nowhere:ToySimulator', '', 'ModuleNotFoundError: '),
    'exits': ('toy_simulator:Toy', 'import sys; sys.exit(3)', 'SystemExit: 3'),
    'syntax': ('toy_simulator:Toy', 'class', 'SyntaxError: '),
    'no-simulator': ('toy_simulator:Toy', 'class Toy: name = "toy"', 'is not a subclass of'),
    'other-name': ('toy_simulator:Toy', f'{IMPORT}class Toy(Simulator): name = "other"',
                   'its name is other'),
    'no-class': ('toy_simulator:NoSuchClass', '', 'AttributeError: '),
    'raises': ('toy_simulator:Toy', 'raise RuntimeError("no license")', 'Error: no license'),
    'no-class-at-all': ('toy_simulator:Toy', 'Toy = 3', 'TypeError: '),
    'wrong-parameters': (
        'toy_simulator:Toy', f'{IMPORT}class Toy(Simulator): name = "toy"; parameters = int',
        'TypeError'),
    'wrong-formats': (
        'toy_simulator:Toy', f'{IMPORT}class Toy(Simulator): name = "toy"; formats = (3,)',
        'its declaration of 3 cannot be used'),
    'wrong-alias': (
        'toy_simulator:Toy', f'{IMPORT}class Toy(Simulator): name = "toy"; aliases = {{"a": "b"}}',
        "its declaration of 'a' cannot be used"),
    **{f'{name}-raises': (
        'toy_simulator:Toy',
        f'{IMPORT}class Toy(Simulator): name = "toy"; {name} = property(lambda _: open("/none"))',
        'FileNotFoundError')
        for name in ('formats', 'aliases', 'map_files')},
}


@pytest.fixture
def one_frame(tmp_path):
    path = tmp_path / 'one.json'
    path.write_text(f"[{(GOOD / 'sample_v2.json').read_text()}]")
    return path


@pytest.mark.parametrize('name', one_of(BROKEN, n_always=4))
def test_simulator_that_cannot_be_loaded_is_dropped(tmp_path, one_frame, name):
    value, content, why = BROKEN[name]
    site = installed_toy(tmp_path / 'site', value, f'print("noise")\n{content}\n')
    ended = state_sensor(site, 'convert', one_frame, tmp_path / 'bag', '-p', 'tf:=ego')
    assert ended.returncode == 0
    assert 'noise' not in ended.stdout
    [line] = [line for line in ended.stderr.splitlines() if line != 'noise']
    assert line.startswith(f'warning: the simulator toy ({value}) is skipped: ')
    assert why in line
    ended = state_sensor(site, 'record', tmp_path / 'x.json', '--source', 'toy')
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(
        'error: source: found toy, an added simulator that cannot be used: ')
    assert not (tmp_path / 'x.json').exists()


def test_entry_points_of_a_broken_package_are_skipped(site, one_frame, recording):
    broken = site / 'broken-1.0.dist-info'
    broken.mkdir()
    (broken / 'METADATA').write_text('Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n')
    (broken / 'entry_points.txt').write_text('[state_sensor_ros.simulators]\nno equals sign\n')
    ended = state_sensor(site, 'convert', recording, one_frame.with_name('out.json'))
    assert ended.returncode == 0
    assert ended.stderr.count('warning: the entry points of broken are skipped: ') == 1


def test_simulator_that_cannot_be_loaded_is_not_loaded_in_vain(tmp_path, one_frame):
    site = installed_toy(tmp_path / 'site', 'toy_simulator:Toy', 'print("noise")\nclass')
    ended = state_sensor(site, 'inspect', '--json', one_frame)
    assert (ended.returncode, ended.stderr) == (0, '')
    json.loads(ended.stdout)


def test_simulator_that_prints_leaves_standard_output_clean(tmp_path, recording):
    noise = ('import os\nprint("noise")\nos.write(1, b"noise")\nos.system("echo noise")\n')
    site = installed_toy(tmp_path / 'site',
                         content=noise + (HERE / 'toy_simulator.py').read_text())
    ended = state_sensor(site, 'inspect', '--json', recording)
    assert ended.returncode == 0
    assert json.loads(ended.stdout)['frames'] == 5
    assert ended.stderr.count('noise') == 3


def test_simulator_that_prints_while_it_runs_leaves_the_data_clean(tmp_path, recording):
    """Each frame is made with a line of output, in the thread that reads and in that of a file."""
    content = (HERE / 'toy_simulator.py').read_text()
    begin = '    builder = FrameBuilder('
    site = installed_toy(tmp_path / 'site', content=content.replace(
        begin, f'    print("noise")\n{begin}'))
    ended = state_sensor(site, 'inspect', '--json', recording)
    assert json.loads(ended.stdout)['frames'] == 5
    ended = state_sensor(site, 'convert', recording, '-')
    assert len(json.loads(ended.stdout)) == 5
    assert ended.stderr.count('noise\n') >= 5
    for words in (['record', '-', '--frames', '3'],
                  ['inspect', '--live', '--json', '--frames', '3']):
        with ToyServer(speed=2.0, n_frames=20) as server:
            ended = state_sensor(site, *words, '--source', 'toy', '--port', server.port)
        assert (ended.returncode, 'noise' in ended.stdout) == (0, False)
        json.loads(ended.stdout)
        assert ended.stderr.count('noise\n') >= 3

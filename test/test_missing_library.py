# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A library that is not installed is named in one line, by every program that needs it."""

import json
import re
import subprocess
import sys

from blocked_modules import environment_without
from budgets import AWAIT_S, first_of, is_large
from paths import ROOT, SAMPLE
import pytest

from state_sensor_ros.commands.cli import COMMANDS
from state_sensor_ros.errors import (
    importing,
    MissingLibraryError,
    StateSensorError,
)

OPTIONAL = ('matplotlib plotly PIL google google.protobuf pyarrow distributed dask '
            'osi3 pandas argcomplete')


def run_without(modules, folder, *words):
    """Run a program in a Python without some modules."""
    environment = environment_without(modules, folder)
    return subprocess.run([sys.executable, *map(str, words)], cwd=folder, capture_output=True,
                          text=True, timeout=AWAIT_S, env=environment)


@pytest.mark.parametrize(('module', 'library', 'words'), first_of(n_always=2, cases=[
    ('msgspec', 'msgspec', ['inspect', SAMPLE]),
    # Before IN is read: this file is no recording.
    ('matplotlib', 'matplotlib', ['render', __file__, 'out.png']),
    ('pyarrow', 'pyarrow', ['convert', SAMPLE, 'out.parquet']),
    ('osi3', 'osi-python', ['convert', SAMPLE, 'out.osi.mcap']),
    ('distributed', 'distributed', [
        'convert', SAMPLE, 'out', '--to', 'json', '--dask', 'tcp://127.0.0.1:1']),
    ('plotly', 'plotly', ['render', __file__, 'out.html']),
    ('google.protobuf', 'protobuf', ['record', 'out.json', '--source', 'carla'])]))
def test_missing_library_is_one_line(tmp_path, module, library, words):
    found = run_without(module, tmp_path, '-m', 'state_sensor_ros', *words)
    assert re.fullmatch(
        f'error: state_sensor {words[0]}: found no module {module}; expected the library '
        f'{library}: pip install {library}\n', found.stderr)
    assert (found.returncode, found.stdout) == (1, '')
    assert [path.name for path in tmp_path.iterdir()
            if path.name != '__pycache__'] == ['sitecustomize.py']


def test_mock_simulator_needs_no_more_than_the_node(tmp_path):
    environment = environment_without(
        f'apsw lz4 mcap rosbags tqdm zstandard {OPTIONAL}', tmp_path)
    with subprocess.Popen([sys.executable, '-m', 'state_sensor_ros', 'simulate', '--port', '0'],
                          env=environment, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        process.terminate()
    assert line.startswith('listening on ')


def advice(module):
    """Return what an error says is to be done about a module."""
    with pytest.raises(MissingLibraryError) as caught, importing('here'):
        raise ModuleNotFoundError(name=module)
    return caught.value.expected


def test_advice_names_the_pythons_of_a_library(monkeypatch):
    monkeypatch.setattr(sys, 'version_info', (3, 13, 1))
    rest = 'which does not support'
    assert advice('carla') == f'Python 3.10 to 3.12 for the library carla, {rest} 3.13'
    monkeypatch.setattr(sys, 'version_info', (3, 10, 1))
    assert advice('rerun') == f'Python 3.11 or newer for the library rerun-sdk, {rest} 3.10'


MANY = """
import json, os, sys
from state_sensor_ros.commands.cli import main
for words in json.loads(sys.argv[1]):
    print('run', *words, flush=True)
    process = os.fork()
    if not process:
        sys.exit(main(words))
    print('code', os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


@pytest.mark.thorough
def test_extras_are_needed_by_their_commands_only(tmp_path):
    """`pip install .` alone inspects, converts, simulates, records, and has help on the rest."""
    helped = list(COMMANDS) if is_large() else ['evaluate', 'render', 'view']
    runs = [['inspect', SAMPLE], ['convert', SAMPLE, 'bag'], ['inspect', 'bag'],
            ['simulate', SAMPLE, '--port', '0', '--frames', '1', '--rate', 'max', '--help'],
            ['synth', 'a.json.zst', '--frames', '2'], ['convert', 'bag', 'b.json.gz'],
            *([name, '--help'] for name in helped)]
    runs = [[*map(str, words)] for words in runs]
    found = run_without(OPTIONAL, tmp_path, '-c', MANY, json.dumps(runs))
    assert (found.returncode, found.stderr) == (0, '')
    outputs = re.findall(r'^run (.*)\n((?:.*\n)*?)code 0$', found.stdout, re.MULTILINE)
    assert [words for words, _ in outputs] == [' '.join(words) for words in runs], found.stdout
    for name, (_, output) in zip(helped, outputs[-len(helped):], strict=True):
        assert output.startswith(f'usage: state_sensor {name} ')


def test_missing_ros_is_one_line(tmp_path):
    found = run_without('rclpy', tmp_path, ROOT / 'scripts' / 'state_sensor_node', '--version')
    assert (found.returncode, found.stdout) == (1, '')
    assert found.stderr == (
        'error: state_sensor_node: found no module rclpy; expected ROS 2 and this package, '
        'sourced: `. scripts/env.sh` in a clone after `make setup`, `. install/setup.sh` in a '
        'workspace\n')


def test_missing_library_of_another_version_is_named():
    with pytest.raises(MissingLibraryError) as caught, importing('here'):
        from msgspec import that_is_not_there  # noqa: F401
    assert str(caught.value).startswith('here: found cannot import name')
    assert str(caught.value).endswith(
        'expected the library msgspec: pip install --upgrade msgspec')


def test_missing_module_of_the_package_is_a_defect():
    with pytest.raises(ImportError) as caught, importing('here'):
        from state_sensor_ros import that_is_not_there  # noqa: F401
    assert not isinstance(caught.value, StateSensorError)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The scripts in examples/, as a user runs them; that with ROS is in ros/test_example_node.py."""

import itertools

from budgets import AWAIT_S
from paths import ROOT
from programs import ENVIRONMENT, PIPES, start_script
import pytest

from state_sensor_ros.commands.command_line import main
from state_sensor_ros.emulator.monodrive_server.frame_server import (
    MonodriveOptions,
    MonodriveServer,
)
from state_sensor_ros.emulator.traffic.frame_generator import generate

EXAMPLES = ROOT / 'examples'


def run(name, *words):
    """Run an example; return its exit code, its output and its errors."""
    with start_script([str(EXAMPLES / name), *map(str, words)], env=ENVIRONMENT,
                      **PIPES) as process:
        output, errors = process.communicate(timeout=AWAIT_S)
    return process.returncode, output, errors


def test_examples_are_short():
    scripts = sorted(EXAMPLES.glob('*.py'))
    assert len(scripts) == 4
    for path in scripts:
        assert len(path.read_text(encoding='utf-8').splitlines()) <= 30


def test_example_plots_a_recording(tmp_path):
    pytest.importorskip('matplotlib')
    assert main(['synth', str(tmp_path / 'drive.json'), '--frames', '10']) == 0
    done = run('plot_recording.py', tmp_path / 'drive.json', tmp_path / 'paths.png')
    assert done == (0, '', '')
    assert (tmp_path / 'paths.png').read_bytes().startswith(b'\x89PNG')


def test_example_looks_into_a_recording(tmp_path):
    assert main(['synth', str(tmp_path / 'drive.json'), '--frames', '10']) == 0
    code, output, errors = run('look_into_recording.py', tmp_path / 'drive.json')
    assert (code, errors) == (0, '')
    lines = output.splitlines()
    assert lines[0].endswith("drive.json', v2, 10 frames, 0.45 s)")
    assert lines[1].startswith('nearest at the end: ')
    assert lines[2].startswith('[')


def test_example_makes_a_table_of_a_stream():
    pytest.importorskip('pyarrow')
    pytest.importorskip('pandas')
    frames = list(itertools.islice(generate(3, 2, 20.0, 1, 'v2'), 60))
    with MonodriveServer(frames, MonodriveOptions(rate='max')) as simulator:
        code, output, errors = run('stream_to_pandas.py', '127.0.0.1', simulator.port)
    assert (code, errors) == (0, '')
    assert output.count(' 40.0 ') == 5

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The public names of the package: what they are, that they load nothing, their examples."""

import doctest
import inspect
import itertools
import os
import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT, SAMPLE
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.command_line import main
from state_sensor_ros.emulator.monodrive_server.frame_server import (
    MonodriveOptions,
    MonodriveServer,
)
from state_sensor_ros.emulator.traffic.frame_generator import generate

HEAVY = {'rclpy', 'matplotlib', 'plotly', 'numpy', 'pyarrow', 'rosbags'}
# What the numbers of a trajectory do not need, if numpy does not.
OF_OTHERS = {'rclpy', 'matplotlib', 'plotly', 'pyarrow', 'rosbags', 'tqdm', 'socket', 'selectors',
             'argparse', 'subprocess', 'multiprocessing', 'asyncio', 'importlib.metadata'}
LIGHT = f"""
import sys, time
before = set(sys.modules)
begin = time.process_time()
import state_sensor_ros
took_s = time.process_time() - begin
loaded = {{name.partition('.')[0] for name in set(sys.modules) - before}}
begin = time.process_time()
import numpy
numpy_s = time.process_time() - begin
before = set(sys.modules)
begin = time.process_time()
with state_sensor_ros.open_recording({str(SAMPLE)!r}) as recording:
    frame = next(iter(recording))
first_s = time.process_time() - begin
print(took_s < 0.15 and took_s < 0.5 * numpy_s, sorted(loaded & {HEAVY}))
# Measured: 0.8 with written bytecode, 1.4 without.
print(first_s < 2.5 * numpy_s, sorted({OF_OTHERS} & (set(sys.modules) - before)))
"""


def test_library_has_the_names_of_the_interface():
    assert {'open_recording', 'open_stream', 'read_table', 'Frame', 'Boxes', 'Lanes', 'Wheels',
            'Track', 'LaneChange', 'Recording', 'Stream', 'Kind',
            '__version__'} <= set(sensor.__all__)
    assert set(sensor.__all__) <= set(dir(sensor))
    errors = {name for name in sensor.__all__ if name.endswith('Error')}
    from state_sensor_ros import errors as module
    # UsageError is about the words of a command line.
    assert errors == {name for name, value in vars(module).items()
                      if inspect.isclass(value) and issubclass(value, module.StateSensorError)
                      and name != 'UsageError'}
    for name in sensor.__all__:
        assert getattr(sensor, name) is not None
    with pytest.raises(AttributeError, match='no attribute'):
        getattr(sensor, 'open_nothing')  # noqa: B009


def test_library_is_light():
    # Processes that share caches with it slow it down: the least of some attempts counts.
    quick = set()
    for _ in range(5):
        found = subprocess.run([sys.executable, '-c', LIGHT], cwd=ROOT, capture_output=True,
                               text=True, timeout=AWAIT_S, check=True,
                               env=os.environ | {'PYTHONPATH': str(ROOT)})
        lines = found.stdout.splitlines()
        assert [line.split(' ', 1)[1] for line in lines] == ['[]', '[]']
        quick |= {i for i, line in enumerate(lines) if line.startswith('True')}
        if len(quick) == 2:
            break
    assert quick == {0, 1}


def test_library_star_import():
    names: dict[str, object] = {}
    exec('from state_sensor_ros import *', names)
    assert names['open_recording'] is sensor.open_recording


@pytest.mark.parametrize('name', [
    name for name in sensor.__all__ if not name.endswith('Error') and name != '__version__'])
def test_library_examples_run(name, tmp_path, monkeypatch):
    if 'table' in name:
        pytest.importorskip('pyarrow')
    monkeypatch.chdir(tmp_path)
    assert main(['synth', 'drive.json', '--frames', '10']) == 0
    frames = list(itertools.islice(generate(12, 9, 20.0, 1, 'v2'), 3))
    with MonodriveServer(frames, MonodriveOptions(rate='max')) as simulator:
        [example] = doctest.DocTestFinder(recurse=False).find(
            getattr(sensor, name), name, globs={'port': simulator.port})
        assert example.examples
        result = doctest.DocTestRunner().run(example)
    assert (result.failed, result.attempted > 1) == (0, True)

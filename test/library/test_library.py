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
import json

from mock_simulator import served
from paths import ROOT, SAMPLE
from programs import run_python
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main

HEAVY = {'rclpy', 'matplotlib', 'plotly', 'numpy', 'pyarrow', 'rosbags'}
# What the numbers of a trajectory do not need, if numpy does not.
OF_OTHERS = {'rclpy', 'matplotlib', 'plotly', 'pyarrow', 'pandas', 'scipy', 'tqdm', 'asyncio',
             'multiprocessing'}
# Calls and returns of functions are the same in each run, unlike processor time. Measured: 10,800
# of the package, 207,000 of numpy, 467,000 of a first frame with the imports of all formats.
LIGHT = f"""
import sys

def counted():
    n = 0
    def count(*_):
        nonlocal n
        n += 1
    sys.setprofile(count)
    def end():
        sys.setprofile(None)
        return n
    return end

before = set(sys.modules)
end = counted()
import state_sensor_ros
n_own = end()
loaded = {{name.partition('.')[0] for name in set(sys.modules) - before}}
end = counted()
import numpy
n_numpy = end()
before = set(sys.modules)
end = counted()
with state_sensor_ros.open_recording({str(SAMPLE)!r}) as recording:
    frame = next(iter(recording))
n_first = end()
print([n_own / n_numpy, n_first / n_numpy], sorted(loaded & {HEAVY}),
      sorted({OF_OTHERS} & (set(sys.modules) - before)), sep='\\n')
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
    done = run_python('-c', LIGHT, cwd=ROOT)
    assert not done.returncode, done.stderr
    calls, *heavy = done.stdout.splitlines()
    assert heavy == ['[]', '[]']
    own, first = json.loads(calls)
    assert own < 0.2
    assert first < 2.6


@pytest.fixture(scope='module')
def drive(tmp_path_factory):
    folder = tmp_path_factory.mktemp('examples')
    assert main(['synth', str(folder / 'drive.json'), '--frames', '10', '-q']) == 0
    return folder / 'drive.json'


@pytest.mark.parametrize('name', [
    name for name in sensor.__all__ if not name.endswith('Error') and name != '__version__'])
def test_library_examples_run(name, drive, monkeypatch):
    if 'table' in name:
        pytest.importorskip('pyarrow')
    monkeypatch.chdir(drive.parent)
    frames = json.loads(drive.read_text())[:3]
    with served(frames, rate='max') as simulator:
        [example] = doctest.DocTestFinder(recurse=False).find(
            getattr(sensor, name), name, globs={'port': simulator.port})
        assert example.examples
        result = doctest.DocTestRunner().run(example)
    assert (result.failed, result.attempted > 1) == (0, True)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recordings that are opened before a fork: each process reads them from its own position."""

from importlib.util import find_spec
import os

from paths import CARLA
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main

N_CHILDREN, N_FRAMES = 2, 60


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('recordings')
    source = str(folder / 'a.json')
    assert main(['synth', source, '--frames', str(N_FRAMES), '--vehicles', '3',
                 '--objects', '0', '-q']) == 0
    for words in (['a.json.gz'], ['a.json.zst'], ['mcap'], ['sqlite3', '--storage', 'sqlite3']):
        assert main(['convert', source, str(folder / words[0]), *words[1:], '-q']) == 0
    if find_spec('pyarrow'):
        assert main(['convert', source, str(folder / 'a.parquet'), '-q']) == 0
    (folder / 'town').symlink_to(CARLA)
    return folder


def states_of(recording):
    return [(frame.game_time, frame.kinematics.tolist()) for frame in recording]


@pytest.mark.parametrize('name', [
    'a.json', 'a.json.gz', 'a.json.zst', 'mcap', 'sqlite3', 'a.parquet', 'town'])
def test_children_read_what_was_opened_before_a_fork(folder, name):
    if not (folder / name).exists():
        pytest.skip('without pyarrow')
    with sensor.open_recording(folder / name) as recording:
        expected = repr(states_of(recording))
    with sensor.open_recording(folder / name) as recording:
        # They begin in the middle, at the same time.
        frames = iter(recording)
        first = next(frames)
        ready, go = os.pipe()
        children = []
        for _ in range(N_CHILDREN):
            child = os.fork()
            if not child:
                code = 1
                try:
                    os.close(go)
                    os.read(ready, 1)
                    states = states_of([first, *frames])
                    again = states_of(recording)
                    code = int(repr(states) != expected or repr(again) != expected)
                finally:
                    os._exit(code)
            children.append(child)
        os.close(go)
        codes = [os.waitpid(child, 0)[1] for child in children]
        os.close(ready)
    assert codes == [0] * N_CHILDREN

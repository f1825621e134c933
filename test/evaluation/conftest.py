# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A drive with its outputs, and its evaluation."""

from functools import cache
from importlib import import_module
import json

import pytest
from stack_bags import N_FRAMES, write_drive, write_outputs

from state_sensor_ros.commands.cli import main


@pytest.fixture(scope='session')
def drives(tmp_path_factory):
    """Return a function that returns the drive of so many frames, written once."""
    return cache(lambda n_frames: write_drive(
        tmp_path_factory.mktemp('drive') / 'drive.json', n_frames))


@pytest.fixture(scope='session')
def stacks():
    """Return a function that returns the bag of the outputs of a drive, written once."""
    return cache(write_outputs)


@pytest.fixture
def drive(request, drives):
    """Return a drive of 6 s, or of as many frames as the module says by N_FRAMES."""
    return drives(getattr(request.module, 'N_FRAMES', N_FRAMES))


@pytest.fixture
def stack(drive, stacks):
    """Return the bag of its outputs."""
    return stacks(drive)


@pytest.fixture(scope='session')
def nuscenes():
    """Return the scenes of nuscenes_judge.py, and what nuscenes-devkit makes of them."""
    # nuscenes-devkit itself cannot be imported without what that replaces.
    for name in ('motmetrics', 'pyquaternion'):
        pytest.importorskip(name)
    return import_module('nuscenes_judge')


@pytest.fixture
def evaluate(drive, capsys):
    """Return a function that evaluates a bag and returns the result; it keeps the warnings."""
    def evaluated_bag(bag, *options, truth=drive, code=0):
        capsys.readouterr()
        assert main(['evaluate', str(truth), str(bag), '--json', *map(str, options)]) == code, \
            capsys.readouterr().err
        captured = capsys.readouterr()
        evaluated_bag.warnings = captured.err
        return json.loads(captured.out) if code == 0 else captured.err
    return evaluated_bag

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recordings of the real simulator, which are not part of the project; tests may be skipped."""

from paths import ROOT
import pytest

FOLDER = ROOT.parent / 'shared' / 'recordings'
RECORDINGS = sorted(FOLDER.glob('*.json'))
# Names, not a function: pytest 7 calls it for no recording, too.
each_recording = pytest.mark.parametrize('path', RECORDINGS, ids=[p.stem for p in RECORDINGS])
# By name, so that a missing file is a skipped test.
FILES = ('left_turn_cross_walk.v0.json', 'scenario.v1.json', 'ncap_noncollision.v1.json',
         'car_to_car_rear_stationary.v2.json')


def path_of(file):
    """Return the path of ``file``; the test is skipped if there is none."""
    path = FOLDER / file
    if not path.exists():
        pytest.skip(f'{path} is not here')
    return path

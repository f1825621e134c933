# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Recordings of the real simulator; tests that need one that is not here are not selected."""

from paths import ROOT
import pytest

FOLDER = ROOT.parent / 'shared' / 'recordings'
RECORDINGS = sorted(FOLDER.glob('*.json'))
# Names, not a function: pytest 7 calls it for no recording, too.
each_recording = pytest.mark.parametrize('path', RECORDINGS, ids=[p.stem for p in RECORDINGS])
# By name, so that tests of a missing file are counted.
FILES = ('left_turn_cross_walk.v0.json', 'scenario.v1.json', 'ncap_noncollision.v1.json',
         'car_to_car_rear_stationary.v2.json')


def path_of(file):
    """Return the path of the recording ``file``."""
    return FOLDER / file


_ABSENT = {file for file in FILES if not path_of(file).exists()}
_NAMES_OF_ABSENT = _ABSENT | {file.removesuffix('.json') for file in _ABSENT}


def needs_absent(item):
    """
    Return whether a test needs a recording that is not here.

    :param item: the collected test; its parameters may be names of recordings.
    """
    if not hasattr(item, 'callspec'):
        return False
    # Of a list of parameters without a value, pytest makes one test that it skips.
    if not RECORDINGS and any(marker.args[1] is RECORDINGS
                              for marker in item.iter_markers('parametrize')):
        return True
    return any(isinstance(value, str) and value in _NAMES_OF_ABSENT
               for value in item.callspec.params.values())

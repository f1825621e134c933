# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Recordings of the real simulator, where they lie beside the project; they are no part of it."""

from paths import ROOT
import pytest

FOLDER = ROOT.parent / 'shared' / 'recordings'
RECORDINGS = sorted(FOLDER.glob('*.json'))
# By name, so that tests say what they have left out where there are none.
FILES = ('left_turn_cross_walk.v0.json', 'scenario.v1.json', 'ncap_noncollision.v1.json',
         'car_to_car_rear_stationary.v2.json')


def path_of(file):
    """Return where ``file`` lies; the test is skipped if it does not."""
    path = FOLDER / file
    if not path.exists():
        pytest.skip(f'{path} is not here')
    return path

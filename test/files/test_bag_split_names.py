# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Bags as rosbag2 of Lyrical splits them: files whose names begin with their numbers."""

import json

from paths import SAMPLE
import pytest

from state_sensor_ros.commands.cli import main

N_FILES = 11


def converted(path, out, *words):
    assert main(['convert', '-q', str(path), str(out), *words]) == 0
    return json.loads(out.read_text()) if out.suffix == '.json' else out


@pytest.fixture
def split(tmp_path):
    """Write each frame to a file of its own; return their folder and the frames."""
    folder = tmp_path / 'drive_2026_05_01-12_00_00'
    folder.mkdir()
    whole = converted(SAMPLE, tmp_path / 'whole.mcap', '--end', str((N_FILES - 1) / 20))
    for number in range(N_FILES):
        part = ['--start', str(number / 20 - 0.01), '--end', str(number / 20 + 0.01)]
        converted(whole, folder / f'{number}_drive_2026_05_01-12_00_{number:02}.mcap',
                  *part[2 * (number == 0):])
    frames = converted(whole, tmp_path / 'whole.json')
    assert len(frames) == N_FILES
    return folder, frames


def test_bag_split_by_lyrical_is_read_and_repaired_in_the_order_of_its_numbers(split, tmp_path):
    folder, frames = split
    assert converted(folder, tmp_path / 'split.json') == frames
    assert main(['repair', str(folder), str(tmp_path / 'out')]) == 0
    assert converted(tmp_path / 'out', tmp_path / 'out.json') == frames
    file = next(folder.glob('3_drive_*.mcap'))
    assert converted(file, tmp_path / 'one.json') == [frames[3]]

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The memory of a conversion does not depend on the length of the recording."""

import json

from programs import peak_mb
import pytest

pytestmark = pytest.mark.thorough
# A bag: the allowance is for noise. A table: the shorter recording has two groups of rows, and the
# memory allocator takes ten to level off, below 400 MB. All rows of the longer one would take
# 1700 MB more.
GROWTH_MB = {'bag': 15.0, 'table': 200.0}


def write_recording(path, n_actors, n_frames):
    """Write actors of v1 that drive straight ahead."""
    frame = [{'name': f'car_{i}', 'position': [100.0 * i, 50.0, 10.0],
              'orientation': [0.0, 0.0, 0.0, 1.0], 'velocity': [100.0, 0.0, 0.0],
              'angular_velocity': [0.0, 0.0, 0.0], 'tags': ['vehicle'] + ['ego'] * (not i)}
             for i in range(n_actors)]
    text = json.dumps({'frame': frame}).removesuffix('}')
    with path.open('w') as file:
        for i in range(n_frames):
            file.write(f'{"," if i else "["}\n{text}, "game_time": {0.05 * i:.2f}}}')
        file.write('\n]\n')
    return path


@pytest.mark.parametrize(('name', 'options', 'n_actors', 'n_frames'), [
    ('table.parquet', (), 500, 400), ('table.csv', (), 500, 400), ('bag', (), 50, 600),
    # Longer than the predicted paths.
    ('bag', ('--outputs', 'autoware'), 50, 600)])
def test_memory_of_a_conversion_does_not_grow(tmp_path, name, options, n_actors, n_frames):
    short, long = (peak_mb(
        'convert', write_recording(tmp_path / 'in.json', n_actors, times * n_frames),
        tmp_path / name, '--force', *options) for times in (1, 5))
    assert long < short + GROWTH_MB[name.partition('.')[0]]

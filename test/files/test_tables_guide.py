# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The questions of doc/guide/tables.md, answered as the page does and by plain Python."""

import json
import math
import re

from paths import ROOT
import pytest

from state_sensor_ros.commands.cli import main

PAGE = (ROOT / 'doc' / 'guide' / 'tables.md').read_text(encoding='utf-8')
BLOCKS = dict(re.findall(r'^## ([^\n]*)\n(?:(?!^## ).)*?```python\n(.*?)```', PAGE,
                         re.MULTILINE | re.DOTALL))


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('guide')
    assert main(['synth', str(folder / 'drive.json'), '--frames', '40', '--vehicles', '12']) == 0
    assert main(['convert', str(folder / 'drive.json'), str(folder / 'drive.parquet')]) == 0
    return folder


def answer(title, library, folder, monkeypatch):
    """Run the block below a heading; return its names."""
    pytest.importorskip(library)
    monkeypatch.chdir(folder)
    [block] = [text for heading, text in BLOCKS.items() if heading.startswith(title)]
    names: dict[str, object] = {}
    exec(block, names)
    return names


def frames_of(folder):
    return json.loads((folder / 'drive.json').read_text())


def test_tables_guide_nearest_neighbor_in_duckdb(folder, monkeypatch):
    nearest = answer('The nearest', 'duckdb', folder, monkeypatch)['nearest'].fetchall()
    expected = []
    for frame in frames_of(folder):
        actors = [*frame['frame']['objects'], *frame['frame']['vehicles']]
        centers = {}
        for each in actors:
            state = each.get('state', each)
            center = state['oriented_bounding_box'][0]['center']
            centers[state['name']] = center['x'] / 100, center['y'] / 100
            if 'ego' in state['tags']:
                ego = state['name']
        distance, name = min((math.dist(center, centers[ego]), name)
                             for name, center in centers.items() if name != ego)
        expected.append((frame['game_time'], name, distance))
    assert [row[:2] for row in nearest] == [row[:2] for row in expected]
    assert [row[2] for row in nearest] == pytest.approx([row[2] for row in expected], abs=1e-6)

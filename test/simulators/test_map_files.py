# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Maps from files: of SUMO against its file read by ElementTree, and what is refused."""

import gzip
from xml.etree import ElementTree

import numpy as np
from paths import ROOT
import pytest

from state_sensor_ros import open_recording
from state_sensor_ros.commands.cli import main
from state_sensor_ros.errors import ConfigError, StateError
from state_sensor_ros.frame import MapLine
from state_sensor_ros.simulators.opening import read_map

GRID = ROOT / 'resource' / 'sumo' / 'grid.net.xml.gz'
HILL = ROOT / 'test' / 'data' / 'sumo' / 'hill.net.xml'


def lanes_of(path):
    """Return the points and the width of each lane that is a line, from the elements."""
    with (gzip.open if path.suffix == '.gz' else open)(path) as file:
        root = ElementTree.parse(file).getroot()
    return [
        ([tuple(map(float, point.split(','))) for point in lane.get('shape').split()],
         float(lane.get('width', 3.2)))
        for edge in root.iter('edge') if edge.get('function') != 'walkingarea'
        for lane in edge.iter('lane')]


@pytest.mark.parametrize('path', [GRID, HILL], ids=lambda path: path.name)
def test_map_of_sumo_has_every_lane_of_the_file(path):
    lines = read_map(str(path))
    lanes = lanes_of(path)
    assert len(lines) == len(lanes) > 4
    for line, (points, width) in zip(lines, lanes, strict=True):
        expected = np.array([(*point, 0.0)[:3] for point in points])
        assert np.allclose(line.points_xyz, expected, rtol=0, atol=1e-9)
        assert line.width == width


def test_map_of_sumo_tells_sidewalks_junctions_and_roads_apart():
    kinds = {line.kind for line in read_map(str(GRID))}
    assert {'driving', 'sidewalk', 'junction'} <= kinds
    assert '' not in kinds


@pytest.mark.parametrize(('name', 'content', 'words'), [
    ('town.txt', '', r'town\.txt.*\.net\.xml'), ('none.net.xml', None, 'no such file'),
    ('nan.net.xml', HILL.read_text().replace('shape="', 'shape="nan,nan,1 ', 1),
     r'nan\.net\.xml.*NaN.*network of SUMO'),
    ('other.net.xml.gz', 'text', r'other\.net\.xml\.gz.*network of SUMO')])
def test_map_that_is_none_is_refused_in_one_line(tmp_path, capsys, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=words):
        read_map(str(path))
    assert main(['render', str(ROOT / 'resource' / 'sample.v2.json'), str(tmp_path / 'a.png'),
                 '--map', str(path)]) == 1
    assert capsys.readouterr().err.count('\n') == 1
    assert not (tmp_path / 'a.png').exists()


def test_map_line_has_points_on_earth():
    for number in (np.nan, -np.inf, 1e10):
        with pytest.raises(StateError, match='NaN or far away'):
            MapLine('driving', np.array([[0.0, 1.0, 2.0], [0.0, number, 1.0]]))
    for shape in ((1, 3), (4, 2), (3,)):
        with pytest.raises(StateError, match='two points'):
            MapLine('driving', np.zeros(shape))


def test_map_file_of_a_conversion_is_in_the_bag(tmp_path):
    sample = str(tmp_path / 'a.json')
    assert main(['synth', sample, '--frames', '2', '-q']) == 0
    assert main(['convert', sample, str(tmp_path / 'bag'), '-p', f'map_file:={HILL}', '-q']) == 0
    with open_recording(tmp_path / 'bag') as recording:
        found = {tuple(point) for line in recording[0].map_lines for point in line.points_xyz}
    assert found == {tuple(point) for line in read_map(str(HILL)) for point in line.points_xyz}
    assert main(['convert', sample, str(tmp_path / 'plain'), '-q']) == 0
    with open_recording(tmp_path / 'plain') as recording:
        assert recording[0].map_lines == ()

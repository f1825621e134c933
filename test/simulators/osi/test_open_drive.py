# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Maps of OpenDRIVE: lanes where the formulas put them, and where another library puts them."""

import math

import numpy as np
import osi_traces
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.simulators.opening import read_map

HEAD = '<OpenDRIVE xmlns="http://www.opendrive.org"><header revMajor="1" revMinor="6"/>'
SECTION = """<laneSection s="0">
<left><lane id="1" type="driving"><width sOffset="0" a="3" b="0" c="0" d="0"/></lane></left>
<center><lane id="0" type="none"/></center>
<right><lane id="-1" type="driving"><width sOffset="0" a="4" b="0" c="0" d="0"/></lane>
<lane id="-2" type="sidewalk"><width sOffset="0" a="2" b="0.01" c="0" d="0"/></lane>
<lane id="-3" type="none"><width sOffset="0" a="5" b="0" c="0" d="0"/></lane></right></laneSection>
"""


def road(shapes, *, name='7', offset='', elevation='', sections=SECTION, junction='-1'):
    """Return a road of pieces, each 30 m long, with their beginnings."""
    geometry = ''.join(f'<geometry s="{30 * i}" x="{x}" y="{y}" hdg="{heading}" length="30">'
                       f'{shape}</geometry>' for i, (x, y, heading, shape) in enumerate(shapes))
    return (f'<road id="{name}" length="{30 * len(shapes)}" junction="{junction}">'
            f'<planView>{geometry}</planView>'
            f'<elevationProfile>{elevation}</elevationProfile>'
            f'<lanes>{offset}{sections}</lanes></road>')


def lanes_of(tmp_path, *roads):
    path = tmp_path / 'map.xodr'
    path.write_text(f'{HEAD}{"".join(roads)}</OpenDRIVE>')
    return {(line.road, line.lane_id): line for line in read_map(str(path))}


def test_opendrive_lanes_of_a_straight_road(tmp_path):
    lanes = lanes_of(tmp_path, road(
        [(10, 20, math.pi / 2, '<line/>')],
        offset='<laneOffset s="0" a="0.5" b="0" c="0" d="0"/>',
        elevation='<elevation s="0" a="1" b="0.1" c="0" d="0"/>'))
    assert {key: line.kind for key, line in lanes.items()} == {
        ('7', 1): 'driving', ('7', -1): 'driving', ('7', -2): 'sidewalk'}
    # North: to the left is less x.
    for lane, t in ((1, 0.5 + 1.5), (-1, 0.5 - 2.0)):
        points = lanes['7', lane].points_xyz
        assert points[:, 0] == pytest.approx(10 - t)
        assert (points[0, 1], points[-1, 1]) == pytest.approx((20, 50))
        assert points[:, 2] == pytest.approx(1 + 0.1 * (points[:, 1] - 20))
    walk = lanes['7', -2]
    along = walk.points_xyz[:, 1] - 20
    assert walk.points_xyz[:, 0] == pytest.approx(10 - 0.5 + 4 + (2 + 0.01 * along) / 2)
    assert (lanes['7', -1].width, walk.width) == pytest.approx((4.0, 2.15))


def test_opendrive_arcs_are_circles(tmp_path):
    lanes = lanes_of(tmp_path, road([(0, 0, 0, '<arc curvature="0.05"/>')]))
    for lane, t in ((1, 1.5), (-1, -2.0)):
        x, y, _ = lanes['7', lane].points_xyz.T
        assert np.hypot(x, y - 20.0) == pytest.approx(20.0 - t, abs=1e-9)
    # It ends after 1.5 rad.
    assert math.atan2(*(lanes['7', 1].points_xyz[-1, :2] - (0, 20)) * (1, -1)) == \
        pytest.approx(1.5)


def test_opendrive_spirals_are_integrals_of_their_curvature(tmp_path):
    lanes = lanes_of(tmp_path, road([(0, 0, 0.3, '<spiral curvStart="-0.1" curvEnd="0.3"/>')]))
    s = np.linspace(0.0, 30.0, 3_000_001)
    heading = 0.3 - 0.1 * s + 0.4 / 60.0 * s * s
    middle = np.stack((np.cos(heading), np.sin(heading)), 1)
    end = (middle[:-1] + middle[1:]).sum(axis=0) / 2.0 * (s[1] - s[0])
    left = np.array([-math.sin(heading[-1]), math.cos(heading[-1])])
    assert lanes['7', 1].points_xyz[-1, :2] == pytest.approx(end + 1.5 * left, abs=1e-6)


@pytest.mark.parametrize('shape', [
    '<poly3 a="0" b="0" c="0.02" d="-0.0003"/>',
    ('<paramPoly3 pRange="arcLength" aU="0" bU="1" cU="0" dU="0" '
     'aV="0" bV="0" cV="0.02" dV="-0.0003"/>'),
    ('<paramPoly3 pRange="normalized" aU="0" bU="30" cU="0" dU="0" '
     'aV="0" bV="0" cV="18" dV="-8.1"/>')])
def test_opendrive_polynomials(tmp_path, shape):
    lanes = lanes_of(tmp_path, road([(0, 0, 0, shape)]))
    points = lanes['7', -1].points_xyz
    # Each point is 2 m to the right of the curve.
    u = np.linspace(-1.0, 31.0, 64001)
    curve = np.stack((u, 0.02 * u ** 2 - 0.0003 * u ** 3), 1)
    for x, y, _ in points:
        assert np.hypot(*(curve - (x, y)).T).min() == pytest.approx(2.0, abs=1e-4)


def test_opendrive_lanes_are_those_of_another_library(tmp_path):
    network = pytest.importorskip('pyxodr_omega_prime.road_objects.network')
    lanes = lanes_of(
        tmp_path, road([(0, 0, 0.3, '<line/>'), (28.66, 8.87, 0.3, '<arc curvature="0.01"/>')],
                       offset='<laneOffset s="0" a="0" b="0.02" c="0" d="0"/>'),
        road([(100, 0, 0, '<spiral curvStart="0" curvEnd="0.04"/>')], name='8', junction='1'))
    other = network.RoadNetwork(str(tmp_path / 'map.xodr'), resolution=0.1)
    n_compared = 0
    for each in other.get_roads():
        for lane in (lane for section in each.lane_sections for lane in section.lanes):
            if (line := lanes.get((str(each.id), int(lane.id)))) is not None:
                n_compared += 1
                found = np.asarray(lane.boundary_line), np.asarray(lane.lane_reference_line)
                n_points = min(map(len, found))
                middle = (found[0][:n_points] + found[1][:n_points])[:, :2] / 2.0
                for point in line.points_xyz[:, :2]:
                    assert np.hypot(*(middle - point).T).min() < 0.1
    assert n_compared == len(lanes) == 6


def test_opendrive_road_of_a_lane_state_is_in_the_map(tmp_path):
    lanes = lanes_of(tmp_path, road([(0, 0, 0, '<line/>')]), road(
        [(0, 50, 0, '<line/>')], name='A9'))
    for name in ('7', 'A9'):
        first = osi_traces.ground_truth(0.0, objects=2)
        osi_traces.add_lanes(first, n_lanes=2, road=name)
        path = osi_traces.write_plain(tmp_path / f'{name}_gt_.osi', [first])
        with sensor.open_recording(path) as recording:
            [frame] = recording
        for (road_id, _, lane_id) in frame.lanes.ids.tolist():
            own = frame.lanes.road_names.get(road_id, str(road_id))
            assert lanes[own, lane_id].road == name


LINE = '<line/>'


@pytest.mark.parametrize(('text', 'reason'), [
    ('', 'no element found'), ('<?xml version="1.0" encoding="utf-h"?><a/>', 'utf-h'),
    ('<a/>', 'an element <a>'), (f'{HEAD}</OpenDRIVE>', 'no lanes'),
    (f'{HEAD}{road([(0, 0, 0, "<banana/>")])}</OpenDRIVE>', 'road 7: a geometry of banana'),
    (f'{HEAD}{road([("nan", 0, 0, LINE)])}</OpenDRIVE>', 'road 7: <geometry> with x nan'),
    (f'{HEAD}{road([])}</OpenDRIVE>', 'road 7: no geometry'),
    (f'{HEAD}{road([(0, 0, 0, LINE)])}</OpenDRIVE>'.replace('length="30"', 'length="1e12"'),
     'road 7: a geometry of 1e+12 m'),
    (f'{HEAD}{road([(0, 0, 0, """<arc curvature="1e308"/>""")])}</OpenDRIVE>',
     'road 7: a point that is NaN or far away'),
    *[(f'{HEAD}{road([(0, 0, 0, LINE)])}</OpenDRIVE>'.replace(old, new),
       'road 7: a point that is NaN or far away')
      for old, new in (('a="4"', 'a="1e308"'), ('y="0"', 'y="1e10"'))],
    (f'{HEAD}{road([(0, 0, 0, LINE)])}</OpenDRIVE>'.replace('id="-2"', 'id="-1e300"'),
     'road 7: a lane -1e+300'),
    ('<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">' + ''.join(
        f'<!ENTITY {chr(c + 1)} "{f"&{chr(c)};" * 10}">' for c in range(98, 110))
     + ']><OpenDRIVE>&n;</OpenDRIVE>', '')])
def test_opendrive_that_cannot_be_read_is_one_line(tmp_path, capsys, text, reason):
    path = tmp_path / 'map.xodr'
    path.write_text(text)
    trace = osi_traces.write_plain(tmp_path / 'a_gt_.osi', osi_traces.drive(3))
    assert main(['convert', str(trace), str(tmp_path / 'o.mcap'), '-p', f'map_file:={path}']) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f'error: {path}: found ')
    assert line.endswith('; expected an OpenDRIVE map')
    assert reason in line

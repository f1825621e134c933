# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Lanes under the tracks: their outlines, and where they are drawn."""

from dataclasses import replace
import io
import re

from drawn_scenes import Agent, frame, SMALL
import numpy as np
from PIL import Image
import pytest

from state_sensor_ros.drawing.animation import write_animation
from state_sensor_ros.drawing.film import write_gif
from state_sensor_ros.drawing.picture import write_picture
from state_sensor_ros.drawing.scene import Area, bands_of, SceneBuilder
from state_sensor_ros.drawing.style import PageSize, PictureStyle, ROADS
from state_sensor_ros.frame import MapLine


def line(*points, kind='driving', width=4.0):
    return MapLine(kind, np.array([(x, y, 0.0) for x, y in points]), width)


def scene_of(*lines, given=()):
    builder = SceneBuilder('ego', given)
    for k in range(5):
        builder.add(frame(k / 10, Agent('a', 2.0 * k, speed=20.0)))
    last = frame(0.5, Agent('a', 10.0, speed=20.0))
    builder.add(replace(last, map_lines=tuple(lines)))
    return builder.finish()


def test_band_of_a_straight_lane_has_its_width_but_for_a_gap():
    _, [outline], _ = bands_of([line((0, 0), (10, 0))])
    assert outline == pytest.approx(np.array([(0, 1.85), (10, 1.85), (10, -1.85), (0, -1.85)]))


def test_band_keeps_its_width_in_a_bend():
    _, [outline], _ = bands_of([line((0, 0), (10, 0), (10, 10))])
    assert outline[1] == pytest.approx((8.15, 1.85))
    assert outline[4] == pytest.approx((11.85, -1.85))


def test_band_of_a_hairpin_has_no_spike():
    _, [outline], _ = bands_of([line((0, 0), (10, 0), (0, 0.001))])
    assert np.abs(outline - (5, 0)).max() < 15


def test_band_ignores_repeated_points():
    points = ((0, 0), (0, 0), (10, 0), (10, 0))
    _, [outline], _ = bands_of([line(*points)])
    assert outline == pytest.approx(bands_of([line((0, 0), (10, 0))])[1][0])
    assert bands_of([line((1, 1), (1, 1))]) == ([], [], [])


def test_bands_far_from_the_area_are_dropped():
    lines = [line((0, 0), (10, 0)), line((500, 0), (510, 0)), line((0, -500), (10, 500))]
    _, roads, _ = bands_of(lines, Area(0, 0, 100, 100))
    assert len(roads) == 2


def test_bands_tell_roads_other_lanes_and_lines_apart():
    lines = [line((0, 0), (1, 0)), line((0, 0), (1, 0), kind='sidewalk'),
             line((0, 0), (1, 0), kind='border', width=0.0)]
    assert [len(part) for part in bands_of(lines)] == [1, 1, 1]


def test_given_map_replaces_that_of_the_frames():
    own, given = line((0, 0), (1, 0)), line((0, 0), (2, 0))
    assert scene_of(own).map_lines == (own,)
    assert scene_of(own, given=(given,)).map_lines == (given,)


def colors_of(image):
    return {'#' + bytes(color[:3]).hex() for _, color in image.convert('RGB').getcolors(1 << 24)}


@pytest.mark.thorough
def test_lanes_are_in_pictures_films_and_animations():
    scene = scene_of(line((-20, 5), (20, 5)))
    style = PictureStyle('a', names=False, size=PageSize(8.0, dpi=80.0))
    drawn = {}
    for name, write in (
            ('png', lambda file: write_picture(scene, file, style)),
            ('svg', lambda file: write_picture(scene, file, style, format_='svg')),
            ('gif', lambda file: write_gif(scene, file, PictureStyle('a', size=SMALL))),
            ('html', lambda file: write_animation(scene, file, title='a'))):
        file = io.BytesIO()
        write(file)
        drawn[name] = file.getvalue()
    road = ROADS[1]
    assert road in colors_of(Image.open(io.BytesIO(drawn['png'])))
    assert f'fill: {road}' in drawn['svg'].decode()
    assert re.search(rf'"fillcolor":\s*"{road}"', drawn['html'].decode())
    assert any(abs(int(color[1:3], 16) - int(road[1:3], 16)) < 4
               and abs(int(color[5:7], 16) - int(road[5:7], 16)) < 4
               for color in colors_of(Image.open(io.BytesIO(drawn['gif']))))

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Colors of actors, as people with and without a deficiency of color vision see them."""

from itertools import combinations

from drawn_scenes import Agent, frame, scene_of
from matplotlib.colors import to_rgb
import numpy as np
import pytest

from state_sensor_ros.drawing.marks import colors_of, speed_range, SPEEDS
from state_sensor_ros.drawing.style import (
    ACTORS,
    BY_ACTOR,
    BY_SPEED,
    EGO,
    OBJECT,
    PEDESTRIAN,
    UNKNOWN,
)
from state_sensor_ros.frame import KIND_OBJECT

XYZ_FROM_RGB = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                         [0.0193339, 0.1191920, 0.9503041]])
WHITE = XYZ_FROM_RGB.sum(axis=1)
# On linear RGB. Machado, Oliveira, Fernandes 2009, severity 1; and Vienot, Brettel, Mollon 1999.
VISIONS = {
    'normal': np.eye(3),
    'deuteranopia': np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]]),
    'deuteranopia of Vienot': np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0],
                                        [-0.02234, 0.02234, 1.0]]),
    'protanopia': np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]])}


def lab_of(color, vision):
    """Return CIE L*a*b* of a color, D65, as seen by a vision."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = XYZ_FROM_RGB @ np.clip(vision @ linear, 0.0, 1.0) / WHITE
    f = np.where(seen > 216 / 24389, np.cbrt(seen), (24389 / 27 * seen + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(first, second):
    """Return the difference of two colors (Sharma, Wu, Dalal 2005)."""
    mean_c = (np.hypot(*first[1:]) + np.hypot(*second[1:])) / 2
    stretch = 1.5 - 0.5 * np.sqrt(mean_c ** 7 / (mean_c ** 7 + 25.0 ** 7))
    (l1, a1, b1), (l2, a2, b2) = (lab * (1.0, stretch, 1.0) for lab in (first, second))
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    d_l, d_c, d_h = l2 - l1, c2 - c1, 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))
    mean_l, c, h = (l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = 1 - 0.17 * np.cos(np.radians(h - 30)) + 0.24 * np.cos(np.radians(2 * h)) \
        + 0.32 * np.cos(np.radians(3 * h + 6)) - 0.2 * np.cos(np.radians(4 * h - 63))
    s_l = 1 + 0.015 * (mean_l - 50) ** 2 / np.sqrt(20 + (mean_l - 50) ** 2)
    s_c, s_h = 1 + 0.045 * c, 1 + 0.015 * c * t
    r = -2 * np.sqrt(c ** 7 / (c ** 7 + 25.0 ** 7)) * np.sin(
        np.radians(60 * np.exp(-((h - 275) / 25) ** 2)))
    x, y, z = d_l / s_l, d_c / s_c, d_h / s_h
    return np.sqrt(x * x + y * y + z * z + r * y * z)


@pytest.mark.parametrize(('first', 'second', 'difference'), [
    ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
    ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0),
    ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
    ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082)])
def test_palette_differences_are_those_that_are_published(first, second, difference):
    assert ciede2000(np.array(first), np.array(second)) == pytest.approx(difference, abs=1e-4)


@pytest.mark.parametrize('vision', VISIONS)
def test_palette_colors_can_be_distinguished(vision):
    colors = {color: lab_of(color, VISIONS[vision])
              for color in (*ACTORS, EGO, OBJECT, PEDESTRIAN, UNKNOWN)}
    differences = {(first, second): ciede2000(colors[first], colors[second])
                   for first, second in combinations(colors, 2)}
    assert min(differences.values()) >= 12.0, min(differences, key=differences.get)


def colors_at(scene, samples, coloring):
    return colors_of(scene, scene.actor[samples], scene.speed[samples], coloring)


def test_palette_by_speed_is_a_scale():
    scene = scene_of(frame(0.0, Agent('a', speed=12.0), Agent('b', speed=18.0),
                           Agent('c', speed=np.nan)))
    assert speed_range(scene) == (10.0, 20.0)
    np.testing.assert_allclose(colors_at(scene, slice(0, 3), BY_SPEED), [
        SPEEDS(0.2), SPEEDS(0.8), (*to_rgb(UNKNOWN), 1.0)], atol=0.01)


def test_palette_by_actor_keeps_ego_and_objects_apart():
    scene = scene_of(frame(0.0, Agent('hero', tags=('ego',)), Agent('a'), Agent('b'),
                           Agent('cone', kind=KIND_OBJECT)))
    np.testing.assert_allclose(colors_at(scene, slice(0, 4), BY_ACTOR)[:, :3], [
        to_rgb(color) for color in (EGO, ACTORS[0], ACTORS[1], OBJECT)])


def test_palette_by_actor_colors_vehicles_in_turn_and_many_by_their_class():
    for number, expected in ((len(ACTORS), ACTORS), (len(ACTORS) + 1, ACTORS[:1])):
        vehicles = [Agent(f'v{i}') for i in range(number)]
        scene = scene_of(frame(0.0, Agent('cone', kind=KIND_OBJECT), *vehicles))
        colors = colors_at(scene, slice(1, None), BY_ACTOR)
        np.testing.assert_allclose(colors[:, :3], np.broadcast_to(
            [to_rgb(color) for color in expected], (number, 3)))

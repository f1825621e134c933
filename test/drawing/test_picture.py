# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Positions and colours of what is in a picture."""

import io

from drawn_scenes import Agent, box, frame, invalid_scenes, ride, scene_of
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
import numpy as np
from PIL import Image
import pytest

from state_sensor_ros.drawing.layers import draw_scale, round_length
from state_sensor_ros.drawing.palette import (
    ACTORS,
    BY_ACTOR,
    BY_SPEED,
    colors_of,
    EGO,
    OBJECT,
    speed_range,
    SPEEDS,
    UNKNOWN,
)
from state_sensor_ros.drawing.picture import write_picture
from state_sensor_ros.frame import KIND_OBJECT


def drawn(scene, **options):
    """Return the picture: (height, width, 3) 0..255."""
    file = io.BytesIO()
    write_picture(scene, file, title='test', **options)
    return np.asarray(Image.open(file).convert('RGB')).astype(int)


def spots(picture, color):
    """Return the pixels of a colour: (n, 2), from the left and from the top."""
    target = np.round(255 * np.array(to_rgb(color)))
    rows, columns = np.nonzero((np.abs(picture - target) <= 2).all(axis=2))
    return np.stack([columns, rows], axis=-1)


def standing(x, y, yaw=0.0):
    """Return a scene of an ego with a box of 8 x 4 m at x, y within a square of cars."""
    half = yaw / 2
    where = box(0, (x, y, 1.0), (0, 0, np.sin(half), np.cos(half)), (8.0, 4.0, 2.0))
    corners = [Agent(f'{i}', *at) for i, at in enumerate(
        [(-20, -20), (20, -20), (-20, 20), (20, 20)])]
    return scene_of(frame(0.0, Agent('hero', x, y, yaw, tags=('ego',)), *corners, boxes=where))


def ego_box(picture):
    """Return the extents of the box of the ego: the mark in the legend is above it."""
    at = spots(picture, EGO)
    at = at[at[:, 1] > 130]
    return at.min(axis=0), at.max(axis=0)


def test_picture_shows_the_box_where_it_is_in_metres():
    low, high = ego_box(drawn(standing(0.0, 0.0)))
    moved_low, moved_high = ego_box(drawn(standing(10.0, 6.0)))
    # x to the right, y up, both at the same scale.
    pixels_per_m = (moved_low + moved_high - low - high) / 2 / (10.0, -6.0)
    assert pixels_per_m[0] == pytest.approx(pixels_per_m[1], rel=0.02)
    # The dark edges take a few pixels of the box.
    assert high - low + 4 == pytest.approx(pixels_per_m * (8.0, 4.0), rel=0.05)


def test_picture_turns_the_box_with_the_actor():
    low, high = ego_box(drawn(standing(0.0, 0.0, np.pi / 2)))
    width, height = high - low + 1
    assert height / width == pytest.approx(2.0, rel=0.1)


def test_picture_at_another_time_shows_the_boxes_then():
    scene = scene_of(*ride(40))
    begin, end = (ego_box(drawn(scene, at_s=at, coloring=BY_SPEED)) for at in (0.0, None))
    assert end[1][0] > begin[1][0] + 100


def test_picture_marks_lane_changes_beside_the_track():
    def recording(flag):
        return scene_of(*(frame(float(i), Agent(
            'hero', 10.0 * i, speed=10.0, tags=('ego',), lane=(1, 0, -1),
            change=flag if i == 2 else '')) for i in range(5)))
    plain, left, right = (drawn(recording(flag)) for flag in ('', 'left', 'right'))
    assert left.shape == plain.shape
    map_rows = slice(130, 500)
    for marked in (left, right):
        assert (marked[map_rows] != plain[map_rows]).any(axis=2).sum() > 60
    assert (left[map_rows] != right[map_rows]).any()


def test_picture_of_a_wide_scene_has_a_close_up():
    def wide(extent):
        drive = [Agent('hero', extent * i / 9, speed=extent / 9, tags=('ego',))
                 for i in range(10)]
        return scene_of(*(frame(float(i), hero) for i, hero in enumerate(drive)))
    assert drawn(wide(2000.0)).shape[0] > drawn(wide(100.0)).shape[0]


@pytest.mark.parametrize('scene', [
    scene_of(), scene_of(frame(1.0)), scene_of(frame(1.0, Agent('a', x=np.nan))),
    scene_of(frame(1.0, Agent('cone', kind=KIND_OBJECT))),
    scene_of(frame(1.0, Agent('a', speed=np.nan)), frame(2.0, Agent('a', speed=np.nan))),
    scene_of(frame(1.0, Agent('<$x^', tags=('ego',))), frame(2.0, Agent('$\\bad{'))),
    *invalid_scenes()])
@pytest.mark.filterwarnings('error::RuntimeWarning')
@pytest.mark.parametrize('coloring', [BY_SPEED, BY_ACTOR])
def test_picture_of_invalid_scenes_is_drawn(scene, coloring):
    assert drawn(scene, coloring=coloring).shape[1] == 1650


def test_picture_of_an_empty_scene_says_so():
    empty, one_actor = drawn(scene_of()), drawn(scene_of(frame(1.0, Agent('a'))))
    assert len(spots(empty, '#7b8794')) > len(spots(one_actor, '#7b8794')) / 2 > 0


def test_palette_by_speed_is_a_scale():
    scene = scene_of(frame(0.0, Agent('a', speed=12.0), Agent('b', speed=18.0),
                           Agent('c', speed=np.nan)))
    assert speed_range(scene) == (10.0, 20.0)
    np.testing.assert_allclose(colors_of(scene, slice(0, 3), BY_SPEED), [
        SPEEDS(0.2), SPEEDS(0.8), (*to_rgb(UNKNOWN), 1.0)], atol=0.01)


def test_palette_by_actor_keeps_ego_and_objects_apart():
    scene = scene_of(frame(0.0, Agent('hero', tags=('ego',)), Agent('a'), Agent('b'),
                           Agent('cone', kind=KIND_OBJECT)))
    np.testing.assert_allclose(colors_of(scene, slice(0, 4), BY_ACTOR)[:, :3], [
        to_rgb(color) for color in (EGO, ACTORS[1], ACTORS[2], OBJECT)])


@pytest.mark.parametrize(('longest', 'length'), [
    (37.0, 20.0), (50.0, 50.0), (99.0, 50.0), (1.0, 1.0), (0.34, 0.2), (1234.0, 1000.0)])
def test_layers_scale_bars_have_round_lengths(longest, length):
    assert round_length(longest) == pytest.approx(length)


@pytest.mark.parametrize(('x', 'is_left'), [(10.0, False), (90.0, True), (50.0, True)])
def test_layers_scale_bar_covers_no_actor(x, is_left):
    axes = Figure(dpi=100).subplots()
    axes.set(xlim=(0.0, 100.0), ylim=(0.0, 100.0))
    draw_scale(axes, scene_of(frame(0.0, Agent('a', x, 2.0))), inches_per_m=0.05)
    bar = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]
    assert bar
    assert all(end < 50.0 if is_left else begin > 50.0 for begin, end in bar)

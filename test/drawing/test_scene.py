# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Scenes built from frames."""

from dataclasses import replace

from drawn_scenes import Agent, box, frame, ride, scene_of
import numpy as np
import pytest

from state_sensor_ros.drawing import scene as scenes
from state_sensor_ros.drawing.marks import Mark, marks_of
from state_sensor_ros.drawing.scene import LEFT, NO_LANE, RIGHT
from state_sensor_ros.frame import DERIVED_SIZE, KIND_OBJECT


def test_scene_has_names_kinds_positions_and_speeds():
    scene = scene_of(*ride(3))
    assert scene.names == ('hero', 'other', 'cone')
    assert scene.is_ego.tolist() == [True, False, False]
    assert scene.is_vehicle.tolist() == [True, True, False]
    assert scene.time_s == pytest.approx([0.0, 0.1, 0.2])
    last = scene.samples_at(scene.instant_at(None))
    np.testing.assert_allclose(scene.position_xy[last], [(2, 0), (59.6, 4), (20, -3)], rtol=1e-6)
    np.testing.assert_allclose(scene.yaw[last], [0, np.pi, 0], rtol=1e-6)
    np.testing.assert_allclose(scene.speed[last], [10, 2, 0], rtol=1e-6)
    assert [scene.lanes[i] for i in scene.lane[last] if i != NO_LANE] == [(1, 0, -1), (1, 0, 1)]
    assert scene.facts() == ['v2', '3 frames', '0.2 s', '2 vehicles', '1 object']


def test_scene_without_a_wanted_time_is_that_of_the_last_ego_else_of_most_that_move():
    ego, car, light = Agent('e', tags=('ego',)), Agent('c', speed=1.0), Agent(
        'light', kind=KIND_OBJECT, tags=('traffic_light',))
    assert scene_of(*(frame(float(i), *actors) for i, actors in enumerate(
        [(ego, car), (ego,), (car, car), (light,)]))).instant_at(None) == 1
    assert scene_of(*(frame(float(i), *actors) for i, actors in enumerate(
        [(car,), (car,), (light, light), ()]))).instant_at(None) == 1
    assert scene_of().instant_at(None) == -1


def test_scene_leaves_out_repeats_frames_without_time_and_actors_without_pose():
    lost = frame(1.0, Agent('a'), Agent('b', x=np.nan))
    scene = scene_of(lost, lost, frame(np.nan, Agent('a')), frame(2.0, Agent('a')))
    assert scene.n_frames == 4
    assert scene.time_s.tolist() == [0.0, 1.0]
    assert scene.actor.tolist() == [0, 0]


def test_scene_time_continues_after_a_restart():
    scene = scene_of(*(frame(t, Agent('a')) for t in (7.0, 8.0, 0.0, 0.5)))
    assert scene.time_s == pytest.approx([0.0, 1.0, 1.001, 1.501])


def test_scene_time_continues_where_another_frame_has_the_same_time():
    scene = scene_of(*(replace(frame(0.0, Agent('a')), identity=i) for i in (1, 1, 2, 3)))
    assert scene.time_s == pytest.approx([0.0, 0.001, 0.002])


def test_scene_outlines_are_at_the_actors():
    boxed = box(0, (3.0, 4.0, 0.5), (0, 0, np.sqrt(0.5), np.sqrt(0.5)), (4.0, 2.0, 1.0))
    scene = scene_of(frame(0.0, Agent('car', 3.0, 4.0, np.pi / 2), boxes=boxed),
                     frame(1.0, Agent('car', 13.0, 4.0, 0.0)))
    assert scene.has_size.tolist() == [True]
    # Heading along y: the front left corner is at smaller x and larger y.
    np.testing.assert_allclose(scene.outlines(scene.samples_at(0))[0],
                               [(2, 6), (4, 6), (4, 2), (2, 2)], atol=1e-6)
    np.testing.assert_allclose(scene.outlines(scene.samples_at(1))[0],
                               [(15, 5), (15, 3), (11, 3), (11, 5)], atol=1e-6)


def test_scene_size_of_a_box_can_be_assumed():
    boxed = box(0, (0.0, 0.0, 0.5), (0, 0, 0, 1), (6.0, 2.0, 1.0))
    scene = scene_of(replace(frame(0.0, Agent('car'), boxes=boxed),
                             derived=np.array([DERIVED_SIZE], np.uint8)))
    assert scene.has_size.tolist() == [False]
    assert np.ptp(scene.footprint_xy[0], axis=0) == pytest.approx((6.0, 2.0))
    assert marks_of(scene, scene.samples_at(0)) == {Mark.VEHICLE, Mark.ASSUMED}


def changes(*states):
    """Return when and to which side one actor changes lanes."""
    scene = scene_of(*(frame(float(i), Agent('a', x=float(i), lane=lane))
                       for i, lane in enumerate(states)))
    return [(change.time_s, change.side, change.position_xy) for change in scene.lane_changes]


@pytest.mark.parametrize(('before', 'after', 'side'), [
    (-2, -1, LEFT), (-1, -2, RIGHT), (1, 2, RIGHT), (2, 1, LEFT), (-1, 1, LEFT), (1, -1, LEFT)])
def test_scene_lane_change_is_where_the_lane_is_another(before, after, side):
    assert changes((1, 0, before), (1, 0, after)) == [(1.0, side, (1.0, 0.0))]


@pytest.mark.parametrize(('name', 'limit'), [('MAX_INSTANTS', 50), ('MAX_SAMPLES', 150)])
def test_scene_of_a_long_recording_is_thinned_evenly(monkeypatch, name, limit):
    monkeypatch.setattr(scenes, name, limit)
    scene = scene_of(*ride(400))
    assert scene.n_frames == 400
    assert 25 <= len(scene.time_s) <= 51
    assert scene.time_s[0] == 0.0
    assert scene.duration_s == pytest.approx(39.9)
    steps = np.diff(scene.time_s)
    assert steps[:-1] == pytest.approx(steps[0])
    assert len(scene.actor) == 3 * len(scene.time_s) == scene.row_start[-1]


def test_scene_of_nothing_is_empty():
    for scene in (scene_of(), scene_of(frame(3.0))):
        assert scene.duration_s == 0.0
        assert scene.outlines(scene.samples_at(scene.instant_at(None))).shape == (0, 4, 2)

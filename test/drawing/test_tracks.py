# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tracks of scenes and their interruptions."""

from drawn_scenes import Agent, frame, ride, scene_of
import numpy as np
import pytest

from state_sensor_ros.drawing.tracks import (
    actors_in_motion,
    along,
    BREAK,
    polylines,
    segments,
)
from state_sensor_ros.frame import KIND_OBJECT


def joined(scene):
    """Return the x of begin and end of each segment."""
    begin, end = segments(scene, np.ones(len(scene.names), bool))
    return [(float(scene.position_xy[b, 0]), float(scene.position_xy[e, 0]))
            for b, e in zip(begin, end, strict=True)]


def test_tracks_join_consecutive_instants():
    assert joined(scene_of(*(frame(t, Agent('a', x=2 * t, speed=2.0)) for t in (0., 1., 2.)))) \
        == [(0.0, 2.0), (2.0, 4.0)]


def test_tracks_are_interrupted_where_an_actor_was_absent():
    other = Agent('b', x=100.0)
    scene = scene_of(frame(0.0, Agent('a'), other), frame(1.0, other),
                     frame(2.0, Agent('a', x=1.0), other))
    assert (0.0, 1.0) not in joined(scene)
    assert joined(scene) == [(100.0, 100.0)] * 2


@pytest.mark.parametrize(('distance', 'is_joined'), [(22.0, True), (24.0, False)])
def test_tracks_are_interrupted_where_an_actor_jumps(distance, is_joined):
    scene = scene_of(frame(0.0, Agent('a', speed=10.0)),
                     frame(1.0, Agent('a', x=distance, speed=10.0)))
    assert bool(joined(scene)) is is_joined


def test_tracks_of_unknown_speed_never_jump():
    scene = scene_of(frame(0.0, Agent('a', speed=np.nan)),
                     frame(1.0, Agent('a', x=500.0, speed=np.nan)))
    assert joined(scene) == [(0.0, 500.0)]


def test_tracks_are_of_vehicles_and_moving_objects():
    def at(t, speed):
        return frame(t, Agent('parked'), Agent('walker', speed=speed, kind=KIND_OBJECT),
                     Agent('cone', kind=KIND_OBJECT))
    assert actors_in_motion(scene_of(at(0.0, 0.0), at(1.0, 1.2))).tolist() == [True, True, False]


def test_tracks_as_lines_are_interrupted_between_actors():
    scene = scene_of(*ride(5))
    lines = polylines(scene, np.array([True, True, False]), 100)
    assert along(scene.position_xy[:, 0], lines) == pytest.approx(
        [0, 1, 2, 3, 4, np.nan, 60, 59.8, 59.6, 59.4, 59.2], nan_ok=True)


def test_tracks_as_lines_keep_their_ends_when_thinned():
    scene = scene_of(*ride(1000))
    lines = polylines(scene, np.array([True, True, False]), 100)
    assert 90 <= len(lines) <= 110
    assert np.count_nonzero(lines == BREAK) == 1
    x = along(scene.position_xy[:, 0], lines)
    i_break = int(np.flatnonzero(np.isnan(x))[0])
    assert x[[0, i_break - 1, i_break + 1, -1]] == pytest.approx(
        [0.0, 999.0, 60.0, 60.0 - 199.8], rel=1e-5)


def test_tracks_without_actors_are_empty():
    scene = scene_of()
    assert not len(polylines(scene, np.zeros(0, bool), 10))
    assert not len(segments(scene, np.zeros(0, bool))[0])

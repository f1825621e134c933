# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tracks of scenes and their interruptions."""

from budgets import one_of
from drawn_scenes import Agent, frame, scene_of
import numpy as np
import pytest

from state_sensor_ros.drawing.scene import TOLERANCE
from state_sensor_ros.frame import KIND_OBJECT


def joined(scene):
    """Return the x of begin and end of each segment."""
    begin, end = scene.tracks.segments(np.ones(len(scene.names), bool))
    x = scene.tracks.position_xy[:, 0].tolist()
    return [(x[b], x[e]) for b, e in zip(begin, end, strict=True)]


def test_tracks_join_consecutive_instants():
    assert joined(scene_of(*(frame(t, Agent('a', x=2 * t, speed=2.0)) for t in (0., 1., 2.)))) \
        == [(0.0, 4.0)]


def test_tracks_are_interrupted_where_an_actor_was_absent():
    other = Agent('b', x=100.0)
    scene = scene_of(frame(0.0, Agent('a'), other), frame(1.0, other),
                     frame(2.0, Agent('a', x=1.0), other))
    assert (0.0, 1.0) not in joined(scene)
    assert joined(scene) == [(100.0, 100.0)]


@pytest.mark.parametrize(('distance', 'is_joined'), [(150.0, True), (151.0, False)])
def test_tracks_are_interrupted_where_an_actor_jumps(distance, is_joined):
    scene = scene_of(frame(0.0, Agent('a', speed=10.0)),
                     frame(1.0, Agent('a', x=distance, speed=10.0)))
    assert bool(joined(scene)) is is_joined
    assert ('1 jump beyond 150 m/s' in scene.facts()) is not is_joined


def test_tracks_are_of_vehicles_and_moving_objects():
    def at(t, speed):
        return frame(t, Agent('parked'), Agent('walker', speed=speed, kind=KIND_OBJECT),
                     Agent('cone', kind=KIND_OBJECT))
    assert scene_of(at(0.0, 0.0), at(1.0, 1.2)).moves.tolist() == [True, True, False]


def distances(points, begin, end):
    """Return the distance of each point from the nearest of some segments."""
    way = end - begin
    length2 = np.maximum(np.einsum('ij,ij->i', way, way), 1e-12)
    found = []
    for point in points:
        share = np.clip(np.einsum('ij,ij->i', point - begin, way) / length2, 0.0, 1.0)
        found.append(np.linalg.norm(begin + share[:, None] * way - point, axis=1).min())
    return np.array(found)


def wandering(random, n_frames, speed):
    """Return positions and speeds of an actor that turns, stops and drives back and forth."""
    turn = np.cumsum(random.normal(0.0, 0.05, n_frames))
    pace = speed * np.sin(0.0045 * np.arange(n_frames))
    step = 0.05 * pace[:, None] * np.column_stack((np.cos(turn), np.sin(turn)))
    return 1000.0 + np.cumsum(step, axis=0), np.abs(pace)


@pytest.mark.parametrize('speed', one_of([8.0, 0.5, 40.0]))
def test_tracks_stay_near_all_positions_and_speeds(speed):
    random = np.random.default_rng(int(speed))
    position, pace = wandering(random, 800, speed)
    position += random.normal(0.0, 0.02, position.shape)
    tracks = scene_of(*(frame(0.05 * i, Agent('a', x=x, y=y, speed=v)) for i, ((x, y), v)
                        in enumerate(zip(position, pace, strict=True)))).tracks
    assert len(tracks.actor) < 400
    begin, end = tracks.segments(np.ones(1, bool))
    far = distances(position, tracks.position_xy[begin].astype(float),
                    tracks.position_xy[end].astype(float))
    assert far.max() <= 2 ** 0.5 * TOLERANCE < 0.2
    known = np.interp(0.05 * np.arange(800), tracks.time_s, tracks.speed)
    assert np.abs(known - pace).max() < 0.2


def test_tracks_of_a_straight_ride_have_two_vertices():
    tracks = scene_of(*(frame(0.05 * i, Agent('a', x=i, speed=20.0))
                        for i in range(500))).tracks
    assert tracks.position_xy[:, 0].tolist() == [0.0, 499.0]

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames and scenes for the tests of drawing, made by hand."""

from contextlib import closing
from dataclasses import dataclass

import numpy as np

from state_sensor_ros.drawing.scene import SceneBuilder
from state_sensor_ros.drawing.style import PageSize
from state_sensor_ros.files import open_any, ReadOptions
from state_sensor_ros.frame import Boxes, Frame, KIND_OBJECT, KIND_VEHICLE, Lanes

# Of films and pictures whose size is not the point.
SMALL = PageSize(4.0, 3.0, 100.0)


@dataclass
class Agent:
    """One actor of a frame; meters, rad, m/s. ``lane`` road, section, lane."""

    name: str
    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0
    speed: float = 0.0
    tags: tuple = ()
    kind: int = KIND_VEHICLE
    lane: tuple = ()


def frame(game_time, *actors, boxes=None):
    n = len(actors)
    kinematics = np.zeros((n, 13))
    for row, actor in zip(kinematics, actors, strict=True):
        row[0:2] = actor.x, actor.y
        row[5:7] = np.sin(actor.yaw / 2), np.cos(actor.yaw / 2)
        row[7:9] = actor.speed * np.cos(actor.yaw), actor.speed * np.sin(actor.yaw)
    with_lane = [i for i, actor in enumerate(actors) if actor.lane]
    lanes = Lanes(
        np.array(with_lane, np.int64), np.zeros((len(with_lane), 2), np.bool_),
        np.array([actors[i].lane for i in with_lane], np.int32).reshape(-1, 3),
        np.zeros(len(with_lane)))
    return Frame('v2', game_time, 0, 0, tuple(actor.name for actor in actors),
                 np.array([actor.kind for actor in actors], np.uint8),
                 tuple(actor.tags for actor in actors), kinematics, lanes, boxes)


def scene_of(*frames, ego_tag='ego'):
    builder = SceneBuilder(ego_tag)
    for one in frames:
        builder.add(one)
    return builder.finish()


def scene_of_file(path):
    """Return the scene of a recording."""
    builder = SceneBuilder('ego')
    with closing(open_any(str(path), ReadOptions())) as recording:
        for each in recording.frames():
            builder.add(each)
    return builder.finish()


def invalid_scenes():
    """Return scenes with invalid numbers: unknown positions, too large positions and sizes."""
    far = {'x': 1e300, 'speed': 1e300, 'yaw': 1.0}
    return [scene_of(frame(0.0, Agent('a', x=x, lane=(1, 0, 2))),
                     frame(1.0, Agent('a', x=x, lane=(1, 0, 1))), frame(2.0, Agent('a')))
            for x in (np.nan, 1e300, -1e12)] + [
        scene_of(*(frame(float(i), Agent('a', **far), Agent('b', x=i)) for i in range(3))),
        scene_of(frame(0.0, Agent('a'), boxes=box(0, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0),
                                                  (1e300,) * 3)))]


def box(actor, center, orientation_xyzw, size):
    return Boxes(np.array([actor]), ('Body',),
                 np.array([(*center, *orientation_xyzw, *size, 1.0, 1.0, 1.0)]))


def ride(n_frames=40, *, period_s=0.1, speed=10.0):
    """Return an ego along x at ``speed`` from x = 0, a car that meets it, and a cone."""
    return [frame(5.0 + i * period_s,
                  Agent('hero', speed * i * period_s, speed=speed, tags=('EGO', 'vehicle'),
                        lane=(1, 0, -1)),
                  Agent('other', 60.0 - 2 * i * period_s, 4.0, np.pi, 2.0, lane=(1, 0, 1)),
                  Agent('cone', 20.0, -3.0, kind=KIND_OBJECT))
            for i in range(n_frames)]

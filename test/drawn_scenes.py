# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Frames and scenes for the tests of drawing, made by hand."""

from dataclasses import dataclass

import numpy as np

from state_sensor_ros.drawing.scene import SceneBuilder
from state_sensor_ros.frame import Boxes, Frame, KIND_OBJECT, KIND_VEHICLE, Lanes


@dataclass
class Someone:
    """One actor of a frame; metres, rad, m/s. ``lane`` road, section, lane; ``change`` a side."""

    name: str
    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0
    speed: float = 0.0
    tags: tuple = ()
    kind: int = KIND_VEHICLE
    lane: tuple = ()
    change: str = ''


def frame(game_time, *people, boxes=None):
    n = len(people)
    kinematics = np.zeros((n, 13))
    for row, one in zip(kinematics, people, strict=True):
        row[0:2] = one.x, one.y
        row[5:7] = np.sin(one.yaw / 2), np.cos(one.yaw / 2)
        row[7:9] = one.speed * np.cos(one.yaw), one.speed * np.sin(one.yaw)
    with_lane = [i for i, one in enumerate(people) if one.lane]
    column = [np.array([people[i].lane[k] for i in with_lane], np.int32) for k in range(3)]
    lanes = Lanes(
        np.array(with_lane, np.int64), np.array([people[i].change == 'left' for i in with_lane]),
        np.array([people[i].change == 'right' for i in with_lane]), *column,
        np.zeros(len(with_lane)))
    return Frame('v2', game_time, 0, 0, tuple(one.name for one in people),
                 np.array([one.kind for one in people], np.uint8),
                 tuple(one.tags for one in people), kinematics, lanes, boxes)


def scene_of(*frames, ego_tag='ego'):
    builder = SceneBuilder(ego_tag)
    for one in frames:
        builder.add(one)
    return builder.finish()


def nonsense():
    """Return scenes of what nobody can draw: no place for a lane change, and numbers too large."""
    change = {'lane': (1, 0, 2), 'change': 'left'}
    far = {'x': 1e300, 'speed': 1e300, 'yaw': 1.0}
    return [scene_of(frame(0.0, Someone('a', x=x, **change)), frame(1.0, Someone('a', **change)))
            for x in (np.nan, 1e300, -1e12)] + [
        scene_of(*(frame(float(i), Someone('a', **far), Someone('b', x=i)) for i in range(3))),
        scene_of(frame(0.0, Someone('a'), boxes=box(0, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0),
                                                    (1e300,) * 3)))]


def box(actor, centre, orientation_xyzw, size):
    return Boxes(np.array([actor]), ('Body',),
                 np.array([(*centre, *orientation_xyzw, *size, 1.0, 1.0, 1.0)]))


def ride(n_frames=40, *, period_s=0.1, speed=10.0):
    """Return an ego along x at ``speed`` from x = 0, a car that meets it, and a cone."""
    return [frame(5.0 + i * period_s,
                  Someone('hero', speed * i * period_s, speed=speed, tags=('EGO', 'vehicle'),
                          lane=(1, 0, -1)),
                  Someone('other', 60.0 - 2 * i * period_s, 4.0, np.pi, 2.0, lane=(1, 0, 1)),
                  Someone('cone', 20.0, -3.0, kind=KIND_OBJECT))
            for i in range(n_frames)]

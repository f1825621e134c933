# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Predicted paths: the motion of a body with constant velocity and yaw rate, and slerp."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from raw_actors import product, turned

from state_sensor_ros.classes import CAR, CLASSES
from state_sensor_ros.frame import FutureFrame
from state_sensor_ros.objects.predicted_paths import ConstantPaths, TIMES_S, TruePaths

PERSON = next(i for i, each in enumerate(CLASSES) if each.name == 'person')


def objects_of(poses, twists=None, classes=None):
    n_objects = len(poses)
    return SimpleNamespace(
        poses=np.array(poses, float),
        twists=np.zeros((n_objects, 6)) if twists is None else np.array(twists, float),
        classes=np.array([CAR] * n_objects if classes is None else classes))


def yawed(angle):
    return (0.0, 0.0, math.sin(angle / 2.0), math.cos(angle / 2.0))


@pytest.mark.parametrize('yaw_rate', [0.0, 1e-9, 0.3, -0.8, 2.0])
def test_constant_motion_is_its_own_integral(yaw_rate):
    start = product(yawed(0.7), (math.sin(0.1), 0.0, 0.0, math.cos(0.1)))
    velocity = np.array((6.0, -2.0, 0.5))
    paths = ConstantPaths().paths(objects_of([(1.0, 2.0, 3.0, *start)],
                                             [(*velocity, 0.0, 0.0, yaw_rate)]))
    assert paths.lengths.tolist() == [31]
    # Simpson's rule over the turning velocity.
    n_steps = 3000
    times = np.linspace(0.0, 15.0, 2 * n_steps + 1)
    cosine, sine = np.cos(yaw_rate * times), np.sin(yaw_rate * times)
    velocities = np.stack((cosine * velocity[0] - sine * velocity[1],
                           sine * velocity[0] + cosine * velocity[1],
                           np.full_like(times, velocity[2])), axis=1)
    parts = (velocities[:-1:2] + 4.0 * velocities[1::2] + velocities[2::2]) * 15.0 / n_steps / 6.0
    positions = np.concatenate(([(0.0,) * 3], parts.cumsum(axis=0))) + (1.0, 2.0, 3.0)
    for k, time_s in enumerate(TIMES_S):
        pose = paths.poses[0, k]
        assert pose[:3] == pytest.approx(positions[round(time_s / 15.0 * n_steps)], abs=1e-6)
        expected = product(yawed(yaw_rate * time_s), start)
        assert abs(pose[3:] @ expected) == pytest.approx(1.0)


def test_lengths_are_those_of_the_classes():
    maker, start = ConstantPaths(), (0.0, 0.0, 0.0, *yawed(0.0))
    for n_people in 1, 2, 0:
        classes = [CAR] + [PERSON] * n_people
        paths = maker.paths(objects_of([start] * len(classes), classes=classes))
        assert paths.lengths.tolist() == [31] + [21] * n_people
        assert paths.rows().shape == (31 + 21 * n_people, 7)


def recorded(times, names=('car',), at=lambda time_s: (time_s, 0.0, 0.0, *yawed(0.0)), lost=()):
    """Return linked frames in which all actors have the pose that ``at`` gives."""
    frames = []
    for i, time_s in enumerate(times):
        present = tuple(name for name in names if (i, name) not in lost)
        poses = np.array([at(time_s) for _ in present]).reshape(-1, 7)
        frames.append(FutureFrame(time_s, present, poses, np.ones(len(present), bool)))
        if i:
            frames[-2].following = frames[-1]
    return frames


def test_true_path_is_interpolated_by_slerp():
    # Half a turn in 10 s, of which frames show every 0.8 s only.
    frames = recorded(np.arange(0.0, 20.1, 0.8).tolist(), at=lambda time_s: (
        time_s, -2.0 * time_s, 0.0, *(math.copysign(1.0, math.sin(time_s * 5.0)) * np.array(
            yawed(math.pi * time_s / 10.0)))))
    objects = objects_of([frames[0].poses[0]])
    paths = TruePaths().paths(objects, ('car',), frames[0])
    assert paths.lengths.tolist() == [31]
    for time_s, pose in zip(TIMES_S, paths.poses[0], strict=True):
        assert pose[:3] == pytest.approx((time_s, -2.0 * time_s, 0.0))
        assert turned(tuple(pose[3:]), (1.0, 0.0, 0.0)) == pytest.approx(
            (math.cos(math.pi * time_s / 10.0), math.sin(math.pi * time_s / 10.0), 0.0))


def test_true_path_ends_where_the_actor_leaves():
    lost = {(i, 'b') for i in range(21, 40)}
    frames = recorded([0.1 * i for i in range(200)], ('a', 'b'), lost=lost)
    objects = objects_of([frames[0].poses[0]] * 2, classes=[CAR, PERSON])
    assert TruePaths().paths(objects, ('a', 'b'), frames[0]).lengths.tolist() == [31, 5]
    # Behind a jump, as after a seek, the window begins anew.
    later = TruePaths()
    later.paths(objects, ('a', 'b'), frames[0])
    assert later.paths(objects, ('a', 'b'), frames[150]).lengths.tolist() == [10, 10]

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Axes and units: cases worked by hand, then properties that hold for every motion."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
from raw_actors import turned

from state_sensor_ros.rep103 import (
    from_rep103_boxes,
    from_rep103_kinematics,
    from_rep103_road_s,
    mirrored_orientation,
    to_rep103_bodies,
    to_rep103_inputs,
    to_rep103_road_s,
    to_rep103_rotator,
    to_rep103_wheels,
)
from state_sensor_ros.rotations import (
    body_from_global,
    body_from_unit,
    global_from_body,
    quaternion_from_rpy,
)
from state_sensor_ros.settings import Settings

HALF = math.sqrt(0.5)
FULL_CM = Settings()


angles = st.floats(-math.pi, math.pi)
slopes = st.floats(-1.2, 1.2)
lengths = st.floats(-1e5, 1e5)
components = st.floats(-1.0, 1.0)


def source_rows(*, position=(0, 0, 0), orientation=(0, 0, 0, 1), velocity=(0, 0, 0),
                rate=(0, 0, 0)):
    return np.array([[*position, *orientation, *velocity, *rate]], np.float64)


def unreal_rotator(roll, pitch, yaw):
    """Go the engine's own way from a rotator to a quaternion, left-handed, degrees."""
    sr, sp, sy = (math.sin(math.radians(a) / 2) for a in (roll, pitch, yaw))
    cr, cp, cy = (math.cos(math.radians(a) / 2) for a in (roll, pitch, yaw))
    return (cr * sp * sy - sr * cp * cy, -cr * sp * cy - sr * cp * sy,
            cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy)


# By hand: one meter, one meter per second and a quarter turn on either side.

@pytest.mark.parametrize(('there', 'here'), [
    ((100, 0, 0), (1, 0, 0)),  # forward stays forward
    ((0, 100, 0), (0, -1, 0)),  # one meter right is minus one meter left
    ((0, 0, 100), (0, 0, 1))])
def test_position_and_velocity_by_axis(there, here):
    rows = to_rep103_bodies(source_rows(position=there, velocity=there), 1, FULL_CM)
    np.testing.assert_array_equal(rows[0, 0:3], here)
    np.testing.assert_array_equal(rows[0, 7:10], here)


@pytest.mark.parametrize(('there', 'here'), [
    ((1, 0, 0), (-1, 0, 0)), ((0, 1, 0), (0, 1, 0)), ((0, 0, 1), (0, 0, -1))])
def test_angular_velocity_by_axis(there, here):
    rows = to_rep103_bodies(source_rows(rate=there), 1, FULL_CM)
    np.testing.assert_array_equal(rows[0, 10:13], here)


@pytest.mark.parametrize(('there', 'here'), [
    ((HALF, 0, 0, HALF), (-HALF, 0, 0, HALF)),
    ((0, HALF, 0, HALF), (0, HALF, 0, HALF)),
    ((0, 0, HALF, HALF), (0, 0, -HALF, HALF)),  # yaw +90, right turn: -90 here
    ((0, 0, -HALF, -HALF), (0, 0, HALF, -HALF))])
def test_orientation_by_axis(there, here):
    rows = to_rep103_bodies(source_rows(orientation=there), 1, FULL_CM)
    np.testing.assert_array_equal(rows[0, 3:7], here)


def test_boxes_by_hand():
    rows = np.array([[100, 200, 300, HALF, 0, 0, HALF, 180, 140, 415, 1, 2, 3]], np.float64)
    full = to_rep103_bodies(rows, 0, FULL_CM)
    np.testing.assert_array_equal(
        full, [[1, -2, 3, -HALF, 0, 0, HALF, 1.8, 1.4, 4.15, 1, 2, 3]])
    half = to_rep103_bodies(rows, 0, Settings(obb_extents='half'))
    np.testing.assert_array_equal(half[:, 7:10], [[3.6, 2.8, 8.3]])
    np.testing.assert_array_equal(np.delete(half, [7, 8, 9], 1), np.delete(full, [7, 8, 9], 1))


def test_wheels_by_hand():
    # Front left of a v2 recording: y is negative there, and left is positive here.
    rows = np.array([[140, -78, 34, 0, HALF, 0, HALF, 29.5]], np.float64)
    np.testing.assert_array_equal(to_rep103_wheels(rows),
                                  [[1.4, 0.78, 0.34, 0, HALF, 0, HALF, 29.5]])


def test_inputs_by_hand():
    rows = np.array([[0.5, -0.31, 0.2, 90.0], [1, 1, -1, -45], [0, -1.5, 0, 0]], np.float64)
    np.testing.assert_allclose(
        to_rep103_inputs(rows),
        [[0.5, 0.31, -0.2, -math.pi / 2], [1, 1, 1, math.pi / 4], [0, 1, 0, 0]], rtol=1e-15)
    assert np.isnan(to_rep103_inputs(np.full((1, 4), np.nan))).all()


def test_road_s_by_hand():
    s = np.array([5077.2])
    assert to_rep103_road_s(s, Settings(road_s_unit='cm')).tolist() == [50.772]
    assert to_rep103_road_s(s, Settings(road_s_unit='m')).tolist() == [5077.2]
    assert from_rep103_road_s(np.array([50.772]), Settings(road_s_unit='cm')).tolist() == [5077.2]


@pytest.mark.parametrize(('roll_pitch_yaw', 'expected'), [
    ((0, 0, 90), (0, 0, -HALF, HALF)),  # to the right
    ((0, 90, 0), (0, -HALF, 0, HALF)),  # nose up is a negative pitch here
    ((90, 0, 0), (HALF, 0, 0, HALF))])  # right side down is a positive roll here
def test_rotator_by_axis(roll_pitch_yaw, expected):
    np.testing.assert_allclose(to_rep103_rotator(np.array(roll_pitch_yaw, np.float64)), expected,
                               atol=1e-15)


# Properties.

@given(st.floats(-180, 180), st.floats(-89, 89), st.floats(-180, 180))
def test_rotator_rule_equals_quaternion_rule(roll, pitch, yaw):
    by_quaternion = mirrored_orientation(np.array(unreal_rotator(roll, pitch, yaw)))
    by_angles = to_rep103_rotator(np.array([roll, pitch, yaw]))
    np.testing.assert_allclose(by_angles, by_quaternion, atol=1e-14)


@given(st.lists(lengths, min_size=13, max_size=13))
def test_there_and_back_is_the_same_float32(numbers):
    rows = np.array([numbers])
    for n_actors, back in ((1, from_rep103_kinematics),
                           (0, lambda rows: from_rep103_boxes(rows, FULL_CM))):
        single = rows.astype(np.float32).astype(np.float64)
        here = to_rep103_bodies(single, n_actors, FULL_CM)
        np.testing.assert_array_equal(back(here).astype(np.float32), single)


@given(angles, slopes, slopes, st.tuples(lengths, lengths, lengths))
def test_body_from_unit_is_the_inverse_rotation(yaw, slope, bank, vector):
    q = quaternion_from_rpy(np.array([bank, slope, yaw]))
    in_body = body_from_unit(q.tolist(), vector)
    np.testing.assert_allclose(turned(q, np.array(in_body)), vector, atol=1e-9)
    assert body_from_unit((-q).tolist(), vector) == in_body


@given(st.floats(-180, 180), st.floats(-60, 60), st.floats(-60, 60),
       st.tuples(components, components, components), st.tuples(lengths, lengths, lengths))
def test_pose_differences_equal_rotation_times_twist(yaw, pitch, roll, rate, velocity):
    # Integrated in the source's algebra: dq/dt = omega q / 2 in the world frame.
    dt = 1e-4
    q0 = np.array(unreal_rotator(roll, pitch, yaw))
    spin = np.array([[0, -rate[2], rate[1], rate[0]], [rate[2], 0, -rate[0], rate[1]],
                     [-rate[1], rate[0], 0, rate[2]], [-rate[0], -rate[1], -rate[2], 0]])
    q1 = q0 + dt / 2 * spin @ q0
    rows = to_rep103_bodies(np.vstack([
        source_rows(orientation=q0, velocity=velocity, rate=rate),
        source_rows(position=np.array(velocity) * dt, orientation=q1)]), 2, FULL_CM)
    rotations = global_from_body(rows[:, 3:7])
    twist = body_from_global(rows[:1, 3:7], rows[:1, 7:13].reshape(1, 2, 3))[0]
    moved = rows[1, 0:3] - rows[0, 0:3]
    np.testing.assert_allclose(moved, rotations[0] @ twist[0] * dt, atol=1e-9)
    turned = rotations[0].T @ rotations[1]
    turned_xyz = np.array([turned[2, 1], turned[0, 2], turned[1, 0]])
    np.testing.assert_allclose(turned_xyz, twist[1] * dt, atol=1e-7)


@given(st.floats(-180, 180), st.floats(-60, 60), st.floats(-60, 60),
       st.tuples(lengths, lengths, lengths), st.tuples(*[st.floats(1, 1000)] * 3))
def test_box_corners_are_the_mirrored_corners(yaw, pitch, roll, center, extents):
    q = unreal_rotator(roll, pitch, yaw)
    signs = list(itertools.product((-0.5, 0.5), repeat=3))
    there = {tuple(np.round((np.array(center) + turned(q, np.array(extents) * sign))
                            * (0.01, -0.01, 0.01), 6) + 0.0) for sign in signs}
    box = to_rep103_bodies(np.array([[*center, *q, *extents, 1, 1, 1]]), 0, FULL_CM)[0]
    here = {tuple(np.round(box[0:3] + turned(box[3:7], box[7:10] * sign), 6) + 0.0)
            for sign in signs}
    for corner in here:
        assert min(math.dist(corner, other) for other in there) < 1e-5
    assert len(here) == len(there) == 8

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Conversion between the simulator's axes and units and REP-103: all signs and factors of it.

The simulator is left-handed (x forward, y right, z up), in centimeters and degrees, including
wheels and lanes (doc/protocol/units.md).
"""

from __future__ import annotations

from functools import lru_cache
import math

import numpy as np

from state_sensor_ros.frame import Floats
from state_sensor_ros.rotations import quaternion_from_rpy
from state_sensor_ros.settings import Settings

_CM = 100.0
_DEG = 180.0 / math.pi

# One SI unit in the units of the simulator, with the sign of the mirror S = diag(1, -1, 1): it
# negates y of a polar vector, and x and z of a rotation, which is an axial vector.
_LENGTH = (_CM, -_CM, _CM)
_QUATERNION = (-1.0, 1.0, -1.0, 1.0)
_RATE = (-1.0, 1.0, -1.0)

# position, orientation, velocity, angular velocity
_KINEMATICS: Floats = np.array(_LENGTH + _QUATERNION + _LENGTH + _RATE)
# center, orientation, edge lengths, scale factors
_BOX: dict[str, Floats] = {
    'full': np.array((*_LENGTH, *_QUATERNION, _CM, _CM, _CM, 1.0, 1.0, 1.0)),
    'half': np.array((*_LENGTH, *_QUATERNION, _CM / 2, _CM / 2, _CM / 2, 1.0, 1.0, 1.0))}
# position, orientation, speed: + is forward in both, as +y changes its side with the handedness
_WHEEL: Floats = np.array((*_LENGTH, *_QUATERNION, 1.0))
# throttle, brake, steering wheel, steering angle
_INPUTS: Floats = np.array((1.0, 1.0, -1.0, -_DEG))
_MIRROR: Floats = np.array(_QUATERNION)
_REFLECTION: Floats = np.array((1.0, -1.0, 1.0))
_ROTATOR: Floats = np.array((_DEG, -_DEG, -_DEG))
_ROAD_S = {'cm': _CM, 'm': 1.0}


def from_rep103_kinematics(rows: Floats) -> Floats:
    """
    Undo :func:`to_rep103_bodies` for actors.

    :param rows: (N, 13) float64, REP-103, m, m/s, rad/s.
    :returns: (N, 13) float64, source, cm, cm/s, rad/s.
    """
    return rows * _KINEMATICS


def from_rep103_boxes(rows: Floats, units: Settings) -> Floats:
    """
    Undo :func:`to_rep103_bodies` for boxes.

    :param rows: (M, 13) float64, REP-103: center m, orientation, full edge lengths m, scale.
    :returns: (M, 13) float64, source, cm.
    """
    return rows * _BOX[units.obb_extents]


def to_rep103_bodies(rows: Floats, n_actors: int, units: Settings) -> Floats:
    """
    Convert poses and velocities of actors, and oriented bounding boxes.

    :param rows: (N + M, 13) float64, source: N actors, with position xyz cm, orientation xyzw,
        velocity xyz cm/s, angular velocity xyz rad/s; then M boxes, with center xyz cm,
        orientation xyzw, extents xyz cm, scale xyz.
    :param n_actors: N.
    :param units: ``obb_extents`` of the source.
    :returns: (N + M, 13) float64, REP-103: the same columns in m, m/s, rad/s, of boxes full edge
        lengths in m.
    """
    return rows / _bodies(n_actors, len(rows) - n_actors, units.obb_extents)


# Successive frames usually have the same numbers of actors and boxes.
@lru_cache(maxsize=4)
def _bodies(n_actors: int, n_boxes: int, obb_extents: str) -> Floats:
    return np.repeat((_KINEMATICS, _BOX[obb_extents]), (n_actors, n_boxes), axis=0)


def to_rep103_wheels(rows: Floats) -> Floats:
    """
    Convert wheels, which are given in the frame of their actor.

    :param rows: (W, 8) float64, source: position xyz cm, orientation xyzw, speed rad/s.
    :returns: (W, 8) float64, REP-103: position m, orientation, speed rad/s, + = forward.
    """
    return rows / _WHEEL


def from_rep103_wheels(rows: Floats) -> Floats:
    """
    Undo :func:`to_rep103_wheels`.

    :param rows: (W, 8) float64, REP-103: position m, orientation, speed rad/s.
    :returns: (W, 8) float64, source, cm.
    """
    return rows * _WHEEL


def to_rep103_inputs(rows: Floats) -> Floats:
    """
    Convert the inputs of drivers.

    Recordings have the brake as -1..0, the documentation says 0..1: its absolute value is used.

    :param rows: (N, 4) float64, source: throttle, brake, steering wheel -1..1 (+ = right),
        steering direction degrees (+ = right).
    :returns: (N, 4) float64, REP-103: throttle, brake 0..1, steering -1..1 (+ = left), steering
        angle rad (+ = left).
    """
    inputs = rows / _INPUTS
    inputs[:, 1] = np.minimum(np.abs(inputs[:, 1]), 1.0)
    return inputs


def from_rep103_inputs(rows: Floats) -> Floats:
    """
    Undo :func:`to_rep103_inputs`, except that a brake stays within 0..1.

    :param rows: (N, 4) float64, REP-103: throttle, brake, steering, steering angle rad.
    :returns: (N, 4) float64, source: + = right, degrees.
    """
    return rows * _INPUTS


def to_rep103_road_s(road_s: Floats, units: Settings) -> Floats:
    """
    Convert distances along a road.

    :param road_s: (L,) float64, in ``units.road_s_unit``.
    :param units: ``road_s_unit`` of the source.
    :returns: (L,) float64, meters.
    """
    return road_s / _ROAD_S[units.road_s_unit]


def from_rep103_road_s(road_s: Floats, units: Settings) -> Floats:
    """
    Undo :func:`to_rep103_road_s`.

    :param road_s: (L,) float64, meters.
    :returns: (L,) float64, in ``units.road_s_unit``.
    """
    return road_s * _ROAD_S[units.road_s_unit]


def mirrored_orientation(orientation_xyzw: Floats) -> Floats:
    """
    Convert rotations from one handedness to the other; the function is its own inverse.

    :param orientation_xyzw: (..., 4) float64, source or REP-103.
    :returns: (..., 4) float64, REP-103 or source.
    """
    return orientation_xyzw * _MIRROR


def mirrored_vectors(vectors_xyz: Floats) -> Floats:
    """
    Convert positions, velocities or accelerations from one handedness to the other.

    :param vectors_xyz: (..., 3) float64, any unit, source or REP-103.
    :returns: (..., 3) float64, the same unit, REP-103 or source; the function is its own inverse.
    """
    # The product of 0.0 and -1.0 is -0.0; adding 0.0 makes it 0.0.
    return vectors_xyz * _REFLECTION + 0.0


def to_rep103_rotator(roll_pitch_yaw_deg: Floats) -> Floats:
    """
    Convert rotators: + pitch raises the nose, + yaw turns right, + roll lowers the right side.

    :param roll_pitch_yaw_deg: (..., 3) float64, degrees, source.
    :returns: (..., 4) float64, orientation xyzw, REP-103, unit length.
    """
    return quaternion_from_rpy(roll_pitch_yaw_deg / _ROTATOR + 0.0)

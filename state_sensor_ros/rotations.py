# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Rotations: quaternions, matrices and angles, interpolation, vectors in axes of body and world.

Quaternions are xyzw; axes follow REP 103.
"""

from __future__ import annotations

from collections.abc import Sequence
import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
IDENTITY_XYZW = (0.0, 0.0, 0.0, 1.0)
# Below this angle, rad, linear interpolation differs from a slerp by less than 1e-13 rad.
_SMALL_ANGLE = 1e-4


def wrapped(angles: Floats) -> Floats:
    """
    Return angles in -pi..pi.

    :param angles: float64 of any shape, rad.
    """
    return (angles + math.pi) % math.tau - math.pi


def heading_of(orientation_xyzw: Sequence[float]) -> float:
    """Return the direction of the x axis of one orientation in the plane, rad."""
    x, y, z, w = orientation_xyzw
    return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def plane_rotations(angles: Floats) -> Floats:
    """Return the matrices of rotations in the plane."""
    # angles: (N,) float64, rad, counterclockwise.
    # Returns (N, 2, 2) float64.
    cosine, sine = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([cosine, -sine], axis=-1), np.stack([sine, cosine], axis=-1)],
                    axis=1)


def quaternion_from_rpy(roll_pitch_yaw: Floats) -> Floats:
    """
    Return quaternions of fixed-axis roll, pitch and yaw, in the order of REP-103.

    :param roll_pitch_yaw: (..., 3) float64, rad, REP-103.
    :returns: (..., 4) float64, orientation xyzw, unit length.
    """
    half = np.asarray(roll_pitch_yaw).reshape(-1, 3).T / 2.0
    (cr, cp, cy), (sr, sp, sy) = np.cos(half), np.sin(half)
    level, across = cp * cy, sp * sy
    turned, raised = cp * sy, sp * cy
    quaternions = np.empty((half.shape[1], 4))
    quaternions[:, 0] = sr * level - cr * across
    quaternions[:, 1] = cr * raised + sr * turned
    quaternions[:, 2] = cr * turned - sr * raised
    quaternions[:, 3] = cr * level + sr * across
    return quaternions.reshape(*np.shape(roll_pitch_yaw)[:-1], 4)


def rpy_from_quaternion(orientation_xyzw: Floats) -> Floats:
    """Undo :func:`quaternion_from_rpy`."""
    # orientation_xyzw: (..., 4) float64, of any length above zero.
    # Returns (..., 3) float64, rad: roll and yaw in -pi..pi, pitch in -pi/2..pi/2.
    x, y, z, w = np.moveaxis(np.asarray(orientation_xyzw), -1, 0)
    # tan(pitch / 2 + 45 deg) is the ratio of these two lengths. It keeps full precision near a
    # pitch of 90 degrees, where an arcsine loses half of its digits.
    up, down = np.hypot(w + y, x - z), np.hypot(w - y, x + z)
    pitch = 2.0 * np.arctan2(up, down) - math.pi / 2.0
    # Half the difference of roll and yaw, and half their sum.
    minus, plus = np.arctan2(x - z, w + y), np.arctan2(x + z, w - y)
    angles: Floats = np.stack((plus + minus, pitch, plus - minus), axis=-1)
    return angles - math.tau * np.round(angles / math.tau)


def slerp(first_xyzw: Floats, last_xyzw: Floats, shares: Floats) -> Floats:
    """
    Interpolate rotations the shorter way round, at a constant rate.

    :param first_xyzw: (R, 4) float64, of unit length.
    :param last_xyzw: (R, 4) float64, of unit length.
    :param shares: (R,) float64, 0 for the first rotation, 1 for the last.
    :returns: (R, 4) float64, of unit length.
    """
    cosine = np.einsum('ij,ij->i', first_xyzw, last_xyzw)
    # q and -q are the same rotation; the sign selects the shorter way.
    sign = np.where(cosine < 0.0, -1.0, 1.0)
    angle = np.arccos(np.minimum(np.abs(cosine), 1.0))
    is_small = angle < _SMALL_ANGLE
    sine = np.where(is_small, 1.0, np.sin(angle))
    from_first = np.where(is_small, 1.0 - shares, np.sin((1.0 - shares) * angle) / sine)
    from_last = np.where(is_small, shares, np.sin(shares * angle) / sine) * sign
    return normalized(from_first[:, None] * first_xyzw + from_last[:, None] * last_xyzw)


# Factors of a unit quaternion's components in its inverse.
CONJUGATE_XYZW = (-1.0, -1.0, -1.0, 1.0)


def quaternion_product(left_xyzw: Floats, right_xyzw: Floats) -> Floats:
    """
    Return the rotation by ``right_xyzw`` followed by that by ``left_xyzw``.

    :param left_xyzw: (N, 4) or (4,) float64, such as global from body.
    :param right_xyzw: (N, 4) or (4,) float64, such as body from box.
    :returns: (N, 4) or (4,) float64, in this example global from box.
    """
    x0, y0, z0, w0 = left_xyzw.T
    x1, y1, z1, w1 = right_xyzw.T
    return np.stack((w0 * x1 + x0 * w1 + y0 * z1 - z0 * y1, w0 * y1 - x0 * z1 + y0 * w1 + z0 * x1,
                     w0 * z1 + x0 * y1 - y0 * x1 + z0 * w1, w0 * w1 - x0 * x1 - y0 * y1 - z0 * z1),
                    axis=-1)


def rotation_vectors(first_xyzw: Floats, last_xyzw: Floats) -> Floats:
    """
    Return the rotations from one orientation to another in the global frame, the shorter way.

    :param first_xyzw: (N, 4) float64, of unit length.
    :param last_xyzw: (N, 4) float64, of unit length.
    :returns: (N, 3) float64, rad about each axis.
    """
    turns = quaternion_product(last_xyzw, first_xyzw * CONJUGATE_XYZW)
    turns = np.where(turns[:, 3:] < 0.0, -turns, turns)
    sines = np.sqrt(np.einsum('ij,ij->i', turns[:, :3], turns[:, :3]))
    angles = 2.0 * np.arctan2(sines, turns[:, 3])
    # Of a small rotation, the vector part is half the angle.
    factors: Floats = np.divide(angles, sines, out=np.full(len(sines), 2.0), where=sines > 0.0)
    return turns[:, :3] * factors[:, None]


def normalized(orientation_xyzw: Floats) -> Floats:
    """
    Scale quaternions to unit length.

    :param orientation_xyzw: (N, 4) float64, none of them zero.
    :returns: (N, 4) float64.
    """
    norm2 = np.einsum('ij,ij->i', orientation_xyzw, orientation_xyzw)
    scaled: Floats = orientation_xyzw / np.sqrt(norm2)[:, None]
    return scaled


def _rotation_terms() -> Floats:
    """Return the rotation matrix as a linear map of the products of a quaternion's components."""
    # Returns (16, 9) float64; outer(q, q) flattened, times this, is |q|^2 times the matrix
    # flattened row by row.
    units, terms = np.eye(4), np.zeros((4, 4, 3, 3))
    for i, j, axis in np.ndindex(4, 4, 3):
        # The axis, turned: q axis conj(q). The products of i and j, and of j and i, are equal.
        turned = quaternion_product(quaternion_product(units[i], units[axis]),
                                    units[j] * CONJUGATE_XYZW)
        terms[min(i, j), max(i, j), :, axis] += turned[:3]
    return terms.reshape(16, 9)


_ROTATION_TERMS = _rotation_terms()


def global_from_body(orientation_xyzw: Floats) -> Floats:
    """Return the rotation matrices of quaternions."""
    # orientation_xyzw: (N, 4) float64, REP-103, of any length above zero.
    # Returns (N, 3, 3) float64; each takes a column vector of the body into the global frame.
    norm2 = np.einsum('ij,ij->i', orientation_xyzw, orientation_xyzw)
    matrices: Floats = global_from_unit(orientation_xyzw) / norm2[:, None, None]
    return matrices


def global_from_unit(orientation_xyzw: Floats) -> Floats:
    """
    Return the rotation matrices of quaternions that are known to be normalized.

    :param orientation_xyzw: (N, 4) float64, REP-103, of unit length.
    :returns: (N, 3, 3) float64; each takes a column vector of the body into the global frame.
    """
    outer = orientation_xyzw[:, :, None] @ orientation_xyzw[:, None, :]
    flat: Floats = outer.reshape(-1, 16) @ _ROTATION_TERMS
    return flat.reshape(-1, 3, 3)


def body_from_unit(orientation_xyzw: Sequence[float],
                   vector_xyz: Sequence[float]) -> tuple[float, float, float]:
    """Rotate a single vector by the inverse of its body's orientation, without numpy."""
    # orientation_xyzw: 4, REP-103, of unit length.
    # vector_xyz: 3, axes of the global frame.
    # Returns 3, axes of the body.
    x, y, z, w = orientation_xyzw
    a, b, c = vector_xyz
    # v' = v + w t + t x u with t = 2 v x u; u is the vector part of the quaternion.
    d, e, f = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return a + w * d + e * z - f * y, b + w * e + f * x - d * z, c + w * f + d * y - e * x


# A number that depends less on an unknown one is known: roads are not level.
_LEAST_SHARE = 0.1


def motion_in_axes(motion: Floats, axes: Floats) -> Floats:
    """Return motion in the axes of its bodies."""
    # motion: (K, 6) float64, two vectors of each body, axes of the global frame, NaN if unknown.
    # axes: (K, 3, 3) rotation matrices from the axes of the bodies to those of the frame.
    # Returns (K, 6) float64, NaN if it depends on an unknown number.
    # A row vector times the matrix is the column vector times its inverse.
    vectors = motion.reshape(-1, 2, 3)
    turned: Floats = vectors @ axes
    if not math.isfinite(turned.sum()):
        is_unknown = np.isnan(vectors)
        turned = np.where(is_unknown, 0.0, vectors) @ axes
        turned[is_unknown @ np.abs(axes) > _LEAST_SHARE] = np.nan
    return turned.reshape(-1, 6)


def body_from_global(orientation_xyzw: Floats, vectors_xyz: Floats) -> Floats:
    """
    Rotate vectors by the inverse of their body's orientation.

    :param orientation_xyzw: (N, 4) float64, REP-103, of any length above zero.
    :param vectors_xyz: (N, K, 3) float64, K vectors for each body, axes of the global frame.
    :returns: (N, K, 3) float64, axes of the body.
    """
    # A row vector times the matrix is the column vector times its transpose, the inverse.
    rotated: Floats = vectors_xyz @ global_from_body(orientation_xyzw)
    return rotated

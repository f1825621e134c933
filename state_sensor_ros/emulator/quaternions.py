# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Unit quaternions as arrays x y z w, in left-handed axes: x forward, y right, z up.

Example: a turn of 90 degrees to the right is (0, 0, 0.707, 0.707); it moves x (1, 0, 0) to
y (0, 1, 0), and ``quaternion_of_rotator(90, 0, 0)`` returns it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def quaternion_of_axes(axes: FloatArray) -> FloatArray:
    """
    Convert body axes to quaternions.

    :param axes: (N, 3, 3) unit axes as rows x, y, z; z must not point down.
    :returns: (N, 4) float64, x y z w, with w >= 0.
    """
    (m00, m10, m20), (m01, m11, m21), (m02, m12, m22) = np.moveaxis(axes, 0, -1)
    # z points up, so w and z are not both small: the larger one is the divisor.
    w_first = np.stack([m21 - m12, m02 - m20, m10 - m01, 1 + m00 + m11 + m22], axis=-1)
    z_first = np.stack([m02 + m20, m12 + m21, 1 - m00 - m11 + m22, m10 - m01], axis=-1)
    quaternion = np.where((m00 + m11 > 0)[:, None], w_first, z_first)
    quaternion *= np.where(quaternion[:, 3] < 0, -1.0, 1.0)[:, None]
    normalised: FloatArray = quaternion / np.linalg.norm(quaternion, axis=-1)[:, None]
    return normalised


def multiply(left: FloatArray, right: FloatArray) -> FloatArray:
    """
    Multiply quaternions, Hamilton convention.

    :param left: (..., 4) x y z w.
    :param right: (..., 4) x y z w, the rotation applied first.
    :returns: (..., 4) float64.
    """
    x1, y1, z1, w1 = np.moveaxis(left, -1, 0)
    x2, y2, z2, w2 = np.moveaxis(right, -1, 0)
    return np.stack([w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                     w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
                     w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
                     w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2], axis=-1)


def quaternion_of_rotator(yaw_deg: float, pitch_deg: float, roll_deg: float) -> list[float]:
    """
    Convert a rotator of the Unreal Engine: roll is applied first, then pitch, then yaw.

    :param yaw_deg: positive to the right.
    :param pitch_deg: positive nose up.
    :param roll_deg: positive right side down.
    :returns: x y z w.
    """
    product = np.array([0.0, 0.0, 0.0, 1.0])
    for axis, degrees in ((2, yaw_deg), (1, -pitch_deg), (0, -roll_deg)):
        half = math.radians(degrees) / 2
        turn = np.zeros(4)
        turn[axis], turn[3] = math.sin(half), math.cos(half)
        product = multiply(product, turn)
    return [float(value) for value in product]

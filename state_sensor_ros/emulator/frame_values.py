# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Values of frames in JSON: their text, and unit quaternions in left-handed axes."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import numpy.typing as npt

from state_sensor_ros.rotations import quaternion_from_rpy

FloatArray = npt.NDArray[np.float64]


def encode_json(value: object) -> bytes:
    """
    Encode compact JSON; not-a-number becomes `null`, as in the simulator's C++ library.

    :param value: plain JSON data.
    :returns: UTF-8 text.
    """
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError, msgspec.MsgspecError):
        # msgspec refuses integers beyond 64 bits and lone surrogates, which JSON allows.
        return json.dumps(value, separators=(',', ':')).encode('ascii')


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


def quaternion_of_rotator(yaw_deg: float, pitch_deg: float, roll_deg: float) -> list[float]:
    """
    Convert a rotator of the Unreal Engine: roll is applied first, then pitch, then yaw.

    :param yaw_deg: positive to the right.
    :param pitch_deg: positive nose up.
    :param roll_deg: positive right side down.
    :returns: x y z w.
    """
    rotator: list[float] = quaternion_from_rpy(
        np.radians((-roll_deg, -pitch_deg, yaw_deg))).tolist()
    return rotator

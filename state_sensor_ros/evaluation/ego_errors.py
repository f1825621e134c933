# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Errors of the ego's pose without alignment: absolute, and relative over each metre travelled.

The formulae are those of evo's ``ape`` and ``rpe`` (translation part, ``--delta 1 --delta_unit m
--pairs_from_reference``), with which the values of test_ego_errors were compared once.
"""

from __future__ import annotations

import math

import numpy as np

from state_sensor_ros.frame import Floats, Rows
from state_sensor_ros.rotations import global_from_body

_METRE = 1.0


def ate_rmse(stack_xyz: Floats, truth_xyz: Floats) -> float:
    """
    Return the root mean square of the distances, m; NaN for no poses.

    :param stack_xyz: (T, 3) float64, m.
    :param truth_xyz: (T, 3) float64, m, at the same times.
    """
    return _rms(stack_xyz - truth_xyz)


def rpe_rmse(stack: Floats, truth: Floats) -> float:
    """
    Return the root mean square of the errors of the ways of a metre, m; NaN for no such way.

    :param stack: (T, 7) float64, position xyz (m) and orientation xyzw.
    :param truth: (T, 7) float64, likewise, at the same times.
    """
    rows = _metre_marks(truth[:, :3])
    stack_way, truth_way = (_ways(poses[rows]) for poses in (stack, truth))
    # The translation of the relative pose of both; a rotation does not change its length.
    return _rms(stack_way - truth_way)


def _metre_marks(position_xyz: Floats) -> Rows:
    """Return the rows at which at least a metre has been travelled since the last one."""
    rows, travelled = [0], 0.0
    steps = np.linalg.norm(np.diff(position_xyz, axis=0), axis=1).tolist()
    for row, step in enumerate(steps, 1):
        travelled += step
        if travelled >= _METRE:
            rows.append(row)
            travelled = 0.0
    return np.array(rows if len(position_xyz) else [], np.int64)


def _ways(poses: Floats) -> Floats:
    """Return (T - 1, 3) the way from each pose to the next, in the axes of the former."""
    axes = global_from_body(poses[:-1, 3:])
    ways: Floats = (np.diff(poses[:, :3], axis=0)[:, None, :] @ axes)[:, 0, :]
    return ways


def _rms(vectors: Floats) -> float:
    if not len(vectors):
        return math.nan
    return math.sqrt(float(np.einsum('ij,ij->', vectors, vectors)) / len(vectors))

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Errors of the ego: absolute and relative pose errors as evo computes them, and those of a driver.

Source: ``evo/core/metrics.py``, ``filters.py`` and ``geometry.py`` of evo 1.38 (``evo_ape``,
``evo_rpe --pairs_from_reference``, ``--align``, ``--correct_scale``). The alignment is that of
Umeyama (1991).
"""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import Any, Final

import numpy as np

from state_sensor_ros import rotations
from state_sensor_ros.frame import Floats, Rows

# Lengths of the relative errors: distances traveled, m.
DISTANCES_M: Final = (1.0, 10.0, 100.0)

Statistics = dict[str, float]


class DegenerateAlignmentError(Exception):
    """The positions lie on a line, so that no rotation about it is determined."""


@dataclass(frozen=True, slots=True, eq=False)
class EgoScores:
    """The scores of the ego."""

    distances: Floats  # (T,) error of each position, m
    # Those of evo, and of the size of the errors of a driver, with ``bias``, the signed mean: of
    # ``ate`` the ``translation`` (m) and the ``rotation`` (rad), of ``rpe`` the same by length,
    # such as ``10m``; ``longitudinal_error``, ``lateral_error`` (m), ``speed_error`` (m/s).
    statistics: dict[str, Any]
    scale: float  # of the alignment


def statistics(errors: Floats) -> Statistics:
    """Return the statistics of the table that evo prints, NaN for no errors."""
    # errors: (K,) float64, at least 0.
    if not len(errors):
        return dict.fromkeys(('rmse', 'mean', 'median', 'std', 'min', 'max', 'sse'), math.nan)
    square_sum = float(np.square(errors).sum())
    return {'rmse': math.sqrt(square_sum / len(errors)), 'mean': float(errors.mean()),
            'median': float(np.median(errors)), 'std': float(errors.std()),
            'min': float(errors.min()), 'max': float(errors.max()), 'sse': square_sum}


def score_ego(stack: Floats, truth: Floats, alignment: str) -> EgoScores:
    """
    Score the poses of base_link in the global frame.

    :param stack: (T, 8) position xyz (m), orientation xyzw of unit length, and speed along the
        x axis of base_link (m/s), NaN if unknown.
    :param truth: (T, 8) the same at these times.
    """
    poses, true_poses, scale = stack[:, :7], truth[:, :7], 1.0
    if alignment != 'none':
        poses, scale = _aligned(poses, true_poses, has_scale=alignment == 'sim3')
    offsets = poses[:, :3] - true_poses[:, :3]
    distances: Floats = np.linalg.norm(offsets, axis=1)
    turns = _angles(_between(true_poses[:, 3:], poses[:, 3:]))
    own_offsets = (offsets[:, None, :] @ rotations.global_from_unit(true_poses[:, 3:]))[:, 0]
    return EgoScores(distances, {
        'ate': {'translation': statistics(distances), 'rotation': statistics(turns)},
        'rpe': {f'{length:g}m': {name: statistics(errors) for name, errors in _relative(
            poses, true_poses, _distance_marks(true_poses, length)).items()}
            for length in DISTANCES_M}, 'longitudinal_error': _signed(own_offsets[:, 0]),
        'lateral_error': _signed(own_offsets[:, 1]),
        'speed_error': _signed(stack[:, 7] - truth[:, 7])}, scale)


def _signed(errors: Floats) -> Statistics:
    errors = errors[np.isfinite(errors)]
    bias = float(errors.mean()) if len(errors) else math.nan
    return {**statistics(np.abs(errors)), 'bias': bias}


def _relative(stack: Floats, truth: Floats, marks: Rows) -> dict[str, Floats]:
    """Return the errors of the relative poses from each mark to the next: m and rad."""
    (stack_steps, stack_turns), (truth_steps, truth_turns) = (
        _steps(poses[marks]) for poses in (stack, truth))
    # The translation of the relative pose of both; a rotation does not change its length.
    translation: Floats = np.linalg.norm(stack_steps - truth_steps, axis=1)
    return {'translation': translation, 'rotation': _angles(_between(truth_turns, stack_turns))}


def _steps(poses: Floats) -> tuple[Floats, Floats]:
    """Return the step (m) and the turn (xyzw) from each pose to the next, in its own axes."""
    axes = rotations.global_from_body(poses[:-1, 3:])
    steps: Floats = (np.diff(poses[:, :3], axis=0)[:, None, :] @ axes)[:, 0, :]
    return steps, _between(poses[:-1, 3:], poses[1:, 3:])


def _between(turns_xyzw: Floats, others_xyzw: Floats) -> Floats:
    return rotations.quaternion_product(turns_xyzw * rotations.CONJUGATE_XYZW, others_xyzw)


def _angles(turns_xyzw: Floats) -> Floats:
    angles: Floats = 2.0 * np.arctan2(np.linalg.norm(turns_xyzw[:, :3], axis=1),
                                      np.abs(turns_xyzw[:, 3]))
    return angles


def _distance_marks(poses: Floats, length_m: float) -> Rows:
    """Return the rows at which at least a length has been traveled since the last one."""
    rows, traveled = [0], 0.0
    steps = np.linalg.norm(np.diff(poses[:, :3], axis=0), axis=1).tolist()
    for row, step in enumerate(steps, 1):
        traveled += step
        if traveled >= length_m:
            rows.append(row)
            traveled = 0.0
    return np.array(rows if len(poses) else [], np.int64)


def _aligned(poses: Floats, truth: Floats, *, has_scale: bool) -> tuple[Floats, float]:
    """Return the poses moved by the alignment of least squares, and the scale."""
    from scipy.spatial.transform import Rotation
    middle, true_middle = poses[:, :3].mean(axis=0), truth[:, :3].mean(axis=0)
    offsets, true_offsets = poses[:, :3] - middle, truth[:, :3] - true_middle
    left, values, right = np.linalg.svd(true_offsets.T @ offsets / len(poses))
    if not np.isfinite(values).all() or (values > np.finfo(np.float64).eps).sum() < 2:
        raise DegenerateAlignmentError
    signs = np.ones(3)
    # A rotation, not a reflection.
    if np.linalg.det(left) * np.linalg.det(right) < 0.0:
        signs[2] = -1.0
    rotation = left * signs @ right
    scale = 1.0
    if has_scale:
        scale = float(values @ signs) / float(np.square(offsets).sum() / len(poses))
    turn = Rotation.from_matrix(rotation).as_quat()
    turned = rotations.quaternion_product(np.broadcast_to(turn, (len(poses), 4)), poses[:, 3:])
    return np.column_stack((scale * offsets @ rotation.T + true_middle, turned)), scale

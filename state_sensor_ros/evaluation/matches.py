# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The matches of detections with ground truth, and the errors of each.

The attributes of nuScenes follow from motion, as no message has them: a vehicle moves or has
stopped (not: is parked), a pedestrian moves or stands (not: sits), a cycle that moves has a rider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import UNKNOWN
from state_sensor_ros.evaluation.matching import I_ERRORS
from state_sensor_ros.evaluation.object_set import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    SIZE,
    VELOCITY,
    XY,
    YAW,
)
from state_sensor_ros.frame import Floats, Rows
from state_sensor_ros.rotations import wrapped

# Errors of translation, scale, orientation, velocity and attribute.
ERROR_NAMES: Final = ('ate', 'ase', 'aoe', 'ave', 'aae')
# Speed above which an object moves, m/s, as in the submissions of mmdetection3d to nuScenes.
MOVING_SPEED: Final = 0.2
# Whether a cycle that stands has a rider is in no message.
_CYCLES = np.isin(EVALUATED_CLASSES, ('cyclist', 'motorcycle'))


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """
    The R matches at 2 m of all frames, in their order.

    ``frames`` (R,) index of the frame; ``stamps_ns`` (R,); ``stack`` and ``truth`` (R, 9) states;
    ``classes`` (R,); ``scores`` (R,); ``distances`` (R,) of the truth from the ego, m; ``errors``
    (R, 5) translation (m), scale (1 - IoU), orientation (rad), velocity (m/s), attribute (0 or
    1), NaN if unknown; ``stack_ids`` and ``truth_ids`` R strings.
    """

    frames: Rows
    stamps_ns: Rows
    stack: Floats
    truth: Floats
    classes: Rows
    scores: Floats
    distances: Floats
    errors: Floats
    stack_ids: tuple[str, ...]
    truth_ids: tuple[str, ...]


def error_rows(stack: Floats, truth: Floats, classes: Rows) -> Floats:
    """
    Return (R, 5) errors of translation, scale, orientation, velocity and attribute.

    :param stack: (R, 9) float64, states.
    :param truth: (R, 9) float64, states.
    :param classes: (R,) int64, index in EVALUATED_CLASSES.
    """
    with np.errstate(all='ignore'):
        common = np.minimum(stack[:, SIZE], truth[:, SIZE]).prod(axis=1)
        union = stack[:, SIZE].prod(axis=1) + truth[:, SIZE].prod(axis=1) - common
        scale = 1.0 - common / union
        turn = np.abs(wrapped(truth[:, YAW] - stack[:, YAW]))
        velocity = np.linalg.norm(stack[:, VELOCITY] - truth[:, VELOCITY], axis=1)
        is_moving, truth_moves = (np.linalg.norm(states[:, VELOCITY], axis=1) > MOVING_SPEED
                                  for states in (stack, truth))
    is_known = ~np.isnan(velocity) & (classes != UNKNOWN) & (truth_moves | ~_CYCLES[classes])
    attribute = np.where(is_known, is_moving != truth_moves, np.nan)
    return np.column_stack((np.linalg.norm(stack[:, XY] - truth[:, XY], axis=1), scale, turn,
                            velocity, attribute))


def collect_matches(frames: Sequence[EvaluatedFrame]) -> Matches:
    """
    Collect the matches at 2 m.

    :param frames: frames in the order of time.
    """
    pairs = [np.flatnonzero(frame.matches[I_ERRORS] >= 0) for frame in frames]
    truths = [frame.matches[I_ERRORS][rows]
              for frame, rows in zip(frames, pairs, strict=True)]
    joined = list(zip(frames, pairs, truths, strict=True))
    counts = [len(rows) for rows in pairs]
    stack = stacked([frame.stack.states[rows] for frame, rows, _ in joined], (0, 9))
    truth = stacked([frame.truth.states[rows] for frame, _, rows in joined], (0, 9))
    classes = stacked([frame.stack.classes[rows] for frame, rows, _ in joined], 0) \
        .astype(np.int64)
    return Matches(
        np.repeat(np.arange(len(frames)), counts),
        np.repeat(np.array([frame.stamp_ns for frame in frames], np.int64), counts), stack, truth,
        classes, stacked([frame.stack.scores[rows] for frame, rows, _ in joined], 0),
        stacked([frame.distances[rows] for frame, _, rows in joined], 0),
        error_rows(stack, truth, classes),
        tuple([frame.stack.ids[row] for frame, rows, _ in joined for row in rows.tolist()]),
        tuple([frame.truth.ids[row] for frame, _, rows in joined for row in rows.tolist()]))


def stacked(parts: Sequence[npt.NDArray[np.generic]], shape: tuple[int, int] | int) -> Floats:
    """
    Return arrays one after the other.

    :param parts: arrays of the same number of columns.
    :param shape: shape of the result without any.
    """
    joined: Floats = np.concatenate(parts) if parts else np.zeros(shape)
    return joined

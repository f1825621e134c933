# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Average precision and errors of detections by the formulae of nuscenes-devkit 1.2.0.

Source: ``nuscenes/eval/detection/algo.py`` and ``common/utils.py``, without class ranges, point
filters and attributes. The errors are plain means over the matches at 2 m, not means over recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.evaluation.matching import I_ERRORS, MATCH_DISTANCES_M
from state_sensor_ros.evaluation.object_set import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    SIZE,
    VELOCITY,
    XY,
    YAW,
)
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.rotations import wrapped

# Number of recalls from 0 to 1.
N_RECALLS: Final = 101
_MIN_RECALL, _MIN_PRECISION = 0.1, 0.1
_I_FIRST = round(100 * _MIN_RECALL) + 1
RECALLS: Final[Floats] = np.linspace(0.0, 1.0, N_RECALLS, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """
    The R matches at 2 m of all frames, in their order.

    ``frames`` (R,) index of the frame; ``stamps_ns`` (R,); ``stack`` and ``truth`` (R, 9) states;
    ``classes`` (R,); ``scores`` (R,); ``distances`` (R,) of the truth from the ego, m; ``errors``
    (R, 4) translation (m), scale (1 - IoU), orientation (rad), velocity (m/s), NaN if unknown;
    ``stack_ids`` and ``truth_ids`` R strings.
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


@dataclass(frozen=True, slots=True, eq=False)
class ClassScores:
    """
    The scores of one class.

    ``precisions`` (4, 101) at RECALLS for each of MATCH_DISTANCES_M, ``average_precisions`` (4,),
    both None without truths; ``errors`` (4,) means of :attr:`Matches.errors`, NaN for none.
    """

    name: str
    n_truths: int
    n_detections: int
    n_matches: int
    precisions: Floats | None
    average_precisions: Floats | None
    errors: Floats


def error_rows(stack: Floats, truth: Floats) -> Floats:
    """
    Return (R, 4) errors of translation, scale, orientation and velocity.

    :param stack: (R, 9) float64, states.
    :param truth: (R, 9) float64, states.
    """
    with np.errstate(all='ignore'):
        common = np.minimum(stack[:, SIZE], truth[:, SIZE]).prod(axis=1)
        union = stack[:, SIZE].prod(axis=1) + truth[:, SIZE].prod(axis=1) - common
        scale = 1.0 - common / union
        turn = np.abs(wrapped(truth[:, YAW] - stack[:, YAW]))
    return np.column_stack((np.linalg.norm(stack[:, XY] - truth[:, XY], axis=1), scale, turn,
                            np.linalg.norm(stack[:, VELOCITY] - truth[:, VELOCITY], axis=1)))


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
    stack = _stacked([frame.stack.states[rows] for frame, rows, _ in joined], (0, 9))
    truth = _stacked([frame.truth.states[rows] for frame, _, rows in joined], (0, 9))
    return Matches(
        np.repeat(np.arange(len(frames)), counts),
        np.repeat(np.array([frame.stamp_ns for frame in frames], np.int64), counts), stack, truth,
        _stacked([frame.stack.classes[rows] for frame, rows, _ in joined], 0).astype(np.int64),
        _stacked([frame.stack.scores[rows] for frame, rows, _ in joined], 0),
        _stacked([frame.distances[rows] for frame, _, rows in joined], 0),
        error_rows(stack, truth),
        tuple(frame.stack.ids[row] for frame, rows, _ in joined for row in rows.tolist()),
        tuple(frame.truth.ids[row] for frame, _, rows in joined for row in rows.tolist()))


def _stacked(parts: Sequence[npt.NDArray[np.generic]], shape: tuple[int, int] | int) -> Floats:
    stacked: Floats = np.concatenate(parts) if parts else np.zeros(shape)
    return stacked


def score_classes(frames: Sequence[EvaluatedFrame], matches: Matches) -> list[ClassScores]:
    """
    Score each class that has a truth or a detection.

    :param frames: frames in the order of time.
    :param matches: matches of these frames.
    """
    truths = _stacked([frame.truth.classes for frame in frames], 0)
    classes = _stacked([frame.stack.classes for frame in frames], 0)
    scores = _stacked([frame.stack.scores for frame in frames], 0)
    are_matches = np.concatenate([frame.matches >= 0 for frame in frames], axis=1) \
        if frames else np.zeros((len(MATCH_DISTANCES_M), 0), np.bool_)
    found = []
    for i, name in enumerate(EVALUATED_CLASSES):
        are_of_class, n_truths = classes == i, int((truths == i).sum())
        if not n_truths and not are_of_class.any():
            continue
        precisions = None if not n_truths else np.stack([
            _precisions(scores[are_of_class], row[are_of_class], n_truths) for row in are_matches])
        found.append(ClassScores(
            name, n_truths, int(are_of_class.sum()),
            int(are_matches[I_ERRORS][are_of_class].sum()), precisions,
            None if precisions is None else _average_precisions(precisions),
            _mean_of_known(matches.errors[matches.classes == i])))
    return found


def _precisions(scores: Floats, are_matches: Bools, n_truths: int) -> Floats:
    """Return (101,) precisions, interpolated at RECALLS, 0 beyond the greatest recall."""
    order = np.lexsort((np.arange(len(scores)), scores))[::-1]
    positives = np.cumsum(are_matches[order]).astype(np.float64)
    if not len(order) or not positives[-1]:
        return np.zeros(N_RECALLS)
    precision = positives / np.arange(1, len(order) + 1)
    return np.interp(RECALLS, positives / n_truths, precision, right=0.0)


def _average_precisions(precisions: Floats) -> Floats:
    # Each precision is scaled before the mean: none exceeds 1, so neither does a rounded sum.
    scaled = np.maximum(precisions[:, _I_FIRST:] - _MIN_PRECISION, 0.0) / (1.0 - _MIN_PRECISION)
    means: Floats = scaled.mean(axis=1)
    return means


def _mean_of_known(errors: Floats) -> Floats:
    known = np.isfinite(errors)
    with np.errstate(all='ignore'):
        means: Floats = np.where(known, errors, 0.0).sum(axis=0) / known.sum(axis=0)
    return means

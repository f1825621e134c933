# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Detection metrics by the formulas of nuscenes-devkit 1.2.0: AP, true-positive errors, NDS.

Source: ``nuscenes/eval/detection/algo.py`` and ``common/utils.py``, without class ranges and point
filters. Errors are given as plain means over the matches at 2 m, and as nuScenes' means over
recall. The attributes of nuScenes follow from motion, as no message has them: a vehicle moves or
has stopped (not: is parked), a pedestrian moves or stands (not: sits), a cycle that moves has a
rider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation import matching
from state_sensor_ros.evaluation.matching import EvaluatedFrame
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.rotations import wrapped

# Errors of translation, scale, orientation, velocity and attribute.
ERROR_NAMES: Final = ('ate', 'ase', 'aoe', 'ave', 'aae')
_N_ERRORS = len(ERROR_NAMES)
# Speed above which an object moves, m/s, as in the submissions of mmdetection3d to nuScenes.
MOVING_SPEED: Final = 0.2
# Whether a cycle that stands has a rider is in no message.
_CYCLES = np.isin(matching.EVALUATED_CLASSES, ('cyclist', 'motorcycle'))
# Ours: plain means over the matches at 2 m. nuScenes': means over recall of running means.
PLAIN: Final = 'plain'
NUSCENES: Final = 'nuscenes'
# The weight of mAP in NDS; each of the five errors has the weight 1.
MAP_WEIGHT: Final = 5.0
_MIN_RECALL, _MIN_PRECISION = 0.1, 0.1
RECALLS: Final[Floats] = np.linspace(0.0, 1.0, 101, dtype=np.float64)
# Index in RECALLS of the first one that counts.
_I_FIRST = round(100 * _MIN_RECALL) + 1
Records = npt.NDArray[np.void]
# ``are_matches``: at each of MATCH_DISTANCES_M; ``errors`` at 2 m, NaN without a match.
_DETECTION = np.dtype([('class', np.int8), ('score', np.float64),
                       ('are_matches', np.bool_, len(matching.MATCH_DISTANCES_M)),
                       ('errors', np.float64, _N_ERRORS)])


def error_rows(stack: Floats, truth: Floats, classes: Rows) -> Floats:
    """Return (R, 5) errors of translation, scale, orientation, velocity and attribute."""
    # stack: (R, 10) float64, states.
    # truth: (R, 10) float64, states.
    # classes: (R,) int64, index in EVALUATED_CLASSES.
    with np.errstate(all='ignore'):
        sizes, true_sizes = stack[:, matching.SIZE], truth[:, matching.SIZE]
        common = np.minimum(sizes, true_sizes).prod(axis=1)
        scale = 1.0 - common / (sizes.prod(axis=1) + true_sizes.prod(axis=1) - common)
        turn = np.abs(wrapped(truth[:, matching.YAW] - stack[:, matching.YAW]))
        turn = np.minimum(turn, np.abs(stack[:, matching.PERIOD] - turn))
        velocities, true_velocities = stack[:, matching.VELOCITY], truth[:, matching.VELOCITY]
        velocity = np.linalg.norm(velocities - true_velocities, axis=1)
        is_moving, truth_moves = (np.linalg.norm(each, axis=1) > MOVING_SPEED
                                  for each in (velocities, true_velocities))
    is_known = ~np.isnan(velocity) & (classes != UNKNOWN) & (truth_moves | ~_CYCLES[classes])
    attribute = np.where(is_known, is_moving != truth_moves, np.nan)
    translation = np.linalg.norm(stack[:, matching.XY] - truth[:, matching.XY], axis=1)
    return np.column_stack((translation, scale, turn, velocity, attribute))


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """``precisions`` and ``confidences`` (4, 101) at RECALLS, for each of MATCH_DISTANCES_M."""

    precisions: Floats
    confidences: Floats

    @property
    def average_precisions(self) -> Floats:
        """Average precision at each of MATCH_DISTANCES_M, (4,)."""
        # Each precision is scaled before the mean: none exceeds 1, so neither does a rounded sum.
        scaled = np.maximum(self.precisions[:, _I_FIRST:] - _MIN_PRECISION, 0.0) / (
            1.0 - _MIN_PRECISION)
        means: Floats = scaled.mean(axis=1)
        return means


@dataclass(frozen=True, slots=True, eq=False)
class ClassScores:
    name: str
    n_truths: int
    n_detections: int
    n_matches: int
    curves: Curves | None  # None without ground truth
    errors: Floats  # (5,) plain means of the known errors at 2 m, NaN for none
    # (5,) the same as nuScenes' means over recall, 1 for none; NaN without ground truth.
    recall_errors: Floats


def score_classes(frames: Sequence[EvaluatedFrame]) -> list[ClassScores]:
    """Score each class that has a ground-truth object or a detection."""
    detections = np.concatenate([np.zeros(0, _DETECTION), *map(_detections_of, frames)])
    n_truths = np.bincount(np.concatenate([matching.NOTHING.classes, *(
        frame.truth.classes for frame in frames)]),
        minlength=len(matching.EVALUATED_CLASSES)).tolist()
    rows_of = [detections[detections['class'] == number] for number in range(len(n_truths))]
    return [_scored(name, rows, n) for name, rows, n in zip(
        matching.EVALUATED_CLASSES, rows_of, n_truths, strict=True) if len(rows) or n]


def _detections_of(frame: EvaluatedFrame) -> Records:
    of_stack, of_truth = frame.matched
    rows = np.zeros(len(frame.stack.ids), _DETECTION)
    rows['class'], rows['score'] = frame.stack.classes, frame.stack.scores
    rows['are_matches'], rows['errors'] = (frame.matches >= 0).T, np.nan
    rows['errors'][of_stack] = error_rows(
        frame.stack.states[of_stack], frame.truth.states[of_truth], frame.stack.classes[of_stack])
    return rows


def _scored(name: str, rows: Records, n_truths: int) -> ClassScores:
    # Of equal confidences the later one is first, as in nuscenes-devkit.
    rows = rows[np.argsort(rows['score'], kind='stable')[::-1]]
    matched = rows[rows['are_matches'][:, matching.I_ERRORS]]
    known = np.isfinite(matched['errors'])
    n_known, sums = known.cumsum(axis=0), np.where(known, matched['errors'], 0.0).cumsum(axis=0)
    curves: Curves | None = None
    recall_errors: Floats = np.full(_N_ERRORS, np.nan)
    if n_truths:
        curves = Curves(*map(np.stack, zip(*[
            _curve(are_matches, rows['score'], n_truths) for are_matches in rows['are_matches'].T],
            strict=True)))
        means = sums / np.maximum(n_known, 1.0)
        means[:, (n_known[-1:] == 0).any(axis=0)] = 1.0
        recall_errors = _recall_means(
            matched['score'], means, curves.confidences[matching.I_ERRORS])
    with np.errstate(all='ignore'):
        errors: Floats = np.where(known, matched['errors'], 0.0).sum(axis=0) / known.sum(axis=0)
    return ClassScores(name, n_truths, len(rows), len(matched), curves, errors, recall_errors)


def _curve(are_matches: Bools, scores: Floats, n_truths: int) -> tuple[Floats, Floats]:
    """Return (101,) precisions and confidences, interpolated at RECALLS, 0 beyond the last."""
    positives = np.cumsum(are_matches)
    if not are_matches.any():
        return np.zeros(len(RECALLS)), np.zeros(len(RECALLS))
    return np.interp(RECALLS, positives / n_truths, positives / np.arange(1, len(scores) + 1),
                     right=0.0), np.interp(RECALLS, positives / n_truths, scores, right=0.0)


def _recall_means(scores: Floats, means: Floats, confidences: Floats) -> Floats:
    """Return (5,) means over recall, as ``calc_tp`` of nuScenes; 1 if the least is not reached."""
    # scores: (K,) float64, confidences of matches in falling order.
    # means: (K, 5) float64, means of the errors down to each of them.
    # confidences: (101,) float64, at RECALLS, 0 for those that are not reached.
    reached = confidences.nonzero()[0]
    wanted = confidences[_I_FIRST:reached[-1] + 1] if len(reached) else confidences[:0]
    if not len(wanted):
        return np.ones(_N_ERRORS)
    return np.array([np.interp(wanted, scores[::-1], column[::-1]).mean() for column in means.T])


def _averaged(classes: Sequence[ClassScores]) -> list[tuple[Curves, Floats]]:
    """Return curves and errors of the classes with ground truth, without "unknown"."""
    return [(scores.curves, scores.recall_errors) for scores in classes
            if scores.curves is not None and scores.name != CLASS_NAMES[UNKNOWN]]


def mean_average_precision(classes: Sequence[ClassScores]) -> float:
    """Return mAP, the mean over classes and match distances; NaN without ground truth."""
    averages = [curves.average_precisions.mean() for curves, _ in _averaged(classes)]
    return float(np.mean(averages)) if averages else math.nan


def mean_recall_errors(classes: Sequence[ClassScores]) -> Floats:
    """Return (5,) mATE, mASE, mAOE, mAVE, mAAE of nuScenes, NaN without ground truth."""
    errors = [of_class for _, of_class in _averaged(classes)]
    means: Floats = np.mean(errors, axis=0) if errors else np.full(_N_ERRORS, np.nan)
    return means


def detection_score(classes: Sequence[ClassScores]) -> float:
    """
    Return NDS, the nuScenes detection score; NaN without ground truth.

    NDS = (5 mAP + sum over the five errors of (1 - min(1, mean error))) / 10.
    """
    true_positive_scores = 1.0 - np.minimum(mean_recall_errors(classes), 1.0)
    weighted = MAP_WEIGHT * mean_average_precision(classes) + float(true_positive_scores.sum())
    return weighted / (MAP_WEIGHT + _N_ERRORS)

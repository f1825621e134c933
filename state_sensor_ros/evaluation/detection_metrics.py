# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Detection metrics by the formulae of nuscenes-devkit 1.2.0: AP, true-positive errors, NDS.

Source: ``nuscenes/eval/detection/algo.py`` and ``common/utils.py``, without class ranges and point
filters. Errors are given as plain means over the matches at 2 m, and as nuScenes' means over
recall. The attributes of nuScenes follow from motion, as no message has them: a vehicle moves or
has stopped (not: is parked), a pedestrian moves or stands (not: sits), a cycle that moves has a
rider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
import math
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.matching import (
    distances_from,
    EVALUATED_CLASSES,
    EvaluatedFrame,
    I_ERRORS,
    MATCH_DISTANCES_M,
    SIZE,
    VELOCITY,
    XY,
    YAW,
)
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.rotations import wrapped

# Errors of translation, scale, orientation, velocity and attribute.
ERROR_NAMES: Final = ('ate', 'ase', 'aoe', 'ave', 'aae')
# Speed above which an object moves, m/s, as in the submissions of mmdetection3d to nuScenes.
MOVING_SPEED: Final = 0.2
# Whether a cycle that stands has a rider is in no message.
_CYCLES = np.isin(EVALUATED_CLASSES, ('cyclist', 'motorcycle'))
# Bands of the distance from the ego, m, as in the Waymo Open Dataset.
BANDS: Final[Mapping[str, tuple[float, float]]] = {
    '0-30': (0.0, 30.0), '30-50': (30.0, 50.0), '50+': (50.0, math.inf)}
# The weight of mAP in NDS; each of the five errors has the weight 1.
MAP_WEIGHT: Final = 5.0
# Number of recalls from 0 to 1.
N_RECALLS: Final = 101
_MIN_RECALL, _MIN_PRECISION = 0.1, 0.1
_I_FIRST = round(100 * _MIN_RECALL) + 1
RECALLS: Final[Floats] = np.linspace(0.0, 1.0, N_RECALLS, dtype=np.float64)
_N_ERRORS = len(ERROR_NAMES)


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """
    The R matches at 2 m of all frames, in their order.

    ``frames`` (R,) index of the frame; ``stamps_ns`` (R,); ``stack`` and ``truth`` (R, 9) states;
    ``classes`` (R,); ``scores`` (R,); ``distances`` (R,) of the ground truth from the ego, m;
    ``errors`` (R, 5) translation (m), scale (1 - IoU), orientation (rad), velocity (m/s),
    attribute (0 or 1), NaN if unknown; ``stack_ids`` and ``truth_ids`` R strings.
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


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """``precisions`` and ``confidences`` (4, 101) at RECALLS, for each of MATCH_DISTANCES_M."""

    precisions: Floats
    confidences: Floats

    @property
    def average_precisions(self) -> Floats:
        """Average precision at each of MATCH_DISTANCES_M, (4,)."""
        # Each precision is scaled before the mean: none exceeds 1, so neither does a rounded sum.
        scaled = np.maximum(self.precisions[:, _I_FIRST:] - _MIN_PRECISION, 0.0) \
            / (1.0 - _MIN_PRECISION)
        means: Floats = scaled.mean(axis=1)
        return means


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """
    The N detections of all frames, and their M ground-truth objects.

    ``frames``, ``classes`` and ``scores`` (N,); ``are_matches`` (4, N) at each of
    MATCH_DISTANCES_M; ``errors`` (N, 5) at 2 m, NaN without a match; ``distances`` (4, N) of the
    matching ground-truth object, else of the detection, from the ego, m; ``truth_frames``,
    ``truth_classes`` and ``truth_distances`` (M,).
    """

    frames: Rows
    classes: Rows
    scores: Floats
    are_matches: Bools
    errors: Floats
    distances: Floats
    truth_frames: Rows
    truth_classes: Rows
    truth_distances: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ClassScores:
    """
    The scores of one class.

    ``curves`` None without ground truth; ``errors`` (5,) plain means of :attr:`Matches.errors`,
    NaN for none; ``recall_errors`` (5,) the same as nuScenes' means over recall, 1 for none;
    ``detections`` those of the class; ``bands`` the scores by the names of BANDS, empty without an
    ego.
    """

    name: str
    n_truths: int
    n_detections: int
    n_matches: int
    curves: Curves | None
    errors: Floats
    recall_errors: Floats
    detections: Detections
    bands: dict[str, ClassScores] = field(default_factory=dict)

    @property
    def average_precisions(self) -> Floats | None:
        """Average precision at each of MATCH_DISTANCES_M, (4,), None without ground truth."""
        return None if self.curves is None else self.curves.average_precisions


def _collect_detections(frames: Sequence[EvaluatedFrame], matches: Matches) -> Detections:
    truth_counts = [len(frame.truth.classes) for frame in frames]
    counts = [len(frame.stack.classes) for frame in frames]
    numbers = np.arange(len(frames))
    are_matches: Bools = np.zeros((len(MATCH_DISTANCES_M), 0), np.bool_)
    distances: Floats = np.zeros((len(MATCH_DISTANCES_M), 0))
    if frames:
        rows = np.concatenate([frame.matches for frame in frames], axis=1)
        are_matches = rows >= 0
        truth_distances = stacked([frame.distances for frame in frames], 0)
        first_truths = np.repeat(np.cumsum(truth_counts) - truth_counts, counts)
        own = stacked([distances_from(frame.ego_xyz, frame.stack) for frame in frames], 0)
        distances = np.broadcast_to(own, are_matches.shape).copy()
        distances[are_matches] = truth_distances[(rows + first_truths)[are_matches]]
    errors: Floats = np.full((are_matches.shape[1], _N_ERRORS), np.nan)
    errors[are_matches[I_ERRORS]] = matches.errors
    return Detections(
        np.repeat(numbers, counts),
        stacked([frame.stack.classes for frame in frames], 0).astype(np.int64),
        stacked([frame.stack.scores for frame in frames], 0), are_matches, errors, distances,
        np.repeat(numbers, truth_counts),
        stacked([frame.truth.classes for frame in frames], 0).astype(np.int64),
        stacked([frame.distances for frame in frames], 0))


def score_classes(frames: Sequence[EvaluatedFrame], matches: Matches) -> list[ClassScores]:
    """
    Score each class that has a ground-truth object or a detection.

    :param frames: frames in the order of time.
    :param matches: matches of these frames.
    """
    detections = _collect_detections(frames, matches)
    classes = []
    for i, name in enumerate(EVALUATED_CLASSES):
        rows = np.flatnonzero(detections.classes == i)
        truth_rows = np.flatnonzero(detections.truth_classes == i)
        if not len(rows) and not len(truth_rows):
            continue
        of_class = Detections(
            detections.frames[rows], detections.classes[rows], detections.scores[rows],
            detections.are_matches[:, rows], detections.errors[rows],
            detections.distances[:, rows], detections.truth_frames[truth_rows],
            detections.truth_classes[truth_rows], detections.truth_distances[truth_rows])
        scores = _scored(name, of_class)
        if np.isfinite(of_class.distances).any() or np.isfinite(of_class.truth_distances).any():
            scores.bands.update({
                band: _scored(name, of_class, *limits) for band, limits in BANDS.items()})
        classes.append(scores)
    return classes


def _scored(name: str, detections: Detections, least: float = -math.inf,
            below: float = math.nan) -> ClassScores:
    """Score the detections of a class, in a band of distances if it has limits."""
    n_truths = len(detections.truth_classes)
    masks: Bools = np.ones(detections.are_matches.shape, np.bool_)
    if not math.isnan(below):
        masks = (detections.distances >= least) & (detections.distances < below)
        n_truths = int(((detections.truth_distances >= least)
                        & (detections.truth_distances < below)).sum())
    # Of equal confidences the later one is first, as in nuscenes-devkit.
    order = np.lexsort((np.arange(len(detections.scores)), detections.scores))[::-1]
    curves = None
    recall_errors: Floats = np.ones(_N_ERRORS)
    if n_truths:
        found = [_curve(detections.scores[rows], detections.are_matches[i][rows], n_truths)
                 for i, rows in enumerate(order[mask[order]] for mask in masks)]
        curves = Curves(np.stack([precision for precision, _ in found]),
                        np.stack([confidence for _, confidence in found]))
        rows = order[masks[I_ERRORS][order] & detections.are_matches[I_ERRORS][order]]
        recall_errors = _recall_errors(
            detections.scores[rows], detections.errors[rows], curves.confidences[I_ERRORS])
    at_2_m = masks[I_ERRORS]
    return ClassScores(
        name, n_truths, int(at_2_m.sum()), int((at_2_m & detections.are_matches[I_ERRORS]).sum()),
        curves, _mean_of_known(detections.errors[at_2_m]), recall_errors, detections)


def _curve(scores: Floats, are_matches: Bools, n_truths: int) -> tuple[Floats, Floats]:
    """
    Return (101,) precisions and confidences, interpolated at RECALLS, 0 beyond the greatest one.

    :param scores: (K,) float64, in falling order.
    :param are_matches: (K,) bool.
    :param n_truths: number of ground-truth objects.
    """
    positives = np.cumsum(are_matches).astype(np.float64)
    if not len(scores) or not positives[-1]:
        return np.zeros(N_RECALLS), np.zeros(N_RECALLS)
    recall = positives / n_truths
    precision = positives / np.arange(1, len(scores) + 1)
    return np.interp(RECALLS, recall, precision, right=0.0), \
        np.interp(RECALLS, recall, scores, right=0.0)


def _recall_errors(scores: Floats, errors: Floats, confidences: Floats) -> Floats:
    """
    Return (5,) means over recall of the running means of errors, as ``calc_tp`` of nuScenes.

    :param scores: (K,) float64, confidences of the matches in falling order.
    :param errors: (K, 5) float64, NaN if unknown.
    :param confidences: (101,) float64, at RECALLS.
    """
    reached = confidences.nonzero()[0]
    if not len(scores) or not len(reached) or reached[-1] < _I_FIRST:
        return np.ones(_N_ERRORS)
    known = np.isfinite(errors)
    counts = known.cumsum(axis=0)
    means = np.where(known, errors, 0.0).cumsum(axis=0) / np.maximum(counts, 1)
    means[:, ~known.any(axis=0)] = 1.0
    wanted = confidences[_I_FIRST:reached[-1] + 1]
    return np.array([np.interp(wanted, scores[::-1], column[::-1]).mean() for column in means.T])


def _mean_of_known(errors: Floats) -> Floats:
    known = np.isfinite(errors)
    with np.errstate(all='ignore'):
        means: Floats = np.where(known, errors, 0.0).sum(axis=0) / known.sum(axis=0)
    return means


def averaged_classes(classes: Sequence[ClassScores]) -> list[ClassScores]:
    """
    Return the classes of which means are taken: those with ground truth, without "unknown".

    :param classes: scores of all classes.
    """
    return [scores for scores in classes
            if scores.curves is not None and scores.name != CLASS_NAMES[UNKNOWN]]


def mean_average_precision(classes: Sequence[ClassScores]) -> float:
    """
    Return mAP, the mean over classes and match distances; NaN without ground truth.

    :param classes: scores of all classes.
    """
    averages = [scores.curves.average_precisions.mean() for scores in averaged_classes(classes)
                if scores.curves is not None]
    return float(np.mean(averages)) if averages else math.nan


def mean_recall_errors(classes: Sequence[ClassScores]) -> Floats:
    """
    Return (5,) mATE, mASE, mAOE, mAVE, mAAE of nuScenes, NaN without ground truth.

    :param classes: scores of all classes.
    """
    errors = [scores.recall_errors for scores in averaged_classes(classes)]
    means: Floats = np.mean(errors, axis=0) if errors else np.full(_N_ERRORS, np.nan)
    return means


def detection_score(classes: Sequence[ClassScores]) -> float:
    """
    Return NDS, the nuScenes detection score; NaN without ground truth.

    NDS = (5 mAP + sum over the five errors of (1 - min(1, mean error))) / 10.

    :param classes: scores of all classes.
    """
    true_positive_scores = 1.0 - np.minimum(mean_recall_errors(classes), 1.0)
    weighted = MAP_WEIGHT * mean_average_precision(classes) + float(true_positive_scores.sum())
    return weighted / (MAP_WEIGHT + _N_ERRORS)

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

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.frame_record import BANDS, Detections, ERROR_NAMES, NO_BAND
from state_sensor_ros.evaluation.matching import I_ERRORS
from state_sensor_ros.frame import Bools, Floats

# The weight of mAP in NDS; each of the five errors has the weight 1.
MAP_WEIGHT: Final = 5.0
# Number of recalls from 0 to 1.
N_RECALLS: Final = 101
_MIN_RECALL, _MIN_PRECISION = 0.1, 0.1
# Index in RECALLS of the first one that counts.
I_FIRST: Final = round(100 * _MIN_RECALL) + 1
RECALLS: Final[Floats] = np.linspace(0.0, 1.0, N_RECALLS, dtype=np.float64)
_N_ERRORS = len(ERROR_NAMES)


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """``precisions`` and ``confidences`` (4, 101) at RECALLS, for each of MATCH_DISTANCES_M."""

    precisions: Floats
    confidences: Floats

    @property
    def average_precisions(self) -> Floats:
        """Average precision at each of MATCH_DISTANCES_M, (4,)."""
        # Each precision is scaled before the mean: none exceeds 1, so neither does a rounded sum.
        scaled = np.maximum(self.precisions[:, I_FIRST:] - _MIN_PRECISION, 0.0) \
            / (1.0 - _MIN_PRECISION)
        means: Floats = scaled.mean(axis=1)
        return means


@dataclass(frozen=True, slots=True, eq=False)
class ClassScores:
    """
    The scores of one class.

    ``curves`` None without ground truth; ``errors`` (5,) plain means of :attr:`Detections.errors`,
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


def score_classes(classes: Mapping[str, Detections]) -> list[ClassScores]:
    """
    Score each class that has a ground-truth object or a detection.

    :param classes: detections by the name of the class.
    """
    found = []
    for name, detections in classes.items():
        scores = _scored(name, detections)
        if (detections.bands != NO_BAND).any() or (detections.truth_bands != NO_BAND).any():
            scores.bands.update({band: _scored(name, detections, number)
                                 for number, band in enumerate(BANDS)})
        found.append(scores)
    return found


def _scored(name: str, detections: Detections, band: int | None = None) -> ClassScores:
    """Score the detections of a class, or those of a band of distances."""
    n_truths = len(detections.truths)
    masks: Bools = np.ones(detections.are_matches.shape, np.bool_)
    if band is not None:
        masks = detections.bands == band
        n_truths = int((detections.truth_bands == band).sum())
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
    if not len(scores):
        return np.ones(_N_ERRORS)
    known = np.isfinite(errors)
    counts = known.cumsum(axis=0)
    means = np.where(known, errors, 0.0).cumsum(axis=0) / np.maximum(counts, 1)
    means[:, ~known.any(axis=0)] = 1.0
    return recall_means(scores, means, confidences)


def recall_means(scores: Floats, means: Floats, confidences: Floats) -> Floats:
    """
    Return (5,) means over recall, 1 if the least recall that counts is not reached.

    :param scores: (K,) float64, confidences in falling order.
    :param means: (K, 5) float64, means of the errors down to each confidence.
    :param confidences: (101,) float64, at RECALLS.
    """
    reached = confidences.nonzero()[0]
    if not len(reached) or reached[-1] < I_FIRST:
        return np.ones(_N_ERRORS)
    wanted = confidences[I_FIRST:reached[-1] + 1]
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

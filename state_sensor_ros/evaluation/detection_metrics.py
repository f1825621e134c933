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
from state_sensor_ros.evaluation.matching import I_ERRORS, MATCH_DISTANCES_M
from state_sensor_ros.evaluation.ranked_detections import BlockCounts, ErrorSums, Ranking
from state_sensor_ros.evaluation.resampling import TimeBlocks
from state_sensor_ros.frame import Bools, Floats

# Ours: plain means over the matches at 2 m. nuScenes': means over recall of running means.
PLAIN: Final = 'plain'
NUSCENES: Final = 'nuscenes'
DEFINITIONS: Final = (PLAIN, NUSCENES)
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

    ``curves`` None without ground truth; ``errors`` (5,) plain means of the known errors at 2 m,
    NaN for none; ``recall_errors`` (5,) the same as nuScenes' means over recall, 1 for none;
    ``counts`` in blocks of time, None for a band; ``bands`` the scores by the names of BANDS,
    empty without an ego.
    """

    name: str
    n_truths: int
    n_detections: int
    n_matches: int
    curves: Curves | None
    errors: Floats
    recall_errors: Floats
    counts: BlockCounts | None
    bands: dict[str, ClassScores] = field(default_factory=dict)

    @property
    def average_precisions(self) -> Floats | None:
        """Average precision at each of MATCH_DISTANCES_M, (4,), None without ground truth."""
        return None if self.curves is None else self.curves.average_precisions


def score_classes(classes: Mapping[str, Detections], blocks: TimeBlocks) -> list[ClassScores]:
    """
    Score each class that has a ground-truth object or a detection.

    :param classes: detections by the name of the class.
    :param blocks: blocks of the frames, in which is counted.
    """
    return [_scored(name, detections, blocks) for name, detections in classes.items()]


def _scored(name: str, detections: Detections, blocks: TimeBlocks) -> ClassScores:
    """Score the detections of a class, and those of each band of distances."""
    ranking = Ranking(detections.detections)
    sums = ErrorSums(detections, blocks, ranking)
    n_truths = sums.counts.truths.sum(axis=1).astype(np.int64).tolist()
    curves: dict[int, list[tuple[Floats, Floats]]] = {
        i: [] for i, number in enumerate(n_truths) if number}
    points = {}
    has_bands = any(n_truths[1:])
    for i_distance in range(len(MATCH_DISTANCES_M)):
        are_matches, bands = ranking.flags(i_distance)
        has_bands = has_bands or bool((bands != NO_BAND).any())
        for i, curve in curves.items():
            chosen = None if i == 0 else bands == i - 1
            curve.append(_curve(ranking, chosen, are_matches, n_truths[i]))
            wanted = _wanted(curve[-1][1])
            matched = are_matches if chosen is None else are_matches & chosen
            if i_distance == I_ERRORS and len(wanted) and matched.any():
                points[i] = ranking.match_points(matched, wanted)
    means = sums.means(points)
    found = []
    for i, selection in enumerate((name, *(BANDS if has_bands else ()))):
        totals = sums.counts.sums[i].sum(axis=0)
        recall_errors: Floats = np.ones(_N_ERRORS)
        if i in points:
            recall_errors = recall_means(points[i].scores, means[i], curves[i][I_ERRORS][1])
        with np.errstate(all='ignore'):
            errors: Floats = totals[:_N_ERRORS] / totals[_N_ERRORS:-2]
        found.append(ClassScores(
            name, n_truths[i], int(totals[-1]), int(totals[-2]),
            Curves(*map(np.stack, zip(*curves[i], strict=True))) if i in curves else None,
            errors, recall_errors, sums.counts if i == 0 else None))
        if i:
            found[0].bands[selection] = found[i]
    return found[0]


def _curve(ranking: Ranking, are_chosen: Bools | None, are_matches: Bools,
           n_truths: int) -> tuple[Floats, Floats]:
    """
    Return (101,) precisions and confidences, interpolated at RECALLS, 0 beyond the greatest one.

    :param ranking: order of the detections.
    :param are_chosen: (K,) bool by rank, those that count; None for all.
    :param are_matches: (K,) bool by rank.
    :param n_truths: number of ground-truth objects.
    """
    if not (are_matches if are_chosen is None else are_matches & are_chosen).any():
        return np.zeros(N_RECALLS), np.zeros(N_RECALLS)
    # The greatest number of matches of which the recall, as it is rounded, is not beyond each.
    most = np.floor(RECALLS * n_truths)
    most += (most + 1.0) / n_truths <= RECALLS
    most -= most / n_truths > RECALLS
    points = ranking.curve_points(are_chosen, are_matches, most.astype(np.int64))
    recall = points.positives / n_truths
    return np.interp(RECALLS, recall, points.positives / points.numbers, right=0.0), \
        np.interp(RECALLS, recall, points.scores, right=0.0)


def _wanted(confidences: Floats) -> Floats:
    """Return the confidences at recalls that count and are reached, of those at RECALLS."""
    reached = confidences.nonzero()[0]
    return confidences[I_FIRST:reached[-1] + 1] if len(reached) else confidences[:0]


def recall_means(scores: Floats, means: Floats, confidences: Floats) -> Floats:
    """
    Return (5,) means over recall, as ``calc_tp`` of nuScenes; 1 if the least is not reached.

    :param scores: (K,) float64, confidences of matches in falling order.
    :param means: (K, 5) float64, means of the errors down to each of them.
    :param confidences: (101,) float64, at RECALLS.
    """
    wanted = _wanted(confidences)
    if not len(wanted):
        return np.ones(_N_ERRORS)
    return np.array([np.interp(wanted, scores[::-1], column[::-1]).mean() for column in means.T])


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

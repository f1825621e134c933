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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import math
from typing import Final

import numpy as np

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.frame_record import (
    BANDS,
    Detections,
    ERROR_NAMES,
    NO_BAND,
    Records,
)
from state_sensor_ros.evaluation.matching import I_ERRORS
from state_sensor_ros.frame import Bools, Floats

_N_ERRORS = len(ERROR_NAMES)


# Ours: plain means over the matches at 2 m. nuScenes': means over recall of running means.
PLAIN: Final = 'plain'
NUSCENES: Final = 'nuscenes'
# The weight of mAP in NDS; each of the five errors has the weight 1.
MAP_WEIGHT: Final = 5.0
# Number of recalls from 0 to 1.
N_RECALLS: Final = 101
_MIN_RECALL, _MIN_PRECISION = 0.1, 0.1
# Index in RECALLS of the first one that counts.
I_FIRST: Final = round(100 * _MIN_RECALL) + 1
RECALLS: Final[Floats] = np.linspace(0.0, 1.0, N_RECALLS, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """``precisions`` and ``confidences`` (4, 101) at RECALLS, for each of MATCH_DISTANCES_M."""

    precisions: Floats
    confidences: Floats

    @property
    def average_precisions(self) -> Floats:
        """Average precision at each of MATCH_DISTANCES_M, (4,)."""
        return average_precision(self.precisions)


def average_precision(precisions: Floats) -> Floats:
    """Return average precisions, (K,)."""
    # precisions: (K, R) float64, at equidistant recalls from 0 to 1.
    first = round((precisions.shape[1] - 1) * _MIN_RECALL) + 1
    # Each precision is scaled before the mean: none exceeds 1, so neither does a rounded sum.
    scaled = np.maximum(precisions[:, first:] - _MIN_PRECISION, 0.0) / (1.0 - _MIN_PRECISION)
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
    recall_errors: Floats  # (5,) the same as nuScenes' means over recall, 1 for none
    bands: Mapping[str, ClassScores]  # by the names of BANDS, empty without an ego

    @property
    def average_precisions(self) -> Floats | None:
        """Average precision at each of MATCH_DISTANCES_M, (4,), None without ground truth."""
        return None if self.curves is None else self.curves.average_precisions


def score_classes(classes: Mapping[str, Detections]) -> list[ClassScores]:
    """Score each class that has a ground-truth object or a detection."""
    return [_scored(name, detections) for name, detections in classes.items()]


def _scored(name: str, of_class: Detections) -> ClassScores:
    rows, truths = of_class.detections, of_class.truths
    # Of equal confidences the later one is first, as in nuscenes-devkit.
    rows = rows[np.argsort(rows['score'], kind='stable')[::-1]]
    has_ego = (rows['bands'] != NO_BAND).any() or (truths['band'] != NO_BAND).any()
    return _selected(name, rows, np.ones(rows['bands'].shape, np.bool_), len(truths), {
        band: _selected(band, rows, rows['bands'] == i, int((truths['band'] == i).sum()))
        for i, band in enumerate(BANDS) if has_ego})


def _selected(name: str, rows: Records, masks: Bools, n_truths: int,
              bands: Mapping[str, ClassScores] | None = None) -> ClassScores:
    """Score detections; ``masks``: (N, 4) bool, those that count at each of MATCH_DISTANCES_M."""
    matched = rows[masks[:, I_ERRORS] & rows['are_matches'][:, I_ERRORS]]
    known = np.isfinite(matched['errors'])
    sums, n_known = np.where(known, matched['errors'], 0.0).cumsum(axis=0), known.cumsum(axis=0)
    curves: Curves | None = None
    recall_errors: Floats = np.ones(_N_ERRORS)
    if n_truths:
        curves = Curves(*map(np.stack, zip(*[
            _curve(are_matches[mask], rows['score'][mask], n_truths)
            for are_matches, mask in zip(rows['are_matches'].T, masks.T, strict=True)],
            strict=True)))
        means = sums / np.maximum(n_known, 1.0)
        means[:, (n_known[-1:] == 0).any(axis=0)] = 1.0
        recall_errors = recall_means(matched['score'], means, curves.confidences[I_ERRORS])
    with np.errstate(all='ignore'):
        errors: Floats = np.nansum(np.where(known, matched['errors'], 0.0), axis=0) / known.sum(
            axis=0)
    return ClassScores(name, n_truths, int(masks[:, I_ERRORS].sum()), len(matched), curves, errors,
                       recall_errors, bands or {})


def _curve(are_matches: Bools, scores: Floats, n_truths: int) -> tuple[Floats, Floats]:
    """Return (101,) precisions and confidences, interpolated at RECALLS, 0 beyond the last."""
    positives = np.cumsum(are_matches)
    if not are_matches.any():
        return np.zeros(N_RECALLS), np.zeros(N_RECALLS)
    return np.interp(RECALLS, positives / n_truths, positives / np.arange(1, len(scores) + 1),
                     right=0.0), np.interp(RECALLS, positives / n_truths, scores, right=0.0)


def _wanted(confidences: Floats) -> Floats:
    """Return the confidences at recalls that count and are reached, of those at RECALLS."""
    reached = confidences.nonzero()[0]
    return confidences[I_FIRST:reached[-1] + 1] if len(reached) else confidences[:0]


def recall_means(scores: Floats, means: Floats, confidences: Floats) -> Floats:
    """Return (5,) means over recall, as ``calc_tp`` of nuScenes; 1 if the least is not reached."""
    # scores: (K,) float64, confidences of matches in falling order.
    # means: (K, 5) float64, means of the errors down to each of them.
    wanted = _wanted(confidences)
    if not len(wanted):
        return np.ones(_N_ERRORS)
    return np.array([np.interp(wanted, scores[::-1], column[::-1]).mean() for column in means.T])


def averaged_classes(classes: Sequence[ClassScores]) -> list[ClassScores]:
    """Return the classes of which means are taken: those with ground truth, without "unknown"."""
    return [scores for scores in classes
            if scores.curves is not None and scores.name != CLASS_NAMES[UNKNOWN]]


def mean_average_precision(classes: Sequence[ClassScores]) -> float:
    """Return mAP, the mean over classes and match distances; NaN without ground truth."""
    averages = [scores.curves.average_precisions.mean() for scores in averaged_classes(classes)
                if scores.curves is not None]
    return float(np.mean(averages)) if averages else math.nan


def mean_recall_errors(classes: Sequence[ClassScores]) -> Floats:
    """Return (5,) mATE, mASE, mAOE, mAVE, mAAE of nuScenes, NaN without ground truth."""
    errors = [scores.recall_errors for scores in averaged_classes(classes)]
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

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

Only the detections of one class are in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.frame_record import (
    BANDS,
    Detections,
    ERROR_NAMES,
    NO_BAND,
    Records,
)
from state_sensor_ros.evaluation.matching import I_ERRORS
from state_sensor_ros.evaluation.resampling import TimeBlocks
from state_sensor_ros.frame import Bools, Floats, Rows

# More different confidences of detections are rounded to so many ranks in blocks of time.
N_RANKS: Final = 256
_N_ERRORS = len(ERROR_NAMES)
# All detections of a class, then those of each band of distances.
N_SELECTIONS: Final = 1 + len(BANDS)


@dataclass(frozen=True, slots=True, eq=False)
class BlockCounts:
    """The detections of a class in B blocks of time."""

    # (S, B, 12) of each selection: sums of the known errors at 2 m, their numbers, matches at 2 m,
    # detections.
    sums: Floats
    truths: Floats  # (S, B) ground-truth objects. By K ranks of the confidence, the highest first
    confidences: Floats  # (K,), the least of each rank
    counts: Floats  # (5, B, K) detections, and matches at each of MATCH_DISTANCES_M
    errors: Floats  # errors, known: (5, B, K) sums of errors at 2 m, and numbers of known ones
    known: Floats


def _block_counts(rows: Records, truths: Records, blocks: TimeBlocks) -> BlockCounts:
    """Return the sums in blocks of time; ``rows``: detections by falling confidence."""
    scores, n_rows = rows['score'], len(rows)
    begins = np.flatnonzero(np.append(True, scores[1:] != scores[:-1])[:n_rows])
    if len(begins) > N_RANKS:
        begins = -(-np.arange(N_RANKS) * n_rows // N_RANKS)
    ends = np.append(begins, n_rows)[1:]
    known = np.isfinite(rows['errors'])
    matches: list[npt.NDArray[Any]] = [np.ones(n_rows), *rows['are_matches'].T]
    errors: list[npt.NDArray[Any]] = [*np.where(known, rows['errors'], 0.0).T, *known.T]
    of_block = blocks.of_frames[rows['frame']]
    places = of_block * len(begins) + np.repeat(np.arange(len(begins)), ends - begins)
    shape = 5 + 2 * _N_ERRORS, blocks.n_blocks, len(begins)
    counts, sums_of_errors, n_known = np.split(_binned(
        places, [*matches, *errors], blocks.n_blocks * len(begins)).reshape(shape), (5, 10))
    truth_blocks = blocks.of_frames[truths['frame']]
    sums, n_truths = [], []
    for i in range(N_SELECTIONS):
        within, truths_within = (
            slice(None) if i == 0 else bands == i - 1
            for bands in (rows['bands'][:, I_ERRORS], truths['band']))
        sums.append(_binned(of_block[within], [column[within] for column in (
            *errors, matches[1 + I_ERRORS], matches[0])], blocks.n_blocks).T)
        n_truths.append(np.bincount(truth_blocks[truths_within], minlength=blocks.n_blocks))
    return BlockCounts(np.array(sums), np.array(n_truths, np.float64), scores[ends - 1], counts,
                       sums_of_errors, n_known)


def _binned(places: Rows, columns: Sequence[npt.NDArray[Any]], n_places: int) -> Floats:
    """Return (C, n_places) sums of columns (R,) at places (R,)."""
    sums: Floats = np.array([np.bincount(places, column, n_places) for column in columns])
    return sums


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
    counts: BlockCounts | None  # in blocks of time, None for a band
    # The scores by the names of BANDS, empty without an ego.
    bands: dict[str, ClassScores] = field(default_factory=dict)

    @property
    def average_precisions(self) -> Floats | None:
        """Average precision at each of MATCH_DISTANCES_M, (4,), None without ground truth."""
        return None if self.curves is None else self.curves.average_precisions


def score_classes(classes: Mapping[str, Detections], blocks: TimeBlocks) -> list[ClassScores]:
    """Score each class that has a ground-truth object or a detection."""
    return [_scored(name, detections, blocks) for name, detections in classes.items()]


def _scored(name: str, detections: Detections, blocks: TimeBlocks) -> ClassScores:
    rows, truths = detections.detections.read_all(), detections.truths.read_all()
    # Of equal confidences the later one is first, as in nuscenes-devkit.
    rows = rows[np.argsort(rows['score'], kind='stable')[::-1]]
    counts = _block_counts(rows, truths, blocks)
    found = [_selected(name, rows, counts, i) for i in range(N_SELECTIONS)]
    if (rows['bands'] != NO_BAND).any() or (truths['band'] != NO_BAND).any():
        found[0].bands.update(zip(BANDS, found[1:], strict=True))
    return found[0]


def _selected(name: str, rows: Records, counts: BlockCounts, i: int) -> ClassScores:
    """Score all detections, or those of a band of distances."""
    n_truths, totals = int(counts.truths[i].sum()), counts.sums[i].sum(axis=0)
    curves: Curves | None = None
    recall_errors: Floats = np.ones(_N_ERRORS)
    if n_truths:
        masks = [(i == 0) | (bands == i - 1) for bands in rows['bands'].T]
        curves = Curves(*map(np.stack, zip(*[
            _curve(are_matches[mask], rows['score'][mask], n_truths)
            for are_matches, mask in zip(rows['are_matches'].T, masks, strict=True)],
            strict=True)))
        matched = rows[masks[I_ERRORS] & rows['are_matches'][:, I_ERRORS]]
        known = np.isfinite(matched['errors'])
        n_known = known.cumsum(axis=0)
        means = np.where(known, matched['errors'], 0.0).cumsum(axis=0) / np.maximum(n_known, 1.0)
        means[:, (n_known[-1:] == 0).any(axis=0)] = 1.0
        recall_errors = recall_means(matched['score'], means, curves.confidences[I_ERRORS])
    with np.errstate(all='ignore'):
        errors: Floats = totals[:_N_ERRORS] / totals[_N_ERRORS:-2]
    return ClassScores(name, n_truths, int(totals[-1]), int(totals[-2]), curves, errors,
                       recall_errors, counts if i == 0 else None)


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

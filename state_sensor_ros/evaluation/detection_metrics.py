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

The rows of the detections are not in memory: at the peak a detection takes 16 bytes, 20 if
confidences are no float32, for the sort. Curves need few of its ranks; errors are summed between
those, and in blocks of time, in one pass over the rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.frame_record import BANDS, Detections, ERROR_NAMES, NO_BAND
from state_sensor_ros.evaluation.matching import I_ERRORS, MATCH_DISTANCES_M
from state_sensor_ros.evaluation.resampling import TimeBlocks
from state_sensor_ros.evaluation.spooled_rows import N_BLOCK, SpooledRows
from state_sensor_ros.frame import Bools, Floats, Rows

# More different confidences of detections are rounded to so many ranks in blocks of time.
N_RANKS: Final = 256
_N_ERRORS = len(ERROR_NAMES)
# All detections of a class, then those of each band of distances.
N_SELECTIONS: Final = 1 + len(BANDS)
Ranks = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class BlockCounts:
    """The detections of a class in B blocks of time."""

    # (S, B, 12) of each selection: sums of the known errors at 2 m, their numbers, matches at 2 m,
    # detections.
    sums: Floats
    truths: Floats  # (S, B) ground-truth objects. By K ranks of the confidence, the highest first
    confidences: Floats  # (K,), the least of each rank
    # (5, B, K) detections, and matches at each of MATCH_DISTANCES_M.
    counts: npt.NDArray[np.uint32]
    errors: Floats  # errors, known: (5, B, K) sums of errors at 2 m, and numbers of known ones
    known: npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class RankPoints:
    """Ranks of a selection at which numbers are needed."""

    ranks: Rows  # (P,) among all detections of the class
    numbers: Rows  # (P,) detections of the selection up to there
    positives: Rows  # (P,) those of them that match
    scores: Floats  # (P,) confidences


class Ranking:
    """
    The order of the detections of a class, of falling confidence.

    Of equal confidences the later one is first, as in nuscenes-devkit.
    """

    def __init__(self, detections: SpooledRows) -> None:
        self._detections = detections
        scores = detections.column('score')
        with np.errstate(all='ignore'):
            narrow = scores.astype(np.float32)
        if np.array_equal(narrow, scores, equal_nan=True):
            scores = narrow
        del narrow
        order: Ranks = np.argsort(scores, kind='stable').astype(np.uint32)
        self._order, self._scores = order[::-1], _taken(scores, order[::-1])

    def __len__(self) -> int:
        return len(self._order)

    def flags(self, index: int) -> tuple[Bools, npt.NDArray[np.int8]]:
        """Return whether each detection matches, and its band, by rank, (N,) each."""
        return (_taken(self._detections.column('are_matches', index), self._order),
                _taken(self._detections.column('bands', index), self._order))

    def points(self, ranks: Rows, numbers: Rows, positives: Rows) -> RankPoints:
        return RankPoints(ranks, numbers, positives, self._scores[ranks].astype(np.float64))

    def curve_points(self, are_chosen: Bools | None, are_matches: Bools,
                     counts: Rows) -> RankPoints:
        """Return the ranks between which precision is interpolated."""
        # are_chosen: (N,) bool, by rank, the selection; None for all.
        # are_matches: (N,) bool, by rank.
        # counts: (C,) numbers of matches whose last rank, and the next one, are needed.
        chosen = are_matches if are_chosen is None else are_matches[are_chosen]
        positives = np.cumsum(chosen, dtype=np.int32)
        last = np.searchsorted(positives, counts.astype(np.int32), side='right') - 1
        rows = _unique_within(len(chosen), last, last + 1)
        ranks = rows if are_chosen is None else np.searchsorted(
            np.cumsum(are_chosen, dtype=np.int32), (rows + 1).astype(np.int32))
        return self.points(ranks, rows + 1, positives[rows].astype(np.int64))

    def match_points(self, are_matches: Bools, confidences: Floats) -> RankPoints:
        """Return the ranks of matches between which errors are interpolated."""
        # are_matches: (N,) bool, by rank, matches of a selection, at least one.
        # confidences: (C,) float64, at which errors are needed.
        positives = np.cumsum(are_matches, dtype=np.int32)
        ascending = self._scores[::-1]
        first = len(self) - np.array([bisect_right(ascending, each) for each in confidences],
                                     np.int64)
        # The first match of at most this confidence, and the one before it.
        found = np.where(first > 0, positives[first - 1], 0)
        rows = _unique_within(int(positives[-1]), found, found - 1)
        return self.points(np.searchsorted(positives, (rows + 1).astype(np.int32)),
                           rows + 1, rows + 1)

    def groups(self) -> tuple[Rows, Floats]:
        """Return first ranks of at most N_RANKS groups, and their least confidences."""
        n_all = len(self)
        begins = np.flatnonzero(np.append(True, self._scores[1:] != self._scores[:-1])[:n_all])
        if len(begins) > N_RANKS:
            begins = -(-np.arange(N_RANKS) * n_all // N_RANKS)
        ends = np.append(begins, n_all)[1:] - 1
        return begins, self._scores[ends].astype(np.float64)

    def ranks(self) -> Ranks:
        """Return the rank of each detection, (N,)."""
        ranks: Ranks = np.empty(len(self), np.uint32)
        for first in range(0, len(self), N_BLOCK):
            end = min(first + N_BLOCK, len(self))
            ranks[self._order[first:end]] = np.arange(first, end)
        return ranks


def _taken(values: npt.NDArray[Any], order: Ranks) -> npt.NDArray[Any]:
    """Return values in an order; numpy alone would make 8 bytes of each index."""
    taken = np.empty(len(order), values.dtype)
    for first in range(0, len(order), N_BLOCK):
        taken[first:first + N_BLOCK] = values[order[first:first + N_BLOCK]]
    return taken


def _unique_within(n_rows: int, *rows: Rows) -> Rows:
    """Return the different rows of some, the first one and the last one; ``n_rows`` exist."""
    unique: Rows = np.unique(np.concatenate((*rows, [0, n_rows - 1])).clip(0, n_rows - 1))
    return unique


class ErrorSums:
    """Sums of the errors of a class in one pass over its detections."""

    def __init__(self, detections: Detections, blocks: TimeBlocks, ranking: Ranking) -> None:
        self._rows, self._blocks = detections.detections, blocks
        begins, confidences = ranking.groups()
        shape = blocks.n_blocks, len(begins)
        self._begins, self._ranks = begins, ranking.ranks()
        self.counts = BlockCounts(
            np.zeros((N_SELECTIONS, blocks.n_blocks, 2 * _N_ERRORS + 2)),
            _truth_counts(detections.truths, blocks), confidences,
            np.zeros((1 + len(MATCH_DISTANCES_M), *shape), np.uint32),
            np.zeros((_N_ERRORS, *shape)), np.zeros((_N_ERRORS, *shape), np.uint32))

    def means(self, points: dict[int, RankPoints]) -> dict[int, Floats]:
        """Return running means of the known errors at ranks, (P, 5), 1 for an unknown error."""
        sums, numbers = ({i: np.zeros((len(each.ranks), _N_ERRORS)) for i, each in points.items()}
                         for _ in range(2))
        first = 0
        for rows in self._rows.blocks():
            ranks = self._ranks[first:first + len(rows)].astype(np.int64)
            first += len(rows)
            known = np.isfinite(rows['errors'])
            errors = np.where(known, rows['errors'], 0.0)
            self._count(rows, ranks, errors, known)
            for i, (selected, _) in enumerate(_selections(rows)):
                if i in points:
                    places = np.searchsorted(points[i].ranks, ranks[selected])
                    sums[i] += _binned(places, errors[selected], len(sums[i]))
                    numbers[i] += _binned(places, known[selected], len(sums[i]))
        found = {}
        for i in points:
            known_up_to = numbers[i].cumsum(axis=0)
            found[i] = sums[i].cumsum(axis=0) / np.maximum(known_up_to, 1.0)
            found[i][:, known_up_to[-1] == 0.0] = 1.0
        return found

    def _count(self, rows: npt.NDArray[np.void], ranks: Rows, errors: Floats,
               known: Bools) -> None:
        """Add the sums in blocks of time."""
        counts, n_blocks = self.counts, self._blocks.n_blocks
        blocks = self._blocks.of_frames[rows['frame']]
        for sums, (selected, within) in zip(counts.sums, _selections(rows), strict=True):
            sums[:, :_N_ERRORS] += _binned(blocks[selected], errors[selected], n_blocks)
            sums[:, _N_ERRORS:-2] += _binned(blocks[selected], known[selected], n_blocks)
            sums[:, -2] += np.bincount(blocks[selected], minlength=n_blocks)
            sums[:, -1] += np.bincount(blocks[within], minlength=n_blocks)
        groups = np.searchsorted(self._begins, ranks, side='right') - 1
        places, shape = blocks * len(self._begins) + groups, counts.counts.shape[1:]
        for total, mask in zip(counts.counts, (None, *rows['are_matches'].T), strict=True):
            chosen = places if mask is None else places[mask]
            total += np.bincount(chosen, minlength=total.size).reshape(shape).astype(np.uint32)
        matched = rows['are_matches'][:, I_ERRORS]
        places, errors, known = places[matched], errors[matched], known[matched]
        for i in range(_N_ERRORS):
            counts.errors[i] += np.bincount(places, errors[:, i], counts.errors[i].size) \
                .reshape(shape)
            counts.known[i] += np.bincount(places[known[:, i]], minlength=counts.known[i].size) \
                .reshape(shape).astype(np.uint32)


def _selections(rows: npt.NDArray[np.void]) -> Iterator[tuple[Bools, Bools]]:
    """Yield which detections match at 2 m, and which count, in all and in each band."""
    matched, bands = rows['are_matches'][:, I_ERRORS], rows['bands'][:, I_ERRORS]
    yield matched, np.ones(len(rows), np.bool_)
    for i in range(len(BANDS)):
        within = bands == i
        yield matched & within, within


def _binned(places: Rows, columns: npt.NDArray[Any], n_places: int) -> Floats:
    """Return (n_places, C) sums of columns (R, C) at places (R,)."""
    sums: Floats = np.stack([np.bincount(places, column, n_places) for column in columns.T],
                            axis=1)
    return sums


def _truth_counts(truths: SpooledRows, blocks: TimeBlocks) -> Floats:
    counts = np.zeros((N_SELECTIONS, blocks.n_blocks))
    for rows in truths.blocks():
        places = blocks.of_frames[rows['frame']]
        counts[0] += np.bincount(places, minlength=blocks.n_blocks)
        for i in range(len(BANDS)):
            counts[1 + i] += np.bincount(places[rows['band'] == i], minlength=blocks.n_blocks)
    return counts


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

    :param are_chosen: (K,) bool by rank, those that count; None for all.
    :param are_matches: (K,) bool by rank.
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

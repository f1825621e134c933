# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Tracking metrics: HOTA, CLEAR MOT and IDF1 by trackeval, AMOTA as nuScenes.

Objects match within 2 m: the similarity of two objects is 1 at distance 0 and 0 at 4 m. AMOTA, and
the times until a track is found and lost: ``nuscenes/eval/tracking/algo.py`` and ``metrics.py`` of
nuscenes-devkit 1.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
import math
from typing import Any, Final

import numpy as np

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.matching import EVALUATED_CLASSES
from state_sensor_ros.evaluation.track_record import (
    matched_pairs,
    TrackArrays,
    ZERO_SIMILARITY_M,
)
from state_sensor_ros.frame import Bools, Floats, Rows

# Of nuScenes: number of recalls, the least one, and AMOTP at a recall that is not reached, m.
N_THRESHOLDS: Final = 40
_MIN_RECALL = 0.1
_WORST_MOTP_M = 2.0
# Numbers at the threshold of the greatest MOTA, and their values if no recall is reached.
WORST: Final = {'mota': 0.0, 'motp': _WORST_MOTP_M, 'identity_switches': math.nan,
                'track_initialization_duration': 20.0, 'longest_gap_duration': 20.0}
# Of both sides together: the matrices of HOTA and IDF1 are quadratic, 0.6 GB for so many.
MAX_IDS: Final = 5000
# Names of numbers of tracks in trackeval.
_OF_TRACKS: Final = {'fragmentations': 'Frag', 'mostly_tracked': 'MT', 'partially_tracked': 'PT',
                     'mostly_lost': 'ML'}


def durations(tracks: TrackArrays, pairs: Rows, are_truths: Bools) -> tuple[float, float]:
    """Return the mean time to the first match, and the mean of the longest gaps, s."""
    # are_truths: (T,) bool, the ground-truth objects that count.
    # Returns means over the tracks of the ground truth that have a match, NaN without any.
    if not len(pairs):
        return math.nan, math.nan
    is_hit: Bools = np.zeros(len(tracks.truth_ids), np.bool_)
    is_hit[tracks.pair_truths[pairs]] = True
    truths = np.flatnonzero(are_truths)
    truths = truths[np.lexsort((tracks.truth_frames[truths], tracks.truth_ids[truths]))]
    numbers, frames = tracks.truth_ids[truths], tracks.truth_frames[truths]
    hit_rows = np.flatnonzero(is_hit[truths])
    tracked, first = np.unique(numbers[hit_rows], return_index=True)
    last = np.append(first[1:], len(hit_rows)) - 1
    begins = np.searchsorted(numbers, tracked)
    ends = np.searchsorted(numbers, tracked, side='right') - 1
    first_frames, last_frames = frames[hit_rows[first]], frames[hit_rows[last]]
    times_s = tracks.times_s
    initialization_s = float((times_s[first_frames] - times_s[frames[begins]]).mean())
    # Frames without a match: before the first one, after the last one, between two.
    gaps = np.maximum(first_frames - frames[begins], frames[ends] - last_frames)
    places = np.repeat(np.arange(len(tracked)), last - first + 1)
    between = np.diff(frames[hit_rows], prepend=0) - 1
    between[first] = 0
    np.maximum.at(gaps, places, between)
    period_s = float(np.median(np.diff(times_s))) if len(times_s) > 1 else 0.0
    return initialization_s, float(gaps.mean()) * period_s


def threshold_scores(tracks: TrackArrays, class_number: int) -> dict[str, float]:
    """Return AMOTA and AMOTP (m) of a class, and its numbers at the greatest MOTA."""
    # Objects of the stack, matches, switches, and sum of distances, m, at each threshold.
    counts = np.zeros((N_THRESHOLDS, 4))
    are_truths, are_stacks = (classes == class_number for classes in (
        tracks.truth_classes, tracks.stack_classes))
    are_pairs = are_truths[tracks.pair_truths] & are_stacks[tracks.pair_stacks]
    pair_scores = tracks.stack_scores[tracks.pair_stacks]
    thresholds = _thresholds(tracks, matched_pairs(tracks, are_pairs), int(are_truths.sum()))
    for threshold in np.unique(thresholds[~np.isnan(thresholds)]).tolist():
        pairs = matched_pairs(tracks, are_pairs & (pair_scores >= threshold))
        counts[thresholds == threshold] = (
            (are_stacks & (tracks.stack_scores >= threshold)).sum(), len(pairs),
            _are_switches(tracks, pairs).sum(), tracks.pair_distances[pairs].sum())
    accuracies, precisions = _threshold_curves(counts)
    amota, amotp = accuracies.mean(), precisions.mean()
    numbers = {'amota': float(amota), 'amotp': float(amotp), **WORST}
    n_truths, (n_stacks, n_matches, n_switches, distances) = are_truths.sum(), counts.T
    accuracies = np.where(np.isnan(thresholds), -1.0, np.maximum(
        1.0 - (n_truths + n_stacks - 2.0 * n_matches + n_switches) / n_truths, 0.0))
    # Of equal ones the greatest recall.
    best = N_THRESHOLDS - 1 - int(accuracies[::-1].argmax())
    if accuracies[best] >= 0.0:
        pairs = matched_pairs(tracks, are_pairs & (pair_scores >= thresholds[best]))
        numbers |= dict(zip(WORST, (
            float(accuracies[best]), float(distances[best] / n_matches[best]),
            int(n_switches[best]), *durations(tracks, pairs, are_truths)), strict=True))
    return numbers


def _threshold_curves(counts: Floats) -> tuple[Floats, Floats]:
    """Return MOTAR and MOTP (m) at each threshold, (T,), of (T, 4) counts."""
    n_stacks, n_matches, n_switches, distances = counts.T
    n_right = n_matches - n_switches
    return (np.where(n_right > 0.0, np.maximum(
        0.0, 1.0 - (n_stacks - n_matches) / np.maximum(n_right, 1.0)), 0.0),
        np.where(n_matches > 0.0, distances / np.maximum(n_matches, 1.0), _WORST_MOTP_M))


def _are_switches(tracks: TrackArrays, pairs: Rows) -> Bools:
    """Return which matches are with another track than the last one of the ground truth."""
    ids = tracks.truth_ids[tracks.pair_truths[pairs]]
    stack_ids = tracks.stack_ids[tracks.pair_stacks[pairs]]
    order = np.argsort(ids, kind='stable')
    are_switches: Bools = np.zeros(len(pairs), np.bool_)
    are_switches[order[1:]] = (np.diff(ids[order]) == 0) & (np.diff(stack_ids[order]) != 0)
    return are_switches


def _thresholds(tracks: TrackArrays, pairs: Rows, n_truths: int) -> Floats:
    """Return (40,) confidences at which recalls are reached, NaN for those that are not."""
    right = pairs[~_are_switches(tracks, pairs)]
    scores = np.sort(tracks.stack_scores[tracks.pair_stacks[right]])[::-1]
    if not len(scores):
        return np.full(N_THRESHOLDS, np.nan)
    recalls = np.linspace(_MIN_RECALL, 1.0, N_THRESHOLDS).round(12)
    reached = np.arange(1, len(scores) + 1) / n_truths
    thresholds: Floats = np.interp(recalls, reached, scores, right=0.0)
    thresholds[recalls > reached[-1]] = np.nan
    return thresholds


@dataclass(frozen=True, slots=True)
class TrackingScores:
    numbers: dict[str, float]  # by the keys of the result, NaN if undefined
    # Those of nuScenes of each class with ground truth, None if not requested.
    classes: dict[str, dict[str, float]] | None


class _Similarities(Sequence[Floats]):

    def __init__(self, tracks: TrackArrays, truth_ends: Rows, stack_ends: Rows) -> None:
        self._tracks, self._truth_ends, self._stack_ends = tracks, truth_ends, stack_ends
        self._pair_ends = np.searchsorted(tracks.pair_truths, truth_ends)

    def __len__(self) -> int:
        return len(self._truth_ends) - 1

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401
        tracks = self._tracks
        pairs = slice(self._pair_ends[index], self._pair_ends[index + 1])
        (truth, truth_end), (stack, stack_end) = (
            ends[index:index + 2] for ends in (self._truth_ends, self._stack_ends))
        similarity = np.zeros((truth_end - truth, stack_end - stack))
        similarity[tracks.pair_truths[pairs] - truth, tracks.pair_stacks[pairs] - stack] = \
            1.0 - tracks.pair_distances[pairs] / ZERO_SIMILARITY_M
        return similarity

    def __iter__(self) -> Iterator[Floats]:
        return (self[index] for index in range(len(self)))


def load_trackeval() -> None:
    """Import trackeval; called early, so that work is not lost if it is missing."""
    # It prints the packages that are missing for benchmarks which are not used here.
    with redirect_stdout(StringIO()):
        from trackeval import metrics  # noqa: F401


def score_tracks(tracks: TrackArrays, interpolated: TrackArrays | None) -> TrackingScores:
    """Score the tracks of a stack; :func:`load_trackeval` has been called."""
    # interpolated: the same with objects in the gaps; None for no scores as of nuScenes.
    pairs = matched_pairs(tracks, np.ones(len(tracks.pair_truths), np.bool_))
    classes = None if interpolated is None else {
        EVALUATED_CLASSES[number]: threshold_scores(interpolated, number)
        for number in np.unique(tracks.truth_classes).tolist()}
    initialization_s, gap_s = durations(tracks, pairs, np.ones(len(tracks.truth_ids), np.bool_))
    numbers = _by_trackeval(tracks)
    if not tracks.n_truth_ids:
        numbers |= dict.fromkeys(('hota', 'mota', 'idf1', *_OF_TRACKS), math.nan)
        numbers['identity_switches'] = 0
    numbers |= {'objects': len(tracks.truth_ids), 'tracks': tracks.n_truth_ids,
                'track_initialization_duration': initialization_s, 'longest_gap_duration': gap_s}
    return TrackingScores(numbers, classes)


def _by_trackeval(tracks: TrackArrays) -> dict[str, float]:
    """Return the numbers of trackeval; HOTA and IDF1 are NaN for more than MAX_IDS ids."""
    from trackeval.metrics import CLEAR, HOTA, Identity
    numbers: dict[str, float] = {'hota': math.nan, 'idf1': math.nan}
    truth_ends, stack_ends = (np.searchsorted(frames, np.arange(len(tracks.times_s) + 1))
                              for frames in (tracks.truth_frames, tracks.stack_frames))
    data = {
        'gt_ids': np.split(tracks.truth_ids, truth_ends[1:-1]),
        'tracker_ids': np.split(tracks.stack_ids, stack_ends[1:-1]),
        'similarity_scores': _Similarities(tracks, truth_ends, stack_ends),
        'num_timesteps': len(tracks.times_s),
        'num_gt_ids': tracks.n_truth_ids, 'num_tracker_ids': tracks.n_stack_ids,
        'num_gt_dets': len(tracks.truth_ids), 'num_tracker_dets': len(tracks.stack_ids)}
    quiet = {'PRINT_CONFIG': False}
    clear = CLEAR(quiet).eval_sequence(data)
    numbers |= {name: int(clear[key]) for name, key in {
        **_OF_TRACKS, 'identity_switches': 'IDSW', 'false_positives': 'CLR_FP',
        'misses': 'CLR_FN'}.items()}
    numbers['mota'] = float(clear['MOTA'])
    numbers['motp'] = ZERO_SIMILARITY_M * (1.0 - float(clear['MOTP'])) if clear['CLR_TP'] \
        else math.nan
    if tracks.n_truth_ids + tracks.n_stack_ids <= MAX_IDS:
        numbers |= {'hota': float(np.mean(HOTA().eval_sequence(data)['HOTA'])),
                    'idf1': float(Identity(quiet).eval_sequence(data)['IDF1'])}
    return numbers


def class_means(classes: Mapping[str, dict[str, float]]) -> dict[str, float]:
    """
    Return the numbers of nuScenes for all classes but "unknown": means, and the sum of switches.

    :param classes: scores of each class; of none, the numbers are NaN.
    """
    numbers = [found for name, found in classes.items() if name != CLASS_NAMES[UNKNOWN]]
    if not numbers:
        return dict.fromkeys(('amota', 'amotp', *WORST), math.nan)
    means = {key: float(np.mean([of_class[key] for of_class in numbers]))
             for key in ('amota', 'amotp', *WORST)}
    # Of a class that no recall reaches it is not known.
    n_switches = sum(of_class['identity_switches'] for of_class in numbers)
    return {**means, 'identity_switches': n_switches}

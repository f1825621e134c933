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

Objects match within 2 m: the similarity of two objects is 1 at distance 0 and 0 at 4 m. trackeval
returns the numbers of a whole recording; what confidence intervals need of each block of time is
counted here in the same way (``trackeval/metrics/clear.py``, ``hota.py`` and ``identity.py`` of
trackeval 1.3), and is also the result of recordings that are too large for trackeval. AMOTA, and
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
import numpy.typing as npt

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.matching import EVALUATED_CLASSES
from state_sensor_ros.evaluation.resampling import COUNTS, TimeBlocks
from state_sensor_ros.evaluation.track_record import (
    continued_pairs,
    least_pairs,
    matched_pairs,
    TrackArrays,
    ZERO_SIMILARITY_M,
)
from state_sensor_ros.frame import Bools, Floats, Rows

# Thresholds of the similarity.
ALPHAS: Final[Floats] = np.arange(0.05, 0.99, 0.05, dtype=np.float64)
_EPSILON = np.finfo('float').eps
_SIMILAR = 0.5
# Of nuScenes: number of recalls, the least one, and AMOTP at a recall that is not reached, m.
N_THRESHOLDS: Final = 40
_MIN_RECALL = 0.1
_WORST_MOTP_M = 2.0
_N_FINE = 1801
# Numbers at the threshold of the greatest MOTA, and their values if no recall is reached.
WORST: Final = {'mota': 0.0, 'motp': _WORST_MOTP_M, 'identity_switches': math.nan,
                'track_initialization_duration': 20.0, 'longest_gap_duration': 20.0}
# Limits of trackeval's matrices: of two ids (5000 take 0.6 GB), and of two objects of a frame.
MAX_IDS: Final = 5000
_MAX_FRAME = 4_000_000
# Names of numbers of a whole recording in trackeval, which are not counted here.
_OF_TRACKS: Final = {'fragmentations': 'Frag', 'mostly_tracked': 'MT', 'partially_tracked': 'PT',
                     'mostly_lost': 'ML'}


@dataclass(frozen=True, slots=True, eq=False)
class TrackCounts:
    """The counts of B blocks of time."""

    # (B, 5) objects of ground truth and stack, matches, switches, and sum of distances, m.
    clear: Floats
    identity: Floats  # (B,) matches of the assignment of tracks that has the most
    # positives, associations: (B, 19) matches of HOTA at each of ALPHAS, and sum of the shares of
    # their pairs of tracks, which are those of the whole recording.
    positives: Floats
    associations: Floats

    def scores(self, weights: Floats) -> dict[str, Floats]:
        """Return numbers by their names, (R,) each."""
        # weights: (R, B) float64, how often each block counts.
        truths, stacks, matches, switches, distances = (weights @ self.clear).T
        positives = weights @ self.positives
        n_objects = truths + stacks
        association = weights @ self.associations / np.maximum(positives, 1.0)
        detection = positives / np.maximum(n_objects[:, None] - positives, 1.0)
        return {
            'hota': np.sqrt(detection * association).mean(axis=1),
            'mota': (2.0 * matches - stacks - switches) / np.maximum(truths, 1.0),
            'idf1': 2.0 * (weights @ self.identity) / np.maximum(n_objects, 1.0),
            'motp': distances / matches, 'identity_switches': switches,
            'false_positives': stacks - matches, 'misses': truths - matches}


def track_counts(tracks: TrackArrays, pairs: Rows, blocks: TimeBlocks) -> TrackCounts:
    similarity = 1.0 - tracks.pair_distances / ZERO_SIMILARITY_M
    codes = tracks.truth_ids[tracks.pair_truths].astype(np.int64) * max(tracks.n_stack_ids, 1) \
        + tracks.stack_ids[tracks.pair_stacks]
    known, places = np.unique(codes, return_inverse=True)
    del codes
    truths, stacks = np.divmod(known, max(tracks.n_stack_ids, 1))
    n_both = np.bincount(tracks.truth_ids, minlength=tracks.n_truth_ids)[truths] \
        + np.bincount(tracks.stack_ids, minlength=tracks.n_stack_ids)[stacks]
    frames = tracks.truth_frames[tracks.pair_truths]
    potential = np.bincount(places, _shares(tracks, similarity), len(known))
    alignment = potential / (n_both - potential)
    levels = np.searchsorted(ALPHAS - _EPSILON, similarity, side='right')
    rows = np.flatnonzero(_best(tracks, frames, alignment[places] * similarity) & (levels > 0))
    levels, of_pair, of_block = levels[rows], places[rows], blocks.of_frames[frames[rows]]
    positives, associations = np.zeros((2, blocks.n_blocks, len(ALPHAS)))
    for i in range(len(ALPHAS)):
        reach = levels > i
        matches = np.bincount(of_pair[reach], minlength=len(known))
        shares = matches / np.maximum(n_both - matches, 1)
        positives[:, i] = np.bincount(of_block[reach], minlength=blocks.n_blocks)
        associations[:, i] = np.bincount(of_block[reach], shares[of_pair[reach]], blocks.n_blocks)
    may_match = similarity >= _SIMILAR
    n_similar: Floats = np.bincount(places, may_match, len(known)).astype(np.float64)
    similar_costs: Floats = -n_similar
    are_assigned: Bools = np.zeros(len(known), np.bool_)
    some = np.flatnonzero(n_similar)
    if len(some):
        are_assigned[some[least_pairs(
            truths[some], stacks[some], similar_costs[some], 0.0)]] = True
    return TrackCounts(
        blocks.sums(frame_counts(tracks, pairs)),
        np.bincount(blocks.of_frames[frames[may_match & are_assigned[places]]],
                    minlength=blocks.n_blocks).astype(np.float64), positives, associations)


def _shares(tracks: TrackArrays, similarity: Floats) -> Floats:
    """Return the similarity of each pair by the sum of those of its objects, less itself."""
    of_truths, of_stacks = (np.bincount(rows, similarity)[rows] if len(rows) else np.zeros(0)
                            for rows in (tracks.pair_truths, tracks.pair_stacks))
    shares: Floats = similarity / np.maximum(of_truths + of_stacks - similarity, _EPSILON)
    return shares


def _best(tracks: TrackArrays, frames: npt.NDArray[np.int32], scores: Floats) -> Bools:
    """Return which pairs match, by the greatest sum of scores in each frame."""
    truths, stacks = tracks.pair_truths, tracks.pair_stacks
    are_chosen: Bools = np.zeros(len(truths), np.bool_)
    if not len(truths):
        return are_chosen
    are_chosen |= (np.bincount(truths)[truths] == 1) & (np.bincount(stacks)[stacks] == 1)
    others = np.flatnonzero(~are_chosen)
    for rows in np.split(others, np.flatnonzero(np.diff(frames[others])) + 1):
        if len(rows):
            are_chosen[rows[least_pairs(truths[rows], stacks[rows], -scores[rows], 0.0)]] = True
    return are_chosen


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


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdScores:
    """The scores of a class as of nuScenes."""

    n_truths: Floats  # (B,)
    # (B, 41, 4) in B blocks of time at the thresholds of AMOTA and, last, without one: objects of
    # the stack, matches, switches, and sum of distances, m; 0 for recalls that are not reached.
    counts: Floats
    # AMOTA and AMOTP (m), and those at the threshold of the greatest MOTA, by their keys.
    numbers: dict[str, float]


def threshold_scores(tracks: TrackArrays, class_number: int,
                     blocks: TimeBlocks) -> ThresholdScores:
    counts = np.zeros((blocks.n_blocks, N_THRESHOLDS + 1, 4))
    are_truths, are_stacks = (classes == class_number for classes in (
        tracks.truth_classes, tracks.stack_classes))
    are_pairs = are_truths[tracks.pair_truths] & are_stacks[tracks.pair_stacks]
    pair_scores = tracks.stack_scores[tracks.pair_stacks]
    thresholds = _thresholds(tracks, matched_pairs(tracks, are_pairs), int(are_truths.sum()))
    thresholds = np.append(thresholds, -1.0)
    for threshold in np.unique(thresholds[~np.isnan(thresholds)]).tolist():
        pairs = matched_pairs(tracks, are_pairs & (pair_scores >= threshold))
        frames = tracks.truth_frames[tracks.pair_truths[pairs]]
        stack_frames = tracks.stack_frames[are_stacks & (tracks.stack_scores >= threshold)]
        counts[:, thresholds == threshold] = np.column_stack((
            blocks.sums_at(stack_frames, np.ones((len(stack_frames), 1))),
            blocks.sums_at(frames, np.column_stack((
                np.ones(len(pairs)), _are_switches(tracks, pairs), tracks.pair_distances[pairs])))
        ))[:, None]
    thresholds, totals = thresholds[:-1], counts.sum(axis=0)[:-1]
    accuracies, precisions = _threshold_curves(totals)
    amota, amotp = accuracies.mean(), precisions.mean()
    numbers = {'amota': float(amota), 'amotp': float(amotp), **WORST}
    n_truths, (n_stacks, n_matches, n_switches, distances) = are_truths.sum(), totals.T
    accuracies = np.where(np.isnan(thresholds), -1.0, np.maximum(
        1.0 - (n_truths + n_stacks - 2.0 * n_matches + n_switches) / n_truths, 0.0))
    # Of equal ones the greatest recall.
    best = N_THRESHOLDS - 1 - int(accuracies[::-1].argmax())
    if accuracies[best] >= 0.0:
        pairs = matched_pairs(tracks, are_pairs & (pair_scores >= thresholds[best]))
        numbers |= dict(zip(WORST, (
            float(accuracies[best]), float(distances[best] / n_matches[best]),
            int(n_switches[best]), *durations(tracks, pairs, are_truths)), strict=True))
    frames = tracks.truth_frames[are_truths]
    n_in_blocks = blocks.sums_at(frames, np.ones((len(frames), 1)))[:, 0]
    return ThresholdScores(n_in_blocks, counts, numbers)


def _threshold_curves(counts: Floats) -> tuple[Floats, Floats]:
    """Return MOTAR and MOTP (m) at each threshold, (..., T), of (..., T, 4) counts."""
    n_stacks, n_matches, n_switches, distances = np.moveaxis(counts, -1, 0)
    n_right = n_matches - n_switches
    return (np.where(n_right > 0.0, np.maximum(
        0.0, 1.0 - (n_stacks - n_matches) / np.maximum(n_right, 1.0)), 0.0),
        np.where(n_matches > 0.0, distances / np.maximum(n_matches, 1.0), _WORST_MOTP_M))


def average_scores(found: ThresholdScores, weights: Floats) -> tuple[Floats, Floats]:
    """
    Return AMOTA and AMOTP (m), (R,) each, as means over all recalls.

    The recalls are those that the thresholds of the recording reach in these blocks.

    :param weights: (R, B) float64, how often each block counts.
    """
    counts: Floats = np.tensordot(weights, found.counts, (1, 0)).astype(np.float64)
    counts = counts[:, counts[0, :, 1] > 0.0]
    recalls = (counts[..., 1] - counts[..., 2]) / np.maximum(
        weights @ found.n_truths, 1.0)[:, None]
    wanted = np.linspace(_MIN_RECALL, 1.0, _N_FINE)
    if not counts.shape[1]:
        return np.zeros(len(weights)), np.full(len(weights), _WORST_MOTP_M)
    amota, amotp = (np.array([np.interp(wanted, *both, right=worst).mean()
                              for both in zip(recalls, curves, strict=True)])
                    for curves, worst in zip(_threshold_curves(counts), (0.0, _WORST_MOTP_M),
                                             strict=True))
    return amota, amotp


def frame_counts(tracks: TrackArrays, pairs: Rows) -> Floats:
    """Return (F, 5) numbers of objects of both, matches and switches, and sum of distances (m)."""
    n_frames = len(tracks.times_s)
    frames = tracks.truth_frames[tracks.pair_truths[pairs]]
    counts: Floats = np.stack([
        np.bincount(rows, weights, n_frames) for rows, weights in (
            (tracks.truth_frames, None), (tracks.stack_frames, None), (frames, None),
            (frames, _are_switches(tracks, pairs).astype(np.float64)),
            (frames, tracks.pair_distances[pairs]))], axis=1).astype(np.float64)
    return counts


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
    counts: TrackCounts  # in B blocks of time
    # Scores as of nuScenes of each class with ground truth, None if not requested.
    classes: dict[str, ThresholdScores] | None


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


def score_tracks(tracks: TrackArrays, blocks: TimeBlocks,
                 interpolated: TrackArrays | None) -> TrackingScores:
    """Score the tracks of a stack; :func:`load_trackeval` has been called."""
    # interpolated: the same with objects in the gaps; None for no scores as of nuScenes.
    pairs = continued_pairs(tracks, tracks.pair_distances <= (
        1.0 - _SIMILAR + _EPSILON) * ZERO_SIMILARITY_M)
    classes = None if interpolated is None else {
        EVALUATED_CLASSES[number]: threshold_scores(interpolated, number, blocks)
        for number in np.unique(tracks.truth_classes).tolist()}
    counts = track_counts(tracks, pairs, blocks)
    initialization_s, gap_s = durations(tracks, pairs, np.ones(len(tracks.truth_ids), np.bool_))
    with np.errstate(all='ignore'):
        numbers = {name: float(value) for name, [value] in counts.scores(
            np.ones((1, blocks.n_blocks))).items()}
    numbers |= {name: int(numbers[name]) for name in COUNTS}
    numbers |= dict.fromkeys(_OF_TRACKS, math.nan)
    if tracks.n_truth_ids:
        numbers |= _by_trackeval(tracks)
    else:
        numbers |= dict.fromkeys(('hota', 'mota', 'idf1'), math.nan)
    numbers |= {'objects': len(tracks.truth_ids), 'tracks': tracks.n_truth_ids,
                'track_initialization_duration': initialization_s, 'longest_gap_duration': gap_s}
    return TrackingScores(numbers, counts, classes)


def _by_trackeval(tracks: TrackArrays) -> dict[str, float]:
    """Return the numbers of trackeval, without those for which the recording is too large."""
    from trackeval.metrics import CLEAR, HOTA, Identity
    numbers: dict[str, float] = {}
    truth_ends, stack_ends = (np.searchsorted(frames, np.arange(len(tracks.times_s) + 1))
                              for frames in (tracks.truth_frames, tracks.stack_frames))
    if (np.diff(truth_ends) * np.diff(stack_ends)).max() > _MAX_FRAME:
        return numbers
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


def class_means(classes: Mapping[str, ThresholdScores]) -> dict[str, float]:
    """
    Return the numbers of nuScenes for all classes but "unknown": means, and the sum of switches.

    :param classes: scores of each class; of none, the numbers are NaN.
    """
    numbers = [found.numbers for name, found in classes.items() if name != CLASS_NAMES[UNKNOWN]]
    if not numbers:
        return dict.fromkeys(('amota', 'amotp', *WORST), math.nan)
    means = {key: float(np.mean([of_class[key] for of_class in numbers]))
             for key in ('amota', 'amotp', *WORST)}
    # Of a class that no recall reaches it is not known.
    n_switches = sum(of_class['identity_switches'] for of_class in numbers)
    return {**means, 'identity_switches': n_switches}

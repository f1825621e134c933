# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Tracking metrics: CLEAR MOT as motmetrics 1.4.0, AMOTA as nuScenes, HOTA and IDF1 by trackeval.

Sources: Bernardin and Stiefelhagen (2008); ``motmetrics/mot.py`` and ``metrics.py``;
``nuscenes/eval/tracking/algo.py`` and ``metrics.py`` of nuscenes-devkit 1.2.0. Objects match
within 2 m; a match of the last frame in which its ground-truth object was matched is kept. For
trackeval (extra ``[evaluate]``) the similarity of two objects is 1 at distance 0 and 0 at 4 m, so
that MOTA and IDF1 match within 2 m.

HOTA and IDF1 are also counted here, in blocks of time, as ``trackeval/metrics/hota.py`` and
``identity.py`` of trackeval 1.3 do, whose matrices have a row and a column for each track; here
memory grows with the pairs of tracks that meet. Luiten et al. (2021), Ristani et al. (2016).
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
from state_sensor_ros.evaluation.resampling import TimeBlocks
from state_sensor_ros.evaluation.spooled_rows import N_BLOCK
from state_sensor_ros.evaluation.track_record import (
    least_pairs,
    matched_pairs,
    TrackArrays,
    ZERO_SIMILARITY_M,
)
from state_sensor_ros.frame import Bools, Floats, Rows

# Thresholds of the similarity.
ALPHAS: Final[Floats] = np.arange(0.05, 0.99, 0.05, dtype=np.float64)
_EPSILON = np.finfo('float').eps
_IDENTITY_SIMILARITY = 0.5
_N_LEVELS = len(ALPHAS) + 1
# Pairs of tracks that are resampled at once: 0.15 MB each.
_N_CHUNK = 128


@dataclass(frozen=True, slots=True, eq=False)
class IdentityCounts:
    """
    The counts of HOTA and IDF1 in B blocks of time, C pairs of tracks that match at some time.

    ``n_objects`` (B,) of ground truth and stack; ``identity_matches`` (B,) matches of the
    assignment of tracks that has the most; ``matches`` (20 C, B) sparse, matches of each pair by
    the number of ALPHAS that their similarity reaches; ``lengths`` (C, B) sparse, objects of both
    tracks.
    """

    n_objects: Floats
    identity_matches: Floats
    matches: Any
    lengths: Any

    def idf1(self, weights: Floats) -> Floats:
        """
        Return IDF1 of each resample, (R,).

        :param weights: (R, B) float64, how often each block counts.
        """
        found: Floats = 2.0 * (weights @ self.identity_matches) / np.maximum(
            weights @ self.n_objects, 1.0)
        return found

    def hota(self, weights: Floats) -> Floats:
        """
        Return HOTA of each resample, the mean over ALPHAS, (R,).

        :param weights: (R, B) float64, how often each block counts.
        """
        positives = np.zeros((len(weights), len(ALPHAS)))
        association = np.zeros_like(positives)
        for first in range(0, self.lengths.shape[0], _N_CHUNK):
            lengths = self.lengths[first:first + _N_CHUNK].toarray()
            levels = self.matches[first * _N_LEVELS:(first + _N_CHUNK) * _N_LEVELS].toarray()
            # A match counts at each threshold up to its level.
            counts = levels.reshape(-1, _N_LEVELS, levels.shape[1])[:, :0:-1].cumsum(axis=1)
            found = np.tensordot(weights, counts[:, ::-1], (1, 2))
            positives += found.sum(axis=1)
            union = (weights @ lengths.T)[:, :, None] - found
            association += (np.square(found) / np.maximum(union, 1.0)).sum(axis=1)
        association /= np.maximum(positives, 1.0)
        detection = positives / np.maximum(
            (weights @ self.n_objects)[:, None] - positives, 1.0)
        scores: Floats = np.sqrt(detection * association).mean(axis=1)
        return scores


def identity_counts(tracks: TrackArrays, blocks: TimeBlocks) -> IdentityCounts:
    """
    Count the matches of pairs of tracks.

    :param tracks: objects of all frames.
    :param blocks: blocks of these frames.
    """
    similarity = 1.0 - tracks.pair_distances / ZERO_SIMILARITY_M
    codes = tracks.truth_ids[tracks.pair_truths].astype(np.int64) * max(tracks.n_stack_ids, 1) \
        + tracks.stack_ids[tracks.pair_stacks]
    known, places = np.unique(codes, return_inverse=True)
    del codes
    truths, stacks = np.divmod(known, max(tracks.n_stack_ids, 1))
    n_truths, n_stacks = (np.bincount(ids, minlength=n_ids) for ids, n_ids in (
        (tracks.truth_ids, tracks.n_truth_ids), (tracks.stack_ids, tracks.n_stack_ids)))
    frames = tracks.truth_frames[tracks.pair_truths]
    potential = np.bincount(places, _shares(tracks, similarity), len(known))
    alignment = potential / (n_truths[truths] + n_stacks[stacks] - potential)
    levels = np.searchsorted(ALPHAS - _EPSILON, similarity, side='right').astype(np.int8)
    rows = np.flatnonzero(_best(tracks, frames, alignment[places] * similarity) & (levels > 0))
    used, numbers = np.unique(places[rows], return_inverse=True)
    may_match = similarity >= _IDENTITY_SIMILARITY
    are_identical = may_match & _assigned_tracks(
        truths, stacks, np.bincount(places, may_match, len(known)))[places]
    lengths = sum(
        _table(ids, columns, n_ids, blocks)[chosen] for ids, columns, n_ids, chosen in (
            (tracks.truth_ids, tracks.truth_frames, tracks.n_truth_ids, truths[used]),
            (tracks.stack_ids, tracks.stack_frames, tracks.n_stack_ids, stacks[used])))
    n_objects: Floats = np.zeros(blocks.n_blocks)
    for columns in (tracks.truth_frames, tracks.stack_frames):
        n_objects += np.bincount(blocks.of_frames[columns], minlength=blocks.n_blocks)
    return IdentityCounts(
        n_objects,
        np.bincount(blocks.of_frames[frames[are_identical]], minlength=blocks.n_blocks)
        .astype(np.float64),
        _table(numbers * _N_LEVELS + levels[rows], frames[rows], len(used) * _N_LEVELS, blocks),
        lengths)


def _table(rows: npt.NDArray[Any], frames: npt.NDArray[np.int32], n_rows: int,
           blocks: TimeBlocks) -> Any:  # noqa: ANN401
    """Return a sparse matrix of the numbers of equal rows and blocks of frames."""
    from scipy.sparse import csr_matrix
    shape = n_rows, blocks.n_blocks
    table = csr_matrix(shape)
    # All at once would take 50 bytes of memory a row.
    for first in range(0, len(rows), N_BLOCK):
        chosen = rows[first:first + N_BLOCK]
        table += csr_matrix((np.ones(len(chosen)), (
            chosen, blocks.of_frames[frames[first:first + N_BLOCK]])), shape=shape)
    return table


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
        if not len(rows):
            continue
        chosen = least_pairs(truths[rows], stacks[rows], -scores[rows], 0.0)
        are_chosen[rows[chosen]] = True
    return are_chosen


def _assigned_tracks(truths: Rows, stacks: Rows, counts: npt.NDArray[Any]) -> Bools:
    """
    Return which pairs of tracks are in the assignment with the most matches.

    :param truths: (C,) int64, index of the ground-truth track of each pair.
    :param stacks: (C,) int64, of the stack's.
    :param counts: (C,) matches of each pair, which may be 0.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching
    are_assigned: Bools = np.zeros(len(truths), np.bool_)
    used = np.flatnonzero(counts)
    if not len(used):
        return are_assigned
    row_truths, rows = np.unique(truths[used], return_inverse=True)
    column_stacks, columns = np.unique(stacks[used], return_inverse=True)
    n_rows = len(row_truths)
    # A column of its own for each row, which is taken if the track is not assigned.
    most = counts.max() + 1.0
    graph = csr_matrix((
        np.append(most - counts[used], np.full(n_rows, most)),
        (np.append(rows, np.arange(n_rows)),
         np.append(columns, len(column_stacks) + np.arange(n_rows)))))
    taken = min_weight_full_bipartite_matching(graph)[1]
    are_assigned[used] = taken[rows] == columns
    return are_assigned


_MOSTLY_TRACKED, _MOSTLY_LOST = 0.8, 0.2
# Of nuScenes: number of recalls, the least one, and AMOTP at a recall that is not reached, m.
N_THRESHOLDS: Final = 40
_MIN_RECALL = 0.1
_WORST_MOTP_M = 2.0
# The matrices of trackeval grow with the square of the number of ids: 5000 take 0.6 GB.
MAX_IDS: Final = 5000


@dataclass(frozen=True, slots=True)
class ClearScores:
    """
    CLEAR MOT metrics, by their names in the result.

    ``motp`` mean distance of the matches, m. Counts of objects: ``identity_switches``,
    ``fragmentations``, ``false_positives``, ``misses``, ``objects`` of the ground truth. Counts of
    tracks of the ground truth: ``tracks``, ``mostly_tracked`` (at least 80 % of its objects
    matched), ``partially_tracked``, ``mostly_lost`` (less than 20 %).
    ``track_initialization_duration`` mean time to the first match of the tracks that have one, and
    ``longest_gap_duration`` mean of their longest time without a match, s. NaN if undefined.
    """

    motp: float
    identity_switches: int
    fragmentations: int
    false_positives: int
    misses: int
    objects: int
    tracks: int
    mostly_tracked: int
    partially_tracked: int
    mostly_lost: int
    track_initialization_duration: float
    longest_gap_duration: float


def clear_scores(tracks: TrackArrays, pairs: Rows, are_truths: Bools,
                 n_stacks: int) -> ClearScores:
    """
    Return the metrics of some matches.

    :param tracks: objects of all frames.
    :param pairs: rows of the pairs that match.
    :param are_truths: (T,) bool, the ground-truth objects that count.
    :param n_stacks: number of objects of the stack that count.
    """
    hits: Rows = np.full(len(tracks.truth_ids), -1)
    hits[tracks.pair_truths[pairs]] = tracks.stack_ids[tracks.pair_stacks[pairs]]
    truths = np.flatnonzero(are_truths)
    truths = truths[np.lexsort((tracks.truth_frames[truths], tracks.truth_ids[truths]))]
    ids, frames, hits = tracks.truth_ids[truths], tracks.truth_frames[truths], hits[truths]
    are_first = np.diff(ids, prepend=-1) != 0
    numbers = np.cumsum(are_first) - 1
    n_tracks, is_hit = int(are_first.sum()), hits >= 0
    begins_run = is_hit & (are_first | ~np.append(False, is_hit[:-1]))
    runs = np.bincount(numbers[begins_run], minlength=n_tracks)
    hit_rows = np.flatnonzero(is_hit)
    is_same_track = np.diff(numbers[hit_rows]) == 0
    shares = np.bincount(numbers[is_hit], minlength=n_tracks) / np.maximum(
        np.bincount(numbers, minlength=n_tracks), 1)
    n_most, n_lost = int((shares >= _MOSTLY_TRACKED).sum()), int((shares < _MOSTLY_LOST).sum())
    return ClearScores(
        float(tracks.pair_distances[pairs].mean()) if len(pairs) else math.nan,
        int((is_same_track & (np.diff(hits[hit_rows]) != 0)).sum()),
        int(np.maximum(runs - 1, 0).sum()), n_stacks - len(pairs), len(truths) - len(pairs),
        len(truths), n_tracks, n_most, n_tracks - n_most - n_lost, n_lost,
        *_durations(tracks.times_s, frames, numbers, hit_rows))


def _durations(times_s: Floats, frames: Rows, numbers: Rows,
               hit_rows: Rows) -> tuple[float, float]:
    """
    Return the mean time to the first match, and the mean of the longest gaps, s.

    :param times_s: (F,) float64, of all frames.
    :param frames: (T,) int64, frames of the ground-truth objects, track by track.
    :param numbers: (T,) int64, number of the track of each.
    :param hit_rows: (H,) int64, ground-truth objects that are matched.
    """
    if not len(hit_rows):
        return math.nan, math.nan
    tracked, first = np.unique(numbers[hit_rows], return_index=True)
    last = np.append(first[1:], len(hit_rows)) - 1
    begins = np.searchsorted(numbers, tracked)
    ends = np.searchsorted(numbers, tracked, side='right') - 1
    first_frames, last_frames = frames[hit_rows[first]], frames[hit_rows[last]]
    initialization_s = float((times_s[first_frames] - times_s[frames[begins]]).mean())
    # Frames without a match: before the first one, after the last one, between two.
    gaps = np.maximum(first_frames - frames[begins], frames[ends] - last_frames)
    places = np.repeat(np.arange(len(tracked)), last - first + 1)
    between = np.diff(frames[hit_rows], prepend=0) - 1
    between[first] = 0
    np.maximum.at(gaps, places, between)
    period_s = float(np.median(np.diff(times_s))) if len(times_s) > 1 else 0.0
    return initialization_s, float(gaps.mean()) * period_s


def threshold_counts(tracks: TrackArrays, class_number: int, blocks: TimeBlocks) -> Floats:
    """
    Return the counts of a class at the thresholds of AMOTA.

    :param tracks: objects of all frames.
    :param class_number: index in EVALUATED_CLASSES.
    :param blocks: blocks of these frames.
    :returns: (B, 40, 4) float64, objects of the stack, matches, switches, and sum of distances, m;
        0 for recalls that are not reached.
    """
    counts = np.zeros((blocks.n_blocks, N_THRESHOLDS, 4))
    are_truths, are_stacks = (classes == class_number for classes in (
        tracks.truth_classes, tracks.stack_classes))
    are_pairs = are_truths[tracks.pair_truths] & are_stacks[tracks.pair_stacks]
    pair_scores = tracks.stack_scores[tracks.pair_stacks]
    thresholds = _thresholds(tracks, matched_pairs(tracks, are_pairs), int(are_truths.sum()))
    for threshold in np.unique(thresholds[~np.isnan(thresholds)]).tolist():
        pairs = matched_pairs(tracks, are_pairs & (pair_scores >= threshold))
        frames = tracks.truth_frames[tracks.pair_truths[pairs]]
        stack_frames = tracks.stack_frames[are_stacks & (tracks.stack_scores >= threshold)]
        counts[:, thresholds == threshold] = np.column_stack((
            blocks.sums_at(stack_frames, np.ones((len(stack_frames), 1))),
            blocks.sums_at(frames, np.column_stack((
                np.ones(len(pairs)), _are_switches(tracks, pairs), tracks.pair_distances[pairs])))
        ))[:, None]
    return counts


def average_scores(counts: Floats) -> tuple[Floats, Floats]:
    """
    Return AMOTA and AMOTP (m).

    :param counts: (..., 40, 4) float64, sums of :func:`threshold_counts`.
    :returns: two arrays (...,).
    """
    n_stacks, n_matches, n_switches, distances = np.moveaxis(counts, -1, 0)
    n_right = n_matches - n_switches
    accuracies = np.where(n_right > 0.0, np.maximum(
        0.0, 1.0 - (n_stacks - n_matches) / np.maximum(n_right, 1.0)), 0.0)
    precisions = np.where(n_matches > 0.0, distances / np.maximum(n_matches, 1.0), _WORST_MOTP_M)
    return accuracies.mean(axis=-1), precisions.mean(axis=-1)


def frame_counts(tracks: TrackArrays, pairs: Rows) -> Floats:
    """
    Return (F, 5) numbers of objects of both, matches and switches, and sum of distances (m).

    :param tracks: objects of all frames.
    :param pairs: rows of the pairs that match.
    """
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
    """
    The scores of tracks.

    ``hota`` (mean over its thresholds), ``mota``, ``idf1`` None without ground truth; ``clear``
    the other CLEAR MOT metrics; ``averages`` AMOTA and AMOTP (m) of each class with ground truth,
    None if not requested; counts in B blocks of time: ``block_counts`` (B, 5) sums of
    :func:`frame_counts`, ``threshold_counts`` of each class, ``identity_counts``.
    """

    hota: float | None
    mota: float | None
    idf1: float | None
    clear: ClearScores
    averages: dict[str, tuple[float, float]] | None
    block_counts: Floats
    threshold_counts: dict[str, Floats]
    identity_counts: IdentityCounts


class _Similarities(Sequence[Floats]):
    """The similarities of each frame, made of the pairs at each use."""

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
    """
    Import trackeval; called early, so that work is not lost if it is missing.

    :raises ImportError: if it is not installed.
    """
    # It prints the packages that are missing for benchmarks which are not used here.
    with redirect_stdout(StringIO()):
        from trackeval import metrics  # noqa: F401


def score_tracks(tracks: TrackArrays, blocks: TimeBlocks, *,
                 with_averages: bool) -> TrackingScores:
    """
    Score the tracks of a stack; :func:`load_trackeval` has been called.

    :param tracks: objects of all frames.
    :param blocks: blocks of these frames, in which is counted.
    :param with_averages: whether AMOTA and AMOTP are computed.
    """
    pairs = matched_pairs(tracks, np.ones(len(tracks.pair_truths), np.bool_))
    clear = clear_scores(tracks, pairs, np.ones(len(tracks.truth_ids), np.bool_),
                         len(tracks.stack_ids))
    at_thresholds = {} if not with_averages else {
        EVALUATED_CLASSES[number]: threshold_counts(tracks, number, blocks)
        for number in np.unique(tracks.truth_classes).tolist()}
    averages = {}
    for name, counts in at_thresholds.items():
        amota, amotp = average_scores(counts.sum(axis=0))
        averages[name] = float(amota), float(amotp)
    identity = identity_counts(tracks, blocks)
    hota = mota = idf1 = None
    if tracks.n_truth_ids:
        hota, mota, idf1 = _by_trackeval(tracks, identity)
    return TrackingScores(hota, mota, idf1, clear, averages if with_averages else None,
                          blocks.sums(frame_counts(tracks, pairs)), at_thresholds, identity)


def _by_trackeval(tracks: TrackArrays, identity: IdentityCounts) -> tuple[float, float, float]:
    """Return HOTA, MOTA and IDF1; above MAX_IDS ids HOTA and IDF1 of our own counts."""
    from trackeval.metrics import CLEAR, HOTA, Identity
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
    mota = float(CLEAR(quiet).eval_sequence(data)['MOTA'])
    if tracks.n_truth_ids + tracks.n_stack_ids > MAX_IDS:
        once = np.ones((1, len(identity.n_objects)))
        return float(identity.hota(once)[0]), mota, float(identity.idf1(once)[0])
    return (float(np.mean(HOTA().eval_sequence(data)['HOTA'])), mota,
            float(Identity(quiet).eval_sequence(data)['IDF1']))


def mean_averages(averages: Mapping[str, tuple[Any, Any]]) -> tuple[Any, Any]:
    """
    Return AMOTA and AMOTP (m), the means over classes without "unknown", NaN without any.

    :param averages: AMOTA and AMOTP of each class, numbers or arrays of equal shapes.
    """
    numbers = [both for name, both in averages.items() if name != CLASS_NAMES[UNKNOWN]]
    if not numbers:
        return math.nan, math.nan
    amota, amotp = np.mean(numbers, axis=0)
    return amota, amotp

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

Objects match within 2 m: the similarity of two objects is 1 at distance 0 and 0 at 4 m. AMOTA:
``nuscenes/eval/tracking/algo.py`` and ``metrics.py`` of nuscenes-devkit 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation import matching
from state_sensor_ros.frame import Bools, Floats, Rows

_LIMIT_M = matching.MATCH_DISTANCES_M[matching.I_ERRORS]
_ZERO_SIMILARITY_M = 4.0
# Of nuScenes: number of recalls, the least one, and AMOTP at a recall that is not reached, m.
N_THRESHOLDS: Final = 40
_MIN_RECALL = 0.1
_WORST_MOTP_M = 2.0
# Numbers at the threshold of the greatest MOTA, and their values if no recall is reached.
WORST: Final = {'mota': 0.0, 'motp': _WORST_MOTP_M, 'identity_switches': math.nan}
# Of both sides together: the matrices of HOTA and IDF1 are quadratic, 0.6 GB for so many.
MAX_IDS: Final = 5000
# Names of numbers in trackeval; those of ground truth are unknown without any.
_OF_CLEAR = {'identity_switches': 'IDSW', 'false_positives': 'CLR_FP', 'misses': 'CLR_FN'}
_OF_TRUTH = {'fragmentations': 'Frag', 'mostly_tracked': 'MT', 'partially_tracked': 'PT',
             'mostly_lost': 'ML'}
_OBJECT = np.dtype([('frame', np.int32), ('id', np.int32), ('class', np.int8),
                    ('score', np.float64), ('xy', np.float64, 2)])
_PAIR = np.dtype([('truth', np.int32), ('stack', np.int32), ('distance', np.float64)])
Records = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """T ground-truth and S stack objects in F frames, and their P pairs within 4 m."""

    n_frames: int  # F
    truths: Records  # (T,) see _OBJECT, by frame; ids are numbers from 0
    stacks: Records  # (S,) with the mean confidence of the track
    pairs: Records  # (P,) rows, in the order of ground-truth objects; m
    n_truth_ids: int
    n_stack_ids: int


def tracks_of(frames: Sequence[matching.EvaluatedFrame], *, is_filled: bool = False) -> Tracks:
    """
    Return the tracks of frames.

    :param frames: frames in the order of time, the ids of each message unique.
    :param is_filled: whether gaps have interpolated objects, as by the loader of nuScenes.
    """
    stamps_ns = np.array([frame.stamp_ns for frame in frames], np.int64)
    (truths, n_truth_ids), (stacks, n_stack_ids) = (
        _rows_of([frame.truth for frame in frames]), _rows_of([frame.stack for frame in frames]))
    # With the rounding of nuscenes-devkit, which decides what is at a threshold.
    scores = np.split(stacks['score'][np.argsort(stacks['id'], kind='stable')],
                      np.cumsum(np.bincount(stacks['id'], minlength=1))[:-1])
    stacks['score'] = np.array([np.mean(each) if len(each) else 0.0 for each in scores])[
        stacks['id']]
    if is_filled:
        truths, stacks = _filled(truths, stamps_ns), _filled(stacks, stamps_ns)
    pairs = [np.zeros(0, _PAIR)]
    truth_ends, stack_ends = (
        np.searchsorted(rows['frame'], np.arange(len(frames) + 1)).tolist()
        for rows in (truths, stacks))
    for i in range(len(frames)):
        near = matching.near_pairs(
            truths['xy'][truth_ends[i]:truth_ends[i + 1]],
            stacks['xy'][stack_ends[i]:stack_ends[i + 1]], _ZERO_SIMILARITY_M)
        found = np.zeros(len(near[0]), _PAIR)
        found['truth'], found['stack'] = near[0] + truth_ends[i], near[1] + stack_ends[i]
        found['distance'] = near[2]
        pairs.append(found)
    return Tracks(
        len(frames), truths, stacks, np.concatenate(pairs), n_truth_ids, n_stack_ids)


def _rows_of(frames: Sequence[matching.ObjectSet]) -> tuple[Records, int]:
    numbers: dict[str, int] = {}
    parts = [np.zeros(0, _OBJECT)]
    for i, objects in enumerate(frames):
        rows = np.zeros(len(objects.ids), _OBJECT)
        rows['frame'], rows['class'], rows['score'] = i, objects.classes, objects.scores
        rows['id'] = [numbers.setdefault(name, len(numbers)) for name in objects.ids]
        rows['xy'] = objects.states[:, matching.XY]
        parts.append(rows)
    return np.concatenate(parts), len(numbers)


def _filled(rows: Records, stamps_ns: Rows) -> Records:
    """Return objects with those of the gaps in their tracks, by frame."""
    order = np.lexsort((rows['frame'], rows['id']))
    before, after = order[:-1], order[1:]
    gaps = np.where(rows['id'][before] == rows['id'][after],
                    rows['frame'][after].astype(np.int64) - rows['frame'][before] - 1, 0)
    places_in_gap = np.arange(gaps.sum()) - np.repeat(np.cumsum(gaps) - gaps, gaps)
    before, after = np.repeat(before, gaps), np.repeat(after, gaps)
    made = rows[after]
    made['frame'] = rows['frame'][before] + 1 + places_in_gap
    times, first, last = (stamps_ns[frames] for frames in (
        made['frame'], rows['frame'][before], rows['frame'][after]))
    # nuscenes-devkit weights the later box by the time to it: it goes through a gap backward. Its
    # published numbers are made so.
    share = ((last - times) / np.maximum(last - first, 1))[:, None]
    made['score'] = (1.0 - share[:, 0]) * made['score'] + share[:, 0] * made['score']
    made['xy'] = rows['xy'][before] + share * (made['xy'] - rows['xy'][before])
    rows = np.concatenate((rows, made))
    return rows[np.argsort(rows['frame'], kind='stable')]


def _matched(tracks: Tracks, are_allowed: Bools) -> Records:
    """
    Return the pairs that match within 2 m, as in motmetrics and nuScenes.

    A pair that was the last match of its ground-truth object is kept.

    :param are_allowed: (P,) bool, pairs that may match.
    """
    pairs = tracks.pairs[are_allowed & (tracks.pairs['distance'] < _LIMIT_M)]
    truths, stacks = pairs['truth'], pairs['stack']
    are_matched: Bools = (np.bincount(truths)[truths] == 1) & (np.bincount(stacks)[stacks] == 1)
    frames, truth_ids = tracks.truths['frame'][truths], tracks.truths['id'][truths]
    stack_ids = tracks.stacks['id'][stacks]
    # The stack's id with which each ground-truth object was last matched.
    last_ids, done = np.full(tracks.n_truth_ids, -1), 0
    for frame in np.unique(frames[~are_matched]).tolist():
        begin, end = np.searchsorted(frames, (frame, frame + 1)).tolist()
        before, here = slice(done, begin), slice(begin, end)
        last_ids[truth_ids[before]] = stack_ids[before]
        are_matched[here] = _assigned(pairs[here], last_ids[truth_ids[here]] == stack_ids[here])
        chosen = begin + np.flatnonzero(are_matched[here])
        last_ids[truth_ids[chosen]], done = stack_ids[chosen], end
    return pairs[are_matched]


def _assigned(pairs: Records, are_kept: Bools) -> Bools:
    """Return which pairs match: those of before, then those of the least total distance."""
    from scipy.optimize import linear_sum_assignment
    chosen: Bools = np.zeros(len(pairs), np.bool_)
    kept = np.flatnonzero(are_kept)
    chosen[kept[np.unique(pairs['stack'][kept], return_index=True)[1]]] = True
    free = np.flatnonzero(~np.isin(pairs['truth'], pairs['truth'][chosen])
                          & ~np.isin(pairs['stack'], pairs['stack'][chosen]))
    if len(free):
        rows, columns = (np.unique(pairs[side][free], return_inverse=True)[1]
                         for side in ('truth', 'stack'))
        # So great that as many pairs as possible are matched.
        costs = np.full((rows.max() + 1, columns.max() + 1), 2.0 * len(free) * (_LIMIT_M + 1.0))
        costs[rows, columns] = pairs['distance'][free]
        taken = dict(zip(*map(np.ndarray.tolist, linear_sum_assignment(costs)), strict=True))
        chosen[free] = [taken.get(row) == column
                        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)]
    return chosen


def _are_switches(tracks: Tracks, pairs: Records) -> Bools:
    """Return which matches are with another track than the last one of the ground truth."""
    ids, stack_ids = tracks.truths['id'][pairs['truth']], tracks.stacks['id'][pairs['stack']]
    order = np.argsort(ids, kind='stable')
    are_switches: Bools = np.zeros(len(pairs), np.bool_)
    are_switches[order[1:]] = (np.diff(ids[order]) == 0) & (np.diff(stack_ids[order]) != 0)
    return are_switches


def _threshold_scores(tracks: Tracks, class_number: int) -> dict[str, float]:
    """Return AMOTA and AMOTP (m) of a class, and its numbers at the greatest MOTA."""
    are_truths, are_stacks = (rows['class'] == class_number for rows in (
        tracks.truths, tracks.stacks))
    are_pairs = are_truths[tracks.pairs['truth']] & are_stacks[tracks.pairs['stack']]
    pair_scores = tracks.stacks['score'][tracks.pairs['stack']]
    n_truths = int(are_truths.sum())
    thresholds = _thresholds(tracks, _matched(tracks, are_pairs), n_truths)
    # Objects of the stack, matches, switches, and sum of distances, m, at each threshold.
    counts = np.zeros((N_THRESHOLDS, 4))
    for threshold in np.unique(thresholds[~np.isnan(thresholds)]).tolist():
        pairs = _matched(tracks, are_pairs & (pair_scores >= threshold))
        counts[thresholds == threshold] = (
            (are_stacks & (tracks.stacks['score'] >= threshold)).sum(), len(pairs),
            _are_switches(tracks, pairs).sum(), pairs['distance'].sum())
    n_stacks, n_matches, n_switches, distances = counts.T
    n_right = n_matches - n_switches
    recall_accuracies = np.where(n_right > 0.0, np.maximum(
        0.0, 1.0 - (n_stacks - n_matches) / np.maximum(n_right, 1.0)), 0.0)
    precisions = np.where(n_matches > 0.0, distances / np.maximum(n_matches, 1.0), _WORST_MOTP_M)
    numbers = {'amota': float(recall_accuracies.mean()), 'amotp': float(precisions.mean()),
               **WORST}
    accuracies = np.where(np.isnan(thresholds), -1.0, np.maximum(
        1.0 - (n_truths + n_stacks - 2.0 * n_matches + n_switches) / n_truths, 0.0))
    # Of equal ones the greatest recall.
    best = N_THRESHOLDS - 1 - int(accuracies[::-1].argmax())
    if accuracies[best] >= 0.0:
        numbers |= dict(zip(WORST, (
            float(accuracies[best]), float(distances[best] / n_matches[best]),
            int(n_switches[best])), strict=True))
    return numbers


def _thresholds(tracks: Tracks, pairs: Records, n_truths: int) -> Floats:
    """Return (40,) confidences at which recalls are reached, NaN for those that are not."""
    scores = np.sort(tracks.stacks['score'][pairs['stack'][~_are_switches(tracks, pairs)]])[::-1]
    if not len(scores):
        return np.full(N_THRESHOLDS, np.nan)
    recalls = np.linspace(_MIN_RECALL, 1.0, N_THRESHOLDS).round(12)
    reached = np.arange(1, len(scores) + 1) / n_truths
    thresholds: Floats = np.interp(recalls, reached, scores, right=0.0)
    thresholds[recalls > reached[-1]] = np.nan
    return thresholds


def load_trackeval() -> None:
    """Import trackeval; called early, so that work is not lost if it is missing."""
    # It prints the packages that are missing for benchmarks which are not used here.
    with redirect_stdout(StringIO()):
        from trackeval import metrics  # noqa: F401


@dataclass(frozen=True, slots=True)
class TrackingScores:
    numbers: dict[str, float]  # by the keys of the result, NaN if undefined
    # Those of nuScenes of each class with ground truth, None if not requested.
    classes: dict[str, dict[str, float]] | None


def score_tracks(frames: Sequence[matching.EvaluatedFrame], *,
                 with_nuscenes: bool) -> TrackingScores:
    """Score the tracks of a stack in frames; :func:`load_trackeval` has been called."""
    tracks = tracks_of(frames)
    numbers = {**_by_trackeval(tracks), 'objects': len(tracks.truths),
               'tracks': tracks.n_truth_ids}
    if not with_nuscenes:
        return TrackingScores(numbers, None)
    filled = tracks_of(frames, is_filled=True)
    return TrackingScores(numbers, {
        matching.EVALUATED_CLASSES[number]: _threshold_scores(filled, number)
        for number in np.unique(tracks.truths['class']).tolist()})


class _Lazy:
    """The matrix of a frame is made when it is read: all of them would be large."""

    def __init__(self, of_frame: Callable[[int], Floats]) -> None:
        self._of_frame = of_frame

    def __getitem__(self, i: int) -> Floats:
        return self._of_frame(i)


def _by_trackeval(tracks: Tracks) -> dict[str, float]:
    """Return the numbers of trackeval; HOTA and IDF1 are NaN for more than MAX_IDS ids."""
    from trackeval.metrics import CLEAR, HOTA, Identity
    truth_ends, stack_ends, pair_ends = (
        np.searchsorted(frames, np.arange(tracks.n_frames + 1)) for frames in (
            tracks.truths['frame'], tracks.stacks['frame'],
            tracks.truths['frame'][tracks.pairs['truth']]))

    def similarity(i: int) -> Floats:
        pairs = tracks.pairs[pair_ends[i]:pair_ends[i + 1]]
        found = np.zeros((truth_ends[i + 1] - truth_ends[i], stack_ends[i + 1] - stack_ends[i]))
        found[pairs['truth'] - truth_ends[i], pairs['stack'] - stack_ends[i]] = \
            1.0 - pairs['distance'] / _ZERO_SIMILARITY_M
        return found

    data: dict[str, Any] = {
        'gt_ids': np.split(tracks.truths['id'], truth_ends[1:-1]),
        'tracker_ids': np.split(tracks.stacks['id'], stack_ends[1:-1]),
        'similarity_scores': _Lazy(similarity),
        'num_timesteps': tracks.n_frames,
        'num_gt_ids': tracks.n_truth_ids, 'num_tracker_ids': tracks.n_stack_ids,
        'num_gt_dets': len(tracks.truths), 'num_tracker_dets': len(tracks.stacks)}
    quiet = {'PRINT_CONFIG': False}
    clear = CLEAR(quiet).eval_sequence(data)
    numbers: dict[str, float] = dict.fromkeys(('hota', 'mota', 'idf1', *_OF_TRUTH), math.nan)
    numbers |= {name: int(clear[key]) for name, key in _OF_CLEAR.items()}
    numbers['motp'] = _ZERO_SIMILARITY_M * (1.0 - float(clear['MOTP'])) if clear['CLR_TP'] \
        else math.nan
    if tracks.n_truth_ids:
        numbers |= {name: int(clear[key]) for name, key in _OF_TRUTH.items()}
        numbers['mota'] = float(clear['MOTA'])
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

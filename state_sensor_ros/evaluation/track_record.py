# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The tracks of all frames: ids, classes, confidences, and the pairs of near objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.evaluation import matching
from state_sensor_ros.frame import Bools, Floats, Rows

LIMIT_M: Final = matching.MATCH_DISTANCES_M[matching.I_ERRORS]
ZERO_SIMILARITY_M: Final = 4.0
_OBJECT = np.dtype([('frame', np.int32), ('id', np.int32), ('class', np.int8),
                    ('score', np.float64), ('xy', np.float64, 2)])
_PAIR = np.dtype([('truth', np.int32), ('stack', np.int32), ('distance', np.float64)])
# An id, with its place among the equal ids of a frame if it is not the first.
_Track = str | tuple[str, int]
# Rows and ids: half the memory of int64.
Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TrackArrays:
    """T ground-truth and S stack objects in F frames, and their P pairs within 4 m."""

    times_s: Floats  # (F,)
    # truth_frames, truth_ids, truth_classes: (T,) and the same of the stack (S,).
    truth_frames: Numbers
    truth_ids: Numbers
    truth_classes: npt.NDArray[np.int8]
    stack_frames: Numbers
    stack_ids: Numbers
    stack_classes: npt.NDArray[np.int8]
    stack_scores: Floats  # (S,) mean confidence of the track
    # pair_truths, pair_stacks: (P,) rows, in the order of ground-truth objects.
    pair_truths: Numbers
    pair_stacks: Numbers
    pair_distances: Floats  # (P,) m
    n_truth_ids: int  # n_truth_ids, n_stack_ids: numbers of tracks
    n_stack_ids: int

    @cached_property
    def are_near(self) -> Bools:
        """Whether each pair is within 2 m, so that it may match, (P,)."""
        near: Bools = self.pair_distances < LIMIT_M
        return near


class TrackRecorder:
    """Records the objects of frames, and their pairs."""

    def __init__(self) -> None:
        self._truth_numbers: dict[_Track, int] = {}
        self._stack_numbers: dict[_Track, int] = {}
        self._stamps_ns: list[int] = []
        self._truths, self._stacks = [np.zeros(0, _OBJECT)], [np.zeros(0, _OBJECT)]
        self._pairs: list[npt.NDArray[np.void]] = [np.zeros(0, _PAIR)]
        self._counts = [0, 0]

    def add(self, frame: matching.EvaluatedFrame) -> None:
        """Add a frame."""
        # frame: frame after the last one, with the ids of the stack's objects.
        number = len(self._stamps_ns)
        self._stamps_ns.append(frame.stamp_ns)
        self._pairs.append(_pairs_of(
            frame.truth.states[:, matching.XY], frame.stack.states[:, matching.XY],
            *self._counts))
        self._counts[0] += len(frame.truth.ids)
        self._counts[1] += len(frame.stack.ids)
        for objects, numbers, column in (
                (frame.truth, self._truth_numbers, self._truths),
                (frame.stack, self._stack_numbers, self._stacks)):
            rows = np.zeros(len(objects.ids), _OBJECT)
            rows['frame'], rows['class'], rows['score'] = number, objects.classes, objects.scores
            rows['id'] = _numbered(objects.ids, numbers)
            rows['xy'] = objects.states[:, matching.XY]
            column.append(rows)

    def finish(self) -> TrackArrays:
        return self._arrays(np.concatenate(self._truths), self._stack_rows(),
                            np.concatenate(self._pairs))

    def interpolated(self) -> TrackArrays:
        """Return the tracks with interpolated objects in their gaps, as the loader of nuScenes."""
        truths, stacks = (_filled(rows, np.array(self._stamps_ns, np.int64))
                          for rows in (np.concatenate(self._truths), self._stack_rows()))
        pairs: list[npt.NDArray[np.void]] = [np.zeros(0, _PAIR)]
        truth_ends, stack_ends = (
            np.searchsorted(rows['frame'], np.arange(len(self._stamps_ns) + 1)).tolist()
            for rows in (truths, stacks))
        for i in range(len(self._stamps_ns)):
            pairs.append(_pairs_of(
                truths['xy'][truth_ends[i]:truth_ends[i + 1]],
                stacks['xy'][stack_ends[i]:stack_ends[i + 1]], truth_ends[i], stack_ends[i]))
        return self._arrays(truths, stacks, np.concatenate(pairs))

    def _stack_rows(self) -> npt.NDArray[np.void]:
        stacks = np.concatenate(self._stacks)
        ids = stacks['id']
        # With the rounding of nuscenes-devkit, which decides what is at a threshold.
        scores = np.split(stacks['score'][np.argsort(ids, kind='stable')],
                          np.cumsum(np.bincount(ids))[:-1])
        means: Floats = np.array([np.mean(of_track) for of_track in scores if len(ids)])
        # In place: the confidences of single objects are not used.
        stacks['score'] = means[ids]
        return stacks

    def _arrays(self, truths: npt.NDArray[np.void], stacks: npt.NDArray[np.void],
                pairs: npt.NDArray[np.void]) -> TrackArrays:
        times_s: Floats = np.array(self._stamps_ns, np.float64) * 1e-9
        return TrackArrays(
            times_s, truths['frame'], truths['id'], truths['class'], stacks['frame'],
            stacks['id'], stacks['class'], stacks['score'], pairs['truth'], pairs['stack'],
            pairs['distance'], len(self._truth_numbers), len(self._stack_numbers))


def _pairs_of(truth_xy: Floats, stack_xy: Floats, first_truth: int,
              first_stack: int) -> npt.NDArray[np.void]:
    truths, stacks, distances = matching.near_pairs(truth_xy, stack_xy, ZERO_SIMILARITY_M)
    pairs = np.zeros(len(truths), _PAIR)
    pairs['truth'], pairs['stack'] = truths + first_truth, stacks + first_stack
    pairs['distance'] = distances
    return pairs


def _filled(rows: npt.NDArray[np.void], stamps_ns: Rows) -> npt.NDArray[np.void]:
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


def _numbered(ids: tuple[str, ...], numbers: dict[_Track, int]) -> Rows:
    """Return numbers of ids, from 0; a second object with an id in a frame has its own number."""
    found = []
    n_before: dict[str, int] = {}
    for name in ids:
        place = n_before.get(name, 0)
        n_before[name] = place + 1
        found.append(numbers.setdefault((name, place) if place else name, len(numbers)))
    return np.array(found, np.int64)


# Scores of pairs of a frame: rows of objects, distances, and whether a pair continues a track.
_Assignment = Callable[[Numbers, Numbers, Floats, Bools], Bools]


def matched_pairs(tracks: TrackArrays, are_allowed: Bools) -> Rows:
    """
    Return the pairs that match within 2 m, as in motmetrics and nuScenes.

    A pair that was the last match of its ground-truth object is kept.

    :param are_allowed: (P,) bool, pairs that may match.
    """
    return _matched(tracks, are_allowed & tracks.are_near, _kept_first, keeps_gaps=True)


def _matched(tracks: TrackArrays, are_allowed: Bools, assign: _Assignment, *,
             keeps_gaps: bool) -> Rows:
    rows = np.flatnonzero(are_allowed)
    truths, stacks = tracks.pair_truths[rows], tracks.pair_stacks[rows]
    are_alone = (np.bincount(truths)[truths] == 1) & (np.bincount(stacks)[stacks] == 1)
    if are_alone.all():
        return rows
    # trackeval does not count frames in which one side has no objects.
    frames = np.intersect1d(tracks.truth_frames, tracks.stack_frames).searchsorted(
        tracks.truth_frames[truths])
    truth_ids, stack_ids = tracks.truth_ids[truths], tracks.stack_ids[stacks]
    # The stack's id with which each ground-truth object was last matched, and its frame.
    last_ids, last_frames = np.full((2, int(tracks.truth_ids.max()) + 1), -1)
    are_matched, done = are_alone.copy(), 0
    for frame in np.unique(frames[~are_alone]).tolist():
        begin, end = np.searchsorted(frames, (frame, frame + 1)).tolist()
        before, here = slice(done, begin), slice(begin, end)
        last_ids[truth_ids[before]] = stack_ids[before]
        last_frames[truth_ids[before]] = frames[before]
        are_matched[here] = assign(
            truths[here], stacks[here], tracks.pair_distances[rows[here]],
            (last_ids[truth_ids[here]] == stack_ids[here])
            & (keeps_gaps | (last_frames[truth_ids[here]] == frame - 1)))
        chosen = begin + np.flatnonzero(are_matched[here])
        last_ids[truth_ids[chosen]], last_frames[truth_ids[chosen]] = stack_ids[chosen], frame
        done = end
    matched: Rows = rows[are_matched]
    return matched


def _kept_first(truths: Numbers, stacks: Numbers, distances: Floats, are_kept: Bools) -> Bools:
    """Return which pairs match: those of before, then those of the least total distance."""
    chosen: Bools = np.zeros(len(truths), np.bool_)
    kept = np.flatnonzero(are_kept)
    chosen[kept[np.unique(stacks[kept], return_index=True)[1]]] = True
    is_free = ~np.isin(truths, truths[chosen]) & ~np.isin(stacks, stacks[chosen])
    free = np.flatnonzero(is_free)
    if len(free):
        # So great that as many pairs as possible are matched.
        no_pair = 2.0 * len(free) * (LIMIT_M + 1.0)
        chosen[free[least_pairs(truths[free], stacks[free], distances[free], no_pair)]] = True
    return chosen


def least_pairs(truths: Numbers, stacks: Numbers, costs: Floats, no_pair: float) -> Rows:
    """Return which pairs have the least total cost, with each object in one of them at most."""
    # truths: (K,) ground-truth object of each pair.
    # stacks: (K,) object of the stack.
    # costs: (K,) float64.
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching
    row_truths, rows = np.unique(truths, return_inverse=True)
    column_stacks, columns = np.unique(stacks, return_inverse=True)
    n_rows, n_columns = len(row_truths), len(column_stacks)
    # Each row has a column of its own, which is taken if it is no pair; a weight of 0 is no edge.
    least = min(float(costs.min()), no_pair) - 1.0
    graph = csr_matrix((
        np.append(costs, np.full(n_rows, no_pair)) - least,
        (np.append(rows, np.arange(n_rows)),
         np.append(columns, n_columns + np.arange(n_rows)))), (n_rows, n_columns + n_rows))
    taken = min_weight_full_bipartite_matching(graph)[1]
    found: Rows = np.flatnonzero(taken[rows] == columns)
    return found

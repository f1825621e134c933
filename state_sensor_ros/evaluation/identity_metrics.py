# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
HOTA and IDF1 as sums over the pairs of tracks that meet, in blocks of time.

Source: ``trackeval/metrics/hota.py`` and ``identity.py`` of trackeval 1.3, whose matrices have a
row and a column for each track; here memory grows with the pairs of tracks. Luiten et al. (2021),
Ristani et al. (2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.evaluation.resampling import TimeBlocks
from state_sensor_ros.evaluation.spooled_rows import N_BLOCK
from state_sensor_ros.evaluation.track_record import least_pairs, TrackArrays, ZERO_SIMILARITY_M
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

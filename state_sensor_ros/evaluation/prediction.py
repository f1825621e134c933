# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Metrics of predicted paths: minADE, minFDE and miss rate at horizons.

An object counts if the ground-truth object that it matches at 2 m and one of its paths reach the
horizon; of these paths the most confident ones are compared. Only points after now count. Where
Argoverse and nuScenes differ, both are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import Final

import numpy as np

from state_sensor_ros.evaluation.matching import (
    EvaluatedFrame,
    I_ERRORS,
    PathOfObject,
    XY,
)
from state_sensor_ros.evaluation.truth import GroundTruth
from state_sensor_ros.frame import Floats, Rows

HORIZONS_S: Final = (3.0, 5.0, 8.0)
# Numbers of paths of greatest confidence that count, beside all.
PATH_COUNTS: Final = (1, 6)
ALL_PATHS: Final = 0
MISS_M: Final = 2.0
# minFDE, minADE and miss rates: "argoverse" of the path with the least final displacement,
# "nuscenes" a miss if the greatest displacement of every path exceeds 2 m.
SCORE_NAMES: Final = ('min_ade', 'min_fde', 'miss_rate', 'min_ade_argoverse', 'miss_rate_nuscenes')


@dataclass(frozen=True, slots=True, eq=False)
class PathSums:
    """Sums over the objects of F frames."""

    horizons_s: tuple[float, ...]  # (H,) s
    path_counts: tuple[int, ...]  # (K,), ALL_PATHS for all
    sums: Floats  # (F, H, K, 6) number of objects, sums of SCORE_NAMES
    n_matched: int  # objects that have paths


class PathScorer:
    """Scores the paths of a stack frame by frame; keeps sums."""

    def __init__(self, truth: GroundTruth, horizons_s: Sequence[float] = HORIZONS_S,
                 path_counts: Sequence[int] = PATH_COUNTS) -> None:
        self._truth = truth
        self._horizons_s = tuple(sorted(horizons_s))
        self._horizons_ns = tuple(round(horizon_s * 1e9) for horizon_s in self._horizons_s)
        self._path_counts = (ALL_PATHS, *path_counts)
        self._sums: list[Floats] = []
        self._n_matched = 0

    def add(self, frame: EvaluatedFrame, now_ns: int) -> None:
        matches = frame.matches[I_ERRORS]
        rows = np.flatnonzero(matches >= 0)
        actors = self._truth.actors_of([frame.truth.ids[row] for row in matches[rows].tolist()])
        paths = [sorted(frame.stack.paths[row], key=lambda path: -path.confidence)
                 for row in rows.tolist()]
        self._n_matched += sum(map(bool, paths))
        displaced = self._displacements(paths, actors, now_ns)
        self._sums.append(np.stack([self._horizon_sums(displaced, len(paths), i)
                                    for i in range(len(self._horizons_s))]))

    def finish(self) -> PathSums:
        shape = (0, len(self._horizons_s), len(self._path_counts), len(SCORE_NAMES) + 1)
        return PathSums(self._horizons_s, self._path_counts,
                        np.stack(self._sums) if self._sums else np.zeros(shape), self._n_matched)

    def _displacements(self, paths: Sequence[Sequence[PathOfObject]], actors: Rows,
                       now_ns: int) -> list[_Displaced]:
        """Return the distances of the points of paths to the ground truth."""
        found = []
        for (step_ns, n_poses), (objects, ranks, poses) in _alike(paths).items():
            if step_ns <= 0 or n_poses < 2:
                continue
            n_points = min(n_poses - 1, self._horizons_ns[-1] // step_ns)
            # A horizon may lie between two points.
            wanted_ns = np.append(np.arange(1, n_points + 1) * step_ns, self._horizons_ns)
            place = wanted_ns / step_ns
            before = np.minimum(place.astype(np.int64), n_poses - 2)
            share = (place - before)[:, None]
            stacked = np.array(poses)[:, :, :2]
            path_xy = stacked[:, before] * (1.0 - share) + stacked[:, before + 1] * share
            true_xy = self._truth.states_at(actors[objects], now_ns + wanted_ns)[..., XY]
            found.append(_Displaced(step_ns, (n_poses - 1) * step_ns, np.array(objects),
                                    np.array(ranks), np.linalg.norm(path_xy - true_xy, axis=2)))
        return found

    def _horizon_sums(self, displaced: Sequence[_Displaced], n_objects: int,
                      i_horizon: int) -> Floats:
        """Return the sums of a frame at a horizon."""
        # Returns (K, 6) float64 by numbers of paths.
        horizon_ns = self._horizons_ns[i_horizon]
        found: list[tuple[Rows, Rows, Floats]] = [
            (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 3)))]
        for each in displaced:
            if each.length_ns < horizon_ns:
                continue
            points = each.distances[:, :horizon_ns // each.step_ns]
            last = each.distances[:, i_horizon - len(self._horizons_s)]
            means = points.mean(axis=1) if points.size else last
            errors = np.column_stack((means, last, np.column_stack((points, last)).max(axis=1)))
            # NaN if the ground truth does not have the object up to the horizon.
            reach = np.isfinite(errors).all(axis=1)
            found.append((each.objects[reach], each.ranks[reach], errors[reach]))
        objects, ranks, errors = (np.concatenate(parts) for parts in zip(*found, strict=True))
        # The place of a path among those of its object that reach the horizon: all numbers of
        # paths score the same objects.
        order = np.lexsort((ranks, objects))
        objects, errors = objects[order], errors[order]
        places = np.arange(len(objects)) - np.searchsorted(objects, objects)
        sums = np.zeros((len(self._path_counts), len(SCORE_NAMES) + 1))
        for i, n_paths in enumerate(self._path_counts):
            counts = places < (n_paths or math.inf)
            scores, scored = _least(objects[counts], errors[counts], n_objects)
            sums[i, 0] = len(scored)
            sums[i, 1:] = scores.sum(axis=0)
        return sums


@dataclass(frozen=True, eq=False)
class _Displaced:
    """Distances of R paths of equal steps to the ground truth."""

    step_ns: int
    length_ns: int
    objects: Rows  # objects, ranks: (R,) of the paths
    ranks: Rows
    # (R, P + H), m, at each step and at each horizon, NaN where the ground truth does not have the
    # object.
    distances: Floats


# Object, rank and poses of the paths, by step and number of poses.
_Alike = dict[tuple[int, int], tuple[list[int], list[int], list[Floats]]]


def _alike(paths_of_objects: Sequence[Sequence[PathOfObject]]) -> _Alike:
    found: _Alike = {}
    for row, paths in enumerate(paths_of_objects):
        for rank, path in enumerate(paths):
            rows, ranks, poses = found.setdefault((path.step_ns, len(path.poses)), ([], [], []))
            rows.append(row)
            ranks.append(rank)
            poses.append(path.poses)
    return found


def _least(objects: Rows, errors: Floats, n_objects: int) -> tuple[Floats, Rows]:
    """Return the scores of each object that has a path, by its best one."""
    # objects: (R,) int64, object of each path.
    # errors: (R, 3) float64, mean, final and greatest displacement, m.
    # Returns (S, 5) float64 by SCORE_NAMES; (S,) int64, the objects.
    least = np.full((n_objects, 3), np.inf)
    np.minimum.at(least, objects, errors)
    scored = np.flatnonzero(np.isfinite(least[:, 0]))
    order = np.lexsort((errors[:, 1], objects))
    best = order[np.unique(objects[order], return_index=True)[1]]
    return np.column_stack((
        least[scored, :2], least[scored, 1] > MISS_M, errors[best, 0],
        least[scored, 2] > MISS_M)), scored


def path_scores(found: PathSums) -> dict[float, dict[int, dict[str, float]]]:
    """Return the scores by horizon, s, and number of paths; NaN without objects."""
    totals = found.sums.sum(axis=0)
    with np.errstate(all='ignore'):
        means = totals[:, :, 1:] / totals[:, :, :1]
    return {horizon_s: {n_paths: {
        **dict(zip(SCORE_NAMES, means[i, j].tolist(), strict=True)),
        'objects': int(totals[i, j, 0])} for j, n_paths in enumerate(found.path_counts)}
        for i, horizon_s in enumerate(found.horizons_s)}

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Displacement errors of predicted paths: minADE, minFDE and the miss rate at two horizons.

An object is scored if the truth that it matches at 2 m and one of its paths reach the horizon.
Only points after now are scored; of several paths the least error is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from state_sensor_ros.evaluation.ground_truth import GroundTruth
from state_sensor_ros.evaluation.matching import I_ERRORS
from state_sensor_ros.evaluation.object_set import EvaluatedFrame, PathOfObject
from state_sensor_ros.frame import Floats

HORIZONS_S: Final = (3.0, 5.0)
MISS_M: Final = 2.0


@dataclass(frozen=True, slots=True)
class HorizonScores:
    """Means over ``n_objects`` at one horizon, NaN for none: m, m, share."""

    min_ade: float
    min_fde: float
    miss_rate: float
    n_objects: int


def score_paths(frames: Sequence[EvaluatedFrame], truth: GroundTruth, *,
                shift_ns: Sequence[int]) -> dict[float, HorizonScores]:
    """
    Score the paths of a stack by horizon, s.

    :param frames: frames whose objects of the stack have paths.
    :param truth: truth of all frames.
    :param shift_ns: time from the stamp of each frame to the time at which truth is taken.
    """
    errors: dict[float, list[Floats]] = {each: [np.zeros((0, 2))] for each in HORIZONS_S}
    for frame, shift in zip(frames, shift_ns, strict=True):
        matches = frame.matches[I_ERRORS]
        rows = np.flatnonzero(matches >= 0).tolist()
        names = [frame.truth.ids[matches[row]] for row in rows]
        paths = _alike([frame.stack.paths[row] for row in rows])
        for horizon_s, found in errors.items():
            found.append(_least_errors(paths, names, truth, frame.stamp_ns + shift,
                                       round(horizon_s * 1e9)))
    return {horizon_s: _scores(np.concatenate(found)) for horizon_s, found in errors.items()}


def _scores(errors: Floats) -> HorizonScores:
    if not len(errors):
        return HorizonScores(np.nan, np.nan, np.nan, 0)
    min_ade, min_fde = errors.mean(axis=0).tolist()
    return HorizonScores(min_ade, min_fde, float((errors[:, 1] > MISS_M).mean()), len(errors))


# Paths of several objects by step and number of points: rows of the objects, and (G, P, 2) points.
_Alike = dict[tuple[int, int], tuple[list[int], list[Floats]]]


def _alike(paths_of_objects: Sequence[Sequence[PathOfObject]]) -> _Alike:
    found: _Alike = {}
    for row, paths in enumerate(paths_of_objects):
        for path in paths:
            rows, points = found.setdefault((path.step_ns, len(path.points)), ([], []))
            rows.append(row)
            points.append(path.points)
    return found


def _least_errors(alike: _Alike, names: Sequence[str], truth: GroundTruth, now_ns: int,
                  horizon_ns: int) -> Floats:
    """
    Return the least mean and final displacement of the objects that are scored.

    :param alike: paths of K objects.
    :param names: names of the K truths.
    :param now_ns: time of the first points.
    :returns: (R, 2) float64, m.
    """
    least = np.full((len(names), 2), np.inf)
    for (step_ns, n_points), (rows, points) in alike.items():
        if step_ns <= 0 or (n_points - 1) * step_ns < horizon_ns:
            continue
        n_counted = horizon_ns // step_ns
        # The horizon itself may lie between two points.
        wanted_ns = np.append(np.arange(1, n_counted + 1) * step_ns, horizon_ns)
        place = wanted_ns / step_ns
        before = np.minimum(place.astype(np.int64), n_points - 2)
        share = (place - before)[:, None]
        stacked = np.array(points)
        path_xy = stacked[:, before] * (1.0 - share) + stacked[:, before + 1] * share
        true_xy = truth.positions_at([names[row] for row in rows], now_ns + wanted_ns)
        off = np.linalg.norm(path_xy - true_xy, axis=2)
        # NaN if the truth does not reach the horizon.
        means = off[:, :n_counted].mean(axis=1) if n_counted else off[:, -1]
        errors = np.where(np.isnan(off).any(axis=1)[:, None], np.inf,
                          np.column_stack((means, off[:, -1])))
        np.minimum.at(least, rows, errors)
    counted: Floats = least[np.isfinite(least).all(axis=1)]
    return counted

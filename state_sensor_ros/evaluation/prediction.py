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
horizon; of these paths the most confident ones are compared. Only points after now count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from state_sensor_ros.evaluation.matching import EvaluatedFrame, PathOfObject, XY
from state_sensor_ros.evaluation.truth import GroundTruth
from state_sensor_ros.frame import Floats

HORIZONS_S: Final = (3.0, 5.0, 8.0)
# Numbers of paths of greatest confidence that count, beside all.
PATH_COUNTS: Final = (1, 6)
ALL_PATHS: Final = 0
MISS_M: Final = 2.0
SCORE_NAMES: Final = ('min_ade', 'min_fde', 'miss_rate')


class PathScorer:
    """Scores the paths of a stack frame by frame."""

    # n_matched: matched objects that have paths; n_pathless: those that have none.

    def __init__(self, truth: GroundTruth, horizons_s: Sequence[float] = HORIZONS_S,
                 path_counts: Sequence[int] = PATH_COUNTS) -> None:
        self._truth = truth
        self._horizons_s = sorted(horizons_s)
        self._horizons_ns = [round(horizon_s * 1e9) for horizon_s in self._horizons_s]
        self._path_counts = (ALL_PATHS, *path_counts)
        # Of each object, (R, H, 2) mean and final displacement of its paths, m, the most confident
        # one first, NaN where path or ground truth does not reach the horizon.
        self._errors: list[Floats] = []
        self.n_matched = self.n_pathless = 0

    def add(self, frame: EvaluatedFrame, now_ns: int) -> None:
        rows, others = frame.matched
        names = [frame.truth.ids[row] for row in others.tolist()]
        # Times and true places of all objects, by step and number of poses.
        known: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        for i, row in enumerate(rows.tolist()):
            errors = []
            for path in sorted(frame.stack.paths[row], key=lambda path: -path.confidence):
                key = path.step_ns, len(path.poses)
                if key[0] <= 0 or key[1] < 2:
                    continue
                if key not in known:
                    n_points = min(key[1] - 1, self._horizons_ns[-1] // key[0])
                    # A horizon may lie between two points.
                    wanted_ns = np.append(np.arange(1, n_points + 1) * key[0], self._horizons_ns)
                    known[key] = wanted_ns / key[0], self._truth.states_of(
                        names, now_ns + wanted_ns)[..., XY]
                places, true_xy = known[key]
                errors.append(self._errors_of(path, places, true_xy[i]))
            self.n_matched += bool(frame.stack.paths[row])
            self.n_pathless += not frame.stack.paths[row]
            if errors:
                self._errors.append(np.array(errors))

    def _errors_of(self, path: PathOfObject, places: Floats, true_xy: Floats) -> Floats:
        """Return (H, 2) displacements; ``places``: (P,) in steps from now, the horizons last."""
        before = np.minimum(places.astype(np.int64), len(path.poses) - 2)
        share = (places - before)[:, None]
        path_xy = path.poses[before, :2] * (1.0 - share) + path.poses[before + 1, :2] * share
        distances = np.linalg.norm(path_xy - true_xy, axis=1)
        errors = np.full((len(self._horizons_ns), 2), np.nan)
        for i, horizon_ns in enumerate(self._horizons_ns):
            if (len(path.poses) - 1) * path.step_ns >= horizon_ns:
                points = distances[:horizon_ns // path.step_ns]
                last = distances[i - len(self._horizons_ns)]
                errors[i] = points.mean() if len(points) else last, last
        errors[~np.isfinite(errors).all(axis=1)] = np.nan
        return errors

    def finish(self) -> dict[float, dict[int, dict[str, float]]]:
        """Return the scores by horizon, s, and number of paths; NaN without objects."""
        found: dict[float, dict[int, dict[str, float]]] = {}
        for i, horizon_s in enumerate(self._horizons_s):
            # All numbers of paths score the same objects: those of which one path reaches it.
            reaching = [each for errors in self._errors
                        if len(each := errors[:, i][np.isfinite(errors[:, i, 0])])]
            found[horizon_s] = {}
            for n_paths in self._path_counts:
                least = [errors[:n_paths or None].min(axis=0).tolist() for errors in reaching]
                scores = [(ade, fde, fde > MISS_M) for ade, fde in least] or [(np.nan,) * 3]
                means = np.mean(scores, axis=0).tolist()
                found[horizon_s][n_paths] = {**dict(zip(SCORE_NAMES, means, strict=True)),
                                             'objects': len(reaching)}
        return found

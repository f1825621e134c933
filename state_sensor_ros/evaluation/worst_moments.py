# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The moments with the greatest errors of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from state_sensor_ros.evaluation.matching import I_ERRORS, MATCH_DISTANCES_M
from state_sensor_ros.evaluation.object_set import EvaluatedFrame, XY
from state_sensor_ros.frame import Floats

N_MOMENTS: Final = 10
# Least time between two of them, so that they are not ten frames of one second.
_APART_NS = 500_000_000
# Smaller costs are rounding.
_LEAST_COST = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """
    A evaluated frame and its errors.

    ``n_missed`` truths without a match at 2 m; ``n_false`` detections without one; ``errors`` (R,)
    translation errors of the matches, m; ``cost`` the two numbers plus the sum of errors by 2 m.
    """

    frame: EvaluatedFrame
    n_missed: int
    n_false: int
    errors: Floats
    cost: float


def moment_of(frame: EvaluatedFrame) -> Moment:
    """
    Return the errors of a frame.

    :param frame: evaluated frame.
    """
    matches = frame.matches[I_ERRORS]
    rows = np.flatnonzero(matches >= 0)
    errors = np.linalg.norm(
        frame.stack.states[rows, XY] - frame.truth.states[matches[rows], XY], axis=1)
    n_missed, n_false = len(frame.truth.ids) - len(rows), len(matches) - len(rows)
    return Moment(frame, n_missed, n_false, errors,
                  n_missed + n_false + float(errors.sum()) / MATCH_DISTANCES_M[I_ERRORS])


def worst_moments(moments: Sequence[Moment]) -> list[Moment]:
    """
    Return the moments of the greatest cost, the worst first, at most N_MOMENTS.

    :param moments: moments of all frames.
    """
    chosen: list[Moment] = []
    for moment in sorted(moments, key=lambda each: -each.cost):
        if len(chosen) == N_MOMENTS or moment.cost < _LEAST_COST:
            break
        if all(abs(moment.frame.stamp_ns - other.frame.stamp_ns) >= _APART_NS
               for other in chosen):
            chosen.append(moment)
    return chosen

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Matching of detections and truths, as nuscenes-devkit 1.2.0 does it in ``detection/algo.py``.

In the order of falling confidence, each detection is matched with the nearest truth of its class
that is still free, if that is nearer than the match distance.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from state_sensor_ros.evaluation.object_set import ObjectSet, XY
from state_sensor_ros.frame import Floats, Rows

MATCH_DISTANCES_M: Final = (0.5, 1.0, 2.0, 4.0)
# Index in MATCH_DISTANCES_M: errors, recall and precision are those of the matches at 2 m.
I_ERRORS: Final = 2


def distances_between(stack: ObjectSet, truth: ObjectSet) -> Floats:
    """
    Return (N, M) distances of centres in the plane, m.

    :param stack: N objects.
    :param truth: M objects.
    """
    difference = stack.states[:, None, XY] - truth.states[None, :, XY]
    distances: Floats = np.sqrt(np.einsum('nmi,nmi->nm', difference, difference))
    return distances


def match(stack: ObjectSet, truth: ObjectSet) -> Rows:
    """
    Match the objects of one instant.

    :param stack: N objects.
    :param truth: M objects.
    :returns: (4, N) int64, row of the matching truth at each of MATCH_DISTANCES_M, -1 for none.
    """
    n_stack, n_truth = len(stack.ids), len(truth.ids)
    matches = np.full((len(MATCH_DISTANCES_M), n_stack), -1, np.int64)
    if not n_stack or not n_truth:
        return matches
    distances = distances_between(stack, truth)
    distances[stack.classes[:, None] != truth.classes] = np.inf
    nearest = distances.argmin(axis=1)
    least = distances[np.arange(n_stack), nearest]
    # Of equal confidences the later one is first, as in nuscenes-devkit.
    order = np.lexsort((np.arange(n_stack), stack.scores))[::-1]
    for row, limit in zip(matches, MATCH_DISTANCES_M, strict=True):
        # The other detections have no truth within the limit at all.
        able = order[least[order] < limit]
        wanted = nearest[able]
        if len(np.unique(wanted)) == len(wanted):
            row[able] = wanted
        else:
            _take_in_turn(row, able, distances, limit)
    return matches


def _take_in_turn(row: Rows, order: Rows, distances: Floats, limit: float) -> None:
    """Match detections one after the other, for the case that two have the same nearest truth."""
    free = distances.copy()
    for detection in order.tolist():
        truth = int(free[detection].argmin())
        if free[detection, truth] < limit:
            row[detection] = truth
            free[:, truth] = np.inf

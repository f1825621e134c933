# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Matching of selected detections with ground truth.

As in nuscenes-devkit 1.2.0, ``detection/algo.py``: in the order of falling confidence, each
detection is matched with the nearest truth of its class that is still free, if that is nearer than
the match distance.
"""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import Final

import numpy as np

from state_sensor_ros.evaluation.object_set import (
    BUS_OR_TRAILER,
    distances_from,
    EVALUATED_CLASSES,
    EvaluatedFrame,
    ObjectSet,
    XY,
)
from state_sensor_ros.frame import Bools, Floats, Rows

MATCH_DISTANCES_M: Final = (0.5, 1.0, 2.0, 4.0)
# Index in MATCH_DISTANCES_M: errors, recall and precision are those of the matches at 2 m.
I_ERRORS: Final = 2

_MERGED = np.arange(len(EVALUATED_CLASSES))
_MERGED[[EVALUATED_CLASSES.index('bus'), EVALUATED_CLASSES.index('trailer')]] = BUS_OR_TRAILER


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


@dataclass(frozen=True, slots=True)
class Selection:
    """
    A selection of messages and objects to evaluate.

    ``start_ns`` and ``end_ns`` limits of the stamps; ``period_ns`` least time between two
    messages; ``range_m`` greatest distance of an object from the ego's origin, 0 for any;
    ``classes`` names of classes, empty for all.
    """

    start_ns: float = -math.inf
    end_ns: float = math.inf
    period_ns: int = 0
    range_m: float = 0.0
    classes: frozenset[str] = frozenset()

    def has_time(self, stamp_ns: int, last_ns: int | None) -> bool:
        """
        Return whether a message is evaluated.

        :param stamp_ns: time at which truth is taken.
        :param last_ns: the same of the last evaluated message, None before the first one.
        """
        # A tolerance of a millisecond: periods of recordings vary.
        return self.start_ns <= stamp_ns <= self.end_ns and (
            not self.period_ns or last_ns is None
            or stamp_ns - last_ns >= self.period_ns - 1_000_000 or stamp_ns < last_ns)

    def match(self, stamp_ns: int, stack: ObjectSet, truth: ObjectSet, are_selected: Bools,
              ego_xyz: Floats, *, merges: bool) -> EvaluatedFrame:
        """
        Match the selected objects of an instant.

        :param stamp_ns: stamp of the message.
        :param stack: objects of the message.
        :param truth: M objects.
        :param are_selected: (M,) bool, whether each truth is evaluated; a detection whose nearest
            truth within 2 m is not, is left out like it.
        :param ego_xyz: (3,) float64, origin of the ego, m, NaN without an ego.
        :param merges: whether bus and trailer are one class.
        """
        if merges:
            truth = ObjectSet(truth.ids, _MERGED[truth.classes], truth.states, truth.scores)
        if not are_selected.all() and len(stack.ids):
            distances = distances_between(stack, truth)
            nearest = distances.argmin(axis=1)
            is_apart = distances.min(axis=1) >= MATCH_DISTANCES_M[I_ERRORS]
            stack = stack.select(is_apart | are_selected[nearest])
        stack = stack.select(self._passes(stack, ego_xyz))
        truth = truth.select(are_selected & self._passes(truth, ego_xyz))
        return EvaluatedFrame(stamp_ns, stack, truth, match(stack, truth), ego_xyz)

    def _passes(self, objects: ObjectSet, ego_xyz: Floats) -> Bools:
        passes: Bools = np.ones(len(objects.ids), np.bool_)
        if self.classes:
            are_included = np.array([name in self.classes or (
                name == 'bus+trailer' and not self.classes.isdisjoint(('bus', 'trailer')))
                for name in EVALUATED_CLASSES])
            passes &= are_included[objects.classes]
        if self.range_m:
            passes &= distances_from(ego_xyz, objects) <= self.range_m
        return passes

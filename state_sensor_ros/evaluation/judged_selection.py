# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The part of truth and stack that is judged: time, rate, range, classes, actors."""

from __future__ import annotations

from dataclasses import dataclass
import math

import numpy as np

from state_sensor_ros.evaluation.matching import (
    distances_between,
    I_ERRORS,
    match,
    MATCH_DISTANCES_M,
)
from state_sensor_ros.evaluation.object_set import (
    BUS_OR_TRAILER,
    distances_from,
    JUDGED_CLASSES,
    JudgedFrame,
    ObjectSet,
)
from state_sensor_ros.frame import Bools, Floats

_MERGED = np.arange(len(JUDGED_CLASSES))
_MERGED[[JUDGED_CLASSES.index('bus'), JUDGED_CLASSES.index('trailer')]] = BUS_OR_TRAILER


@dataclass(frozen=True, slots=True)
class Selection:
    """
    A selection of messages and objects to judge.

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
        Return whether a message is judged.

        :param stamp_ns: time at which truth is taken.
        :param last_ns: the same of the last judged message, None before the first one.
        """
        # A tolerance of a millisecond: periods of recordings vary.
        return self.start_ns <= stamp_ns <= self.end_ns and (
            not self.period_ns or last_ns is None
            or stamp_ns - last_ns >= self.period_ns - 1_000_000 or stamp_ns < last_ns)

    def judge(self, stamp_ns: int, stack: ObjectSet, truth: ObjectSet, are_selected: Bools,
              ego_xyz: Floats, *, merges: bool) -> JudgedFrame:
        """
        Match the selected objects of an instant.

        :param stamp_ns: stamp of the message.
        :param stack: objects of the message.
        :param truth: M objects.
        :param are_selected: (M,) bool, whether each truth is judged; a detection whose nearest
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
        return JudgedFrame(stamp_ns, stack, truth, match(stack, truth), ego_xyz)

    def _passes(self, objects: ObjectSet, ego_xyz: Floats) -> Bools:
        passes: Bools = np.ones(len(objects.ids), np.bool_)
        if self.classes:
            are_judged = np.array([name in self.classes or (
                name == 'bus+trailer' and not self.classes.isdisjoint(('bus', 'trailer')))
                for name in JUDGED_CLASSES])
            passes &= are_judged[objects.classes]
        if self.range_m:
            passes &= distances_from(ego_xyz, objects) <= self.range_m
        return passes

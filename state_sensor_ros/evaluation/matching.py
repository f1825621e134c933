# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Objects at one instant as arrays, and the match of a stack's with ground truth.

As in nuscenes-devkit 1.2.0, ``detection/algo.py``: in the order of falling confidence, each
detection is matched with the nearest ground-truth object of its class that is still free, if that
is nearer than the match distance.
"""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CLASS_NAMES
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Bools, Floats, Rows

# derived_object_msgs has one class number for both.
BUS_OR_TRAILER: Final = len(CLASS_NAMES)
EVALUATED_CLASSES: Final = (*CLASS_NAMES, 'bus+trailer')
# Columns of :attr:`ObjectSet.states`.
XY: Final = slice(0, 2)
XYZ: Final = slice(0, 3)
YAW: Final = 3
VELOCITY: Final = slice(4, 6)
SIZE: Final = slice(6, 9)
PERIOD: Final = 9
N_COLUMNS: Final = 10
MATCH_DISTANCES_M: Final = (0.5, 1.0, 2.0, 4.0)
# Most objects in a frame, and pairs of them near each other: 0.5 GB.
MAX_OBJECTS: Final = 100_000
MAX_PAIRS: Final = 4_000_000
# Index in MATCH_DISTANCES_M: errors, recall and precision are those of the matches at 2 m.
I_ERRORS: Final = 2

_MERGED = np.arange(len(EVALUATED_CLASSES))
_MERGED[[EVALUATED_CLASSES.index('bus'), EVALUATED_CLASSES.index('trailer')]] = BUS_OR_TRAILER


@dataclass(frozen=True, slots=True, eq=False)
class PathOfObject:
    step_ns: int  # between its poses, of which the first is now
    poses: Floats  # (P, 7) float64, position xyz (m) and orientation xyzw
    confidence: float  # 0..1


@dataclass(frozen=True, slots=True, eq=False)
class ObjectSet:
    """K objects at one instant, in the global frame."""

    ids: tuple[str, ...]  # K strings, '' for none
    classes: Rows  # (K,) int64, index in EVALUATED_CLASSES
    # (K, 10) float64: center xyz (m), yaw (rad), velocity xy (m/s), length, width, height (m), NaN
    # if unknown; period of the yaw, rad: half a turn where front and back are not told apart.
    states: Floats
    scores: Floats  # (K,) float64, confidences 0..1
    # Of each object, or an empty tuple if the message has no paths.
    paths: tuple[tuple[PathOfObject, ...], ...] = ()

    def select(self, mask: Bools) -> ObjectSet:
        """Return the objects of a mask; ``mask``: (K,) bool."""
        if mask.all():
            return self
        rows = np.flatnonzero(mask).tolist()
        return ObjectSet(
            tuple(self.ids[row] for row in rows), self.classes[mask], self.states[mask],
            self.scores[mask], tuple(self.paths[row] for row in rows) if self.paths else ())


NOTHING: Final = ObjectSet((), np.zeros(0, np.int64), np.zeros((0, N_COLUMNS)), np.zeros(0))


@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedFrame:
    """One message of the stack beside the ground truth at its time."""

    stamp_ns: int  # of the message
    stack: ObjectSet  # N objects
    truth: ObjectSet  # M objects
    # (4, N) int64, for each of MATCH_DISTANCES_M the matching ground-truth object of each object
    # of the stack, -1 for none.
    matches: npt.NDArray[np.int64]
    ego_xyz: Floats  # (3,) float64, the ego's origin, m, NaN without an ego

    @property
    def matched(self) -> tuple[Rows, Rows]:
        """Rows of the stack and of the ground truth that match at 2 m, (R,) each."""
        rows = np.flatnonzero(self.matches[I_ERRORS] >= 0)
        return rows, self.matches[I_ERRORS][rows]

    @property
    def distances(self) -> Floats:
        """Distances of the ground truth from the ego's origin, (M,), m, NaN without an ego."""
        return distances_from(self.ego_xyz, self.truth)


def distances_from(origin_xyz: Floats, objects: ObjectSet) -> Floats:
    """Return (K,) distances of centers from a point in the plane, m, as nuScenes."""
    distances: Floats = np.linalg.norm(objects.states[:, XY] - origin_xyz[:2], axis=1)
    return distances


def near_pairs(places: Floats, others: Floats, limit_m: float) -> tuple[Rows, Rows, Floats]:
    """
    Return the pairs of objects that are near each other; memory grows with their number.

    :param places: (N, 2) float64, centers of objects, m.
    :param others: (M, 2) float64, centers of other objects, m.
    :param limit_m: distance of the centers in the plane, m, which is less.
    :returns: (P,) rows of the first, (P,) rows of the second, in this order; (P,) float64, m.
    """
    n_most = max(len(places), len(others))
    if n_most > MAX_OBJECTS:
        raise DecodeError('objects', f'{n_most} objects in a frame', f'at most {MAX_OBJECTS}')
    # Candidates are near along the axis on which the objects are spread most; more than the limit,
    # as sums are rounded.
    axis = int(np.ptp(places, axis=0).argmax()) if len(places) else 0
    order = others[:, axis].argsort(kind='stable')
    begins = np.searchsorted(others[order, axis], places[:, axis] - 1.01 * limit_m)
    counts = np.searchsorted(others[order, axis], places[:, axis] + 1.01 * limit_m) - begins
    n_pairs = int(counts.sum())
    if n_pairs > MAX_PAIRS:
        raise DecodeError('objects', f'{n_pairs} pairs of objects beside each other in a frame',
                          f'at most {MAX_PAIRS}')
    rows = np.repeat(np.arange(len(places)), counts)
    columns = order[np.arange(n_pairs) + np.repeat(begins - np.cumsum(counts) + counts, counts)]
    difference = places[rows] - others[columns]
    distances: Floats = np.sqrt(np.einsum('pi,pi->p', difference, difference))
    chosen = np.flatnonzero(distances < limit_m)
    chosen = chosen[np.lexsort((columns[chosen], rows[chosen]))]
    return rows[chosen], columns[chosen], distances[chosen]


def match(stack: ObjectSet, truth: ObjectSet) -> Rows:
    """Match the objects of one instant; of equal confidences the later detection is first."""
    # Returns (4, N) int64, row of the matching ground-truth object at each of MATCH_DISTANCES_M,
    # -1 for none.
    matches = np.full((len(MATCH_DISTANCES_M), len(stack.ids)), -1, np.int64)
    detections, truths, distances = near_pairs(
        stack.states[:, XY], truth.states[:, XY], MATCH_DISTANCES_M[-1])
    are_alike = stack.classes[detections] == truth.classes[truths]
    detections, truths, distances = (
        column[are_alike] for column in (detections, truths, distances))
    order = np.lexsort((truths, distances, -detections, -stack.scores[detections]))
    detections, truths, distances = detections[order], truths[order], distances[order]
    for row, limit in zip(matches, MATCH_DISTANCES_M, strict=True):
        taken: set[int] = set()
        are_within = distances < limit
        for detection, other in zip(detections[are_within].tolist(), truths[are_within].tolist(),
                                    strict=True):
            if row[detection] < 0 and other not in taken:
                row[detection] = other
                taken.add(other)
    return matches


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection of messages and objects to evaluate."""

    start_ns: float = -math.inf  # start_ns, end_ns: limits of the stamps
    end_ns: float = math.inf
    period_ns: int = 0  # least time between two messages
    range_m: float = 0.0  # distance of an object from the ego's origin, which is less, 0 for any
    classes: frozenset[str] = frozenset()  # names of classes, empty for all

    def has_time(self, stamp_ns: int, last_ns: int | None) -> bool:
        """Return whether a message is evaluated."""
        # last_ns: the same of the last evaluated message, None before the first one.
        # A tolerance of a millisecond: periods of recordings vary.
        return self.start_ns <= stamp_ns <= self.end_ns and (
            not self.period_ns or last_ns is None
            or stamp_ns - last_ns >= self.period_ns - 1_000_000 or stamp_ns < last_ns)

    def match(self, stamp_ns: int, stack: ObjectSet, truth: ObjectSet, are_selected: Bools,
              ego_xyz: Floats, *, merges: bool) -> EvaluatedFrame:
        """Match the selected objects of an instant."""
        # are_selected: (M,) bool, whether each ground-truth object is evaluated; a detection whose
        # nearest ground truth within 2 m is not, is dropped like it.
        # ego_xyz: (3,) float64, origin of the ego, m, NaN without an ego.
        if merges:
            truth = ObjectSet(truth.ids, _MERGED[truth.classes], truth.states, truth.scores)
        if not are_selected.all() and len(stack.ids):
            rows, truths, distances = near_pairs(
                stack.states[:, XY], truth.states[:, XY], MATCH_DISTANCES_M[I_ERRORS])
            order = np.lexsort((truths, distances, rows))
            near, first = np.unique(rows[order], return_index=True)
            is_kept: Bools = np.ones(len(stack.ids), np.bool_)
            is_kept[near] = are_selected[truths[order][first]]
            stack = stack.select(is_kept)
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
            passes &= distances_from(ego_xyz, objects) < self.range_m
        return passes

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Objects at one instant as arrays: the common format of the truth and of a stack's messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CLASS_NAMES
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.rotations import plane_rotations

# derived_object_msgs has one class number for both.
BUS_OR_TRAILER: Final = len(CLASS_NAMES)
EVALUATED_CLASSES: Final = (*CLASS_NAMES, 'bus+trailer')
# Columns of :attr:`ObjectSet.states`.
XY: Final = slice(0, 2)
XYZ: Final = slice(0, 3)
YAW: Final = 3
VELOCITY: Final = slice(4, 6)
SIZE: Final = slice(6, 9)
N_COLUMNS: Final = 9


@dataclass(frozen=True, slots=True, eq=False)
class PathOfObject:
    """
    A predicted path.

    ``step_ns`` between its poses, of which the first is now; ``poses`` (P, 7) float64, position
    xyz (m) and orientation xyzw; ``confidence`` 0..1.
    """

    step_ns: int
    poses: Floats
    confidence: float


@dataclass(frozen=True, slots=True, eq=False)
class ObjectSet:
    """
    K objects at one instant, in the global frame.

    ``ids`` K strings, '' for none; ``classes`` (K,) int64, index in EVALUATED_CLASSES; ``states``
    (K, 9) float64: centre xyz (m), yaw (rad), velocity xy (m/s), length, width, height (m), NaN
    if unknown; ``scores`` (K,) float64, confidences 0..1; ``paths`` of each object, or an empty
    tuple if the message has no paths.
    """

    ids: tuple[str, ...]
    classes: Rows
    states: Floats
    scores: Floats
    paths: tuple[tuple[PathOfObject, ...], ...] = ()

    def select(self, mask: Bools) -> ObjectSet:
        """
        Return the objects of a mask.

        :param mask: (K,) bool.
        """
        if mask.all():
            return self
        rows = np.flatnonzero(mask).tolist()
        return ObjectSet(
            tuple(self.ids[row] for row in rows), self.classes[mask], self.states[mask],
            self.scores[mask], tuple(self.paths[row] for row in rows) if self.paths else ())


@dataclass(frozen=True, slots=True, eq=False)
class EvaluatedFrame:
    """
    One message of the stack beside the truth at its time.

    ``stamp_ns`` of the message; ``stack`` N objects; ``truth`` M objects; ``matches`` (4, N)
    int64, for each of MATCH_DISTANCES_M the matching truth of each object of the stack, -1 for
    none; ``ego_xyz`` (3,) float64, the ego's origin, m, NaN without an ego.
    """

    stamp_ns: int
    stack: ObjectSet
    truth: ObjectSet
    matches: npt.NDArray[np.int64]
    ego_xyz: Floats

    @property
    def distances(self) -> Floats:
        """Distances of the truths from the ego's origin, (M,) float64, m, NaN without an ego."""
        return distances_from(self.ego_xyz, self.truth)


def distances_from(origin_xyz: Floats, objects: ObjectSet) -> Floats:
    """
    Return (K,) distances of centres from a point, m.

    :param origin_xyz: (3,) float64.
    :param objects: K objects.
    """
    distances: Floats = np.linalg.norm(objects.states[:, XYZ] - origin_xyz, axis=1)
    return distances


def boxes_overlap(first: Floats, second: Floats) -> Bools:
    """
    Return which boxes overlap in the plane, by the separating axes of rectangles.

    :param first: (K, 9) float64, states.
    :param second: (M, 9) float64, states; a box of unknown size overlaps with none.
    :returns: (K, M) bool.
    """
    overlap: Bools = np.zeros((len(first), len(second)), np.bool_)
    halves, other_halves = 0.5 * first[:, SIZE][:, :2], 0.5 * second[:, SIZE][:, :2]
    reach = np.hypot(*halves.T)[:, None] + np.hypot(*other_halves.T)
    offsets = second[None, :, XY] - first[:, None, XY]
    rows, columns = (np.hypot(offsets[..., 0], offsets[..., 1]) < reach).nonzero()
    axes, other_axes = plane_rotations(first[rows, YAW]), plane_rotations(second[columns, YAW])
    ways, cosines = offsets[rows, columns][:, None], np.abs(axes.transpose(0, 2, 1) @ other_axes)
    halves, other_halves = halves[rows], other_halves[columns]
    gaps = np.abs((ways @ axes)[:, 0]) - halves - (cosines @ other_halves[:, :, None])[:, :, 0]
    other_gaps = np.abs((ways @ other_axes)[:, 0]) - other_halves \
        - (halves[:, None] @ cosines)[:, 0]
    overlap[rows, columns] = (gaps < 0.0).all(axis=1) & (other_gaps < 0.0).all(axis=1)
    return overlap

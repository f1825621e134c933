# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Poses of the actors and boxes of a frame: which can be published, which boxes drawn."""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# A quaternion whose length is outside these bounds is not a rotation. Recordings of the simulator
# are within 2e-7 of 1.
QUATERNION_NORM_MIN = 0.9
QUATERNION_NORM_MAX = 1.1
# NumPy 1 has it as einsum only.
_HAS_VECDOT = hasattr(np, 'vecdot')
# Older ones do not warn of an overflow in a product of BLAS.
_BLAS_WARNS = np.lib.NumpyVersion(np.__version__) >= '2.3.0'
_NOTHING = nullcontext()
# OpenBLAS starts threads for longer vectors.
_MAX_FOR_BLAS = 10_000
# Lengths of boxes that displays can draw, m: displays use float32.
_MIN_LENGTH, _MAX_LENGTH = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
# A product of two numbers within these bounds, in m or cm, is within those of lengths.
_MIN_FACTOR, _MAX_FACTOR = 1e-15, 1e15
# Edges that have a volume, m.
_MIN_EDGE, _MAX_EDGE = 1e-6, 1e6
# Square of the tolerance of the squared length on either side of 1.
_SQUARED_TOLERANCE = (1.0 - QUATERNION_NORM_MIN ** 2) ** 2


class Bodies:
    """
    The actors of a frame, then its boxes, in one block.

    One pass for both: below about ten actors the overhead of numpy's calls dominates
    (bench/README.md#a-frame-of-few-actors).

    ``usable`` (N,) bool, actors with a pose that can be published; ``usable_boxes`` (M,) likewise;
    both read-only. ``is_finite`` whether all numbers are finite, and small enough that a product
    of two of them is. ``is_plain`` whether that holds and all poses are usable.

    :param rows: (N + M, 13) float64, with position xyz and orientation xyzw in the first columns.
    """

    __slots__ = ('_drawable_boxes', '_has_lengths', '_norm2', '_rows', 'is_finite', 'is_plain',
                 'usable', 'usable_boxes')

    def __init__(self, rows: Floats, n_actors: int, has_lengths: bool | None = None) -> None:
        self._rows, self._has_lengths = rows, has_lengths
        self._drawable_boxes: Bools | None = None
        self.is_finite = math.isfinite(_sum_of_squares(rows.ravel()))
        orientation_xyzw = rows[:, 3:7]
        # The former takes less time, but warns of an overflow.
        self._norm2: Floats = np.vecdot(orientation_xyzw, orientation_xyzw) \
            if _HAS_VECDOT and self.is_finite \
            else np.einsum('ij,ij->i', orientation_xyzw, orientation_xyzw)
        # Fast path: a small summed error of the lengths and a finite sum of the positions prove
        # that every pose is usable. A comparison with NaN is false.
        deviation = self._norm2 - 1.0
        if _sum_of_squares(deviation) <= _SQUARED_TOLERANCE \
                and (self.is_finite or math.isfinite(np.einsum('ij->', rows[:, 0:3]))):
            self.usable = _all_usable(n_actors)
            self.usable_boxes = _all_usable(len(rows) - n_actors)
            self.is_plain = self.is_finite
        else:
            self.is_plain = False
            usable = usable_poses(rows[:, 0:3], rows[:, 3:7])
            self.usable, self.usable_boxes = usable[:n_actors], usable[n_actors:]

    def drawable_boxes(self) -> Bools:
        """Return which boxes have a pose that can be published, and positive edges and scales."""
        # Returns (M,) bool, False for NaN, infinity, zero and negative numbers; read-only.
        if self._drawable_boxes is None:
            sizes = self._rows[len(self.usable):, 7:]
            if self._has_lengths is None:
                self._has_lengths = are_lengths(sizes)
            self._drawable_boxes = self.usable_boxes if self._has_lengths \
                else self.usable_boxes & _have_lengths(sizes)
        return self._drawable_boxes

    def normalized(self) -> Floats:
        """Return (N + M, 13) float64, a copy with orientations of unit length."""
        rows = self._rows.copy()
        orientation_xyzw = rows[:, 3:7]
        orientation_xyzw /= np.sqrt(self._norm2)[:, None]
        return rows


def are_lengths(sizes: Floats) -> bool:
    """
    Return whether it is certain that displays can draw all boxes of these sizes.

    :param sizes: (M, 6) float64, edges xyz (m or cm) and scales xyz.
    """
    # A comparison with NaN is false.
    return not len(sizes) or bool(np.minimum.reduce(sizes, axis=None) >= _MIN_FACTOR
                                  and np.maximum.reduce(sizes, axis=None) <= _MAX_FACTOR)


def _have_lengths(sizes: Floats) -> Bools:
    """Return which boxes can be drawn."""
    # sizes: (M, 6) float64, edges xyz (m) and scales xyz.
    # Returns (M,) bool, True where all edges and scales are positive and the products of both are
    # lengths in float32.
    with np.errstate(all='ignore'):
        scaled = sizes[:, :3] * sizes[:, 3:]
    fits = np.hstack((sizes > 0.0, scaled >= _MIN_LENGTH, scaled <= _MAX_LENGTH))
    have_lengths: Bools = np.logical_and.reduce(fits, axis=1)
    return have_lengths


def _sum_of_squares(numbers: Floats) -> float:
    # Above the limit, BLAS would start threads, which use the processor after the call.
    with np.errstate(over='ignore') if _BLAS_WARNS else _NOTHING:
        return float(numbers.dot(numbers) if len(numbers) <= _MAX_FOR_BLAS
                     else np.einsum('i,i', numbers, numbers))


def largest_boxes(owners: npt.NDArray[np.int64], edges: Floats, usable: Bools) -> \
        npt.NDArray[np.int64]:
    """
    Return the largest box by volume of each actor that has a usable one.

    :param owners: (M,) int64, row of the actor of each box, ascending.
    :param edges: (M, 3) float64, m.
    :param usable: (M,) bool, as :attr:`Bodies.usable_boxes`.
    :returns: (K,) int64, rows of the boxes, in the order of the actors.
    """
    # A comparison with NaN is false.
    if not (len(edges) and np.minimum.reduce(edges, axis=None) >= _MIN_EDGE
            and np.maximum.reduce(edges, axis=None) <= _MAX_EDGE):
        usable = usable & (edges >= _MIN_EDGE).all(axis=1) & (edges <= _MAX_EDGE).all(axis=1)
    rows: npt.NDArray[np.int64] = usable.nonzero()[0]
    owners = owners[rows]
    # Usually each actor has one.
    if len(rows) < 2 or np.logical_and.reduce(owners[1:] > owners[:-1]):
        return rows
    # The first of equal volumes counts.
    order = np.lexsort((rows, -np.prod(edges[rows], axis=1), owners))
    is_first = np.diff(owners[order], prepend=-1) > 0
    largest: npt.NDArray[np.int64] = rows[order[is_first]]
    return largest


def usable_poses(position_xyz: Floats, orientation_xyzw: Floats) -> Bools:
    """Return which poses can be published."""
    # position_xyz: (M, 3) float64.
    # orientation_xyzw: (M, 4) float64, of any length.
    # Returns (M,) bool, False for NaN and for a quaternion that is not a rotation.
    norm2 = np.einsum('ij,ij->i', orientation_xyzw, orientation_xyzw)
    usable: Bools = (norm2 >= QUATERNION_NORM_MIN ** 2) & (norm2 <= QUATERNION_NORM_MAX ** 2) \
        & np.isfinite(np.einsum('ij->i', position_xyz))
    return usable


@lru_cache(maxsize=16)
def _all_usable(n_poses: int) -> Bools:
    usable = np.ones(n_poses, np.bool_)
    usable.setflags(write=False)
    return usable

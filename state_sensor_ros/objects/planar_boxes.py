# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Boxes of actors seen from above: distances, times to a collision, overlaps.

Exact for rectangles. Two of them overlap if their projections overlap on each of the four
directions of their edges; a rectangle that moves past another touches it from the moment when the
last of these projections begins to overlap until the first one ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from state_sensor_ros.frame import Bools, Floats, Frame, Rows
from state_sensor_ros.objects.object_maker import centre_twists, Centres

_SIGNS: Floats = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])


@dataclass(frozen=True, slots=True, eq=False)
class PlanarBoxes:
    """
    Rectangles of K actors in the plane of the global frame.

    ``centres`` (K, 2) m; ``headings`` (K, 2) unit vectors along the lengths; ``halves`` (K, 2)
    half the length and half the width, m; ``velocities`` (K, 2) of the centres, m/s, NaN if
    unknown; ``turning`` (K,) yaw rate, rad/s, 0 if unknown; ``heights`` (K, 2) lowest and highest
    point, m. In a function of two, they have equal K, or one of them has K = 1.
    """

    centres: Floats
    headings: Floats
    halves: Floats
    velocities: Floats
    turning: Floats
    heights: Floats

    def __len__(self) -> int:
        """Return the number of rectangles, K."""
        return len(self.centres)

    def at(self, rows: Rows | Bools | slice) -> PlanarBoxes:
        """
        Return some of the rectangles.

        :param rows: index of each, (K,) bool, or a slice.
        """
        return PlanarBoxes(*(getattr(self, name)[rows] for name in _MEMBERS))

    def speeds(self) -> Floats:
        """Return (K,) m/s along the headings, negative for backwards, NaN if unknown."""
        return _dot(self.velocities, self.headings)


_MEMBERS = ('centres', 'headings', 'halves', 'velocities', 'turning', 'heights')


def joined(parts: list[PlanarBoxes]) -> PlanarBoxes:
    """
    Return all rectangles of several footprints, in their order.

    :param parts: at least one.
    """
    return PlanarBoxes(*(np.concatenate([getattr(part, name) for part in parts])
                         for name in _MEMBERS))


def planar_boxes(frame: Frame, centres: Centres) -> PlanarBoxes:
    """
    Return the rectangles of the N actors of a frame.

    Those of actors without a usable pose have no meaning. An actor that points straight up has the
    heading of the x axis.

    :param frame: frame in SI units and REP-103 axes.
    :param centres: centres and sizes of its actors.
    """
    headings = centres.axes[:, :2, 0]
    lengths = np.hypot(headings[:, 0], headings[:, 1])
    with np.errstate(all='ignore'):
        headings = np.where(lengths[:, None] > 0.0, headings / lengths[:, None], (1.0, 0.0))
        twists = centre_twists(frame, centres)
        is_known: Bools = np.logical_and.reduce(np.isfinite(frame.velocity_xyz[:, :2]), axis=1) \
            if frame.forward_speed is None else np.isfinite(frame.forward_speed)
        height, half = centres.poses[:, 2], 0.5 * centres.sizes[:, 2]
    return PlanarBoxes(
        centres.poses[:, :2], headings, 0.5 * centres.sizes[:, :2],
        np.where(is_known[:, None], twists[:, :2], np.nan), twists[:, 5],
        np.column_stack((height - half, height + half)))


def share_height(some: PlanarBoxes, others: PlanarBoxes) -> Bools:
    """Return (K,) whether two actors are partly at the same height, not one above the other."""
    shared: Bools = (some.heights[:, 0] <= others.heights[:, 1]) \
        & (others.heights[:, 0] <= some.heights[:, 1])
    return shared


def overlap(some: PlanarBoxes, others: PlanarBoxes) -> Bools:
    """Return (K,) whether rectangles have a common point."""
    offsets, reaches, _ = _projections(some, others)
    common: Bools = np.logical_and.reduce(np.abs(offsets) <= reaches)
    return common


def distances(some: PlanarBoxes, others: PlanarBoxes) -> Floats:
    """Return (K,) distances between rectangles, m; 0 if they have a common point."""
    nearest = np.minimum(_corners_to(some, others), _corners_to(others, some))
    found: Floats = np.where(overlap(some, others), 0.0, nearest)
    return found


def times_to_collision(some: PlanarBoxes, others: PlanarBoxes) -> Floats:
    """
    Return the times until rectangles touch if all keep their velocities and headings.

    :returns: (K,) s; 0 if they have a common point now; NaN if they never do, or if a velocity is
        unknown.
    """
    offsets, reaches, speeds = _projections(some, others)
    with np.errstate(all='ignore'):
        passes = np.stack(((-reaches - offsets) / speeds, (reaches - offsets) / speeds))
    begins, ends = np.minimum(*passes), np.maximum(*passes)
    is_still = speeds == 0.0
    is_common = np.abs(offsets) <= reaches
    begins = np.where(is_still, np.where(is_common, -np.inf, np.inf), begins)
    ends = np.where(is_still, np.where(is_common, np.inf, -np.inf), ends)
    begin, end = np.max(begins, axis=0), np.min(ends, axis=0)
    found: Floats = np.where((begin <= end) & (end >= 0.0), np.maximum(begin, 0.0), np.nan)
    return found


def _dot(a: Floats, b: Floats) -> Floats:
    product: Floats = a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1]
    return product


def cross(a: Floats, b: Floats) -> Floats:
    """Return (K,) z components of the cross products of (K, 2) vectors."""
    product: Floats = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return product


def to_axes(vectors: Floats, headings: Floats) -> Floats:
    """
    Return vectors in the axes of rectangles.

    :param vectors: (K, 2) float64, axes of the plane.
    :param headings: (K, 2) float64, unit vectors along the lengths.
    :returns: (K, 2) float64, along the length and to the left.
    """
    return np.column_stack((_dot(vectors, headings), cross(headings, vectors)))


def _projections(some: PlanarBoxes, others: PlanarBoxes) -> tuple[Floats, Floats, Floats]:
    """
    Project pairs on the directions of their edges.

    :returns: (4, K) each: distances of the centres, m; sums of the half projections, m; speeds of
        the centres from the first to the second, m/s.
    """
    way, motion = others.centres - some.centres, others.velocities - some.velocities
    cosines = np.abs(_dot(some.headings, others.headings))
    sines = np.abs(cross(some.headings, others.headings))
    (length, width), (other_length, other_width) = some.halves.T, others.halves.T
    offsets = np.stack((*to_axes(way, some.headings).T, *to_axes(way, others.headings).T))
    speeds = np.stack((*to_axes(motion, some.headings).T, *to_axes(motion, others.headings).T))
    reaches = np.stack((length + cosines * other_length + sines * other_width,
                        width + sines * other_length + cosines * other_width,
                        other_length + cosines * length + sines * width,
                        other_width + sines * length + cosines * width))
    return offsets, reaches, speeds


def _corners_to(some: PlanarBoxes, others: PlanarBoxes) -> Floats:
    """Return (K,) smallest distances from the corners of ``some`` to ``others``, m."""
    middles = to_axes(some.centres - others.centres, others.headings)
    cosines = _dot(others.headings, some.headings)[:, None]
    sines = cross(others.headings, some.headings)[:, None]
    along, across = (_SIGNS * some.halves[:, None, :]).transpose(2, 0, 1)
    outside = np.stack((
        np.abs(middles[:, :1] + cosines * along - sines * across) - others.halves[:, :1],
        np.abs(middles[:, 1:] + sines * along + cosines * across) - others.halves[:, 1:]))
    nearest: Floats = np.hypot(*np.maximum(outside, 0.0)).min(axis=1)
    return nearest

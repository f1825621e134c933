# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The box of one actor: its corners in the actor's frame, and whether it overlaps a volume.

Two convex hulls overlap if the origin lies in the hull of all differences between a point of one
and a point of the other. The nearest point of that hull to the origin is searched as by Gilbert,
Johnson and Keerthi (1988), with the steps of Wolfe (1976): a few differences span a simplex; the
difference that lies farthest toward the origin is added, and differences that the nearest point
does not need are removed. The search ends at the origin, or at a direction along which every
difference is positive: the hulls are apart.
"""

from __future__ import annotations

from dataclasses import dataclass
import itertools

import numpy as np

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import Floats, Frame
from state_sensor_ros.rotations import global_from_body
from state_sensor_ros.texts import counted

# A box is turned if one of its axes differs by more from those of its actor (a sine).
_ALIGNED = 1e-3
# The overlap test of many boxes with a larger hull would take seconds.
MAX_HULL_POINTS = 1000
_CORNERS: Floats = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
# Squared distance that counts as touching, as a fraction of the squared size of the scene.
_TOUCHING = 1e-18
# The search takes some ten steps; rounding may make it endless if hulls touch.
_MAX_STEPS = 100


@dataclass(frozen=True, slots=True, eq=False)
class ActorBox:
    """The largest box of an actor, or its origin if it has none."""

    center: Floats  # (3,) m
    axes: Floats  # (3, 3) columns, both in the global frame
    half: Floats  # (3,) half edge lengths along the axes, m
    position: Floats  # (3,)
    body: Floats  # (3, 3) of the actor likewise

    def is_turned(self) -> bool:
        """Return whether the edges are not along the axes of the actor."""
        relative = np.abs(self.body.T @ self.axes)
        return bool((np.minimum(relative, np.abs(1.0 - relative)) > _ALIGNED).any())

    def corners(self) -> Floats:
        """Return (8, 3) corners, m, from the actor's origin in its axes."""
        corners: Floats = ((self.center - self.position) + (_CORNERS * self.half) @ self.axes.T) \
            @ self.body
        return corners

    def overlaps_sphere(self, center: Floats, radius: float) -> bool:
        """Return whether the box has a point within a sphere."""
        # center: (3,) m, global frame.
        # radius: m.
        way = (center - self.center) @ self.axes
        outside = way - np.clip(way, -self.half, self.half)
        return bool(np.sqrt(outside @ outside) <= radius)

    def overlaps_box(self, low: Floats, high: Floats) -> bool:
        """Return whether the box overlaps a box along the global axes."""
        # low: (3,) lowest corner, m, global frame.
        # high: (3,) highest corner, m, global frame.
        return self.overlaps_hull((low + high) / 2.0 + _CORNERS * ((high - low) / 2.0))

    def overlaps_hull(self, points: Floats) -> bool:
        """Return whether the box overlaps a convex hull."""
        # points: (N, 3) points that span it, m, global frame; see :func:`check_hull`.
        corners = self.center + (_CORNERS * self.half) @ self.axes.T
        return hulls_overlap(corners, points)


def check_hull(n_points: int) -> None:
    if n_points > MAX_HULL_POINTS:
        raise ConfigError('bounds', counted(n_points, 'point'), f'at most {MAX_HULL_POINTS}')


def box_of(frame: Frame, row: int) -> ActorBox | None:
    """Return the largest usable box of an actor by volume."""
    boxes = frame.boxes
    if boxes is None or not frame.has_pose()[row]:
        return None
    largest = frame.largest_boxes()
    # Of one item, or empty.
    box = largest[boxes.actor[largest] == row]
    if not len(box):
        return None
    axes = global_from_body(boxes.orientation_xyzw[box])[0]
    point = point_of(frame, row)
    return ActorBox(boxes.position_xyz[box[0]], axes, boxes.size_xyz[box[0]] / 2.0,
                    point.position, point.body)


def point_of(frame: Frame, row: int) -> ActorBox:
    """Return the origin of an actor as a box without extent."""
    # frame: frame in SI units and REP-103 axes.
    body = global_from_body(frame.orientation_xyzw[row:row + 1])[0]
    position = frame.position_xyz[row]
    return ActorBox(position, body, np.zeros(3), position, body)


def hulls_overlap(one: Floats, other: Floats) -> bool:
    """Return whether two convex hulls have a point in common."""
    # one: (N, 3) points that span a hull, m.
    # other: (M, 3) points that span the other hull, m, in the same frame.
    touching = _TOUCHING * max(np.abs(one - one[0]).max(), np.abs(other - one[0]).max(), 1.0) ** 2
    simplex: Floats = one[:1] - other[:1]
    weights: Floats = np.ones(1)
    for _ in range(_MAX_STEPS):
        nearest = weights @ simplex
        if nearest @ nearest <= touching:
            return True
        farthest = one[np.argmin(one @ nearest)] - other[np.argmax(other @ nearest)]
        if farthest @ nearest > 0.0:
            return False
        simplex = np.vstack((simplex, farthest))
        simplex, weights = _reduced(simplex, np.append(weights, 0.0))
    return True


def _reduced(simplex: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the points that span the nearest point to the origin, and their weights."""
    # simplex: (N, 3) points.
    # weights: (N,) not negative, of sum 1: a point of the simplex to begin at.
    while True:
        n_points = len(simplex)
        # The nearest point of the plane through all points: its weights sum to 1.
        conditions = np.ones((n_points + 1, n_points + 1))
        conditions[:-1, :-1] = simplex @ simplex.T
        conditions[-1, -1] = 0.0
        target = np.append(np.zeros(n_points), 1.0)
        of_plane = np.linalg.lstsq(conditions, target, rcond=None)[0][:-1]
        outside = of_plane <= 0.0
        if not outside.any():
            return simplex, of_plane / of_plane.sum()
        # Move toward it up to the first side of the simplex, and remove the opposite point.
        steps = weights[outside] / (weights[outside] - of_plane[outside])
        weights = weights + min(steps.min(), 1.0) * (of_plane - weights)
        kept = np.ones(n_points, dtype=bool)
        kept[np.flatnonzero(outside)[steps.argmin()]] = False
        simplex, weights = simplex[kept], weights[kept]

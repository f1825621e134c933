# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Whether the convex hulls of two sets of points overlap.

They overlap if the origin lies in the hull of all differences between a point of one and a
point of the other. The nearest point of that hull to the origin is searched as by Gilbert, Johnson
and Keerthi (1988), with the steps of Wolfe (1976): a few differences span a simplex; the
difference that lies farthest towards the origin is added, and differences that the nearest point
does not need are removed. The search ends at the origin, or at a direction along which every
difference is positive: the sets are apart.
"""

from __future__ import annotations

import numpy as np

from state_sensor_ros.frame import Floats

# Squared distance that counts as touching, as a fraction of the squared size of the scene.
_TOUCHING = 1e-18
# The search takes some ten steps; rounding may make it endless if hulls touch.
_MAX_STEPS = 100


def hulls_overlap(one: Floats, other: Floats) -> bool:
    """
    Return whether two convex hulls have a point in common.

    :param one: (N, 3) points that span a hull, m.
    :param other: (M, 3) points that span the other hull, m, in the same frame.
    """
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
    """
    Return the points that span the nearest point to the origin, and their weights.

    :param simplex: (N, 3) points.
    :param weights: (N,) not negative, of sum 1: a point of the simplex to begin at.
    """
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
        # Move towards it up to the first side of the simplex, and remove the opposite point.
        steps = weights[outside] / (weights[outside] - of_plane[outside])
        weights = weights + min(steps.min(), 1.0) * (of_plane - weights)
        kept = np.ones(n_points, dtype=bool)
        kept[np.flatnonzero(outside)[steps.argmin()]] = False
        simplex, weights = simplex[kept], weights[kept]

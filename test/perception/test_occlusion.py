# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Which share of a box is seen: scenes worked out by hand, and rays cast one by one."""

import math

from budgets import one_of
import numpy as np
import pytest

from state_sensor_ros.perception.occlusion import visible_shares


def shares(*boxes):
    """Return shares of boxes x, y, yaw, length, width."""
    rows = np.array(boxes, float)
    headings = np.column_stack((np.cos(rows[:, 2]), np.sin(rows[:, 2])))
    return visible_shares(rows[:, :2], headings, rows[:, 3:]).tolist()


def test_box_whose_half_lies_behind_another_is_seen_by_half():
    # Thin boxes across the line of sight: the near one covers exactly the left half.
    near, far = (10.0, 1.0, 0.0, 1e-3, 2.0), (20.0, 0.0, 0.0, 1e-3, 4.0)
    assert shares(near, far) == pytest.approx([1.0, 0.5], abs=1e-3)
    # By angle, not by meters: from 20 m, 5 m to the right of the axis.
    beside = (20.0, -5.0, 0.0, 1e-3, 10.0)
    hidden = math.atan2(1.0, 10.0) / (math.atan2(10.0, 20.0))
    assert shares((10.0, 0.0, 0.0, 1e-3, 2.0), beside)[1] == pytest.approx(1.0 - hidden, abs=1e-3)


def test_box_around_the_ego_is_seen_and_hides_nothing():
    assert shares((0.5, 0.0, 0.0, 20.0, 8.0), (30.0, 0.0, 0.0, 4.0, 2.0)) == [1.0, 1.0]


def cast(boxes, n_rays):
    """Return how many rays each box has, and how many of these end at it."""
    rays = np.linspace(-math.pi, math.pi, n_rays, endpoint=False) + 1e-4
    distances = np.full((len(boxes), n_rays), np.inf)
    for i, (x, y, yaw, length, width) in enumerate(boxes):
        for k, ray in enumerate(rays):
            # The box along its own axes: the ray begins at the origin.
            ox, oy = (-x * math.cos(yaw) - y * math.sin(yaw),
                      x * math.sin(yaw) - y * math.cos(yaw))
            dx, dy = math.cos(ray - yaw), math.sin(ray - yaw)
            entry, leave = -math.inf, math.inf
            for origin, step, half in ((ox, dx, length / 2.0), (oy, dy, width / 2.0)):
                first, second = sorted(((-half - origin) / step, (half - origin) / step))
                entry, leave = max(entry, first), min(leave, second)
            if 0.0 < entry <= leave:
                distances[i, k] = entry
    hit = np.isfinite(distances)
    return hit.sum(axis=1), (hit & (distances <= distances.min(axis=0))).sum(axis=1)


@pytest.mark.parametrize('seed', one_of(range(5), n_always=2))
def test_shares_are_those_of_rays(seed):
    rng = np.random.default_rng(seed)
    # Boxes that do not intersect: each in a cell of a grid of its own size.
    cells = [(x, y) for x in range(-40, 41, 11) for y in range(-40, 41, 11) if abs(x) + abs(y) > 8]
    chosen = [cells[i] for i in rng.permutation(len(cells))[:25]]
    boxes = [(x, y, rng.uniform(-4.0, 4.0), rng.uniform(0.5, 9.0), rng.uniform(0.5, 3.0))
             for x, y in chosen]
    whole, seen = cast(boxes, 4000)
    assert shares(*boxes) == pytest.approx(seen / whole, abs=0.08)


@pytest.mark.parametrize('seed', range(3))
def test_shares_that_are_wanted_are_those_among_all(seed):
    rng = np.random.default_rng(seed)
    n = 60
    # No boxes intersect: each in a cell of a grid.
    cells = np.array([(x, y) for x in range(-5, 6) for y in range(-5, 6) if x or y])
    places, yaws = 20.0 * rng.permutation(cells)[:n] + rng.uniform(-5.0, 5.0, (n, 2)), \
        rng.uniform(-4.0, 4.0, n)
    headings = np.column_stack((np.cos(yaws), np.sin(yaws)))
    sizes = rng.uniform(0.5, 3.0, (n, 2))
    # Around the origin, and beyond all sense.
    places[:2] = (0.1, 0.2), (1e300, 0.0)
    every = visible_shares(places, headings, sizes)
    assert 3 < (every < 1.0).sum() < n
    for wanted in ([], [0], [1], [0, 7], *[rng.permutation(n)[:k] for k in (1, 5, 25, 59)],
                   np.flatnonzero(np.hypot(*places.T) < 60.0)):
        rows = np.array(wanted, np.int64)
        found = visible_shares(places, headings, sizes, rows)
        assert found[rows] == pytest.approx(every[rows], abs=1e-12)

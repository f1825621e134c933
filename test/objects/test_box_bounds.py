# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Overlaps of convex hulls: worked cases, known gaps, and the test of separating axes of boxes."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.objects.box_bounds import (
    ActorBox,
    check_hull,
    hulls_overlap,
    MAX_HULL_POINTS,
)

CUBE = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
SEEDS = st.integers(0, 2 ** 32 - 1)


def random_rotation(random):
    """Return (3, 3) of determinant 1."""
    rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
    return rotation * np.linalg.det(rotation)


@pytest.mark.parametrize(('points', 'expected'), [
    ([[0.0, 0.0, 0.0]], True),
    ([[1.0, 1.0, 1.0]], True),
    ([[1.001, 0.0, 0.0]], False),
    # A triangle that cuts through the cube, with its corners far outside.
    ([[-9.0, 0.5, -9.0], [9.0, 0.5, -9.0], [0.0, 0.5, 90.0]], True),
    ([[-9.0, 1.5, -9.0], [9.0, 1.5, -9.0], [0.0, 1.5, 90.0]], False),
    # A line that passes the edge of the cube at 0.1 m: both bounding boxes overlap.
    ([[2.2, 0.0, 0.0], [0.0, 2.2, 0.0]], False),
    ([[1.8, 0.0, 0.0], [0.0, 1.8, 0.0]], True),
    # The same point three times.
    ([[3.0, 0.0, 0.0]] * 3, False)])
def test_hulls_overlap_a_cube(points, expected):
    assert hulls_overlap(CUBE, np.array(points)) is expected
    assert hulls_overlap(np.array(points), CUBE) is expected


@given(SEEDS)
def test_hulls_with_a_common_point_overlap_until_they_are_moved_apart(seed):
    random = np.random.default_rng(seed)
    one, other = (random.normal(size=(random.integers(1, 30), 3)) * 10.0 ** random.uniform(-2, 3)
                  for _ in range(2))
    shares = [random.dirichlet(np.ones(len(points))) for points in (one, other)]
    other = other + shares[0] @ one - shares[1] @ other
    assert hulls_overlap(one, other)
    way = random.normal(size=3)
    way /= np.linalg.norm(way)
    gap = 1e-6 * np.abs(one).max()
    apart = other + way * ((one @ way).max() - (other @ way).min() + gap)
    assert not hulls_overlap(one, apart)


def are_apart(box, low, high):
    """Return whether the normal of a face, or a product of two edges, separates two boxes."""
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    normals = np.concatenate((np.eye(3), box.axes.T, [
        np.cross(one, other) for one in np.eye(3) for other in box.axes.T]))
    reach = np.abs(normals) @ half + np.abs(normals @ box.axes) @ box.half
    return bool((np.abs(normals @ (box.center - middle)) > reach).any())


@given(SEEDS)
def test_boxes_overlap_unless_an_axis_separates_them(seed):
    random = np.random.default_rng(seed)
    low = random.uniform(-3.0, 0.0, 3)
    high = low + random.uniform(0.1, 3.0, 3)
    box = ActorBox(random.uniform(-4.0, 4.0, 3), random_rotation(random),
                   random.uniform(0.1, 2.0, 3), np.zeros(3), np.eye(3))
    assert box.overlaps_box(low, high) != are_apart(box, low, high)


def test_hull_of_a_client_has_a_limit():
    check_hull(MAX_HULL_POINTS)
    with pytest.raises(ConfigError, match='bounds: found 1000000 points; expected at most 1000'):
        check_hull(1_000_000)

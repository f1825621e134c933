# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Overlaps of boxes: worked cases, and a linear program."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from state_sensor_ros.objects.box_bounds import ActorBox

CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def turned(angle):
    return np.array([[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0],
                     [0.0, 0.0, 1.0]])


def box_at(center, axes, half=(1.0, 1.0, 1.0)):
    return ActorBox(np.array(center), axes, np.array(half), np.zeros(3), np.eye(3))


@pytest.mark.parametrize(('center', 'angle', 'expected'), [
    ((0.0, 0.0, 0.0), 0.0, True), ((2.0, 0.0, 0.0), 0.0, True), ((2.001, 0.0, 0.0), 0.0, False),
    # By a corner: sqrt(2) + 1 m.
    ((2.41, 0.0, 0.0), np.pi / 4, True), ((2.42, 0.0, 0.0), np.pi / 4, False),
    # Both bounding boxes overlap, the boxes do not.
    ((1.8, 1.8, 0.0), np.pi / 4, False)])
def test_boxes_overlap(center, angle, expected):
    assert box_at(center, turned(angle)).overlaps_box(-np.ones(3), np.ones(3)) is expected


@given(st.integers(0, 2 ** 32 - 1))
def test_boxes_overlap_if_they_have_a_common_point(seed):
    optimize = pytest.importorskip('scipy.optimize')
    random = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
    low = random.uniform(-3.0, 0.0, 3)
    high = low + random.uniform(0.1, 3.0, 3)
    box = box_at(random.uniform(-4.0, 4.0, 3), rotation, random.uniform(0.1, 2.0, 3))
    one = (low + high) / 2.0 + CORNERS * ((high - low) / 2.0)
    other = box.center + (CORNERS * box.half) @ box.axes.T
    # Shares of the corners of each, of sum 1, that are the same point.
    of_one = np.arange(16) < 8
    conditions = np.vstack((np.hstack((one.T, -other.T)), of_one, ~of_one))
    found = optimize.linprog(np.zeros(16), A_eq=conditions, b_eq=[0.0, 0.0, 0.0, 1.0, 1.0])
    assert box.overlaps_box(low, high) is (found.status == 0)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Points along lines and boxes of texts on paper, by which texts avoid lines and each other."""

from __future__ import annotations

import numpy as np

from state_sensor_ros.frame import Bools, Floats

# Distance of the points, pixels.
STEP_PX = 4.0


def points_along(begin: Floats, end: Floats) -> Floats:
    """
    Return points of segments, about STEP_PX apart, without near duplicates.

    :param begin: (S, 2) pixels.
    :param end: (S, 2) pixels.
    :returns: (k, 2) pixels.
    """
    n_points = 1 + (np.abs(end - begin).max(axis=1, initial=0.0) / STEP_PX).astype(np.int64)
    first = np.cumsum(n_points) - n_points
    share = (np.arange(n_points.sum()) - np.repeat(first, n_points)) / np.repeat(
        n_points, n_points)
    points = np.repeat(begin, n_points, axis=0) + share[:, None] * np.repeat(
        end - begin, n_points, axis=0)
    cells: Floats = np.unique(np.round(points / STEP_PX), axis=0) * STEP_PX
    return cells


def inside(points: Floats, box: Floats) -> Bools:
    """
    Return which points are in a box, (n,).

    :param points: (n, 2) pixels.
    :param box: (4,) left, bottom, right, top, pixels.
    """
    are_inside: Bools = np.logical_and.reduce((points >= box[:2]) & (points <= box[2:]), axis=1)
    return are_inside


def overlapping(box: Floats, others: Floats) -> Bools:
    """
    Return which boxes overlap a box, (n,).

    :param box: (4,) left, bottom, right, top, pixels.
    :param others: (n, 4) likewise.
    """
    are_overlapping: Bools = np.logical_and.reduce(
        (others[:, :2] < box[2:]) & (others[:, 2:] > box[:2]), axis=1)
    return are_overlapping

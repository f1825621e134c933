# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Footprints: the rectangles of ground that actors cover, in the axes of the actor."""

from __future__ import annotations

import numpy as np

from state_sensor_ros.classes import CAR, UNKNOWN
from state_sensor_ros.frame import Floats, Frame, Rows
from state_sensor_ros.rotations import global_from_body, plane_rotations, rpy_from_quaternion
from state_sensor_ros.settings import DEFAULTS

# Length and width (m) of an actor without a class and without a box: a cone.
CONE_M = (0.5, 0.5)
CAR_LENGTH_M = DEFAULTS.default_sizes[3 * CAR]
# Positions (m), sizes (m) and speeds (m/s) beyond this are invalid and not drawn.
FARTHEST_M = 1e7
# Signs of the half edges at front left, front right, rear right and rear left.
_CORNERS = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)])


def default_footprint(actor_class: int) -> Floats:
    """
    Return the footprint of an actor without a box.

    :param actor_class: index in CLASSES, which gives the usual size; CONE_M if UNKNOWN.
    :returns: (4, 2) float64, m, x (forward) and y (left) in the axes of the actor, of the corners
        front left, front right, rear right, rear left.
    """
    size = CONE_M if actor_class == UNKNOWN \
        else DEFAULTS.default_sizes[3 * actor_class:3 * actor_class + 2]
    return 0.5 * _CORNERS * size


def box_footprints(frame: Frame) -> tuple[Rows, Floats]:
    """
    Return the footprints of the actors' largest boxes.

    :param frame: frame in SI units and REP-103 axes; its boxes may be None.
    :returns: (K,) int64 rows of the actors that have a box, ascending, and (K, 4, 2) float64,
        metres, corners as in :func:`default_footprint`.
    """
    boxes = frame.boxes
    if boxes is None or not len(boxes.actor):
        return np.zeros(0, np.int64), np.zeros((0, 4, 2))
    largest = frame.largest_boxes()
    rows = boxes.actor[largest]
    edges = _half_edges_xy(boxes.orientation_xyzw[largest], boxes.size_xyz[largest])
    centre = (boxes.position_xyz[largest] - frame.position_xyz[rows])[:, None, :2]
    own_from_global = plane_rotations(-rpy_from_quaternion(frame.orientation_xyzw[rows])[:, 2])
    edges = _forward_then_left(np.einsum('nij,nkj->nki', own_from_global, edges))
    corners = np.einsum('ck,nki->nci', _CORNERS, edges)
    corners += np.einsum('nij,nkj->nki', own_from_global, centre)
    known = (np.abs(corners) < FARTHEST_M).all(axis=(1, 2))
    return rows[known], corners[known]


def _forward_then_left(edges: Floats) -> Floats:
    """Order the two half edges (K, 2, 2) of boxes, and turn them to the front and to the left."""
    swapped = np.abs(edges[:, 0, 0]) < np.abs(edges[:, 0, 1])
    edges = np.where(swapped[:, None, None], edges[:, ::-1], edges)
    signs = np.sign(np.stack([edges[:, 0, 0], edges[:, 1, 1]], axis=-1))
    ordered: Floats = edges * np.where(signs == 0.0, 1.0, signs)[:, :, None]
    return ordered


def _half_edges_xy(orientation_xyzw: Floats, size_xyz: Floats) -> Floats:
    """
    Return the two half edges that span a box's footprint: (K, 2, 2), m, global x and y.

    The axis that points up is left out; it is not the same axis in all simulators.
    """
    with np.errstate(invalid='ignore'):
        axes = global_from_body(orientation_xyzw).transpose(0, 2, 1)
    upright = np.abs(axes[..., 2]).argmax(axis=1)
    sides = np.array([(1, 2), (2, 0), (0, 1)])[upright]
    k = np.arange(len(upright))[:, None]
    return 0.5 * axes[k, sides, :2] * size_xyz[k, sides, None]

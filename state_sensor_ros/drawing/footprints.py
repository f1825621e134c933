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

from state_sensor_ros.frame import Boxes, Floats, Frame, Rows
from state_sensor_ros.rotations import global_from_body

# Length and width (m) of an actor without a box: a mid-size car and a cone.
DEFAULT_VEHICLE_M = (4.6, 1.9)
DEFAULT_OBJECT_M = (0.5, 0.5)
# Positions (m), sizes (m) and speeds (m/s) beyond this are invalid and not drawn.
FARTHEST_M = 1e7
# Signs of the half edges at front left, front right, rear right and rear left.
_CORNERS = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)])


def default_footprint(is_vehicle: bool) -> Floats:
    """
    Return the footprint of an actor without a box.

    :param is_vehicle: True for DEFAULT_VEHICLE_M, False for DEFAULT_OBJECT_M.
    :returns: (4, 2) float64, m, x (forward) and y (left) in the axes of the actor, of the corners
        front left, front right, rear right, rear left.
    """
    length, width = DEFAULT_VEHICLE_M if is_vehicle else DEFAULT_OBJECT_M
    return 0.5 * _CORNERS * (length, width)


def yaw_of(orientation_xyzw: Floats) -> Floats:
    """
    Return the headings of actors.

    :param orientation_xyzw: (N, 4) float64, of any length except zero.
    :returns: (N,) float64, rad, 0 = along x, + = to the left.
    """
    x, y, z, w = orientation_xyzw.T
    heading: Floats = np.arctan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z)
    return heading


def box_footprints(frame: Frame) -> tuple[Rows, Floats]:
    """
    Return the footprints of the actors' largest boxes.

    :param frame: in SI units and REP-103 axes; its boxes may be None.
    :returns: (K,) int64 rows of the actors that have a box, ascending, and (K, 4, 2) float64,
        metres, corners as in :func:`default_footprint`.
    """
    boxes = frame.boxes
    if boxes is None or not len(boxes.actor):
        return np.zeros(0, np.int64), np.zeros((0, 4, 2))
    largest = _largest(boxes)
    rows = boxes.actor[largest]
    edges = _half_edges_xy(boxes.orientation_xyzw[largest], boxes.size_xyz[largest])
    centre = (boxes.position_xyz[largest] - frame.position_xyz[rows])[:, None, :2]
    own_from_global = rotations(-yaw_of(frame.orientation_xyzw[rows]))
    edges = _forward_then_left(np.einsum('nij,nkj->nki', own_from_global, edges))
    corners = np.einsum('ck,nki->nci', _CORNERS, edges)
    corners += np.einsum('nij,nkj->nki', own_from_global, centre)
    known = (np.abs(corners) < FARTHEST_M).all(axis=(1, 2))
    return rows[known], corners[known]


def rotations(angle: Floats) -> Floats:
    """Return the matrices of rotations in the plane by ``angle`` (N,), rad: (N, 2, 2)."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([cos, -sin], axis=-1), np.stack([sin, cos], axis=-1)], axis=1)


def _forward_then_left(edges: Floats) -> Floats:
    """Order the two half edges (K, 2, 2) of boxes, and turn them to the front and to the left."""
    swapped = np.abs(edges[:, 0, 0]) < np.abs(edges[:, 0, 1])
    edges = np.where(swapped[:, None, None], edges[:, ::-1], edges)
    signs = np.sign(np.stack([edges[:, 0, 0], edges[:, 1, 1]], axis=-1))
    ordered: Floats = edges * np.where(signs == 0.0, 1.0, signs)[:, :, None]
    return ordered


def _largest(boxes: Boxes) -> Rows:
    """Return the row of each actor's largest box."""
    order = np.lexsort((boxes.size_xyz.prod(axis=1), boxes.actor))
    is_last = np.append(np.diff(boxes.actor[order]) != 0, True)
    largest: Rows = order[is_last]
    return largest


def _half_edges_xy(orientation_xyzw: Floats, size_xyz: Floats) -> Floats:
    """
    Return the two half edges that span a box's footprint: (K, 2, 2), m, global x and y.

    The axis of the box that points up is left out; which one it is differs between simulators.
    """
    with np.errstate(invalid='ignore'):
        axes = global_from_body(orientation_xyzw).transpose(0, 2, 1)
    upright = np.abs(axes[..., 2]).argmax(axis=1)
    sides = np.array([(1, 2), (2, 0), (0, 1)])[upright]
    k = np.arange(len(upright))[:, None]
    return 0.5 * axes[k, sides, :2] * size_xyz[k, sides, None]

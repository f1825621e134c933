# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Shapes on the ground: areas, footprints of actors by kind, bands of lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import CAR, PERSON, UNKNOWN
from state_sensor_ros.frame import Bools, Floats, Frame, MapLine, Rows
from state_sensor_ros.rotations import global_from_body, plane_rotations, rpy_from_quaternion
from state_sensor_ros.settings import DEFAULTS

VEHICLE, PEDESTRIAN, LIGHT, SIGN, OTHER_SIGN, OBJECT = range(6)
# In the order of the constants; the plural has an `s`.
KIND_NAMES = ('vehicle', 'pedestrian', 'traffic light', 'speed limit sign', 'traffic sign',
              'object')
# Tags of kinds without a class, in lower case; of several tags, the first here counts.
_BY_TAG = {'traffic_light': LIGHT, 'speed_limit_sign': SIGN, 'traffic_sign': OTHER_SIGN}


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of the ground: center and extents, m."""

    x: float
    y: float
    width: float
    height: float

    @property
    def x_range(self) -> tuple[float, float]:
        return self.x - self.width / 2, self.x + self.width / 2

    @property
    def y_range(self) -> tuple[float, float]:
        return self.y - self.height / 2, self.y + self.height / 2

    def filling(self, aspect: float) -> Area:
        """Return the area extended in one direction until height / width is ``aspect``."""
        return Area(self.x, self.y, max(self.width, self.height / aspect),
                    max(self.height, self.width * aspect))

    def within(self, other: Area) -> Area:
        """Return the area shrunk and moved until ``other`` contains it."""
        width, height = min(self.width, other.width), min(self.height, other.height)
        return Area(
            float(np.clip(self.x, other.x_range[0] + width / 2, other.x_range[1] - width / 2)),
            float(np.clip(self.y, other.y_range[0] + height / 2, other.y_range[1] - height / 2)),
            width, height)

    def contains(self, position_xy: Floats | npt.NDArray[np.float32]) -> Bools:
        """Return which points are inside; ``position_xy``: (n, 2) m."""
        distance = np.abs(position_xy - (self.x, self.y))
        inside: Bools = np.logical_and.reduce(
            distance <= (self.width / 2, self.height / 2), axis=1)
        return inside


# Margin around points: m at each side, and a fraction of their extent. Width of an empty map, m.
_MARGIN_M, _MARGIN, _EMPTY_M = 8.0, 0.04, 50.0


def extent(position_xy: npt.NDArray[np.float32]) -> Area:
    """Return the area of some points (n, 2), m, with a margin around them."""
    if not len(position_xy):
        return Area(0.0, 0.0, _EMPTY_M, _EMPTY_M / 2)
    low, high = position_xy.min(axis=0).astype(float), position_xy.max(axis=0).astype(float)
    (x, y), (width, height) = (low + high) / 2, (1 + _MARGIN) * (high - low) + 2 * _MARGIN_M
    return Area(float(x), float(y), float(width), float(height))


def kind_of(actor_class: int, tags: tuple[str, ...]) -> int:
    if actor_class == UNKNOWN:
        lower = {tag.lower() for tag in tags}
        return next((kind for tag, kind in _BY_TAG.items() if tag in lower), OBJECT)
    return PEDESTRIAN if actor_class == PERSON else VEHICLE


# Length and width (m) of an actor without a class and without a box: a cone.
CONE_M = (0.5, 0.5)
CAR_LENGTH_M = DEFAULTS.default_sizes[3 * CAR]
# Positions (m), sizes (m) and speeds (m/s) beyond this are invalid and not drawn.
FARTHEST_M = 1e7
# Signs of the half edges at front left, front right, rear right and rear left.
_CORNERS = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)])


def default_footprint(actor_class: int) -> Floats:
    """Return the footprint of an actor without a box."""
    # actor_class: index in CLASSES, which gives the usual size; CONE_M if UNKNOWN.
    # Returns (4, 2) float64, m, x (forward) and y (left) in the axes of the actor, of the corners
    # front left, front right, rear right, rear left.
    size = CONE_M if actor_class == UNKNOWN \
        else DEFAULTS.default_sizes[3 * actor_class:3 * actor_class + 2]
    return 0.5 * _CORNERS * size


def box_footprints(frame: Frame) -> tuple[Rows, Floats]:
    """Return the footprints of the actors' largest boxes."""
    # frame: frame in SI units and REP-103 axes; its boxes may be None.
    # Returns (K,) int64 rows of the actors that have a box, ascending, and (K, 4, 2) float64,
    # meters, corners as in :func:`default_footprint`.
    boxes = frame.boxes
    if boxes is None or not len(boxes.actor):
        return np.zeros(0, np.int64), np.zeros((0, 4, 2))
    largest = frame.largest_boxes()
    rows = boxes.actor[largest]
    edges = _half_edges_xy(boxes.orientation_xyzw[largest], boxes.size_xyz[largest])
    center = (boxes.position_xyz[largest] - frame.position_xyz[rows])[:, None, :2]
    own_from_global = plane_rotations(-rpy_from_quaternion(frame.orientation_xyzw[rows])[:, 2])
    edges = _forward_then_left(np.einsum('nij,nkj->nki', own_from_global, edges))
    corners = np.einsum('ck,nki->nci', _CORNERS, edges)
    corners += np.einsum('nij,nkj->nki', own_from_global, center)
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

    The axis that points up is omitted; it is not the same axis in all simulators.
    """
    with np.errstate(invalid='ignore'):
        axes = global_from_body(orientation_xyzw).transpose(0, 2, 1)
    upright = np.abs(axes[..., 2]).argmax(axis=1)
    sides = np.array([(1, 2), (2, 0), (0, 1)])[upright]
    k = np.arange(len(upright))[:, None]
    return 0.5 * axes[k, sides, :2] * size_xyz[k, sides, None]


# Gap between two lanes, which separates them in the picture; width of a mere line, m.
_GAP_M, _LINE_M = 0.3, 0.2
# Largest distance of the edge from the middle of a band at a sharp bend, in half widths.
_MOST_MITRE = 3.0
# Kinds of lanes that are drawn as roads; others, such as sidewalks and verges, are paler.
_ROADS = frozenset(('driving', 'junction', 'entry', 'exit', 'onRamp', 'offRamp',
                    'connectingRamp', 'bidirectional', 'slipLane', 'taxi', 'bus', 'HOV', 'stop'))
_LINES = frozenset(('border', 'mark', 'stop line'))
# Margin that a film that follows the ego shows around the tracks, m.
_AROUND_M = 50.0


def bands_of(lines: Sequence[MapLine], area: Area | None = None) -> tuple[
        list[Floats], list[Floats], list[Floats]]:
    """Return the bands around lines, in the order in which they are drawn."""
    # Returns outlines, (n, 2) m, of other lanes, of roads and of mere lines.
    others: list[Floats] = []
    roads: list[Floats] = []
    marks: list[Floats] = []
    for line in lines:
        left, right = edges_of(line.points_xyz[:, :2], max(line.width - _GAP_M, _LINE_M)
                               if line.width else _LINE_M)
        # Clockwise from the begin on the left.
        outline = np.concatenate((left, right[::-1]))
        if len(outline) and (area is None or _is_near(outline, area)):
            drawn = marks if not line.width or line.kind in _LINES else \
                roads if line.kind in _ROADS else others
            drawn.append(outline)
    return others, roads, marks


def _is_near(outline: Floats, area: Area) -> bool:
    low, high = outline.min(axis=0) - _AROUND_M, outline.max(axis=0) + _AROUND_M
    (left, right), (bottom, top) = area.x_range, area.y_range
    return bool(low[0] <= right and high[0] >= left and low[1] <= top and high[1] >= bottom)


def edges_of(points: Floats, width: float) -> tuple[Floats, Floats]:
    """Return the left and the right edge of a band around a line."""
    # points: (n, 2) or (n, 3) m; points that are not finite or repeat the one before are omitted.
    # width: width of the band, m.
    # Returns (k, 2) or (k, 3) m each; empty for a line of no length.
    points = points[np.isfinite(points).all(axis=1)]
    steps = np.diff(points[:, :2], axis=0)
    lengths = np.hypot(steps[:, 0], steps[:, 1])
    moved = lengths > 0
    if not moved.any():
        return points[:0], points[:0]
    points = np.concatenate((points[:1], points[1:][moved]))
    steps = steps[moved] / lengths[moved][:, None]
    normals = np.stack((-steps[:, 1], steps[:, 0]), 1)
    before, after = np.concatenate((normals[:1], normals)), np.concatenate((normals, normals[-1:]))
    # The edges of two parts meet on the line that halves the angle between them.
    both = before + after
    half = np.maximum(np.hypot(both[:, 0], both[:, 1]) / 2, 1 / _MOST_MITRE)
    offsets = np.zeros_like(points)
    offsets[:, :2] = width / 2 * both / 2 / half[:, None] ** 2
    return points + offsets, points - offsets

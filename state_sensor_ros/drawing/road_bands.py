# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The lanes of a map as polygons on the ground: bands around their middles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from state_sensor_ros.drawing.areas import Area
from state_sensor_ros.frame import Floats, MapLine

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
    """
    Return the bands around lines, in the order in which they are drawn.

    :param lines: the map.
    :param area: area to draw; bands far from it are left out.
    :returns: outlines, (n, 2) m, of other lanes, of roads and of mere lines.
    """
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
    """
    Return the left and the right edge of a band around a line.

    :param points: (n, 2) or (n, 3) m; points that are not finite or repeat the one before are
        left out.
    :param width: width of the band, m.
    :returns: (k, 2) or (k, 3) m each; empty for a line of no length.
    """
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

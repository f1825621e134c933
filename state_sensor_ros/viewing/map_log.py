# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The map: lanes as bands on the ground, other lines as lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import rerun as rr

from state_sensor_ros.drawing.inks import QUIET
from state_sensor_ros.drawing.road_bands import edges_of
from state_sensor_ros.frame import Floats, MapLine, Rows

MAP = 'world/map'
_LINE_RADIUS_M = 0.05
# Colours of lanes for vehicles and of others: red, green, blue.
_DRIVING, _OTHER = (66, 77, 89), (50, 60, 71)
# Distance of bands below the ground, so that they do not cover the actors.
_BELOW_M = 0.03


def send_map(stream: rr.RecordingStream, lines: Sequence[MapLine]) -> None:
    """
    Send the map, an entity for each kind of line.

    :param stream: connected to the viewer or a file.
    :param lines: lines in the global frame.
    """
    for kind in dict.fromkeys(line.kind for line in lines):
        same = [line for line in lines if line.kind == kind]
        bands = [line for line in same if line.width > 0.0]
        entity = f'{MAP}/{kind.replace(" ", "_")}'
        if bands:
            vertices, triangles = _mesh(bands)
            color = _DRIVING if kind == 'driving' else _OTHER
            stream.log(entity, rr.Mesh3D(
                vertex_positions=vertices, triangle_indices=triangles,
                vertex_colors=[color] * len(vertices)), static=True, strict=True)
        if len(bands) < len(same):
            stream.log(f'{entity}/lines' if bands else entity, rr.LineStrips3D(
                [line.points_xyz for line in same if line.width <= 0.0],
                colors=[int(QUIET[1:], 16) << 8 | 255], radii=[_LINE_RADIUS_M]),
                static=True, strict=True)


def _mesh(bands: Sequence[MapLine]) -> tuple[Floats, Rows]:
    """Return the vertices (V, 3) and the triangles (T, 3) of bands of the lines' widths."""
    vertices: list[Floats] = []
    triangles: list[Rows] = []
    n_vertices = 0
    for band in bands:
        left, right = edges_of(band.points_xyz, band.width)
        vertices.append(np.stack((left, right), axis=1).reshape(-1, 3) - (0.0, 0.0, _BELOW_M))
        first = n_vertices + 2 * np.arange(len(left) - 1)[:, None]
        triangles.append(np.concatenate((first + (0, 1, 2), first + (1, 3, 2))))
        n_vertices += 2 * len(left)
    return np.concatenate(vertices), np.concatenate(triangles)

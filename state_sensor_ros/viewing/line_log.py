# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Lines of the scene: lanes of the map, trails of the actors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import rerun as rr

from state_sensor_ros.drawing.colors import QUIET
from state_sensor_ros.drawing.shapes import edges_of
from state_sensor_ros.frame import Bools, Floats, Frame, MapLine, Rows
from state_sensor_ros.viewing.columns import Instances, Timelines

MAP = 'world/map'
_LINE_RADIUS_M = 0.05
# Colors of lanes for vehicles and of others: red, green, blue.
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


TRAILS, EGO_TRAIL = 'world/trails', 'world/ego_trail'
# A shorter step is not drawn; a longer one is a jump.
_SHORTEST_M, _LONGEST_M = 0.005, 25.0


class TrailLog:
    """Collects the steps of the actors from frame to frame."""

    def __init__(self) -> None:
        self._ways = {TRAILS: Instances(), EGO_TRAIL: Instances()}
        self._last_names: tuple[str, ...] = ()
        self._last_rows: dict[str, int] = {}
        self._last_position_xyz: Floats = np.zeros((0, 3))

    def add(self, frame: Frame, are_drawn: Bools, ego: int | None) -> None:
        """
        Append a frame.

        :param frame: frame with N actors.
        :param are_drawn: (N,) bool, actors with a pose that can be drawn.
        :param ego: row of the ego, None without an ego.
        """
        before, now = self._same_actors(frame.names)
        ways = np.stack((self._last_position_xyz[before], frame.position_xyz[now]), axis=1)
        with np.errstate(invalid='ignore', over='ignore'):
            length = np.abs(ways[:, 1] - ways[:, 0]).max(axis=1)
        # A comparison with NaN is false.
        is_way = are_drawn[now] & (length >= _SHORTEST_M) & (length <= _LONGEST_M)
        is_ego = is_way & (now == (-1 if ego is None else ego))
        self._ways[TRAILS].add((), ways[is_way & ~is_ego])
        self._ways[EGO_TRAIL].add((), ways[is_ego])
        self._last_position_xyz = frame.position_xyz

    def begin_run(self) -> None:
        """Remove the last positions: the next frame is the first one of a run."""
        self._last_names, self._last_rows = (), {}
        self._last_position_xyz = np.zeros((0, 3))

    def _same_actors(self, names: tuple[str, ...]) -> tuple[Rows, Rows]:
        """Return the rows of the actors that the last frame and this one share, in both."""
        if names == self._last_names:
            same = np.arange(len(names))
            return same, same
        pairs = [(self._last_rows[name], i) for i, name in enumerate(names)
                 if name in self._last_rows]
        self._last_names = names
        self._last_rows = {name: i for i, name in enumerate(names)}
        before, now = np.array(pairs, np.int64).reshape(-1, 2).T
        return before, now

    def send(self, stream: rr.RecordingStream, timelines: Timelines) -> None:
        """
        Send the collected steps, and remove them.

        :param stream: connected to the viewer or a file.
        :param timelines: times of the same frames.
        """
        for entity, ways in self._ways.items():
            if ways.is_known:
                [strips] = ways.columns()
                stream.send_columns(entity, timelines.columns(), rr.LineStrips3D.columns(
                    strips=_strips(strips)).partition(ways.lengths()), strict=True)
            ways.clear()


def _strips(ways: npt.NDArray[np.float32]) -> npt.NDArray[np.float32] | list[list[float]]:
    """Return lines, (K, 2, 3), as Rerun takes them: no lines are an empty list."""
    return ways if len(ways) else []

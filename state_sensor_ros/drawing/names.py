# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Names of actors on a map, placed so that they cover nothing.

A greedy search: of the places around an actor that cover no actor, no mark and no other name, the
nearest with the fewest points of tracks below. Names without such a place are omitted.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
import numpy as np

from state_sensor_ros.drawing import layers, shapes
from state_sensor_ros.drawing.layers import Fonts
from state_sensor_ros.drawing.scene import LaneChangeMark, Scene
from state_sensor_ros.drawing.shapes import Area
from state_sensor_ros.drawing.style import DARK, EGO, ORDINARY, QUIET
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.texts import abbreviated

# Distance of the points, pixels.
STEP_PX = 4.0


def points_along(begin: Floats, end: Floats) -> Floats:
    """Return points of segments, about STEP_PX apart, without near duplicates."""
    # begin: (S, 2) pixels.
    # end: (S, 2) pixels.
    # Returns (k, 2) pixels.
    n_points = 1 + (np.abs(end - begin).max(axis=1, initial=0.0) / STEP_PX).astype(np.int64)
    first = np.cumsum(n_points) - n_points
    share = (np.arange(n_points.sum()) - np.repeat(first, n_points)) / np.repeat(
        n_points, n_points)
    points = np.repeat(begin, n_points, axis=0) + share[:, None] * np.repeat(
        end - begin, n_points, axis=0)
    cells: Floats = np.unique(np.round(points / STEP_PX), axis=0) * STEP_PX
    return cells


def inside(points: Floats, box: Floats) -> Bools:
    """Return which points are in a box, (n,)."""
    # points: (n, 2) pixels.
    # box: (4,) left, bottom, right, top, pixels.
    are_inside: Bools = np.logical_and.reduce((points >= box[:2]) & (points <= box[2:]), axis=1)
    return are_inside


def overlapping(box: Floats, others: Floats) -> Bools:
    """Return which boxes overlap a box, (n,)."""
    # box: (4,) left, bottom, right, top, pixels.
    # others: (n, 4) likewise.
    are_overlapping: Bools = np.logical_and.reduce(
        (others[:, :2] < box[2:]) & (others[:, 2:] > box[:2]), axis=1)
    return are_overlapping


# Ids of the artists.
NAME_GID, LEADER_GID = 'name', 'leader'
_HALO = [patheffects.withStroke(linewidth=2.0, foreground='white')]
# Distances of a name from its actor, points; a line leads to the actor from the larger ones, and
# from a corner.
_DISTANCES_PT = (2.0, 6.0, 12.0, 20.0, 30.0)
_LED_FROM_PT = 5.0
# A point of a track under a name counts as much as this distance, points.
_PT_PER_TRACK_POINT = 1.5
_DIRECTIONS = [np.array(direction) for direction in (
    (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))]
# Distance of a name from its actor, points, and index of the direction.
Direction = tuple[float, int]
# Order in which names are placed.
_KINDS = (shapes.VEHICLE, shapes.PEDESTRIAN, shapes.OBJECT, shapes.LIGHT, shapes.SIGN,
          shapes.OTHER_SIGN)


def draw_names(axes: Axes, scene: Scene, samples: Rows, fonts: Fonts, inches_per_m: float,
               changes: Sequence[LaneChangeMark], excluded: Area | None = None,
               kept: dict[int, Direction] | None = None, *,
               size_pt: float = ORDINARY.name_pt) -> None:
    """Write the names of actors if there is room, the ego's first."""
    # axes: axes of the map, x and y in m, global frame; their limits must be final.
    # samples: samples of the actors in view, int64.
    # kept: places of names by actor, which are tried first, and updated: names of a film keep
    # their places while these are free.
    hidden = np.zeros((0, 4))
    if excluded is not None:
        samples = samples[~excluded.contains(scene.position_xy[samples])]
        corners = np.stack([excluded.x_range, excluded.y_range], axis=-1)
        hidden = axes.transData.transform(corners).reshape(1, 4)
    samples = _by_importance(scene, samples)
    point = axes.figure.dpi / 72.0
    actors = _actor_boxes(axes, scene, samples, inches_per_m)
    places = _Places(_view(axes),
                     np.vstack([actors, _lane_change_boxes(axes, changes), hidden]),
                     _track_points(axes, scene))
    from_pixels = axes.transData.inverted()
    for k, row in enumerate(samples.tolist()):
        i = int(scene.actor[row])
        text = axes.text(
            0.0, 0.0, fonts.drawable(abbreviated(scene.names[i])), fontsize=size_pt, ha='left',
            va='bottom', zorder=11, path_effects=_HALO, gid=NAME_GID,
            color=EGO if scene.is_ego[i] else DARK)
        place = places.best(k, np.array(text.get_window_extent().size), point,
                            None if kept is None else kept.get(i))
        if place is None:
            text.remove()
            continue
        box, leader, direction = place
        if kept is not None:
            kept[i] = direction
        x, y = from_pixels.transform(box[:2]).tolist()
        text.set_position((x, y))
        if len(leader):
            axes.add_line(Line2D(
                *from_pixels.transform(leader[[0, -1]]).T, color=QUIET, linewidth=0.5,
                zorder=5.5, gid=LEADER_GID))


class _Places:
    """The places that a name must not cover, in pixels."""

    # view: (4,) left, bottom, right, top of the map.
    # boxes: (n, 4) actors, in the order of their names, and marks.
    # track_points: (k, 2), which a name covers only if there is no better place.

    def __init__(self, view: Floats, boxes: Floats, track_points: Floats) -> None:
        self._view = view
        self._boxes = boxes
        self._track_points = track_points
        self._leader_points: Floats = np.zeros((0, 2))

    def best(self, k: int, size: Floats, point: float,
             kept: Direction | None = None) -> tuple[Floats, Floats, Direction] | None:
        """Find the best free place for the name of an actor, and take it."""
        # Returns the box of the name (4,), the points (m, 2) of the leader line from the middle of
        # the actor, none for a near name, and its place; None without a free place.
        best: tuple[Floats, Floats, Direction] | None = None
        if kept is not None:
            best = self._at(k, kept, size, point)
        least = np.inf if best is None else -1.0
        for distance in _DISTANCES_PT:
            if distance >= least:
                break
            for direction in range(len(_DIRECTIONS)):
                found = self._at(k, (distance, direction), size, point)
                if found is not None:
                    cost = distance + _PT_PER_TRACK_POINT * float(
                        inside(self._track_points, found[0]).sum())
                    if cost < least:
                        best, least = found, cost
        if best is not None:
            self._boxes = np.vstack([self._boxes, best[0]])
            self._leader_points = np.vstack([self._leader_points, best[1]])
        return best

    def _at(self, k: int, place: Direction, size: Floats,
            point: float) -> tuple[Floats, Floats, Direction] | None:
        """Return the box and the line of a name at a place, None if that is not free."""
        distance, direction = place
        # Long names near an edge are moved into the view.
        inset = _DISTANCES_PT[0] * point + size[0] / 2
        room = self._view[[0, 2]] + (inset, -inset)
        box, leader = _place(self._boxes[k], _DIRECTIONS[direction], distance * point, size, room)
        if distance < _LED_FROM_PT and not _DIRECTIONS[direction].all():
            leader = leader[:0]
        return (box, leader, place) if self._is_free(box, leader, k) else None

    def _is_free(self, box: Floats, leader: Floats, k: int) -> bool:
        """Return whether a name is on the map and covers nothing, and neither does its line."""
        if (box[:2] < self._view[:2]).any() or (box[2:] > self._view[2:]).any():
            return False
        if overlapping(box, self._boxes).any() or inside(self._leader_points, box).any():
            return False
        return not any(inside(leader, other).any()
                       for row, other in enumerate(self._boxes) if row != k) \
            if len(leader) else True


def _by_importance(scene: Scene, samples: Rows) -> Rows:
    """Return samples of the ego first, then by kind, then by actor."""
    actor = scene.actor[samples]
    rank = np.array([_KINDS.index(kind) for kind in scene.kind[actor].tolist()], np.int64)
    ordered: Rows = samples[np.lexsort((actor, rank, ~scene.is_ego[actor]))]
    return ordered


def _place(actor: Floats, direction: Floats, distance: float, size: Floats,
           room: Floats) -> tuple[Floats, Floats]:
    """Return the box of a name beside an actor, and the points of the line between them."""
    # room: (2,) least and greatest x of the middle of the name, pixels.
    middle, half = (actor[:2] + actor[2:]) / 2, (actor[2:] - actor[:2]) / 2
    # At the corners half of the distance in each direction: footprints are smaller than boxes.
    gap = distance / np.abs(direction).sum()
    center = middle + direction * (half + gap + size / 2)
    center[0] = min(max(center[0], room[0]), room[1])
    near = np.clip(middle, center - size / 2, center + size / 2)
    n_points = 2 + int(np.abs(near - middle).max() / STEP_PX)
    share = np.linspace(0.0, 1.0, n_points)[:, None]
    return np.concatenate([center - size / 2, center + size / 2]), middle + share * (near - middle)


def _actor_boxes(axes: Axes, scene: Scene, samples: Rows, inches_per_m: float) -> Floats:
    """Return the boxes around footprints and symbols: (n, 4) pixels."""
    point = axes.figure.dpi / 72.0
    actor = scene.actor[samples]
    to_pixels = axes.transData
    corners = to_pixels.transform(scene.outlines(samples).reshape(-1, 2)).reshape(-1, 4, 2)
    middle = to_pixels.transform(scene.position_xy[samples].astype(np.float64))
    radius = np.full(len(samples), 1.0)
    for kind, diameter in layers.SYMBOL_PT.items():
        radius[scene.kind[actor] == kind] = diameter / 2 + 1.0
    is_dot = layers.are_dots(scene, samples, inches_per_m)
    radius[is_dot] = layers.EGO_DOT_PT / 2 + 0.5
    reach = (radius * point)[:, None]
    # An actor with a symbol has the box of the symbol; its default footprint is not drawn.
    has_footprint = ~np.isin(scene.kind[actor], list(layers.SYMBOL_PT))[:, None]
    low = np.where(has_footprint, np.minimum(corners.min(axis=1), middle - reach),
                   middle - reach)
    high = np.where(has_footprint, np.maximum(corners.max(axis=1), middle + reach),
                    middle + reach)
    return np.concatenate([low, high], axis=1)


def _lane_change_boxes(axes: Axes, changes: Sequence[LaneChangeMark]) -> Floats:
    """Return the boxes around the marks of lane changes: (n, 4) pixels."""
    if not changes:
        return np.zeros((0, 4))
    middle = axes.transData.transform([change.position_xy for change in changes])
    radius = layers.LANE_CHANGE_PT * axes.figure.dpi / 72.0
    return np.concatenate([middle - radius, middle + radius], axis=1)


def _track_points(axes: Axes, scene: Scene) -> Floats:
    """Return points of all tracks in view: (k, 2) pixels."""
    begin, end = (axes.transData.transform(scene.tracks.position_xy[rows].astype(np.float64))
                  for rows in scene.tracks.segments(scene.moves))
    view = _view(axes)
    is_near = (np.minimum(begin, end) <= view[2:]).all(axis=1) \
        & (np.maximum(begin, end) >= view[:2]).all(axis=1)
    begin, end = np.clip(begin[is_near], view[:2], view[2:]), np.clip(
        end[is_near], view[:2], view[2:])
    return points_along(begin, end)


def _view(axes: Axes) -> Floats:
    """Return left, bottom, right and top of the map, (4,) pixels."""
    return np.array(axes.get_window_extent().extents)

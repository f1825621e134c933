# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The layers of a map in matplotlib: lanes, tracks, lane changes, actors, scale bar, names.

:class:`Labels` is what places all texts that must not overlap: of a free place, the nearest with
the fewest points of lines below it. A text without a free place is omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
import warnings

from matplotlib import patheffects, rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Affine2D
import numpy as np

from state_sensor_ros.drawing import shapes, style
from state_sensor_ros.drawing.marks import colors_of, fills_of
from state_sensor_ros.drawing.scene import LaneChangeMark, Scene
from state_sensor_ros.drawing.shapes import Area, bands_of, CAR_LENGTH_M, CONE_M
from state_sensor_ros.drawing.style import DARK, EGO, EGO_BED, PageSize, QUIET
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.texts import abbreviated, one_line, part_of, seconds

DASHED = (0, (2.0, 1.2))
# Diameters of the symbols of pedestrians, lights and signs, points.
SYMBOL_PT = {shapes.PEDESTRIAN: 5.0, shapes.LIGHT: 7.0, shapes.SIGN: 12.0,
             shapes.OTHER_SIGN: 7.0}
# A mark of a lane change: an arrow head that points along x, in points; half of its size.
_ARROW_PT = 0.9 * np.array([(5.0, 0.0), (-2.5, 3.2), (-1.2, 0.0), (-2.5, -3.2)])
LANE_CHANGE_PT = 5.0
# Diameters of footprints that are drawn as dots, because they are shorter than the least length.
DOT_PT, EGO_DOT_PT, _MIN_LENGTH_PT = 3.4, 5.0, 5.0
# Ids of the artists.
SCALE_GID, NAME_GID, LEADER_GID = 'scale', 'name', 'leader'
# The longest bar, its thickness, its distance below the map and from its text, inches.
_LONGEST, _THICK, _SCALE_BELOW, _GAP = 1.1, 0.05, 0.38, 0.06
_SHARE, _N_PARTS = 0.25, 4
# Width of a close-up, m. Footprints are too small on a map with fewer inches per meter.
CLOSE_UP_M, CLOSE_UP_BELOW = 80.0, 0.03
# Part of matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and more; and an installed one of
# Chinese, Japanese and Korean.
FAMILIES = ['DejaVu Sans', *sorted({
    font.name for font in fontManager.ttflist if 'CJK' in font.name})[:1]]
# Distances of a name from its actor, points; a line leads to the actor from the larger ones, and
# from a corner.
_DISTANCES_PT, _LED_FROM_PT = (2.0, 6.0, 12.0, 20.0, 30.0), 5.0
_DIRECTIONS = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))
# Order in which names are placed.
_KINDS = (shapes.VEHICLE, shapes.PEDESTRIAN, shapes.OBJECT, shapes.LIGHT, shapes.SIGN,
          shapes.OTHER_SIGN)
# Distance of the points of lines, pixels; one under a text counts as much as this, points.
_STEP_PX, _PT_PER_POINT = 4.0, 1.5


@contextmanager
def settings_of(size: PageSize) -> Iterator[None]:
    """Set matplotlib for a page; a character that no font has is drawn as a box."""
    # White grids on a gray ground; on white paper, gray grids.
    ground, grid, line_pt = ('white', style.GRID, 0.4) if size.is_paper \
        else (style.GROUND, 'white', 1.0)
    settings: dict[Any, Any] = {
        'font.family': FAMILIES, 'axes.linewidth': 0.7,
        **dict.fromkeys(('font.size', 'legend.fontsize', 'axes.labelsize', 'xtick.labelsize',
                         'ytick.labelsize'), style.TEXT_PT * size.text_scale),
        **dict.fromkeys(('axes.edgecolor', 'xtick.color', 'ytick.color'), QUIET),
        **dict.fromkeys(('axes.labelcolor', 'xtick.labelcolor', 'ytick.labelcolor', 'text.color'),
                        DARK),
        'axes.facecolor': ground, 'axes.grid': True, 'axes.axisbelow': True, 'grid.color': grid,
        'grid.linewidth': line_pt, 'legend.frameon': False, 'legend.handletextpad': 0.5,
        'legend.handlelength': 1.4 if size.is_paper else 2.0,
        'legend.columnspacing': 0.9 if size.is_paper else 1.4, 'axes.labelpad': 2.0,
        # Names of files and actors may contain dollar signs.
        'text.parse_math': False, 'svg.hashsalt': 'state_sensor_ros',
        # Venues refuse Type 3 fonts: TrueType fonts are embedded as they are.
        'pdf.fonttype': 42, 'ps.fonttype': 42}
    with rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings('ignore', '.*[Gg]lyph')
        yield


@dataclass(frozen=True, slots=True)
class Map:
    """A map on the page: the area of the ground, and its scale."""

    area: Area
    inches_per_m: float


def map_on(axes: Axes, area: Area) -> Map:
    """Set the limits of axes to an area that fills them, with one scale for x and y."""
    box = axes.get_window_extent()
    area = area.filling(box.height / box.width)
    axes.set(xlim=area.x_range, ylim=area.y_range)
    return Map(area, float(box.width) / axes.figure.dpi / area.width)


def close_up(scene: Scene, instant: int, aspect: float, n_actors: int) -> Area | None:
    """Return the surroundings of the ego, else of the vehicle with the most others around it."""
    # n_actors: the least number of actors that it shows.
    samples = scene.samples_at(instant)
    actor, position_xy = scene.actor[samples], scene.position_xy[samples].astype(float)
    rows = np.flatnonzero(scene.is_ego[actor])
    if not len(rows):
        rows = np.flatnonzero(scene.is_vehicle[actor])
        near = [(np.abs(position_xy - position_xy[row]) < CLOSE_UP_M / 2).all(axis=1).sum()
                for row in rows]
        rows = rows[[int(np.argmax(near))]] if near else rows
    if not len(rows):
        return None
    x, y = position_xy[rows[0]].tolist()
    area = Area(x, y, CLOSE_UP_M, CLOSE_UP_M * aspect)
    return area if np.count_nonzero(area.contains(position_xy)) >= n_actors else None


def visible_samples(scene: Scene, instant: int, areas: Sequence[Area]) -> Rows:
    """Return the samples of an instant that at least one of some areas contains, int64."""
    # instant: -1 for none.
    samples = scene.samples_at(instant)
    is_visible = np.zeros(samples.stop - samples.start, np.bool_)
    for area in areas:
        is_visible |= area.contains(scene.position_xy[samples])
    visible: Rows = samples.start + np.flatnonzero(is_visible)
    return visible


def not_shown(scene: Scene, instant: int, area: Area) -> list[str]:
    """Return how many of the counted actors are not on the map, as texts."""
    samples = scene.samples_at(instant)
    present = scene.actor[samples]
    outside = present[~area.contains(scene.position_xy[samples])]
    absent = np.setdiff1d(np.arange(len(scene.names)), present)
    where = f'not in the frame at {seconds(scene.time_s[instant])}' if instant >= 0 else 'no pose'
    return _parts(scene, outside, 'outside the map') + _parts(scene, absent, where)


def _parts(scene: Scene, actors: Rows, where: str) -> list[str]:
    """Return how many of all actors of each kind are ``actors``, as texts."""
    size = len(shapes.KIND_NAMES)
    parts, numbers = (np.bincount(of, minlength=size).tolist()
                      for of in (scene.kind[actors], scene.kind))
    texts = [part_of(part, number, noun) for part, number, noun in zip(
        parts, numbers, shapes.KIND_NAMES, strict=True) if part]
    return [f'{", ".join(texts)} {where}'] if texts else []


def draw_roads(axes: Axes, scene: Scene, area: Area) -> None:
    """Draw the lanes of the map under everything else."""
    # axes: axes of the map, x and y in m, global frame.
    for outlines, color in zip(bands_of(scene.map_lines, area), style.ROADS, strict=True):
        if outlines:
            axes.add_collection(PolyCollection(
                outlines, facecolors=color, edgecolors='none', zorder=1), autolim=False)


def draw_tracks(axes: Axes, scene: Scene, coloring: str, width_pt: float) -> None:
    """Draw the tracks of the moving actors, the ego's on a wider line."""
    # axes: axes of the map, x and y in m, global frame.
    # coloring: one of ``colors.COLORINGS``.
    # width_pt: width of a line, points; the bed under the ego's line is 3.2 times as wide.
    drawn = scene.tracks
    begin, end = drawn.segments(scene.moves)
    lines = np.stack([drawn.position_xy[begin], drawn.position_xy[end]], axis=1)
    colors = colors_of(scene, drawn.actor[end], drawn.speed[end], coloring)
    is_ego = scene.is_ego[drawn.actor[begin]]
    for rows, color, width, order in (
            (~is_ego, colors[~is_ego], width_pt, 2),
            (is_ego, EGO_BED, 3.2 * width_pt, 2.5), (is_ego, colors[is_ego], width_pt, 3)):
        # Not snapped: only segments along an axis would be moved to whole pixels.
        axes.add_collection(LineCollection(
            list(lines[rows]), colors=color, linewidths=width, capstyle='round', zorder=order,
            snap=False), autolim=False)


def draw_lane_changes(axes: Axes, changes: Sequence[LaneChangeMark], size: float = 1.0) -> None:
    """Draw an arrow head to the left or right at the begin of each lane change."""
    # axes: axes of the map, x and y in m, global frame.
    if not changes:
        return
    marks, offsets = [], []
    for change in changes:
        marks.append(Affine2D().rotate(change.heading).transform(size * _ARROW_PT))
        offsets.append(change.position_xy)
    # Correct also for formats with another resolution than the figure.
    points = Affine2D().scale(1.0 / 72.0) + axes.figure.dpi_scale_trans
    axes.add_collection(PolyCollection(
        marks, offsets=offsets, offset_transform=axes.transData, transform=points,
        facecolors='white', edgecolors=DARK, linewidths=0.9, zorder=5), autolim=False)


def free_lane_changes(scene: Scene, samples: Rows, view: Map) -> list[LaneChangeMark]:
    """Return the lane changes whose marks cover neither an actor nor another mark."""
    if not scene.lane_changes:
        return []
    reach = LANE_CHANGE_PT / 72.0 / view.inches_per_m
    place = np.array([change.position_xy for change in scene.lane_changes])
    outlines = scene.outlines(samples)
    # At least as large as a dot.
    dot = EGO_DOT_PT / 2.0 / 72.0 / view.inches_per_m
    middle = outlines.mean(axis=1)
    low = np.minimum(outlines.min(axis=1), middle - dot)
    high = np.maximum(outlines.max(axis=1), middle + dot)
    free = []
    taken = np.zeros((0, 2))
    for i in np.flatnonzero(view.area.contains(place)):
        covers = ((place[i] + reach > low) & (place[i] - reach < high)).all(axis=1).any() \
            or (np.abs(taken - place[i]) < 2.0 * reach).all(axis=1).any()
        if not covers:
            taken = np.vstack((taken, place[i]))
            free.append(scene.lane_changes[i])
    return free


def draw_actors(axes: Axes, scene: Scene, samples: Rows, coloring: str,
                inches_per_m: float) -> None:
    """
    Draw actors, the ego last: footprints with marked fronts, or symbols.

    :param axes: axes of the map, x and y in m, global frame.
    :param samples: samples of the actors, int64.
    :param coloring: colors of the vehicles, one of ``colors.COLORINGS``.
    :param inches_per_m: scale of the map; footprints that are too small become dots.
    """
    actor = scene.actor[samples]
    is_ego, kind = scene.is_ego[actor], scene.kind[actor]
    for chosen, edge, order in (
            (~is_ego & (kind == shapes.OBJECT), style.OBJECT_EDGE, 6),
            (~is_ego & (kind == shapes.VEHICLE), DARK, 7), (is_ego, DARK, 9)):
        if chosen.any():
            _draw_footprints(axes, scene, samples[chosen], coloring, edge, order, are_dots(
                scene, samples, inches_per_m)[chosen])
    for symbol in SYMBOL_PT:
        rows = samples[~is_ego & (kind == symbol)]
        if len(rows):
            _draw_symbols(axes, scene, rows, coloring, symbol)


def are_dots(scene: Scene, samples: Rows, inches_per_m: float) -> Bools:
    """Return which actors are drawn as dots because their footprints are too small."""
    actor = scene.actor[samples]
    kind = np.where(scene.is_ego[actor], shapes.VEHICLE, scene.kind[actor])
    small = np.zeros(len(shapes.KIND_NAMES), np.bool_)
    small[shapes.VEHICLE] = is_dot(inches_per_m)
    small[shapes.OBJECT] = is_dot(inches_per_m, CONE_M[0])
    dots: Bools = small[kind]
    return dots


def is_dot(inches_per_m: float, length_m: float = CAR_LENGTH_M) -> bool:
    """Return whether footprints of a length are too small to be drawn."""
    return inches_per_m * 72.0 * length_m < _MIN_LENGTH_PT


def _draw_footprints(axes: Axes, scene: Scene, rows: Rows, coloring: str, edge: str,
                     order: int, is_dot: Bools) -> None:
    """Draw footprints, dashed if the size is assumed, or dots if they are too small."""
    fills = fills_of(scene, rows, coloring)
    outlines = scene.outlines(rows)
    has_size = scene.has_size[scene.actor[rows]]
    for chosen, dashes in ((has_size, 'solid'), (~has_size, DASHED)):
        axes.add_collection(PolyCollection(
            list(outlines[chosen]), facecolors=fills[chosen], edgecolors=edge, linewidths=0.7,
            linestyles=dashes, zorder=order), autolim=False)
    is_ego = scene.is_ego[scene.actor[rows]]
    if is_dot.any():
        diameter = np.where(is_ego, EGO_DOT_PT, DOT_PT)
        x, y = scene.position_xy[rows[is_dot]].T
        axes.scatter(x, y, s=diameter[is_dot] ** 2, c=fills[is_dot],
                     edgecolors=edge, linewidths=0.5, zorder=order)
    has_front = ~is_dot & (is_ego | scene.is_vehicle[scene.actor[rows]])
    _draw_fronts(axes, outlines[has_front], order)


def _draw_fronts(axes: Axes, outlines: Floats, order: int) -> None:
    """Draw a light arrow head on each outline, in the direction of the actor's x axis."""
    center = outlines.mean(axis=1)
    forward = 0.5 * (outlines[:, 0] + outlines[:, 1]) - center
    left = 0.5 * (outlines[:, 0] + outlines[:, 3]) - center
    heads = np.stack([center + 0.75 * forward, center + 0.2 * forward + 0.6 * left,
                      center + 0.2 * forward - 0.6 * left], axis=1)
    axes.add_collection(PolyCollection(list(heads), facecolors='white', alpha=0.9,
                                       linewidths=0.0, zorder=order), autolim=False)


def _draw_symbols(axes: Axes, scene: Scene, rows: Rows, coloring: str, kind: int) -> None:
    """Draw circles for pedestrians, lights in their color, and speed limits with their number."""
    x, y = scene.position_xy[rows].T
    axes.scatter(
        x, y, s=SYMBOL_PT[kind] ** 2, zorder=8,
        c=fills_of(scene, rows, coloring),
        edgecolors=style.SIGN_EDGE if kind in (shapes.SIGN, shapes.OTHER_SIGN) else DARK,
        linewidths={shapes.PEDESTRIAN: 0.5, shapes.LIGHT: 1.6}.get(kind, 1.4))
    if kind == shapes.SIGN:
        for i, display in enumerate(scene.display[rows].tolist()):
            axes.text(x[i], y[i], scene.displays[display] or '?', ha='center',
                      va='center_baseline', fontsize=6.0, color=DARK, clip_on=True,
                      zorder=8)


def draw_scale_bar(axes: Axes, inches_per_m: float) -> None:
    """Draw a scale bar of a round length, about an inch, below the map."""
    # axes: axes of the map, x and y in m; their limits must be final.
    left, right = axes.get_xlim()
    length = round_length(min(_LONGEST / inches_per_m, _SHARE * (right - left)))
    thick, gap = _THICK / inches_per_m, _GAP / inches_per_m
    y = axes.get_ylim()[0] - scale_below() / inches_per_m
    for k in range(_N_PARTS):
        axes.add_patch(Rectangle(
            (right - length * (1.0 - k / _N_PARTS), y), length / _N_PARTS, thick, linewidth=0.6,
            edgecolor=DARK, facecolor=DARK if k % 2 == 0 else 'white',
            clip_on=False, gid=SCALE_GID))
    axes.text(right - length - gap, y + thick / 2, f'{length:g} m', ha='right',
              va='center_baseline', fontsize='medium', gid=SCALE_GID)


def scale_below() -> float:
    """Return the distance of the scale bar below the map, inches: beside the title of the axis."""
    return _SCALE_BELOW * float(rcParams['font.size']) / style.TEXT_PT


def round_length(longest: float) -> float:
    """
    Return the largest of 1, 2, 5, 10, 20 … and their tenths that is not above ``longest``.

    >>> round_length(37.0), round_length(0.3)
    (20.0, 0.2)
    """
    power = 10.0 ** np.floor(np.log10(longest))
    return float(power * max(step for step in (1.0, 2.0, 5.0) if step * power <= longest))


def points_along(begin: Floats, end: Floats) -> Floats:
    """Return points (k, 2) of segments (S, 2), pixels, without near duplicates."""
    n_points = 1 + (np.abs(end - begin).max(axis=1, initial=0.0) / _STEP_PX).astype(np.int64)
    share = (np.arange(n_points.sum()) - np.repeat(np.cumsum(n_points) - n_points, n_points)
             ) / np.repeat(n_points, n_points)
    points = np.repeat(begin, n_points, axis=0) + share[:, None] * np.repeat(
        end - begin, n_points, axis=0)
    cells: Floats = np.unique(np.round(points / _STEP_PX), axis=0) * _STEP_PX
    return cells


class Labels:
    """Places texts on axes, whose limits must be final; boxes are left, bottom, right, top."""

    def __init__(self, axes: Axes, taken: Floats, points: Floats) -> None:
        # taken: (n, 4) pixels that no text may cover.
        # points: (k, 2) pixels of lines.
        self._axes, self._taken, self._points = axes, taken, points
        self.view = np.array(axes.get_window_extent().extents)
        self.point = axes.figure.dpi / 72.0

    def text(self, name: str, color: object, size_pt: float, gid: str) -> tuple[Text, Floats]:
        """Write a name, not yet at its place; return also its width and height, pixels."""
        text = self._axes.text(
            0.0, 0.0, one_line(abbreviated(name)), fontsize=size_pt, va='bottom', zorder=11,
            color=color, gid=gid,
            path_effects=[patheffects.withStroke(linewidth=2.0, foreground='white')])
        return text, np.array(text.get_window_extent().size)

    def place(self, text: Text, boxes: Floats, costs_pt: Floats, most: float = np.inf
              ) -> int | None:
        """Move a text to the cheapest free one of ``boxes`` (m, 4); remove it if there is none."""
        # most: number of points of lines that it may cover.
        is_free = ((boxes[:, :2] >= self.view[:2]) & (boxes[:, 2:] <= self.view[2:])).all(axis=1)
        is_free &= ~((self._taken[:, None, :2] < boxes[:, 2:])
                     & (self._taken[:, None, 2:] > boxes[:, :2])).all(axis=2).any(axis=0)
        covered = ((self._points[:, None] >= boxes[:, :2])
                   & (self._points[:, None] <= boxes[:, 2:])).all(axis=2).sum(axis=0)
        costs = np.where(is_free & (covered <= most), costs_pt + _PT_PER_POINT * covered, np.inf)
        best = int(costs.argmin())
        if not np.isfinite(costs[best]):
            text.remove()
            return None
        self._taken = np.vstack([self._taken, boxes[best]])
        text.set_position(self._axes.transData.inverted().transform(boxes[best, :2]).tolist())
        return best


def draw_names(axes: Axes, scene: Scene, samples: Rows, inches_per_m: float,
               changes: Sequence[LaneChangeMark], excluded: Area | None = None,
               kept: dict[int, int] | None = None, *, size_pt: float) -> None:
    """Write the names of actors if there is room, the ego's first."""
    # samples: samples of the actors in view, int64.
    # kept: places of names by actor, which are taken again while they are free, and updated.
    hidden = np.zeros((0, 4))
    if excluded is not None:
        samples = samples[~excluded.contains(scene.position_xy[samples])]
        hidden = axes.transData.transform(
            np.stack([excluded.x_range, excluded.y_range], axis=-1)).reshape(1, 4)
    actor = scene.actor[samples]
    rank = np.array([_KINDS.index(kind) for kind in scene.kind[actor].tolist()], np.int64)
    samples = samples[np.lexsort((actor, rank, ~scene.is_ego[actor]))]
    actors = _actor_boxes(axes, scene, samples, inches_per_m)
    labels = Labels(axes, np.vstack([actors, _lane_change_boxes(axes, changes), hidden]),
                    _track_points(axes, scene))
    directions = np.array(_DIRECTIONS * len(_DISTANCES_PT), float)
    distances = np.repeat(_DISTANCES_PT, len(_DIRECTIONS))
    # At the corners half of the distance in each direction: footprints are smaller than boxes.
    gaps = labels.point * (distances / np.abs(directions).sum(axis=1))[:, None]
    has_leader = (distances > _LED_FROM_PT) | directions.all(axis=1)
    for box, i in zip(actors, scene.actor[samples].tolist(), strict=True):
        text, size = labels.text(scene.names[i], EGO if scene.is_ego[i] else DARK, size_pt,
                                 NAME_GID)
        middle, half = (box[:2] + box[2:]) / 2, (box[2:] - box[:2]) / 2
        centers = middle + directions * (half + gaps + size / 2)
        # Long names near an edge are moved into the view.
        inset = 2.0 * labels.point + size[0] / 2
        centers[:, 0] = np.clip(centers[:, 0], labels.view[0] + inset, labels.view[2] - inset)
        costs = distances.copy()
        if kept is not None and i in kept:
            costs[kept[i]] = -1e6
        best = labels.place(text, np.hstack([centers - size / 2, centers + size / 2]), costs)
        if best is None:
            continue
        if kept is not None:
            kept[i] = best
        if has_leader[best]:
            near = np.clip(middle, centers[best] - size / 2, centers[best] + size / 2)
            axes.add_line(Line2D(
                *axes.transData.inverted().transform([middle, near]).T, color=QUIET,
                linewidth=0.5, zorder=5.5, gid=LEADER_GID))


def _actor_boxes(axes: Axes, scene: Scene, samples: Rows, inches_per_m: float) -> Floats:
    """Return the boxes around footprints and symbols: (n, 4) pixels."""
    point = axes.figure.dpi / 72.0
    actor = scene.actor[samples]
    to_pixels = axes.transData
    corners = to_pixels.transform(scene.outlines(samples).reshape(-1, 2)).reshape(-1, 4, 2)
    middle = to_pixels.transform(scene.position_xy[samples].astype(np.float64))
    radius = np.full(len(samples), 1.0)
    for kind, diameter in SYMBOL_PT.items():
        radius[scene.kind[actor] == kind] = diameter / 2 + 1.0
    is_dot = are_dots(scene, samples, inches_per_m)
    radius[is_dot] = EGO_DOT_PT / 2 + 0.5
    reach = (radius * point)[:, None]
    # An actor with a symbol has the box of the symbol; its default footprint is not drawn.
    has_footprint = ~np.isin(scene.kind[actor], list(SYMBOL_PT))[:, None]
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
    radius = LANE_CHANGE_PT * axes.figure.dpi / 72.0
    return np.concatenate([middle - radius, middle + radius], axis=1)


def _track_points(axes: Axes, scene: Scene) -> Floats:
    """Return points of all tracks in view: (k, 2) pixels."""
    begin, end = (axes.transData.transform(scene.tracks.position_xy[rows].astype(np.float64))
                  for rows in scene.tracks.segments(scene.moves))
    view = np.array(axes.get_window_extent().extents)
    is_near = (np.minimum(begin, end) <= view[2:]).all(axis=1) \
        & (np.maximum(begin, end) >= view[:2]).all(axis=1)
    begin, end = np.clip(begin[is_near], view[:2], view[2:]), np.clip(
        end[is_near], view[:2], view[2:])
    return points_along(begin, end)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The layers of a map in matplotlib: lanes, tracks, lane changes, actors, names.

Of the free places of a name, the nearest one with the fewest points of lines below it is taken. A
name without a free place is omitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
import math
from typing import Any
import warnings

from matplotlib import patheffects, rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.transforms import Affine2D
import numpy as np
import numpy.typing as npt

from state_sensor_ros import classes, texts
from state_sensor_ros.drawing import scene as scenes
from state_sensor_ros.drawing import style
from state_sensor_ros.drawing.marks import colors_of, fills_of, SYMBOLS
from state_sensor_ros.drawing.scene import Area, bands_of, LaneChangeMark, Scene
from state_sensor_ros.drawing.style import DARK, EGO, EGO_BED, PageSize, PictureStyle, QUIET
from state_sensor_ros.frame import Bools, Floats, Rows

DASHED = (0, (2.0, 1.2))
# Half of the size of a mark of a lane change, points.
LANE_CHANGE_PT = 5.0
# Diameters of footprints that are drawn as dots, because they are shorter than the least length.
DOT_PT, EGO_DOT_PT, _MIN_LENGTH_PT = 3.4, 5.0, 5.0
# Ids of the artists.
NAME_GID, LEADER_GID = 'name', 'leader'
# The map has names up to this many actors in view.
MAX_NAMED = 40
# Part of matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and more; and an installed one of
# Chinese, Japanese and Korean.
FAMILIES = ['DejaVu Sans', *sorted({
    font.name for font in fontManager.ttflist if 'CJK' in font.name})[:1]]
# Distances of a name from its actor, points; a line leads to the actor from the larger ones, and
# from a corner.
_DISTANCES_PT, _LED_FROM_PT = (2.0, 6.0, 12.0, 20.0, 30.0), 5.0
_DIRECTIONS = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))
# Distance of the points of lines, pixels; one under a text counts as much as this, points.
_STEP_PX, _PT_PER_POINT = 4.0, 1.5
# Places along a line of speeds beside which its name may stand.
_N_ANCHORS = 24


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

    def samples(self, scene: Scene, instant: int) -> Rows:
        """Return the samples of an instant that are in view; ``instant``: -1 for none."""
        samples = scene.samples_at(instant)
        return samples[self.area.contains(scene.position_xy[samples])]


def map_on(axes: Axes, area: Area) -> Map:
    """Set the limits of axes to an area that fills them, with one scale for x and y."""
    box = axes.get_window_extent()
    aspect = box.height / box.width
    area = Area(area.x, area.y, max(area.width, area.height / aspect),
                max(area.height, area.width * aspect))
    axes.set(xlim=area.x_range, ylim=area.y_range)
    return Map(area, float(box.width) / axes.figure.dpi / area.width)


def draw_instant(axes: Axes, scene: Scene, instant: int, view: Map, style: PictureStyle,
                 kept: dict[int, int] | None = None, since_s: float = math.inf) -> None:
    """Draw the actors of an instant, the lane changes beside them, and names if there is room."""
    # since_s: time for which a lane change is shown, s; infinite for all, also future ones.
    # kept: places of names by actor, which are taken again while they are free, and updated.
    samples = view.samples(scene, instant)
    changes = free_lane_changes(scene, samples, view)
    if since_s < math.inf:
        changes = [change for change in changes
                   if 0.0 <= scene.time_s[instant] - change.time_s < since_s]
    for change in changes:
        axes.plot(*change.position_xy, color='white', markeredgecolor=DARK, markeredgewidth=0.9,
                  markersize=1.2 * LANE_CHANGE_PT, zorder=5, marker=MarkerStyle(
                      '>', transform=Affine2D().rotate(change.heading)))
    _draw_actors(axes, scene, samples, style.coloring, view.inches_per_m)
    if style.names and len(samples) <= MAX_NAMED:
        _draw_names(axes, scene, samples, view.inches_per_m, changes, style.size.name_pt,
                    {} if kept is None else kept)


def draw_ground(axes: Axes, scene: Scene, area: Area, coloring: str) -> None:
    """Draw the lanes, and the tracks of the moving actors, the ego's on a wider line."""
    # axes: axes of the map, x and y in m, global frame.
    # coloring: one of ``style.COLORINGS``.
    for outlines, road in zip(bands_of(scene.map_lines, area), style.ROADS, strict=True):
        if outlines:
            axes.add_collection(PolyCollection(
                outlines, facecolors=road, edgecolors='none', zorder=1), autolim=False)
    tracks = scene.tracks
    begin, end = tracks.segments(scene.moves)
    colors = colors_of(scene, tracks.actor[end], tracks.speed[end], coloring)
    is_ego = scene.is_ego[tracks.actor[end]]
    for rows, color, width, order in (
            (~is_ego, colors[~is_ego], 1.4, 2), (is_ego, EGO_BED, 4.5, 2.5),
            (is_ego, colors[is_ego], 1.4, 3)):
        draw_lines(axes, tracks.position_xy, begin[rows], end[rows], colors=color,
                   linewidths=width, capstyle='round', zorder=order)


def draw_lines(axes: Axes, points: npt.NDArray[Any], begin: Rows, end: Rows,
               **look: Any) -> None:  # noqa: ANN401
    """Draw lines between two of some points each; ``look``: options of matplotlib."""
    # Not snapped: only segments along an axis would be moved to whole pixels.
    axes.add_collection(LineCollection(
        list(np.stack([points[begin], points[end]], axis=1)), snap=False, **look), autolim=False)


def free_lane_changes(scene: Scene, samples: Rows, view: Map) -> list[LaneChangeMark]:
    """Return the lane changes whose marks cover neither an actor nor another mark."""
    reach, dot = (point / 72.0 / view.inches_per_m for point in (LANE_CHANGE_PT, EGO_DOT_PT / 2))
    place = np.array([change.position_xy for change in scene.lane_changes]).reshape(-1, 2)
    outlines = scene.outlines(samples)
    # At least as large as a dot.
    middle = outlines.mean(axis=1)
    low = np.minimum(outlines.min(axis=1), middle - dot) - reach
    high = np.maximum(outlines.max(axis=1), middle + dot) + reach
    free: list[int] = []
    for i in np.flatnonzero(view.area.contains(place)).tolist():
        if not ((place[i] > low) & (place[i] < high)).all(axis=1).any() \
                and not (np.abs(place[free] - place[i]) < 2.0 * reach).all(axis=1).any():
            free.append(i)
    return [scene.lane_changes[i] for i in free]


def _draw_actors(axes: Axes, scene: Scene, samples: Rows, coloring: str,
                 inches_per_m: float) -> None:
    """Draw actors, the ego last: footprints with marked fronts, or symbols."""
    actor = scene.actor[samples]
    is_ego, kind = scene.is_ego[actor], scene.kind[actor]
    for chosen, edge, order in (
            (~is_ego & (kind == scenes.OBJECT), style.OBJECT_EDGE, 6),
            (~is_ego & (kind == scenes.VEHICLE), DARK, 7), (is_ego, DARK, 9)):
        if chosen.any():
            _draw_footprints(axes, scene, samples[chosen], coloring, edge, order,
                             are_dots(scene, samples[chosen], inches_per_m))
    for symbol in SYMBOLS:
        rows = samples[~is_ego & (kind == symbol)]
        if len(rows):
            _draw_symbols(axes, scene, rows, coloring, symbol)


def are_dots(scene: Scene, samples: Rows, inches_per_m: float) -> Bools:
    """Return which actors are drawn as dots because their footprints are too small."""
    actor = scene.actor[samples]
    is_long = scene.is_vehicle[actor] | scene.is_ego[actor]
    lengths = np.where(is_long, scenes.SIZES[classes.CAR, 0], scenes.SIZES[classes.UNKNOWN, 0])
    dots: Bools = (is_long | (scene.kind[actor] == scenes.OBJECT)) \
        & (72.0 * inches_per_m * lengths < _MIN_LENGTH_PT)
    return dots


def _draw_footprints(axes: Axes, scene: Scene, rows: Rows, coloring: str, edge: str,
                     order: int, is_dot: Bools) -> None:
    """Draw footprints, dashed if the size is assumed, or dots if they are too small."""
    fills, outlines, actor = fills_of(scene, rows, coloring), scene.outlines(rows), \
        scene.actor[rows]
    for chosen, dashes in ((scene.has_size[actor], 'solid'), (~scene.has_size[actor], DASHED)):
        axes.add_collection(PolyCollection(
            list(outlines[chosen]), facecolors=fills[chosen], edgecolors=edge, linewidths=0.7,
            linestyles=dashes, zorder=order), autolim=False)
    is_ego = scene.is_ego[actor]
    if is_dot.any():
        diameter = np.where(is_ego, EGO_DOT_PT, DOT_PT)
        x, y = scene.position_xy[rows[is_dot]].T
        axes.scatter(x, y, s=diameter[is_dot] ** 2, c=fills[is_dot], edgecolors=edge,
                     linewidths=0.5, zorder=order)
    # A light arrow head in the direction of the actor's x axis.
    outlines = outlines[~is_dot & (is_ego | scene.is_vehicle[actor])]
    center = outlines.mean(axis=1)
    forward = 0.5 * (outlines[:, 0] + outlines[:, 1]) - center
    left = 0.5 * (outlines[:, 0] + outlines[:, 3]) - center
    heads = np.stack([center + 0.75 * forward, center + 0.2 * forward + 0.6 * left,
                      center + 0.2 * forward - 0.6 * left], axis=1)
    axes.add_collection(PolyCollection(list(heads), facecolors='white', alpha=0.9,
                                       linewidths=0.0, zorder=order), autolim=False)


def _draw_symbols(axes: Axes, scene: Scene, rows: Rows, coloring: str, kind: int) -> None:
    """Draw circles for pedestrians, lights in their color, and speed limits with their number."""
    (x, y), (size, edge, width) = scene.position_xy[rows].T, SYMBOLS[kind]
    axes.scatter(x, y, s=size ** 2, zorder=8, c=fills_of(scene, rows, coloring),
                 edgecolors=edge, linewidths=width)
    if kind == scenes.SIGN:
        for i, display in enumerate(scene.display[rows].tolist()):
            axes.text(x[i], y[i], scene.displays[display] or '?', ha='center',
                      va='center_baseline', fontsize=6.0, color=DARK, clip_on=True,
                      zorder=8)


def _draw_names(axes: Axes, scene: Scene, samples: Rows, inches_per_m: float,
                changes: Sequence[LaneChangeMark], size_pt: float, kept: dict[int, int]) -> None:
    """Write the names of the actors at samples if there is room, the ego's first."""
    actor = scene.actor[samples]
    samples = samples[np.lexsort((actor, scene.kind[actor], ~scene.is_ego[actor]))]
    boxes = _actor_boxes(axes, scene, samples, inches_per_m)
    marks = axes.transData.transform(
        np.reshape([change.position_xy for change in changes], (-1, 2)))
    radius = LANE_CHANGE_PT * axes.figure.dpi / 72.0
    segments = scene.tracks.segments(scene.moves)
    _write_names(
        axes, scene, zip(scene.actor[samples].tolist(), boxes[:, None], strict=True),
        np.vstack([boxes, np.hstack([marks - radius, marks + radius])]), _points_on(
            axes, *(scene.tracks.position_xy[rows] for rows in segments)), size_pt, kept)


def draw_names_of_lines(axes: Axes, scene: Scene, chosen: Bools, size_pt: float) -> None:
    """Write the names of the actors ``chosen`` (A,) beside the lines of their speeds."""
    lines = scene.tracks.speeds_over_time()

    def points_of(actors: Bools) -> Floats:
        return _points_on(axes, *(lines[rows] for rows in scene.tracks.segments(actors)))

    anchors = []
    for i in np.flatnonzero(chosen).tolist():
        own = points_of(np.arange(len(chosen)) == i)
        anchors.append((i, np.tile(own[::max(len(own) // _N_ANCHORS, 1)], 2)))
    _write_names(axes, scene, anchors, np.zeros((0, 4)), points_of(chosen | scene.is_ego),
                 size_pt, {})


def _write_names(axes: Axes, scene: Scene, anchors: Iterable[tuple[int, Floats]], taken: Floats,
                 points: Floats, size_pt: float, kept: dict[int, int]) -> None:
    """Write the name of each actor beside one of its anchors."""
    # anchors: actors, and the boxes (k, 4) that their names may stand beside.
    # taken: (n, 4) boxes that no name covers; points: (n, 2) points that names avoid; pixels.
    to_pixels, point = axes.transData, axes.figure.dpi / 72.0
    view = np.array(axes.get_window_extent().extents)
    directions = np.array(_DIRECTIONS * len(_DISTANCES_PT), float)
    distances = np.repeat(_DISTANCES_PT, len(_DIRECTIONS))
    # At the corners half of the distance in each direction: footprints are smaller than boxes.
    gaps = point * (distances / np.abs(directions).sum(axis=1))[:, None]
    has_leader = (distances > _LED_FROM_PT) | directions.all(axis=1)
    for i, boxes in anchors:
        text = axes.text(
            0.0, 0.0, texts.one_line(texts.abbreviated(scene.names[i])), fontsize=size_pt,
            va='bottom', zorder=11, color=EGO if scene.is_ego[i] else DARK, gid=NAME_GID,
            path_effects=[patheffects.withStroke(linewidth=2.0, foreground='white')])
        half_size = np.array(text.get_window_extent().size) / 2
        middle, half = ((boxes[:, 2:] + sign * boxes[:, :2])[:, None] / 2 for sign in (1, -1))
        centers = (middle + directions * (half + gaps + half_size)).reshape(-1, 2)
        # Long names near an edge are moved into the view.
        inset = 2.0 * point + half_size[0]
        centers[:, 0] = np.clip(centers[:, 0], view[0] + inset, view[2] - inset)
        low, high = centers - half_size, centers + half_size
        is_free = ((low >= view[:2]) & (high <= view[2:])).all(axis=1) & ~(
            (taken[:, None, :2] < high) & (taken[:, None, 2:] > low)).all(axis=2).any(axis=0)
        if not is_free.any():
            text.remove()
            continue
        # Axis by axis: `all` over an axis of two takes most of the time of a page.
        x, y = ((axis[:, None] >= least) & (axis[:, None] <= most)
                for axis, least, most in zip(points.T, low.T, high.T, strict=True))
        costs = np.tile(distances, len(boxes)) + _PT_PER_POINT * (x & y).sum(axis=0)
        costs[kept.get(i, slice(0))] = -1e6
        kept[i] = best = int(np.where(is_free, costs, np.inf).argmin())
        taken = np.vstack([taken, np.hstack([low[best], high[best]])])
        text.set_position(to_pixels.inverted().transform(low[best]).tolist())
        box, place = divmod(best, len(distances))
        if has_leader[place]:
            near = np.clip(middle[box, 0], low[best], high[best])
            axes.add_line(Line2D(
                *to_pixels.inverted().transform([middle[box, 0], near]).T, color=QUIET,
                linewidth=0.5, zorder=5.5, gid=LEADER_GID))


def _actor_boxes(axes: Axes, scene: Scene, samples: Rows, inches_per_m: float) -> Floats:
    """Return the boxes around footprints and symbols: (n, 4) pixels."""
    kind = scene.kind[scene.actor[samples]]
    radius = np.array([SYMBOLS.get(each, (0.0,))[0] / 2 + 1.0 for each in kind.tolist()])
    radius[are_dots(scene, samples, inches_per_m)] = EGO_DOT_PT / 2 + 0.5
    reach = (radius * axes.figure.dpi / 72.0)[:, None]
    middle = axes.transData.transform(scene.position_xy[samples].astype(np.float64))
    corners = axes.transData.transform(scene.outlines(samples).reshape(-1, 2)).reshape(-1, 4, 2)
    # An actor with a symbol has the box of the symbol; its default footprint is not drawn.
    is_symbol = np.isin(kind, list(SYMBOLS))
    corners[is_symbol] = middle[is_symbol][:, None]
    return np.hstack((np.minimum(corners.min(axis=1), middle - reach),
                      np.maximum(corners.max(axis=1), middle + reach)))


def _points_on(axes: Axes, begin: npt.NDArray[Any], end: npt.NDArray[Any]) -> Floats:
    """Return points (k, 2) on segments in view, pixels, without near duplicates."""
    # begin, end: (n, 2) in the units of the axes.
    view = np.array(axes.get_window_extent().extents)
    begin, end = (axes.transData.transform(each.astype(np.float64)) for each in (begin, end))
    is_near = (np.minimum(begin, end) <= view[2:]).all(axis=1) \
        & (np.maximum(begin, end) >= view[:2]).all(axis=1)
    begin, end = (np.clip(each[is_near], view[:2], view[2:]) for each in (begin, end))
    n_points = 1 + (np.abs(end - begin).max(axis=1, initial=0.0) / _STEP_PX).astype(np.int64)
    segment = np.repeat(np.arange(len(begin)), n_points)
    share = (np.arange(len(segment)) - (np.cumsum(n_points) - n_points)[segment]
             ) / n_points[segment]
    points = begin[segment] + share[:, None] * (end - begin)[segment]
    cells: Floats = np.unique(np.round(points / _STEP_PX), axis=0) * _STEP_PX
    return cells

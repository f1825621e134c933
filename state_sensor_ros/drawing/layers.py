# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Layers of a map in matplotlib: tracks, lane changes, footprints, symbols, scale bar; fonts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.font_manager import FontEntry, fontManager, get_font
from matplotlib.patches import Rectangle
from matplotlib.transforms import Affine2D
import numpy as np

from state_sensor_ros.drawing import map_layout, shapes
from state_sensor_ros.drawing.map_layout import Map
from state_sensor_ros.drawing.marks import colors_of, fills_of
from state_sensor_ros.drawing.scene import LaneChangeMark, Scene
from state_sensor_ros.drawing.shapes import Area, bands_of, CONE_M
from state_sensor_ros.drawing.style import (
    DARK,
    EGO_BED,
    GRID,
    GROUND,
    OBJECT_EDGE,
    PageSize,
    QUIET,
    ROADS,
    SIGN_EDGE,
    TEXT_PT,
)
from state_sensor_ros.frame import Bools, Floats, Rows

DASHED = (0, (2.0, 1.2))
# Diameters of the symbols of pedestrians, lights and signs, points.
SYMBOL_PT = {shapes.PEDESTRIAN: 5.0, shapes.LIGHT: 7.0, shapes.SIGN: 12.0,
             shapes.OTHER_SIGN: 7.0}
# A mark of a lane change: an arrow head that points along x, in points.
_ARROW_PT = 0.9 * np.array([(5.0, 0.0), (-2.5, 3.2), (-1.2, 0.0), (-2.5, -3.2)])
# Half of the size of a mark, points.
LANE_CHANGE_PT = 5.0
# Diameters of footprints that are drawn as dots, points.
DOT_PT, EGO_DOT_PT = 3.4, 5.0
_NUMBER_PT = 6.0
# Id of the artists of a scale bar.
SCALE_GID = 'scale'
# The longest bar, its thickness, its distance below the map and from its text, inches.
_LONGEST, _THICK, SCALE_BELOW, _GAP = 1.1, 0.05, 0.38, 0.06
_SHARE, _N_PARTS = 0.25, 4
# Part of matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and more.
DEFAULT_FAMILY = 'DejaVu Sans'
# Part of matplotlib 3.11; has a symbol of the script instead of each character.
_LAST_RESORT = 'Last Resort'
_PLAIN = ('normal', '400', 'regular', '350')


def draw_roads(axes: Axes, scene: Scene, area: Area) -> None:
    """Draw the lanes of the map under everything else."""
    # axes: axes of the map, x and y in m, global frame.
    for outlines, color in zip(bands_of(scene.map_lines, area), ROADS, strict=True):
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
            (~is_ego & (kind == shapes.OBJECT), OBJECT_EDGE, 6),
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
    small[shapes.VEHICLE] = map_layout.are_dots(inches_per_m)
    small[shapes.OBJECT] = map_layout.are_dots(inches_per_m, CONE_M[0])
    dots: Bools = small[kind]
    return dots


def _draw_footprints(axes: Axes, scene: Scene, rows: Rows, coloring: str, edge: str,
                     order: int, is_dot: Bools) -> None:
    """Draw footprints, dashed if the size is assumed, or dots if they are too small."""
    fills = fills_of(scene, rows, coloring)
    outlines = scene.outlines(rows)
    has_size = scene.has_size[scene.actor[rows]]
    for chosen, style in ((has_size, 'solid'), (~has_size, DASHED)):
        axes.add_collection(PolyCollection(
            list(outlines[chosen]), facecolors=fills[chosen], edgecolors=edge, linewidths=0.7,
            linestyles=style, zorder=order), autolim=False)
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
        edgecolors=SIGN_EDGE if kind in (shapes.SIGN, shapes.OTHER_SIGN) else DARK,
        linewidths={shapes.PEDESTRIAN: 0.5, shapes.LIGHT: 1.6}.get(kind, 1.4))
    if kind == shapes.SIGN:
        for i, display in enumerate(scene.display[rows].tolist()):
            axes.text(x[i], y[i], scene.displays[display] or '?', ha='center',
                      va='center_baseline', fontsize=_NUMBER_PT, color=DARK, clip_on=True,
                      zorder=8)


def draw_scale_bar(axes: Axes, inches_per_m: float) -> None:
    """Draw a scale bar of a round length, about an inch, below the map."""
    # axes: axes of the map, x and y in m; their limits must be final.
    left, right = axes.get_xlim()
    length = round_length(min(_LONGEST / inches_per_m, _SHARE * (right - left)))
    thick, gap = _THICK / inches_per_m, _GAP / inches_per_m
    y = axes.get_ylim()[0] - SCALE_BELOW / inches_per_m
    for k in range(_N_PARTS):
        axes.add_patch(Rectangle(
            (right - length * (1.0 - k / _N_PARTS), y), length / _N_PARTS, thick, linewidth=0.6,
            edgecolor=DARK, facecolor=DARK if k % 2 == 0 else 'white',
            clip_on=False, gid=SCALE_GID))
    axes.text(right - length - gap, y + thick / 2, f'{length:g} m', ha='right',
              va='center_baseline', fontsize='medium', gid=SCALE_GID)


def round_length(longest: float) -> float:
    """
    Return the largest of 1, 2, 5, 10, 20 … and their tenths that is not above ``longest``.

    >>> round_length(37.0), round_length(0.3)
    (20.0, 0.2)
    """
    power = 10.0 ** np.floor(np.log10(longest))
    return float(power * max(step for step in (1.0, 2.0, 5.0) if step * power <= longest))


class Fonts:
    """
    The families that a picture needs, in order of preference.

    Of all fonts on this machine, matplotlib draws each character with the first family that has
    it. Only fonts that add a character are used.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        wanted = {ord(char) for text in texts for char in text if char.isprintable()}
        self.families = [DEFAULT_FAMILY]
        self._missing = wanted - _characters(DEFAULT_FAMILY)
        for entry in _other_fonts():
            if not self._missing:
                break
            try:
                found = self._missing & set(get_font(entry.fname).get_charmap())
            except (OSError, RuntimeError):
                continue  # A font that was uninstalled or that FreeType cannot read.
            if found:
                self.families.append(entry.name)
                self._missing -= found

    def drawable(self, text: str) -> str:
        """Return ``text`` with characters that no font has as in Python string literals."""
        return ''.join(
            char if char.isprintable() and ord(char) not in self._missing else ascii(char)[1:-1]
            for char in text)


def _characters(family: str) -> set[int]:
    return set(get_font(fontManager.findfont(family)).get_charmap())


def _other_fonts() -> list[FontEntry]:
    """Return one upright font of each other installed family, sans serif first."""
    of_family: dict[str, FontEntry] = {}
    for entry in fontManager.ttflist:
        is_plain = entry.style == 'normal' and str(entry.weight) in _PLAIN
        if is_plain and entry.name != DEFAULT_FAMILY and _LAST_RESORT not in entry.name:
            of_family.setdefault(entry.name, entry)
    return sorted(of_family.values(), key=lambda entry: ('Sans' not in entry.name, entry.name))


def style_of(fonts: Fonts, size: PageSize) -> dict[Any, Any]:
    """Return the settings of matplotlib for a page."""
    # Returns argument of rc_context, whose keys only matplotlib 3.11 has a type for.
    text_pt = TEXT_PT * size.text_scale
    # White grids on a gray ground; on white paper, gray grids.
    ground, grid, line_pt = ('white', GRID, 0.4) if size.is_paper else (GROUND, 'white', 1.0)
    return {
        'font.family': fonts.families, 'axes.linewidth': 0.7,
        **dict.fromkeys(('font.size', 'legend.fontsize', 'axes.labelsize', 'xtick.labelsize',
                         'ytick.labelsize'), text_pt),
        **dict.fromkeys(('axes.edgecolor', 'xtick.color', 'ytick.color'), QUIET),
        **dict.fromkeys(('axes.labelcolor', 'xtick.labelcolor', 'ytick.labelcolor', 'text.color'),
                        DARK),
        'axes.facecolor': ground, 'axes.grid': True, 'axes.axisbelow': True, 'grid.color': grid,
        'grid.linewidth': line_pt,
        **dict.fromkeys(('xtick.major.pad', 'ytick.major.pad'), 2.0 if size.is_paper else 3.5),
        'axes.labelpad': 2.0 if size.is_paper else 4.0,
        'legend.handletextpad': 0.5, 'legend.handlelength': 1.4 if size.is_paper else 2.0,
        'legend.columnspacing': 0.9 if size.is_paper else 1.4,
        # Names of files and actors may contain dollar signs.
        'text.parse_math': False, 'svg.hashsalt': 'state_sensor_ros',
        # Venues refuse Type 3 fonts: TrueType fonts are embedded as they are.
        'pdf.fonttype': 42, 'ps.fonttype': 42}

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The speeds of all moving actors over time in matplotlib, with names if there is room."""

from __future__ import annotations

from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import AutoMinorLocator, MaxNLocator
import numpy as np

from state_sensor_ros.drawing.layers import DASHED, Fonts
from state_sensor_ros.drawing.marks import colors_of, plain_colors, speed_range
from state_sensor_ros.drawing.names import inside, overlapping, points_along
from state_sensor_ros.drawing.scene import Scene, SpeedBand
from state_sensor_ros.drawing.style import (
    ACTORS,
    BAND,
    BY_ACTOR,
    DARK,
    INSTANT_PT,
    KPH_PER_MPS,
    MEDIAN_PT,
    PageSize,
    QUIET,
    SPEED_KPH_TITLE,
    SPEED_TITLE,
    TIME_TITLE,
)
from state_sensor_ros.frame import Bools, Floats
from state_sensor_ros.texts import abbreviated

# Id of the artists.
LINE_NAME_GID = 'name of a line'
# Numbers on an axis per inch; matplotlib warns of an axis with a thousand marks, four of them
# between two numbers.
_TICKS_PER_INCH, _MAX_TICKS = 1.7, 150
# Numbers on the axes are multiples of these times a power of ten.
_STEPS = (1, 2, 5, 10)
_HALO = [patheffects.withStroke(linewidth=1.5, foreground='white')]
# Distance of a name from its line, points; its possible places, as shares of the line.
_GAP_PT = 2.0
_SHARES = (0.98, 0.02, 0.5, 0.75, 0.25, 0.9, 0.1, 0.62, 0.38)
# Room above and below the curves, as a share of their height, and at least this.
_ROOM, _LEAST_ROOM_MPS = 0.06, 0.5
# Points of lines, about 4 pixels apart, that a name other than the ego's may cover.
_MAX_COVERED = 2


def draw_strip(axes: Axes, scene: Scene, instant: int, coloring: str, band: SpeedBand, *,
               fonts: Fonts | None, size: PageSize) -> list[str]:
    """Draw the speeds, the ego's on top, and a line at one instant."""
    # coloring: ``speed`` or ``actor``.
    # fonts: None for no names.
    # Returns the names without room.
    low, high = speed_range(scene)
    # The ends of the color scale would leave blank bands above and below the curves.
    speeds = scene.tracks.speed[scene.moves[scene.tracks.actor]]
    slowest = max(float(np.nanmin(speeds, initial=high)), low)
    fastest = float(np.nanmax(scene.tracks.speed, initial=low))
    if fastest >= slowest:
        room = max(_ROOM * (fastest - slowest), _LEAST_ROOM_MPS)
        # A curve on the frame would be hidden. No speed is below 0, but a curve at 0 needs room.
        low, high = max(slowest - room, -room / 2), fastest + room
    axes.set(xlim=(0.0, scene.duration_s or 1.0), xlabel=TIME_TITLE, ylim=(low, high),
             ylabel='' if size.is_compact else SPEED_TITLE)
    box = axes.get_window_extent().transformed(axes.figure.dpi_scale_trans.inverted())
    for axis, n_ticks in ((axes.xaxis, _TICKS_PER_INCH * box.width),
                          (axes.yaxis, 2.5 * _TICKS_PER_INCH * box.height)):
        axis.set_major_locator(MaxNLocator(min(max(int(n_ticks), 3), _MAX_TICKS), steps=_STEPS))
        axis.set_minor_locator(AutoMinorLocator())
    if not (size.is_compact or size.is_paper):
        kph = axes.twinx()
        kph.grid(visible=False)
        kph.set(ylim=(low * KPH_PER_MPS, high * KPH_PER_MPS), ylabel=SPEED_KPH_TITLE)
    if band.n_others:
        axes.fill_between(band.time_s, band.slowest, band.fastest, color=BAND, linewidth=0.0,
                          zorder=1.5)
        axes.plot(band.time_s, band.median, color=QUIET, linewidth=MEDIAN_PT,
                  linestyle=DASHED, zorder=1.6)
    colors = _draw_lines(axes, scene, coloring, band.has_line)
    if instant >= 0:
        # Not clipped, so that the line has its whole width at the edges.
        axes.axvline(scene.time_s[instant], color=DARK, linewidth=INSTANT_PT,
                     clip_on=False, zorder=4)
        axes.plot([scene.time_s[instant]], [1.0], marker='v', markersize=6.0, color=DARK,
                  transform=axes.get_xaxis_transform(), clip_on=False, zorder=4)
    return [] if fonts is None else _draw_names(
        axes, scene, colors, fonts, band.has_line, size.name_pt)


def _draw_lines(axes: Axes, scene: Scene, coloring: str, has_line: Bools) -> Floats:
    """Draw the lines; return the color of each actor, (A, 4)."""
    drawn = scene.tracks
    begin, end = drawn.segments(has_line)
    lines = np.stack([np.stack([drawn.time_s[row], drawn.speed[row]], axis=-1)
                      for row in (begin, end)], axis=1)
    is_ego = scene.is_ego[drawn.actor[begin]]
    # If each actor has its own color, the color connects its name with its line.
    has_colors = coloring == BY_ACTOR or int(scene.moves.sum()) <= len(ACTORS)
    colors = colors_of(
        scene, np.arange(len(scene.names)), np.zeros(len(scene.names), np.float32), BY_ACTOR) \
        if has_colors else plain_colors(scene)
    opacity = 0.9 if has_colors else 0.7
    # Round ends close the seams of opaque segments; of transparent ones, they would be visible.
    for rows, width, alpha, ends in ((~is_ego, 0.8, opacity, 'butt'), (is_ego, 2.0, 1.0, 'round')):
        axes.add_collection(LineCollection(
            list(lines[rows]), colors=colors[drawn.actor[begin[rows]]], linewidths=width,
            alpha=alpha, capstyle=ends, snap=False, zorder=3 if ends == 'round' else 2),
            autolim=False)
    return colors


def _draw_names(axes: Axes, scene: Scene, colors: Floats, fonts: Fonts, has_line: Bools,
                size_pt: float) -> list[str]:
    """Write the names of lines that cover nothing, the ego's first; return those without room."""
    drawn = scene.tracks
    begin, end = drawn.segments(has_line & np.isin(
        np.arange(len(scene.names)), drawn.actor[np.isfinite(drawn.speed)]))
    places = np.column_stack((drawn.time_s, drawn.speed.astype(np.float64)))
    with np.errstate(invalid='ignore'):
        pixels = axes.transData.transform(np.nan_to_num(places))
    points = points_along(pixels[begin], pixels[end])
    view = np.array(axes.get_window_extent().extents)
    gap = _GAP_PT * axes.figure.dpi / 72.0
    taken: Floats = np.zeros((0, 4))
    omitted = []
    order = np.argsort(~scene.is_ego, kind='stable')
    for actor in order[np.isin(order, drawn.actor[begin])].tolist():
        rows = np.flatnonzero((drawn.actor == actor) & np.isfinite(drawn.speed))
        text = axes.text(0.0, 0.0, fonts.drawable(abbreviated(scene.names[actor])),
                         fontsize=size_pt, ha='left', va='bottom', color=colors[actor],
                         path_effects=_HALO, zorder=5, gid=LINE_NAME_GID)
        box = _place(drawn.time_s[rows], pixels[rows], np.array(text.get_window_extent().size),
                     view, gap, points, taken,
                     len(points) if scene.is_ego[actor] else _MAX_COVERED)
        if box is None:
            text.remove()
            omitted.append(scene.names[actor])
            continue
        taken = np.vstack((taken, box))
        text.set_position(axes.transData.inverted().transform(box[:2]).tolist())
    return omitted


def _place(time_s: Floats, line: Floats, size: Floats, view: Floats, gap: float, points: Floats,
           taken: Floats, most_covered: int) -> Floats | None:
    """Return the box (4,) of a name above or below its line, None without a free one; pixels."""
    best, least = None, most_covered + 1
    for share in _SHARES:
        at = time_s[0] + share * (time_s[-1] - time_s[0])
        x, y = (float(np.interp(at, time_s, column)) for column in line.T)
        left = min(max(x - share * size[0], view[0] + gap), view[2] - gap - size[0])
        for bottom in (y + gap, y - gap - size[1]):
            box = np.array((left, bottom, left + size[0], bottom + size[1]))
            if bottom < view[1] or box[3] > view[3] or overlapping(box, taken).any():
                continue
            covered = int(inside(points, box).sum())
            if covered < least:
                best, least = box, covered
    return best

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Draw a scene as a picture: a map, a close-up if it shows more, speeds over time, a legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
import math
import textwrap
from typing import Any, BinaryIO, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import AutoMinorLocator, MaxNLocator
import numpy as np

from state_sensor_ros.drawing import map as maps
from state_sensor_ros.drawing import style as styles
from state_sensor_ros.drawing.figures import ShownFigure
from state_sensor_ros.drawing.map import DASHED, Map
from state_sensor_ros.drawing.marks import (
    actor_key,
    colors_of,
    ego_text,
    EXAMPLE,
    FILLS,
    legend_marks,
    Mark,
    marks_of,
    plain_colors,
    speed_range,
    SPEEDS,
)
from state_sensor_ros.drawing.scene import Scene, speed_band, SpeedBand
from state_sensor_ros.drawing.shapes import Area
from state_sensor_ros.drawing.style import BY_ACTOR, BY_SPEED, DARK, PictureStyle, QUIET
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.texts import abbreviated, listed, one_line, seconds

CLOSE_UP_DASHES = (0.0, (4.0, 2.0))
# Heights of the title, of the least map and close-up, of the strip, inches.
_TITLE, _LEAST_MAP, _LEAST_CLOSE_UP, _STRIP, _LEAST_STRIP = 0.31, 0.5, 0.8, 1.9, 0.6
# Of a line of facts, inches at the ordinary size.
_LINE = 0.19
# Least and greatest height of a map without a given one, and height of a close-up below it, as
# fractions of its width; a higher map has the close-up beside it on a page of this width.
_LOWEST, _HIGHEST, _CLOSE_UP_HEIGHT, _BESIDE_ABOVE, _BESIDE_WIDTH = 0.32, 0.7, 0.28, 0.6, 7.0
# A map with a close-up beside it takes this share of the width, a close-up below this share of a
# given height; it has this many times the scale.
_MAP_SHARE, _CLOSE_UP_SHARE, _CLOSE_UP_TIMES = 0.56, 0.4, 2.0
_TITLE_PT, _FACTS_PT = 13.0, 9.0
# The map of a whole recording has names up to this many actors. Most names in a note.
MAX_NAMED, _N_NAMES = 40, 5
_MAX_TITLE, _LETTERS_PER_INCH = 80, 7.2
LINE_NAME_GID = 'name of a line'
# Numbers on an axis per inch; matplotlib warns of an axis with a thousand marks, four of them
# between two numbers.
_TICKS_PER_INCH, _MAX_TICKS, _STEPS = 1.7, 150, (1, 2, 5, 10)
# Distance of a name from its line, points; its possible places, as shares of the line; points of
# lines that a name other than the ego's may cover.
_GAP_PT, _SHARES, _MAX_COVERED = 2.0, (0.98, 0.02, 0.5, 0.75, 0.25, 0.9, 0.1, 0.62, 0.38), 2
# Room above and below the curves, as a share of their height, and at least this.
_ROOM, _LEAST_ROOM_MPS = 0.06, 0.5


class LegendEntry(NamedTuple):
    """A label and its artists, drawn over each other."""

    artists: tuple[Patch | Line2D, ...]
    label: str


def map_entries(scene: Scene, samples: Rows, views: Sequence[Map], coloring: str, *,
                names_ego: bool) -> list[LegendEntry]:
    """Return an entry for each mark in view, in the order of :class:`Mark`."""
    # samples: samples that are shown, int64.
    marks = legend_marks(scene, samples, coloring) - {Mark.ASSUMED}
    for view in views:
        in_view = samples[view.area.contains(scene.position_xy[samples])]
        large = in_view[~maps.are_dots(scene, in_view, view.inches_per_m)]
        marks |= marks_of(scene, large) & {Mark.ASSUMED}
        if maps.free_lane_changes(scene, in_view, view):
            marks.add(Mark.LANE_CHANGE)
    if len(views) > 1:
        marks.add(Mark.CLOSE_UP)
    entries = [_entry(mark) for mark in Mark if mark in marks]
    if {Mark.EGO, Mark.EGO_TRACK} <= marks:
        # One entry for both.
        track = next(entry for entry in entries if entry.label == Mark.EGO_TRACK.value)
        entries.remove(track)
        label = one_line(ego_text(scene)) if names_ego else Mark.EGO.value
        entries[0] = LegendEntry((*track.artists, *entries[0].artists), label)
    return entries


def strip_entries(instant: int, band: SpeedBand) -> list[LegendEntry]:
    """Return the entries of the speeds over time; lines have names instead."""
    # instant: instant of the footprints, -1 for none.
    line = Line2D([], [], color=DARK, linewidth=styles.INSTANT_PT)
    entries = [LegendEntry((line,), 'time of the boxes')] if instant >= 0 else []
    if band.n_others:
        entries.append(LegendEntry((Patch(facecolor=styles.BAND, edgecolor='none'), Line2D(
            [], [], color=QUIET, linewidth=styles.MEDIAN_PT, linestyle=DASHED)), band.text))
    return entries


def _entry(mark: Mark) -> LegendEntry:
    fill = FILLS.get(mark, 'white')
    artist: Patch | Line2D
    if mark in (Mark.EGO, Mark.VEHICLE, Mark.UNKNOWN_SPEED):
        artist = Patch(facecolor=fill, edgecolor=DARK, linewidth=0.7)
    elif mark is Mark.OBJECT:
        artist = _marker('s', fill, styles.OBJECT_EDGE, 0.7, 4.0)
    elif mark is Mark.ASSUMED:
        artist = Patch(facecolor='white', edgecolor=DARK, linestyle=DASHED)
    elif mark is Mark.SIGN:
        artist = _marker('o', fill, styles.SIGN_EDGE, 1.4, 8.0)
    elif mark is Mark.OTHER_SIGN:
        artist = _marker('o', fill, styles.SIGN_EDGE, 1.4, 6.5)
    elif mark is Mark.PEDESTRIAN:
        artist = _marker('o', fill, DARK, 0.5, 5.0)
    elif mark in FILLS:
        artist = _marker('o', fill, DARK, 1.6, 6.5)
    elif mark is Mark.LANE_CHANGE:
        artist = _marker('>', 'white', DARK, 0.9, 5.5)
    elif mark is Mark.CLOSE_UP:
        artist = Patch(facecolor='none', edgecolor=QUIET, linewidth=0.9,
                       linestyle=CLOSE_UP_DASHES)
    else:
        color, width = (styles.EGO_BED, 4.5) if mark is Mark.EGO_TRACK \
            else (EXAMPLE, 1.4)
        artist = Line2D([], [], color=color, linewidth=width)
    return LegendEntry((artist,), mark.value)


def _marker(shape: str, fill: str, edge: str, width: float, size: float) -> Line2D:
    return Line2D([], [], marker=shape, color='none', markerfacecolor=fill, markeredgecolor=edge,
                  markeredgewidth=width, markersize=size)


def actor_entries(scene: Scene) -> list[LegendEntry]:
    """Return an entry for each color of vehicles."""
    return [LegendEntry((Patch(facecolor=color, edgecolor=DARK, linewidth=0.4),),
                        one_line(text)) for color, text in actor_key(scene)]


def _add_legend(figure: Figure, entries: Sequence[LegendEntry]) -> float:
    """Add a legend below all else in as few lines as fit; return its height, inches."""
    width = figure.get_figwidth() * figure.dpi
    for n_columns in range(len(entries), 0, -1):
        legend = figure.legend(
            handles=[entry.artists for entry in entries],
            labels=[entry.label for entry in entries], loc='outside lower left',
            ncols=n_columns, borderpad=0.0,
            handler_map={entry.artists: HandlerTuple(1, pad=0.0) for entry in entries})
        box = legend.get_window_extent()
        if box.width <= width - 0.15 * figure.dpi or n_columns == 1:
            return float(box.height) / figure.dpi + 0.15
        legend.remove()
    return 0.0


@dataclass(slots=True)
class Page:
    figure: Figure
    axes: Axes  # of the map of the whole recording
    view: Map
    strip: Axes | None  # the speeds, None if they are not drawn
    notes: list[str] = field(default_factory=list)  # of what has no room


def write_picture(scene: Scene, handle: BinaryIO, style: PictureStyle, *, format_: str = 'png',
                  at_s: float | None = None) -> Sequence[str]:
    """Write ``scene`` as a picture; return notes of what has no room on it."""
    with maps.settings_of(style.size):
        page = draw_page(scene, style, scene.instant_at(at_s))
        # The same bytes for the same recording.
        metadata = {'svg': {'Date': None}, 'pdf': {'CreationDate': None}}.get(format_)
        page.figure.savefig(handle, format=format_, dpi=style.size.dpi, metadata=metadata)
    return page.notes


def scene_figure(scene: Scene, style: PictureStyle, at_s: float | None = None) -> Figure:
    """Return ``scene`` as a figure."""
    # at_s: time of the footprints as in :meth:`Scene.instant_at`.
    with maps.settings_of(style.size):
        return draw_page(scene, style, scene.instant_at(at_s)).figure


class _Plan(NamedTuple):
    """The rows of a page: heights of map, close-up below it, strip, inches; 0 for none."""

    map: float  # noqa: A003
    below: float
    strip: float
    detail: Area | None  # of a close-up
    is_beside: bool


def _axis_height(size: styles.PageSize) -> float:
    return 0.42 if size.is_paper else 0.55 * size.text_scale


def _plan(scene: Scene, instant: int, style: PictureStyle, rest: float | None, *,
          has_detail: bool) -> _Plan:
    """Choose the rows; a close-up only if it shows more than the map of the whole recording."""
    # rest: height for maps and strip, inches; None to choose it by the shape of the data.
    size, area = style.size, scene.area()
    axis = _axis_height(size)
    width = size.width - (1.0 if size.is_compact or size.is_paper else 1.7)
    strip = _STRIP * (0.6 if size.width < styles.COMPACT_BELOW else 1.0) * scene.has_curves
    if rest is not None:
        strip = min(strip, 0.3 * rest, rest - 2 * axis - 0.35 * (size.height or 0.0))
        strip = strip if strip >= _LEAST_STRIP else 0.0
        height = rest - axis - (strip + axis if strip else 0.0)
    else:
        highest = 1.0 if size.is_paper else _HIGHEST
        height = min(max(width * area.height / area.width, _LOWEST * width, _LEAST_CLOSE_UP),
                     highest * width)
    whole = min(width / area.width, height / area.height)
    alone = _Plan(height, 0.0, strip, None, is_beside=False)
    if not has_detail or whole >= maps.CLOSE_UP_BELOW:
        return alone
    is_beside = area.height / area.width > _BESIDE_ABOVE and width > _BESIDE_WIDTH
    below = max(_CLOSE_UP_HEIGHT * width, _LEAST_CLOSE_UP) if rest is None \
        else _CLOSE_UP_SHARE * (height - axis)
    if is_beside and rest is None:
        height = min(max(_MAP_SHARE * width * area.height / area.width, _LOWEST * width), height)
    elif rest is not None and not is_beside:
        height -= axis + below
    wide, high = ((1.0 - _MAP_SHARE) * width, height) if is_beside else (width, below)
    detail = maps.close_up(scene, instant, high / wide, 1 if maps.is_dot(whole) else 2)
    if detail is None or min(high, height) < _LEAST_CLOSE_UP or wide / maps.CLOSE_UP_M \
            < _CLOSE_UP_TIMES * min(width / area.width, height / area.height):
        return alone
    return _Plan(height, 0.0 if is_beside else below, strip, detail, is_beside)


def draw_page(scene: Scene, style: PictureStyle, instant: int, *,
              is_ground: bool = False) -> Page:
    """Draw a page; a height that is not given follows from the content."""
    # instant: instant of the footprints, -1 for none.
    # is_ground: without the actors, for a film.
    size, coloring, area = style.size, style.coloring, scene.area()
    has_bar = coloring == BY_SPEED and scene.has_speeds
    axis = _axis_height(size)
    figure = ShownFigure((size.width, size.height or 10.0), dpi=size.dpi, facecolor='white',
                         layout=ConstrainedLayoutEngine(
                             w_pad=0.06, h_pad=0.05, hspace=0.03, wspace=0.02))
    FigureCanvasAgg(figure)
    title = one_line(abbreviated(style.title, min(
        _MAX_TITLE, int(_LETTERS_PER_INCH * size.width / size.text_scale))))
    band, plan = speed_band(scene), _plan(scene, instant, style, None, has_detail=not is_ground)
    facts = '' if size.is_paper else _facts(scene, -1 if is_ground else instant, area, style)
    head = (_TITLE * size.text_scale if title else 0.0) + (
        _LINE * size.text_scale * (facts.count('\n') + 1) if facts else 0.0)

    def legend_height(plan: _Plan) -> float:
        if not style.has_legend:
            return 0.0
        views = [Map(area, min(size.width / area.width, plan.map / area.height))]
        if plan.detail is not None:
            views.append(Map(plan.detail, 2 * maps.CLOSE_UP_BELOW))
        samples = np.arange(len(scene.actor)) if is_ground else maps.visible_samples(
            scene, instant, [view.area for view in views])
        entries = map_entries(scene, samples, views, coloring, names_ego=not size.is_paper)
        entries += strip_entries(-1 if is_ground else instant, band) if plan.strip else []
        return _add_legend(figure, entries + (
            actor_entries(scene) if coloring == BY_ACTOR else []))

    height = head + legend_height(plan) + 0.1
    if size.height is not None:
        rest = size.height - height
        if rest < _LEAST_MAP + axis:
            least = math.ceil(10.0 * (height + _LEAST_MAP + axis)) / 10.0
            raise ConfigError('size', f'{size.width:g}x{size.height:g}',
                              f'a taller page: at least {least:g} inches')
        plan = _plan(scene, instant, style, rest, has_detail=not is_ground)
        for legend in figure.legends:
            legend.remove()
        legend_height(plan)
    else:
        rows = [plan.map, plan.below, plan.strip]
        figure.set_figheight(height + sum(rows) + axis * np.count_nonzero(rows))
    mosaic: list[Any] = [['map', 'detail' if plan.is_beside else 'map']]
    mosaic += [['detail'] * 2] if plan.below else []
    mosaic += [['strip'] * 2] if plan.strip else []
    axes = figure.subplot_mosaic(
        mosaic, height_ratios=[each for each in plan[:3] if each],
        width_ratios=(_MAP_SHARE, 1.0 - _MAP_SHARE) if plan.is_beside else (1.0, 1.0))
    if title:
        figure.suptitle(title, x=0.01, ha='left', fontsize=_TITLE_PT * size.text_scale,
                        fontweight='bold' if title.isascii() else 'normal')
    if facts:
        axes['map'].set_title(facts, loc='left', fontsize=_FACTS_PT * size.text_scale,
                              color=QUIET)
    if 'strip' in axes:
        _set_strip(axes['strip'], scene, style)
    if has_bar:
        beside = [axes['map'], axes['detail']] if plan.is_beside else [axes['map']]
        _add_color_bar(figure, beside, scene, style)
    page = Page(figure, axes['map'], Map(area, 1.0), axes.get('strip'))
    _fill(page, axes.get('detail'), plan.detail, scene, style, instant, band, is_ground=is_ground)
    if page.strip is None and scene.has_curves:
        page.notes.append('no room for the speeds over time')
    return page


def _fill(page: Page, detail_axes: Axes | None, detail: Area | None, scene: Scene,
          style: PictureStyle, instant: int, band: SpeedBand, *, is_ground: bool) -> None:
    """Draw the maps and the strip, whose places matplotlib chooses by their axes."""
    size, figure = style.size, page.figure
    both = [(page.axes, scene.area())]
    if detail_axes is not None and detail is not None:
        both.append((detail_axes, detail))
    for axes, _ in both:
        axes.set(xlabel=styles.X_TITLE, ylabel='' if size.is_compact else styles.Y_TITLE)
        if size.is_compact:
            # Beside the scale.
            axes.set_xlabel(styles.X_TITLE, loc='left')
    # Numbers on the axes follow from the limits, and their widths from the numbers.
    for _ in range(2):
        figure.draw_without_rendering()
        views = [maps.map_on(*each) for each in both]
    figure.draw_without_rendering()
    figure.set_layout_engine('none')
    views = [maps.map_on(*each) for each in both]
    page.view = views[0]
    for (axes, _), view in reversed(list(zip(both, views, strict=True))):
        is_detail = axes is detail_axes
        shown_larger = None if is_detail or len(views) == 1 else views[1].area
        _draw_map(scene, -1 if is_ground else instant, style, axes, view, shown_larger,
                  is_detail=is_detail)
    if page.strip is not None:
        omitted = draw_strip(page.strip, scene, -1 if is_ground else instant, style, band)
        in_key = {text for _, text in actor_key(scene)} \
            if style.coloring == BY_ACTOR and style.has_legend else set()
        unnamed = [name for name in omitted if abbreviated(name) not in in_key]
        if unnamed:
            page.notes.append(f'curves without room for a name: {listed(unnamed, _N_NAMES)}')


def _draw_map(scene: Scene, instant: int, style: PictureStyle, axes: Axes, view: Map,
              detail: Area | None, *, is_detail: bool) -> None:
    maps.draw_roads(axes, scene, view.area)
    maps.draw_tracks(axes, scene, style.coloring, 2.2 if is_detail else 1.4)
    if detail is not None:
        (left, right), (low, high) = detail.x_range, detail.y_range
        axes.add_patch(Rectangle(
            (left, low), right - left, high - low, facecolor='none', edgecolor=QUIET,
            linewidth=0.9, linestyle=CLOSE_UP_DASHES, zorder=4))
    if instant >= 0:
        samples = maps.visible_samples(scene, instant, [view.area])
        changes = maps.free_lane_changes(scene, samples, view)
        maps.draw_lane_changes(axes, changes, 1.3 if is_detail else 1.0)
        maps.draw_actors(axes, scene, samples, style.coloring, view.inches_per_m)
        if style.names and (is_detail or len(samples) <= MAX_NAMED):
            maps.draw_names(axes, scene, samples, view.inches_per_m, changes, detail,
                            size_pt=style.size.name_pt)
    if not style.size.is_paper:
        maps.draw_scale_bar(axes, view.inches_per_m)
    if not len(scene.actor):
        axes.text(0.5, 0.5, styles.NOTHING, transform=axes.transAxes, ha='center', va='center',
                  color=QUIET, fontsize=12)


def _facts(scene: Scene, instant: int, area: Area, style: PictureStyle) -> str:
    """Return the facts, and the actors that are not on the map, in lines that fit the page."""
    facts, size = [*scene.facts(), *style.facts], style.size
    if instant >= 0:
        facts.append(f'boxes at {seconds(scene.time_s[instant])}')
    # Letters are 0.6 times as wide as high.
    n_letters = int((size.width - 0.8) * 72.0 / (0.6 * _FACTS_PT * size.text_scale))
    return '\n'.join(
        line.replace('\xa0', ' ')
        for texts in (facts, maps.not_shown(scene, instant, area) if instant >= 0 else [])
        for line in textwrap.wrap('  ·  '.join(text.replace(' ', '\xa0') for text in texts),
                                  n_letters, break_long_words=False))


def _add_color_bar(figure: Figure, axes: list[Axes], scene: Scene, style: PictureStyle) -> None:
    is_compact = style.size.is_compact
    bar = figure.colorbar(
        ScalarMappable(Normalize(*speed_range(scene)), SPEEDS), ax=axes, pad=0.01, fraction=0.04,
        aspect=30, ticks=MaxNLocator(6, steps=_STEPS),
        label='' if is_compact else styles.SPEED_TITLE)
    bar.ax.set_frame_on(False)
    bar.ax.grid(visible=False)
    if is_compact:
        bar.ax.set_title('m/s', fontsize='medium', pad=3.0)
    # Lines of their own color close the seams; matplotlib would make an image of so many.
    assert bar.solids is not None
    bar.solids.set(rasterized=False, edgecolor='face', linewidth=0.3)


def _set_strip(axes: Axes, scene: Scene, style: PictureStyle) -> None:
    """Set the limits and the numbers of the axes of speeds over time."""
    low, high = speed_range(scene)
    # The ends of the color scale would leave blank bands above and below the curves.
    speeds = scene.tracks.speed[scene.moves[scene.tracks.actor]]
    slowest = max(float(np.nanmin(speeds, initial=high)), low)
    fastest = float(np.nanmax(scene.tracks.speed, initial=low))
    if fastest >= slowest:
        room = max(_ROOM * (fastest - slowest), _LEAST_ROOM_MPS)
        # A curve on the frame would be hidden. No speed is below 0, but a curve at 0 needs room.
        low, high = max(slowest - room, -room / 2), fastest + room
    size = style.size
    axes.set(xlim=(0.0, scene.duration_s or 1.0), xlabel=styles.TIME_TITLE, ylim=(low, high),
             ylabel='' if size.is_compact else styles.SPEED_TITLE)
    for axis, n_ticks in ((axes.xaxis, _TICKS_PER_INCH * (size.width - 1.0)), (axes.yaxis, 6.0)):
        axis.set_major_locator(MaxNLocator(min(max(int(n_ticks), 3), _MAX_TICKS), steps=_STEPS))
        axis.set_minor_locator(AutoMinorLocator())
    if not (size.is_compact or size.is_paper):
        kph = axes.twinx()
        kph.grid(visible=False)
        kph.yaxis.set_major_locator(MaxNLocator(6, steps=_STEPS))
        kph.set(ylim=(low * styles.KPH_PER_MPS, high * styles.KPH_PER_MPS),
                ylabel=styles.SPEED_KPH_TITLE)


def draw_strip(axes: Axes, scene: Scene, instant: int, style: PictureStyle,
               band: SpeedBand) -> list[str]:
    """Draw the speeds, the ego's on top, and a line at one instant; return names without room."""
    if band.n_others:
        axes.fill_between(band.time_s, band.slowest, band.fastest, color=styles.BAND,
                          linewidth=0.0, zorder=1.5)
        axes.plot(band.time_s, band.median, color=QUIET, linewidth=styles.MEDIAN_PT,
                  linestyle=DASHED, zorder=1.6)
    colors = _draw_lines(axes, scene, style.coloring, band.has_line)
    if instant >= 0:
        # Not clipped, so that the line has its whole width at the edges.
        axes.axvline(scene.time_s[instant], color=DARK, linewidth=styles.INSTANT_PT,
                     clip_on=False, zorder=4)
        axes.plot([scene.time_s[instant]], [1.0], marker='v', markersize=6.0, color=DARK,
                  transform=axes.get_xaxis_transform(), clip_on=False, zorder=4)
    return _name_lines(axes, scene, colors, band.has_line, style.size.name_pt) \
        if style.names else []


def _draw_lines(axes: Axes, scene: Scene, coloring: str, has_line: Bools) -> Floats:
    """Draw the lines; return the color of each actor, (A, 4)."""
    drawn = scene.tracks
    begin, end = drawn.segments(has_line)
    lines = np.stack([np.stack([drawn.time_s[row], drawn.speed[row]], axis=-1)
                      for row in (begin, end)], axis=1)
    is_ego = scene.is_ego[drawn.actor[begin]]
    # If each actor has its own color, the color connects its name with its line.
    has_colors = coloring == BY_ACTOR or int(scene.moves.sum()) <= len(styles.ACTORS)
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


def _name_lines(axes: Axes, scene: Scene, colors: Floats, has_line: Bools,
                size_pt: float) -> list[str]:
    """Write the names of lines that cover nothing, the ego's first; return those without room."""
    drawn = scene.tracks
    begin, end = drawn.segments(has_line & np.isin(
        np.arange(len(scene.names)), drawn.actor[np.isfinite(drawn.speed)]))
    with np.errstate(invalid='ignore'):
        pixels = axes.transData.transform(np.nan_to_num(
            np.column_stack((drawn.time_s, drawn.speed.astype(np.float64)))))
    points = maps.points_along(pixels[begin], pixels[end])
    labels = maps.Labels(axes, np.zeros((0, 4)), points)
    gap, shares, omitted = _GAP_PT * labels.point, np.array(_SHARES), []
    order = np.argsort(~scene.is_ego, kind='stable')
    for actor in order[np.isin(order, drawn.actor[begin])].tolist():
        rows = np.flatnonzero((drawn.actor == actor) & np.isfinite(drawn.speed))
        text, size = labels.text(scene.names[actor], colors[actor], size_pt, LINE_NAME_GID)
        times = drawn.time_s[rows]
        at = times[0] + shares * (times[-1] - times[0])
        x, y = (np.interp(at, times, column) for column in pixels[rows].T)
        left = np.clip(x - shares * size[0], labels.view[0] + gap,
                       labels.view[2] - gap - size[0])
        # Above or below the line.
        low = np.column_stack((np.tile(left, 2), np.concatenate((y + gap, y - gap - size[1]))))
        costs = 0.01 * np.arange(len(low), dtype=np.float64)
        if labels.place(text, np.hstack((low, low + size)), costs,
                        np.inf if scene.is_ego[actor] else _MAX_COVERED) is None:
            omitted.append(scene.names[actor])
    return omitted

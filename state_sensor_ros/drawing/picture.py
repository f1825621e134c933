# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Draw a scene as a picture: a map, a close-up if it shows more, speeds over time, legends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
import math
from typing import BinaryIO, NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator
import numpy as np

from state_sensor_ros.drawing import layers
from state_sensor_ros.drawing.figures import ShownFigure
from state_sensor_ros.drawing.layers import DASHED, Fonts, style_of
from state_sensor_ros.drawing.map_layout import (
    layout_of,
    Map,
    MapLayout,
    not_shown,
    visible_samples,
)
from state_sensor_ros.drawing.marks import (
    actor_key,
    ego_text,
    EXAMPLE,
    FILLS,
    legend_marks,
    Mark,
    marks_of,
    speed_range,
    SPEEDS,
)
from state_sensor_ros.drawing.names import draw_names
from state_sensor_ros.drawing.scene import Scene, speed_band, SpeedBand
from state_sensor_ros.drawing.speed_strip import draw_strip
from state_sensor_ros.drawing.style import (
    BAND,
    BY_ACTOR,
    BY_SPEED,
    DARK,
    EGO_BED,
    INSTANT_PT,
    MEDIAN_PT,
    NOTHING,
    OBJECT_EDGE,
    PageSize,
    PictureStyle,
    QUIET,
    SIGN_EDGE,
    SPEED_TITLE,
    X_TITLE,
    Y_TITLE,
)
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import Rows
from state_sensor_ros.texts import abbreviated, listed, seconds

Dashes = tuple[float, tuple[float, ...]]
CLOSE_UP_DASHES: Dashes = (0, (4, 2))


class LegendEntry(NamedTuple):
    """A label and its artists, drawn over each other."""

    artists: tuple[Patch | Line2D, ...]
    label: str


def map_entries(scene: Scene, samples: Rows, views: Sequence[Map], coloring: str,
                fonts: Fonts, *, names_ego: bool = True) -> list[LegendEntry]:
    """Return an entry for each mark in view, in the order of :class:`Mark`."""
    # samples: samples that are shown, int64.
    # coloring: ``speed`` or ``actor``.
    marks = legend_marks(scene, samples, coloring) - {Mark.ASSUMED}
    for view in views:
        in_view = samples[view.area.contains(scene.position_xy[samples])]
        large = in_view[~layers.are_dots(scene, in_view, view.inches_per_m)]
        marks |= marks_of(scene, large) & {Mark.ASSUMED}
        if layers.free_lane_changes(scene, in_view, view):
            marks.add(Mark.LANE_CHANGE)
    if len(views) > 1:
        marks.add(Mark.CLOSE_UP)
    entries = [_entry(mark) for mark in Mark if mark in marks]
    if {Mark.EGO, Mark.EGO_TRACK} <= marks:
        # One entry for both.
        track = next(entry for entry in entries if entry.label == Mark.EGO_TRACK.value)
        entries.remove(track)
        label = fonts.drawable(ego_text(scene)) if names_ego else Mark.EGO.value
        entries[0] = LegendEntry((*track.artists, *entries[0].artists), label)
    return entries


def strip_entries(instant: int, band: SpeedBand) -> list[LegendEntry]:
    """Return the entries of the speeds over time; lines have names instead."""
    # instant: instant of the footprints, -1 for none.
    line = Line2D([], [], color=DARK, linewidth=INSTANT_PT)
    entries = [LegendEntry((line,), 'time of the boxes')] if instant >= 0 else []
    if band.n_others:
        entries.append(LegendEntry((Patch(facecolor=BAND, edgecolor='none'), Line2D(
            [], [], color=QUIET, linewidth=MEDIAN_PT, linestyle=DASHED)), band.text))
    return entries


def _entry(mark: Mark) -> LegendEntry:
    fill = FILLS.get(mark, 'white')
    artist: Patch | Line2D
    if mark in (Mark.EGO, Mark.VEHICLE, Mark.UNKNOWN_SPEED):
        artist = Patch(facecolor=fill, edgecolor=DARK, linewidth=0.7)
    elif mark is Mark.OBJECT:
        artist = _marker('s', fill, OBJECT_EDGE, 0.7, 4.0)
    elif mark is Mark.ASSUMED:
        artist = Patch(facecolor='white', edgecolor=DARK, linestyle=DASHED)
    elif mark is Mark.SIGN:
        artist = _marker('o', fill, SIGN_EDGE, 1.4, 8.0)
    elif mark is Mark.OTHER_SIGN:
        artist = _marker('o', fill, SIGN_EDGE, 1.4, 6.5)
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
        color, width = (EGO_BED, 4.5) if mark is Mark.EGO_TRACK \
            else (EXAMPLE, 1.4)
        artist = Line2D([], [], color=color, linewidth=width)
    return LegendEntry((artist,), mark.value)


def _marker(shape: str, fill: str, edge: str, width: float, size: float) -> Line2D:
    return Line2D([], [], marker=shape, color='none', markerfacecolor=fill, markeredgecolor=edge,
                  markeredgewidth=width, markersize=size)


def actor_entries(scene: Scene, fonts: Fonts) -> list[LegendEntry]:
    """Return an entry for each color of vehicles."""
    return [LegendEntry((Patch(facecolor=color, edgecolor=DARK, linewidth=0.4),),
                        fonts.drawable(text)) for color, text in actor_key(scene)]


class Entries:
    """
    A legend in as few lines as the width allows.

    ``height`` in inches, 0 without entries.
    """

    def __init__(self, entries: Sequence[LegendEntry], width: float) -> None:
        self._entries = entries
        self._n_columns = len(entries)
        size = self._size()
        while size[0] > width and self._n_columns > 1:
            self._n_columns -= 1
            size = self._size()
        self.height = size[1]

    def draw(self, figure: Figure, left: float, top: float) -> None:
        """Add the legend to a page."""
        if self._entries:
            width, height = figure.get_size_inches()
            self._legend(figure, (left / width, 1.0 - top / height))

    def _legend(self, figure: Figure, anchor: tuple[float, float]) -> Legend:
        handlers = {entry.artists: HandlerTuple(1, pad=0.0) for entry in self._entries}
        return figure.legend(
            handles=[entry.artists for entry in self._entries],
            labels=[entry.label for entry in self._entries], handler_map=handlers,
            loc='upper left', ncols=self._n_columns, frameon=False, bbox_to_anchor=anchor,
            borderaxespad=0.0, borderpad=0.0)

    def _size(self) -> tuple[float, float]:
        """Return width and height on a page of its own, inches."""
        if not self._entries:
            return 0.0, 0.0
        figure = Figure(dpi=100.0)
        FigureCanvasAgg(figure)
        box = self._legend(figure, (0.0, 1.0)).get_window_extent()
        return box.width / figure.dpi, box.height / figure.dpi


# Heights of the lines, spaces above and below the maps, and least heights, inches.
_TITLE, _LINE, _SPACE = 0.31, 0.21, 0.16
_STRIP, _LEAST_STRIP, _LEAST_MAP, _LEAST_MAP_SHARE = 1.9, 0.6, 0.5, 0.35
_TITLE_PT, _FACTS_PT = 13.0, 9.0
# The map of a whole recording has names up to this many actors.
MAX_NAMED = 40
_MAX_TITLE, _LETTERS_PER_INCH = 80, 7.2
# Half of the number of an axis reaches above a map, inches; narrower pages have a lower strip.
_TICK, _NARROW = 0.06, 6.5
# Most names in a note.
_N_NAMES = 5


def write_picture(scene: Scene, handle: BinaryIO, style: PictureStyle, *, format_: str = 'png',
                  at_s: float | None = None) -> Sequence[str]:
    """Write ``scene`` as a picture; return notes of what has no room on it."""
    fonts = Fonts([style.title, *scene.names])
    with rc_context(style_of(fonts, style.size)):
        page = draw_page(scene, style, scene.instant_at(at_s), fonts)
        # The same bytes for the same recording.
        metadata = {'svg': {'Date': None}, 'pdf': {'CreationDate': None}}.get(format_)
        page.figure.savefig(handle, format=format_, dpi=style.size.dpi, metadata=metadata)
    return page.notes


def scene_figure(scene: Scene, style: PictureStyle, at_s: float | None = None) -> Figure:
    """Return ``scene`` as a figure."""
    # at_s: time of the footprints as in :meth:`Scene.instant_at`.
    fonts = Fonts([style.title, *scene.names])
    with rc_context(style_of(fonts, style.size)):
        return draw_page(scene, style, scene.instant_at(at_s), fonts).figure


class Page:
    """A page with distances from the left and from the top in inches."""

    whole: Axes  # the map of the whole recording
    view: Map
    strip: Axes | None = None  # the speeds, None if they are not drawn: set by :func:`draw_page`

    def __init__(self, size: PageSize, height: float) -> None:
        self.size = size
        self._height = height if size.height is None else size.height
        self.notes: list[str] = []  # of what has no room: extended by :func:`draw_page`
        self.figure = ShownFigure((size.width, self._height), dpi=size.dpi, facecolor='white')
        FigureCanvasAgg(self.figure)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Add axes."""
        return self.figure.add_axes((
            left / self.size.width, 1.0 - (top + height) / self._height,
            width / self.size.width, height / self._height))

    def text(self, top: float, text: str, size: float, color: str, weight: str) -> None:
        """Write a line at the left margin."""
        self.figure.text(self.size.left / self.size.width, 1.0 - top / self._height, text,
                         va='top', fontsize=size * self.size.text_scale, color=color,
                         fontweight=weight)


def draw_page(scene: Scene, style: PictureStyle, instant: int, fonts: Fonts, *,
              is_ground: bool = False) -> Page:
    """Draw a page; a height that is not given follows from the content."""
    # instant: instant of the footprints, -1 for none.
    size, coloring = style.size, style.coloring
    if not scene.has_speeds:
        size = replace(size, has_scale=False)
    width = size.inner
    bottom = size.bottom
    space = _SPACE / 2 if size.is_paper else _SPACE

    def legend(entries: list[LegendEntry]) -> Entries:
        return Entries(entries if style.has_legend else [], size.legend_width)

    key = legend(actor_entries(scene, fonts) if coloring == BY_ACTOR else [])
    band = speed_band(scene)
    over_strip = legend(strip_entries(instant, band))
    around_strip = over_strip.height + space / 2 + bottom
    # A first guess of the maps, from which the legend and the facts follow.
    guess = layout_of(scene, instant, width, has_detail=not is_ground, size=size)
    views = [guess.whole] if guess.detail is None else [guess.whole, guess.detail]
    shown = np.arange(len(scene.actor)) if is_ground else visible_samples(
        scene, instant, [view.area for view in views])
    head = legend(map_entries(scene, shown, views, coloring, fonts,
                              names_ego=not size.is_paper))
    lines = [] if size.is_paper else [fonts.drawable(line) for line in _facts(
        scene, -1 if is_ground else instant, guess.whole, style)]
    # Distances from the top of the page, inches.
    title_height = _TITLE if style.title else 0.0
    head_top = size.top + (title_height + len(lines) * _LINE) * size.text_scale + (
        space / 2 if style.title or lines else 0.0)
    maps_top = head_top + head.height + (space if head.height else _TICK)
    strip = _STRIP * (0.6 if size.width < _NARROW else 1.0) if scene.has_curves else 0.0
    layout = guess
    if size.height is not None:
        below = space if key.height or not size.is_paper else 0.0
        rest = size.height - maps_top - bottom - key.height - below
        if rest < _LEAST_MAP:
            least = math.ceil(10.0 * (size.height - rest + _LEAST_MAP)) / 10.0
            raise ConfigError('size', f'{size.width:g}x{size.height:g}',
                              f'a taller page: at least {least:g} inches')
        strip = min(strip, 0.3 * rest, rest - around_strip - _LEAST_MAP_SHARE * size.height)
        if strip < _LEAST_STRIP:
            strip = 0.0
        maps_height = rest - (strip + around_strip if strip else 0.0)
        layout = layout_of(
            scene, instant, width, maps_height, has_detail=not is_ground, size=size)
        if guess.detail is not None and layout.detail is None:
            # Without the entry of the close-up, for which the page is too low.
            head = legend(map_entries(scene, shown, [layout.whole], coloring, fonts,
                                      names_ego=not size.is_paper))
    strip_top = maps_top + layout.height + bottom + over_strip.height + space / 2
    key_top = strip_top + strip + bottom if strip else maps_top + layout.height + bottom
    page = Page(size, key_top + key.height + (space if key.height else 0.0))

    title = fonts.drawable(abbreviated(
        style.title, min(_MAX_TITLE, int(_LETTERS_PER_INCH * size.width / size.text_scale))))
    page.text(size.top, title, _TITLE_PT, DARK, 'bold' if title.isascii() else 'normal')
    for k, line in enumerate(lines):
        page.text(size.top + (title_height + k * _LINE) * size.text_scale, line, _FACTS_PT, QUIET,
                  'normal')
    head.draw(page.figure, size.left, head_top)
    key.draw(page.figure, size.left, key_top)
    _draw_maps(page, maps_top, layout, partial(
        _draw_map, scene, instant, style, fonts, is_ground=is_ground))
    if strip:
        over_strip.draw(page.figure, size.left, strip_top - over_strip.height - space / 2)
        page.strip = page.axes(size.left, strip_top, width, strip)
        omitted = draw_strip(page.strip, scene, -1 if is_ground else instant, coloring, band,
                             fonts=fonts if style.names else None, size=size)
        in_key = {text for _, text in actor_key(scene)} if key.height else set()
        unnamed = [name for name in omitted if abbreviated(name) not in in_key]
        if unnamed:
            page.notes.append(f'curves without room for a name: {listed(unnamed, _N_NAMES)}')
    elif scene.has_curves:
        page.notes.append('no room for the speeds over time')
    if coloring == BY_SPEED and scene.has_speeds:
        _draw_color_bar(page.axes(size.left + width + 0.08 * size.text_scale, maps_top,
                                  0.14 * size.text_scale, layout.whole.height), scene, size)
    return page


def _draw_map(scene: Scene, instant: int, style: PictureStyle, fonts: Fonts, axes: Axes,
              view: Map, detail: Map | None, *, is_ground: bool, is_detail: bool) -> None:
    axes.set(xlim=view.area.x_range, ylim=view.area.y_range,
             xlabel=X_TITLE, ylabel='' if style.size.is_compact else Y_TITLE)
    if style.size.is_compact:
        # Beside the scale.
        axes.set_xlabel(X_TITLE, loc='left')
    layers.draw_roads(axes, scene, view.area)
    layers.draw_tracks(axes, scene, style.coloring, 2.2 if is_detail else 1.4)
    if not is_ground:
        samples = visible_samples(scene, instant, [view.area])
        changes = layers.free_lane_changes(scene, samples, view)
        layers.draw_lane_changes(axes, changes, 1.3 if is_detail else 1.0)
        layers.draw_actors(axes, scene, samples, style.coloring, view.inches_per_m)
        if style.names and (is_detail or len(samples) <= MAX_NAMED):
            draw_names(axes, scene, samples, fonts, view.inches_per_m, changes,
                       None if detail is None else detail.area, size_pt=style.size.name_pt)
    if not style.size.is_paper:
        layers.draw_scale_bar(axes, view.inches_per_m)
    if not len(scene.actor):
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha='center', va='center',
                  color=QUIET, fontsize=12)


def _draw_maps(page: Page, top: float, layout: MapLayout, draw: Callable[..., None]) -> None:
    whole, detail = layout.whole, layout.detail
    size = page.size
    page.view, page.whole = whole, page.axes(size.left, top, whole.width, whole.height)
    if detail is not None:
        (left, right), (low, high) = detail.area.x_range, detail.area.y_range
        page.whole.add_patch(Rectangle(
            (left, low), right - left, high - low, facecolor='none', edgecolor=QUIET,
            linewidth=0.9, linestyle=CLOSE_UP_DASHES, zorder=4))
        left = size.left + size.inner - detail.width if layout.is_beside else size.left
        below = 0.0 if layout.is_beside else whole.height + size.gap
        draw(page.axes(left, top + below, detail.width, detail.height), detail, None,
             is_detail=True)
    draw(page.whole, whole, detail, is_detail=False)


def _facts(scene: Scene, instant: int, whole: Map, style: PictureStyle) -> list[str]:
    """Return the facts, and the actors that are not on the map, in lines that fit the page."""
    facts, size = [*scene.facts(), *style.facts], style.size
    if instant >= 0:
        facts.append(f'boxes at {seconds(scene.time_s[instant])}')
    lines: list[str] = []
    for texts in (facts, not_shown(scene, instant, whole.area) if instant >= 0 else []):
        line = ''
        for text in texts:
            longer = f'{line}  ·  {text}' if line else text
            if line and _width(longer, _FACTS_PT * size.text_scale) > size.inner + size.right:
                lines.append(line)
                longer = text
            line = longer
        lines += [line] if line else []
    return lines


def _width(text: str, size_pt: float) -> float:
    figure = Figure(dpi=100.0)
    FigureCanvasAgg(figure)
    return float(figure.text(0.0, 0.0, text, fontsize=size_pt).get_window_extent().width) / 100.0


def _draw_color_bar(axes: Axes, scene: Scene, size: PageSize) -> None:
    mappable = ScalarMappable(Normalize(*speed_range(scene)), SPEEDS)
    bar = axes.figure.colorbar(mappable, cax=axes, ticks=MaxNLocator(6, steps=(1, 2, 5, 10)),
                               label='' if size.is_compact else SPEED_TITLE)
    bar.ax.set_frame_on(False)
    bar.ax.grid(visible=False)
    if size.is_compact:
        bar.ax.set_title('m/s', fontsize='medium', pad=3.0)
    # Lines of their own color close the seams; matplotlib would make an image of so many.
    assert bar.solids is not None
    bar.solids.set(rasterized=False, edgecolor='face', linewidth=0.3)

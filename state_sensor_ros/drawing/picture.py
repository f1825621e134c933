# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Draw a scene as a picture: a map, a close-up if it shows more, speeds over time, a legend.

matplotlib lays out a page without a legend; what is in view then decides its legend, and what
texts and axes take of its height decides the heights of maps and speeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
import math
import textwrap
from typing import Any, BinaryIO, TypeAlias

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
import numpy as np

from state_sensor_ros.drawing import map as maps
from state_sensor_ros.drawing import marks
from state_sensor_ros.drawing import style as styles
from state_sensor_ros.drawing.map import DASHED, Map
from state_sensor_ros.drawing.marks import Mark
from state_sensor_ros.drawing.scene import Area, Scene, speed_band, SpeedBand
from state_sensor_ros.drawing.style import BY_ACTOR, BY_SPEED, DARK, EGO, PictureStyle, QUIET
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import Floats
from state_sensor_ros.texts import abbreviated, counted, one_line, seconds

# Artists that are drawn over each other, and their label. matplotlib has no type for the former.
Entry: TypeAlias = tuple[tuple[Any, ...], str]
_OUTLINE: dict[str, Any] = {'edgecolor': QUIET, 'linewidth': 0.9, 'linestyle': (0.0, (4.0, 2.0))}
# Height of a page that has room for everything, inches.
_TALL = 20.0
# Least heights, inches.
_LEAST = {'map': 0.5, 'detail': 0.8, 'strip': 0.4}
# Relative heights of a page of a given one.
_SHARES_OF_REST = {'map': 1.0, 'detail': 0.5, 'strip': 0.4}
# Heights without a given one: of the strip, inches; least and greatest of the map, and of the
# close-up, as fractions of their width. A close-up has at least this many times the scale.
_STRIP, _LOWEST, _HIGHEST, _CLOSE_UP, _CLOSE_UP_TIMES = 1.9, 0.32, 0.7, 0.28, 2.0
_TITLE_PT, _FACTS_PT = 13.0, 9.0
# The map of a whole recording has names up to this many actors.
MAX_NAMED = 40
_MAX_TITLE, _LETTERS_PER_INCH = 80, 7.2
LINE_NAME_GID = 'name of a line'
# Distance of a name from its line, points; its possible places, as shares of the line; points of
# lines that a name other than the ego's may cover.
_GAP_PT, _SHARES, _MAX_COVERED = 2.0, (0.98, 0.02, 0.5, 0.75, 0.25, 0.9, 0.1, 0.62, 0.38), 2
# Room above and below the curves, as a share of their height, and at least this.
_ROOM, _LEAST_ROOM_MPS = 0.06, 0.5
# Of the figures of tracks and measures, inches; of these and of pictures in notebooks.
_SMALL, _SMALL_DPI = (8.0, 2.6), 100.0


class ShownFigure(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        stream = BytesIO()
        self.savefig(stream, format='png')
        return stream.getvalue()


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
    """Return ``scene`` as a figure; ``at_s``: as in :meth:`Scene.instant_at`."""
    with maps.settings_of(style.size):
        return draw_page(scene, style, scene.instant_at(at_s)).figure


def draw_page(scene: Scene, style: PictureStyle, instant: int, *,
              is_ground: bool = False) -> Page:
    """
    Draw a page; a height that is not given follows from the content.

    :param instant: instant of the footprints, -1 for none.
    :param is_ground: without the actors, for a film.
    :raises ConfigError: if the page is too low.
    """
    detail = None if is_ground else _detail(scene, instant, style.size)
    for wanted, has_strip in dict.fromkeys((
            (detail, scene.has_curves), (None, scene.has_curves), (None, False))):
        drawer = _Drawer(scene, style, -1 if is_ground else instant, wanted, has_strip=has_strip)
        missing = drawer.lay_out(instant)
        if missing <= 0.0:
            return drawer.page()
    size = style.size
    raise ConfigError('size', f'{size.width:g}x{size.height:g}', 'a taller page: at least '
                      f'{math.ceil(10.0 * (size.height or 0.0) + 10.0 * missing) / 10.0:g} inches')


def _detail(scene: Scene, instant: int, size: styles.PageSize) -> Area | None:
    """Return the area of a close-up of the ego if it shows more than the whole map."""
    area, width = scene.area(), size.width - 1.0
    whole = min(width / area.width, min(_HIGHEST * width, size.height or math.inf) / area.height)
    detail = maps.around_ego(scene, instant, _CLOSE_UP)
    if detail is None or whole >= maps.CLOSE_UP_BELOW \
            or width / maps.CLOSE_UP_M < _CLOSE_UP_TIMES * whole:
        return None
    # It shows others, too, unless the map shows dots.
    n_shown = len(maps.visible_samples(scene, instant, [detail]))
    return detail if n_shown > 1 or maps.is_dot(whole) else None


class _Drawer:
    """Draws one page with chosen parts."""

    def __init__(self, scene: Scene, style: PictureStyle, instant: int, detail: Area | None, *,
                 has_strip: bool) -> None:
        self._scene, self._style, self._instant, size = scene, style, instant, style.size
        self._band, self._area = speed_band(scene), scene.area()
        self._figure = ShownFigure((size.width, _TALL), dpi=size.dpi, facecolor='white',
                                   layout=ConstrainedLayoutEngine(
                                       w_pad=0.06, h_pad=0.05, hspace=0.03, wspace=0.02))
        FigureCanvasAgg(self._figure)
        self._rows = ['map', *['detail'] * (detail is not None), *['strip'] * has_strip]
        self._axes = self._figure.subplot_mosaic([[name] for name in self._rows])
        # Area and axes of each map, the close-up last.
        self._maps = [(self._axes[name], area) for name, area in (
            ('map', self._area), ('detail', detail)) if area is not None]
        self._views = [Map(area, 0.0) for _, area in self._maps]
        self._set_texts(has_strip=has_strip)

    def _set_texts(self, *, has_strip: bool) -> None:
        """Write titles, facts and axes."""
        figure, style, scene, size = self._figure, self._style, self._scene, self._style.size
        title = one_line(abbreviated(style.title, min(
            _MAX_TITLE, int(_LETTERS_PER_INCH * size.width / size.text_scale))))
        if title:
            figure.suptitle(title, x=0.01, ha='left', fontsize=_TITLE_PT * size.text_scale,
                            fontweight='bold' if title.isascii() else 'normal')
        if not size.is_paper:
            self._axes['map'].set_title(self._facts(), loc='left', color=QUIET,
                                        fontsize=_FACTS_PT * size.text_scale)
        for axes, _ in self._maps:
            axes.set(xlabel=styles.X_TITLE, ylabel='' if size.is_compact else styles.Y_TITLE)
        if has_strip:
            self._set_strip(self._axes['strip'])
        if style.coloring == BY_SPEED and scene.has_speeds:
            bar = figure.colorbar(
                ScalarMappable(Normalize(*marks.speed_range(scene)), marks.SPEEDS),
                ax=self._axes['map'], pad=0.01, fraction=0.04, aspect=30,
                label='' if size.is_compact else styles.SPEED_TITLE)
            bar.ax.set_frame_on(False)
            bar.ax.grid(visible=False)
            if size.is_compact:
                bar.ax.set_title('m/s', fontsize='medium', pad=3.0)
            # Lines of their own color close the seams; matplotlib would make an image of so many.
            assert bar.solids is not None
            bar.solids.set(rasterized=False, edgecolor='face', linewidth=0.3)

    def _facts(self) -> str:
        """Return the facts in lines that fit the page."""
        scene, size, instant = self._scene, self._style.size, self._instant
        facts = [*scene.facts(), *self._style.facts]
        if instant >= 0:
            facts.append(f'boxes at {seconds(scene.time_s[instant])}')
            n_shown = len(maps.visible_samples(scene, instant, [self._area]))
            if n_shown < len(scene.names):
                facts.append(f'{n_shown} of {counted(len(scene.names), "actor")} on the map')
        # Letters are 0.6 times as wide as high.
        n_letters = int((size.width - 0.8) * 72.0 / (0.6 * _FACTS_PT * size.text_scale))
        text = '  ·  '.join(fact.replace(' ', '\xa0') for fact in facts)
        return '\n'.join(textwrap.wrap(text, n_letters, break_long_words=False)
                         ).replace('\xa0', ' ')

    def _set_strip(self, axes: Axes) -> None:
        """Set the limits of the axes of speeds over time."""
        scene, size = self._scene, self._style.size
        speeds = scene.tracks.speed[scene.moves[scene.tracks.actor]]
        slowest, fastest = float(np.nanmin(speeds)), float(np.nanmax(speeds))
        room = max(_ROOM * (fastest - slowest), _LEAST_ROOM_MPS)
        # A curve on the frame would be hidden. No speed is below 0, but a curve at 0 needs room.
        low, high = max(slowest - room, -room / 2), fastest + room
        axes.set(xlim=(0.0, scene.duration_s), xlabel=styles.TIME_TITLE, ylim=(low, high),
                 ylabel='' if size.is_compact else styles.SPEED_TITLE)

    def lay_out(self, instant: int) -> float:
        """Lay out the page; return the height that it lacks, inches."""
        # instant: whose actors are in view, also for a film.
        figure, size, axes = self._figure, self._style.size, self._axes
        self._set_views()
        self._add_legend(self._entries(instant) if self._style.has_legend else [])
        figure.draw_without_rendering()
        inches = {name: axes[name].get_window_extent().height / figure.dpi for name in self._rows}
        rest = None if size.height is None else size.height - _TALL + sum(inches.values())
        heights = self._heights(axes['map'].get_window_extent().width / figure.dpi, rest)
        missing = max(_LEAST[name] - height for name, height in heights.items())
        if missing <= 0.0:
            figure.set_figheight(_TALL + sum(heights.values()) - sum(inches.values()))
            grid = axes['map'].get_gridspec()
            assert grid is not None
            grid.set_height_ratios(list(heights.values()))
            # Numbers on the axes follow from the limits, and their widths from the numbers.
            self._set_views()
            self._set_views()
            figure.draw_without_rendering()
            figure.set_layout_engine('none')
            self._set_views()
        return missing

    def _heights(self, width: float, rest: float | None) -> dict[str, float]:
        """Return the heights of the rows, inches."""
        # width: of the map; rest: for all rows; None to choose it by the shape of the data.
        size, area = self._style.size, self._area
        highest = 1.0 if size.is_paper else _HIGHEST
        wanted = {
            'map': min(max(width * area.height / area.width, _LOWEST * width), highest * width),
            'detail': max(_CLOSE_UP * width, _LEAST['detail']),
            'strip': _STRIP * (0.6 if size.width < styles.COMPACT_BELOW else 1.0)}
        if rest is None:
            return {name: wanted[name] for name in self._rows}
        whole = sum(_SHARES_OF_REST[name] for name in self._rows)
        return {name: rest * _SHARES_OF_REST[name] / whole for name in self._rows}

    def _set_views(self) -> None:
        """Lay out; let the limits of the maps fill their axes."""
        if self._figure.get_layout_engine() is not None:
            self._figure.draw_without_rendering()
        self._views = [maps.map_on(axes, area) for axes, area in self._maps]

    def _entries(self, instant: int) -> list[Entry]:
        """Return the entries of the legend for what is in view, in the order of :class:`Mark`."""
        scene, size, coloring = self._scene, self._style.size, self._style.coloring
        is_ground = self._instant < 0
        samples = np.arange(len(scene.actor)) if is_ground else maps.visible_samples(
            scene, instant, [view.area for view in self._views])
        shown = marks.legend_marks(scene, samples, coloring) - {Mark.ASSUMED}
        scale = max(view.inches_per_m for view in self._views)
        shown |= {Mark.ASSUMED} & marks.marks_of(
            scene, samples[~maps.are_dots(scene, samples, scale)])
        if any(maps.free_lane_changes(scene, samples, view) for view in self._views):
            shown.add(Mark.LANE_CHANGE)
        if len(self._views) > 1:
            shown.add(Mark.CLOSE_UP)
        entries = [_entry(mark) for mark in Mark if mark in shown]
        if {Mark.EGO, Mark.EGO_TRACK} <= shown:
            # One entry for both.
            [track] = [entry for entry in entries if entry[1] == Mark.EGO_TRACK.value]
            entries.remove(track)
            label = Mark.EGO.value if size.is_paper else one_line(marks.ego_text(scene))
            entries[0] = (*track[0], *entries[0][0]), label
        if 'strip' in self._rows and not is_ground:
            line = Line2D([], [], color=DARK, linewidth=styles.INSTANT_PT)
            entries.append(((line,), 'time of the boxes'))
        if 'strip' in self._rows and self._band.n_others:
            entries.append(((Patch(facecolor=styles.BAND, edgecolor='none'), Line2D(
                [], [], color=QUIET, linewidth=styles.MEDIAN_PT, linestyle=DASHED)),
                self._band.text))
        return entries + [((Patch(facecolor=color, edgecolor=DARK, linewidth=0.4),),
                           one_line(text)) for color, text in marks.actor_key(scene)
                          if coloring == BY_ACTOR]

    def _add_legend(self, entries: Sequence[Entry]) -> None:
        """Add a legend below all else in as few lines as fit."""
        figure = self._figure
        for n_columns in range(len(entries), 0, -1):
            handles: Any = [artists for artists, _ in entries]
            legend = figure.legend(handles, [label for _, label in entries], ncols=n_columns,
                                   loc='outside lower left', borderpad=0.0)
            if legend.get_window_extent().width <= (figure.get_figwidth() - 0.15) * figure.dpi \
                    or n_columns == 1:
                return
            legend.remove()

    def page(self) -> Page:
        """Draw what depends on the final limits: maps and names."""
        scene, axes = self._scene, self._axes
        page = Page(self._figure, axes['map'], self._views[0], axes.get('strip'))
        for i in reversed(range(len(self._maps))):
            shown_larger = self._views[1].area if i == 0 and len(self._views) > 1 else None
            self._draw_map(self._maps[i][0], self._views[i], shown_larger, is_detail=i == 1)
        if page.strip is not None:
            draw_strip(page.strip, scene, self._instant, self._style, self._band)
        elif scene.has_curves:
            page.notes.append('no room for the speeds over time')
        return page

    def _draw_map(self, axes: Axes, view: Map, detail: Area | None, *, is_detail: bool) -> None:
        scene, style, instant = self._scene, self._style, self._instant
        maps.draw_ground(axes, scene, view.area, style.coloring, 2.2 if is_detail else 1.4)
        if detail is not None:
            axes.add_patch(Rectangle(
                (detail.x_range[0], detail.y_range[0]), detail.width, detail.height,
                facecolor='none', zorder=4, **_OUTLINE))
        if instant >= 0:
            samples = maps.visible_samples(scene, instant, [view.area])
            changes = maps.free_lane_changes(scene, samples, view)
            maps.draw_lane_changes(axes, changes, 1.3 if is_detail else 1.0)
            maps.draw_actors(axes, scene, samples, style.coloring, view.inches_per_m)
            if style.names and (is_detail or len(samples) <= MAX_NAMED):
                maps.draw_names(axes, scene, samples, view.inches_per_m, changes, detail,
                                size_pt=style.size.name_pt)
        if not len(scene.actor):
            axes.text(0.5, 0.5, styles.NOTHING, transform=axes.transAxes, ha='center',
                      va='center', color=QUIET, fontsize=12)


# Symbols of the legend: shape, size, edge, width of the edge, points.
_SYMBOLS = {**{mark: ('o', *look) for mark, look in marks.CIRCLES.items()},
            Mark.OBJECT: ('s', 4.0, styles.OBJECT_EDGE, 0.7),
            Mark.LANE_CHANGE: ('>', 5.5, DARK, 0.9)}
_LINES = {Mark.EGO_TRACK: (styles.EGO_BED, 4.5), Mark.TRACK: (marks.EXAMPLE, 1.4)}
_PATCHES: dict[Mark, dict[str, Any]] = {
    Mark.ASSUMED: {'edgecolor': DARK, 'linestyle': DASHED}, Mark.CLOSE_UP: _OUTLINE}


def _entry(mark: Mark) -> Entry:
    fill = marks.FILLS.get(mark, 'white')
    artist: Patch | Line2D
    if mark in _SYMBOLS:
        shape, size, edge, width = _SYMBOLS[mark]
        artist = Line2D([], [], marker=shape, color='none', markerfacecolor=fill,
                        markeredgecolor=edge, markeredgewidth=width, markersize=min(size, 8.0))
    elif mark in _LINES:
        color, width = _LINES[mark]
        artist = Line2D([], [], color=color, linewidth=width)
    else:
        artist = Patch(facecolor=fill, **_PATCHES.get(
            mark, {'edgecolor': DARK, 'linewidth': 0.7}))
    return (artist,), mark.value


def draw_strip(axes: Axes, scene: Scene, instant: int, style: PictureStyle,
               band: SpeedBand) -> None:
    """Draw the speeds, the ego's on top, a line at one instant, and the names of the lines."""
    if band.n_others:
        slowest, median, fastest = band.edges
        axes.fill_between(scene.time_s, slowest, fastest, color=styles.BAND, linewidth=0.0,
                          zorder=1.5)
        axes.plot(scene.time_s, median, color=QUIET, linewidth=styles.MEDIAN_PT,
                  linestyle=DASHED, zorder=1.6)
    # If each actor has its own color, the color connects its name with its line.
    n_actors = len(scene.names)
    has_colors = style.coloring == BY_ACTOR or int(scene.moves.sum()) <= len(styles.ACTORS)
    colors = marks.colors_of(scene, np.arange(n_actors), np.zeros(n_actors, np.float32), BY_ACTOR)
    if not has_colors:
        colors[~scene.is_ego] = to_rgba(QUIET)
    drawn = scene.tracks
    begin, end = drawn.segments(band.has_line)
    points = np.column_stack((drawn.time_s, drawn.speed))
    lines = np.stack([points[begin], points[end]], axis=1)
    is_ego = scene.is_ego[drawn.actor[begin]]
    # Round ends close the seams of opaque segments; of transparent ones, they would be visible.
    for rows, width, alpha, ends in ((~is_ego, 0.8, 0.9 if has_colors else 0.7, 'butt'),
                                     (is_ego, 2.0, 1.0, 'round')):
        axes.add_collection(LineCollection(
            list(lines[rows]), colors=colors[drawn.actor[begin[rows]]], linewidths=width,
            alpha=alpha, capstyle=ends, snap=False, zorder=3 if ends == 'round' else 2),
            autolim=False)
    if instant >= 0:
        # Not clipped, so that the line has its whole width at the edges.
        axes.axvline(scene.time_s[instant], color=DARK, linewidth=styles.INSTANT_PT,
                     clip_on=False, zorder=4)
        axes.plot([scene.time_s[instant]], [1.0], marker='v', markersize=6.0, color=DARK,
                  transform=axes.get_xaxis_transform(), clip_on=False, zorder=4)
    if style.names:
        _name_lines(axes, scene, colors, band, style.size.name_pt)


def _name_lines(axes: Axes, scene: Scene, colors: Floats, band: SpeedBand,
                size_pt: float) -> None:
    """Write the names of lines that cover nothing, the ego's first, if there is room."""
    drawn = scene.tracks
    is_known = np.isfinite(drawn.speed)
    begin, end = drawn.segments(band.has_line)
    pixels = axes.transData.transform(
        np.nan_to_num(np.column_stack((drawn.time_s, drawn.speed.astype(np.float64)))))
    both = is_known[begin] & is_known[end]
    labels = maps.Labels(axes, np.zeros((0, 4)), maps.points_along(
        pixels[begin[both]], pixels[end[both]]))
    gap, shares = _GAP_PT * labels.point, np.array(_SHARES)
    order = np.argsort(~scene.is_ego, kind='stable')
    for actor in order[np.isin(order, drawn.actor[begin[both]])].tolist():
        rows = np.flatnonzero((drawn.actor == actor) & is_known)
        text, size = labels.text(scene.names[actor], colors[actor], size_pt, LINE_NAME_GID)
        times = drawn.time_s[rows]
        at = times[0] + shares * (times[-1] - times[0])
        x, y = (np.interp(at, times, column) for column in pixels[rows].T)
        left = np.clip(x - shares * size[0], labels.view[0] + gap,
                       labels.view[2] - gap - size[0])
        # Above or below the line.
        low = np.column_stack((np.tile(left, 2), np.concatenate((y + gap, y - gap - size[1]))))
        costs = np.array([0.01 * i for i in range(len(low))])
        labels.place(text, np.hstack((low, low + size)), costs,
                     np.inf if scene.is_ego[actor] else _MAX_COVERED)


def track_figure(name: str, time_s: Floats, position_xy: Floats, speed: Floats) -> Figure:
    """
    Draw a path, and its speed over time.

    :param name: title.
    :param time_s: (T,) game times.
    :param position_xy: (T, 2) m.
    :param speed: (T,) m/s.
    """
    figure = _small_figure()
    path, strip = figure.subplots(1, 2, width_ratios=(1, 2))
    path.plot(*position_xy.T, color=EGO)
    path.plot(*position_xy[-1:].T, 'o', color=EGO)
    path.set(xlabel=styles.X_TITLE, ylabel=styles.Y_TITLE, title=name.replace('$', r'\$'))
    path.set_aspect('equal', 'datalim')
    strip.plot(time_s, speed, color=EGO)
    strip.set(xlabel='game time (s)', ylabel=styles.SPEED_TITLE)
    return figure


def measures_figure(time_s: Floats, measures: Mapping[str, Floats]) -> Figure:
    """
    Draw measures over time, one below the other.

    :param time_s: (T,) game times.
    :param measures: (T,) each, by the titles of their axes.
    """
    figure = _small_figure()
    plots = figure.subplots(len(measures), sharex=True, squeeze=False)[:, 0]
    for axes, (title, values) in zip(plots, measures.items(), strict=True):
        # A frame alone between undefined ones has no line.
        axes.plot(time_s, np.where(np.isfinite(values), values, np.nan), '.-', markersize=2,
                  color=EGO)
        axes.set_ylabel(title)
        axes.grid(color=QUIET, alpha=0.3)
    plots[-1].set_xlabel('game time (s)')
    return figure


def _small_figure() -> ShownFigure:
    figure = ShownFigure(_SMALL, dpi=_SMALL_DPI, layout='constrained')
    FigureCanvasAgg(figure)
    return figure

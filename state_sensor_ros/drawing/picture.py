# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Draw a scene as a picture: a map, speeds over time, a legend.

matplotlib lays out a page without a legend; what is in view then decides its legend, and what
texts and axes take of its height decides the heights of map and speeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
import math
import textwrap
from typing import Any, BinaryIO, TypeAlias

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
import numpy as np

from state_sensor_ros import texts
from state_sensor_ros.drawing import map as maps
from state_sensor_ros.drawing import marks
from state_sensor_ros.drawing import style as styles
from state_sensor_ros.drawing.scene import Scene, speed_band, SpeedBand
from state_sensor_ros.drawing.style import BY_ACTOR, BY_SPEED, DARK, EGO, PictureStyle, QUIET
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import Floats

# Artists that are drawn over each other, and their label. matplotlib has no type for the former.
Entry: TypeAlias = tuple[tuple[Any, ...], str]
# Height of a page that has room for everything, inches.
_TALL = 20.0
# Of a page of a given height: least height with speeds, and of map and speeds together, inches;
# relative heights of both.
_LEAST_WITH_SPEEDS, _LEAST, _SHARES = 3.5, 0.5, {'map': 1.0, 'strip': 0.4}
# Heights without a given one: of the strip, inches; least and greatest of the map, as fractions of
# its width.
_STRIP, _LOWEST, _HIGHEST = 1.9, 0.32, 0.7
_TITLE_PT, _FACTS_PT = 13.0, 9.0
_MAX_TITLE, _LETTERS_PER_INCH = 80, 7.2
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
    view: maps.Map
    strip: Axes | None  # the speeds, None if they are not drawn


def write_picture(scene: Scene, handle: BinaryIO, style: PictureStyle, *, format_: str = 'png',
                  at_s: float | None = None) -> None:
    """Write ``scene`` as a picture."""
    with maps.settings_of(style.size):
        page = draw_page(scene, style, scene.instant_at(at_s))
        # The same bytes for the same recording.
        metadata = {'svg': {'Date': None}, 'pdf': {'CreationDate': None}}.get(format_)
        page.figure.savefig(handle, format=format_, dpi=style.size.dpi, metadata=metadata)


def scene_figure(scene: Scene, style: PictureStyle, at_s: float | None = None) -> Figure:
    """Return ``scene`` as a figure; ``at_s``: as in :meth:`Scene.instant_at`."""
    with maps.settings_of(style.size):
        return draw_page(scene, style, scene.instant_at(at_s)).figure


def draw_page(scene: Scene, style: PictureStyle, instant: int) -> Page:
    """
    Draw a page.

    :param instant: instant of the footprints, -1 for a page without actors, as for a film.
    :raises ConfigError: if the page is too low.
    """
    drawer = _Drawer(scene, style, instant)
    drawer.lay_out()
    return drawer.page()


class _Drawer:
    """Draws one page."""

    def __init__(self, scene: Scene, style: PictureStyle, instant: int) -> None:
        self._scene, self._style, self._instant, size = scene, style, instant, style.size
        self._band, self._area = speed_band(scene), scene.area()
        self._figure = ShownFigure((size.width, _TALL), dpi=size.dpi, facecolor='white',
                                   layout=ConstrainedLayoutEngine(
                                       w_pad=0.06, h_pad=0.05, hspace=0.03, wspace=0.02))
        FigureCanvasAgg(self._figure)
        self._rows = ['map', 'strip'] if scene.has_curves \
            and (size.height or _TALL) >= _LEAST_WITH_SPEEDS else ['map']
        self._axes = self._figure.subplot_mosaic([[name] for name in self._rows])
        self._view = maps.Map(self._area, 0.0)
        self._set_texts()

    def _set_texts(self) -> None:
        """Write titles, facts and axes."""
        figure, style, scene, size = self._figure, self._style, self._scene, self._style.size
        title = texts.one_line(texts.abbreviated(style.title, min(
            _MAX_TITLE, int(_LETTERS_PER_INCH * size.width / size.text_scale))))
        if title:
            figure.suptitle(title, x=0.01, ha='left', fontsize=_TITLE_PT * size.text_scale,
                            fontweight='bold' if title.isascii() else 'normal')
        if not size.is_paper:
            self._axes['map'].set_title(self._facts(), loc='left', color=QUIET,
                                        fontsize=_FACTS_PT * size.text_scale)
        self._axes['map'].set(xlabel=styles.X_TITLE,
                              ylabel='' if size.is_compact else styles.Y_TITLE)
        if 'strip' in self._axes:
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
            facts.append(f'boxes at {texts.seconds(scene.time_s[instant])}')
            n_shown = len(maps.Map(self._area, 0.0).samples(scene, instant))
            if n_shown < len(scene.names):
                facts.append(f'{n_shown} of {texts.counted(len(scene.names), "actor")} on the map')
        # Letters are 0.6 times as wide as high.
        n_letters = int((size.width - 0.8) * 72.0 / (0.6 * _FACTS_PT * size.text_scale))
        text = '  ·  '.join(fact.replace(' ', '\xa0') for fact in facts)
        return '\n'.join(textwrap.wrap(text, n_letters, break_long_words=False)
                         ).replace('\xa0', ' ')

    def _set_strip(self, axes: Axes) -> None:
        """Set the limits of the axes of speeds over time."""
        axes.set(xlim=(0.0, self._scene.duration_s), xlabel=styles.TIME_TITLE,
                 ylim=marks.speed_limits(self._scene),
                 ylabel='' if self._style.size.is_compact else styles.SPEED_TITLE)

    def lay_out(self) -> None:
        """Lay out the page; raise ConfigError if it is too low."""
        figure, size, axes = self._figure, self._style.size, self._axes
        for each in figure.axes:
            # Their ticks are beside the numbers, and to find them takes a third of a layout.
            each.spines[:].set_in_layout(False)
        self._set_view()
        self._add_legend(self._entries() if self._style.has_legend else [])
        self._arrange()
        inches = {name: axes[name].get_window_extent().height / figure.dpi for name in self._rows}
        others = _TALL - sum(inches.values())
        if size.height is not None and size.height < others + _LEAST:
            raise ConfigError('size', f'{size.width:g}x{size.height:g}', 'a taller page: at least '
                              f'{math.ceil(10.0 * (others + _LEAST)) / 10.0:g} inches')
        rest = None if size.height is None else size.height - others
        heights = self._heights(axes['map'].get_window_extent().width / figure.dpi, rest)
        figure.set_figheight(others + sum(heights.values()))
        grid = axes['map'].get_gridspec()
        assert grid is not None
        grid.set_height_ratios(list(heights.values()))
        # Numbers on the axes follow from the limits, and their widths from the numbers.
        self._set_view()
        figure.set_layout_engine('none')
        self._set_view()

    def _arrange(self) -> None:
        """Lay out as a draw of the figure does, which takes twice as long."""
        engine = self._figure.get_layout_engine()
        if engine is not None:
            engine.execute(self._figure)

    def _heights(self, width: float, rest: float | None) -> dict[str, float]:
        """Return the heights of the rows, inches."""
        # width: of the map; rest: for all rows; None to choose it by the shape of the data.
        size, area = self._style.size, self._area
        highest = 1.0 if size.is_paper else _HIGHEST
        wanted = {
            'map': min(max(width * area.height / area.width, _LOWEST * width), highest * width),
            'strip': _STRIP * (0.6 if size.width < styles.COMPACT_BELOW else 1.0)}
        if rest is None:
            return {name: wanted[name] for name in self._rows}
        whole = sum(_SHARES[name] for name in self._rows)
        return {name: rest * _SHARES[name] / whole for name in self._rows}

    def _set_view(self) -> None:
        """Lay out; let the limits of the map fill its axes."""
        self._arrange()
        self._view = maps.map_on(self._axes['map'], self._area)

    def _entries(self) -> list[Entry]:
        """Return the entries of the legend for what is in view, in the order of :class:`Mark`."""
        scene, size, coloring = self._scene, self._style.size, self._style.coloring
        samples = self._view.samples(scene, self._instant) if self._instant >= 0 \
            else np.arange(len(scene.actor))
        are_dots = maps.are_dots(scene, samples, self._view.inches_per_m)
        shown = marks.legend_marks(scene, samples, coloring) - {marks.Mark.ASSUMED}
        shown |= {marks.Mark.ASSUMED} & marks.marks_of(scene, samples[~are_dots])
        if maps.free_lane_changes(scene, samples, self._view):
            shown.add(marks.Mark.LANE_CHANGE)
        if coloring == BY_ACTOR:
            # Tracks have the colors of their actors.
            shown.discard(marks.Mark.TRACK)
        entries = [_entry(mark) for mark in marks.Mark if mark in shown]
        if marks.Mark.EGO in shown:
            entries[0] = (*_entry(marks.Mark.EGO_TRACK)[0], *entries[0][0]), \
                marks.Mark.EGO.value if size.is_paper else texts.one_line(marks.ego_text(scene))
        if 'strip' in self._rows and self._instant >= 0:
            line = Line2D([], [], color=DARK, linewidth=styles.INSTANT_PT)
            entries.append(((line,), 'time of the boxes'))
        if 'strip' in self._rows and self._band.n_others:
            entries.append(((Patch(facecolor=styles.BAND, edgecolor='none'), Line2D(
                [], [], color=QUIET, linewidth=styles.MEDIAN_PT, linestyle=maps.DASHED)),
                self._band.text))
        return entries + [((Patch(facecolor=color, edgecolor=DARK, linewidth=0.4),),
                           texts.one_line(text)) for color, text in marks.actor_key(scene)
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
        scene, style, instant, view = self._scene, self._style, self._instant, self._view
        axes, strip = self._axes['map'], self._axes.get('strip')
        maps.draw_ground(axes, scene, view.area, style.coloring)
        if instant >= 0:
            maps.draw_instant(axes, scene, instant, view, style)
        if not len(scene.actor):
            axes.text(0.5, 0.5, styles.NOTHING, transform=axes.transAxes, ha='center',
                      va='center', color=QUIET, fontsize=12)
        if strip is not None:
            draw_strip(strip, scene, instant, style.coloring, self._band)
            if style.names:
                maps.draw_names_of_lines(strip, scene, self._band.has_line & ~scene.is_ego,
                                         style.size.name_pt)
        return Page(self._figure, axes, view, strip)


# Symbols of the legend: shape, size, edge, width of the edge, points.
_SYMBOLS = {**{mark: ('o', *look) for mark, look in marks.CIRCLES.items()},
            marks.Mark.OBJECT: ('s', 4.0, styles.OBJECT_EDGE, 0.7),
            marks.Mark.LANE_CHANGE: ('>', 5.5, DARK, 0.9)}
_LINES = {marks.Mark.EGO_TRACK: (styles.EGO_BED, 4.5), marks.Mark.TRACK: (marks.EXAMPLE, 1.4)}


def _entry(mark: marks.Mark) -> Entry:
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
        artist = Patch(facecolor=fill, edgecolor=DARK, linewidth=0.7,
                       linestyle=maps.DASHED if mark is marks.Mark.ASSUMED else 'solid')
    return (artist,), mark.value


def draw_strip(axes: Axes, scene: Scene, instant: int, coloring: str, band: SpeedBand) -> None:
    """Draw the speeds, the ego's on top, and a line at one instant."""
    if band.n_others:
        slowest, median, fastest = band.edges
        axes.fill_between(scene.time_s, slowest, fastest, color=styles.BAND, linewidth=0.0,
                          zorder=1.5)
        axes.plot(scene.time_s, median, color=QUIET, linewidth=styles.MEDIAN_PT,
                  linestyle=maps.DASHED, zorder=1.6)
    n_actors = len(scene.names)
    colors = marks.colors_of(scene, np.arange(n_actors), np.zeros(n_actors, np.float32), BY_ACTOR)
    if coloring == BY_SPEED:
        colors[~scene.is_ego] = to_rgba(QUIET)
    begin, end = scene.tracks.segments(band.has_line)
    actor, points = scene.tracks.actor[end], scene.tracks.speeds_over_time()
    # Round ends close the seams of the segments.
    for rows, width, order in ((~scene.is_ego[actor], 0.8, 2), (scene.is_ego[actor], 2.0, 3)):
        maps.draw_lines(axes, points, begin[rows], end[rows], colors=colors[actor[rows]],
                        linewidths=width, capstyle='round', zorder=order)
    if instant >= 0:
        # Not clipped, so that the line has its whole width at the edges.
        axes.axvline(scene.time_s[instant], color=DARK, linewidth=styles.INSTANT_PT,
                     clip_on=False, zorder=4)
        axes.plot([scene.time_s[instant]], [1.0], marker='v', markersize=6.0, color=DARK,
                  transform=axes.get_xaxis_transform(), clip_on=False, zorder=4)


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

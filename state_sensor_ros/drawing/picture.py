# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Draw a scene as a PNG: a map, a close-up where it shows more, speeds over time, legends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from state_sensor_ros.drawing import layers, palette
from state_sensor_ros.drawing.areas import not_shown, visible_samples
from state_sensor_ros.drawing.colorings import BY_ACTOR, BY_SPEED
from state_sensor_ros.drawing.fonts import Fonts
from state_sensor_ros.drawing.legend import (
    actor_handles,
    CLOSE_UP_DASHES,
    Entries,
    map_handles,
    strip_handles,
)
from state_sensor_ros.drawing.map_layout import GAP, layout_of, Map, MapLayout, WIDTH
from state_sensor_ros.drawing.names import draw_names
from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.speed_strip import draw_strip
from state_sensor_ros.drawing.wording import (
    NOTHING,
    seconds,
    shortened,
    SPEED_TITLE,
    X_TITLE,
    Y_TITLE,
)

DPI = 150
# The margins of the page and the heights of what is above and below the maps, inches.
LEFT, RIGHT, TOP, BOTTOM = 0.75, 0.95, 0.2, 0.55
PAGE_WIDTH = LEFT + WIDTH + RIGHT
_TITLE, _LINE, _SPACE = 0.31, 0.21, 0.16
_STRIP = 1.9
# The map of a whole recording has names up to this many actors.
MAX_NAMED = 40
_MAX_TITLE = 80


def write_picture(scene: Scene, handle: BinaryIO, *, title: str, coloring: str = BY_SPEED,
                  at_s: float | None = None) -> None:
    """
    Write ``scene`` as PNG.

    :param handle: open for writing.
    :param title: heading, such as the name of the recording.
    :param coloring: ``speed`` or ``actor``.
    :param at_s: instant of the footprints, s since the first frame; None for the last.
    """
    fonts = Fonts([title, *scene.names])
    with rc_context(style_of(fonts)):
        figure = draw_page(scene, title, coloring, scene.instant_at(at_s), fonts)
        figure.savefig(handle, format='png', dpi=DPI)


def style_of(fonts: Fonts) -> dict[Any, Any]:
    """
    Return the settings of matplotlib for a page.

    :param fonts: of the page.
    :returns: as rc_context takes them; matplotlib 3.11 has a type for their names, 3.10 has not.
    """
    return {
        'font.family': fonts.families, 'font.size': 8.5, 'axes.linewidth': 0.7,
        **dict.fromkeys(('axes.edgecolor', 'xtick.color', 'ytick.color'), palette.QUIET),
        **dict.fromkeys(('axes.labelcolor', 'xtick.labelcolor', 'ytick.labelcolor', 'text.color'),
                        palette.INK),
        # Names of files and actors may contain dollar signs.
        'text.parse_math': False}


def draw_page(scene: Scene, title: str, coloring: str, instant: int, fonts: Fonts) -> Figure:
    """
    Draw everything; the height of the page follows from what there is.

    :param coloring: ``speed`` or ``actor``.
    :param instant: of the footprints, -1 for none.
    :param fonts: for the title and all names.
    :returns: a figure with a canvas.
    """
    layout = layout_of(scene, instant)
    views = [layout.whole] if layout.detail is None else [layout.whole, layout.detail]
    head = Entries(map_handles(scene, instant, views, coloring), WIDTH)
    over_strip = Entries(strip_handles(scene, instant, coloring), WIDTH)
    key = Entries(actor_handles(scene, fonts) if coloring == BY_ACTOR else [], WIDTH)
    lines = _facts(scene, instant, layout.whole)
    # Distances from the top of the page, inches.
    head_top = TOP + _TITLE + len(lines) * _LINE + _SPACE / 2
    maps_top = head_top + head.height + _SPACE
    strip_top = maps_top + layout.height + GAP + over_strip.height + _SPACE / 2
    key_top = strip_top + _STRIP + BOTTOM
    page = _Page(key_top + key.height + (_SPACE if key.height else 0.0))

    title = fonts.drawable(shortened(title, _MAX_TITLE))
    page.text(TOP, title, 13.0, palette.INK, 'bold' if title.isascii() else 'normal')
    for k, line in enumerate(lines):
        page.text(TOP + _TITLE + k * _LINE, fonts.drawable(line), 9.0, palette.QUIET, 'normal')
    head.draw(page.figure, LEFT, head_top)
    over_strip.draw(page.figure, LEFT, strip_top - over_strip.height - _SPACE / 2)
    key.draw(page.figure, LEFT, key_top)
    _draw_maps(page, maps_top, layout, _Drawing(scene, instant, coloring, fonts))
    draw_strip(page.axes(LEFT, strip_top, WIDTH, _STRIP), scene, instant, coloring)
    if coloring == BY_SPEED:
        _draw_color_bar(page.axes(LEFT + WIDTH + 0.15, maps_top, 0.14, layout.whole.height), scene)
    return page.figure


class _Page:
    """A figure with distances from the left and from the top in inches."""

    def __init__(self, height: float) -> None:
        self._height = height
        self.figure = Figure((PAGE_WIDTH, height), dpi=DPI, facecolor='white')
        FigureCanvasAgg(self.figure)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Add axes."""
        return self.figure.add_axes((
            left / PAGE_WIDTH, 1.0 - (top + height) / self._height, width / PAGE_WIDTH,
            height / self._height))

    def text(self, top: float, text: str, size: float, color: str, weight: str) -> None:
        """Write a line at the left margin."""
        self.figure.text(LEFT / PAGE_WIDTH, 1.0 - top / self._height, text, va='top',
                         fontsize=size, color=color, fontweight=weight)


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What all maps of a picture have in common."""

    scene: Scene
    instant: int
    coloring: str
    fonts: Fonts

    def draw(self, axes: Axes, view: Map, detail: Map | None, *, is_detail: bool) -> None:
        """
        Draw a map.

        :param detail: the close-up of it, which has the names of its actors.
        :param is_detail: whether it is a close-up, which has thicker lines.
        """
        scene = self.scene
        axes.set(xlim=view.area.x_range, ylim=view.area.y_range, facecolor=palette.GROUND,
                 xlabel=X_TITLE, ylabel=Y_TITLE)
        axes.grid(color='white', linewidth=1.0)
        axes.set_axisbelow(True)
        layers.draw_tracks(axes, scene, self.coloring, 2.2 if is_detail else 1.4)
        layers.draw_lane_changes(axes, scene, 1.3 if is_detail else 1.0)
        samples = visible_samples(scene, self.instant, [view.area])
        layers.draw_actors(axes, scene, samples, self.coloring, view.inches_per_m)
        if is_detail or len(samples) <= MAX_NAMED:
            draw_names(axes, scene, samples, self.fonts, view.inches_per_m,
                       None if detail is None else detail.area)
        layers.draw_scale_bar(axes, view.inches_per_m)
        if not len(scene.actor):
            axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes, ha='center', va='center',
                      color=palette.QUIET, fontsize=12)


def _draw_maps(page: _Page, top: float, layout: MapLayout, drawing: _Drawing) -> None:
    whole, detail = layout.whole, layout.detail
    axes = page.axes(LEFT, top, whole.width, whole.height)
    if detail is not None:
        (left, right), (low, high) = detail.area.x_range, detail.area.y_range
        axes.add_patch(Rectangle(
            (left, low), right - left, high - low, facecolor='none', edgecolor=palette.QUIET,
            linewidth=0.9, linestyle=CLOSE_UP_DASHES, zorder=4))
        of_detail = page.axes(LEFT + WIDTH - detail.width, top, detail.width, detail.height) \
            if layout.is_beside else page.axes(LEFT, top + whole.height + GAP, detail.width,
                                               detail.height)
        drawing.draw(of_detail, detail, None, is_detail=True)
    drawing.draw(axes, whole, detail, is_detail=False)


def _facts(scene: Scene, instant: int, whole: Map) -> list[str]:
    """Return the line of facts, and one of what is counted but not on the map."""
    facts = scene.facts()
    if instant >= 0:
        facts.append(f'boxes at {seconds(scene.time_s[instant])}')
    lines = [facts, not_shown(scene, instant, whole.area)]
    return ['  ·  '.join(line) for line in lines if line]


def _draw_color_bar(axes: Axes, scene: Scene) -> None:
    mappable = ScalarMappable(Normalize(*palette.speed_range(scene)), palette.SPEEDS)
    axes.figure.colorbar(mappable, cax=axes, label=SPEED_TITLE).ax.set_frame_on(False)

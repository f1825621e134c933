# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Legends of a picture: marks of the maps, lines of the speeds, colours of actors."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
import numpy as np

from state_sensor_ros.drawing import layers, palette
from state_sensor_ros.drawing.areas import visible_samples
from state_sensor_ros.drawing.colorings import BY_SPEED
from state_sensor_ros.drawing.fonts import Fonts
from state_sensor_ros.drawing.layers import DASHED
from state_sensor_ros.drawing.map_layout import Map
from state_sensor_ros.drawing.marks import has_unknown_speed, Mark, marks_of, track_marks
from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.wording import names_text

Dashes = tuple[float, tuple[float, ...]]
CLOSE_UP_DASHES: Dashes = (0, (4, 2))
INSTANT_DASHES: Dashes = (0, (3, 2))
Handle = Patch | Line2D


def map_handles(scene: Scene, instant: int, views: Sequence[Map], coloring: str) -> list[Handle]:
    """
    Return an entry for each mark in view, in the order of :class:`Mark`.

    :param instant: of the footprints, -1 for none.
    :param views: the map, and the close-up where there is one.
    :param coloring: ``speed`` or ``actor``.
    """
    areas = [view.area for view in views]
    samples = visible_samples(scene, instant, areas)
    marks = marks_of(scene, samples) - {Mark.ASSUMED}
    for view in views:
        in_view = visible_samples(scene, instant, [view.area])
        large = in_view[~layers.are_dots(scene, in_view, view.inches_per_m)]
        marks |= marks_of(scene, large) & {Mark.ASSUMED}
    marks |= track_marks(scene)
    if any(area.contains(np.array([change.position_xy])).any()
           for area in areas for change in scene.lane_changes):
        marks.add(Mark.LANE_CHANGE)
    if len(views) > 1:
        marks.add(Mark.CLOSE_UP)
    if coloring == BY_SPEED:
        if has_unknown_speed(scene, samples):
            marks.add(Mark.UNKNOWN_SPEED)
    else:
        # Vehicles have entries of their own, in the key.
        marks.discard(Mark.VEHICLE)
    return [_handle(mark) for mark in Mark if mark in marks]


def strip_handles(scene: Scene, instant: int, coloring: str) -> list[Handle]:
    """
    Return the entries of the speeds over time.

    :param instant: of the footprints, -1 for none.
    :param coloring: ``speed`` or ``actor``.
    """
    marks = track_marks(scene)
    handles: list[Handle] = []
    if Mark.EGO_TRACK in marks:
        handles.append(_line(palette.EGO, 2.0, 'speed of the ego'))
    if Mark.TRACK in marks:
        color = palette.QUIET if coloring == BY_SPEED else palette.EXAMPLE
        handles.append(_line(color, 0.8, 'speeds of the others'))
    if instant >= 0:
        handles.append(_line(palette.INK, 0.9, 'time of the boxes', INSTANT_DASHES))
    return handles


def _handle(mark: Mark) -> Handle:
    fill = palette.FILLS.get(mark, 'white')
    if mark in (Mark.EGO, Mark.VEHICLE, Mark.UNKNOWN_SPEED):
        return Patch(facecolor=fill, edgecolor=palette.INK, linewidth=0.7, label=mark.value)
    if mark is Mark.OBJECT:
        return _circle(mark, 's', fill, palette.OBJECT_EDGE, 0.7, 4.0)
    if mark is Mark.ASSUMED:
        return Patch(facecolor='white', edgecolor=palette.INK, linestyle=DASHED, label=mark.value)
    if mark is Mark.SIGN:
        return _circle(mark, 'o', fill, palette.SIGN_EDGE, 1.4, 8.0)
    if mark is Mark.PEDESTRIAN:
        return _circle(mark, 'o', fill, palette.INK, 0.5, 5.0)
    if mark in palette.FILLS:
        return _circle(mark, 'o', fill, palette.INK, 1.6, 6.5)
    if mark is Mark.LANE_CHANGE:
        return _circle(mark, '>', 'white', palette.INK, 0.9, 5.5)
    if mark is Mark.CLOSE_UP:
        return Patch(facecolor='none', edgecolor=palette.QUIET, linewidth=0.9,
                     linestyle=CLOSE_UP_DASHES, label=mark.value)
    color, width = (palette.EGO_BED, 4.5) if mark is Mark.EGO_TRACK else (palette.EXAMPLE, 1.4)
    return _line(color, width, mark.value)


def _line(color: str, width: float, label: str,
          dashes: Dashes = (0, ())) -> Line2D:
    return Line2D([], [], color=color, linewidth=width, label=label, linestyle=dashes)


def _circle(mark: Mark, shape: str, fill: str, edge: str, width: float, size: float) -> Line2D:
    return Line2D([], [], marker=shape, color='none', markerfacecolor=fill, markeredgecolor=edge,
                  markeredgewidth=width, markersize=size, label=mark.value)


def actor_handles(scene: Scene, fonts: Fonts) -> list[Handle]:
    """
    Return an entry for each colour of vehicles, with the names of some.

    :param scene: of which the names are used.
    :param fonts: that draw them.
    """
    return [Patch(facecolor=color, edgecolor=palette.INK, linewidth=0.7,
                  label=fonts.drawable(names_text(names)))
            for color, names in palette.actor_key(scene)]


class Entries:
    """
    A legend in as few lines as fit.

    ``height`` in inches, 0 without entries.

    :param handles: the entries.
    :param width: the largest, inches.
    """

    def __init__(self, handles: Sequence[Handle], width: float) -> None:
        self._handles = handles
        self._n_columns = len(handles)
        size = self._size()
        while size[0] > width and self._n_columns > 1:
            self._n_columns -= 1
            size = self._size()
        self.height = size[1]

    def draw(self, figure: Figure, left: float, top: float) -> None:
        """
        Add the legend to a page.

        :param left: inches from the left of the page.
        :param top: inches from the top of the page.
        """
        if self._handles:
            width, height = figure.get_size_inches()
            self._legend(figure, (left / width, 1.0 - top / height))

    def _legend(self, figure: Figure, anchor: tuple[float, float]) -> Legend:
        return figure.legend(
            handles=self._handles, loc='upper left', ncols=self._n_columns, frameon=False,
            fontsize=8.5, bbox_to_anchor=anchor, borderaxespad=0.0, borderpad=0.0,
            handletextpad=0.5, columnspacing=1.4)

    def _size(self) -> tuple[float, float]:
        """Return width and height on a page of its own, inches."""
        if not self._handles:
            return 0.0, 0.0
        figure = Figure(dpi=100.0)
        FigureCanvasAgg(figure)
        box = self._legend(figure, (0.0, 1.0)).get_window_extent()
        return box.width / figure.dpi, box.height / figure.dpi

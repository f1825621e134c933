# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Legends of a picture: marks of the maps, lines of the speeds, colors of actors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from state_sensor_ros.drawing import layers
from state_sensor_ros.drawing.layers import DASHED, Fonts
from state_sensor_ros.drawing.map_layout import Map
from state_sensor_ros.drawing.marks import (
    actor_key,
    ego_text,
    EXAMPLE,
    FILLS,
    legend_marks,
    Mark,
    marks_of,
)
from state_sensor_ros.drawing.scene import Scene, SpeedBand
from state_sensor_ros.drawing.style import (
    BAND,
    DARK,
    EGO_BED,
    OBJECT_EDGE,
    QUIET,
    SIGN_EDGE,
)
from state_sensor_ros.frame import Rows

Dashes = tuple[float, tuple[float, ...]]
CLOSE_UP_DASHES: Dashes = (0, (4, 2))
# Width of the line that marks the time of the boxes, points.
INSTANT_PT = 1.6
# Width of the line of the median, points.
MEDIAN_PT = 0.8


class LegendEntry(NamedTuple):
    """A label and its artists, drawn over each other."""

    artists: tuple[Patch | Line2D, ...]
    label: str


def map_entries(scene: Scene, samples: Rows, views: Sequence[Map], coloring: str,
                fonts: Fonts, *, names_ego: bool = True) -> list[LegendEntry]:
    """
    Return an entry for each mark in view, in the order of :class:`Mark`.

    :param samples: samples that are shown, int64.
    :param views: the map, and the close-up if there is one.
    :param coloring: ``speed`` or ``actor``.
    :param fonts: fonts for the name of the ego.
    :param names_ego: whether the entry of the ego has its name.
    """
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
    """
    Return the entries of the speeds over time; lines have names instead.

    :param instant: instant of the footprints, -1 for none.
    :param band: speeds of the actors without a line.
    """
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
    """
    Return an entry for each color of vehicles.

    :param scene: the recording, with the names.
    :param fonts: fonts for the names.
    """
    return [LegendEntry((Patch(facecolor=color, edgecolor=DARK, linewidth=0.4),),
                        fonts.drawable(text)) for color, text in actor_key(scene)]


class Entries:
    """
    A legend in as few lines as the width allows.

    ``height`` in inches, 0 without entries.

    :param entries: entries in their order.
    :param width: largest width, inches.
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
        """
        Add the legend to a page.

        :param left: inches from the left of the page.
        :param top: inches from the top of the page.
        """
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

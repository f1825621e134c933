# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The style of pictures and lines of commands: colors, titles, numbers with units, pages."""

from __future__ import annotations

from dataclasses import dataclass

from state_sensor_ros.errors import counted

# Text and outlines.
DARK = '#1f2933'
QUIET = '#7b8794'
GROUND = '#f5f7fa'
FAINT = '#cbd2d9'
# Grid on white paper.
GRID = '#e4e7eb'
# Band of the speeds of many actors.
BAND = '#dde3e9'
# Lanes of the map: other lanes, lanes for vehicles, and mere lines.
ROADS = '#ebeef2', '#dde3e9', '#b3bdc7'
EGO = '#d6336c'
EGO_BED = '#f4b6cb'
OBJECT = '#f08c00'
OBJECT_EDGE = '#7a4600'
PEDESTRIAN = '#ba50ff'
UNKNOWN = '#9aa5b1'
RED, YELLOW, GREEN = '#e03131', '#ffd43b', '#2f9e44'
# A sign and its ring.
SIGN, SIGN_EDGE = '#ffffff', '#c92a2a'
# Colors of marks that may be as small as a few pixels.
MARKS = (EGO, OBJECT, PEDESTRIAN, UNKNOWN, RED, YELLOW, GREEN, SIGN_EDGE)
# Vehicles in the viewer, on a dark ground; pictures color them by speed.
VEHICLE = '#4dabf7'
# Eight colors of vehicles. These, EGO, OBJECT, PEDESTRIAN and UNKNOWN differ by a CIEDE2000 of
# at least 12 from each other, also as people with deuteranopia or protanopia see them
# (test/drawing/test_colors.py).
ACTORS = ('#8e6d0b', '#208b7e', '#3f00ff', '#86c093', '#732845', '#177a9f', '#224f00', '#2b4175')
BY_SPEED, BY_ACTOR = 'speed', 'actor'
COLORINGS = (BY_SPEED, BY_ACTOR)
X_TITLE, Y_TITLE = 'x (m)', 'y (m)'
TIME_TITLE = 'time since the first frame (s)'
SPEED_TITLE, SPEED_KPH_TITLE = 'speed (m/s)', 'speed (km/h)'
_SIZES = (('TB', 1e12), ('GB', 1e9), ('MB', 1e6), ('kB', 1e3))
KPH_PER_MPS = 3.6
# Width of the line that marks the time of the boxes, points.
INSTANT_PT = 1.6
# Width of the line of the median, points.
MEDIAN_PT = 0.8
# Shown on an empty map.
NOTHING = 'nothing to draw: no actor has a pose'
# Longer names are shortened.
_MAX_NAME = 32
# A page that is narrower has small margins and no second titles of axes.
_COMPACT_BELOW = 6.5
# Size of the texts of an ordinary page and of a paper, points.
TEXT_PT, _PAPER_PT = 8.5, 8.0
# The smallest page: two thirds of its width are the map.
LEAST_WIDTH, LEAST_HEIGHT = 2.8, 2.0


def seconds(time_s: float) -> str:
    """
    Return a time or duration, rounded to 0.01 s.

    >>> seconds(6.65711), seconds(30.0) ('6.66 s', '30 s')
    """
    return f'{round(time_s, 2):.12g} s'


def figure(value: float, n_digits: int = 4) -> str:
    """
    Return a number with some significant digits; a large one without an exponent.

    >>> figure(19.99876), figure(21345.6), figure(0.00012345) ('20', '21346', '0.0001234')
    """
    return f'{value:.0f}' if abs(value) >= 10 ** n_digits else f'{value:.{n_digits}g}'


def size(n_bytes: int) -> str:
    """
    Return a number of bytes in the unit that fits.

    >>> size(999), size(1_070_000_000), size(999_700) ('999 B', '1.07 GB', '1 MB')
    """
    for unit, factor in _SIZES:
        # 999.5 would be rounded to 1e+03.
        if n_bytes >= 0.9995 * factor:
            return f'{figure(n_bytes / factor, 3)} {unit}'
    return f'{n_bytes} B'


def part_of(part: int, number: int, noun: str) -> str:
    """
    Return a part of a number of things as text.

    >>> part_of(35, 48, 'object'), part_of(1, 1, 'vehicle') ('35 of 48 objects', '1 of 1 vehicle')
    """
    return f'{part} of {counted(number, noun)}'


def shortened(text: str, longest: int = _MAX_NAME) -> str:
    """
    Return a text, its middle replaced by an ellipsis if it is longer than ``longest``.

    >>> shortened('from_here_to_there', 9)
    'from…here'

    :param text: text of any length.
    :param longest: greatest length, characters.
    """
    half = longest // 2
    return text if len(text) <= longest else f'{text[:half]}…{text[half + 1 - longest:]}'


@dataclass(frozen=True, slots=True)
class PageSize:
    """Width and height of a page."""

    width: float = 11.0
    height: float | None = None  # None to choose it by the content
    dpi: float = 150.0  # pixels per inch
    # Whether the page is a figure of a paper, whose texts have the size of its captions.
    is_paper: bool = False

    @property
    def is_compact(self) -> bool:
        """Whether the page is as narrow as a column of a paper."""
        return self.width < _COMPACT_BELOW and not self.is_paper

    @property
    def left(self) -> float:
        return 0.58 if self.is_paper else 0.45 if self.is_compact else 0.75

    @property
    def right(self) -> float:
        """Return the right margin, with room for the scale of speeds."""
        return 0.62 if self.is_paper else 0.45 if self.is_compact else 0.95

    @property
    def top(self) -> float:
        return 0.04 if self.is_paper else 0.2

    @property
    def bottom(self) -> float:
        """Return the room for the numbers and the title of a horizontal axis."""
        return 0.42 if self.is_paper else 0.55 * self.text_scale

    @property
    def gap(self) -> float:
        """Return the space between two maps, with room for numbers and titles of axes."""
        return 0.48 if self.is_paper else 0.75

    @property
    def inner(self) -> float:
        """Return the width between the margins."""
        return self.width - self.left - self.right

    @property
    def legend_width(self) -> float:
        return self.width - self.left if self.is_paper else self.inner

    @property
    def highest_map(self) -> float:
        """Return the greatest height of a map of all tracks, as a fraction of the width."""
        return 1.0 if self.is_paper else 0.7

    @property
    def text_scale(self) -> float:
        """Return the factor of the sizes of texts, which are 8.5 points on an ordinary page."""
        return _PAPER_PT / TEXT_PT if self.is_paper else 0.76 if self.is_compact else 1.0

    @property
    def name_pt(self) -> float:
        """Return the size of the names of actors, points."""
        return _PAPER_PT if self.is_paper else 6.5


ORDINARY = PageSize()
# A column of a paper of two columns.
PAPER = PageSize(3.5, is_paper=True)
FILM_SIZE = PageSize(8.0, 6.0, 100.0)


@dataclass(frozen=True, slots=True)
class PictureStyle:
    title: str  # heading, such as the name of the recording, '' for none
    coloring: str = BY_SPEED  # ``speed`` or ``actor``
    names: bool = True  # whether actors have names
    size: PageSize = ORDINARY
    facts: tuple[str, ...] = ()  # texts below the title, after those of the recording
    has_legend: bool = True  # whether the marks are explained

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
SPEED_TITLE = 'speed (m/s)'
# Width of the line that marks the time of the boxes, points.
INSTANT_PT = 1.6
# Width of the line of the median, points.
MEDIAN_PT = 0.8
# Shown on an empty map.
NOTHING = 'nothing to draw: no actor has a pose'
# A page that is narrower has small margins and no second titles of axes.
COMPACT_BELOW = 6.5
# Size of the texts of an ordinary page and of a paper, points.
TEXT_PT, _PAPER_PT = 8.5, 8.0
# The smallest page: two thirds of its width are the map.
LEAST_WIDTH, LEAST_HEIGHT, MOST_INCHES = 2.8, 2.0, 200.0


def is_page_size(width: float, height: float | None) -> bool:
    """Return whether a page may have this size, inches; ``height`` None to follow the content."""
    return LEAST_WIDTH <= width <= MOST_INCHES and (
        height is None or LEAST_HEIGHT <= height <= MOST_INCHES)


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
        return self.width < COMPACT_BELOW and not self.is_paper

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

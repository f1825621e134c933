# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The style of a page: what it shows, its size and margins; needs no library."""

from __future__ import annotations

from dataclasses import dataclass

from state_sensor_ros.drawing.colors import BY_SPEED

# A page that is narrower has small margins and no second titles of axes.
_COMPACT_BELOW = 6.5
# Size of the texts of an ordinary page and of a paper, points.
TEXT_PT, _PAPER_PT = 8.5, 8.0
# The smallest page: two thirds of its width are the map.
LEAST_WIDTH, LEAST_HEIGHT = 2.8, 2.0


@dataclass(frozen=True, slots=True)
class PageSize:
    """
    Width and height of a page.

    ``height`` None to choose it by the content; ``dpi`` pixels per inch; ``is_paper`` whether the
    page is a figure of a paper, whose texts have the size of its captions.
    """

    width: float = 11.0
    height: float | None = None
    dpi: float = 150.0
    is_paper: bool = False

    @property
    def is_compact(self) -> bool:
        """Whether the page is as narrow as a column of a paper."""
        return self.width < _COMPACT_BELOW and not self.is_paper

    @property
    def left(self) -> float:
        """Return the left margin."""
        return 0.58 if self.is_paper else 0.45 if self.is_compact else 0.75

    @property
    def right(self) -> float:
        """Return the right margin, with room for the scale of speeds."""
        return 0.62 if self.is_paper else 0.45 if self.is_compact else 0.95

    @property
    def top(self) -> float:
        """Return the margin at the top."""
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
        """Return the greatest width of a legend."""
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
    """
    The content and the style of a picture.

    ``title`` heading, such as the name of the recording, '' for none; ``coloring`` ``speed`` or
    ``actor``; ``names`` whether actors have names; ``size`` of the page; ``facts`` texts below
    the title, after those of the recording; ``has_legend`` whether the marks are explained.
    """

    title: str
    coloring: str = BY_SPEED
    names: bool = True
    size: PageSize = ORDINARY
    facts: tuple[str, ...] = ()
    has_legend: bool = True

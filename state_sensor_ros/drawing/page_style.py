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
# The smallest page: two thirds of its width are the map.
LEAST_WIDTH, LEAST_HEIGHT = 2.8, 2.0


@dataclass(frozen=True, slots=True)
class PageSize:
    """
    Width and height of a page.

    ``height`` None to choose it by the content; ``dpi`` pixels per inch.
    """

    width: float = 11.0
    height: float | None = None
    dpi: float = 150.0

    @property
    def is_compact(self) -> bool:
        """Whether the page is as narrow as a column of a paper."""
        return self.width < _COMPACT_BELOW

    @property
    def left(self) -> float:
        """Return the left margin."""
        return 0.45 if self.is_compact else 0.75

    @property
    def right(self) -> float:
        """Return the right margin, with room for the scale of speeds."""
        return 0.45 if self.is_compact else 0.95

    @property
    def inner(self) -> float:
        """Return the width between the margins."""
        return self.width - self.left - self.right

    @property
    def text_scale(self) -> float:
        """Return the factor of the sizes of texts."""
        return 0.76 if self.is_compact else 1.0


ORDINARY = PageSize()
FILM_SIZE = PageSize(8.0, 6.0, 100.0)


@dataclass(frozen=True, slots=True)
class PictureStyle:
    """
    The content and the style of a picture.

    ``title`` heading, such as the name of the recording; ``coloring`` ``speed`` or ``actor``;
    ``names`` whether actors have names; ``size`` of the page; ``facts`` texts below the title,
    after those of the recording.
    """

    title: str
    coloring: str = BY_SPEED
    names: bool = True
    size: PageSize = ORDINARY
    facts: tuple[str, ...] = ()

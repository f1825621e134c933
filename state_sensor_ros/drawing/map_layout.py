# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Sizes of the maps of a picture, and the areas that they show."""

from __future__ import annotations

from dataclasses import dataclass

from state_sensor_ros.drawing.areas import Area, close_up, data_area
from state_sensor_ros.drawing.scene import Scene

# Space between two maps, with room for the numbers and the title of an axis, inches.
GAP = 0.75
# Least and greatest height of a map, and height of a close-up below it, as fractions of the width.
_MAP_HEIGHT = (0.32, 0.7)
_CLOSE_UP_HEIGHT = 0.28
# A close-up below takes this share of a given height.
_CLOSE_UP_SHARE = 0.4
# A map with a larger height / width has the close-up beside it; the map's share of the width then.
_BESIDE_ABOVE, _MAP_SHARE = 0.6, 0.56
# Narrower pages have the close-up below the map; lower maps have no close-up, inches.
_BESIDE_WIDTH, _LEAST_HEIGHT = 7.0, 0.8
# Footprints are too small on a map with fewer inches per metre; it gets a close-up if the scale of
# that is at least this many times as large.
_CLOSE_UP_BELOW, _CLOSE_UP_TIMES = 0.03, 2.0


@dataclass(frozen=True, slots=True)
class Map:
    """A map on the page: the area of the ground, and its size in inches."""

    area: Area
    width: float
    height: float

    @property
    def inches_per_m(self) -> float:
        """Return the scale."""
        return self.width / self.area.width


@dataclass(frozen=True, slots=True)
class MapLayout:
    """The map of the whole recording, and the close-up beside or below it, None without one."""

    whole: Map
    detail: Map | None = None
    is_beside: bool = False

    @property
    def needs_detail(self) -> bool:
        """Whether the footprints on the whole map are too small."""
        return self.whole.inches_per_m < _CLOSE_UP_BELOW

    @property
    def height(self) -> float:
        """Return the height of both, inches."""
        if self.detail is None or self.is_beside:
            return self.whole.height
        return self.whole.height + GAP + self.detail.height


def layout_of(scene: Scene, instant: int, width: float, height: float | None = None, *,
              has_detail: bool = True) -> MapLayout:
    """
    Choose the maps: a close-up only if it shows more than the map of the whole recording.

    :param instant: instant of the footprints.
    :param width: width of all maps, inches.
    :param height: height of all maps, inches; None to choose it by the shape of the data.
    :param has_detail: whether there may be a close-up.
    """
    data = data_area(scene)
    alone = MapLayout(_whole(data, width, width, height))
    if not has_detail or not alone.needs_detail:
        return alone
    is_beside = data.height / data.width > _BESIDE_ABOVE and width > _BESIDE_WIDTH
    if is_beside:
        whole = _whole(data, _MAP_SHARE * (width - GAP), width, height)
        wide, high = width - GAP - whole.width, whole.height
    else:
        high = _CLOSE_UP_HEIGHT * width if height is None else _CLOSE_UP_SHARE * (height - GAP)
        whole = _whole(data, width, width, None if height is None else height - GAP - high)
        wide = width
    if min(high, whole.height) < _LEAST_HEIGHT:
        return alone
    part = close_up(scene, instant, data, high / wide)
    if part is None:
        return alone
    # The close-up is smaller if the data is narrower than its place.
    scale = min(wide / part.width, high / part.height)
    detail = Map(part, scale * part.width, scale * part.height)
    if scale < _CLOSE_UP_TIMES * whole.inches_per_m:
        return alone
    return MapLayout(whole, detail, is_beside)


def _whole(data: Area, width: float, page_width: float, height: float | None) -> Map:
    if height is None:
        low, high = (share * page_width for share in _MAP_HEIGHT)
        height = min(max(width * data.height / data.width, low), high)
    return Map(data.filling(height / width), width, height)

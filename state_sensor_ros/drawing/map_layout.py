# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The maps of a page: the areas of ground that they show, their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from state_sensor_ros.drawing import shapes
from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.shapes import Area, CAR_LENGTH_M
from state_sensor_ros.drawing.style import ORDINARY, PageSize
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.texts import part_of, seconds

# Footprints shorter than this on paper are drawn as dots, points.
_MIN_LENGTH_PT = 5.0
# Width of a close-up, m.
CLOSE_UP_M = 80.0
# A close-up of footprints that are visible without it has at least this many actors.
_MIN_CLOSE_UP_ACTORS = 2


def close_up(scene: Scene, instant: int, area: Area, aspect: float,
             n_actors: int) -> Area | None:
    """Return the surroundings of the ego, else of the vehicle with the most others around it."""
    samples = scene.samples_at(instant)
    actor = scene.actor[samples]
    position_xy = scene.position_xy[samples].astype(float)
    center = _center(position_xy, scene.is_ego[actor], scene.is_vehicle[actor])
    if center is None:
        return None
    wanted = Area(center[0], center[1], CLOSE_UP_M, CLOSE_UP_M * aspect).within(area)
    has_enough = np.count_nonzero(wanted.contains(position_xy)) >= n_actors
    return wanted if has_enough else None


def _center(position_xy: Floats, is_ego: Bools,
            is_vehicle: Bools) -> tuple[float, float] | None:
    """Return the position of the first ego, else of the vehicle in the densest traffic."""
    rows = np.flatnonzero(is_ego)
    if not len(rows):
        rows = np.flatnonzero(is_vehicle)
        if not len(rows):
            return None
        rows = rows[[_most_neighbors(position_xy[rows])]]
    x, y = position_xy[rows[0]].tolist()
    return x, y


def _most_neighbors(position_xy: Floats) -> int:
    """Return the index of the point around which a close-up shows the most other points."""
    numbers = [np.count_nonzero((np.abs(position_xy - point) < CLOSE_UP_M / 2).all(axis=1))
               for point in position_xy]
    return int(np.argmax(numbers))


def visible_samples(scene: Scene, instant: int, areas: Sequence[Area]) -> Rows:
    """Return the samples of an instant that at least one of some areas contains, int64."""
    # instant: -1 for none.
    samples = scene.samples_at(instant)
    is_visible = np.zeros(samples.stop - samples.start, np.bool_)
    for area in areas:
        is_visible |= area.contains(scene.position_xy[samples])
    visible: Rows = samples.start + np.flatnonzero(is_visible)
    return visible


def not_shown(scene: Scene, instant: int, area: Area) -> list[str]:
    """Return how many of the counted actors are not on the map, as texts."""
    samples = scene.samples_at(instant)
    present = scene.actor[samples]
    outside = present[~area.contains(scene.position_xy[samples])]
    absent = np.setdiff1d(np.arange(len(scene.names)), present)
    where = f'not in the frame at {seconds(scene.time_s[instant])}' if instant >= 0 else 'no pose'
    return _parts(scene, outside, 'outside the map') + _parts(scene, absent, where)


def _parts(scene: Scene, actors: Rows, where: str) -> list[str]:
    """Return how many of all actors of each kind are ``actors``, as texts."""
    size = len(shapes.KIND_NAMES)
    parts, numbers = (np.bincount(of, minlength=size).tolist()
                      for of in (scene.kind[actors], scene.kind))
    texts = [part_of(part, number, noun) for part, number, noun in zip(
        parts, numbers, shapes.KIND_NAMES, strict=True) if part]
    return [f'{", ".join(texts)} {where}'] if texts else []


# Least height of a map, and height of a close-up below it, as fractions of the width.
_LEAST_MAP_HEIGHT = 0.32
_CLOSE_UP_HEIGHT = 0.28
# A close-up below takes this share of a given height.
_CLOSE_UP_SHARE = 0.4
# A map with a larger height / width has the close-up beside it; the map's share of the width then.
_BESIDE_ABOVE, _MAP_SHARE = 0.6, 0.56
# Narrower pages have the close-up below the map; lower maps have no close-up, inches.
_BESIDE_WIDTH, _LEAST_HEIGHT = 7.0, 0.8
# Footprints are too small on a map with fewer inches per meter; it gets a close-up if the scale of
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
        return self.width / self.area.width


@dataclass(frozen=True, slots=True)
class MapLayout:
    """The map of the whole recording, and the close-up beside or below it, None without one."""

    whole: Map
    detail: Map | None = None
    is_beside: bool = False
    gap: float = 0.0

    @property
    def needs_detail(self) -> bool:
        """Whether the footprints on the whole map are too small."""
        return self.whole.inches_per_m < _CLOSE_UP_BELOW

    @property
    def height(self) -> float:
        if self.detail is None or self.is_beside:
            return self.whole.height
        return self.whole.height + self.gap + self.detail.height


def are_dots(inches_per_m: float, length_m: float = CAR_LENGTH_M) -> bool:
    """Return whether footprints of a length are too small to be drawn."""
    return inches_per_m * 72.0 * length_m < _MIN_LENGTH_PT


def layout_of(scene: Scene, instant: int, width: float, height: float | None = None, *,
              has_detail: bool = True, size: PageSize = ORDINARY) -> MapLayout:
    """Choose the maps: a close-up only if it shows more than the map of the whole recording."""
    # height: height of all maps, inches; None to choose it by the shape of the data.
    gap = size.gap
    data = scene.area()
    alone = MapLayout(_whole(data, width, size, height))
    if not has_detail or not alone.needs_detail:
        return alone
    is_beside = data.height / data.width > _BESIDE_ABOVE and width > _BESIDE_WIDTH
    if is_beside:
        whole = _whole(data, _MAP_SHARE * (width - gap), size, height)
        wide, high = width - gap - whole.width, whole.height
    else:
        high = max(_CLOSE_UP_HEIGHT * width, _LEAST_HEIGHT) if height is None \
            else _CLOSE_UP_SHARE * (height - gap)
        whole = _whole(data, width, size, None if height is None else height - gap - high)
        wide = width
    if min(high, whole.height) < _LEAST_HEIGHT:
        return alone
    part = close_up(scene, instant, data, high / wide,
                    1 if are_dots(alone.whole.inches_per_m) else _MIN_CLOSE_UP_ACTORS)
    if part is None:
        return alone
    # The close-up is smaller if the data is narrower than its place.
    scale = min(wide / part.width, high / part.height)
    detail = Map(part, scale * part.width, scale * part.height)
    if height is not None and not is_beside:
        whole = _whole(data, width, size, height - gap - detail.height)
    if scale < _CLOSE_UP_TIMES * whole.inches_per_m:
        return alone
    return MapLayout(whole, detail, is_beside, gap)


def _whole(data: Area, width: float, size: PageSize, height: float | None) -> Map:
    if height is None:
        low, high = _LEAST_MAP_HEIGHT * size.inner, size.highest_map * size.inner
        height = min(max(width * data.height / data.width, low, _LEAST_HEIGHT), high)
    return Map(data.filling(height / width), width, height)

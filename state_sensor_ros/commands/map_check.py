# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A warning if the map of `--map` is that of another town."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from state_sensor_ros.classes import cached_class_of
from state_sensor_ros.commands.terminal import print_line
from state_sensor_ros.drawing.scene import kind_of, VEHICLE
from state_sensor_ros.frame import Floats, Frame, MapLine

# Vehicles that are farther from all lines of a map are not on it, m.
_OFF_MAP_M = 10.0
# Most frames, and most places, that are compared with a map.
_N_FRAMES, _N_PLACES = 200, 200


def on_map(frames: Iterable[Frame], path: str, lines: Sequence[MapLine]) -> Iterator[Frame]:
    """Yield frames, then print a warning if most vehicles were far from the lines of a map."""
    # path: the value of --map; '' for none.
    places: list[Floats] = []
    stride = 1
    for i, frame in enumerate(frames):
        yield frame
        if lines and i % stride == 0:
            are_vehicles = [kind_of(cached_class_of(kind, tags), tags) == VEHICLE
                            for kind, tags in zip(frame.kinds.tolist(), frame.tags, strict=True)]
            found = frame.position_xyz[frame.has_pose() & are_vehicles, :2]
            places.append(found[::len(found) // _N_PLACES + 1])
            if len(places) > _N_FRAMES:
                del places[1::2]
                stride *= 2
    if places and _is_off_map(np.concatenate(places), lines):
        print_line(f'warning: --map {path}: most vehicles are more than {_OFF_MAP_M:g} m away '
                   'from its lines; is it the map of another town?')


def _is_off_map(places: Floats, lines: Sequence[MapLine]) -> bool:
    """Return whether most places (n, 2) are far from all lines of a map."""
    places = places[::len(places) // _N_PLACES + 1]
    if not len(places):
        return False
    points = [line.points_xyz[:, :2] for line in lines]
    begin = np.concatenate([line[:-1] for line in points])
    step = np.concatenate([np.diff(line, axis=0) for line in points])
    squares = np.maximum((step * step).sum(axis=1), 1e-9)
    distances = []
    for place in places:
        to_place = place - begin
        share = np.clip((to_place * step).sum(axis=1) / squares, 0.0, 1.0)
        distances.append(np.hypot(*(to_place - share[:, None] * step).T).min())
    return bool(np.median(distances) > _OFF_MAP_M)

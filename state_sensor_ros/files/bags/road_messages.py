# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Names of roads and the map from ~/roads and ~/map of a bag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from state_sensor_ros.errors import StateError, TrajectoryFormatError
from state_sensor_ros.files.bags.bag_reader import Bag
from state_sensor_ros.files.bags.bag_types import typestore
from state_sensor_ros.files.bags.state_frames import NOT_SUCH
from state_sensor_ros.frame import Floats, MapLine, NO_ROADS

_ROADS = 'roads', 'state_sensor_ros/msg/RoadArray'
_MAP = 'map', 'visualization_msgs/msg/MarkerArray'
_LINE_LIST, _ADD = 5, 0


class Roads(NamedTuple):
    """Names of roads by number, and lines of the map, of all frames of a bag."""

    road_names: Mapping[int, str] = NO_ROADS
    map_lines: tuple[MapLine, ...] = ()


def roads_of(bag: Bag) -> Roads:
    """
    Read the roads of a bag; a bag without their topics has none.

    :param bag: open bag.
    :raises TrajectoryFormatError: if a message is damaged.
    """
    names: dict[int, str] = {}
    for array in _messages(bag, *_ROADS):
        names.update((road.road_id, road.name) for road in array.roads)
    lines: list[MapLine] = []
    for array in _messages(bag, *_MAP):
        # The last map is that of the last frames.
        try:
            lines = [line for marker in array.markers
                     if (marker.type, marker.action) == (_LINE_LIST, _ADD)
                     for line in _lines(marker.ns, marker.scale.y, np.array(
                         [(point.x, point.y, point.z) for point in marker.points], float))]
        except StateError as error:
            raise TrajectoryFormatError(f'{bag.name}: ~/{_MAP[0]}: {error.where}', error.found,
                                        error.expected) from error
    return Roads(MappingProxyType(names), tuple(lines))


# rosbags generates message classes at run time; they have no static type.
def _messages(bag: Bag, name: str, type_name: str) -> Iterator[Any]:
    if not bag.has(name, type_name):
        return
    for data in bag.latched(name, type_name):
        try:
            yield typestore().deserialize_cdr(data, type_name)
        except NOT_SUCH as error:
            raise TrajectoryFormatError(f'{bag.name}: ~/{name}', str(error),
                                        f'a message {type_name}') from error


def _lines(kind: str, width: float, points_xyz: Floats) -> Iterator[MapLine]:
    """Yield the lines of a list that has the begin and the end of each segment."""
    if not len(points_xyz):
        return
    begins, ends = points_xyz[0:len(points_xyz) - 1:2], points_xyz[1::2]
    breaks = np.flatnonzero((ends[:-1] != begins[1:]).any(axis=1)) + 1
    for first, last in zip([0, *breaks.tolist()], [*breaks.tolist(), len(ends)], strict=True):
        yield MapLine(kind, np.concatenate((begins[first:last], ends[last - 1:last])), width)

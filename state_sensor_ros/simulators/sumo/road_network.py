# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The roads of a SUMO network: numbers of edges, OpenDRIVE ids of lanes, stop lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
import gzip
import math
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from state_sensor_ros.simulators import ConfigError, importing, MapLine, reason_of

if TYPE_CHECKING:
    import sumolib.net

# OpenDRIVE's type of a lane that only this class of SUMO may use.
_KINDS = {'pedestrian': 'sidewalk', 'bicycle': 'biking', 'tram': 'tram', 'rail': 'rail'}
# Kinds by the function of an edge; walking areas have no middle line, only an outline.
_KINDS_BY_FUNCTION = {'internal': 'junction', 'crossing': 'crossing', 'walkingarea': ''}
# Largest file: while it is read, it takes ten times as much memory.
_MAX_BYTES = 1 << 30
_GZIP_MAGIC = b'\x1f\x8b'


@dataclass(frozen=True, slots=True)
class StopLine:
    """
    The end of a lane that a traffic light controls.

    ``light`` id of the traffic light; ``link`` index in its state; ``lane`` number of the lane in
    the network file; ``position_xyz`` m; ``yaw`` rad, direction of travel.
    """

    light: str
    link: int
    lane: int
    position_xyz: tuple[float, float, float]
    yaw: float


@dataclass(frozen=True, slots=True)
class RoadNetwork:
    """
    The parts of a network file that belong to the frames and their map.

    ``road_names`` name of each edge by its number, its place in the file from 0; ``lane_ids``
    number of the edge and OpenDRIVE id of each lane, by the lane's name; ``stop_lines`` of all
    controlled lanes; ``lines`` the middles of the lanes.
    """

    road_names: Mapping[int, str]
    lane_ids: Mapping[str, tuple[int, int]]
    stop_lines: tuple[StopLine, ...]
    lines: tuple[MapLine, ...]


NO_NETWORK = RoadNetwork({}, {}, (), ())


def read_network(path: str | Path) -> RoadNetwork:
    """
    Read a network file.

    :param path: `NAME.net.xml` or `NAME.net.xml.gz`.
    :raises ConfigError: if it cannot be read as a network.
    """
    with importing('a network of SUMO'):
        import sumolib.net
    try:
        if Path(path).stat().st_size > _MAX_BYTES:
            raise ValueError(f'more than {_MAX_BYTES} bytes')
        sign = 1 if _is_left_hand(path) else -1
        net = sumolib.net.readNet(str(path), withPrograms=True, withInternal=True)
        edges = list(net.getEdges())
        lanes = [lane for edge in edges for lane in edge.getLanes()]
        numbers = {lane.getID(): i for i, lane in enumerate(lanes)}
        ids = {lane.getID(): (i, sign * (edge.getLaneNumber() - lane.getIndex()))
               for i, edge in enumerate(edges) for lane in edge.getLanes()}
        return RoadNetwork({i: edge.getID() for i, edge in enumerate(edges)}, ids,
                           tuple(_stop_lines(net, numbers)), tuple(_lines(edges)))
    except Exception as error:  # sumolib raises what its parsers, numbers and tables raise
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        raise ConfigError('network', f'{path} ({reason})', 'a network of SUMO') from error


def read_lanes(path: str) -> Sequence[MapLine]:
    """
    Read the middles of the lanes of a network file.

    :param path: `NAME.net.xml` or `NAME.net.xml.gz`.
    :raises ConfigError: if it cannot be read as a network.
    """
    return read_network(path).lines


def _is_left_hand(path: str | Path) -> bool:
    """
    Return whether the network has left-hand traffic, from its first element.

    :raises ValueError: if this element is not that of a network.
    """
    with Path(path).open('rb') as file:
        is_compressed = file.read(2) == _GZIP_MAGIC
    with (gzip.open if is_compressed else open)(path, 'rb') as file:
        _, root = next(iter(ElementTree.iterparse(file, events=('start',))))
    if root.tag != 'net':
        raise ValueError(f'an element <{root.tag}>')
    return root.get('lefthand', 'false') in ('true', '1')


def _lines(edges: Sequence[sumolib.net.edge.Edge]) -> Iterator[MapLine]:
    for edge in edges:
        for lane in edge.getLanes():
            allowed = lane.getPermissions()
            only = next(iter(allowed)) if len(allowed) == 1 else ''
            kind = _KINDS_BY_FUNCTION.get(edge.getFunction(), _KINDS.get(only, 'driving'))
            if kind:
                yield MapLine(kind, np.array(lane.getShape3D(), float), float(lane.getWidth()))


def _stop_lines(net: sumolib.net.Net, numbers: Mapping[str, int]) -> Iterator[StopLine]:
    """Yield one stop line for each controlled lane: that of its first link."""
    for light in net.getTrafficLights():
        links: dict[str, int] = {}
        for lane, _, link in light.getConnections():
            links.setdefault(lane.getID(), link)
        for name, link in links.items():
            shape = net.getLane(name).getShape3D()
            (x0, y0, _), end = shape[-2], shape[-1]
            yield StopLine(light.getID(), link, numbers[name], end,
                           math.atan2(end[1] - y0, end[0] - x0))

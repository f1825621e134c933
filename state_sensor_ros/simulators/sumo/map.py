# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The roads of a SUMO network: edges, lanes, stop lines and the colors of their lights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
import math
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.errors import ConfigError, importing, reason_of
from state_sensor_ros.files.input import opened_beside
from state_sensor_ros.frame import MapLine, TrafficLights

if TYPE_CHECKING:
    import sumolib.net

# SUMO's class of people.
PEDESTRIAN = 'pedestrian'
# OpenDRIVE's type of a lane that only this class of SUMO may use.
_KINDS = {PEDESTRIAN: 'sidewalk', 'bicycle': 'biking', 'tram': 'tram', 'rail': 'rail'}
# Kinds by the function of an edge; walking areas have no middle line, only an outline.
_KINDS_BY_FUNCTION = {'internal': 'junction', 'crossing': 'crossing', 'walkingarea': ''}


@dataclass(frozen=True, slots=True)
class StopLine:
    """The end of a lane that a traffic light controls."""

    light: str  # id of the traffic light
    links: tuple[int, ...]  # indices of the lane's links in its state
    lane: int  # number of the lane in the network file
    position_xyz: tuple[float, float, float]  # m
    yaw: float  # rad, direction of travel
    is_split: bool  # whether a program of the light shows these links different letters
    is_for_pedestrians: bool = False


@dataclass(frozen=True, slots=True)
class RoadNetwork:
    """The parts of a network file that belong to the frames and their map."""

    road_names: Mapping[int, str]  # name of each edge by its number, its place in the file from 0
    # Number of the edge and OpenDRIVE id of each lane, by the lane's name.
    lane_ids: Mapping[str, tuple[int, int]]
    sidewalks: Mapping[str, str]  # name of the lane on which people walk, by the name of the edge
    stop_lines: tuple[StopLine, ...]  # of all controlled lanes
    lines: tuple[MapLine, ...]  # the middles of the lanes
    side: int = 1  # sign of SUMO's lateral speed to the left: -1 if traffic keeps left


NO_NETWORK = RoadNetwork({}, {}, {}, (), ())


def read_network(path: str | Path) -> RoadNetwork:
    with importing('a network of SUMO'):
        import sumolib.net
    try:
        is_left_hand = _is_left_hand(path)
        sign = 1 if is_left_hand else -1
        net = sumolib.net.readNet(str(path), withPrograms=True, withInternal=True)
        edges = list(net.getEdges())
        lanes = [lane for edge in edges for lane in edge.getLanes()]
        numbers = {lane.getID(): i for i, lane in enumerate(lanes)}
        ids = {lane.getID(): (i, sign * (edge.getLaneNumber() - lane.getIndex()))
               for i, edge in enumerate(edges) for lane in edge.getLanes()}
        # Refuses points that are NaN or far away.
        lines = tuple(_lines(edges))
        return RoadNetwork(
            {i: edge.getID() for i, edge in enumerate(edges)}, ids, dict(_sidewalks(edges)),
            tuple(_stop_lines(net, numbers)), lines, -1 if is_left_hand else 1)
    except Exception as error:  # sumolib raises what its parsers, numbers and tables raise
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        reason = reason.removeprefix(f'{path}: ')
        raise ConfigError('network', f'{path} ({reason})', 'a network of SUMO') from error


def read_lanes(path: str) -> Sequence[MapLine]:
    """
    Read the middles of the lanes of a network file.

    :param path: `NAME.net.xml` or `NAME.net.xml.gz`.
    :raises ConfigError: if it cannot be read as a network.
    """
    return read_network(path).lines


def _is_left_hand(path: str | Path) -> bool:
    """Return whether the network has left-hand traffic, from its first element."""
    with opened_beside(path) as file:
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


def _sidewalks(edges: Sequence[sumolib.net.edge.Edge]) -> Iterator[tuple[str, str]]:
    """Yield edges and the lanes for people: that for them alone, else the first they may use."""
    for edge in edges:
        lanes = [lane for lane in edge.getLanes() if lane.allows(PEDESTRIAN)]
        lanes.sort(key=lambda lane: len(lane.getPermissions()) > 1)
        if lanes:
            yield edge.getID(), lanes[0].getID()


def _stop_lines(net: sumolib.net.Net, numbers: Mapping[str, int]) -> Iterator[StopLine]:
    for light in net.getTrafficLights():
        links: dict[str, set[int]] = {}
        for lane, _, link in light.getConnections():
            links.setdefault(lane.getID(), set()).add(link)
        states = [phase.state.lower() for program in light.getPrograms().values()
                  for phase in program.getPhases()]
        for name, indices in links.items():
            is_split = any(len({state[i:i + 1] for i in indices}) > 1 for state in states)
            lane = net.getLane(name)
            *points, end = lane.getShape3D()
            x, y = next((point[:2] for point in reversed(points) if point[:2] != end[:2]),
                        points[0][:2])
            yield StopLine(light.getID(), tuple(sorted(indices)), numbers[name],
                           end, math.atan2(end[1] - y, end[0] - x), is_split,
                           lane.getEdge().getFunction() == 'walkingarea')


# Letters of SUMO's states; the others (off, blinking) have no color.
_COLORS = {**dict.fromkeys('gG', frames.LIGHT_GREEN), **dict.fromkeys('yY', frames.LIGHT_YELLOW),
           **dict.fromkeys('rRu', frames.LIGHT_RED)}
_NO_COLOR = -1


class Signals:
    """The lights of a network: one for each controlled lane, one a link if its links differ."""

    def __init__(self, network: RoadNetwork) -> None:
        self.n_dropped = 0
        lines = network.stop_lines
        self._links = [(line.light, link) for line in lines for link in line.links]
        n_links = [len(line.links) for line in lines]
        self._line_of_link = np.repeat(np.arange(len(lines)), n_links)
        self._first_links = np.cumsum([0, *n_links])[:-1]
        self._is_split = np.array([line.is_split for line in lines], bool)
        self._ids = np.array([line.lane for line in lines], np.int64)
        self._poses = np.array(
            [(*line.position_xyz, 0, 0, math.sin(line.yaw / 2), math.cos(line.yaw / 2))
             for line in lines], float).reshape(-1, 7)
        self._shapes = np.where([line.is_for_pedestrians for line in lines],
                                frames.LIGHT_PEDESTRIAN, frames.LIGHT_CIRCLE).astype(np.uint8)
        self._last: TrafficLights | None = None

    def lights(self, states: Mapping[str, str] | None) -> TrafficLights | None:
        """Return the lights of a frame."""
        # states: letters of each traffic light by its id, None if they have not changed.
        if states is None:
            return self._last
        colors = np.array([_COLORS.get(states.get(light, '')[link:link + 1], _NO_COLOR)
                           for light, link in self._links], np.int64)
        line_of_link, first_links = self._line_of_link, self._first_links
        # A lane that was split once stays so: a light does not come and go with the others.
        self._is_split[line_of_link[colors != colors[first_links][line_of_link]]] = True
        is_shown = self._is_split[line_of_link]
        is_shown[first_links] = True
        self.n_dropped = int((is_shown & (colors == _NO_COLOR)).sum())
        shown = np.flatnonzero(is_shown & (colors != _NO_COLOR))
        self._last = TrafficLights(
            self._ids[line_of_link[shown]],
            tuple(f'{light}/{link}' for light, link in (self._links[i] for i in shown)),
            colors[shown].astype(np.uint8), self._poses[line_of_link[shown]],
            self._shapes[line_of_link[shown]], are_at_stop_lines=True)
        return self._last

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
A Lanelet2 map: middles of its lanelets, heads of its traffic lights, and who refers to them.

The format is that of OpenStreetMap with the tags of Lanelet2; `local_x`, `local_y` and `ele`
place a node, as Autoware's tools write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import Floats, MapLine
from state_sensor_ros.small_files import read_limited

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

# Largest file: while it is read, it takes ten times as much memory.
_MAX_BYTES = 256 * 1024 * 1024
# Lane types of OpenDRIVE by subtypes of lanelets; others keep their name.
_KINDS = {'road': 'driving', 'highway': 'driving', 'play_street': 'driving',
          'bus_lane': 'driving', 'emergency_lane': 'driving', 'bicycle_lane': 'biking',
          'walkway': 'sidewalk', 'shared_walkway': 'sidewalk', 'crosswalk': 'crossing',
          'road_shoulder': 'shoulder', 'pedestrian_lane': 'sidewalk'}
_FOR_PEDESTRIANS = ('sidewalk', 'crossing')


class LaneletMap(NamedTuple):
    """
    The parts of a map that are used.

    A group is a regulatory element of the subtype `traffic_light`, known by its id.
    """

    lines: tuple[MapLine, ...]
    # Center (3,), m, of the heads of traffic lights, and the ids of the groups of each.
    heads: Sequence[tuple[Floats, Sequence[int]]]
    # Stop line (P, 3) of each group that has one, m.
    stop_lines: Mapping[int, Floats]
    # Groups to which lanelets for pedestrians refer.
    pedestrian_groups: frozenset[int]


class _Relation(NamedTuple):
    id: int
    tags: Mapping[str, str]
    # Role and id of each member: ways that exist, and relations.
    members: Sequence[tuple[str, str]]

    def of(self, role: str) -> Iterator[str]:
        return (name for of, name in self.members if of == role)


def read_lanelets(path: str) -> Sequence[MapLine]:
    lines = read_lanelet_map(path).lines
    if not lines:
        raise ConfigError(path, 'no lanelets', 'a Lanelet2 map')
    return lines


def read_lanelet_map(path: str) -> LaneletMap:
    text = read_limited(path, _MAX_BYTES, 'a Lanelet2 map')
    try:
        root = ElementTree.fromstring(text)
        if root.tag != 'osm':
            raise ValueError(f'an element <{root.tag}>')
        return _parse(root)
    # An encoding that Python does not have is a LookupError.
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise ConfigError(path, str(error), 'a Lanelet2 map') from error


def _parse(root: Element) -> LaneletMap:
    places = _places(root)
    ways = {way.get('id', ''): np.array([
        places[node] for item in way.iterfind('nd') if (node := item.get('ref', '')) in places])
        for way in root.iterfind('way')}
    ways = {name: points for name, points in ways.items() if len(points)}
    relations = [_relation(element, ways) for element in root.iterfind('relation')]
    lanelets = [relation for relation in relations if relation.tags.get('type') == 'lanelet']
    lights = [relation for relation in relations
              if relation.tags.get('type') == 'regulatory_element'
              and relation.tags.get('subtype') == 'traffic_light']
    heads: dict[str, list[int]] = {}
    for light in lights:
        for way in light.of('refers'):
            heads.setdefault(way, []).append(light.id)
    return LaneletMap(
        tuple(_middles(lanelets, ways)),
        [(ways[way].mean(0), groups) for way, groups in heads.items()],
        {light.id: ways[way] for light in lights for way in light.of('ref_line')},
        frozenset(int(name) for lanelet in lanelets
                  if _KINDS.get(lanelet.tags.get('subtype', '')) in _FOR_PEDESTRIANS
                  for name in lanelet.of('regulatory_element')))


def _tags(element: Element) -> dict[str, str]:
    return {tag.get('k', ''): tag.get('v', '') for tag in element.iterfind('tag')}


def _relation(element: Element, ways: Mapping[str, Floats]) -> _Relation:
    return _Relation(int(element.get('id', '')), _tags(element), [
        (member.get('role', ''), name) for member in element.iterfind('member')
        if (name := member.get('ref', '')) in ways or member.get('type') != 'way'])


def _places(root: Element) -> dict[str, Floats]:
    """Return (3,) m, the place of each node by its id."""
    places: dict[str, Floats] = {}
    for node in root.iterfind('node'):
        name, tags = node.get('id', ''), _tags(node)
        if not {'local_x', 'local_y'} <= tags.keys():
            raise ValueError(f'node {name} without local_x and local_y')
        places[name] = np.array([float(tags.get(key, 0.0)) for key in (
            'local_x', 'local_y', 'ele')])
    return places


def _middles(lanelets: Iterable[_Relation], ways: Mapping[str, Floats]) -> Iterator[MapLine]:
    for lanelet in lanelets:
        bounds = [_joined([ways[way] for way in lanelet.of(side)])
                  for side in ('left', 'right')]
        if min(map(len, bounds)) < 2:
            continue
        left, right = bounds
        # Ways may run against each other; the left one is to the left of the direction.
        if np.sum((left[0] - right[0])**2) > np.sum((left[0] - right[-1])**2):
            right = right[::-1]
        n_points = max(len(left), len(right))
        left, right = _resampled(left, n_points), _resampled(right, n_points)
        middle = (left + right) / 2.0
        along, across = middle[-1] - middle[0], (left - right).mean(0)
        if along[0] * across[1] - along[1] * across[0] < 0.0:
            middle = middle[::-1]
        subtype = lanelet.tags.get('subtype', 'road')
        yield MapLine(_KINDS.get(subtype, subtype or 'driving'), middle.copy(), float(np.median(
            np.linalg.norm(left - right, axis=1))), str(lanelet.id))


def _joined(parts: Sequence[Floats]) -> Floats:
    """Return one line of ways that follow each other, each in either direction."""
    if not parts:
        return np.zeros((0, 3))
    line = parts[0]
    for part in parts[1:]:
        if not np.allclose(line[-1], part[0]) and np.allclose(line[-1], part[-1]):
            part = part[::-1]
        line = np.concatenate((line, part[1:] if np.allclose(line[-1], part[0]) else part))
    return line


def _resampled(line: Floats, n_points: int) -> Floats:
    """Return (n_points, 3), points at equal distances along a line."""
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))))
    at = np.linspace(0.0, s[-1], n_points)
    return np.column_stack([np.interp(at, s, column) for column in line.T])

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""The state of the traffic lights, by the regulatory elements of Autoware's Lanelet2 map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from state_sensor_ros.cdr.templates import Each, Given, MessageInstance
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import (
    Floats,
    Frame,
    LIGHT_CIRCLE,
    LIGHT_GREEN,
    LIGHT_PEDESTRIAN,
    LIGHT_RED,
    LIGHT_YELLOW,
)
from state_sensor_ros.settings import Autoware, Settings
from state_sensor_ros.small_files import read_limited
from state_sensor_ros.texts import counted, one_line, shortened
from state_sensor_ros.topics import encoding
from state_sensor_ros.topics.stacks.lanelet2 import LaneletMap, read_lanelet_map
from state_sensor_ros.topics.tables import STAMP_FIELD
from state_sensor_ros.topics.topic import Qos, Topic

SIGNALS_TOPIC = Topic(
    '/perception/traffic_light_recognition/traffic_signals',
    'autoware_perception_msgs/msg/TrafficLightGroupArray', Qos(depth=1), is_exclusive=True)

# Constants of autoware_perception_msgs/TrafficLightElement.
_COLORS = {LIGHT_RED: 1, LIGHT_YELLOW: 2, LIGHT_GREEN: 3}
_SOLID_ON = 2
_ELEMENT = {'color': Given('color'), 'shape': Given('shape'), 'status': Given('status'),
            'confidence': Given('confidence')}
_UNKNOWN = {'color': 0, 'shape': 0, 'status': 0, 'confidence': 0.0}
_STATES = {'green': LIGHT_GREEN, 'yellow': LIGHT_YELLOW, 'red': LIGHT_RED}


# Characters of a list of names in the log.
_MAX_NAMES = 200
# Characters of a table: more than the lights of a city.
_MAX_TABLE = 1_000_000


class ShownLight(NamedTuple):
    """A light that shows a color: its place (3,), m, and whether that is its stop line."""

    name: str
    id: int
    state: int
    shape: int
    position_xyz: Floats
    is_at_stop_line: bool = False
    open_drive_id: str = ''


def lights_of(frame: Frame) -> list[ShownLight]:
    """Return the traffic lights of a frame that show a color."""
    # frame: its ``traffic_lights`` are used, else its actors that display a color.
    lights = frame.traffic_lights
    if lights is not None:
        shapes = [LIGHT_CIRCLE] * len(lights.names) if lights.shapes is None \
            else lights.shapes.tolist()
        signals = lights.open_drive_ids or ('',) * len(lights.names)
        at_line = [lights.are_at_stop_lines] * len(lights.names)
        return [ShownLight(*row) for row in zip(
            lights.names, lights.ids.tolist(), lights.states.tolist(), shapes,
            lights.poses[:, :3], at_line, signals, strict=True)]
    if frame.extension is None:
        return []
    ids = [-1] * len(frame) if frame.ids is None else frame.ids.tolist()
    return [ShownLight(frame.names[row], ids[row], _STATES[text], LIGHT_CIRCLE,
                       frame.position_xyz[row])
            for row, text in enumerate(frame.extension.displays()) if text in _STATES]


class TabledGroups:
    """
    Groups by name, OpenDRIVE id or id of a light, from a YAML file with ids for each.

    ``missing`` what a light without groups lacks, for the log.
    """

    def __init__(self, path: str) -> None:
        self.path, self.missing = path, f'no entry in {path}'
        self._groups = _read_table(path)

    def of(self, light: ShownLight) -> tuple[int, ...]:
        """Return the groups of its name, else of its signal in OpenDRIVE, else of its id."""
        keys = (light.name, light.open_drive_id, str(light.id))
        return next((self._groups[key] for key in keys if self._groups.get(key)), ())

    def unmatched(self, lights: Iterable[ShownLight]) -> list[str]:
        """Return the entries that are of none of the lights."""
        keys = {key for light in lights for key in (
            light.name, light.open_drive_id, str(light.id))}
        return [key for key in self._groups if key not in keys]


class MappedGroups:
    """Groups of the nearest light head, or of the nearest stop line for a light that is at one."""

    def __init__(self, path: str, limit_m: float) -> None:
        lanelets = read_lanelet_map(path)
        if not lanelets.heads:
            raise ConfigError(path, 'no regulatory elements of traffic lights',
                              'a Lanelet2 map with traffic lights')
        self.missing = f'no light head within {limit_m:g} m in {path}'
        self._limit_m = limit_m
        # Lines (P, 2) and the groups to which each belongs: heads, and stop lines.
        self._heads = [(head.position_xyz[None, :2], head.groups) for head in lanelets.heads]
        sharing = _sharing_groups(lanelets)
        self._stop_lines = [(line[:, :2], sharing[group])
                            for group, line in lanelets.stop_lines.items()]
        self._pedestrian_groups = lanelets.pedestrian_groups

    def of(self, light: ShownLight) -> tuple[int, ...]:
        """Return every group that refers to the head, or to a head of the stop line's group."""
        is_for_pedestrians = light.shape == LIGHT_PEDESTRIAN
        best: tuple[float, tuple[int, ...]] = self._limit_m, ()
        # Crossings have no stop line.
        is_at_stop_line = light.is_at_stop_line and not is_for_pedestrians
        for line, groups in self._stop_lines if is_at_stop_line else self._heads:
            fitting = tuple(group for group in groups if (
                group in self._pedestrian_groups) == is_for_pedestrians)
            # False for NaN, of a light without a place.
            if fitting and (distance := _distance(light.position_xyz[:2], line)) <= best[0]:
                best = distance, fitting
        return best[1]


class TrafficSignalsEncoder(encoding.TopicEncoder):
    """
    One TrafficLightGroupArray: a group for each that a light of the simulator has had so far.

    A group whose lights show different colors, or none in this frame, is unknown.
    """

    topics = (SIGNALS_TOPIC,)

    @classmethod
    def topics_of(cls, settings: Settings) -> tuple[Topic, ...]:
        """Return the topic if a parameter says where the ids of the groups come from."""
        own = settings.of(Autoware)
        return cls.topics if own.lanelet2_map or own.traffic_light_ids else ()

    def set_up(self, settings: Settings) -> None:
        own = settings.of(Autoware)
        self._unchecked = [TabledGroups(path) for path in (own.traffic_light_ids,) if path]
        self._sources: list[TabledGroups | MappedGroups] = [*self._unchecked]
        if own.lanelet2_map:
            self._sources.append(MappedGroups(own.lanelet2_map, own.traffic_light_distance))
        self._message = self.message(SIGNALS_TOPIC.type_name, {
            'stamp': STAMP_FIELD,
            'traffic_light_groups': Each('groups', {
                'traffic_light_group_id': Given('id'), 'elements': Each('elements', _ELEMENT)})})
        self.restart()

    def restart(self) -> None:
        """Match the lights of the next run anew."""
        self._groups: dict[str, tuple[int, ...]] = {}

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the lights and their states."""
        return [light[:4] for light in lights_of(now.frame)]

    def blocks(self, now: encoding.FrameToSend) -> Sequence[encoding.MessageBlock]:
        """Lay out the message; there is none before the first light."""
        lights = lights_of(now.frame)
        while lights and self._unchecked:
            table = self._unchecked.pop()
            if names := table.unmatched(lights):
                self._report('light ids', f'{table.path}: no traffic light of the first frame '
                             'with lights has the name or id '
                             f'{shortened(", ".join(names), _MAX_NAMES)}')
        self._match(light for light in lights if light.name not in self._groups)
        if not self._groups:
            return []
        shown: dict[int, dict[int, set[int]]] = {
            group: {} for groups in self._groups.values() for group in groups}
        for light in lights:
            for group in self._groups[light.name]:
                shown[group].setdefault(light.shape, set()).add(light.state)
        return encoding.message_blocks([MessageInstance(self._message, {'groups': [
            {'id': group, 'elements': _elements(shown[group])} for group in sorted(shown)]})], {},
            self.topics)

    def _match(self, lights: Iterable[ShownLight]) -> None:
        """Find the groups of lights; report those without any."""
        lost = []
        for light in lights:
            found = (source.of(light) for source in self._sources)
            self._groups[light.name] = next(filter(None, found), ())
            if not self._groups[light.name]:
                lost.append(light.name)
        if lost:
            why = ' and '.join(source.missing for source in self._sources)
            self._report('traffic lights', f'{counted(len(lost), "traffic light")} without a '
                         f'regulatory element: {why}: {shortened(", ".join(lost), _MAX_NAMES)}')


def _elements(shown: Mapping[int, set[int]]) -> list[Mapping[str, int | float]]:
    """Return the elements of a group from the states of its lights by shape."""
    return [{'color': _COLORS[next(iter(states))], 'status': _SOLID_ON, 'confidence': 1.0,
             'shape': LIGHT_CIRCLE if shape == LIGHT_PEDESTRIAN else shape}
            if len(states) == 1 else _UNKNOWN
            for shape, states in sorted(shown.items())] or [_UNKNOWN]


def _sharing_groups(lanelets: LaneletMap) -> dict[int, tuple[int, ...]]:
    """Return, for each group, it and those that refer to one of its heads, too."""
    sharing: dict[int, set[int]] = {group: {group} for group in lanelets.stop_lines}
    for head in lanelets.heads:
        for group in head.groups:
            sharing.setdefault(group, set()).update(head.groups)
    return {group: tuple(sorted(groups)) for group, groups in sharing.items()}


def _distance(place: Floats, line: Floats) -> float:
    """Return the distance of a point (2,) from a line (P, 2), m."""
    if len(line) == 1:
        return float(np.linalg.norm(line[0] - place))
    begins, spans = line[:-1], np.diff(line, axis=0)
    lengths = np.maximum((spans**2).sum(1), 1e-12)
    along = np.clip(((place - begins) * spans).sum(1) / lengths, 0.0, 1.0)
    return float(np.linalg.norm(begins + spans * along[:, None] - place, axis=1).min())


def _read_table(path: str) -> dict[str, tuple[int, ...]]:
    """Return the ids of groups by the name or the id of a light."""
    expected = 'a mapping of names or ids of lights to an id of a group, or a list of ids'
    try:
        table = YAML(typ='safe').load(read_limited(path, _MAX_TABLE, expected).decode())
    except (UnicodeDecodeError, YAMLError) as error:
        raise ConfigError(path, one_line(str(error)), expected) from error
    if not isinstance(table, dict):
        raise ConfigError(path, f'a {type(table).__name__}', expected)
    found = {}
    for name, value in table.items():
        ids = value if isinstance(value, list) else [value]
        for number in ids:
            if type(number) is not int or not -2**63 <= number < 2**63:
                raise ConfigError(path, f'{number!r} for the light {name}', expected)
        found[str(name)] = tuple(ids)
    return found

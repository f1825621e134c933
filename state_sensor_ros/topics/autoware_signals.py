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

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.cdr.templates import Each, Given, MessageInstance
from state_sensor_ros.errors import ConfigError, importing
from state_sensor_ros.frame import Floats, Frame
from state_sensor_ros.settings import Autoware, Settings
from state_sensor_ros.small_files import read_limited
from state_sensor_ros.texts import counted, one_line, shortened
from state_sensor_ros.topics import encoding
from state_sensor_ros.topics.lanelet2 import read_lanelet_map
from state_sensor_ros.topics.tables import STAMP_FIELD
from state_sensor_ros.topics.topic import stack_topic, Topic

SIGNALS_TOPIC = stack_topic('/perception/traffic_light_recognition/traffic_signals',
                            'autoware_perception_msgs/msg/TrafficLightGroupArray')

# Constants of autoware_perception_msgs/TrafficLightElement.
_COLORS = {frames.LIGHT_RED: 1, frames.LIGHT_YELLOW: 2, frames.LIGHT_GREEN: 3}
_SOLID_ON = 2
_UNKNOWN = {'color': 0, 'shape': 0, 'status': 0, 'confidence': 0.0}
_STATES = {'green': frames.LIGHT_GREEN, 'yellow': frames.LIGHT_YELLOW, 'red': frames.LIGHT_RED}
# Of a group in the messages.
_Id = Annotated[int, msgspec.Meta(ge=-2**63, le=2**63 - 1)]
# Largest horizontal distance of a traffic light from its light head or stop line in the map, m.
_REACH_M = 10.0
# Characters of a list of names in the log.
_MAX_NAMES = 200
# Characters of a table: more than the lights of a city.
_MAX_TABLE = 1_000_000


class ShownLight(NamedTuple):
    """A light that shows a color: its pose (7,), m, and whether that is its stop line."""

    name: str
    id: int
    state: int
    shape: int
    pose: Floats
    is_at_stop_line: bool = False
    open_drive_id: str = ''


def lights_of(frame: Frame) -> list[ShownLight]:
    """Return the traffic lights of a frame that show a color."""
    # frame: its ``traffic_lights`` are used, else its actors that display a color.
    lights = frame.traffic_lights
    if lights is not None:
        n_lights = len(lights.names)
        return [ShownLight(*row) for row in zip(
            lights.names, lights.ids.tolist(), lights.states.tolist(),
            [frames.LIGHT_CIRCLE] * n_lights if lights.shapes is None else lights.shapes.tolist(),
            lights.poses, [lights.are_at_stop_lines] * n_lights,
            lights.open_drive_ids or ('',) * n_lights, strict=True)]
    if frame.extension is None:
        return []
    ids = [-1] * len(frame) if frame.ids is None else frame.ids.tolist()
    return [ShownLight(frame.names[row], ids[row], _STATES[text], frames.LIGHT_CIRCLE,
                       frame.kinematics[row, :7])
            for row, text in enumerate(frame.extension.displays()) if text in _STATES]


class _Groups(NamedTuple):
    """Where the groups of a light come from."""

    of: Callable[[ShownLight], Sequence[int]]
    missing: str  # what a light without groups lacks, for the log


def _tabled(path: str) -> _Groups:
    """Return groups by name, OpenDRIVE id or id of a light, from a YAML file with ids for each."""
    expected = 'a mapping of names or ids of lights to an id of a group, or a list of ids'
    with importing('autoware.traffic_light_ids'):
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    try:
        table = msgspec.convert(
            YAML(typ='safe').load(read_limited(path, _MAX_TABLE, expected).decode()),
            dict[str | int, _Id | list[_Id]])
    except (UnicodeDecodeError, YAMLError, msgspec.ValidationError) as error:
        raise ConfigError(path, one_line(str(error)), expected) from error
    groups = {str(name): ids if isinstance(ids, list) else [ids] for name, ids in table.items()}

    def of(light: ShownLight) -> Sequence[int]:
        keys = light.name, light.open_drive_id, str(light.id)
        return next((groups[key] for key in keys if groups.get(key)), ())

    return _Groups(of, f'no entry in {path}')


def _mapped(path: str) -> _Groups:
    """Return groups by the nearest light head, or stop line for a light that is at one."""
    lanelets = read_lanelet_map(path)
    if not lanelets.heads:
        raise ConfigError(path, 'no regulatory elements of traffic lights',
                          'a Lanelet2 map with traffic lights')
    # Lines (P, 2), and the groups of each; with a group of a stop line those that share a head.
    heads = [(position[None, :2], groups) for position, groups in lanelets.heads]
    stop_lines = [(line[:, :2], sorted({group}.union(*(
        groups for _, groups in lanelets.heads if group in groups))))
        for group, line in lanelets.stop_lines.items()]

    def of(light: ShownLight) -> Sequence[int]:
        is_for_pedestrians = light.shape == frames.LIGHT_PEDESTRIAN
        best: tuple[float, Sequence[int]] = _REACH_M, ()
        # Crossings have no stop line.
        for line, groups in stop_lines if light.is_at_stop_line and not is_for_pedestrians \
                else heads:
            fitting = [group for group in groups
                       if (group in lanelets.pedestrian_groups) == is_for_pedestrians]
            # False for NaN, of a light without a place.
            if fitting and (distance := _distance(light.pose[:2], line)) <= best[0]:
                best = distance, fitting
        return best[1]

    return _Groups(of, f'no light head within {_REACH_M:g} m in {path}')


def _distance(place: Floats, line: Floats) -> float:
    """Return the distance of a point (2,) from a line (P, 2), m."""
    # The last span has no length: that of a single point, too.
    spans = np.diff(line, axis=0, append=line[-1:])
    along = np.clip(((place - line) * spans).sum(1) / np.maximum((spans**2).sum(1), 1e-12),
                    0.0, 1.0)
    return float(np.linalg.norm(line + spans * along[:, None] - place, axis=1).min())


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
        self._sources = [_tabled(own.traffic_light_ids)] if own.traffic_light_ids else []
        if own.lanelet2_map:
            self._sources.append(_mapped(own.lanelet2_map))
        self._message = self.message(SIGNALS_TOPIC.type_name, {
            'stamp': STAMP_FIELD,
            'traffic_light_groups': Each('groups', {
                'traffic_light_group_id': Given('id'),
                'elements': Each('elements', {name: Given(name) for name in _UNKNOWN})})})
        self.restart()

    def restart(self) -> None:
        """Match the lights of the next run anew."""
        self._groups: dict[str, Sequence[int]] = {}

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the lights and their states."""
        return [light[:4] for light in lights_of(now.frame)]

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the message; there is none before the first light."""
        lights = lights_of(now.frame)
        self._match(light for light in lights if light.name not in self._groups)
        if not self._groups:
            return None
        shown: dict[int, dict[int, set[int]]] = {
            group: {} for groups in self._groups.values() for group in groups}
        for light in lights:
            for group in self._groups[light.name]:
                shown[group].setdefault(light.shape, set()).add(light.state)
        return encoding.MessageBlock([MessageInstance(self._message, {'groups': [
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
             'shape': frames.LIGHT_CIRCLE if shape == frames.LIGHT_PEDESTRIAN else shape}
            if len(states) == 1 else _UNKNOWN
            for shape, states in sorted(shown.items())] or [_UNKNOWN]

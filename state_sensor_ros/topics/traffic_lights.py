# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The traffic lights that are not actors: ~/traffic_lights, and their spheres in ~/markers."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Given, GivenRows, MessageInstance, Slot, Table, Template
from state_sensor_ros.frame import TrafficLights
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.tables import header, pose
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, MessageBlock, Numbers, TopicEncoder

LIGHTS_NS = 'traffic_lights'
_SPHERE_LIST = 7
# m: the spheres are above the stop line, and visible in a view of a whole crossing.
_DIAMETER, _ABOVE = 1.0, 1.0
# rgba 0..1 by state: green, yellow, red.
STATE_COLORS = np.array(((0.0, 0.8, 0.2, 1.0), (1.0, 0.8, 0.0, 1.0), (0.9, 0.1, 0.1, 1.0)),
                        np.float32)
# One row for each light.
SIGNAL_POSES = Table('signal poses', np.float64, 7)
SIGNAL_STATES = Table('signal states', np.uint8, 1)


def lights_template(settings: Settings, definitions: Definitions, marker: str) -> Template:
    """Return the template of the spheres of all lights; ``marker``: type of their message."""
    return Template(definitions, marker, {
        'header': header(settings.global_frame), 'ns': LIGHTS_NS, 'type': _SPHERE_LIST,
        'pose': {'orientation': {'w': 1.0}}, 'scale': dict.fromkeys('xyz', _DIAMETER),
        'color': {'a': 1.0}, 'points': GivenRows('points', ('x', 'y', 'z')),
        'colors': GivenRows('colors', ('r', 'g', 'b', 'a'))})


def lights_marker(template: Template, lights: TrafficLights) -> MessageInstance:
    """Return the spheres of some lights."""
    return MessageInstance(template, {'points': lights.poses[:, :3] + (0.0, 0.0, _ABOVE),
                                      'colors': STATE_COLORS[lights.states]})


class LightsEncoder(TopicEncoder):
    """One TrafficLightStateArray for each frame of a source with lights that are not actors."""

    topics = (Topic('~/traffic_lights', 'state_sensor_ros/msg/TrafficLightStateArray'),)
    opens_with = attrgetter('traffic_lights')

    def set_up(self, settings: Settings) -> None:
        self._element = self.element('state_sensor_ros/msg/TrafficLightState', {
            'name': Given('name'), 'id': Given('id'), 'frame_id': settings.global_frame,
            'state': Slot(SIGNAL_STATES, 0), 'pose': pose(SIGNAL_POSES)})
        self._array = self.array({'header': header(settings.global_frame)})

    def key(self, now: FrameToSend) -> object:
        lights = now.frame.traffic_lights
        return None if lights is None else (lights.names, lights.ids.tobytes())

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the array; there is none without lights."""
        lights = now.frame.traffic_lights
        if lights is None:
            return []
        return self._array.blocks([
            MessageInstance(self._element, {'name': name, 'id': number})
            for name, number in zip(lights.names, lights.ids.tolist(), strict=True)],
            {}, self.topics)

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add states and poses."""
        lights = now.frame.traffic_lights
        assert lights is not None
        numbers |= {SIGNAL_STATES: lights.states[:, None], SIGNAL_POSES: lights.poses}

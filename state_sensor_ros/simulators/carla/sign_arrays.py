# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/traffic_lights and ~/speed_limits: an array of all lights, and one of all signs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from state_sensor_ros.simulators import Report, Settings
from state_sensor_ros.simulators.carla.carla_data import (
    CarlaData,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    data_of,
)
from state_sensor_ros.simulators.carla.carla_topics import LIGHTS_TOPIC, LIMITS_TOPIC
from state_sensor_ros.simulators.frame_arrays import normalised
from state_sensor_ros.simulators.own_topics import (
    Definitions,
    Fields,
    FrameToSend,
    Given,
    header,
    MessageBlock,
    MessageInstance,
    Numbers,
    pose,
    Slot,
    Table,
    Template,
    TopicEncoder,
)

# One row for each actor of the frame: pose, state of a light, limit of a sign in m/s.
SIGN_POSES = Table('sign poses', np.float64, 7)
LIGHT_STATES = Table('light states', np.uint8, 1)
SPEED_LIMITS = Table('speed limits', np.float64, 1)


def add_sign_poses(now: FrameToSend, data: CarlaData, numbers: Numbers) -> None:
    """
    Add SIGN_POSES once for all topics of lights and signs; rows of other actors are not used.

    :param data: CARLA's own data of the frame.
    """
    if SIGN_POSES in numbers:
        return
    poses = now.frame.kinematics[:, :7].copy()
    # Displays take unit quaternions only.
    signs = now.usable & (data.classes >= CLASS_TRAFFIC_LIGHT)
    poses[signs, 3:] = normalised(poses[signs, 3:])
    numbers[SIGN_POSES] = poses


class SignArrayEncoder(TopicEncoder):
    """
    One array of the actors of a class; the base of the two topics.

    ``class_`` of the actors; ``fields`` of an element beside its name and pose.
    """

    class_: ClassVar[int]
    element_type: ClassVar[str]
    fields: ClassVar[Fields]

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        super().__init__(settings, definitions, report)
        self._element = Template(definitions, self.element_type, {
            **{name: Given(name) for name in ('name', 'frame_id', 'id')},
            'pose': pose(SIGN_POSES), **self.fields})
        self._array = self.array({'header': header(settings.global_frame)},
                                 self._element, self._element)

    def key(self, now: FrameToSend) -> object:
        """Return the actors of the class."""
        data = data_of(now.frame)
        return None if data is None else (data.classes.tobytes(), data.ids.tobytes())

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the array."""
        data, actors = data_of(now.frame), now.actor_list.actors
        if data is None:
            return []
        rows = np.flatnonzero(data.classes == self.class_)
        return self._array.blocks([
            MessageInstance(self._element, {
                'name': actors[i].name, 'frame_id': actors[i].frame_id, 'id': int(data.ids[i])})
            for i in rows.tolist()],
            dict.fromkeys((SIGN_POSES, LIGHT_STATES, SPEED_LIMITS), rows), self.topics)

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add poses, states and limits."""
        data = data_of(now.frame)
        if data is not None:
            add_sign_poses(now, data, numbers)
            numbers[LIGHT_STATES] = data.lights[:, None]
            numbers[SPEED_LIMITS] = data.speed_limits[:, None]


class TrafficLightsEncoder(SignArrayEncoder):
    """The traffic lights and their states."""

    topics = (LIGHTS_TOPIC,)
    class_ = CLASS_TRAFFIC_LIGHT
    element_type = 'state_sensor_ros/msg/TrafficLightState'
    fields: ClassVar[Fields] = {'state': Slot(LIGHT_STATES, 0)}


class SpeedLimitsEncoder(SignArrayEncoder):
    """The speed limit signs and their limits."""

    topics = (LIMITS_TOPIC,)
    class_ = CLASS_SPEED_LIMIT_SIGN
    element_type = 'state_sensor_ros/msg/SpeedLimit'
    fields: ClassVar[Fields] = {'speed_limit': Slot(SPEED_LIMITS, 0)}

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Joint states of the wheels of each vehicle: spin angle (rad) and speed (rad/s)."""

from __future__ import annotations

from typing import Any

import numpy as np

from state_sensor_ros.cdr.templates import Each, Given, MessageInstance, Slot, Table
from state_sensor_ros.naming import Actor, wheel_frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.per_actor import Column, PerActorTopic
from state_sensor_ros.topics.tables import header
from state_sensor_ros.topics.topic_encoder import FrameToSend, MessageBlock, Numbers, TopicEncoder

# Of wheels: spin angle (rad, -pi..pi, NaN unknown), speed.
JOINT = Table('joint', np.float64, 2)


class JointStateEncoder(TopicEncoder):
    """One message for each vehicle whose topic has a reader."""

    kind = 'joint_states'
    type_name = 'sensor_msgs/msg/JointState'

    def set_up(self, settings: Settings) -> None:
        self._prefix = settings.frame_prefix
        self._template = self.message(self.type_name, {
            'header': header(''), 'name': Given('names'),
            'position': Each('wheels', Slot(JOINT, 0)),
            'velocity': Each('wheels', Slot(JOINT, 1))})
        self._actor_topic = PerActorTopic(self, self._instance)

    def is_on_for_actors(self, settings: Settings) -> bool:
        """Return ``joint_states``."""
        return settings.joint_states

    def is_of_actor(self, *, has_lanes: bool, has_wheels: bool) -> bool:
        """Return ``has_wheels``."""
        return has_wheels

    def needs(self, settings: Settings) -> bool:
        return True

    def key(self, now: FrameToSend) -> object:
        """Return the wheels of each actor."""
        wheels = now.frame.wheels
        return None if wheels is None else (wheels.actor.tobytes(), wheels.wheel.tobytes())

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the messages of all vehicles in one block."""
        wheels = now.frame.wheels
        if wheels is None:
            return []
        first = np.searchsorted(wheels.actor, np.arange(len(now.usable) + 1))
        return self._actor_topic.blocks(
            now, now.usable & (first[1:] > first[:-1]), (JOINT,), wheels.actor,
            (Column(wheels.wheel.tobytes(), first),))

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        wheels = now.frame.wheels
        assert wheels is not None
        joints = np.empty((len(wheels.actor), JOINT.width))
        # Steering about z, then spin about y (doc/protocol/units.md#wheel-rotation); q equals -q.
        orientation_xyzw = wheels.known_orientation_xyzw()
        w = orientation_xyzw[:, 3]
        spin = 2.0 * np.arctan2(orientation_xyzw[:, 1] * np.copysign(1.0, w), np.abs(w))
        joints[:, 0] = np.where(wheels.orientation_known, spin, np.nan)
        joints[:, 1] = wheels.speed
        numbers[JOINT] = joints

    def _instance(self, actor: Actor, appearance: tuple[Any, ...], _: object) -> MessageInstance:
        wheels, = appearance
        return MessageInstance(self._template, {
            'names': [wheel_frame(self._prefix, actor, wheel) for wheel in wheels],
            'wheels': [{}] * len(wheels)})

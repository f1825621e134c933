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

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Each, Given, MessageInstance, Slot, Template
from state_sensor_ros.naming import Actor
from state_sensor_ros.topics.layout_key import LayoutRequest
from state_sensor_ros.topics.message_block import MessageBlock
from state_sensor_ros.topics.per_actor import Column
from state_sensor_ros.topics.per_actor_topic import PerActorTopic
from state_sensor_ros.topics.tables import header, JOINT
from state_sensor_ros.topics.topic import JOINT_STATES, NO_ACTORS


class JointStateEncoder:
    """
    One message for each vehicle whose topic has a subscriber.

    :param definitions: of the messages.
    """

    def __init__(self, definitions: Definitions) -> None:
        self.template = Template(definitions, JOINT_STATES, {
            'header': header(''), 'name': Given('names'),
            'position': Each('wheels', Slot(JOINT, 0)),
            'velocity': Each('wheels', Slot(JOINT, 1))}, is_message=True)
        self._topic = PerActorTopic('joint_states', JOINT_STATES, None, self._instance)

    def blocks(self, request: LayoutRequest) -> list[MessageBlock]:
        """
        Lay out the messages of all vehicles in one block.

        :param request: of which ``demand.joint_states`` selects the vehicles.
        :returns: one block or none.
        """
        wheels, subscribed = request.frame.wheels, request.demand.joint_states
        if wheels is None or subscribed == NO_ACTORS:
            return []
        first = np.searchsorted(wheels.actor, np.arange(len(request.usable) + 1))
        present = request.usable & (first[1:] > first[:-1])
        return self._topic.blocks(
            request.actor_list,
            self._topic.are_subscribed(request.actor_list, subscribed) & present, (JOINT,),
            wheels.actor, with_ego=False, columns=(Column(wheels.wheel.tobytes(), first),))

    def _instance(self, actor: Actor, appearance: tuple[Any, ...], _: object) -> MessageInstance:
        wheels, = appearance
        return MessageInstance(self.template, {
            'names': [f'{actor.topic_name}/wheel_{wheel}' for wheel in wheels],
            'wheels': [{}] * len(wheels)})

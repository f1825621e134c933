# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Lane states: of each vehicle that has one, of the ego, and of all vehicles in one array."""

from __future__ import annotations

from itertools import compress

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Given, MessageInstance, Template
from state_sensor_ros.naming import Actor
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.layout_key import LayoutRequest
from state_sensor_ros.topics.message_block import MessageBlock, rows_where
from state_sensor_ros.topics.per_actor import PerActor
from state_sensor_ros.topics.per_actor_topic import PerActorTopic
from state_sensor_ros.topics.tables import Fields, header, lane, LANE_CHANGE, LANE_ID, LANE_S
from state_sensor_ros.topics.topic import (
    CONTROL_STATE,
    CONTROL_STATES_TOPIC,
    EGO_CONTROL_STATE_TOPIC,
)

_TABLES = (LANE_CHANGE, LANE_ID, LANE_S)


class ControlStateEncoder:
    """
    One message for each vehicle whose topic has a subscriber, and an array of all vehicles.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        prototype: Fields = {'header': header(Given('frame')), 'name': Given('name'),
                             'control_state': lane()}
        self.message = Template(definitions, CONTROL_STATE, prototype, is_message=True)
        self.element = Template(definitions, CONTROL_STATE, prototype)
        self.head = Template(definitions, CONTROL_STATES_TOPIC.type_name,
                             {'header': header(settings.global_frame)}, is_message=True)
        self._topic = PerActorTopic(
            'control_state', CONTROL_STATE, EGO_CONTROL_STATE_TOPIC,
            lambda actor, *_: MessageInstance(self.message, _names(actor)))
        self._head = MessageInstance(self.head, {})
        self._elements = PerActor(lambda actor, *_: MessageInstance(self.element, _names(actor)))
        self._array = PatchBuffer(is_array=True)

    def blocks(self, request: LayoutRequest) -> list[MessageBlock]:
        """
        Lay out the messages of the vehicles in one block, the array in another.

        :param request: of which ``demand`` selects the vehicles, the ego's topic and the array.
        :returns: up to two blocks.
        """
        demand, actor_list, owners = request.demand, request.actor_list, request.frame.lanes.actor
        present = np.zeros(len(request.usable), np.bool_)
        present[owners] = True
        present &= request.usable
        with_ego = demand.ego_control_state and actor_list.i_ego >= 0 \
            and bool(present[actor_list.i_ego])
        blocks = self._topic.blocks(
            actor_list, self._topic.are_subscribed(actor_list, demand.control_state) & present,
            _TABLES, owners, with_ego=with_ego)
        if demand.control_states and present.any():
            elements = compress(self._elements.of(actor_list), present.tobytes())
            self._array.update([self._head, *elements])
            blocks.append(MessageBlock(self._array, rows_where(present[owners], *_TABLES),
                                       [CONTROL_STATES_TOPIC]))
        return blocks


def _names(actor: Actor) -> dict[str, str]:
    return {'frame': actor.frame_id, 'name': actor.name}

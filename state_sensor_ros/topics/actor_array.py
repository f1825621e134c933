# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/actors: the actors of a frame with their names in ROS."""

from __future__ import annotations

from typing import Any

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Given, MessageInstance, Template
from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.numbers import stamp_numbers
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.tables import header, STAMP
from state_sensor_ros.topics.topic import ACTORS_TOPIC


class ActorArrayEncoder:
    """
    Encode an ActorArray.

    :param settings: of which ``global_frame`` is used.
    :param definitions: of the messages.
    """

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.head = Template(definitions, ACTORS_TOPIC.type_name,
                             {'header': header(settings.global_frame)}, is_message=True)
        self.element = Template(definitions, 'state_sensor_ros/msg/Actor', {
            name: Given(name)
            for name in ('name', 'topic_name', 'frame_id', 'id', 'kind', 'tags')})
        self._head = MessageInstance(self.head, {})
        self._buffer = PatchBuffer(is_array=True)
        self._elements = PerActor(self._element)

    def encode(self, actor_list: ActorList, stamp_ns: int) -> bytes:
        """
        Return the message.

        :param actor_list: the actors of a frame.
        :param stamp_ns: ns since the epoch of the messages' clock.
        """
        elements = self._elements.of(actor_list, Column(actor_list.kinds), Column(actor_list.tags))
        self._buffer.update([self._head, *elements])
        self._buffer.patch(STAMP, stamp_numbers(stamp_ns))
        (begin,), (end,) = self._buffer.message_bounds()
        return self._buffer.tobytes(begin, end)

    def _element(self, actor: Actor, appearance: tuple[Any, ...], _: object) -> MessageInstance:
        kind, tags = appearance
        return MessageInstance(self.element, {
            'name': actor.name, 'topic_name': actor.topic_name, 'frame_id': actor.frame_id,
            'id': actor.id, 'kind': kind, 'tags': tags})

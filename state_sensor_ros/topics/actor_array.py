# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/actors: the actors of a frame with their names in ROS, sent when they change."""

from __future__ import annotations

from typing import Any

from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import ENCAPSULATION, Given, MessageInstance
from state_sensor_ros.naming import Actor
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.tables import header, STAMP, stamp_numbers
from state_sensor_ros.topics.topic import LATCHED, Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, Messages, TopicEncoder

# The stamp is the first field of the header, which is the first field.
_AFTER_STAMP = len(ENCAPSULATION) + 8


class ActorArrayEncoder(TopicEncoder):
    """One ActorArray for each change of the actors."""

    topics = (Topic('~/actors', 'state_sensor_ros/msg/ActorArray', LATCHED),)
    is_of_new_actors = True

    def set_up(self, settings: Settings) -> None:
        self._element_template = self.element('state_sensor_ros/msg/Actor', {
            name: Given(name)
            for name in ('name', 'topic_name', 'frame_id', 'id', 'kind', 'tags')})
        self._head = MessageInstance(self.message(
            self.topics[0].type_name, {'header': header(settings.global_frame)}), {})
        self._buffer = PatchBuffer(is_array=True)
        self._elements = PerActor(self._element)
        self.restart()

    def restart(self) -> None:
        """Send the actors of the next frame, whether they changed or not."""
        # The version of the last actor list, and the bytes of the last message after its stamp.
        self._version: int | None = None
        self._sent = b''

    def messages(self, now: FrameToSend) -> Messages:
        """Return the array if more than its stamp differs from the last one."""
        actor_list = now.actor_list
        if actor_list.version == self._version:
            return []
        self._version = actor_list.version
        elements = self._elements.of(actor_list, Column(actor_list.kinds), Column(actor_list.tags))
        self._buffer.update([self._head, *elements])
        self._buffer.patch(STAMP, stamp_numbers(now.stamp_ns))
        (begin,), (end,) = self._buffer.message_bounds()
        data = self._buffer.tobytes(begin, end)
        if data[_AFTER_STAMP:] == self._sent:
            return []
        self._sent = data[_AFTER_STAMP:]
        return [(self.topics[0], data)]

    def _element(self, actor: Actor, appearance: tuple[Any, ...], _: object) -> MessageInstance:
        kind, tags = appearance
        return MessageInstance(self._element_template, {
            'name': actor.name, 'topic_name': actor.topic_name, 'frame_id': actor.frame_id,
            'id': actor.id, 'kind': kind, 'tags': tags})

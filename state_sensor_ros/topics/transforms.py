# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""/tf: each actor in the global frame, and its wheels in the actor's frame; /clock."""

from __future__ import annotations

from itertools import compress

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot, Template
from state_sensor_ros.frame import Bools, Wheels
from state_sensor_ros.naming import ActorList
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.layout_key import LayoutRequest
from state_sensor_ros.topics.message_block import MessageBlock, rows_where
from state_sensor_ros.topics.per_actor import PerActor
from state_sensor_ros.topics.tables import header, POSE, STAMP, WHEEL_POSE, xyz, xyzw
from state_sensor_ros.topics.topic import CLOCK_TOPIC, TF_TOPIC


class ClockEncoder:
    """
    One Clock: the stamp of the frame.

    :param definitions: of the messages.
    """

    def __init__(self, definitions: Definitions) -> None:
        self.template = Template(definitions, CLOCK_TOPIC.type_name, {
            'clock': {'sec': Slot(STAMP, 0), 'nanosec': Slot(STAMP, 1)}}, is_message=True)
        self._buffer = PatchBuffer()
        self._buffer.update([MessageInstance(self.template, {})])

    def blocks(self, request: LayoutRequest) -> list[MessageBlock]:
        """
        Lay out the message.

        :param request: of which ``demand`` is used.
        :returns: one block, none without demand.
        """
        return [MessageBlock(self._buffer, {}, [CLOCK_TOPIC])] if request.demand.clock else []


class TransformEncoder:
    """
    One TFMessage with all transforms of a frame.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self._prefix = settings.frame_prefix
        self.head = Template(definitions, TF_TOPIC.type_name, {}, is_message=True)
        stamped = 'geometry_msgs/msg/TransformStamped'
        self.actor = Template(definitions, stamped, {
            'header': header(settings.global_frame), 'child_frame_id': Given('child'),
            'transform': {'translation': xyz(POSE, 0), 'rotation': xyzw(POSE, 3)}})
        self.wheel = Template(definitions, stamped, {
            'header': header(Given('parent')), 'child_frame_id': Given('child'),
            'transform': {'translation': xyz(WHEEL_POSE, 0), 'rotation': xyzw(WHEEL_POSE, 3)}})
        self._head = MessageInstance(self.head, {})
        self._actors = PerActor(lambda actor, *_: MessageInstance(
            self.actor, {'child': actor.frame_id}))
        self._wheels: PerActor[dict[int, MessageInstance]] = PerActor(lambda actor, *_: {})
        self._buffer = PatchBuffer(is_array=True)

    def blocks(self, request: LayoutRequest) -> list[MessageBlock]:
        """
        Lay out the message; there is none without transforms.

        :param request: ``settings`` select the ego or all actors, and the wheels.
        :returns: one block or none.
        """
        actor_list, chosen = request.actor_list, request.usable
        if request.settings.tf == 'ego':
            chosen = chosen & (np.arange(len(chosen)) == actor_list.i_ego)
        if not request.demand.tf or not chosen.any():
            return []
        instances = [self._head, *compress(self._actors.of(actor_list), chosen.tobytes())]
        rows = rows_where(chosen, POSE)
        wheels = request.frame.wheels
        if wheels is not None and request.settings.wheel_tf:
            are_placed = chosen[wheels.actor] & request.usable_wheels
            instances += self._wheel_instances(actor_list, wheels, are_placed)
            rows |= rows_where(are_placed, WHEEL_POSE)
        self._buffer.update(instances)
        return [MessageBlock(self._buffer, rows, [TF_TOPIC])]

    def _wheel_instances(self, actor_list: ActorList, wheels: Wheels,
                         are_placed: Bools) -> list[MessageInstance]:
        by_actor, instances = self._wheels.of(actor_list), []
        for i, wheel in zip(wheels.actor[are_placed].tolist(), wheels.wheel[are_placed].tolist(),
                            strict=True):
            actor, own = actor_list.actors[i], by_actor[i]
            if wheel not in own:
                own[wheel] = MessageInstance(self.wheel, {
                    'parent': actor.frame_id,
                    'child': f'{self._prefix}{actor.topic_name}/wheel_{wheel}'})
            instances.append(own[wheel])
        return instances

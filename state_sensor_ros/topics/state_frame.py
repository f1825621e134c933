# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/frame: all of a frame in one message, actors without a usable pose included."""

from __future__ import annotations

from typing import Any

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Each, Given, MessageInstance, Slot, Template
from state_sensor_ros.frame import Appearance, Boxes, Frame, Wheels
from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.layout_key import LayoutKey
from state_sensor_ros.topics.message_block import MessageBlock
from state_sensor_ros.topics.numbers import lane_numbers, raw_numbers, stamp_numbers
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.tables import (
    Fields,
    header,
    lane,
    pose,
    RAW_ACTOR,
    RAW_BOX,
    RAW_COUNT,
    RAW_INPUTS,
    RAW_TIME,
    RAW_WHEEL,
    STAMP,
    twist,
    xyz,
)
from state_sensor_ros.topics.topic import FRAME_TOPIC

# Fields of a WheelState that are not patched.
_WHEEL = np.dtype([('wheel', 'u1'), ('position_known', '?'), ('orientation_known', '?'),
                   ('source_id', '<i4')])


class StateFrameEncoder:
    """
    One StateFrame for each frame.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.head = Template(definitions, FRAME_TOPIC.type_name, {
            'header': header(settings.global_frame), 'generation': Given('generation'),
            'game_time': Slot(RAW_TIME, 0), 'time': Slot(RAW_TIME, 1),
            'sample_count': Slot(RAW_COUNT, 0)}, is_message=True)
        self.actors = [Template(definitions, 'state_sensor_ros/msg/ActorState', _actor(has_lane))
                       for has_lane in (False, True)]
        self._head = MessageInstance(self.head, {'generation': ''})
        self._elements = PerActor(self._element)
        self._buffer = PatchBuffer(is_array=True)
        self._key: LayoutKey | None = None

    def encode(self, frame: Frame, actor_list: ActorList, stamp_ns: int) -> bytes:
        """
        Return the message.

        :param frame: with boxes, wheels, inputs and appearance.
        :param actor_list: its actors.
        :param stamp_ns: ns since the epoch of the messages' clock.
        """
        boxes, wheels, appearance, lanes = frame.boxes, frame.wheels, frame.appearance, frame.lanes
        assert boxes is not None
        assert wheels is not None
        assert appearance is not None
        key = LayoutKey(actor_list, (
            frame.generation, lanes.actor.tobytes(), boxes.actor.tobytes(), boxes.names,
            wheels.actor.tobytes(), wheels.wheel.tobytes(), wheels.source_id.tobytes(),
            wheels.position_known.tobytes(), wheels.orientation_known.tobytes(), appearance.colors,
            appearance.replay_classes))
        if key != self._key:
            self._lay_out(frame, actor_list, boxes, wheels, appearance)
            self._key = key
        numbers = raw_numbers(frame, boxes, wheels)
        numbers |= lane_numbers(lanes)
        numbers[STAMP] = stamp_numbers(stamp_ns)
        (_, message), = self._block.messages(numbers)
        return message

    def _lay_out(self, frame: Frame, actor_list: ActorList, boxes: Boxes, wheels: Wheels,
                 appearance: Appearance) -> None:
        if self._head.values['generation'] != frame.generation:
            self._head = MessageInstance(self.head, {'generation': frame.generation})
        has_lane = np.zeros(frame.n_actors, np.uint8)
        has_lane[frame.lanes.actor] = 1
        rows = np.arange(frame.n_actors + 1)
        first_box, first_wheel = (np.searchsorted(part.actor, rows) for part in (boxes, wheels))
        elements = self._elements.of(
            actor_list, Column(actor_list.kinds), Column(actor_list.tags),
            Column(boxes.names, first_box),
            Column(_constants(wheels), first_wheel * _WHEEL.itemsize),
            Column(has_lane.tobytes()), Column(appearance.colors),
            Column(appearance.replay_classes))
        self._buffer.update([self._head, *elements])
        self._block = MessageBlock(self._buffer, {}, [FRAME_TOPIC])

    def _element(self, actor: Actor, appearance: tuple[Any, ...], _: object) -> MessageInstance:
        kind, tags, box_names, wheels, has_lane, color, replay_class = appearance
        return MessageInstance(self.actors[has_lane], {
            'name': actor.name, 'frame_id': actor.frame_id, 'id': actor.id, 'kind': kind,
            'tags': tags, 'boxes': [{'name': name} for name in box_names],
            'wheels': [dict(zip(_WHEEL.names or (), wheel, strict=True))
                       for wheel in np.frombuffer(wheels, _WHEEL).tolist()],
            'color': color, 'replay_class': replay_class})


def _actor(has_lane: bool) -> Fields:
    names = ('name', 'frame_id', 'id', 'kind', 'tags', 'color', 'replay_class')
    lane_state: Fields = {'has_control_state': True, 'control_state': lane()} if has_lane else {}
    return {
        **{name: Given(name) for name in names},
        'pose': pose(RAW_ACTOR), 'twist': twist(RAW_ACTOR, 7),
        'oriented_bounding_boxes': Each('boxes', {
            'name': Given('name'), 'pose': pose(RAW_BOX), 'size': xyz(RAW_BOX, 7),
            'scale': xyz(RAW_BOX, 10)}),
        'wheels': Each('wheels', {
            **{name: Given(name) for name in _WHEEL.names or ()},
            'pose': pose(RAW_WHEEL), 'speed': Slot(RAW_WHEEL, 7)}),
        'inputs': {name: Slot(RAW_INPUTS, i) for i, name in enumerate(
            ('throttle', 'brake', 'steering', 'steering_angle'))},
        **lane_state}


def _constants(wheels: Wheels) -> bytes:
    """Return the fields of the wheels that are not patched, _WHEEL.itemsize bytes for each."""
    table = np.empty(len(wheels.actor), _WHEEL)
    for name in _WHEEL.names or ():
        table[name] = getattr(wheels, name)
    return table.tobytes()

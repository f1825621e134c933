# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/frame: everything in a frame in one message, and whether its clock advanced or not."""

from __future__ import annotations

from typing import Any

import numpy as np

from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Each, Given, MessageInstance, Slot, Table
from state_sensor_ros.frame import EVERYTHING, Needs, Wheels
from state_sensor_ros.naming import Actor
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.tables import Fields, header, lane, pose, twist, xyz
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, MessageBlock, Numbers, TopicEncoder

FRAME_TOPIC = Topic('~/frame', 'state_sensor_ros/msg/StateFrame')

# As received: game time, time; sample count; of actors pose and twist; of boxes center,
# orientation, edge lengths, scale; of wheels pose, speed; of actors throttle, brake, steering,
# steering angle.
RAW_GAME_TIME = Table('raw game time', np.float64, 1)
RAW_TIME = Table('raw time', np.int64, 1)
RAW_COUNT = Table('raw count', np.uint32, 1)
RAW_ACTOR = Table('raw actor', np.float64, 13)
RAW_BOX = Table('raw box', np.float64, 13)
RAW_WHEEL = Table('raw wheel', np.float64, 8)
RAW_INPUTS = Table('raw inputs', np.float64, 4)

# Fields of a WheelState that are not patched.
_WHEEL = np.dtype([('wheel', 'u1'), ('position_known', '?'), ('orientation_known', '?'),
                   ('source_id', '<i4')])


class StateFrameEncoder(TopicEncoder):
    """One StateFrame for each frame in which all parts are decoded."""

    topics = (FRAME_TOPIC,)
    is_of_every_frame = True
    uses_lanes = True

    def set_up(self, settings: Settings) -> None:
        self._head_template = self.message(FRAME_TOPIC.type_name, {
            'header': header(settings.global_frame), 'generation': Given('generation'),
            'game_time': Slot(RAW_GAME_TIME, 0), 'time': Slot(RAW_TIME, 0),
            'sample_count': Slot(RAW_COUNT, 0)})
        # Index 1 for an actor with a lane state.
        self._actors = [
            self.element('state_sensor_ros/msg/ActorState', _actor(has_lane))
            for has_lane in (False, True)]
        self._head = MessageInstance(self._head_template, {'generation': ''})
        self._elements = PerActor(self._element)
        self._buffer = PatchBuffer(is_array=True)

    def is_on(self, settings: Settings) -> bool:
        """Return ``frame``."""
        return settings.frame

    def needs(self, settings: Settings) -> Needs:
        return EVERYTHING

    def key(self, now: FrameToSend) -> object:
        """Return what the bytes depend on: boxes, wheels and appearance without their numbers."""
        frame = now.frame
        boxes, wheels, appearance = frame.boxes, frame.wheels, frame.appearance
        if boxes is None or wheels is None or appearance is None:
            return None
        return (frame.generation, boxes.actor.tobytes(), boxes.names, wheels.actor.tobytes(),
                wheels.wheel.tobytes(), wheels.source_id.tobytes(),
                wheels.position_known.tobytes(), wheels.orientation_known.tobytes(),
                appearance.colors, appearance.replay_classes)

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the message; there is none if a part of the frame is not decoded."""
        frame, actor_list = now.frame, now.actor_list
        boxes, wheels, appearance = frame.boxes, frame.wheels, frame.appearance
        if boxes is None or wheels is None or appearance is None or frame.inputs is None:
            return []
        if self._head.values['generation'] != frame.generation:
            self._head = MessageInstance(self._head_template, {'generation': frame.generation})
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
        return [MessageBlock(self._buffer, {}, self.topics)]

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Add all numbers as received; ``forward_speed``, if known, is the velocity x."""
        frame = now.frame
        boxes, wheels = frame.boxes, frame.wheels
        assert boxes is not None
        assert wheels is not None
        assert frame.inputs is not None
        actors = frame.kinematics
        if frame.forward_speed is not None:
            actors = actors.copy()
            actors[:, 7] = frame.forward_speed
        raw_wheels = np.empty((len(wheels.actor), RAW_WHEEL.width))
        raw_wheels[:, :3], raw_wheels[:, 3:7] = wheels.position_xyz, wheels.orientation_xyzw
        raw_wheels[:, 7] = wheels.speed
        numbers |= {RAW_GAME_TIME: np.array(((frame.game_time,),)),
                    RAW_TIME: np.array(((frame.time,),), np.int64),
                    RAW_COUNT: np.array(((frame.sample_count,),), np.uint32),
                    RAW_ACTOR: actors, RAW_INPUTS: frame.inputs, RAW_BOX: boxes.rows,
                    RAW_WHEEL: raw_wheels}

    def _element(self, actor: Actor, appearance: tuple[Any, ...], _: object) -> MessageInstance:
        kind, tags, box_names, wheels, has_lane, color, replay_class = appearance
        return MessageInstance(self._actors[has_lane], {
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

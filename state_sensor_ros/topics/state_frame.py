# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
~/frame: everything in a frame in one message; and a frame from this message.

A column of actors whose name is a member of ActorState is written and read without a line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
import struct
from typing import Any

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.cdr.columns import ColumnReader
from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.cdr.templates import Each, Given, MessageInstance, Slot, Table
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.fields import Field, rows_of, TEXT
from state_sensor_ros.frame import Boxes, Floats, Frame, Lanes, MapLine, Rows, Wheels
from state_sensor_ros.naming import Actor
from state_sensor_ros.rotations import global_from_unit
from state_sensor_ros.settings import Settings
from state_sensor_ros.texts import counted
from state_sensor_ros.topics import encoding
from state_sensor_ros.topics.tables import Fields, header, lane, pose, twist, xyz
from state_sensor_ros.topics.topic import Topic

FRAME_TOPIC = Topic('~/frame', 'state_sensor_ros/msg/StateFrame')
LIGHTS_TYPE = 'state_sensor_ros/msg/TrafficLightStateArray'
_ACTOR, _BOXES = 'state_sensor_ros/msg/ActorState', 'actors.oriented_bounding_boxes'
# The generation of frames with a speed along the heading alone (ActorState.msg).
_ALONG_HEADING = 'carla'
_INPUTS = ('throttle', 'brake', 'steering', 'steering_angle')
# Members that have another name, or another form, than the column of actors.
_MEMBERS = {'colors': 'color', 'replay_classes': 'replay_class'}
_OF_THEIR_OWN = ('names', 'kinds', 'tags', 'kinematics', 'inputs', 'forward_speed', 'ids')

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
_WHEEL = [field.name for field in rows_of(Wheels)
          if field.dtype != 'f8' and field.name != 'actor']


@lru_cache(maxsize=1)
def members() -> Mapping[str, Field]:
    """Return the columns of actors that are members of ActorState as such, by these."""
    defined = {member.name for member in load_definitions()[_ACTOR]}
    return {name: field for field in rows_of(Frame)
            if field.level == 'actor' and field.name not in _OF_THEIR_OWN
            and (name := _MEMBERS.get(field.name, field.name)) in defined}


def carried() -> frozenset[str]:
    """Return the names of the fields that a bag carries, in ~/frame or in a topic beside it."""
    others = {field.name for field in rows_of(Frame) if field.level == 'actor'
              and field.name not in _OF_THEIR_OWN}
    return frames.EVERY_PART - others | {field.name for field in members().values()}


class StateFrameEncoder(encoding.TopicEncoder):
    """One StateFrame for each frame in which all parts are decoded."""

    topics = (FRAME_TOPIC,)
    switch = 'frame'
    has_details = is_of_every_frame = uses_lanes = True

    def set_up(self, settings: Settings) -> None:
        self._texts = {name: field for name, field in members().items() if field.dtype == TEXT}
        self._tables = {name: (field, Table(
            f'raw {name}', np.dtype(field.dtype).type, field.width or 1))
            for name, field in members().items() if field.is_array}
        self._head_template = self.message(FRAME_TOPIC.type_name, {
            'header': header(settings.global_frame), 'generation': Given('generation'),
            'game_time': Slot(RAW_GAME_TIME, 0), 'time': Slot(RAW_TIME, 0),
            'sample_count': Slot(RAW_COUNT, 0)})
        # Index 1 for an actor with a lane state.
        self._actors = [self.element(_ACTOR, self._actor(has_lane)) for has_lane in (False, True)]
        self._elements = encoding.PerActor(self._element)

    def key(self, now: encoding.FrameToSend) -> object:
        """Return what the bytes depend on: boxes, wheels and texts without their numbers."""
        frame = now.frame
        boxes, wheels = frame.boxes, frame.wheels
        if boxes is None or wheels is None:
            return None
        return (frame.generation, boxes.actor.tobytes(), boxes.names, wheels.actor.tobytes(),
                wheels.wheel.tobytes(), wheels.source_id.tobytes(),
                wheels.position_known.tobytes(), wheels.orientation_known.tobytes(),
                *[getattr(frame, field.name) for field in self._texts.values()])

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the message; there is none if a part of the frame is not decoded."""
        frame, actor_list = now.frame, now.actor_list
        boxes, wheels = frame.boxes, frame.wheels
        if boxes is None or wheels is None or frame.inputs is None:
            return None
        n_actors, has_lane = frame.n_actors, np.zeros(frame.n_actors, np.uint8)
        has_lane[frame.lanes.actor] = 1
        constants = zip(*[getattr(wheels, name).tolist() for name in _WHEEL], strict=True)
        elements = self._elements.of(
            actor_list.actors, actor_list.kinds, actor_list.tags,
            encoding.split(boxes.names, boxes.actor, n_actors),
            encoding.split(tuple(constants), wheels.actor, n_actors), has_lane.tobytes(),
            *[_known(frame, field) for field in self._texts.values()])
        head = MessageInstance(self._head_template, {'generation': frame.generation})
        return encoding.MessageBlock([head, *elements], {}, self.topics, is_array=True)

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Add all numbers as received; ``forward_speed``, if known, along the heading."""
        frame = now.frame
        boxes, wheels = frame.boxes, frame.wheels
        assert boxes is not None
        assert wheels is not None
        assert frame.inputs is not None
        actors = frame.kinematics
        if frame.forward_speed is not None:
            actors = actors.copy()
            actors[:, 7:10] = frame.forward_speed[:, None] * _headings(actors)
        raw_wheels = np.empty((len(wheels.actor), RAW_WHEEL.width))
        raw_wheels[:, :3], raw_wheels[:, 3:7] = wheels.position_xyz, wheels.orientation_xyzw
        raw_wheels[:, 7] = wheels.speed
        numbers |= {RAW_GAME_TIME: np.array(((frame.game_time,),)),
                    RAW_TIME: np.array(((frame.time,),), np.int64),
                    RAW_COUNT: np.array(((frame.sample_count,),), np.uint32),
                    RAW_ACTOR: actors, RAW_INPUTS: frame.inputs, RAW_BOX: boxes.rows,
                    RAW_WHEEL: raw_wheels,
                    **{table: _known(frame, field).reshape(-1, table.width)
                       for field, table in self._tables.values()}}

    def _element(self, actor: Actor, *appearance: Any) -> MessageInstance:  # noqa: ANN401
        kind, tags, box_names, wheels, has_lane, *texts = appearance
        return MessageInstance(self._actors[has_lane], {
            'name': actor.name, 'frame_id': actor.frame_id, 'id': actor.id, 'kind': kind,
            'tags': tags, 'boxes': [{'name': name} for name in box_names],
            'wheels': [dict(zip(_WHEEL, wheel, strict=True)) for wheel in wheels],
            **dict(zip(self._texts, texts, strict=True))})

    def _actor(self, has_lane: bool) -> Fields:
        names = ('name', 'frame_id', 'id', 'kind', 'tags', *self._texts)
        lane_state: Fields = {'has_control_state': True, 'control_state': lane()} \
            if has_lane else {}
        return {
            **{name: Given(name) for name in names},
            'pose': pose(RAW_ACTOR), 'twist': twist(RAW_ACTOR, 7),
            'oriented_bounding_boxes': Each('boxes', {
                'name': Given('name'), 'pose': pose(RAW_BOX), 'size': xyz(RAW_BOX, 7),
                'scale': xyz(RAW_BOX, 10)}),
            'wheels': Each('wheels', {
                **{name: Given(name) for name in _WHEEL},
                'pose': pose(RAW_WHEEL), 'speed': Slot(RAW_WHEEL, 7)}),
            'inputs': {name: Slot(RAW_INPUTS, i) for i, name in enumerate(_INPUTS)},
            **{name: [Slot(table, i) for i in range(field.width)] if field.width
               else Slot(table, 0) for name, (field, table) in self._tables.items()},
            **lane_state}


def _known(frame: Frame, field: Field) -> Any:  # noqa: ANN401
    """Return a column of a frame; of a frame without it, one of unknown values."""
    column = getattr(frame, field.name)
    return field.unknowns(frame.n_actors) if column is None else column


def _headings(rows: Floats) -> Floats:
    """Return the x axes, (N, 3), of the actors of kinematics, (N, 13)."""
    return global_from_unit(rows[:, 3:7])[:, :, 0]


class StateFrameReader:
    """
    Reads serialized StateFrames as frames.

    :param road_names: names of the roads of all frames by their numbers.
    :param map_lines: the map of all frames.
    :param open_drive: its document.
    """

    def __init__(self, road_names: Mapping[int, str] = frames.NO_ROADS,
                 map_lines: tuple[MapLine, ...] = (), open_drive: str = '') -> None:
        definitions = load_definitions()
        self._message = ColumnReader(definitions, FRAME_TOPIC.type_name)
        self._lights = ColumnReader(definitions, LIGHTS_TYPE)
        self._road_names, self._map_lines, self._open_drive = road_names, map_lines, open_drive
        self._texts: dict[str, tuple[Any, ...]] = {}

    def frame(self, data: bytes, lights: bytes = b'') -> Frame:
        """
        Return the frame of a message.

        :param data: serialized StateFrame with its encapsulation.
        :param lights: serialized TrafficLightStateArray of the same stamp, empty for none.
        :raises DecodeError: if one of them is not such a message.
        """
        try:
            return self._frame(data, self._traffic_lights(lights) if lights else None)
        except (ValueError, IndexError, struct.error) as error:
            raise DecodeError('~/frame', f'{counted(len(data), "byte")} but no StateFrame '
                              f'({error})', 'a message of that definition') from error

    def _frame(self, data: bytes, lights: frames.TrafficLights | None) -> Frame:
        message = self._message
        if not message.read(data):
            # Equal texts are the same objects from frame to frame.
            self._texts = {name: tuple(message.texts(name)) for name in (
                'generation', 'actors.name', 'actors.tags', _BOXES + '.name',
                *[f'actors.{name}' for name in members()])}
        texts, numbers = self._texts, message.numbers
        columns: dict[str, Any] = {
            field.name: numbers(f'actors.{name}').astype(field.dtype, copy=False)
            if field.is_array else texts[f'actors.{name}'] for name, field in members().items()}
        rows, forward_speed = _joined(message, 'actors.pose', 'actors.twist'), None
        if texts['generation'][0] == _ALONG_HEADING:
            # Before 0.6, linear.x alone.
            forward_speed = rows[:, 7].copy() if np.isnan(rows[:, 8:10]).all() \
                else np.einsum('ij,ij->i', rows[:, 7:10], _headings(rows))
            rows[:, 7:] = np.nan
        return Frame(
            generation=texts['generation'][0], game_time=float(numbers('game_time')[0]),
            time=int(numbers('time')[0]), sample_count=int(numbers('sample_count')[0]),
            names=texts['actors.name'], kinds=numbers('actors.kind'), tags=texts['actors.tags'],
            kinematics=rows, forward_speed=forward_speed, lanes=self._lanes(),
            boxes=Boxes(self._owners(_BOXES), texts[_BOXES + '.name'], _joined(
                message, *[f'{_BOXES}.{name}' for name in ('pose', 'size', 'scale')])),
            wheels=self._wheels(), inputs=numbers('actors.inputs'),
            ids=numbers('actors.id').astype(np.int64), traffic_lights=lights,
            map_lines=self._map_lines, open_drive=self._open_drive, **columns)

    def _lanes(self) -> Lanes:
        numbers, state = self._message.numbers, 'actors.control_state.'
        rows = np.flatnonzero(numbers('actors.has_control_state'))
        changes = [numbers(f'{state}lane_change_{side}')[rows] for side in ('left', 'right')]
        ids = [numbers(f'{state}{name}_id')[rows] for name in ('road', 'section', 'lane')]
        return Lanes(rows, np.column_stack(changes), np.column_stack(ids),
                     numbers(f'{state}s')[rows], self._road_names)

    def _wheels(self) -> Wheels:
        poses = self._message.numbers('actors.wheels.pose')
        others = {field.name: self._message.numbers(f'actors.wheels.{field.name}')
                  for field in rows_of(Wheels) if field.name != 'actor' and not field.width}
        return Wheels(self._owners('actors.wheels'), position_xyz=poses[:, :3],
                      orientation_xyzw=poses[:, 3:], **others)

    def _owners(self, name: str) -> Rows:
        """Return the row of the actor of each part."""
        lengths = self._message.lengths(name)
        return np.repeat(np.arange(len(lengths)), np.array(lengths, np.int64))

    def _traffic_lights(self, data: bytes) -> frames.TrafficLights:
        lights = self._lights
        lights.read(data)
        return frames.TrafficLights(
            lights.numbers('traffic_lights.id').astype(np.int64),
            tuple(lights.texts('traffic_lights.name')), lights.numbers('traffic_lights.state'),
            lights.numbers('traffic_lights.pose'))


def _joined(message: ColumnReader, *names: str) -> Floats:
    return np.concatenate([message.numbers(name) for name in names], axis=1)

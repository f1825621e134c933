# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Decoder of the serialized StateFrames of a bag to frames.

No unit or axis is converted: a StateFrame is in SI units and REP-103 axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
import math
import struct
from typing import Any

import numpy as np
from rosbags.serde import SerdeError

from state_sensor_ros.errors import counted, DecodeError
from state_sensor_ros.files.bags.bag_types import typestore
from state_sensor_ros.frame import (
    Appearance,
    Boxes,
    Floats,
    Frame,
    Lanes,
    MapLine,
    NO_ROADS,
    Rows,
    Wheels,
)
from state_sensor_ros.payloads import Decoded, SingleFrameDecoder

STATE_FRAME = 'state_sensor_ros/msg/StateFrame'

# The encapsulation, 4 bytes, the second of which is the byte order; then header.stamp.
_STAMP = {0: struct.Struct('>4xiI'), 1: struct.Struct('<4xiI')}
# Exceptions of rosbags' deserializer for bytes that do not match the definition.
NOT_SUCH = (SerdeError, struct.error, ValueError, IndexError, AssertionError, OverflowError,
            MemoryError)


def stamp_s(data: bytes) -> float:
    """
    Return the stamp of a serialized StateFrame without decoding the rest.

    :param data: serialized message with its encapsulation.
    :returns: stamp, s; NaN if the message is too short or has an unknown byte order.
    """
    if len(data) < 12 or data[1] not in _STAMP:
        return math.nan
    seconds, nanoseconds = _STAMP[data[1]].unpack_from(data)
    return float(seconds + nanoseconds * 1e-9)


class StateFrameDecoder(SingleFrameDecoder):
    """
    A PayloadDecoder of serialized StateFrames; each is decoded as a whole.

    :param road_names: names of the roads of all frames by their numbers.
    :param map_lines: the map of all frames.
    """

    def __init__(self, road_names: Mapping[int, str] = NO_ROADS,
                 map_lines: tuple[MapLine, ...] = ()) -> None:
        self._store = typestore()
        self._road_names, self._map_lines = road_names, map_lines

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """
        Decode one message.

        :param payload: serialized message with its encapsulation.
        :param game_time: unused like ``time`` and ``sample_count``: the message has its own.
        :raises DecodeError: if it is not a StateFrame.
        """
        try:
            message = self._store.deserialize_cdr(bytes(payload), STATE_FRAME)
            return [Decoded(_frame(message, self._road_names, self._map_lines), ())]
        except NOT_SUCH as error:
            raise DecodeError('~/frame', f'{counted(len(payload), "byte")} but no StateFrame '
                              f'({error})', 'a message of that definition') from error


# rosbags generates message classes at run time; they have no static type.
def _frame(message: Any, road_names: Mapping[int, str],  # noqa: ANN401
           map_lines: tuple[MapLine, ...]) -> Frame:
    actors = message.actors
    inputs = [(i.throttle, i.brake, i.steering, i.steering_angle)
              for i in (actor.inputs for actor in actors)]
    kinematics = [(*_pose(actor.pose), *_xyz(actor.twist.linear), *_xyz(actor.twist.angular))
                  for actor in actors]
    rows, forward_speed = _rows(kinematics, 13), None
    if np.isnan(rows[:, 8:]).all() and np.isfinite(rows[:, 7]).any():
        # A speed alone is along the actor's x axis, not that of the global frame (ActorState.msg).
        forward_speed = rows[:, 7].copy()
        rows[:, 7:] = np.nan
    return Frame(
        generation=message.generation, game_time=message.game_time, time=message.time,
        sample_count=message.sample_count, names=tuple([actor.name for actor in actors]),
        kinds=np.array([actor.kind for actor in actors], np.uint8),
        tags=tuple([tuple(actor.tags) for actor in actors]),
        kinematics=rows, forward_speed=forward_speed, lanes=_lanes(actors, road_names),
        boxes=_boxes(*_owned(actors, 'oriented_bounding_boxes')),
        wheels=_wheels(*_owned(actors, 'wheels')), inputs=_rows(inputs, 4),
        appearance=Appearance(tuple([actor.color for actor in actors]),
                              tuple([actor.replay_class for actor in actors])),
        ids=np.array([actor.id for actor in actors], np.int64), map_lines=map_lines)


def _owned(actors: Sequence[Any], part: str) -> tuple[Rows, list[Any]]:
    """Return (N,) index of the actor of each part, and the N parts of all actors."""
    parts = [getattr(actor, part) for actor in actors]
    counts = np.array([len(actor_parts) for actor_parts in parts], np.int64)
    return np.repeat(np.arange(len(parts)), counts), list(chain.from_iterable(parts))


def _lanes(actors: Sequence[Any], road_names: Mapping[int, str]) -> Lanes:
    rows = [i for i, actor in enumerate(actors) if actor.has_control_state]
    states = [actors[i].control_state for i in rows]
    return Lanes(
        np.array(rows, np.int64),
        np.array([(state.lane_change_left, state.lane_change_right) for state in states],
                 np.bool_).reshape(-1, 2),
        np.array([(state.road_id, state.section_id, state.lane_id) for state in states],
                 np.int32).reshape(-1, 3),
        np.array([state.s for state in states], np.float64), road_names)


def _boxes(owners: Rows, boxes: Sequence[Any]) -> Boxes:
    rows = _rows([(*_pose(box.pose), *_xyz(box.size), *_xyz(box.scale)) for box in boxes], 13)
    return Boxes(owners, tuple([box.name for box in boxes]), rows)


def _wheels(owners: Rows, wheels: Sequence[Any]) -> Wheels:
    poses = _rows([_pose(wheel.pose) for wheel in wheels], 7)
    return Wheels(
        owners, np.array([wheel.wheel for wheel in wheels], np.uint8),
        np.array([wheel.source_id for wheel in wheels], np.int32), poses[:, :3], poses[:, 3:],
        np.array([wheel.position_known for wheel in wheels], np.bool_),
        np.array([wheel.orientation_known for wheel in wheels], np.bool_),
        np.array([wheel.speed for wheel in wheels], np.float64))


def _xyz(vector: Any) -> tuple[float, float, float]:  # noqa: ANN401
    return vector.x, vector.y, vector.z


def _pose(pose: Any) -> tuple[float, ...]:  # noqa: ANN401
    position, orientation = pose.position, pose.orientation
    return (position.x, position.y, position.z,
            orientation.x, orientation.y, orientation.z, orientation.w)


def _rows(rows: Iterable[tuple[float, ...]], n_columns: int) -> Floats:
    return np.array(list(rows), np.float64).reshape(-1, n_columns)

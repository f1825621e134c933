# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Ground truth of OSI as frames: each payload is one serialized message.

OSI has meters, radians and the axes of REP-103. Its reference point is the center of the box; an
actor's origin here is the middle of its footprint. Velocities and accelerations are as given.
"""

from __future__ import annotations

from dataclasses import replace
import math
from typing import NamedTuple, TYPE_CHECKING

import numpy as np

from state_sensor_ros.classes import EGO_TAG
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.frame import Boxes, Floats, Frame, INDICATORS_UNKNOWN, Lanes, MAX_ID, Rows
from state_sensor_ros.rotations import global_from_unit, quaternion_from_rpy
from state_sensor_ros.simulators.osi.lights import indicators_of, lit_lights
from state_sensor_ros.simulators.osi.messages import (
    kind_of_messages,
    MessageKind,
    parse_truth,
    TimedGroundTruth,
)
from state_sensor_ros.simulators.osi.objects import (
    AxleWheels,
    KnownObject,
    LaneStates,
    LaneTable,
    ObjectNames,
)
from state_sensor_ros.source import DROPPED, DUPLICATE, Fault, Faults, OTHER_ID

if TYPE_CHECKING:
    from osi3.osi_object_pb2 import MovingObject, StationaryObject

GENERATION = 'osi'
_UNKNOWN = (math.nan,) * 3
_AT_REST = (0.0,) * 9
# Center, roll pitch yaw, size, velocity, turning rate, acceleration.
_N_COLUMNS = 18
_CENTER, _ANGLES, _SIZE = slice(0, 3), slice(3, 6), slice(6, 9)
_VELOCITY, _TURNING, _ACCELERATION = slice(9, 12), slice(12, 15), slice(15, 18)


class _Actor(NamedTuple):
    known: KnownObject
    number: int  # its id
    row: tuple[float, ...]  # in the order of the columns
    is_ego: bool = False


class OsiDecoder:
    """
    Decodes the messages of one trace or stream.

    Stationary objects, lanes and the host may be in the first message only, and are kept.

    :param ego: name or id of the ego of a trace without a host, empty for none.
    :param first: message whose lanes, stationary objects and host are used until another message
        has them; empty for none.
    """

    def __init__(self, kind: MessageKind | None, faults: Faults, ego: str = '',
                 first: bytes = b'') -> None:
        self.faults, self.details = faults, True
        self._kind, self._ego = kind, ego
        self._host: int | None = None
        self._missing_host: int | None = None
        self._lanes = LaneTable()
        self._names = ObjectNames()
        self._stationary: list[_Actor] = []
        # Names of the actors of the last message whose ids are not kept.
        self._without_id: frozenset[str] = frozenset()
        if first and kind is not None:
            self._take_static(parse_truth(first, kind))

    def decode(self, data: bytes) -> Frame:
        """Decode a message; its faults are added to :attr:`faults`."""
        kind = self._kind
        if kind is None:
            kind, is_certain = kind_of_messages((data,))
            self._kind = kind if is_certain else None
        return self._decoded(parse_truth(data, kind or MessageKind.GROUND_TRUTH))

    def _take_static(self, timed: TimedGroundTruth) -> list[Fault]:
        """Take from a message what later ones need not repeat."""
        truth = timed.truth
        if timed.host is not None:
            self._host = timed.host
        self._lanes.update(truth)
        faults: list[Fault] = []
        if not truth.stationary_object:
            return faults
        if self._stationary and not all(
                still.base.HasField('position') for still in truth.stationary_object):
            return [Fault(DROPPED, DecodeError(
                'stationary_object', 'an object without a position',
                'a position for each; the objects of the previous message are kept'))]
        self._stationary = []
        names = ObjectNames()
        for still in truth.stationary_object:
            known = names.of_stationary(still)
            if known is None:
                faults.append(_duplicate('stationary_object', still))
            else:
                self._stationary.append(
                    _Actor(known, still.id.value, (*_pose_of(still), *_AT_REST)))
        return faults

    def _decoded(self, timed: TimedGroundTruth) -> Frame:
        faults = self._take_static(timed)
        actors: list[_Actor] = []
        wheels, lanes = AxleWheels(), LaneStates(self._lanes)
        indicators: list[int] = []
        self._names.begin()
        for moving in timed.truth.moving_object:
            known = self._names.of_moving(moving)
            if known is None:
                faults.append(_duplicate('moving_object', moving))
                continue
            row = len(actors)
            actors.append(_Actor(known, moving.id.value, (*_pose_of(moving), *_motion_of(moving)),
                                 self._is_ego(moving.id.value, known.name)))
            lanes.add(row, moving)
            indicators.append(indicators_of(moving))
            if self.details and moving.HasField('vehicle_attributes'):
                wheels.add(row, moving)
        faults += self._host_fault()
        n_moving = len(actors)
        self._add_stationary(actors, faults)
        frame = _frame_of(timed.game_time, actors, lanes.states(),
                          self._kept_ids(actors, n_moving, faults))
        lights = timed.truth.traffic_light
        indicators += [INDICATORS_UNKNOWN] * (len(frame) - n_moving)
        self.faults.extend(faults)
        return replace(
            frame, wheels=wheels.wheels() if self.details else None,
            traffic_lights=lit_lights(lights) if lights else None,
            indicators=np.array(indicators, np.int8)
            if any(lit != INDICATORS_UNKNOWN for lit in indicators) else None)

    def _is_ego(self, id_: int, name: str) -> bool:
        if self._host is not None:
            return id_ == self._host
        return self._ego in (name, str(id_))

    def _host_fault(self) -> list[Fault]:
        host = self._host
        if host is None or host in self._names or host == self._missing_host:
            return []
        self._missing_host = host
        return [Fault(DROPPED, DecodeError(
            'host_vehicle_id', f'{host}, the id of no moving object', 'that of a moving object'))]

    def _add_stationary(self, actors: list[_Actor], faults: list[Fault]) -> None:
        for still in self._stationary:
            if still.known.name in self._names.taken:
                faults.append(Fault(DUPLICATE, DecodeError(
                    f'stationary_object {still.known.name}', 'the name of a moving object',
                    'another name')))
            else:
                actors.append(still)

    def _kept_ids(self, actors: list[_Actor], n_moving: int, faults: list[Fault]) -> Rows:
        """
        Return the ids of the actors, -1 in place of those that they cannot have.

        A fault is added for each of these that the last message did not have.
        """
        ids = np.array([actor.number for actor in actors], np.uint64)
        is_large, is_taken = ids > MAX_ID, np.isin(ids, ids[:n_moving])
        is_taken[:n_moving] = False
        dropped = np.flatnonzero(is_large | is_taken).tolist()
        names = {i: actors[i].known.name for i in dropped}
        last, self._without_id = self._without_id, frozenset(names.values())
        faults += [Fault(OTHER_ID, DecodeError(
            f'{"moving" if i < n_moving else "stationary"}_object', f'the id {ids[i]}',
            f'at most {MAX_ID}' if is_large[i] else 'an id that no moving object has'))
            for i in dropped if names[i] not in last]
        ids[dropped] = 0
        kept = ids.astype(np.int64)
        kept[dropped] = -1
        return kept


def _frame_of(game_time: float, actors: list[_Actor], lanes: Lanes, ids: Rows) -> Frame:
    rows = np.array([actor.row for actor in actors]).reshape(-1, _N_COLUMNS)
    centers, sizes = rows[:, _CENTER], rows[:, _SIZE]
    with np.errstate(invalid='ignore'):
        # A negative size is unknown.
        sizes[(sizes < 0.0).any(axis=1)] = math.nan
        orientation_xyzw = quaternion_from_rpy(rows[:, _ANGLES])
        up = global_from_unit(orientation_xyzw)[:, :, 2]
        origins = centers - np.nan_to_num(sizes[:, 2:], posinf=0.0) / 2.0 * up
        frame = build_frame(
            GENERATION, game_time, [actor.known.name for actor in actors], origins,
            orientation_xyzw=orientation_xyzw,
            velocity_xyz=rows[:, _VELOCITY], angular_velocity_xyz=rows[:, _TURNING],
            tags=[(*actor.known.tags, EGO_TAG) if actor.is_ego else actor.known.tags
                  for actor in actors],
            is_vehicle=np.array([actor.known.is_vehicle for actor in actors], np.bool_),
            lanes=lanes, ids=ids)
    return replace(
        frame, boxes=_boxes(frame, centers, sizes),
        accelerations=rows[:, _ACCELERATION].copy()
        if np.isfinite(rows[:, _ACCELERATION]).any() else None)


def _boxes(frame: Frame, centers: Floats, sizes: Floats) -> Boxes:
    """Return the boxes with exactly the given centers; the origins are rounded."""
    owners = np.flatnonzero(np.isfinite(sizes).all(axis=1) & frame.has_pose())
    rows = np.ones((len(owners), 13))
    rows[:, 0:3], rows[:, 3:7] = centers[owners], frame.orientation_xyzw[owners]
    rows[:, 7:10] = sizes[owners]
    return Boxes(owners, ('',) * len(owners), rows)


def _pose_of(thing: MovingObject | StationaryObject) -> tuple[float, ...]:
    """Return center, angles and size; a missing angle is 0."""
    base = thing.base
    place, angles, size = base.position, base.orientation, base.dimension
    return (*((place.x, place.y, place.z) if base.HasField('position') else _UNKNOWN),
            angles.roll, angles.pitch, angles.yaw,
            *((size.length, size.width, size.height) if base.HasField('dimension')
              else _UNKNOWN))


def _motion_of(moving: MovingObject) -> tuple[float, ...]:
    """Return velocity, turning rate and acceleration, NaN for what the message does not have."""
    base = moving.base
    velocity, rate, change = base.velocity, base.orientation_rate, base.acceleration
    return (*((velocity.x, velocity.y, velocity.z) if base.HasField('velocity') else _UNKNOWN),
            *((rate.roll, rate.pitch, rate.yaw) if base.HasField('orientation_rate')
              else _UNKNOWN),
            *((change.x, change.y, change.z) if base.HasField('acceleration') else _UNKNOWN))


def _duplicate(member: str, thing: MovingObject | StationaryObject) -> Fault:
    return Fault(DUPLICATE, DecodeError(f'{member} {thing.id.value}',
                                        'a second object of this id or name', 'one'))

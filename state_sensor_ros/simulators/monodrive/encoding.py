# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A frame to the JSON of v2 or v1, and the parts of it that this generation cannot carry.

Factors and signs are in rep103.py. Numbers are written as float32, as the simulator does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
from typing import TypeAlias

import msgspec
import numpy as np

from state_sensor_ros import rep103
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.fields import parts_of
from state_sensor_ros.frame import Floats, Frame, KIND_OBJECT, KIND_VEHICLE, NO_SOURCE_ID
from state_sensor_ros.settings import DEFAULTS, Settings
from state_sensor_ros.simulators.monodrive import schema
from state_sensor_ros.simulators.monodrive.schema import GENERATIONS, Number, V1, V2, WRITTEN
from state_sensor_ros.simulators.monodrive.wheels import wheel_entries

Record: TypeAlias = dict[str, object]
Numbers: TypeAlias = list[Number]

# Up to here numbers of float32 are at most 0.0625 apart from those of float64: 0.6 mm.
_FINE = float(1 << 20)
_INPUTS = ('throttle_input', 'brake_input', 'wheel_input', 'steering_direction')
# Fields of a frame that are written.
_CARRIED = {V1: frozenset(('boxes', 'wheels', 'inputs', 'time', 'sample_count')),
            V2: frozenset(('lanes', 'boxes', 'wheels', 'colors', 'replay_classes', 'time',
                           'sample_count'))}


def written_as(generation: str) -> str:
    """Return the generation in which a frame of any source is written unless one is asked for."""
    return V1 if generation in GENERATIONS and generation != V2 else V2


def encode(frame: Frame, generation: str = '', units: Settings = DEFAULTS) -> bytes:
    """
    Return the payload that the simulator would send for a frame.

    :param frame: SI, REP-103 axes, of any source.
    :param generation: v2 or v1; empty for that of :func:`written_as`.
    :param units: ``obb_extents`` and ``road_s_unit`` of the payload.
    :returns: compact JSON, UTF-8, keys in alphabetical order, null for NaN.
    """
    return msgspec.json.encode(members_of(frame, generation, units))


def members_of(frame: Frame, generation: str = '', units: Settings = DEFAULTS) -> Record:
    """Return the payload of :func:`encode` as plain data."""
    generation = generation or written_as(frame.generation)
    if generation not in WRITTEN:
        raise ConfigError('generation', repr(generation), f'one of {", ".join(WRITTEN)}')
    actors = _flat(frame, units) if generation == V1 else _nested(frame, units)
    head: Record = {}
    if not math.isnan(frame.game_time):
        head['game_time'] = frame.game_time
    if frame.sample_count or generation == V2:
        head['sample_count'] = frame.sample_count
    if frame.time or generation == V2:
        head['time'] = frame.time
    return {'frame': actors, **head}


def _numbers(source: Floats) -> list[Numbers]:
    """Return rows of float32 values as lists; None for NaN, and float64 if float32 is coarse."""
    with np.errstate(all='ignore'):
        single = source.astype(np.float32).astype(np.float64)
        # UTM coordinates in cm have nine digits, float32 has seven.
        rows: list[Numbers] = np.where(np.abs(source) < _FINE, single, source).tolist()
    if np.isfinite(source).all():
        return rows
    return [[number if number is not None and math.isfinite(number) else None for number in row]
            for row in rows]


def _vector(xyz: Numbers) -> Record:
    x, y, z = xyz
    return {'x': x, 'y': y, 'z': z}


def _quaternion(xyzw: Numbers) -> Record:
    x, y, z, w = xyzw
    return {'w': w, 'x': x, 'y': y, 'z': z}


def _is_unknown(numbers: Sequence[Number]) -> bool:
    return numbers.count(None) == len(numbers)


def _nested(frame: Frame, units: Settings) -> Record:
    """Return the member ``frame`` of v2."""
    boxes = _boxes(frame, units, _vector, _quaternion)
    wheels, lanes = _nested_wheels(frame), _lanes(frame, units)
    groups: dict[str, list[Record]] = {'objects': [], 'vehicles': []}
    for i, row in enumerate(_numbers(rep103.from_rep103_kinematics(frame.kinematics))):
        state: Record = {
            'color': frame.colors[i] if frame.colors else '', 'name': frame.names[i],
            'odometry': {
                'angular_velocity': _vector(row[10:13]), 'linear_velocity': _vector(row[7:10]),
                'pose': {'orientation': _quaternion(row[3:7]), 'position': _vector(row[0:3])}},
            'oriented_bounding_box': boxes[i],
            'replay_class': frame.replay_classes[i] if frame.replay_classes else '',
            'tags': list(frame.tags[i])}
        state = {key: value for key, value in state.items() if value != '' or key == 'name'}
        if frame.kinds[i] == KIND_VEHICLE:
            lane: Record = {'control_state': lanes[i]} if i in lanes else {}
            groups['vehicles'].append({**lane, 'state': state, 'wheels': wheels[i]})
        else:
            groups['objects'].append(state)
    return {**groups}


def _boxes(frame: Frame, units: Settings, vector: Callable[[Numbers], object],
           quaternion: Callable[[Numbers], object]) -> list[list[Record]]:
    """Return the boxes of each actor, with vectors and quaternions as these functions return."""
    owned: list[list[Record]] = [[] for _ in frame.names]
    if frame.boxes is not None:
        for i, name, row in zip(frame.boxes.actor.tolist(), frame.boxes.names,
                                _numbers(rep103.from_rep103_boxes(frame.boxes.rows, units)),
                                strict=True):
            owned[i].append({
                'center': vector(row[0:3]), 'extents': vector(row[7:10]), 'name': name,
                'orientation': quaternion(row[3:7]), 'scale': vector(row[10:13])})
    return owned


def _lanes(frame: Frame, units: Settings) -> dict[int, Record]:
    lanes = frame.lanes
    road_s = _numbers(rep103.from_rep103_road_s(lanes.s, units)[:, None])
    return {i: {'lane_change_left': left, 'lane_change_right': right, 'lane_id': lane_id,
                'road_id': road_id, 's': s, 'section_id': section_id}
            for i, (left, right), (road_id, section_id, lane_id), (s,) in zip(
                lanes.actor.tolist(), lanes.is_changing.tolist(), lanes.ids.tolist(), road_s,
                strict=True)}


def _is_flat(frame: Frame) -> bool | None:
    """Return whether a frame was read from v0 or v1, None for another simulator."""
    return written_as(frame.generation) == V1 if frame.generation in GENERATIONS else None


def _nested_wheels(frame: Frame) -> list[list[Record]]:
    owned: list[list[Record]] = [[] for _ in frame.names]
    if (wheels := frame.wheels) is None:
        return owned
    ids, source = wheel_entries(wheels, from_flat=_is_flat(frame), to_flat=False)
    for i, wheel_id, row in zip(wheels.actor.tolist(), ids.tolist(), _numbers(source),
                                strict=True):
        pose: Record = {}
        if not _is_unknown(row[3:7]):
            pose['orientation'] = _quaternion(row[3:7])
        if not _is_unknown(row[0:3]):
            pose['position'] = _vector(row[0:3])
        owned[i].append({'id': wheel_id, **({'pose': pose} if pose else {}), 'speed': row[7]})
    return owned


def _flat(frame: Frame, units: Settings) -> list[Record]:
    """Return the member ``frame`` of v1."""
    boxes, wheels = _boxes(frame, units, list, list), _flat_wheels(frame)
    inputs = [] if frame.inputs is None else _numbers(rep103.from_rep103_inputs(frame.inputs))
    actors: list[Record] = []
    for i, row in enumerate(_numbers(rep103.from_rep103_kinematics(frame.kinematics))):
        actor: Record = {'name': frame.names[i], 'orientation': row[3:7], 'position': row[0:3],
                         'tags': list(frame.tags[i]), **wheels[i]}
        velocities = {'angular_velocity': row[10:13], 'velocity': row[7:10]}
        actor.update((key, value) for key, value in velocities.items() if not _is_unknown(value))
        if inputs:
            actor.update((key, value) for key, value in zip(_INPUTS, inputs[i], strict=True)
                         if value is not None)
        if boxes[i]:
            actor['oriented_bounding_box'] = boxes[i]
        actors.append(dict(sorted(actor.items())))
    return actors


def _flat_wheels(frame: Frame) -> list[Record]:
    """Return ``wheels`` and ``wheel_speed`` of each actor, as far as it has them."""
    owned: list[Record] = [{} for _ in frame.names]
    if (wheels := frame.wheels) is None:
        return owned
    ids, source = wheel_entries(wheels, from_flat=_is_flat(frame), to_flat=True)
    numbers, ids, rows = wheels.wheel.tolist(), ids.tolist(), _numbers(source)
    for i in dict.fromkeys(wheels.actor.tolist()):
        own = wheels.rows_of(i)
        speeds = {numbers[each]: rows[each][7] for each in own}
        in_order = [speeds.get(wheel) for wheel in range(max(speeds) + 1)]
        if not _is_unknown(in_order):
            owned[i]['wheel_speed'] = in_order
        entries = [{'id': ids[each]} if _is_unknown(rows[each][3:7])
                   else {'id': ids[each], 'orientation': rows[each][3:7]}
                   for each in own if ids[each] != NO_SOURCE_ID]
        if entries:
            owned[i]['wheels'] = entries
    return owned


def losses(frame: Frame, generation: str) -> list[str]:
    """Return the parts of a frame that its payload of a generation, v2 or v1, would lack."""
    found = [field.part for field in parts_of(frame, _CARRIED[generation])
             if field.name != 'ids' or frame.generation not in GENERATIONS]
    if generation == V2:
        if any(bool((frame.kinds[part.actor] == KIND_OBJECT).any())
               for part in (frame.lanes, frame.wheels) if part is not None):
            found.append('wheels and lane states of objects')
        return found
    if list(map(schema.kind_of, frame.tags)) != frame.kinds.tolist():
        found.append('objects tagged as vehicles or vehicles not tagged so')
    if frame.wheels is not None:
        ids, _ = wheel_entries(frame.wheels, from_flat=_is_flat(frame), to_flat=True)
        if frame.wheels.position_known.any():
            found.append('wheel positions')
        if (frame.wheels.orientation_known & (ids == NO_SOURCE_ID)).any():
            found.append('orientations of rear wheels')
    return found

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A Frame to the JSON of a generation, and the parts of it that the generation cannot carry.

Factors and signs are in rep103.py. Numbers are written as float32, as the simulator does.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec
import numpy as np

from state_sensor_ros.simulators import ConfigError, Frame, Units, Wheels
from state_sensor_ros.simulators.frame_arrays import (
    DEFAULT_UNITS,
    Floats,
    from_rep103_boxes,
    from_rep103_inputs,
    from_rep103_kinematics,
    from_rep103_road_s,
    KIND_OBJECT,
    KIND_VEHICLE,
    NO_SOURCE_ID,
)
from state_sensor_ros.simulators.json_values import Number
from state_sensor_ros.simulators.monodrive.assemble import kind_of
from state_sensor_ros.simulators.monodrive.wheels import entry_ids, wheel_entries
from state_sensor_ros.simulators.monodrive.wire import GENERATIONS, V0, V1, V1T, V2
from state_sensor_ros.simulators.recordings import parts_of

Record: TypeAlias = dict[str, object]
Numbers: TypeAlias = list[Number]

FLAT = (V0, V1, V1T)
# Keys of a v0 frame that are not actors: an actor with such a name cannot be written.
RESERVED_NAMES = frozenset({'frame', 'game_time', 'time', 'sample_count', 'state_data_as_string'})


def format_payload(frame: Frame, generation: str | None = None,
                   units: Units = DEFAULT_UNITS) -> bytes:
    """
    Return the payload that the simulator would send for a frame.

    :param frame: SI, REP-103 axes, of any source.
    :param generation: v0, v1, v1t or v2; None for that of the frame.
    :param units: units of extents and of ``s`` in the payload.
    :returns: compact JSON, UTF-8.
    """
    return msgspec.json.encode(format_frame(frame, generation, units))


def format_frame(frame: Frame, generation: str | None = None,
                 units: Units = DEFAULT_UNITS) -> Record:
    """
    Return the value that :func:`format_payload` encodes.

    :param frame: SI, REP-103 axes, of any source.
    :param generation: v0, v1, v1t or v2; None for that of the frame.
    :param units: units of extents and of ``s`` in the value.
    :returns: dicts and lists, keys in alphabetical order, None for NaN.
    """
    generation = checked_generation(frame.generation if generation is None else generation)
    head: Record = {}
    if not math.isnan(frame.game_time):
        head['game_time'] = frame.game_time
    if frame.sample_count or generation == V2:
        head['sample_count'] = frame.sample_count
    if frame.time or generation == V2:
        head['time'] = frame.time
    if generation == V2:
        return {'frame': _v2_actors(frame, units), **head}
    times: Record = {}
    if generation == V1T:
        times = {key: head.pop(key) for key in ('game_time', 'time') if key in head}
    actors = _flat_actors(frame, generation, units, times)
    if generation == V0:
        by_name = dict(zip(frame.names, actors, strict=True))
        return {**{name: actor for name, actor in by_name.items() if name not in RESERVED_NAMES},
                **head}
    return {'frame': actors, **head}


def checked_generation(generation: str) -> str:
    """Return ``generation`` if it exists."""
    if generation not in GENERATIONS:
        raise ConfigError('generation', repr(generation),
                          f'one of {", ".join(sorted(GENERATIONS))}')
    return generation


# Up to here numbers of float32 are at most 0.0625 apart from those of float64: 0.6 mm.
_FINE = float(1 << 20)


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
    return {'x': xyz[0], 'y': xyz[1], 'z': xyz[2]}


def _quaternion(xyzw: Numbers) -> Record:
    return {'w': xyzw[3], 'x': xyzw[0], 'y': xyzw[1], 'z': xyzw[2]}


def _is_unknown(numbers: Numbers) -> bool:
    return all(number is None for number in numbers)


def _v2_actors(frame: Frame, units: Units) -> Record:
    rows = _numbers(from_rep103_kinematics(frame.kinematics))
    boxes = _boxes(frame, units)
    wheels = _v2_wheels(frame)
    lanes = dict(zip(frame.lanes.actor.tolist(), _lanes(frame, units), strict=True))
    appearance = list(zip(frame.colors or (), frame.replay_classes or (), strict=True))
    objects: list[Record] = []
    vehicles: list[Record] = []
    for i_actor, row in enumerate(rows):
        color, replay_class = appearance[i_actor] if appearance else ('', '')
        state: Record = {
            **({'color': color} if color else {}),
            'name': frame.names[i_actor],
            'odometry': {
                'angular_velocity': _vector(row[10:13]),
                'linear_velocity': _vector(row[7:10]),
                'pose': {'orientation': _quaternion(row[3:7]), 'position': _vector(row[0:3])}},
            'oriented_bounding_box': [
                {'center': _vector(box[0:3]), 'extents': _vector(box[7:10]), 'name': name,
                 'orientation': _quaternion(box[3:7]), 'scale': _vector(box[10:13])}
                for name, box in boxes[i_actor]],
            **({'replay_class': replay_class} if replay_class else {}),
            'tags': list(frame.tags[i_actor])}
        if frame.kinds[i_actor] == KIND_VEHICLE:
            lane: Record = {'control_state': lanes[i_actor]} if i_actor in lanes else {}
            vehicles.append({**lane, 'state': state, 'wheels': wheels[i_actor]})
        else:
            objects.append(state)
    return {'objects': objects, 'vehicles': vehicles}


def _boxes(frame: Frame, units: Units) -> list[list[tuple[str, Numbers]]]:
    """Return name, and center, orientation, extents, scale, of the boxes of each actor."""
    owned: list[list[tuple[str, Numbers]]] = [[] for _ in range(frame.n_actors)]
    if frame.boxes is not None:
        for i_actor, name, row in zip(frame.boxes.actor.tolist(), frame.boxes.names,
                                      _numbers(from_rep103_boxes(frame.boxes.rows, units)),
                                      strict=True):
            owned[i_actor].append((name, row))
    return owned


def _lanes(frame: Frame, units: Units) -> list[Record]:
    lanes = frame.lanes
    road_s = _numbers(from_rep103_road_s(lanes.s, units)[:, None])
    return [{'lane_change_left': left, 'lane_change_right': right, 'lane_id': lane_id,
             'road_id': road_id, 's': s, 'section_id': section_id}
            for (left, right), (road_id, section_id, lane_id), (s,) in zip(
                lanes.is_changing.tolist(), lanes.ids.tolist(), road_s, strict=True)]


def _is_flat(frame: Frame) -> bool | None:
    """Return whether a frame was read from v0 or v1, None for another simulator."""
    return frame.generation in FLAT if frame.generation in GENERATIONS else None


def _v2_wheels(frame: Frame) -> list[list[Record]]:
    owned: list[list[Record]] = [[] for _ in frame.names]
    wheels = frame.wheels
    if wheels is None:
        return owned
    ids, source = wheel_entries(wheels, entry_ids(
        wheels, from_flat=_is_flat(frame), to_flat=False))
    for i_actor, wheel_id, row in zip(wheels.actor.tolist(), ids.tolist(), _numbers(source),
                                      strict=True):
        pose = {key: text_of(row[part]) for key, text_of, part in _WHEEL_POSE
                if not _is_unknown(row[part])}
        owned[i_actor].append({
            'id': wheel_id, **({'pose': pose} if pose else {}), 'speed': row[7]})
    return owned


_WHEEL_POSE = (('orientation', _quaternion, slice(3, 7)), ('position', _vector, slice(0, 3)))


def _flat_actors(frame: Frame, generation: str, units: Units, times: Record) -> list[Record]:
    """Return the actors of v0 or v1, each with ``times``."""
    rows = _numbers(from_rep103_kinematics(frame.kinematics))
    boxes = _boxes(frame, units)
    wheels = _flat_wheels(frame)
    inputs = [] if frame.inputs is None else _numbers(from_rep103_inputs(frame.inputs))
    n_first_input = 3 if generation == V0 else 0
    actors: list[Record] = []
    for i_actor, row in enumerate(rows):
        actor: Record = {'orientation': row[3:7], 'position': row[0:3],
                         'tags': list(frame.tags[i_actor]), **times}
        velocities = {'angular_velocity': row[10:13], 'velocity': row[7:10]}
        actor.update((key, value) for key, value in velocities.items() if not _is_unknown(value))
        if inputs:
            actor.update((key, value) for key, value in list(
                zip(_INPUTS, inputs[i_actor], strict=True))[n_first_input:] if value is not None)
        if generation != V0:
            actor.update(wheels[i_actor], name=frame.names[i_actor])
            if boxes[i_actor]:
                actor['oriented_bounding_box'] = [
                    {'center': box[0:3], 'extents': box[7:10], 'name': name,
                     'orientation': box[3:7], 'scale': box[10:13]} for name, box in boxes[i_actor]]
        actors.append(dict(sorted(actor.items())))
    return actors


_INPUTS = ('throttle_input', 'brake_input', 'wheel_input', 'steering_direction')


def _flat_wheels(frame: Frame) -> list[Record]:
    """Return ``wheel_speed`` and ``wheels`` of each actor, if it has them."""
    owned: list[Record] = [{} for _ in frame.names]
    wheels = frame.wheels
    if wheels is None:
        return owned
    ids, source = wheel_entries(wheels, entry_ids(
        wheels, from_flat=_is_flat(frame), to_flat=True))
    entries: dict[int, list[Record]] = {}
    speeds: dict[int, dict[int, Number]] = {}
    for i_actor, wheel, wheel_id, row in zip(wheels.actor.tolist(), wheels.wheel.tolist(),
                                             ids.tolist(), _numbers(source), strict=True):
        speeds.setdefault(i_actor, {})[wheel] = row[7]
        if wheel_id != NO_SOURCE_ID:
            orientation = {} if _is_unknown(row[3:7]) else {'orientation': row[3:7]}
            entries.setdefault(i_actor, []).append({'id': wheel_id, **orientation})
    for i_actor, by_wheel in speeds.items():
        in_order = [by_wheel.get(wheel) for wheel in range(max(by_wheel) + 1)]
        if not _is_unknown(in_order):
            owned[i_actor]['wheel_speed'] = in_order
    for i_actor, records in entries.items():
        owned[i_actor]['wheels'] = records
    return owned


# Parts of a frame that a generation has, or that have a name of their own below.
_WRITTEN = frozenset(('lanes', 'boxes', 'wheels', 'inputs', 'colors', 'replay_classes', 'ids',
                      'time', 'sample_count'))


def conversion_losses(frame: Frame, generation: str) -> list[str]:
    """Return the parts of a frame that its payload of another generation would lack."""
    # generation: v0, v1, v1t or v2.
    checked_generation(generation)
    wheels, inputs = frame.wheels, frame.inputs
    flat = generation in FLAT
    n_inputs_lost = {V2: 4, V0: 3}.get(generation, 0)
    by_tags = [kind_of(tags) for tags in frame.tags]
    found = {
        'lane states': flat and len(frame.lanes.actor) > 0,
        'colors and replay classes': flat and any(
            (frame.colors or ()) + (frame.replay_classes or ())),
        'objects tagged as vehicles or vehicles not tagged so':
            flat and by_tags != frame.kinds.tolist(),
        'throttle, brake and steering': inputs is not None and bool(
            np.isfinite(inputs[:, :n_inputs_lost]).any()),
        'oriented bounding boxes':
            generation == V0 and frame.boxes is not None and len(frame.boxes.actor) > 0,
        'wheels': generation == V0 and wheels is not None and len(wheels.actor) > 0,
        'wheel positions': generation in (V1, V1T) and wheels is not None and bool(
            wheels.position_known.any()),
        'orientations of rear wheels':
            generation in (V1, V1T) and wheels is not None and _lose_orientations(frame, wheels),
        'wheels and lane states of objects': generation == V2 and _objects_have_parts(frame),
        'the order of objects and vehicles':
            generation == V2 and bool((np.diff(frame.kinds.astype(np.int8)) < 0).any()),
        f'actors named {", ".join(sorted(RESERVED_NAMES))}':
            generation == V0 and not RESERVED_NAMES.isdisjoint(frame.names),
        'the time of a frame without actors': generation == V1T and not frame.names,
        'frames without actors': generation == V0 and not frame.names,
        'ids of actors': frame.ids is not None and frame.generation not in (V0, V1, V1T, V2),
        **dict.fromkeys((field.part for field in parts_of(frame) if field.name not in _WRITTEN),
                        True)}
    return [what for what, is_lost in found.items() if is_lost]


def _objects_have_parts(frame: Frame) -> bool:
    parts = [frame.lanes.actor] + ([] if frame.wheels is None else [frame.wheels.actor])
    return any(bool((frame.kinds[actor] == KIND_OBJECT).any()) for actor in parts)


def _lose_orientations(frame: Frame, wheels: Wheels) -> bool:
    """Return whether a wheel has an orientation but no entry in v1."""
    ids, _ = wheel_entries(wheels, entry_ids(
        wheels, from_flat=frame.generation in FLAT, to_flat=True))
    return bool((wheels.orientation_known & (ids == NO_SOURCE_ID)).any())

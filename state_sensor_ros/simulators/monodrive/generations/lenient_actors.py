# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
One actor in any form, read member by member, to the typed actor of its generation.

``value`` is parsed JSON, ``where`` its key path, for errors. Each function raises DecodeError with
key path, found and expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from state_sensor_ros.json_forms.json_text import Json
from state_sensor_ros.json_forms.json_values import (
    member,
    Quadruple,
    to_flag,
    to_integer,
    to_list,
    to_number,
    to_object,
    to_quadruple,
    to_tags,
    to_text,
    to_triple,
    wrong,
)
from state_sensor_ros.simulators.monodrive.generations.wire import (
    Box,
    ControlState,
    FlatActor,
    FlatBox,
    FlatWheel,
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    Odometry,
    Pose,
    Quaternion,
    State,
    Vector,
    Vehicle,
    Wheel,
    WHEEL_MAX,
    WheelPose,
)


def located(items: Iterable[Json], where: str) -> Iterator[tuple[Json, str]]:
    """
    Yield each item with its key path.

    :param items: the elements of an array.
    :param where: key path of the array.
    """
    return ((item, f'{where}[{i}]') for i, item in enumerate(items))


def optional_integer(owner: Mapping[str, Json], key: str, where: str, low: int,
                     high: int) -> int | None:
    """
    Return an integer member, None when it is missing, ``null`` or NaN.

    :param owner: the object.
    :param key: name of the member.
    :param where: key path of the member.
    :param low: smallest accepted value.
    :param high: largest accepted value.
    :raises DecodeError: where it is no integer in this range.
    """
    value = owner.get(key)
    if value is None or value != value:
        return None
    return to_integer(value, where, low, high)


def read_vehicle(value: Mapping[str, Json], where: str) -> Vehicle:
    """
    Read a vehicle of v2.

    :param value: an entry of ``vehicles``.
    :param where: its key path.
    :raises DecodeError: where a member is invalid, a required one missing, or a wheel id repeated.
    """
    state_path = f'{where}.state'
    state = to_object(member(value, 'state', where, 'an object'), state_path)
    wheels = [_wheel(to_object(wheel, path), path)
              for wheel, path in located(to_list(value.get('wheels'), f'{where}.wheels'),
                                         f'{where}.wheels')]
    _check_ids([wheel.id for wheel in wheels], where)
    lane = value.get('control_state')
    return Vehicle(read_state(state, state_path), tuple(wheels),
                   None if lane is None else _control_state(lane, f'{where}.control_state'))


def read_state(value: Mapping[str, Json], where: str) -> State:
    """
    Read an object of v2 or the state of a vehicle.

    :param value: an entry of ``objects``, or ``state`` of a vehicle.
    :param where: its key path.
    :raises DecodeError: where a member is invalid, or a required one missing.
    """
    name = to_text(member(value, 'name', where, 'a string'), f'{where}.name')
    path = f'{where}.odometry'
    odometry = to_object(member(value, 'odometry', where, 'an object'), path)
    pose = to_object(member(odometry, 'pose', path, 'an object'), f'{path}.pose')
    position = member(pose, 'position', f'{path}.pose', 'a vector')
    orientation = member(pose, 'orientation', f'{path}.pose', 'a quaternion')
    boxes = [_box(to_object(box, at), at) for box, at in located(
        to_list(value.get('oriented_bounding_box'), f'{where}.oriented_bounding_box'),
        f'{where}.oriented_bounding_box')]
    return State(
        name,
        Odometry(
            Pose(_quaternion(orientation, f'{path}.pose.orientation'),
                 Vector(*to_triple(position, f'{path}.pose.position', complete=True))),
            Vector(*to_triple(odometry.get('linear_velocity'), f'{path}.linear_velocity')),
            Vector(*to_triple(odometry.get('angular_velocity'), f'{path}.angular_velocity'))),
        to_tags(value.get('tags'), f'{where}.tags'),
        tuple([Box(Vector(*box.center), Vector(*box.extents), Quaternion(*_wxyz(box.orientation)),
                   box.name, Vector(*box.scale)) for box in boxes]),
        _optional_text(value, 'color', where), _optional_text(value, 'replay_class', where))


def _wxyz(quadruple: Quadruple) -> Quadruple:
    x, y, z, w = quadruple
    return w, x, y, z


def _quaternion(value: Json, where: str) -> Quaternion:
    return Quaternion(*_wxyz(to_quadruple(value, where)))


def _optional_text(owner: Mapping[str, Json], key: str, where: str) -> str:
    value = owner.get(key)
    return '' if value is None else to_text(value, f'{where}.{key}')


def _box(value: Mapping[str, Json], where: str) -> FlatBox:
    scale = value.get('scale')
    return FlatBox(
        to_triple(member(value, 'center', where, 'a vector'), f'{where}.center', complete=True),
        to_triple(member(value, 'extents', where, 'a vector'), f'{where}.extents', complete=True),
        to_quadruple(member(value, 'orientation', where, 'a quaternion'), f'{where}.orientation'),
        _optional_text(value, 'name', where),
        (1.0, 1.0, 1.0) if scale is None else to_triple(scale, f'{where}.scale', complete=True))


def _wheel(value: Mapping[str, Json], where: str) -> Wheel:
    wheel_id = to_integer(member(value, 'id', where, 'an integer'), f'{where}.id', 0, WHEEL_MAX)
    pose_path, pose = f'{where}.pose', value.get('pose')
    pose = {} if pose is None else to_object(pose, pose_path)
    return Wheel(
        wheel_id,
        WheelPose(_quaternion(pose.get('orientation'), f'{pose_path}.orientation'),
                  Vector(*to_triple(pose.get('position'), f'{pose_path}.position'))),
        to_number(value.get('speed'), f'{where}.speed'))


def _check_ids(ids: list[int], where: str) -> None:
    if len(set(ids)) < len(ids):
        raise wrong(f'{where}.wheels', ids, 'each wheel id once')


def _control_state(value: Json, where: str) -> ControlState:
    lane = to_object(value, where)

    def flag(key: str) -> bool:
        return to_flag(member(lane, key, where, 'true or false'), f'{where}.{key}')

    def integer(key: str) -> int:
        return to_integer(member(lane, key, where, 'an integer'), f'{where}.{key}',
                          INT32_MIN, INT32_MAX)

    return ControlState(flag('lane_change_left'), flag('lane_change_right'), integer('lane_id'),
                        integer('road_id'), integer('section_id'),
                        to_number(lane.get('s'), f'{where}.s'))


def read_flat_actor(value: Mapping[str, Json], where: str) -> FlatActor:
    """
    Read an actor of v0 or v1.

    :param value: the object of the actor, with ``name``.
    :param where: its key path.
    :raises DecodeError: where a member is invalid, a required one missing, or a wheel id repeated.
    """
    boxes_path, wheels_path = f'{where}.oriented_bounding_box', f'{where}.wheels'
    boxes = to_list(value.get('oriented_bounding_box'), boxes_path)
    wheels = [_flat_wheel(to_object(wheel, path), path) for wheel, path
              in located(to_list(value.get('wheels'), wheels_path), wheels_path)]
    _check_ids([wheel.id for wheel in wheels], where)
    speeds = located(to_list(value.get('wheel_speed'), f'{where}.wheel_speed'),
                     f'{where}.wheel_speed')

    def number(key: str) -> float:
        return to_number(value.get(key), f'{where}.{key}')

    return FlatActor(
        name=to_text(member(value, 'name', where, 'a string'), f'{where}.name'),
        position=to_triple(member(value, 'position', where, 'a vector'), f'{where}.position',
                           complete=True),
        orientation=to_quadruple(member(value, 'orientation', where, 'a quaternion'),
                                 f'{where}.orientation'),
        velocity=to_triple(value.get('velocity'), f'{where}.velocity'),
        angular_velocity=to_triple(value.get('angular_velocity'), f'{where}.angular_velocity'),
        tags=to_tags(value.get('tags'), f'{where}.tags'),
        game_time=number('game_time') if value.get('game_time') is not None else None,
        time=optional_integer(value, 'time', f'{where}.time', INT64_MIN, INT64_MAX),
        throttle_input=number('throttle_input'), brake_input=number('brake_input'),
        wheel_input=number('wheel_input'), steering_direction=number('steering_direction'),
        wheel_speed=tuple([to_number(speed, path) for speed, path in speeds]),
        wheels=tuple(wheels),
        oriented_bounding_box=tuple([_box(to_object(box, path), path)
                                     for box, path in located(boxes, boxes_path)]))


def _flat_wheel(value: Mapping[str, Json], where: str) -> FlatWheel:
    wheel_id = to_integer(member(value, 'id', where, 'an integer'), f'{where}.id', 0, WHEEL_MAX)
    return FlatWheel(wheel_id, to_quadruple(value.get('orientation'), f'{where}.orientation'))

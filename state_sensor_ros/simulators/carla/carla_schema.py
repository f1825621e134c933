# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The protobuf messages of a CARLA 0.8 server, built at run time from tables of their fields.

Field numbers are those of 0.8.4; units and meaning: doc/protocol/carla.md#measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = 'carla_server'
_ROUNDING: Final = 1e-9
_Field = descriptor_pb2.FieldDescriptorProto

_SCALARS: Final = {
    'float': _Field.TYPE_FLOAT, 'bool': _Field.TYPE_BOOL, 'string': _Field.TYPE_STRING,
    'uint32': _Field.TYPE_UINT32, 'uint64': _Field.TYPE_UINT64, 'fixed32': _Field.TYPE_FIXED32,
}

# Fields of each message: `number name type`, then `*` if repeated, `|` in the oneof `agent`.
_MESSAGES: Final = {
    'Vector3D': '1 x float, 2 y float, 3 z float',
    'Rotation3D': '1 pitch float, 2 yaw float, 3 roll float',
    'Transform': '1 location Vector3D, 2 orientation Vector3D, 3 rotation Rotation3D',
    'BoundingBox': '1 transform Transform, 2 extent Vector3D',
    'Control': '1 steer float, 2 throttle float, 3 brake float, 4 hand_brake bool, 5 reverse bool',
    # box_extent, of 0.8.0 and 0.8.1, is a box without a transform.
    'Vehicle': '1 transform Transform, 2 box_extent Vector3D, 3 forward_speed float, '
               '4 bounding_box BoundingBox',
    'Pedestrian': '1 transform Transform, 2 box_extent Vector3D, 3 forward_speed float, '
                  '4 bounding_box BoundingBox',
    'TrafficLight': '1 transform Transform, 2 state TrafficLightState',
    'SpeedLimitSign': '1 transform Transform, 2 speed_limit float',
    'Agent': '1 id fixed32, 2 vehicle Vehicle |, 3 pedestrian Pedestrian |, '
             '4 traffic_light TrafficLight |, 5 speed_limit_sign SpeedLimitSign |',
    'PlayerMeasurements':
        '1 transform Transform, 3 acceleration Vector3D, 4 forward_speed float, '
        '5 collision_vehicles float, 6 collision_pedestrians float, 7 collision_other float, '
        '8 intersection_otherlane float, 9 intersection_offroad float, '
        '10 autopilot_control Control, 11 box_extent Vector3D, 12 bounding_box BoundingBox',
    'Measurements':
        '1 platform_timestamp uint32, 2 game_timestamp uint32, '
        '3 player_measurements PlayerMeasurements, 4 non_player_agents Agent *, '
        '5 frame_number uint64',
    'Sensor': '1 id fixed32, 2 type SensorType, 3 name string',
    'RequestNewEpisode': '1 ini_file string',
    'SceneDescription': '1 player_start_spots Transform *, 2 sensors Sensor *, 3 map_name string',
    'EpisodeStart': '1 player_start_spot_index uint32',
    'EpisodeReady': '1 ready bool',
}

_ENUMS: Final = {
    'TrafficLightState': ('GREEN', 'YELLOW', 'RED'),
    'SensorType': ('UNKNOWN', 'CAMERA', 'LIDAR_RAY_CAST'),
}


def _describe_field(proto: descriptor_pb2.DescriptorProto, line: str) -> None:
    number, name, type_name, *marks = line.split()
    field = proto.field.add(name=name, number=int(number))
    field.label = _Field.LABEL_REPEATED if '*' in marks else _Field.LABEL_OPTIONAL
    if type_name in _SCALARS:
        field.type = _SCALARS[type_name]
        return
    field.type = _Field.TYPE_ENUM if type_name in _ENUMS else _Field.TYPE_MESSAGE
    field.type_name = f'.{_PACKAGE}.{type_name}'
    if '|' in marks:
        field.oneof_index = 0


def describe() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name=f'state_sensor_ros/{_PACKAGE}.proto', package=_PACKAGE, syntax='proto3')
    for name, values in _ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            enum.value.add(name=value, number=number)
    for name, lines in _MESSAGES.items():
        proto = file.message_type.add(name=name)
        if '|' in lines:
            proto.oneof_decl.add(name='agent')
        for line in lines.split(', '):
            _describe_field(proto, line)
    return file


# A pool of its own, as the process may also load CARLA's generated messages of the same names.
_POOL: Final = descriptor_pool.DescriptorPool()
_POOL.AddSerializedFile(describe().SerializeToString())


def _message_class(name: str) -> type[Any]:
    """Return the class of a message; it has no static type, as its fields are made at run time."""
    descriptor = _POOL.FindMessageTypeByName(f'{_PACKAGE}.{name}')
    if hasattr(message_factory, 'GetMessageClass'):
        return message_factory.GetMessageClass(descriptor)
    # Before protobuf 4.22 (Ubuntu 24.04 has 4.21) a factory object makes the class.
    factory: Any = message_factory.MessageFactory(_POOL)
    class_: type[Any] = factory.GetPrototype(descriptor)
    return class_


Measurements: Final = _message_class('Measurements')
Control: Final = _message_class('Control')
RequestNewEpisode: Final = _message_class('RequestNewEpisode')
SceneDescription: Final = _message_class('SceneDescription')
EpisodeStart: Final = _message_class('EpisodeStart')
EpisodeReady: Final = _message_class('EpisodeReady')


# Protobuf makes message classes at run time: they have no static type.
def fill_transform(transform: Any, xyz: Sequence[float],  # noqa: ANN401
                   roll_pitch_yaw: Sequence[float]) -> None:
    """Set the members of a Transform as the simulator does."""
    # xyz: place, m.
    # roll_pitch_yaw: rotator, degrees.
    location, direction, rotation = transform.location, transform.orientation, transform.rotation
    location.x, location.y, location.z = xyz
    # The member is present even if all of it is zero.
    rotation.SetInParent()
    rotation.roll, rotation.pitch, rotation.yaw = roll_pitch_yaw
    # The deprecated direction is the x axis, computed from the angles as float32.
    pitch, yaw = math.radians(rotation.pitch), math.radians(rotation.yaw)
    forward = math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch)
    direction.x, direction.y, direction.z = (
        0.0 if abs(value) < _ROUNDING else value for value in forward)


def fields_of(message: str) -> list[tuple[str, str, bool]]:
    """
    Return name and type of each field of a message, and whether it is repeated.

    :param message: name of a message, such as ``Transform``.
    """
    fields = [line.split() for line in _MESSAGES[message].split(', ')]
    return [(name, type_name, '*' in marks) for _, name, type_name, *marks in fields]


def members_of(message: str) -> dict[str, tuple[str, str]]:
    """Return the member names of a message in JSON."""
    # message: name of a message, such as ``Transform``.
    # Returns by both spellings of a member, its lowerCamelCase spelling and the name of its
    # message type, ``''`` for a scalar.
    fields = _POOL.FindMessageTypeByName(f'{_PACKAGE}.{message}').fields
    usual = {field.name: (field.json_name, field.message_type.name if field.message_type else '')
             for field in fields}
    return {**usual, **{member[0]: member for member in usual.values()}}

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The protobuf messages of CARLA 0.8, built at run time from a table of their fields.

Field numbers are those of 0.8.4; units and meaning: doc/protocol/carla.md#measurements. The
floats of a server are float32, those of a dataset, which are decimal text, float64.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    'float': _Field.TYPE_FLOAT, 'bool': _Field.TYPE_BOOL, 'string': _Field.TYPE_STRING,
    'uint32': _Field.TYPE_UINT32, 'uint64': _Field.TYPE_UINT64, 'fixed32': _Field.TYPE_FIXED32,
}
# Fields of each message: `number name type`, then `*` if repeated, `|` in the oneof `agent`.
# `box_extent`, of 0.8.0 and 0.8.1, is a box without a transform.
_MESSAGES: Final = {
    'Vector3D': '1 x float, 2 y float, 3 z float',
    'Rotation3D': '1 pitch float, 2 yaw float, 3 roll float',
    'Transform': '1 location Vector3D, 2 orientation Vector3D, 3 rotation Rotation3D',
    'BoundingBox': '1 transform Transform, 2 extent Vector3D',
    'Control': '1 steer float, 2 throttle float, 3 brake float, 4 hand_brake bool, 5 reverse bool',
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
    'Sensor': '1 id fixed32, 2 type uint32, 3 name string',
    'RequestNewEpisode': '1 ini_file string',
    'SceneDescription': '1 player_start_spots Transform *, 2 sensors Sensor *, 3 map_name string',
    'EpisodeStart': '1 player_start_spot_index uint32',
    'EpisodeReady': '1 ready bool',
}
_LIGHT: Final = 'TrafficLightState'
_LIGHT_STATES: Final = ('GREEN', 'YELLOW', 'RED')


def _described(package: str, float_type: _Field.Type.ValueType) -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(
        name=f'state_sensor_ros/{package}.proto', package=package, syntax='proto3')
    enum = file.enum_type.add(name=_LIGHT)
    for number, state in enumerate(_LIGHT_STATES):
        enum.value.add(name=state, number=number)
    for message, fields in _MESSAGES.items():
        proto = file.message_type.add(name=message)
        if '|' in fields:
            proto.oneof_decl.add(name='agent')
        for index, name, type_name, *marks in map(str.split, fields.split(', ')):
            field = proto.field.add(name=name, number=int(index))
            field.label = _Field.LABEL_REPEATED if '*' in marks else _Field.LABEL_OPTIONAL
            if type_name in _SCALARS:
                field.type = float_type if type_name == 'float' else _SCALARS[type_name]
                continue
            field.type = _Field.TYPE_ENUM if type_name == _LIGHT else _Field.TYPE_MESSAGE
            field.type_name = f'.{package}.{type_name}'
            if '|' in marks:
                field.oneof_index = 0
    # A pool of its own: the process may also load CARLA's generated messages of the same names.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


_SERVER: Final = _described('carla_server', _Field.TYPE_FLOAT)
_DATASET: Final = _described('carla_dataset', _Field.TYPE_DOUBLE)


# Protobuf makes message classes at run time: they have no static type.
def _message_class(pool: descriptor_pool.DescriptorPool, name: str) -> type[Any]:
    descriptor = pool.FindMessageTypeByName(name)
    if hasattr(message_factory, 'GetMessageClass'):
        return message_factory.GetMessageClass(descriptor)
    # Before protobuf 4.22 (Ubuntu 24.04 has 4.21) a factory object makes the class.
    factory: Any = message_factory.MessageFactory(pool)
    class_: type[Any] = factory.GetPrototype(descriptor)
    return class_


Measurements: Final = _message_class(_SERVER, 'carla_server.Measurements')
Control: Final = _message_class(_SERVER, 'carla_server.Control')
RequestNewEpisode: Final = _message_class(_SERVER, 'carla_server.RequestNewEpisode')
SceneDescription: Final = _message_class(_SERVER, 'carla_server.SceneDescription')
EpisodeStart: Final = _message_class(_SERVER, 'carla_server.EpisodeStart')
EpisodeReady: Final = _message_class(_SERVER, 'carla_server.EpisodeReady')
FileMeasurements: Final = _message_class(_DATASET, 'carla_dataset.Measurements')

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Bytes of a CARLA 0.8 server: messages with their lengths, the scene and the measurements.

Numbers are little-endian; the length does not count itself. One frame is a sequence of messages:

    0 length uint32 | 4 Measurements (protobuf)
    0 length uint32 | 4 message of a sensor            (one for each, see sensor_messages)
    0 length = 0                                       (end of the frame)
"""

from __future__ import annotations

from collections.abc import Sequence
import math
import socket
from typing import Any

from google.protobuf.message import DecodeError as ProtobufError

from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.carla_server.carla_schema import Measurements, SceneDescription
from state_sensor_ros.emulator.carla_server.message_bytes import EmulatedSensor
from state_sensor_ros.emulator.carla_server.town import (
    CarlaPose,
    DrivenCar,
    N_START_SPOTS,
    RADIUS_M,
    RingActor,
    Town,
)
from state_sensor_ros.emulator.threaded_server import receive
from state_sensor_ros.errors import counted, FramingError

# Longer messages are refused; the settings of a client have a few kilobytes.
MAX_MESSAGE_BYTES = 2**20
ROUNDING = 1e-9


def frame_message(body: bytes) -> bytes:
    """
    Put the length before a message.

    :param body: the message.
    :returns: length and message.
    """
    return len(body).to_bytes(4, 'little') + body


# Protobuf makes message classes at run time; they have no static type.
def read_message(connection: socket.socket, message_class: Any) -> Any:  # noqa: ANN401
    """
    Read one message.

    :param connection: a blocking socket.
    :param message_class: the expected class, of the schema.
    :returns: the message, or None if the peer has closed between two messages.
    :raises FramingError: if the bytes are not such a message.
    """
    head = receive(connection, 4)
    if not head:
        return None
    size = int.from_bytes(head, 'little')
    if len(head) < 4:
        raise FramingError('message length', f'{counted(len(head), "byte")}, then the end',
                           '4 bytes')
    if size > MAX_MESSAGE_BYTES:
        raise FramingError('message', f'{size} bytes', f'at most {MAX_MESSAGE_BYTES}')
    body = receive(connection, size)
    if len(body) < size:
        raise FramingError('message', f'{counted(len(body), "byte")}, then the end',
                           counted(size, 'byte'))
    try:
        return message_class.FromString(body)
    except ProtobufError as error:
        raise FramingError('message', str(error), 'a message of the schema') from error


def scene_bytes(sensors: Sequence[EmulatedSensor], map_name: str) -> bytes:
    """
    Return the SceneDescription of an episode: map, start spots and sensors.

    :param sensors: sensors of the episode.
    :param map_name: name of the map.
    :returns: the message, without its length.
    """
    scene = SceneDescription(map_name=map_name)
    for i in range(N_START_SPOTS):
        spot = RingActor(0, Town.start_angle(i), 0.0, RADIUS_M, (0.0, 0.0, 0.0))
        _fill_transform(scene.player_start_spots.add(), spot.pose())
    for number, sensor in enumerate(sensors, 1):
        scene.sensors.add(id=number, type=sensor.type_number, name=sensor.name)
    data: bytes = scene.SerializeToString()
    return data


def measurements_bytes(town: Town, frame_number: int, platform_ms: int, *,
                       sends_agents: bool) -> bytes:
    """
    Return the Measurements of a town at its current time.

    :param town: the town.
    :param frame_number: number of the frame.
    :param platform_ms: clock of the machine, ms; sent modulo 2**32.
    :param sends_agents: whether other actors than the player are sent.
    :returns: the message, without its length.
    """
    message = Measurements(
        frame_number=frame_number, game_timestamp=round(1000.0 * town.time_s) % 2**32,
        platform_timestamp=platform_ms % 2**32)
    player = message.player_measurements
    _fill_actor(player, town.player)
    player.acceleration.x, player.acceleration.y, player.acceleration.z = town.acceleration
    _fill_control(player.autopilot_control, town.autopilot())
    if sends_agents:
        _add_agents(message, town)
    body: bytes = message.SerializeToString()
    return body


def _add_agents(message: Any, town: Town) -> None:  # noqa: ANN401
    for kind, actors in (('vehicle', town.vehicles), ('pedestrian', town.pedestrians)):
        for actor in actors:
            _fill_actor(getattr(message.non_player_agents.add(id=actor.id), kind), actor)
    for i, (id_, pose) in enumerate(town.lights):
        light = message.non_player_agents.add(id=id_).traffic_light
        _fill_transform(light.transform, pose)
        light.state = town.light_state(i)
    for id_, pose, limit in town.signs:
        sign = message.non_player_agents.add(id=id_).speed_limit_sign
        _fill_transform(sign.transform, pose)
        sign.speed_limit = limit


def _fill_actor(body: Any, actor: RingActor | DrivenCar) -> None:  # noqa: ANN401
    _fill_transform(body.transform, actor.pose())
    body.forward_speed = actor.speed
    extent = body.bounding_box.extent
    extent.x, extent.y, extent.z = actor.half_sizes
    # The origin of the actor is on the ground, and the centre of its box above it.
    _fill_transform(body.bounding_box.transform, CarlaPose(0.0, 0.0, actor.half_sizes[2]))


def _fill_transform(transform: Any, pose: CarlaPose) -> None:  # noqa: ANN401
    location, rotation = transform.location, transform.rotation
    location.x, location.y, location.z = pose.x, pose.y, pose.z
    rotation.SetInParent()
    rotation.roll, rotation.pitch, rotation.yaw = pose.roll, pose.pitch, pose.yaw
    # The deprecated member `orientation` is the x axis, computed from the float32 angles.
    pitch, yaw = math.radians(rotation.pitch), math.radians(rotation.yaw)
    forward = (math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch))
    direction = transform.orientation
    direction.x, direction.y, direction.z = (
        0.0 if abs(value) < ROUNDING else value for value in forward)


def _fill_control(message: Any, control: Pedals) -> None:  # noqa: ANN401
    message.steer, message.throttle, message.brake = (
        control.steer, control.throttle, control.brake)
    message.hand_brake, message.reverse = control.hand_brake, control.reverse

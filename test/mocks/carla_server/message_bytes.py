# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Bytes of a CARLA 0.8 server: messages with their lengths, the scene, measurements."""

import math

from google.protobuf.message import DecodeError as ProtobufError

from carla_server.town import N_START_SPOTS, RADIUS_M, RingActor, Town  # noqa: I100
from state_sensor_ros.emulator.threaded_server import receive
from state_sensor_ros.errors import FramingError
from state_sensor_ros.simulators.carla.frames import SERVER

# Longer messages are refused; the settings of a client have a few kilobytes.
MAX_MESSAGE_BYTES = 2**20


def fill_transform(transform, xyz, roll_pitch_yaw):
    """Set the members of a Transform as the simulator does; angles in degrees."""
    location, direction, rotation = transform.location, transform.orientation, transform.rotation
    location.x, location.y, location.z = xyz
    # The member is present even if all of it is zero.
    rotation.SetInParent()
    rotation.roll, rotation.pitch, rotation.yaw = roll_pitch_yaw
    pitch, yaw = math.radians(rotation.pitch), math.radians(rotation.yaw)
    direction.x, direction.y, direction.z = (
        math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch))


def frame_message(body):
    """Put the length before a message."""
    return len(body).to_bytes(4, 'little') + body


def read_message(connection, message_class):
    """Read one message: the message, or None if the peer has closed between two messages."""
    head = receive(connection, 4, 'message length', may_end=True)
    if not head:
        return None
    size = int.from_bytes(head, 'little')
    if size > MAX_MESSAGE_BYTES:
        raise FramingError('message', f'{size} bytes', f'at most {MAX_MESSAGE_BYTES}')
    try:
        return message_class.FromString(receive(connection, size, 'message'))
    except ProtobufError as error:
        raise FramingError('message', str(error), 'a message of the schema') from error


def scene_bytes(map_name):
    """Return the SceneDescription of an episode: map and start spots."""
    scene = SERVER['SceneDescription'](map_name=map_name)
    for i in range(N_START_SPOTS):
        spot = RingActor(0, Town.start_angle(i), 0.0, RADIUS_M, (0.0, 0.0, 0.0))
        fill_transform(scene.player_start_spots.add(), *spot.pose())
    return scene.SerializeToString()


def measurements_bytes(town, frame_number, platform_ms, *, sends_agents):
    """Return the Measurements of a town at its current time."""
    # platform_ms: clock of the machine, ms; sent modulo 2**32.
    message = SERVER['Measurements'](
        frame_number=frame_number, game_timestamp=round(1000.0 * town.time_s) % 2**32,
        platform_timestamp=platform_ms % 2**32)
    player = message.player_measurements
    _fill_actor(player, town.player)
    player.acceleration.x, player.acceleration.y, player.acceleration.z = town.acceleration
    _fill_control(player.autopilot_control, town.autopilot())
    if sends_agents:
        _add_agents(message, town)
    return message.SerializeToString()


def _add_agents(message, town):
    for kind, actors in (('vehicle', town.vehicles), ('pedestrian', town.pedestrians)):
        for actor in actors:
            _fill_actor(getattr(message.non_player_agents.add(id=actor.id), kind), actor)
    for i, (id_, pose) in enumerate(town.lights):
        light = message.non_player_agents.add(id=id_).traffic_light
        fill_transform(light.transform, *pose)
        light.state = town.light_state(i)
    for id_, pose, limit in town.signs:
        sign = message.non_player_agents.add(id=id_).speed_limit_sign
        fill_transform(sign.transform, *pose)
        sign.speed_limit = limit


def _fill_actor(body, actor):
    fill_transform(body.transform, *actor.pose())
    body.forward_speed = actor.speed
    extent = body.bounding_box.extent
    extent.x, extent.y, extent.z = actor.half_sizes
    # The origin of the actor is on the ground, and the center of its box above it.
    fill_transform(body.bounding_box.transform, (0.0, 0.0, actor.half_sizes[2]), (0.0, 0.0, 0.0))


def _fill_control(message, control):
    message.steer, message.throttle, message.brake = (
        control.steer, control.throttle, control.brake)
    message.hand_brake, message.reverse = control.hand_brake, control.reverse

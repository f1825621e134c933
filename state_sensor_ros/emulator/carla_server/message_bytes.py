# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Bytes of a CARLA 0.8 server: messages with their lengths, and the settings file of the client.

Numbers are little-endian; the length does not count itself. One frame is a sequence of messages:

    0 length uint32 | 4 Measurements (protobuf)
    0 length uint32 | 4 sensor id | 8 width | 12 height | 16 type | 20 field of view float32 |
                      24 BGRA, row by row                       (one per camera; integers uint32)
    0 length = 0                                                (end of the frame)
"""

from __future__ import annotations

import configparser
from dataclasses import dataclass
import math
import socket
import struct
from typing import Any

from google.protobuf.message import DecodeError as ProtobufError

from state_sensor_ros.carla.schema import Measurements, SceneDescription
from state_sensor_ros.emulator.carla_server.town import (
    CarlaPose,
    N_START_SPOTS,
    RADIUS_M,
    RingActor,
    Town,
    VehicleControl,
)
from state_sensor_ros.emulator.threaded_server import receive
from state_sensor_ros.errors import FramingError

# The settings of a client are a few kilobytes; longer messages are refused.
MAX_MESSAGE_BYTES = 2**20
MAP_NAME = 'StandIn01'
CAMERA = 1
SCENE_FINAL = 1
FIELD_OF_VIEW_DEG = 90.0
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
    :returns: the message, or None when the peer has closed between two messages.
    :raises FramingError: when the bytes are not such a message.
    """
    head = receive(connection, 4)
    if not head:
        return None
    size = int.from_bytes(head, 'little')
    if len(head) < 4 or size > MAX_MESSAGE_BYTES:
        raise FramingError('message', f'{head.hex()}', f'a length up to {MAX_MESSAGE_BYTES}')
    body = receive(connection, size)
    if len(body) < size:
        raise FramingError('message', f'{len(body)} bytes, then the end', f'{size} bytes')
    try:
        return message_class.FromString(body)
    except ProtobufError as error:
        raise FramingError('message', str(error), 'a message of the schema') from error


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    """The settings of an episode; ``cameras``: name, width and height of each, pixels."""

    is_synchronous: bool = False
    sends_agents: bool = True
    n_vehicles: int = 12
    n_pedestrians: int = 6
    seed: int = 1
    cameras: tuple[tuple[str, int, int], ...] = ()


def parse_settings(text: str, defaults: EpisodeSettings) -> EpisodeSettings:
    """
    Parse the settings file that a client sends with the request of an episode.

    :param text: in the format of CarlaSettings.ini; unknown keys are ignored.
    :param defaults: values of missing keys.
    :returns: the settings; the defaults if the text does not have that format.
    """
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
        server, level = _section(parser, 'CARLA/Server'), _section(parser, 'CARLA/LevelSettings')
        names = [name.strip() for name in
                 _section(parser, 'CARLA/Sensor').get('Sensors', '').split(',') if name.strip()]
        cameras = tuple(
            (name, own.getint('ImageSizeX', 64), own.getint('ImageSizeY', 48))
            for name in names if (own := _section(parser, f'CARLA/Sensor/{name}')).get(
                'SensorType', 'CAMERA') == 'CAMERA')
        return EpisodeSettings(
            server.getboolean('SynchronousMode', defaults.is_synchronous),
            server.getboolean('SendNonPlayerAgentsInfo', False),
            level.getint('NumberOfVehicles', defaults.n_vehicles),
            level.getint('NumberOfPedestrians', defaults.n_pedestrians),
            level.getint('SeedVehicles', defaults.seed), cameras)
    except (configparser.Error, ValueError):
        return defaults


def _section(parser: configparser.ConfigParser, name: str) -> configparser.SectionProxy:
    if not parser.has_section(name):
        parser.add_section(name)
    return parser[name]


def scene_bytes(settings: EpisodeSettings) -> bytes:
    """
    Return the SceneDescription of an episode: map, start spots and cameras.

    :param settings: the settings of the episode.
    :returns: the message, without its length.
    """
    scene = SceneDescription(map_name=MAP_NAME)
    for i in range(N_START_SPOTS):
        spot = RingActor(0, Town.start_angle(i), 0.0, RADIUS_M, (0.0, 0.0, 0.0))
        _fill_transform(scene.player_start_spots.add(), spot.pose())
    for i, (name, _, _) in enumerate(settings.cameras, 1):
        scene.sensors.add(id=i, type=CAMERA, name=name)
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


def _fill_actor(body: Any, actor: RingActor) -> None:  # noqa: ANN401
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


def _fill_control(message: Any, control: VehicleControl) -> None:  # noqa: ANN401
    message.steer, message.throttle, message.brake = (
        control.steer, control.throttle, control.brake)
    message.hand_brake, message.reverse = control.hand_brake, control.reverse


def image_bytes(sensor_id: int, width: int, height: int, frame_number: int) -> bytes:
    """
    Return the message of a camera: a gradient that moves by one pixel per frame.

    :param sensor_id: id of the camera.
    :param width: pixels.
    :param height: pixels.
    :param frame_number: number of the frame.
    :returns: the message, without its length; BGRA, row by row.
    """
    row = bytes(value for x in range(width)
                for value in ((x + frame_number) % 256, 128, 255 - x % 256, 255))
    return struct.pack('<IIIIf', sensor_id, width, height, SCENE_FINAL,
                       FIELD_OF_VIEW_DEG) + row * height

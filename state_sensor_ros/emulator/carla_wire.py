# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Bytes of a CARLA server's side: lengths, measurements, images; and the client's settings.

May know: byte layouts, blocking sockets, the protobuf schema. Must not: when to send what.
Source of truth: PROTOCOL 7.1, 7.2 and 7.5, written without a look at the receiver's code.
"""

from __future__ import annotations

import configparser
from dataclasses import dataclass
import math
import socket
import struct
from typing import Any

from state_sensor_ros.carla.schema import Measurements
from state_sensor_ros.emulator.town import Mover, Pedals, Pose, Town
from state_sensor_ros.errors import FramingError

# Settings of a client are a few kilobytes; more is a broken length.
MAX_MESSAGE_BYTES = 2**20
SCENE_FINAL = 1
FIELD_OF_VIEW_DEG = 90.0
NOTHING_LEFT = 1e-9


def frame_message(body: bytes) -> bytes:
    """Put the length in front: 4 bytes, least significant first, not counting themselves."""
    return len(body).to_bytes(4, 'little') + body


def read_message(connection: socket.socket) -> bytes | None:
    """
    Read one message.

    :param connection: a blocking socket.
    :returns: its body, or None when the peer has closed between two messages.
    :raises FramingError: when the bytes cannot be a message.
    """
    head = _read(connection, 4)
    if not head:
        return None
    size = int.from_bytes(head, 'little')
    if len(head) < 4 or size > MAX_MESSAGE_BYTES:
        raise FramingError('message', f'{head.hex()}', f'a length up to {MAX_MESSAGE_BYTES}')
    body = _read(connection, size)
    if len(body) < size:
        raise FramingError('message', f'{len(body)} bytes, then the end', f'{size} bytes')
    return body


def _read(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size and (part := connection.recv(size)):
        parts.append(part)
        size -= len(part)
    return b''.join(parts)


@dataclass(frozen=True, slots=True)
class EpisodeSettings:
    """What a client may ask of an episode; ``cameras`` name, width and height of each, pixels."""

    is_synchronous: bool = False
    sends_agents: bool = True
    n_vehicles: int = 12
    n_pedestrians: int = 6
    seed: int = 1
    cameras: tuple[tuple[str, int, int], ...] = ()


def parse_settings(text: str, defaults: EpisodeSettings) -> EpisodeSettings:
    """
    Read the settings file that a client sends when it asks for an episode.

    :param text: of the form of CarlaSettings.ini; unknown keys are passed over.
    :param defaults: for what it does not say.
    :returns: the settings; those of a text that is no such file are the defaults.
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


def measurements_bytes(town: Town, frame_number: int, platform_ms: int, *,
                       sends_agents: bool) -> bytes:
    """Write the measurement of this moment."""
    message = Measurements(
        frame_number=frame_number, game_timestamp=round(1000.0 * town.time_s) % 2**32,
        platform_timestamp=platform_ms % 2**32)
    player = message.player_measurements
    _fill_mover(player, town.player)
    player.acceleration.x, player.acceleration.y, player.acceleration.z = town.acceleration
    fill_control(player.autopilot_control, town.autopilot())
    if sends_agents:
        _add_agents(message, town)
    body: bytes = message.SerializeToString()
    return body


# Protobuf makes message classes at run time; they have no static type.
def _add_agents(message: Any, town: Town) -> None:  # noqa: ANN401
    for kind, movers in (('vehicle', town.vehicles), ('pedestrian', town.pedestrians)):
        for mover in movers:
            _fill_mover(getattr(message.non_player_agents.add(id=mover.id), kind), mover)
    for i, (id_, pose) in enumerate(town.lights):
        light = message.non_player_agents.add(id=id_).traffic_light
        fill_transform(light.transform, pose)
        light.state = town.light_state(i)
    for id_, pose, limit in town.signs:
        sign = message.non_player_agents.add(id=id_).speed_limit_sign
        fill_transform(sign.transform, pose)
        sign.speed_limit = limit


def _fill_mover(body: Any, mover: Mover) -> None:  # noqa: ANN401
    fill_transform(body.transform, mover.pose())
    body.forward_speed = mover.speed
    extent = body.bounding_box.extent
    extent.x, extent.y, extent.z = mover.half_sizes
    # The pivot is on the ground, the box around the body above it.
    fill_transform(body.bounding_box.transform, Pose(0.0, 0.0, mover.half_sizes[2]))


def fill_transform(transform: Any, pose: Pose) -> None:  # noqa: ANN401
    """Fill a Transform."""
    location, rotation = transform.location, transform.rotation
    location.x, location.y, location.z = pose.x, pose.y, pose.z
    rotation.SetInParent()
    rotation.roll, rotation.pitch, rotation.yaw = pose.roll, pose.pitch, pose.yaw
    # The deprecated direction, of the angles as they are sent; a right angle leaves nothing over.
    pitch, yaw = math.radians(rotation.pitch), math.radians(rotation.yaw)
    forward = (math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch))
    direction = transform.orientation
    direction.x, direction.y, direction.z = (
        0.0 if abs(value) < NOTHING_LEFT else value for value in forward)


def fill_control(control: Any, pedals: Pedals) -> None:  # noqa: ANN401
    """Fill a Control."""
    control.steer, control.throttle, control.brake = pedals.steer, pedals.throttle, pedals.brake
    control.hand_brake, control.reverse = pedals.hand_brake, pedals.reverse


def image_bytes(sensor_id: int, width: int, height: int, frame_number: int) -> bytes:
    """Write the message of a camera: a gradient that moves with the frames, BGRA."""
    row = bytes(value for x in range(width)
                for value in ((x + frame_number) % 256, 128, 255 - x % 256, 255))
    head = b''.join(value.to_bytes(4, 'little')
                    for value in (sensor_id, width, height, SCENE_FINAL))
    return head + struct.pack('<f', FIELD_OF_VIEW_DEG) + row * height

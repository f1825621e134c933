# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Bytes of a CARLA 0.8 server: messages with their lengths, the scene, measurements, sensors."""

from __future__ import annotations

from collections.abc import Sequence
import math
import socket
import struct
from typing import Any, TypeAlias

from google.protobuf.message import DecodeError as ProtobufError
import numpy as np

from carla_server.episode_settings import (
    CameraSettings,
    IMAGE_TYPES,
    LidarSettings,
    SensorSettings,
)
from carla_server.town import (
    DrivenCar,
    N_START_SPOTS,
    RADIUS_M,
    RingActor,
    Town,
)
from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.threaded_server import receive
from state_sensor_ros.errors import FramingError
from state_sensor_ros.simulators.carla.carla_schema import (
    fill_transform,
    Measurements,
    SceneDescription,
)

SKY, ROAD = 0, 7
FAR_M = 1000.0
MOST_DEPTH = 2 ** 24 - 1
# The points above the ground are on a round wall.
WALL_M = 20.0
# Longer messages are refused; the settings of a client have a few kilobytes.
MAX_MESSAGE_BYTES = 2**20


class EmulatedCamera:
    """A camera above a flat road: a moving gradient, depth, or segmentation."""

    type_number = 1

    def __init__(self, number: int, settings: CameraSettings) -> None:
        self.name = settings.name
        self._number, self._settings = number, settings
        # Depth and segmentation never change.
        self._still = b''
        if settings.image_type == IMAGE_TYPES['Depth']:
            self._still = self._depth()
        elif settings.image_type == IMAGE_TYPES['SemanticSegmentation']:
            n_sky = settings.height // 2
            self._still = (bytes((0, 0, SKY, 255)) * settings.width * n_sky
                           + bytes((0, 0, ROAD, 255)) * settings.width
                           * (settings.height - n_sky))
        else:
            # A row and one period more: the rows of each frame begin further on in it.
            self._gradient = bytes(value for x in range(settings.width + 256)
                                   for value in (x % 256, 128, 255 - x % 256, 255))

    def message(self, frame_number: int, elapsed_s: float) -> bytes:
        """Return the message of a frame, without its length."""
        # elapsed_s: simulated time since the frame before, s.
        camera = self._settings
        head = struct.pack('<IQIIIf', self._number, frame_number, camera.width, camera.height,
                           camera.image_type, camera.fov_deg)
        if self._still:
            return head + self._still
        first = 4 * (frame_number % 256)
        return head + self._gradient[first:first + 4 * camera.width] * camera.height

    def _depth(self) -> bytes:
        """Return the depth of the road below the horizon, and of the sky."""
        camera = self._settings
        # Pixels of the focal length, by the horizontal field of view.
        focal = camera.width / 2 / math.tan(math.radians(min(camera.fov_deg, 179.0)) / 2)
        rows = np.arange(camera.height) + 0.5 - camera.height / 2
        depth_m = np.where(rows > 0, camera.height_m * focal / np.maximum(rows, 0.5), FAR_M)
        counts = np.rint(np.minimum(depth_m, FAR_M) / FAR_M * MOST_DEPTH).astype(np.uint32)
        # The lowest byte is red, and the order of the bytes is blue, green, red.
        pixels = np.stack((counts >> 16, counts >> 8 & 0xff, counts & 0xff,
                           np.full_like(counts, 255)), 1).astype(np.uint8)
        return np.repeat(pixels[:, None], camera.width, 1).tobytes()


class EmulatedLidar:
    """A lidar above a flat road, inside a round wall."""

    type_number = 2

    def __init__(self, number: int, settings: LidarSettings) -> None:
        self.name = settings.name
        self._number, self._settings = number, settings
        self._angle_deg = 0.0

    def message(self, frame_number: int, elapsed_s: float) -> bytes:
        """Return the message of a frame, without its length."""
        # elapsed_s: simulated time since the frame before, s.
        lidar = self._settings
        n_each = round(lidar.points_per_second * elapsed_s / lidar.channels)
        turned_deg = 360.0 * lidar.turns_per_second * elapsed_s
        azimuth = np.radians(self._angle_deg + turned_deg * np.arange(n_each) / max(n_each, 1))
        elevation = np.radians(np.linspace(lidar.upper_deg, lidar.lower_deg, lidar.channels))
        self._angle_deg = (self._angle_deg + turned_deg) % 360.0
        # Slant range to the wall, or to the ground if that is nearer.
        up = np.sin(elevation)
        slant_m = WALL_M / np.maximum(np.cos(elevation), 1e-6)
        ground_m = lidar.height_m / np.maximum(-up, 1e-6)
        slant_m = np.minimum(slant_m, np.where(up < 0, ground_m, np.inf))
        hits = slant_m <= lidar.range_m
        counts = np.where(hits, n_each, 0).astype('<u4')
        flat_m, up_m = (slant_m * np.cos(elevation))[hits], (slant_m * up)[hits]
        points = np.stack((
            flat_m[:, None] * np.sin(azimuth), -flat_m[:, None] * np.cos(azimuth),
            np.broadcast_to(-up_m[:, None], (len(up_m), n_each))), -1).astype('<f4')
        head = struct.pack('<IQfI', self._number, frame_number % 2 ** 16, self._angle_deg,
                           lidar.channels)
        return head + counts.tobytes() + points.tobytes()


EmulatedSensor: TypeAlias = EmulatedCamera | EmulatedLidar


def make_sensors(settings: tuple[SensorSettings, ...]) -> list[EmulatedSensor]:
    """Make the sensors of an episode, with ids from 1."""
    return [EmulatedCamera(number, sensor) if isinstance(sensor, CameraSettings)
            else EmulatedLidar(number, sensor) for number, sensor in enumerate(settings, 1)]


def frame_message(body: bytes) -> bytes:
    """Put the length before a message."""
    return len(body).to_bytes(4, 'little') + body


# Protobuf makes message classes at run time; they have no static type.
def read_message(connection: socket.socket, message_class: Any) -> Any:
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


def scene_bytes(sensors: Sequence[EmulatedSensor], map_name: str) -> bytes:
    """Return the SceneDescription of an episode: map, start spots and sensors."""
    scene = SceneDescription(map_name=map_name)
    for i in range(N_START_SPOTS):
        spot = RingActor(0, Town.start_angle(i), 0.0, RADIUS_M, (0.0, 0.0, 0.0))
        fill_transform(scene.player_start_spots.add(), *spot.pose())
    for number, sensor in enumerate(sensors, 1):
        scene.sensors.add(id=number, type=sensor.type_number, name=sensor.name)
    data: bytes = scene.SerializeToString()
    return data


def measurements_bytes(town: Town, frame_number: int, platform_ms: int, *,
                       sends_agents: bool) -> bytes:
    """Return the Measurements of a town at its current time."""
    # platform_ms: clock of the machine, ms; sent modulo 2**32.
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


def _add_agents(message: Any, town: Town) -> None:
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


def _fill_actor(body: Any, actor: RingActor | DrivenCar) -> None:
    fill_transform(body.transform, *actor.pose())
    body.forward_speed = actor.speed
    extent = body.bounding_box.extent
    extent.x, extent.y, extent.z = actor.half_sizes
    # The origin of the actor is on the ground, and the center of its box above it.
    fill_transform(body.bounding_box.transform, (0.0, 0.0, actor.half_sizes[2]), (0.0, 0.0, 0.0))


def _fill_control(message: Any, control: Pedals) -> None:
    message.steer, message.throttle, message.brake = (
        control.steer, control.throttle, control.brake)
    message.hand_brake, message.reverse = control.hand_brake, control.reverse

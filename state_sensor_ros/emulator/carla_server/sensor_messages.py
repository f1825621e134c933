# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages of the sensors of the stand-in: images and points of an empty plain.

Numbers are little-endian, integers uint32 unless stated otherwise. A camera:

    0 id | 4 frame number uint64 | 12 width | 16 height | 20 type | 24 field of view float32 |
    28 BGRA, row by row

A lidar; its frame number has the lowest 16 bits only, as on the real server:

    0 id | 4 frame number uint64 | 12 angle float32 | 16 channels n | 20 n counts | then x y z
    float32 of each point: right, backward, down from the lidar
"""

from __future__ import annotations

import math
import struct
from typing import TypeAlias

import numpy as np

from state_sensor_ros.emulator.carla_server.episode_settings import (
    CameraSettings,
    IMAGE_TYPES,
    LidarSettings,
    SensorSettings,
)

SKY, ROAD = 0, 7
FAR_M = 1000.0
MOST_DEPTH = 2 ** 24 - 1
# The points above the ground are on a round wall.
WALL_M = 20.0


class EmulatedCamera:
    """
    A camera above a flat road: a moving gradient, depth, or segmentation.

    :param number: id of the sensor.
    :param settings: settings of the camera.
    """

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
        """
        Return the message of a frame, without its length.

        :param frame_number: number of the frame.
        :param elapsed_s: simulated time since the frame before, s.
        """
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
    """
    A lidar above a flat road, inside a round wall.

    :param number: id of the sensor.
    :param settings: settings of the lidar.
    """

    type_number = 2

    def __init__(self, number: int, settings: LidarSettings) -> None:
        self.name = settings.name
        self._number, self._settings = number, settings
        self._angle_deg = 0.0

    def message(self, frame_number: int, elapsed_s: float) -> bytes:
        """
        Return the message of a frame, without its length.

        :param frame_number: number of the frame.
        :param elapsed_s: simulated time since the frame before, s.
        """
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
    """
    Make the sensors of an episode, with ids from 1.

    :param settings: settings of each sensor.
    """
    return [EmulatedCamera(number, sensor) if isinstance(sensor, CameraSettings)
            else EmulatedLidar(number, sensor) for number, sensor in enumerate(settings, 1)]

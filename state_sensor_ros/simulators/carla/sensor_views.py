# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The images and points of a frame, decoded to be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from state_sensor_ros.simulators import (
    DecodeError,
    Frame,
    Report,
    SensorImage,
    SensorPoints,
    SensorReader,
)
from state_sensor_ros.simulators.carla.carla_data import data_of, EncodedImage, Form
from state_sensor_ros.simulators.carla.images import (
    colored,
    decode_depth,
    decode_rgb,
    decode_segmentation,
    image_size,
)
from state_sensor_ros.simulators.carla.points import decode_points
from state_sensor_ros.simulators.carla.sensors import DEPTH, lidar_frame, POINTS, RGB, Sensor
from state_sensor_ros.simulators.frame_arrays import quaternion_from_rpy


def sensor_views(sensors: Iterable[Sensor], report: Report) -> SensorReader:
    """
    Return what decodes the images and points of frames.

    :param sensors: with the poses of the lidars.
    :param report: called with a kind and a line about what cannot be decoded.
    """
    poses = {sensor.name: (*sensor.pose[:3], *quaternion_from_rpy(
        np.array(sensor.pose[3:])).tolist()) for sensor in sensors
        if sensor.kind == POINTS and sensor.pose is not None}

    def read(frame: Frame) -> Iterator[SensorImage | SensorPoints]:
        data = data_of(frame)
        if data is None:
            return
        for image in data.sensor_data.images:
            try:
                yield _view_of(image)
            except DecodeError as error:
                report('image', str(error))
        for points in data.sensor_data.points:
            try:
                rows = decode_points(points)
            except DecodeError as error:
                report('points', str(error))
                continue
            yield SensorPoints(lidar_frame(points.lidar), np.frombuffer(
                rows, '<f4').reshape(-1, 3), poses.get(points.lidar))

    return read


def _view_of(image: EncodedImage) -> SensorImage:
    """
    Return an image to look at; a colour image of a file stays as it is.

    :raises DecodeError: if it cannot be decoded.
    """
    name = f'{image.camera}/{image.kind}'
    if image.kind == RGB and image.form is Form.FILE:
        # Reads the size alone: the file must be a PNG file that is not too large.
        image_size(image)
        return SensorImage(name, png=bytes(image.data))
    if image.kind == DEPTH:
        depth = decode_depth(image)
        return SensorImage(name, np.frombuffer(depth.data, '<f4').reshape(
            depth.height, depth.width))
    pixels = decode_rgb(image) if image.kind == RGB else colored(decode_segmentation(image))
    return SensorImage(name, np.frombuffer(pixels.data, np.uint8).reshape(
        pixels.height, pixels.width, 3))

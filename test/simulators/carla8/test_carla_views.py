# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The images and points of CARLA's frames, decoded to be looked at."""

from dataclasses import replace
import math

import numpy as np
from paths import CARLA
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.simulators.carla.carla_data import (
    DataFormat,
    EncodedImage,
    EncodedPoints,
    SensorData,
)
from state_sensor_ros.simulators.carla.images import sensor_views
from state_sensor_ros.simulators.carla.sensors import DEPTH, POINTS, RGB, SEGMENTATION, Sensor

ROOF = Sensor('lidar32', POINTS, pose=(1.0, 0.0, 2.5, 0.0, 0.0, math.pi / 2))


@pytest.fixture
def seen():
    """Return a function that decodes sensor data, and the list of what it cannot decode."""
    with sensor.open_recording(CARLA) as recording:
        frame = next(iter(recording))
    errors = []
    read = sensor_views([ROOF], lambda kind, text: errors.append((kind, text)))

    def decode(*images, points=()):
        data = replace(frame.extension, sensor_data=SensorData(images, points))
        return list(read(replace(frame, extension=data)))

    return decode, errors


def test_views_of_images_of_a_server(seen):
    decode, errors = seen
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    depth = np.zeros((1, 2, 4), np.uint8)
    depth[0, 1, :3] = 255
    rgb, meters, classes = decode(
        EncodedImage('front', RGB, pixels.tobytes(), DataFormat.WIRE, (3, 2)),
        EncodedImage('front', DEPTH, depth.tobytes(), DataFormat.WIRE, (2, 1)),
        EncodedImage('front', SEGMENTATION, bytes((0, 0, 7, 0)), DataFormat.WIRE, (1, 1)))
    assert (rgb.name, meters.name) == ('front/rgb', 'front/depth')
    np.testing.assert_array_equal(rgb.pixels, pixels[..., 2::-1])
    np.testing.assert_array_equal(meters.pixels, [[0.0, 1000.0]])
    assert classes.pixels.tolist() == [[[90, 60, 120]]]
    assert errors == []


def test_views_of_points_have_the_pose_of_their_lidar(seen):
    decode, _ = seen
    rows = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    first, other = decode(points=(EncodedPoints('lidar32', rows.tobytes(), DataFormat.MESSAGE),
                                  EncodedPoints('roof', rows.tobytes(), DataFormat.MESSAGE)))
    np.testing.assert_array_equal(first.points_xyz, rows)
    np.testing.assert_allclose(first.pose, (1, 0, 2.5, 0, 0, math.sqrt(0.5), math.sqrt(0.5)))
    assert (first.name, other.name, other.pose) == ('lidar32', 'lidar_roof', None)


def test_views_report_what_cannot_be_decoded(seen):
    decode, errors = seen
    good = EncodedImage('front', RGB, bytes(4), DataFormat.WIRE, (1, 1))
    found = decode(EncodedImage('left', RGB, b'no PNG'), good,
                   EncodedImage('left', DEPTH, b'no PNG'),
                   points=(EncodedPoints('roof', b'no PLY'),))
    assert [item.name for item in found] == ['front/rgb']
    assert [kind for kind, _ in errors] == ['image', 'image', 'points']


def test_views_of_frames_of_another_simulator_are_none(seen):
    decode, _ = seen
    assert decode() == []

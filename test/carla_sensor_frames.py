# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
An episode with cameras and a lidar for :mod:`carla_late_server`, and what receivers must get.

Shares nothing with the package: messages and expectations are written by hand.
"""

import math

from carla_sensor_wire import image_message, lidar_message
import numpy as np

WIDTH, HEIGHT, FOV_DEG = 6, 4, 75.5
FOCUS = WIDTH / 2.0 / math.tan(math.radians(FOV_DEG / 2.0))
# Ids of the server are hashes of pointers.
RGB, DEPTH, SEGMENTATION, LIDAR = 4_000_000_000, 17, 2 ** 31, 5
SENSORS = {RGB: ('CentralRGB', 1), DEPTH: ('CentralDepth', 1),
           SEGMENTATION: ('FrontSemanticSeg', 1), LIDAR: ('Lidar32', 2)}
INI = """[CARLA/Server]
SynchronousMode=false
[CARLA/Sensor]
Sensors=CentralRGB,CentralDepth,FrontSemanticSeg,Lidar32
SensorType=CAMERA
PositionX=0.5
PositionZ=1.25
FOV=75.5
[CARLA/Sensor/CentralDepth]
PostProcessing=Depth
[CARLA/Sensor/FrontSemanticSeg]
PostProcessing=SemanticSegmentation
RotationYaw=90
[CARLA/Sensor/Lidar32]
SensorType=LIDAR_RAY_CAST
"""


def pixels(id_, number):
    """Return the pixels of a camera in a frame, BGRA."""
    bgra = np.random.default_rng((id_, number)).integers(0, 256, (HEIGHT, WIDTH, 4), np.uint8)
    if id_ == SEGMENTATION:
        bgra[..., 2] %= 13
    return bgra


def points(number):
    return np.random.default_rng(number).normal(0.0, 10.0, (number % 5, 3)).astype('<f4')


def sensor_messages(number):
    return [*(image_message(id_, number, pixels(id_, number), type_, FOV_DEG)
              for type_, id_ in enumerate((RGB, DEPTH, SEGMENTATION), 1)),
            lidar_message(LIDAR, number % 2 ** 16, 3.0, points(number), [number % 5])]


def image_data(id_, number):
    """Return the data of the image message of a camera in a frame."""
    bgra = pixels(id_, number)
    b, g, r, _ = np.moveaxis(bgra.astype(float), -1, 0)
    return bgra[..., 2::-1].tobytes() if id_ == RGB else bgra[..., 2].tobytes() \
        if id_ == SEGMENTATION else (
            1000.0 * (r + 256.0 * g + 65536.0 * b) / 16777215.0).astype('<f4').tobytes()


def cloud_rows(number):
    """Return the points of the cloud message of a frame: forward, left, up."""
    return (-points(number)[:, [1, 0, 2]]).tolist()


def stamp_of(message):
    return message.header.stamp.sec, message.header.stamp.nanosec


def check_transforms(transforms):
    """Compare /tf_static with INI."""
    found = {each.child_frame_id: each.transform for each in transforms}
    assert set(found) == {
        'player/camera_central', 'player/camera_central_optical', 'player/camera_front',
        'player/camera_front_optical', 'player/lidar32'}
    front = found['player/camera_front']
    assert (front.translation.x, front.translation.z) == (0.5, 1.25)
    # To the right.
    assert math.isclose(front.rotation.z, -math.sqrt(0.5), rel_tol=1e-9)


def check_images(received, numbers):
    """
    Compare images with what the server sent in the frame of their stamp.

    :param received: messages by camera and topic, as ``central/image``.
    :param numbers: of the frames, by stamp.
    """
    for name, id_ in (('central/image', RGB), ('central/depth', DEPTH),
                      ('front/segmentation', SEGMENTATION)):
        matched = [(each, numbers[stamp_of(each)]) for each in received[name]
                   if stamp_of(each) in numbers]
        assert len(matched) > 5
        for message, number in matched:
            assert bytes(message.data) == image_data(id_, number), name
            camera = name.partition('/')[0]
            assert message.header.frame_id == f'player/camera_{camera}_optical'
    for info in (*received['central/camera_info'], *received['front/camera_info']):
        assert (info.width, info.height) == (WIDTH, HEIGHT)
        assert math.isclose(info.k[0], FOCUS, rel_tol=1e-9)
    central = {stamp_of(info) for info in received['central/camera_info']}
    # One for each stamp, though there are two images.
    assert len(central) == len(received['central/camera_info'])


def check_clouds(clouds, numbers):
    """Compare clouds with what the server sent in the frame of their stamp."""
    matched = [(each, numbers[stamp_of(each)]) for each in clouds if stamp_of(each) in numbers]
    assert len(matched) > 5
    for cloud, number in matched:
        found = np.frombuffer(bytes(cloud.data), '<f4').reshape(-1, 3)
        assert cloud.header.frame_id == 'player/lidar32'
        assert found.tolist() == cloud_rows(number)

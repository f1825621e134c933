# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages of CARLA's sensors written by hand from the protocol, for tests.

Shares nothing with the package but the writer of protobuf fields beside it.
"""

import struct

from carla_wire import fixed32, integer, sub


def scene(sensors):
    """Return a SceneDescription with nothing but sensors; name and type of each by id."""
    return b''.join(sub(2, fixed32(1, id_) + integer(2, type_) + sub(3, name.encode()))
                    for id_, (name, type_) in sensors.items())


def image_message(id_, frame_number, bgra, type_, fov_deg):
    """Return the message of a camera; ``bgra`` (H, W, 4); before 0.8.2 it has no number."""
    height, width, _ = bgra.shape
    number = b'' if frame_number is None else struct.pack('<Q', frame_number)
    return b''.join((struct.pack('<I', id_), number,
                     struct.pack('<IIIf', width, height, type_, fov_deg), bgra.tobytes()))


def lidar_message(id_, frame_number, angle_deg, points, counts):
    """Return the message of a lidar; ``points`` (N, 3) float32, ``counts`` of each channel."""
    number = b'' if frame_number is None else struct.pack('<Q', frame_number)
    return b''.join((struct.pack('<I', id_), number, struct.pack('<fI', angle_deg, len(counts)),
                     struct.pack(f'<{len(counts)}I', *counts), points.tobytes()))

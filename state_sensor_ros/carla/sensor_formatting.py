# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Format the data of sensors, as a server sends them, as files of the dataset.

PNG and PLY as the data collector writes them (doc/protocol/carla.md#images), but with every
coordinate as it was sent.
"""

from __future__ import annotations

import io
from typing import cast, Final

import numpy as np
from PIL import Image

from state_sensor_ros.carla.carla_data import EncodedImage, EncodedPoints

# Of zlib: a recorder has to keep up with the stream. Level 6 takes several times as long.
_COMPRESSION: Final = 1
_PLY_HEAD: Final = """\
ply
format ascii 1.0
element vertex {}
property float32 x
property float32 y
property float32 z
end_header
"""


def format_image(image: EncodedImage) -> bytes:
    """
    Return an image as a PNG file: red, green and blue as sent, also of depth and segmentation.

    :param image: in the form WIRE.
    """
    assert image.size is not None
    file = io.BytesIO()
    # Pillow reads a memoryview, too.
    Image.frombuffer('RGB', image.size, cast(bytes, image.data), 'raw', 'BGRX', 0, 1).save(
        file, 'PNG', compress_level=_COMPRESSION)
    return file.getvalue()


def format_points(points: EncodedPoints) -> bytes:
    """
    Return points as a PLY file, in the axes of the server.

    :param points: in the form WIRE.
    """
    rows = np.frombuffer(points.data, '<f4').reshape(-1, 3)
    # The shortest text from which the same float32 is read.
    lines = map(' '.join, rows.astype(str).tolist())
    return ''.join((_PLY_HEAD.format(len(rows)), *(f'{line}\n' for line in lines))).encode()

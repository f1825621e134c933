# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Format the data of sensors, as a server sends them or as a bag has them, as files of the dataset.

PNG and PLY as the data collector writes them (doc/protocol/carla.md#images), but with every
coordinate as it was sent.
"""

from __future__ import annotations

import struct
from typing import Final
import zlib

import numpy as np

from state_sensor_ros.simulators.carla.carla_data import EncodedImage, EncodedPoints
from state_sensor_ros.simulators.carla.images import colour_bytes
from state_sensor_ros.simulators.carla.points import server_points
from state_sensor_ros.simulators.carla.sensors import DEPTH

# A recorder has to keep up with the stream. Pillow tries five filters for each row, which takes
# three to five times as long as one filter; level 6 of zlib makes files a tenth smaller.
_LEVEL: Final = 1
_WINDOW_BITS, _MEMORY_LEVEL = 15, 9
# The difference to the pixel on the left.
_FILTER: Final = 1
_SIGNATURE: Final = b'\x89PNG\r\n\x1a\n'
# Width, height, bits per colour, red green blue, and the only methods.
_HEADER: Final = struct.Struct('>IIBBBBB')
_BITS, _RGB = 8, 2
_WORD: Final = struct.Struct('>I')
_PLY_HEAD: Final = """\
ply
format ascii 1.0
element vertex {}
property float32 x
property float32 y
property float32 z
end_header
"""
# Nine digits give the same float32 again; the shortest such text takes five times as long.
_PLY_LINE: Final = '%.9g %.9g %.9g\n'


def format_image(image: EncodedImage) -> bytes:
    """
    Return an image as a PNG file: red, green and blue as sent, also of depth and segmentation.

    :param image: in the form WIRE or MESSAGE.
    :raises DecodeError: if a server cannot send a depth.
    """
    pixels = colour_bytes(image)
    height, width, n_colours = pixels.shape
    rows = np.empty((height, 1 + n_colours * width), np.uint8)
    rows[:, 0] = _FILTER
    values, differences = pixels.reshape(height, -1), rows[:, 1:]
    differences[:, :n_colours] = values[:, :n_colours]
    np.subtract(values[:, n_colours:], values[:, :-n_colours], out=differences[:, n_colours:])
    # Differences of camera images repeat rarely, those of depths often.
    strategy = zlib.Z_DEFAULT_STRATEGY if image.kind == DEPTH else zlib.Z_RLE
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, strategy)
    packed = packer.compress(rows.data) + packer.flush()
    head = _HEADER.pack(width, height, _BITS, _RGB, 0, 0, 0)
    return b''.join((_SIGNATURE, *_chunk(b'IHDR', head), *_chunk(b'IDAT', packed),
                     *_chunk(b'IEND', b'')))


def _chunk(name: bytes, data: bytes) -> tuple[bytes, ...]:
    return (_WORD.pack(len(data)), name, data,
            _WORD.pack(zlib.crc32(data, zlib.crc32(name))))


def format_points(points: EncodedPoints) -> bytes:
    """
    Return points as a PLY file, in the axes of the server.

    :param points: in the form WIRE or MESSAGE.
    """
    rows = server_points(points)
    lines = _PLY_LINE * len(rows) % tuple(rows.ravel().tolist())
    return (_PLY_HEAD.format(len(rows)) + lines).encode()

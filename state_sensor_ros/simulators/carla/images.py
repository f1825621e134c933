# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Decode camera images, PNG files of a dataset or as a server sends them, to what is looked at.

Depth and classes: doc/protocol/carla.md#images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
import io
import struct
from typing import cast, Final
import zlib

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from state_sensor_ros.simulators import (
    counted,
    DecodeError,
    Frame,
    Report,
    SensorImage,
    SensorPoints,
    SensorReader,
)
from state_sensor_ros.simulators.carla.carla_data import data_of, DataFormat, EncodedImage
from state_sensor_ros.simulators.carla.frame_payload import decode_points
from state_sensor_ros.simulators.carla.sensors import (
    DEPTH,
    lidar_frame,
    POINTS,
    RGB,
    SEGMENTATION,
    Sensor,
)
from state_sensor_ros.simulators.frame_arrays import quaternion_from_rpy

try:
    from kornia_rs.io import decode_image_png_u8
except ImportError:  # it has no rosdep key; Pillow takes more than twice the time
    decode_image_png_u8 = None

# Depth at the greatest value of the three bytes.
FAR_PLANE_M: Final = 1000.0
_DEPTH_MAX: Final = 256 ** 3 - 1

CLASS_NAMES: Final = (
    'None', 'Buildings', 'Fences', 'Other', 'Pedestrians', 'Poles', 'RoadLines', 'Roads',
    'Sidewalks', 'Vegetation', 'Vehicles', 'Walls', 'TrafficSigns')
# Thirteen distinct colors, chosen for this package; greater tags are white.
CLASS_COLORS: Final = (
    (0, 0, 0), (110, 110, 110), (150, 90, 60), (70, 160, 160), (230, 25, 75), (190, 190, 190),
    (255, 225, 25), (90, 60, 120), (240, 50, 230), (60, 160, 60), (0, 110, 230), (90, 90, 40),
    (245, 130, 48))
_PALETTE: Final = np.full((256, 3), 255, np.uint8)
_PALETTE[:len(CLASS_COLORS)] = CLASS_COLORS

# Bounds the memory: a small PNG can state any size. The dataset has 200 x 200 pixels.
_MAX_PIXELS: Final = 4096 * 4096
# Modes of Pillow; kornia-rs has the same names in lower case.
_USUAL_MODES: Final = ('RGB', 'RGBA')
# The first chunk of a PNG file: its size and the bits of each color.
_HEADER: Final = struct.Struct('>8s4x4sIIB')
_WIDE_BITS: Final = 16
PNG_SIGNATURE: Final = b'\x89PNG\r\n\x1a\n'
# Errors of Pillow for a file that is damaged, cut short or no PNG.
_NO_IMAGE: Final = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error,
                    Image.DecompressionBombError)


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """Pixels row by row without gaps, from the top left."""

    width: int
    height: int
    data: bytes


def image_size(image: EncodedImage) -> tuple[int, int]:
    """Return width and height of an image without decoding it, pixels."""
    if image.size is not None:
        return image.size
    width, height, _ = _png_header(image)
    return width, height


def decode_rgb(image: EncodedImage) -> DecodedImage:
    """Decode a color image: three bytes per pixel: red, green, blue."""
    if image.data_format is DataFormat.MESSAGE:
        return _message_pixels(image)
    if image.data_format is DataFormat.WIRE:
        # A tenth of the time of numpy.
        return DecodedImage(*image_size(image), Image.frombuffer(
            'RGB', image_size(image), cast(bytes, image.data), 'raw', 'BGRX', 0, 1).tobytes())
    return _decoded(_pixels(image))


def color_bytes(image: EncodedImage) -> npt.NDArray[np.uint8]:
    """Return the red, green and blue that a file of the dataset has, (H, W, 3)."""
    # image: in the format WIRE or MESSAGE. The depth of a MESSAGE is rounded to the 24 bits of the
    # file: beyond 512 m one step aside of what was sent at most, 0.06 mm, and the same float32 of
    # meters.
    shape = *image_size(image)[::-1], 3
    if image.data_format is DataFormat.WIRE:
        return np.frombuffer(decode_rgb(image).data, np.uint8).reshape(shape)
    if image.kind == RGB:
        return np.frombuffer(image.data, np.uint8).reshape(shape)
    if image.kind == SEGMENTATION:
        pixels = np.zeros(shape, np.uint8)
        pixels[..., 0] = np.frombuffer(image.data, np.uint8).reshape(shape[:2])
        return pixels
    meters = np.frombuffer(image.data, '<f4')
    is_depth = (meters >= 0.0) & (meters <= FAR_PLANE_M)
    if not is_depth.all():
        raise DecodeError(_where(image), f'{meters[~is_depth][0]} m', f'0 to {FAR_PLANE_M:g} m')
    counts = np.rint(meters.astype(np.float64) * (_DEPTH_MAX / FAR_PLANE_M)).astype('<u4')
    return counts.view(np.uint8).reshape(*shape[:2], 4)[..., :3]


def decode_depth(image: EncodedImage) -> DecodedImage:
    """Decode a depth map: one float32, little-endian, per pixel: meters, 0 to 1000."""
    if image.data_format is DataFormat.MESSAGE:
        return _message_pixels(image)
    # Red is the least significant byte.
    if image.data_format is DataFormat.WIRE:
        # Bytes blue, green, red, alpha: their number with blue as the most significant byte.
        counts = np.frombuffer(image.data, '<u4').reshape(image_size(image)[::-1]).byteswap() >> 8
    else:
        bytes_ = _pixels(image).astype(np.uint32)
        counts = bytes_[..., 0] | bytes_[..., 1] << 8 | bytes_[..., 2] << 16
    meters = counts.astype(np.float64)
    # The product is an integer, exact in float64.
    meters *= FAR_PLANE_M
    meters /= _DEPTH_MAX
    return _decoded(meters.astype('<f4'))


def decode_segmentation(image: EncodedImage) -> DecodedImage:
    if image.data_format is DataFormat.MESSAGE:
        return _message_pixels(image)
    if image.data_format is DataFormat.WIRE:
        # A tenth of the time of a slice with steps: the numbers are contiguous.
        tags = (np.frombuffer(image.data, '<u4') >> 16).astype(np.uint8)
        return DecodedImage(*image_size(image), tags.tobytes())
    return _decoded(np.ascontiguousarray(_pixels(image)[..., 0]))


def colored(tags: DecodedImage) -> DecodedImage:
    """Return an image of classes in colors."""
    size = tags.width, tags.height
    picture = Image.frombuffer('P', size, tags.data, 'raw', 'P', 0, 1)
    picture.putpalette(_PALETTE.tobytes())
    return DecodedImage(*size, picture.convert('RGB').tobytes())


def _message_pixels(image: EncodedImage) -> DecodedImage:
    return DecodedImage(*image_size(image), bytes(image.data))


def _decoded(pixels: npt.NDArray[np.generic]) -> DecodedImage:
    height, width = pixels.shape[:2]
    return DecodedImage(width, height, pixels.tobytes())


def _where(image: EncodedImage) -> str:
    return f'{image.camera} {image.kind} image'


def _png_header(image: EncodedImage) -> tuple[int, int, int]:
    """Return width, height and bits per color of a PNG file."""
    head = bytes(image.data[:_HEADER.size])
    if len(head) < _HEADER.size:
        raise DecodeError(_where(image), counted(len(image.data), 'byte'), 'a PNG file')
    signature, chunk, width, height, n_bits = _HEADER.unpack(head)
    if (signature, chunk) != (PNG_SIGNATURE, b'IHDR'):
        raise DecodeError(_where(image), f'{counted(len(image.data), "byte")} with another '
                          'beginning', 'a PNG file')
    if not 0 < width * height <= _MAX_PIXELS:
        raise DecodeError(_where(image), f'{width} x {height} pixels',
                          f'1 to {_MAX_PIXELS} pixels')
    return width, height, n_bits


def _pixels(image: EncodedImage) -> npt.NDArray[np.uint8]:
    """Return red, green and blue, (H, W, 3)."""
    *size, n_bits = _png_header(image)
    try:
        opened = Image.open(io.BytesIO(image.data), formats=('PNG',))
        if opened.size != tuple(size):
            # A second header would set a size that is not checked.
            raise DecodeError(_where(image), 'two headers', 'one')
        if n_bits == _WIDE_BITS and image.kind != RGB:
            color = 'gray' if opened.mode.startswith(('I', 'L')) else 'color'
            raise DecodeError(_where(image), f'a {n_bits}-bit {color} PNG',
                              'one of 8 bits for each of red, green and blue')
        pixels = _usual_pixels(image, opened)
        if pixels is not None:
            return pixels
        if opened.mode.startswith('I'):
            # 16-bit gray: Pillow's conversion would make all but the darkest pixels white.
            gray = (np.asarray(opened) >> 8).astype(np.uint8)
            return np.stack((gray, gray, gray), axis=-1)
        return np.asarray(opened.convert('RGB'))
    except DecodeError:
        raise
    except UnidentifiedImageError as error:
        # Its text has the address of the data in memory.
        raise DecodeError(_where(image), counted(len(image.data), 'byte'), 'a PNG file') from error
    except _NO_IMAGE as error:
        raise DecodeError(_where(image), f'{counted(len(image.data), "byte")} ({error})',
                          'a PNG file') from error


def _usual_pixels(image: EncodedImage, opened: Image.Image) -> npt.NDArray[np.uint8] | None:
    """Return red, green and blue, (H, W, 3), of an image of 8 bits per color, else ``None``."""
    if decode_image_png_u8 is None or opened.mode not in _USUAL_MODES:
        return None
    try:
        pixels = decode_image_png_u8(bytes(image.data), (opened.height, opened.width),
                                     opened.mode.lower())
    except Exception:  # noqa: BLE001
        # The library raises nothing narrower than Exception; Pillow reads the file or refuses it.
        return None
    return np.ascontiguousarray(pixels[..., :3])


def sensor_views(sensors: Iterable[Sensor], report: Report) -> SensorReader:
    """Return what decodes the images and points of frames."""
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
    """Return an image to look at; a color image of a file stays as it is."""
    name = f'{image.camera}/{image.kind}'
    if image.kind == RGB and image.data_format is DataFormat.FILE:
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

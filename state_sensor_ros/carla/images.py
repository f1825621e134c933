# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Decode camera images of a dataset, PNG files, to pixels.

File names, depth and classes: doc/protocol/carla.md#images.
"""

from __future__ import annotations

from dataclasses import dataclass
import io
import re
import struct
from typing import Final
import zlib

import numpy as np
import numpy.typing as npt
from PIL import Image

from state_sensor_ros.carla.carla_data import EncodedImage
from state_sensor_ros.encode.static_frame import CAMERAS
from state_sensor_ros.errors import DecodeError

try:
    from kornia_rs.io import decode_image_png_u8
except ImportError:  # it has no rosdep key; Pillow takes more than twice the time
    decode_image_png_u8 = None

CENTRAL = CAMERAS[0]
RGB, DEPTH, SEGMENTATION = 'rgb', 'depth', 'segmentation'

# Depth at the greatest value of the three bytes.
FAR_PLANE_M: Final = 1000.0
_DEPTH_MAX: Final = 256 ** 3 - 1
# Red is the least significant byte; the weighted sums are integers, exact in float64.
_DEPTH_WEIGHTS: Final = FAR_PLANE_M * np.array((1.0, 256.0, 65536.0))

CLASS_NAMES: Final = (
    'None', 'Buildings', 'Fences', 'Other', 'Pedestrians', 'Poles', 'RoadLines', 'Roads',
    'Sidewalks', 'Vegetation', 'Vehicles', 'Walls', 'TrafficSigns')
# Thirteen distinct colours, chosen for this package; greater tags are white.
CLASS_COLORS: Final = (
    (0, 0, 0), (110, 110, 110), (150, 90, 60), (70, 160, 160), (230, 25, 75), (190, 190, 190),
    (255, 225, 25), (90, 60, 120), (240, 50, 230), (60, 160, 60), (0, 110, 230), (90, 90, 40),
    (245, 130, 48))
_PALETTE: Final = np.full((256, 3), 255, np.uint8)
_PALETTE[:len(CLASS_COLORS)] = CLASS_COLORS

# Such as CentralRGB_00042.png; depth and classes are of the central camera only.
_FILE_NAME: Final = re.compile(
    r'((?P<camera>central|left|right)_?(?P<rgb>rgb)|central_?(?P<kind>depth|(semantic_?)?seg'
    r'(mentation)?))_0*(?P<number>\d{1,18})\.png', re.IGNORECASE)
_MAX_LABEL_BYTES: Final = 32
# Bounds the memory: a small PNG can state any size. The dataset has 200 x 200 pixels.
_MAX_PIXELS: Final = 4096 * 4096
# Modes of Pillow; kornia-rs has the same names in lower case.
_USUAL_MODES: Final = ('RGB', 'RGBA')
# Errors of Pillow for a file that is damaged, cut short or no PNG.
_NO_IMAGE: Final = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error,
                    Image.DecompressionBombError)


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """Pixels row by row without gaps, from the top left."""

    width: int
    height: int
    data: bytes


def image_file_parts(name: str) -> tuple[str, str, int] | None:
    """
    Split the name of an image file of the dataset.

    >>> image_file_parts('CentralSemanticSeg_00042.png')
    ('central', 'segmentation', 42)

    :param name: without its folder; letter case is ignored.
    :returns: camera, kind and number of the measurement; ``None`` for any other name.
    """
    match = _FILE_NAME.fullmatch(name)
    if match is None:
        return None
    number = int(match['number'])
    if match['rgb']:
        return match['camera'].lower(), RGB, number
    return CENTRAL, DEPTH if match['kind'].lower() == 'depth' else SEGMENTATION, number


def pack_dataset_image(image: EncodedImage) -> bytes:
    """
    Return the message of a PNG file in the payload of a frame; see :func:`dataset_image`.

    :param image: its data are a PNG file; its ``size`` is not packed.
    """
    return b'%s/%s\0%s' % (image.camera.encode(), image.kind.encode(), image.data)


def dataset_image(message: memoryview) -> EncodedImage:
    """
    Return the image in a message of :func:`pack_dataset_image`.

    :param message: label and PNG file.
    :returns: the image; its data are a view of ``message``.
    """
    label, _, _ = bytes(message[:_MAX_LABEL_BYTES]).partition(b'\0')
    camera, _, kind = label.decode('ascii', 'replace').partition('/')
    return EncodedImage(camera, kind, message[len(label) + 1:])


def decode_rgb(image: EncodedImage) -> DecodedImage:
    """
    Decode a colour image.

    :param image: of kind RGB; pixels with a ``size`` are returned unchanged.
    :returns: three bytes per pixel: red, green, blue.
    :raises DecodeError: where the data are no PNG file or have too many pixels.
    """
    return _decoded(_pixels(image)) if image.size is None else _message_pixels(image, image.size)


def decode_depth(image: EncodedImage) -> DecodedImage:
    """
    Decode a depth map.

    :param image: of kind DEPTH; pixels with a ``size`` are returned unchanged.
    :returns: one float32, little-endian, per pixel: metres, 0 to 1000.
    :raises DecodeError: where the data are no PNG file or have too many pixels.
    """
    if image.size is not None:
        return _message_pixels(image, image.size)
    return _decoded((_pixels(image) @ _DEPTH_WEIGHTS / _DEPTH_MAX).astype('<f4'))


def decode_segmentation(image: EncodedImage) -> tuple[DecodedImage, DecodedImage]:
    """
    Decode an image of classes.

    :param image: of kind SEGMENTATION: a PNG file with the tag in red, or, with a ``size``, one
        byte per pixel.
    :returns: one byte per pixel: the tag; and three bytes per pixel: its colour.
    :raises DecodeError: where the data are no PNG file or have too many pixels.
    """
    if image.size is None:
        tags = np.ascontiguousarray(_pixels(image)[..., 0])
    else:
        tags = np.frombuffer(image.data, np.uint8).reshape(image.size[::-1])
    return _decoded(tags), _decoded(_PALETTE.take(tags, axis=0))


def _message_pixels(image: EncodedImage, size: tuple[int, int]) -> DecodedImage:
    return DecodedImage(*size, bytes(image.data))


def _decoded(pixels: npt.NDArray[np.generic]) -> DecodedImage:
    height, width = pixels.shape[:2]
    return DecodedImage(width, height, pixels.tobytes())


def _pixels(image: EncodedImage) -> npt.NDArray[np.uint8]:
    """Return red, green and blue, (H, W, 3)."""
    where = f'{image.camera} {image.kind} image'
    try:
        opened = Image.open(io.BytesIO(image.data), formats=('PNG',))
        if opened.width * opened.height > _MAX_PIXELS:
            raise DecodeError(where, f'{opened.width} x {opened.height} pixels',
                              f'at most {_MAX_PIXELS} pixels')
        pixels = _usual_pixels(image, opened)
        if pixels is not None:
            return pixels
        if opened.mode.startswith('I'):
            # 16-bit grey: Pillow's conversion would make all but the darkest pixels white.
            grey = (np.asarray(opened) >> 8).astype(np.uint8)
            return np.stack((grey, grey, grey), axis=-1)
        return np.asarray(opened.convert('RGB'))
    except DecodeError:
        raise
    except _NO_IMAGE as error:
        raise DecodeError(where, f'{len(image.data)} bytes ({error})', 'a PNG file') from error


def _usual_pixels(image: EncodedImage, opened: Image.Image) -> npt.NDArray[np.uint8] | None:
    """Return red, green and blue, (H, W, 3), of an image of 8 bits per colour, else ``None``."""
    if decode_image_png_u8 is None or opened.mode not in _USUAL_MODES:
        return None
    try:
        pixels = decode_image_png_u8(bytes(image.data), (opened.height, opened.width),
                                     opened.mode.lower())
    except Exception:  # noqa: BLE001
        # The library raises nothing narrower. Pillow reads the file or gives the reason.
        return None
    return np.ascontiguousarray(pixels[..., :3])

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The cameras on the player and their images, which are PNG files of a dataset.

The name of a sensor, such as ``CentralRGB``, is that of a camera and a kind:
doc/protocol/carla.md#sensors; depth and classes: doc/protocol/carla.md#images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
import math
from pathlib import Path
import re
import struct
from typing import Final, TypeAlias
import zlib

import numpy as np
import numpy.typing as npt
from PIL import Image

from state_sensor_ros.errors import DecodeError, reading, TrajectoryFormatError
from state_sensor_ros.files.input import check_regular
from state_sensor_ros.frame import Frame
from state_sensor_ros.naming import registry_of
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import SensorImage, SensorReader
from state_sensor_ros.simulators.carla.frames import CLASSES, data_of, PLAYER, PLAYER_TAGS
from state_sensor_ros.simulators.carla.parameters import CarlaParameters
from state_sensor_ros.source import Report
from state_sensor_ros.topics.transforms import StaticTransform

RGB, DEPTH, SEGMENTATION = 'rgb', 'depth', 'segmentation'
CAMERAS: Final = ('central', 'left', 'right')
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

Pixels: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.float32]
Pose: TypeAlias = tuple[float, ...]  # x y z m, roll pitch yaw rad
# Where the collector mounts the cameras, in CARLA's axes; metadata.json has the yaw angle.
_POSITION: Final = (2.0, 0.0, 1.4)
_PITCH_DEG: Final = -15.0
_OPTICAL: Final[Pose] = (0.0, 0.0, 0.0, -math.pi / 2.0, 0.0, -math.pi / 2.0)
_KIND_AT_END: Final = re.compile(
    r'(?P<camera>.+?)_?(?:(?P<rgb>rgb)|(?P<depth>depth)|(?:semantic_?|sem_?)?seg(?:mentation)?)',
    re.IGNORECASE)
_ILLEGAL: Final = re.compile(r'[^a-z0-9]+')
# Bounds the memory: a small PNG can state any size. The dataset has 200 x 200 pixels, and a
# measurement of a thousand agents 1.5 MB.
_MAX_PIXELS: Final = 4096 * 4096
_MAX_FILE_BYTES: Final = 67_108_864
# Errors of Pillow for a file that is damaged, cut short or no PNG.
_NO_IMAGE: Final = (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error,
                    Image.DecompressionBombError)


@dataclass(frozen=True, slots=True)
class CameraImage:
    """An image of a dataset, read and decoded only for what uses it."""

    camera: str
    kind: str  # RGB, DEPTH or SEGMENTATION
    file: Path
    fov_deg: float = math.nan  # horizontal field of view, degrees, NaN if it is unknown


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera on the player."""

    name: str  # in topics and frames
    kinds: tuple[str, ...] = ()
    pose: Pose | None = None  # on the player, None if it is unknown

    @classmethod
    def of_collector(cls, name: str, kinds: tuple[str, ...], yaw_deg: float | None) -> Camera:
        """Return a camera with the yaw angle of metadata.json, + = right, None for no such."""
        # Adding 0.0 turns -0.0 into 0.0.
        x, y, z = _POSITION
        return cls(name, kinds, None if yaw_deg is None else (
            x, 0.0 - y, z, 0.0, 0.0 - math.radians(_PITCH_DEG), 0.0 - math.radians(yaw_deg)))


def camera_and_kind(name: str) -> tuple[str, str] | None:
    """
    Split the name of a sensor at its kind.

    >>> camera_and_kind('LeftSemanticSeg')
    ('left', 'segmentation')

    :returns: the name of the camera in topics: lower-case letters, digits and ``_``, and RGB,
        DEPTH or SEGMENTATION; None for a name that ends with no kind.
    """
    match = _KIND_AT_END.fullmatch(name)
    if match is None:
        return None
    kind = RGB if match['rgb'] else DEPTH if match['depth'] else SEGMENTATION
    token = _ILLEGAL.sub('_', match['camera'].lower()).strip('_')
    return token if token and not token[0].isdigit() else f'sensor_{token}'.rstrip('_'), kind


def camera_frame(player_frame: str, camera: str) -> str:
    """Return the frame of a camera: x forward, y left, z up."""
    return f'{player_frame}/camera_{camera}'


def optical_frame(player_frame: str, camera: str) -> str:
    """Return the frame of a camera's images: z forward, x right, y down (REP-103)."""
    return f'{camera_frame(player_frame, camera)}_optical'


def camera_transforms(cameras: Iterable[Camera],
                      settings: Settings) -> tuple[StaticTransform, ...]:
    """Return the frames of the cameras on the player, none unless ``camera_tf`` is true."""
    # cameras: of a recording; without any, those of ``camera_poses``. A pose that is unknown is
    # that of the player.
    own = settings.of(CarlaParameters)
    if not own.camera_tf:
        return ()
    player = registry_of(settings).first_frame_id(CLASSES[PLAYER])
    offset: Pose = (0.0,) * 6
    # With another ego tag the player has a frame of its own.
    if settings.ego_frame and settings.ego_tag.lower() in PLAYER_TAGS:
        player = settings.ego_frame
        # CARLA has no wheels: base_link is at the origin unless its place is given.
        if math.isfinite(settings.base_link_xyz[0]):
            offset = (*settings.base_link_xyz, 0.0, 0.0, 0.0)
    given = {camera: pose for i, camera in enumerate(CAMERAS)
             if any(pose := own.camera_poses[6 * i:6 * i + 6])}
    transforms = []
    for camera in tuple(cameras) or tuple(map(Camera, CAMERAS)):
        pose = given.get(camera.name, camera.pose or (0.0,) * 6)
        transforms += [
            StaticTransform(player, camera_frame(player, camera.name), [
                number - shift for number, shift in zip(pose, offset, strict=True)]),
            StaticTransform(camera_frame(player, camera.name),
                            optical_frame(player, camera.name), _OPTICAL)]
    return tuple(transforms)


def read_file(file: Path) -> bytes:
    """Return the content of a file of a dataset."""
    check_regular(file)
    with reading(str(file)), file.open('rb') as opened:
        data = opened.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise TrajectoryFormatError(str(file), f'more than {_MAX_FILE_BYTES} bytes',
                                    'a file of a dataset')
    return data


def decode(image: CameraImage) -> Pixels:
    """
    Decode an image.

    :returns: (H, W, 3) uint8 red, green, blue; of a depth map (H, W) float32, meters, 0 to 1000;
        of a segmentation (H, W) uint8, the index of a class.
    :raises DecodeError: if it is no PNG file of 8 bits per color.
    """
    pixels = _pixels(image)
    if image.kind == RGB:
        return pixels
    if image.kind == SEGMENTATION:
        return np.ascontiguousarray(pixels[..., 0])
    # Red is the least significant byte.
    bytes_ = pixels.astype(np.uint32)
    counts = bytes_[..., 0] | bytes_[..., 1] << 8 | bytes_[..., 2] << 16
    # The product is an integer, exact in float64.
    return (counts.astype(np.float64) * FAR_PLANE_M / _DEPTH_MAX).astype('<f4')


def _pixels(image: CameraImage) -> npt.NDArray[np.uint8]:
    where, expected = f'{image.camera} {image.kind} image', 'a PNG file'
    try:
        check_regular(image.file)
        with Image.open(image.file, formats=('PNG',)) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                raise DecodeError(where, f'{opened.width} x {opened.height} pixels',
                                  f'at most {_MAX_PIXELS} pixels')
            is_wide = opened.mode.startswith('I') or '16' in str(opened.tile[0][3])
            if is_wide and image.kind != RGB:
                raise DecodeError(where, 'a 16-bit PNG',
                                  'one of 8 bits for each of red, green and blue')
            if opened.mode.startswith('I'):
                # Pillow's conversion would make all but the darkest pixels white.
                gray = (np.asarray(opened) >> 8).astype(np.uint8)
                return np.stack((gray, gray, gray), axis=-1)
            return np.asarray(opened.convert('RGB'))
    except DecodeError:
        raise
    except _NO_IMAGE as error:
        raise DecodeError(where, str(error).replace('\n', ' '), expected) from error


def colored(tags: Pixels) -> Pixels:
    """Return the classes of a segmentation in colors, (H, W, 3)."""
    return _PALETTE[tags.astype(np.uint8)]


def image_views(report: Report) -> SensorReader:
    """Return what decodes the images of frames to look at."""
    def read(frame: Frame) -> Iterator[SensorImage]:
        data = data_of(frame)
        for image in () if data is None else data.images:
            name = f'{image.camera}/{image.kind}'
            try:
                if image.kind == RGB:
                    yield SensorImage(name, png=read_file(image.file))
                else:
                    pixels = decode(image)
                    yield SensorImage(
                        name, colored(pixels) if image.kind == SEGMENTATION else pixels)
            except DecodeError as error:
                report('image', str(error))

    return read

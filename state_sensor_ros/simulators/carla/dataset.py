# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A dataset of the data collector, read: a folder for each episode, or one such folder.

Members of its files equal to their default are absent, and unknown ones may be present; spellings
and the rules of the conversion from protobuf: doc/protocol/carla.md#dataset. Images are PNG files;
the name of a sensor, such as ``CentralRGB``, is that of a camera on the player and a kind:
doc/protocol/carla.md#sensors; depth and classes: doc/protocol/carla.md#images.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
import json
import math
from pathlib import Path
import re
import struct
from typing import Any, Final
import zlib

from google.protobuf import json_format
import numpy as np
import numpy.typing as npt
from PIL import Image

from state_sensor_ros.errors import DecodeError, reading, restated, TrajectoryFormatError
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.files.input import check_regular
from state_sensor_ros.files.recording import FrameFile
from state_sensor_ros.frame import Frame
from state_sensor_ros.simulators import Pixels, SensorImage, SensorReader
from state_sensor_ros.simulators.carla import frames
from state_sensor_ros.simulators.carla.frames import Message, PlayerStatus
from state_sensor_ros.simulators.json_text import parse, shown, to_kind, to_list
from state_sensor_ros.source import DROPPED, Faults, LOST, MEMBER, Report

_MEASUREMENTS: Final = re.compile(r'measurements_(\d{1,18})\.json')
_EPISODE: Final = re.compile(r'episode_(\d{1,18})')
_IMAGE: Final = re.compile(r'(?P<name>.+)_0*(?P<number>\d{1,18})\.png', re.IGNORECASE)
_METADATA: Final = 'metadata.json'
# The commands of the expert and what was applied, and what the planner and the expert know.
_CONTROLS: Final = (('steer', 'throttle', 'brake'),
                    ('steer_noise', 'throttle_noise', 'brake_noise'))
_SWITCHES: Final = ('hand_brake', 'reverse')
_PLANNER: Final = ('directions', 'stop_pedestrian', 'stop_vehicle', 'stop_traffic_lights')
_COMMANDS: Final = frozenset((*_CONTROLS[0], *_CONTROLS[1], *_SWITCHES, *_PLANNER))
_PLAYER, _AGENTS = 'playerMeasurements', 'nonPlayerAgents'
# The usual one by both spellings of a member: some files have it in snake case.
_SPELLINGS: Final = {spelling: name for name, member in
                     frames.FILE['Measurements'].DESCRIPTOR.fields_by_camelcase_name.items()
                     for spelling in (name, member.name)}

# Images.
RGB, DEPTH, SEGMENTATION = 'rgb', 'depth', 'segmentation'
CAMERAS: Final = ('central', 'left', 'right')
# Cameras that need no metadata.json: those of the configurations of the data collector.
_KNOWN_CAMERAS: Final = frozenset((*CAMERAS, 'camera'))
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
# Where the collector mounts the cameras: x y z m, roll pitch rad; metadata.json has the yaw angle.
_MOUNT: Final = (2.0, 0.0, 1.4, 0.0, math.radians(15.0))
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
    """An image, read and decoded only for what uses it."""

    camera: str
    kind: str  # RGB, DEPTH or SEGMENTATION
    file: Path
    fov_deg: float = math.nan  # horizontal field of view, degrees, NaN if it is unknown


@dataclass(frozen=True, slots=True)
class Camera:
    """A camera on the player."""

    name: str  # in topics and frames
    kinds: tuple[str, ...] = ()
    # On the player, x y z m, roll pitch yaw rad; None if it is unknown.
    pose: tuple[float, ...] | None = None


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


@dataclass(slots=True)
class Episode:
    """One folder of measurements."""

    folder: Path
    metadata: dict[str, float]  # its own, and of the dataset what its own does not say
    measurements: list[tuple[int, Path]] = field(default_factory=list)
    images: dict[int, list[CameraImage]] = field(default_factory=dict)  # by number


def is_dataset(folder: Path) -> bool:
    """Return whether an existing folder is a dataset, or one of its episodes."""
    return any(True for pattern in ('measurements_*.json', 'episode_*/measurements_*.json')
               for _ in folder.glob(pattern))


class DatasetRecording(FrameFile):
    """The episodes of a dataset, or one, in order; at the start of each, game time restarts."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        path = Path(name)
        episodes = found_episodes(path)
        self._places = [(episode, number, file) for episode in episodes
                        for number, file in episode.measurements]
        if not self._places:
            raise TrajectoryFormatError(
                name, 'a folder without metadata.yaml and without measurements_NNNNN.json',
                'a bag (`state_sensor repair` completes one that was cut), or a dataset of CARLA')
        super().__init__(name, 'dataset of CARLA', 'carla', len(self._places))
        self._path, self._next = path, 0
        counts = Counter((image.camera, image.kind) for episode in episodes
                         for images in episode.images.values() for image in images)
        self.sensor_counts: Mapping[tuple[str, str], int] = dict(sorted(counts.items()))
        # Of the first episode that has an angle.
        yaws = {split[0]: yaw for episode in reversed(episodes)
                for sensor, yaw in reversed(episode.metadata.items())
                if (split := camera_and_kind(sensor)) is not None}
        kinds: dict[str, list[str]] = {}
        for name, kind in self.sensor_counts:
            kinds.setdefault(name, []).append(kind)
        # Angles are + = right there; adding 0.0 turns -0.0 into 0.0.
        self.cameras = tuple(
            Camera(name, tuple(found), (*_MOUNT, 0.0 - math.radians(yaws[name]))
                   if name in yaws else None) for name, found in kinds.items())

    def mark(self) -> int:
        """Return the number of the next measurement."""
        return self._next

    def read(self, mark: int | None) -> Iterator[Frame]:
        """Yield a frame for each measurement; the parameter is that of :meth:`mark`."""
        self._next = mark or 0
        reader = FileReader(self.faults)
        for episode, number, file in self._places[self._next:]:
            self._next += 1
            self.faults.place = str(file.relative_to(self._path))
            reader.maker.details = self.details
            try:
                yield reader.frame(read_file(file), tuple(episode.images.get(number, ())))
            except DecodeError as error:
                self.faults.add(LOST, error)


class FileReader:
    """Makes frames of the texts of measurements."""

    def __init__(self, faults: Faults) -> None:
        self.maker = frames.FrameMaker(faults)
        self._faults = faults
        self._unknown: set[str] = set()

    def frame(self, text: bytes, images: tuple[CameraImage, ...]) -> Frame:
        """Return the frame of a file; an actor that is not valid is a fault."""
        tree = to_kind(parse(text), 'payload', dict, 'an object')
        measured = {_SPELLINGS[name]: tree[name] for name in tree if name in _SPELLINGS}
        player = measured.pop(_PLAYER, None)
        agents = to_list(measured.pop(_AGENTS, None), f'$.{_AGENTS}')
        message = frames.FILE['Measurements']()
        self._parse(measured, message, '$')
        if player is not None:
            self._add_actor(f'$.{_PLAYER}', player, message.player_measurements)
        for i, agent in enumerate(agents):
            if not self._add_actor(f'$.{_AGENTS}[{i}]', agent, message.non_player_agents.add()):
                del message.non_player_agents[-1]
        return self.maker.frame(message, status=_status(tree), images=images)

    def _add_actor(self, path: str, value: object, actor: Message) -> bool:
        parsed = type(actor)()
        try:
            self._parse(to_kind(value, path, dict, 'an object'), parsed, path)
        except DecodeError as error:
            self._faults.add(DROPPED, error)
            return False
        actor.SetInParent()
        actor.CopyFrom(parsed)
        return True

    def _parse(self, tree: Mapping[str, object], message: Message, path: str) -> None:
        try:
            json_format.ParseDict(self._known(tree, message.DESCRIPTOR), message)
        except (json_format.ParseError, ValueError, TypeError) as error:
            raise DecodeError(path, ' '.join(str(error).split()), 'members as in the protocol'
                              ) from error

    def _known(self, value: Any, descriptor: Any) -> Any:  # noqa: ANN401
        """Return a value without unknown members, each of which is named once; null as NaN."""
        if isinstance(value, list):
            return [self._known(each, descriptor) for each in value]
        if descriptor is None or not isinstance(value, dict):
            return 'NaN' if value is None and descriptor is None else value
        known = {}
        for name, each in value.items():
            found = descriptor.fields_by_camelcase_name.get(name) \
                or descriptor.fields_by_name.get(name)
            if found is not None:
                known[name] = self._known(each, found.message_type)
            elif (member := f'{descriptor.name}.{name}') not in self._unknown:
                self._unknown.add(member)
                self._faults.add(MEMBER, DecodeError(
                    member, 'an unknown member, which is ignored', 'none'))
        return known


def _status(tree: Mapping[str, object]) -> PlayerStatus:
    """Return what a file says of the player beside its measurements."""
    numbers, controls = np.full(12, np.nan), np.full((3, 3), np.nan)
    numbers[8:] = [_number(tree, name) for name in _PLANNER]
    controls[1:] = [[_number(tree, name) for name in names] for names in _CONTROLS]
    switches = np.array([to_kind(tree.get(name, False), f'$.{name}', bool, 'true or false')
                         for name in _SWITCHES])
    others = {name: value for name, value in tree.items()
              if name not in _SPELLINGS and name not in _COMMANDS}
    return PlayerStatus(
        numbers, controls, np.tile(switches, (3, 1)), is_dataset=True,
        has_switches=any(name in tree for name in _SWITCHES), extra_members=json.dumps(
            others, ensure_ascii=False, separators=(',', ':')) if others else '')


def _number(tree: Mapping[str, Any], name: str) -> float:
    try:
        return math.nan if tree.get(name) is None else float(tree[name])
    except (TypeError, ValueError):
        raise DecodeError(f'$.{name}', shown(tree[name]), 'a number') from None


def found_episodes(path: Path) -> list[Episode]:
    """Return the folder and its episodes, in the order of their numbers, with their files."""
    with reading(str(path)):
        above = path.resolve()
        shared = {**(_metadata_in(above.parent) if _EPISODE.fullmatch(above.name) else {}),
                  **_metadata_in(path)}
        numbered = [(int(match[1]), folder) for folder in path.iterdir()
                    if (match := _EPISODE.fullmatch(folder.name)) and folder.is_dir()]
        episodes = [Episode(path, shared)] + [
            Episode(folder, {**shared, **_metadata_in(folder)}) for _, folder in sorted(numbered)]
        cameras = _KNOWN_CAMERAS.union(
            split[0] for episode in episodes for name in episode.metadata
            if (split := camera_and_kind(name)) is not None)
        for episode in episodes:
            _list_files(episode, cameras)
    return episodes


def _metadata_in(folder: Path) -> dict[str, float]:
    """Return the numbers of a metadata.json: yaw angles by sensor, the field of view."""
    file = folder / _METADATA
    if not file.is_file():
        return {}
    with restated(TrajectoryFormatError, str(file)):
        tree = parse(read_file(file))
    return {name: float(value) for name, value in tree.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)} \
        if isinstance(tree, dict) else {}


def _list_files(episode: Episode, cameras: frozenset[str]) -> None:
    fov_deg = episode.metadata.get('fov', math.nan)
    images: dict[tuple[int, str, str], CameraImage] = {}
    for file in sorted(episode.folder.iterdir()):
        if (match := _MEASUREMENTS.fullmatch(file.name)) is not None:
            episode.measurements.append((int(match[1]), file))
            continue
        match = _IMAGE.fullmatch(file.name)
        split = None if match is None else camera_and_kind(match['name'])
        if match is not None and split is not None and split[0] in cameras \
                and (key := (int(match['number']), *split)) not in images:
            images[key] = CameraImage(*split, file, fov_deg)
    episode.measurements.sort()
    numbers = {number for number, _ in episode.measurements}
    for (number, *_), image in sorted(images.items()):
        if number in numbers:
            episode.images.setdefault(number, []).append(image)


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
    # Red is the least significant byte. The product is an integer, exact in float64.
    counts = pixels.astype(np.uint32) @ np.array((1, 1 << 8, 1 << 16), np.uint32)
    return (counts.astype(np.float64) * FAR_PLANE_M / _DEPTH_MAX).astype('<f4')


def _pixels(image: CameraImage) -> npt.NDArray[np.uint8]:
    where = f'{image.camera} {image.kind} image'
    try:
        check_regular(image.file)
        with Image.open(image.file, formats=('PNG',)) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                raise DecodeError(where, f'{opened.width} x {opened.height} pixels',
                                  f'at most {_MAX_PIXELS} pixels')
            if opened.mode.startswith('I') or '16' in str(opened.tile[0][3]):
                raise DecodeError(where, 'a 16-bit PNG',
                                  'one of 8 bits for each of red, green and blue')
            return np.asarray(opened.convert('RGB'))
    except DecodeError:
        raise
    except _NO_IMAGE as error:
        raise DecodeError(where, str(error).replace('\n', ' '), 'a PNG file') from error


def colored(tags: Pixels) -> Pixels:
    """Return the classes of a segmentation in colors, (H, W, 3)."""
    return _PALETTE[tags.astype(np.uint8)]


def image_views(report: Report) -> SensorReader:
    """Return what decodes the images of frames to look at."""
    def read(frame: Frame) -> Iterator[SensorImage]:
        data = frames.data_of(frame)
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

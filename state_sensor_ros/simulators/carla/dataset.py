# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The folders of a dataset of the data collector, and their metadata.json, read.

A dataset has a folder for each episode, or is one such folder: doc/protocol/carla.md#dataset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
import json
import math
from pathlib import Path
import re
from typing import Final, Literal

import msgspec

from state_sensor_ros.simulators import (
    reading,
    restated,
    TrajectoryFormatError,
)
from state_sensor_ros.simulators.carla.frame_payload import DatasetPayload, SensorFile
from state_sensor_ros.simulators.carla.sensors import (
    camera_and_kind,
    CAMERAS,
    carla_of_pose,
    file_name_of,
    known_pose,
    POINTS,
    Pose,
    pose_of_carla,
    Sensor,
    topic_token,
)
from state_sensor_ros.simulators.json_values import Json, parse_payload, text_of
from state_sensor_ros.simulators.recordings import check_regular

# Where every configuration of the data collector has its cameras and its lidar: its metadata.json
# has the yaw alone.
_CAMERA_POSITION, _CAMERA_PITCH_DEG = (2.0, 0.0, 1.4), -15.0
_LIDAR_POSITION: Final = (0.0, 0.0, 2.5)
_LIDAR_MARK: Final = 'lidar'
_SENSORS: Final = 'sensors'
_CAMERA: Final = 'CAMERA'
_LIDAR_TYPE: Final = 'LIDAR_RAY_CAST'


class _Position(msgspec.Struct):
    """In CARLA's axes of the player, m."""

    x: float
    y: float
    z: float


class _Rotation(msgspec.Struct):
    """Degrees of the engine's rotator."""

    pitch: float
    yaw: float
    roll: float


class _Description(msgspec.Struct, omit_defaults=True):
    type_: Literal['CAMERA', 'LIDAR_RAY_CAST'] = msgspec.field(name='type')
    width: int | None = None  # width, height: in pixels
    height: int | None = None
    fov: float | None = None  # in degrees
    position: _Position | None = None
    rotation: _Rotation | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    """The sensors that a metadata.json declares, and the members that describe the episode."""

    yaw_deg: Mapping[str, float]  # by sensor, + = right
    fov_deg: float  # of all cameras, NaN if it is absent
    # Sensors by name in topics and kind.
    described: Mapping[tuple[str, str], Sensor] = field(default_factory=dict)
    # JSON text of the others by name, such as weather, seeds and numbers of agents.
    members: Mapping[str, str] = field(default_factory=dict)

    def cameras(self) -> frozenset[str]:
        """Return the names in topics of the cameras that are declared."""
        return frozenset(split[0] for split in map(camera_and_kind, self.yaw_deg) if split) \
            | {name for name, kind in self.described if kind != POINTS}

    def lidars(self) -> frozenset[str]:
        """Return the names in topics of the lidars that are described."""
        return frozenset(name for name, kind in self.described if kind == POINTS)

    def joined_with(self, other: Metadata) -> Metadata:
        return Metadata({**other.yaw_deg, **self.yaw_deg},
                        other.fov_deg if math.isnan(self.fov_deg) else self.fov_deg,
                        {**other.described, **self.described},
                        {**other.members, **self.members})

    def sensor(self, name: str, kind: str) -> Sensor:
        if (name, kind) in self.described:
            return self.described[name, kind]
        if kind == POINTS:
            yaw = next((yaw for own, yaw in self.yaw_deg.items() if topic_token(own) == name),
                       None)
            return Sensor(name, kind, pose=_pose(_LIDAR_POSITION, 0.0, yaw))
        own = dict(_yaws(self.yaw_deg, name))
        yaw = own.get(kind, next(iter(own.values()), None))
        return Sensor(name, kind, self.fov_deg, _pose(_CAMERA_POSITION, _CAMERA_PITCH_DEG, yaw))


NO_METADATA: Final = Metadata({}, math.nan)


def _yaws(yaw_deg: Mapping[str, float], camera: str) -> Iterator[tuple[str, float]]:
    for name, yaw in yaw_deg.items():
        split = camera_and_kind(name)
        if split is not None and split[0] == camera:
            yield split[1], yaw


def _pose(position: tuple[float, float, float], pitch: float, yaw: float | None) -> Pose | None:
    return None if yaw is None else pose_of_carla(position, pitch, yaw, 0.0)


def metadata_of(text: bytes) -> Metadata:
    """Parse a metadata.json."""
    tree = parse_payload(text)
    members = tree if isinstance(tree, dict) else {}
    numbers = {name: float(value) for name, value in members.items()
               if isinstance(value, (int, float)) and not isinstance(value, bool)
               and abs(value) < math.inf}
    yaw_deg = {name: value for name, value in numbers.items()
               if camera_and_kind(name) is not None or _LIDAR_MARK in name.lower()}
    others = {name: text_of(value) for name, value in members.items()
              if name not in yaw_deg and name != _SENSORS}
    return Metadata(yaw_deg, numbers.get('fov', math.nan), _described(members.get(_SENSORS)),
                    others)


def _described(member: Json) -> dict[tuple[str, str], Sensor]:
    """Return the sensors of the member ``sensors``; other programs may use that name as well."""
    found: dict[tuple[str, str], Sensor] = {}
    for name, value in member.items() if isinstance(member, dict) else ():
        try:
            one = msgspec.convert(value, _Description)
        except msgspec.ValidationError:
            continue
        split = (topic_token(name), POINTS) if one.type_ == _LIDAR_TYPE else camera_and_kind(name)
        if split is None:
            continue
        pose = None
        if one.position is not None and one.rotation is not None:
            place, angles = one.position, one.rotation
            pose = known_pose(pose_of_carla((place.x, place.y, place.z), angles.pitch,
                                            angles.yaw, angles.roll))
        found[split] = Sensor(*split, math.nan if one.fov is None else one.fov, pose)
    return found


def is_of_recorder(text: bytes) -> bool:
    """Return whether a metadata.json is one of :func:`format_metadata`."""
    tree = parse_payload(text)
    return isinstance(tree, dict) and (
        tree.get(_SENSORS) == {} or bool(_described(tree.get(_SENSORS))))


def format_metadata(sensors: Iterable[tuple[Sensor, tuple[int, int] | None]],
                    others: Iterable[tuple[str, str]] = ()) -> bytes:
    """Return a metadata.json with the members of the collector and ``sensors``."""
    # sensors: each with width and height of its images, pixels; None of a lidar. Field of view and
    # size of the first camera are those that the collector has once.
    described: dict[str, _Description] = {}
    members: dict[str, object] = {}
    for sensor, size in sensors:
        name = file_name_of(sensor.name, sensor.kind)
        one = described[name] = _Description(_LIDAR_TYPE if size is None else _CAMERA)
        if size is not None:
            one.width, one.height = size
            one.fov = sensor.fov_deg if math.isfinite(sensor.fov_deg) else None
            for key, value in (('fov', one.fov), ('width', one.width), ('height', one.height)):
                members.setdefault(key, value)
        if sensor.pose is not None:
            position, angles = carla_of_pose(sensor.pose)
            one.position, one.rotation = _Position(*position), _Rotation(*angles)
            members[name] = one.rotation.yaw
    members = {**{name: json.loads(text) for name, text in others}, **members}
    return json.dumps({**members, _SENSORS: msgspec.to_builtins(described)}, sort_keys=True,
                      indent=4).encode()


_MEASUREMENTS: Final = re.compile(r'measurements_(\d{1,18})\.json')
_EPISODE: Final = re.compile(r'episode_(\d{1,18})')
_IMAGE: Final = re.compile(r'(?P<name>.+)_0*(?P<number>\d{1,18})\.png', re.IGNORECASE)
_POINTS: Final = re.compile(r'(?P<name>.+)_0*(?P<number>\d{1,18})\.ply', re.IGNORECASE)
# Name of a lidar that needs no declaration.
_LIDAR: Final = re.compile(r'[^_]*lidar.*', re.IGNORECASE)
METADATA: Final = 'metadata.json'
# Cameras that need no metadata.json: those of the configurations of the data collector.
_KNOWN_CAMERAS: Final = frozenset((*CAMERAS, 'camera'))
# A measurement of a thousand agents has 1.5 MB, the largest accepted image at most 67 MB.
_MAX_FILE_BYTES: Final = 67_108_864


def sensor_file_name(name: str, kind: str, number: int) -> str:
    """
    Return the name of an image or point file of a dataset.

    >>> sensor_file_name('left', 'rgb', 42), sensor_file_name('lidar32', 'points', 7)
    ('LeftRGB_00042.png', 'Lidar32_00007.ply')
    """
    return f'{file_name_of(name, kind)}_{number:05d}.{"ply" if kind == POINTS else "png"}'


def sensor_file_parts(name: str, cameras: frozenset[str],
                      lidars: frozenset[str] = frozenset()) -> tuple[str, str, int] | None:
    """
    Split the name of an image or point file of a dataset.

    >>> sensor_file_parts('CentralSemanticSeg_00042.png', frozenset(['central']))
    ('central', 'segmentation', 42)

    :returns: name of the camera or lidar in topics, kind, and number of the measurement; None for
        any other name.
    """
    if match := _POINTS.fullmatch(name):
        lidar = topic_token(match['name'])
        is_lidar = lidar in lidars or _LIDAR.fullmatch(match['name'])
        return (lidar, POINTS, int(match['number'])) if is_lidar else None
    match = _IMAGE.fullmatch(name)
    split = None if match is None else camera_and_kind(match['name'])
    if match is None or split is None or split[0] not in cameras:
        return None
    return *split, int(match['number'])


@dataclass(slots=True)
class Episode:
    """One folder of measurements."""

    folder: Path
    metadata: Metadata  # its own, and of the dataset what its own does not say
    measurements: list[tuple[int, Path]] = field(default_factory=list)  # number and file of each
    # By number: name of the camera or lidar, kind and file of each image and each file of points,
    # of every step or of some.
    sensors: dict[int, list[tuple[str, str, Path]]] = field(default_factory=dict)
    # Other files, and those without a measurement.
    ignored: list[Path] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Dataset:
    path: Path
    # In the order of their numbers, with files in the order of theirs.
    episodes: tuple[Episode, ...]
    metadata: Metadata
    counts: Counter[tuple[str, str]]  # files by name of the camera or lidar and kind

    def sensors(self) -> tuple[Sensor, ...]:
        return tuple(self.metadata.sensor(*key) for key in sorted(self.counts))

    def ignored(self) -> tuple[str, ...]:
        """Return the names of the files that are not read, relative to the folder."""
        return tuple(sorted(str(file.relative_to(self.path)) for episode in self.episodes
                            for file in episode.ignored))


def find_dataset(path: Path) -> Dataset:
    with reading(str(path)):
        shared = _metadata_in(path).joined_with(_metadata_above(path))
        found = [Episode(path, shared)]
        for folder in _episode_folders(path):
            found.append(Episode(folder, _metadata_in(folder).joined_with(shared)))
        metadata = reduce(Metadata.joined_with, (episode.metadata for episode in found))
        for episode in found:
            _list_files(episode, _KNOWN_CAMERAS | metadata.cameras(), metadata.lidars())
    if not any(episode.measurements for episode in found):
        raise TrajectoryFormatError(
            str(path), 'a folder without metadata.yaml and without measurements_NNNNN.json',
            'a bag (`state_sensor repair` completes one that was cut), or a dataset of CARLA')
    return Dataset(path, tuple(found), metadata, Counter(
        (name, kind) for episode in found for sensors in episode.sensors.values()
        for name, kind, _ in sensors))


def read_payloads(dataset: Dataset, begin: int = 0) -> Iterator[tuple[bytes, str]]:
    """Yield the payloads and their places from the number ``begin`` on."""
    places = [(i_episode, i) for i_episode, episode in enumerate(dataset.episodes)
              for i in range(len(episode.measurements))]
    for i_episode, i in places[begin:]:
        _, file = dataset.episodes[i_episode].measurements[i]
        yield read_payload(dataset, (i_episode, i)), str(file.relative_to(dataset.path))


def read_payload(dataset: Dataset, place: tuple[int, int]) -> bytes:
    """Return a measurement with the files of its sensors as a payload."""
    # place: numbers of the episode and of the measurement in it.
    i_episode, i = place
    episode = dataset.episodes[i_episode]
    number, file = episode.measurements[i]
    text, metadata = _read(file), episode.metadata
    sensors = [SensorFile(name, kind, metadata.sensor(name, kind).fov_deg,
                          memoryview(_read(own)))
               for name, kind, own in episode.sensors.get(number, ())]
    has_members = not i and any(each.metadata.members for each in dataset.episodes)
    return DatasetPayload(memoryview(text), sensors,
                          dict(metadata.members) if has_members else None).pack()


def _metadata_above(path: Path) -> Metadata:
    """Return the sensors that the metadata.json above the folder of an episode declares."""
    opened = path.resolve()
    return _metadata_in(opened.parent) if _EPISODE.fullmatch(opened.name) else NO_METADATA


def _metadata_in(folder: Path) -> Metadata:
    file = folder / METADATA
    if not file.is_file():
        return NO_METADATA
    with restated(TrajectoryFormatError, str(file)):
        return metadata_of(_read(file))


def _episode_folders(path: Path) -> list[Path]:
    numbered = [(int(match[1]), folder) for folder in path.iterdir()
                if (match := _EPISODE.fullmatch(folder.name)) and folder.is_dir()]
    return [folder for _, folder in sorted(numbered)]


def _list_files(episode: Episode, cameras: frozenset[str], lidars: frozenset[str]) -> None:
    taken: set[tuple[str, str, int]] = set()
    for file in sorted(episode.folder.iterdir()):
        match = _MEASUREMENTS.fullmatch(file.name)
        if match is not None:
            episode.measurements.append((int(match[1]), file))
            continue
        parts = sensor_file_parts(file.name, cameras, lidars)
        if parts is not None and parts not in taken:
            taken.add(parts)
            name, kind, number = parts
            episode.sensors.setdefault(number, []).append((name, kind, file))
        elif file.name != METADATA and not _EPISODE.fullmatch(file.name):
            episode.ignored.append(file)
    episode.measurements.sort()
    numbers = {number for number, _ in episode.measurements}
    for number in [number for number in episode.sensors if number not in numbers]:
        episode.ignored += [file for _, _, file in episode.sensors.pop(number)]
    for sensors in episode.sensors.values():
        sensors.sort()


def _read(file: Path) -> bytes:
    check_regular(file)
    with reading(str(file)), file.open('rb') as opened:
        data = opened.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise TrajectoryFormatError(str(file), f'more than {_MAX_FILE_BYTES} bytes',
                                    'a file of a dataset')
    return data

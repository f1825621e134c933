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
and the rules of the conversion from protobuf: doc/protocol/carla.md#dataset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
import json
import math
from pathlib import Path
import re
from typing import Any, Final

from google.protobuf import json_format
import numpy as np

from state_sensor_ros.errors import DecodeError, reading, restated, TrajectoryFormatError
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.files.recording import FrameFile
from state_sensor_ros.frame import Frame
from state_sensor_ros.simulators.carla.frames import (
    control_of,
    FrameMaker,
    Message,
    PlayerStatus,
)
from state_sensor_ros.simulators.carla.images import (
    Camera,
    camera_and_kind,
    CameraImage,
    CAMERAS,
    read_file,
)
from state_sensor_ros.simulators.carla.schema import FileMeasurements
from state_sensor_ros.simulators.json_text import parse, shown, to_flag, to_list, to_object
from state_sensor_ros.source import DROPPED, Faults, LOST, MEMBER

_MEASUREMENTS: Final = re.compile(r'measurements_(\d{1,18})\.json')
_EPISODE: Final = re.compile(r'episode_(\d{1,18})')
_IMAGE: Final = re.compile(r'(?P<name>.+)_0*(?P<number>\d{1,18})\.png', re.IGNORECASE)
_METADATA: Final = 'metadata.json'
# Cameras that need no metadata.json: those of the configurations of the data collector.
_KNOWN_CAMERAS: Final = frozenset((*CAMERAS, 'camera'))
# The commands of the expert and what was applied, and what the planner and the expert know.
_CONTROLS: Final = (('steer', 'throttle', 'brake'),
                    ('steer_noise', 'throttle_noise', 'brake_noise'))
_SWITCHES: Final = ('hand_brake', 'reverse')
_PLANNER: Final = ('directions', 'stop_pedestrian', 'stop_vehicle', 'stop_traffic_lights')
_COMMANDS: Final = frozenset((*_CONTROLS[0], *_CONTROLS[1], *_SWITCHES, *_PLANNER))
_PLAYER, _AGENTS = 'playerMeasurements', 'nonPlayerAgents'
# The usual one by both spellings of a member: some files have it in snake case.
_SPELLINGS: Final = {spelling: name for name, member in
                     FileMeasurements.DESCRIPTOR.fields_by_camelcase_name.items()
                     for spelling in (name, member.name)}


@dataclass(slots=True)
class Episode:
    """One folder of measurements."""

    folder: Path
    metadata: Mapping[str, float]  # its own, and of the dataset what its own does not say
    measurements: list[tuple[int, Path]] = field(default_factory=list)
    images: dict[int, list[CameraImage]] = field(default_factory=dict)  # by number
    # Other files, and those without a measurement.
    ignored: list[Path] = field(default_factory=list)


def is_dataset(folder: Path) -> bool:
    """Return whether an existing folder is a dataset, or one of its episodes."""
    return any(True for pattern in ('measurements_*.json', 'episode_*/measurements_*.json')
               for _ in folder.glob(pattern))


def open_dataset(path: str, options: ReadOptions) -> DatasetRecording:
    """Open the folder of a dataset or of an episode."""
    return DatasetRecording(Path(path))


class DatasetRecording(FrameFile):
    """The episodes of a dataset in order; at the start of each, game time restarts."""

    def __init__(self, path: Path) -> None:
        self._episodes = found_episodes(path)
        self._places = [(episode, number, file) for episode in self._episodes
                        for number, file in episode.measurements]
        if not self._places:
            raise TrajectoryFormatError(
                str(path), 'a folder without metadata.yaml and without measurements_NNNNN.json',
                'a bag (`state_sensor repair` completes one that was cut), or a dataset of CARLA')
        super().__init__(str(path), 'dataset of CARLA', 'carla', len(self._places))
        self._path, self._next = path, 0
        images = [image for episode in self._episodes for each in episode.images.values()
                  for image in each]
        counts = Counter((image.camera, image.kind) for image in images)
        self.sensor_counts: Mapping[tuple[str, str], int] = dict(sorted(counts.items()))
        self.ignored = tuple(sorted(str(file.relative_to(path)) for episode in self._episodes
                                    for file in episode.ignored))

    @property
    def cameras(self) -> tuple[Camera, ...]:
        """Return the cameras with the kinds of their images, and their poses."""
        metadata = {name: value for episode in reversed(self._episodes)
                    for name, value in episode.metadata.items()}
        kinds: dict[str, list[str]] = {}
        for name, kind in self.sensor_counts:
            kinds.setdefault(name, []).append(kind)
        yaws = {split[0]: yaw for sensor, yaw in reversed(metadata.items())
                if (split := camera_and_kind(sensor)) is not None}
        return tuple(Camera.of_collector(name, tuple(each), yaws.get(name))
                     for name, each in kinds.items())

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
        self.maker = FrameMaker(faults)
        self._faults = faults
        self._unknown: set[str] = set()

    def frame(self, text: bytes, images: tuple[CameraImage, ...]) -> Frame:
        """Return the frame of a file; an actor that is not valid is a fault."""
        tree = to_object(parse(text), 'payload')
        measured = {_SPELLINGS[name]: tree[name] for name in tree if name in _SPELLINGS}
        player = measured.pop(_PLAYER, None)
        agents = to_list(measured.pop(_AGENTS, None), f'$.{_AGENTS}')
        message = FileMeasurements()
        self._parse(measured, message, '$')
        if player is not None:
            self._add_actor(f'$.{_PLAYER}', player, message.player_measurements)
        for i, agent in enumerate(agents):
            found = message.non_player_agents.add()
            if not self._add_actor(f'$.{_AGENTS}[{i}]', agent, found):
                del message.non_player_agents[-1]
        return self.maker.frame(message, status=_status(tree, message), images=images)

    def _add_actor(self, path: str, value: object, actor: Message) -> bool:
        parsed = type(actor)()
        try:
            self._parse(to_object(value, path), parsed, path)
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


def _status(tree: Mapping[str, object], message: Message) -> PlayerStatus:
    """Return what a file says of the player beside its measurements."""
    numbers, controls = np.full(12, np.nan), np.full((3, 3), np.nan)
    switches = np.zeros((3, 2), np.bool_)
    controls[0], switches[0] = control_of(message.player_measurements.autopilot_control)
    numbers[8:] = [_number(tree, name) for name in _PLANNER]
    for row, names in enumerate(_CONTROLS, 1):
        controls[row] = [_number(tree, name) for name in names]
    switches[1:] = [to_flag(tree.get(name, False), f'$.{name}') for name in _SWITCHES]
    others = {name: value for name, value in tree.items()
              if name not in _SPELLINGS and name not in _COMMANDS}
    return PlayerStatus(
        numbers, controls, switches, is_dataset=True,
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
    members = tree if isinstance(tree, dict) else {}
    return {name: float(value) for name, value in members.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)}


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
        elif file.name != _METADATA and not _EPISODE.fullmatch(file.name):
            episode.ignored.append(file)
    episode.measurements.sort()
    numbers = {number for number, _ in episode.measurements}
    for (number, *_), image in sorted(images.items()):
        if number in numbers:
            episode.images.setdefault(number, []).append(image)
        else:
            episode.ignored.append(image.file)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The folders of CARLA's imitation-learning dataset: files in order, images with their measurement.

A dataset has a folder for each episode, or is one such folder: doc/protocol/carla.md#dataset.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
import math
from pathlib import Path
import re
from typing import Annotated

import msgspec

from state_sensor_ros.carla.carla_data import EncodedImage
from state_sensor_ros.carla.carla_decoder import GameClock
from state_sensor_ros.carla.images import image_file_parts, pack_dataset_image
from state_sensor_ros.carla.measurement_framing import join_messages
from state_sensor_ros.errors import reason_of, TrajectoryFormatError
from state_sensor_ros.recordings.files.regular_files import check_regular

_MEASUREMENTS = re.compile(r'measurements_(\d{1,18})\.json')
_EPISODE = re.compile(r'episode_(\d{1,18})')
# A measurement of a thousand agents has 1.5 MB, the largest accepted image at most 67 MB.
_MAX_FILE_BYTES = 67_108_864


@dataclass(slots=True)
class Episode:
    """
    One folder of measurements.

    ``measurements`` number and file of each; ``images`` by number: camera, kind and file of each
    image. Every second measurement has images.
    """

    folder: Path
    measurements: list[tuple[int, Path]] = field(default_factory=list)
    images: dict[int, list[tuple[str, str, Path]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DatasetFrame:
    """
    One measurement with its images, undecoded.

    ``name`` of its file, relative to the dataset's folder; ``payload`` for DatasetDecoder;
    ``game_time`` s since its episode began, NaN where the file has none.
    """

    name: str
    payload: bytes
    game_time: float


def find_episodes(path: Path) -> list[Episode]:
    """
    List the files of a dataset.

    :param path: folder of the dataset or of a single episode.
    :returns: episodes in the order of their numbers, with files in the order of theirs.
    :raises TrajectoryFormatError: where a folder cannot be read, or there are none.
    """
    try:
        episodes = [_list_episode(folder) for folder in (path, *_episode_folders(path))]
    except OSError as error:
        raise TrajectoryFormatError(str(path), reason_of(error),
                                    'folders that can be read') from error
    episodes = [episode for episode in episodes if episode.measurements]
    if not episodes:
        raise TrajectoryFormatError(
            str(path), 'a folder without metadata.yaml and without measurements_NNNNN.json',
            'a bag (`state_sensor repair` completes one that was cut), or a dataset of CARLA')
    return episodes


def read_frames(path: Path, episodes: list[Episode]) -> Iterator[DatasetFrame]:
    """
    Read the frames of a dataset in order.

    :param path: of the dataset; names of frames are relative to it.
    :param episodes: from :func:`find_episodes`.
    :raises TrajectoryFormatError: where a file cannot be read.
    """
    for episode in episodes:
        clock = GameClock()
        for number, file in episode.measurements:
            text = _read(file)
            images = [EncodedImage(camera, kind, _read(image))
                      for camera, kind, image in episode.images.get(number, ())]
            # An empty message would end the frame; a blank is rejected by the decoder as well.
            payload = join_messages((text or b' ', *map(pack_dataset_image, images)))
            yield DatasetFrame(str(file.relative_to(path)), payload, _game_time(text, clock))


_Uint32 = Annotated[int, msgspec.Meta(ge=0, lt=2 ** 32)]


class _TimeMembers(msgspec.Struct, gc=False):
    """The members of a measurement that hold its time, ms, in both spellings."""

    gameTimestamp: _Uint32 = 0  # noqa: N815
    game_timestamp: _Uint32 = 0


_TIME_DECODER = msgspec.json.Decoder(_TimeMembers)


def _game_time(text: bytes, clock: GameClock) -> float:
    try:
        times = _TIME_DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return math.nan
    return clock.seconds(times.gameTimestamp or times.game_timestamp)


def _episode_folders(path: Path) -> list[Path]:
    numbered = [(int(match[1]), folder) for folder in path.iterdir()
                if (match := _EPISODE.fullmatch(folder.name)) and folder.is_dir()]
    return [folder for _, folder in sorted(numbered)]


def _list_episode(folder: Path) -> Episode:
    episode = Episode(folder)
    for file in folder.iterdir():
        match = _MEASUREMENTS.fullmatch(file.name)
        if match is not None:
            episode.measurements.append((int(match[1]), file))
            continue
        parts = image_file_parts(file.name)
        if parts is not None:
            camera, kind, number = parts
            episode.images.setdefault(number, []).append((camera, kind, file))
    episode.measurements.sort()
    for images in episode.images.values():
        images.sort()
    return episode


def _read(file: Path) -> bytes:
    check_regular(file)
    try:
        with file.open('rb') as opened:
            data = opened.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TrajectoryFormatError(str(file), reason_of(error),
                                    'a file that can be read') from error
    if len(data) > _MAX_FILE_BYTES:
        raise TrajectoryFormatError(str(file), f'more than {_MAX_FILE_BYTES} bytes',
                                    'a measurement or an image')
    return data

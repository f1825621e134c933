# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Writer of the folder of a dataset, which gets its name only when it is complete.

Images and points are written as a server sent them, and of a bag as close to that as its
messages have them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
import re
from typing import Final

from state_sensor_ros.simulators import DecodeError, Frame, FrameWriter, WriteOptions
from state_sensor_ros.simulators.carla.carla_data import CarlaData, EncodedImage, Form
from state_sensor_ros.simulators.carla.dataset import METADATA, sensor_file_name
from state_sensor_ros.simulators.carla.dataset_formatting import (
    format_image,
    format_measurement_file,
    format_points,
)
from state_sensor_ros.simulators.carla.metadata_file import format_metadata, is_of_recorder
from state_sensor_ros.simulators.carla.sensor_files import read_sensors
from state_sensor_ros.simulators.carla.sensors import POINTS, Sensor, with_parameters
from state_sensor_ros.simulators.recordings import Own, sink_error, WholeFolder

# Files written here. A folder with any other file is not replaced.
_OWN = re.compile(r'episode_\d{5,}/|(episode_\d{5,}/)?measurements_\d{5,}\.json')
# Those beside a metadata.json that is written here: the images of the collector are not replaced.
_OWN_OF_SENSORS = re.compile(r'(?P<folder>episode_\d{5,}/)?(metadata\.json'
                             r'|[^/]+(RGB|Depth|SemanticSeg)_\d{5,}\.png|[^/]+_\d{5,}\.ply)')
# A metadata.json of a thousand sensors is smaller.
_MAX_METADATA_BYTES = 2 ** 20


class DatasetWriter(FrameWriter):
    """
    Write frames; :meth:`commit`, :meth:`abort` or the end of a ``with`` block finishes.

    A frame that begins another run of the simulator begins an episode. The files of a single
    episode are in the folder itself, those of several in one sub-folder each.

    :param path: path of the folder.
    :param overwrite: whether a dataset of that name may be replaced.
    :param sensors: descriptions of them, as far as they are known, for poses.
    :raises SinkError: when ``path`` exists and may not be replaced, or cannot be written.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False,
                 sensors: Iterable[Sensor] = ()) -> None:
        self.name = str(path)
        self.n_frames = 0
        self._described = {(sensor.name, sensor.kind): sensor for sensor in sensors}
        self._folder = WholeFolder(path, noun='dataset', own=_own_files, force=overwrite)
        self._dataset = self._folder.inside / 'dataset'
        self._episodes: list[Path] = []
        self._sensor_files: SensorFileWriter | None = None
        self._pool = ThreadPoolExecutor(thread_name_prefix='images')
        self._n_in_episode = 0
        self._last: tuple[float, int | None] = (0.0, None)  # game_time and identity

    @property
    def remains(self) -> str:
        """Return a description of the remains of a replaced dataset, ``''`` for none."""
        return self._folder.remains

    def write(self, frame: Frame) -> None:
        """
        Add a frame.

        :param frame: with boxes and a CarlaData, in SI units and REP-103 axes.
        :raises SinkError: when the file cannot be written.
        :raises StateError: if the frame is not one of CARLA.
        """
        text, data = format_measurement_file(frame), frame.extension
        try:
            if not self._episodes or frame.begins_run(*self._last):
                self._episodes.append(self._dataset / f'episode_{len(self._episodes):05d}')
                self._episodes[-1].mkdir(parents=True)
                self._sensor_files = SensorFileWriter(self._episodes[-1], self._pool,
                                                      self._described, _episode_members(data),
                                                      self._leave_out)
                self._n_in_episode = 0
            name = f'measurements_{self._n_in_episode:05d}.json'
            (self._episodes[-1] / name).write_bytes(text)
            if self._sensor_files is not None and isinstance(data, CarlaData):
                self._sensor_files.write(self._n_in_episode, data)
        except OSError as error:
            raise sink_error(self.name, error) from error
        self._last = frame.game_time, frame.identity
        self._n_in_episode += 1
        self.n_frames += 1

    def _leave_out(self, text: str) -> None:
        self.n_left_out += 1
        self.last_left_out = text

    def complete(self) -> None:
        """
        Wait until the files have reached the disk.

        :raises SinkError: when that fails.
        """
        self._pool.shutdown()
        self._folder.complete()

    def commit(self) -> None:
        """
        Complete the dataset and rename its folder to ``path``.

        :raises SinkError: when that fails; the folder is kept beside ``path``.
        """
        self.complete()
        self._folder.commit(self._episodes[0] if len(self._episodes) == 1 else self._dataset)

    def discard(self) -> str:
        """Remove the written files; return a description of files that are left."""
        self._pool.shutdown()
        return self._folder.discard()

    def abort(self) -> None:
        """Remove the written files."""
        self._pool.shutdown()
        self._folder.abort()


def _episode_members(data: object) -> tuple[tuple[str, str], ...]:
    player = data.player if isinstance(data, CarlaData) else None
    return () if player is None or player.dataset is None else player.dataset.episode_members


def _own_files(folder: Path) -> Own:
    """Return whether an entry of ``folder`` is a file of a dataset written here."""
    own_folders: dict[str, bool] = {}

    def is_own(entry: str) -> bool:
        if _OWN.fullmatch(entry):
            return True
        match = _OWN_OF_SENSORS.fullmatch(entry)
        if match is None:
            return False
        place = match['folder'] or ''
        if place not in own_folders:
            own_folders[place] = _is_recorded(folder / place / METADATA)
        return own_folders[place]
    return is_own


def _is_recorded(metadata: Path) -> bool:
    """Return whether a metadata.json is one that is written here."""
    try:
        with metadata.open('rb') as file:
            return is_of_recorder(file.read(_MAX_METADATA_BYTES))
    except (OSError, DecodeError):
        return False


def new_dataset(path: str, options: WriteOptions) -> DatasetWriter:
    """
    Begin a dataset; sensors are described by ``config_file``, else by the recording.

    :raises ConfigError: when ``config_file`` cannot be read.
    :raises SinkError: when ``path`` exists and may not be replaced, or cannot be written.
    """
    from state_sensor_ros.simulators.carla.recording import CarlaBagRecording
    sensors: Iterable[Sensor] = ()
    if options.settings.config_file:
        sensors = read_sensors(options.settings.config_file)
    elif isinstance(options.recording, CarlaBagRecording):
        sensors = options.recording.placed_sensors()
    return DatasetWriter(path, overwrite=options.force,
                         sensors=with_parameters(sensors, options.settings))


# Frames after which an image can still be written beside the measurement of its own frame.
_MAX_NUMBERS: Final = 64


class SensorFileWriter:
    """
    Write what the sensors of a server sent beside the measurements of an episode.

    :param folder: folder of the episode.
    :param pool: threads that compress; zlib and numpy release the lock of the interpreter.
    :param sensors: descriptions by name and kind, as far as they are known.
    :param members: name and JSON text of what describes the episode in its metadata.json.
    :param leave_out: called with a line about a message that is not written.
    """

    def __init__(self, folder: Path, pool: Executor, sensors: Mapping[tuple[str, str], Sensor],
                 members: Sequence[tuple[str, str]], leave_out: Callable[[str], None]) -> None:
        self._folder, self._pool, self._members = folder, pool, members
        self._sensors, self._leave_out = sensors, leave_out
        self._declared: dict[tuple[str, str], tuple[Sensor, tuple[int, int] | None]] = {}
        self._numbers: dict[int, int] = {}
        if members:
            self._write_metadata()

    def write(self, number: int, data: CarlaData) -> None:
        """
        Write the files of a frame.

        :param number: number of its measurement in the episode; an image of an earlier frame gets
            the number of that one.
        :param data: CARLA's data of the frame; what is a file already is not written.
        :raises OSError: if a file cannot be written.
        """
        self._numbers[data.frame_number] = number
        if len(self._numbers) > _MAX_NUMBERS:
            del self._numbers[next(iter(self._numbers))]
        for error in data.sensor_data.errors:
            self._leave_out(str(error))
        files: dict[str, Callable[[], bytes]] = {}
        for image in data.sensor_data.images:
            if image.form is not Form.FILE:
                self._declare(Sensor(image.camera, image.kind, image.fov_deg), image.size)
                name = sensor_file_name(image.camera, image.kind, self._number(image, number))
                self._add(name, partial(format_image, image), files)
        for points in data.sensor_data.points:
            if points.form is not Form.FILE:
                self._declare(Sensor(points.lidar, POINTS), None)
                name = sensor_file_name(points.lidar, POINTS, number)
                self._add(name, partial(format_points, points), files)
        for refusal in self._pool.map(self._write, files.items()):
            if refusal is not None:
                self._leave_out(str(refusal))

    def _number(self, image: EncodedImage, number: int) -> int:
        return number if image.frame_number is None else \
            self._numbers.get(image.frame_number, number)

    def _add(self, name: str, format_: Callable[[], bytes],
             files: dict[str, Callable[[], bytes]]) -> None:
        if files.setdefault(name, format_) is not format_:
            self._leave_out(f'sensor {name.rpartition("_")[0]}: found two sensors with this name '
                            'in the dataset; expected one')

    def _write(self, file: tuple[str, Callable[[], bytes]]) -> DecodeError | None:
        """Write a file; return the reason if its data cannot be encoded."""
        name, format_ = file
        try:
            data = format_()
        except DecodeError as error:
            return error
        (self._folder / name).write_bytes(data)
        return None

    def _declare(self, sensor: Sensor, size: tuple[int, int] | None) -> None:
        """Write the metadata.json again if a sensor is new."""
        key = sensor.name, sensor.kind
        if key not in self._declared:
            known = self._sensors.get(key, sensor)
            self._declared[key] = replace(known, fov_deg=sensor.fov_deg), size
            self._write_metadata()

    def _write_metadata(self) -> None:
        (self._folder / METADATA).write_bytes(
            format_metadata(self._declared.values(), self._members))

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Writer of the images, the points and the metadata.json of one episode of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from state_sensor_ros.simulators import DecodeError
from state_sensor_ros.simulators.carla.carla_data import CarlaData, EncodedImage, Form
from state_sensor_ros.simulators.carla.dataset import METADATA, sensor_file_name
from state_sensor_ros.simulators.carla.metadata_file import format_metadata
from state_sensor_ros.simulators.carla.sensor_formatting import format_image, format_points
from state_sensor_ros.simulators.carla.sensors import POINTS, Sensor

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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Trajectory files that are written: of frames, and of the whole frames of a damaged file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from state_sensor_ros.simulators import (
    counted,
    Frame,
    FrameWriter,
    TrajectoryFormatError,
    TruncatedError,
    Units,
    WriteOptions,
)
from state_sensor_ros.simulators.frame_arrays import DEFAULT_UNITS
from state_sensor_ros.simulators.json_values import is_strict_json
from state_sensor_ros.simulators.monodrive.decoder import (
    conversion_losses,
    format_payload,
)
from state_sensor_ros.simulators.monodrive.trajectory import (
    MAX_ELEMENT_BYTES,
    read_payloads,
    TrajectoryWriter,
)
from state_sensor_ros.simulators.monodrive.wire import GENERATIONS, V2
from state_sensor_ros.simulators.recordings import (
    copy_beginning,
    WholeFile,
)


class TrajectoryOutput(WholeFile, FrameWriter):
    """Frames as the elements of a JSON array."""

    # path: path of the file, ``-`` for standard output.
    # generation: to write, None for that of each frame; v2 of another simulator.
    # units: units of box extents and of ``s``.

    is_timed = False

    def __init__(self, path: str, *, force: bool, generation: str | None = None,
                 units: Units = DEFAULT_UNITS) -> None:
        super().__init__(path, force=force)
        self.n_frames = 0
        # What the generation cannot hold, in the order of its discovery.
        self._lost: dict[str, None] = {}
        self._generation, self._units = generation, units
        self._writer: TrajectoryWriter | None = None

    @property
    def notes(self) -> list[str]:
        """Return a line about what the generation does not carry."""
        return [f'{self._generation} does not carry: {", ".join(self._lost)}'] if self._lost \
            else []

    def write(self, frame: Frame) -> None:
        """Append a frame; ``frame``: in SI units and REP-103 axes."""
        generation = self._generation
        if generation is None and frame.generation not in GENERATIONS:
            generation = self._generation = V2
        if generation is not None and generation != frame.generation:
            self._lost.update(dict.fromkeys(conversion_losses(frame, generation)))
        if self._writer is None:
            # A pipe is opened with its first frame.
            self._writer = TrajectoryWriter(self.handle)
        self._writer.write(format_payload(frame, generation, self._units))
        self.n_frames += 1

    def complete(self) -> None:
        """Finish the array, and wait until everything has reached the disk."""
        if self._writer is not None:
            self._writer.close()
        super().complete()


def new_trajectory(path: str, options: WriteOptions) -> TrajectoryOutput:
    """Begin a trajectory; without the option ``generation``, frames keep theirs."""
    return TrajectoryOutput(path, force=options.force, units=options.units,
                            generation=options.values.get('generation'))


_BLOCK_BYTES = 1024 * 1024


def copy_whole_frames(source: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
    """
    Copy a trajectory up to its last whole frame, and end the array there.

    Frames after a damaged place are copied as well if each frame occupies one line.

    :returns: the number of frames copied; a description of the loss, ``''`` for none.
    """
    n_frames = end = 0
    have_lines = True
    try:
        for payload in read_payloads(source, name):
            n_frames += 1
            end = payload.offset + len(payload.data)
            have_lines = have_lines and b'\n' not in payload.data
    except TrajectoryFormatError as caught:
        error = caught
    else:
        copy_beginning(source, target, source.seek(0, 2))
        return n_frames, ''
    if not n_frames or not _is_array(source):
        raise error
    copy_beginning(source, target, end)
    if isinstance(error, TruncatedError):
        lost = error.lost
    else:
        n_lost = source.seek(0, 2) - end
        source.seek(end)
        for frame in _frames_on_lines(source) if have_lines else ():
            target.write(b',\n' + frame)
            n_frames += 1
            n_lost -= len(frame)
        place = error.where.removeprefix(f'{name}: ')
        lost = f'{counted(n_lost, "byte")} at {place} or after it, which has {error.found}'
    target.write(b'\n]\n')
    return n_frames, lost


def _is_array(source: BinaryIO) -> bool:
    source.seek(0)
    return source.read(_BLOCK_BYTES).lstrip(b'\xef\xbb\xbf \t\r\n').startswith(b'[')


def _frames_on_lines(source: BinaryIO) -> Iterator[bytes]:
    while line := source.readline(MAX_ELEMENT_BYTES):
        text = line.strip(b', \t\r\n')
        if text.startswith(b'{') and is_strict_json(text):
            yield text

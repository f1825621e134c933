# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A trajectory as a recording, and any recording as the JSON that Replay Mode takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import io
import math
import os
import stat
import sys
from typing import BinaryIO, NamedTuple, TYPE_CHECKING

from state_sensor_ros.payloads import Packet
from state_sensor_ros.simulators import (
    DecodeError,
    Frame,
    FrameFile,
    LOST,
    ReadOptions,
    RecordingReader,
    TrajectoryFormatError,
    TruncatedError,
    Units,
)
from state_sensor_ros.simulators.frame_arrays import DEFAULT_UNITS
from state_sensor_ros.simulators.json_values import is_strict_json
from state_sensor_ros.simulators.monodrive.decoder import (
    conversion_losses,
    Decoder,
    format_payload,
    FrameDecoder,
)
from state_sensor_ros.simulators.monodrive.trajectory import Payload, read_payloads, TRAJECTORY
from state_sensor_ros.simulators.monodrive.wire import GENERATIONS
from state_sensor_ros.simulators.recordings import (
    compression_of,
    decompressed,
    format_of,
    format_of_name,
    open_any,
    open_positioned,
    READ_DEFAULTS,
    STANDARD_INPUT,
)

if TYPE_CHECKING:
    from state_sensor_ros.simulators.recordings import DecompressedFile


class _Texts:
    """Checks that a frame is JSON while it is decoded: one pass, not two."""

    # decoder: decoder of the recording. If it decoded the frame before, it decodes the next one
    # here already, so that the text is parsed once.

    def __init__(self, decoder: Decoder) -> None:
        self._decoder, self._text = decoder, b''

    def is_json(self, text: bytes) -> bool:
        """Return whether a text is strict JSON."""
        if self._text and self._decoder.is_at(self._text) \
                and not math.isnan(self._decoder.read_ahead(text)):
            self._text = text
            return True
        self._text = text
        return is_strict_json(text)


class TrajectoryRecording(FrameFile):
    """A trajectory file, or standard input for ``-``."""

    # path: opened here, so that what is missing is missed at once.

    unit = 'B'
    payload = b''  # text of the last frame
    n_bytes = 0  # of the frames so far

    def __init__(self, path: str, units: Units = DEFAULT_UNITS) -> None:
        self._units = units
        super().__init__(path, 'trajectory', 'monodrive')
        self._file: BinaryIO = sys.stdin.buffer
        self._last: Payload | None = None
        if path != STANDARD_INPUT:
            self._file = open_positioned(path)
            status = os.fstat(self._file.fileno())
            # A pipe has no size and no beginning to go back to.
            self.total = status.st_size if stat.S_ISREG(status.st_mode) else None

    def mark(self) -> Payload | None:
        """Return the last text, None unless the file can be read from its end on."""
        return self._last

    def read(self, mark: Payload | None) -> Iterator[Frame]:
        """Yield a frame for each element of the array."""
        decoder = FrameDecoder(self._units, self.faults)
        self.n_bytes = 0
        for text in self.texts(_Texts(decoder.decoder).is_json, mark):
            self.faults.place = f'line {text.line} column {text.column}'
            self.payload, self.n_bytes = text.data, self.n_bytes + len(text.data)
            try:
                yield from decoder.frames(Packet(text.data, math.nan, 0, 0), details=self.details)
            except DecodeError as error:
                self.faults.add(LOST, error)

    def texts(self, is_json: Callable[[bytes], bool] = is_strict_json,
              mark: Payload | None = None) -> Iterator[Payload]:
        """Yield the text of each element of the array, those after a mark."""
        if self.total is not None:
            self._file.seek(0)
        content, compressed = self._content()
        n_frames = 0
        try:
            for payload in read_payloads(content, self.name, is_json=is_json, after=mark):
                n_frames += 1
                if compressed is None:
                    self.position = payload.offset + len(payload.data)
                    self._last = payload if self.total is not None else None
                else:
                    self.position = compressed.n_read
                yield payload
        except TruncatedError as error:
            if compressed is not None:
                compressed.check_undamaged(error.where)
            raise
        if compressed is not None and compressed.fault:
            # After the end of the array.
            compressed.check_undamaged(self.name)
            raise TruncatedError(self.name, compressed.fault, 'its end', n_frames=n_frames, end=0,
                                 lost='nothing but the end of the compressed data')

    def _content(self) -> tuple[BinaryIO, DecompressedFile | None]:
        if isinstance(self._file, io.BufferedReader) and compression_of(self._file.peek(4)):
            return decompressed(self._file)
        return self._file, None

    def close(self) -> None:
        if self._file is not sys.stdin.buffer:
            self._file.close()


def open_trajectory(path: str, options: ReadOptions) -> TrajectoryRecording:
    return TrajectoryRecording(path, options.units)


# Names of formats that lack parts of a frame.
_TABLES = frozenset(('parquet', 'csv'))


def check_no_table(path: str) -> None:
    """Check that a recording is not a table, which lacks parts of a frame."""
    found = format_of_name(path)
    if found is not None and found.name in _TABLES:
        raise TrajectoryFormatError(path, 'a table', 'a trajectory, a bag or another '
                                    'recording with whole frames; '
                                    '`state_sensor convert` makes a trajectory of a .parquet file')


def is_trajectory(path: str) -> bool:
    """Return whether a recording is none of another format."""
    return format_of(path) == TRAJECTORY


class JsonFrame(NamedTuple):
    """One frame as the JSON that Replay Mode takes."""

    text: bytes
    game_time: float  # s, NaN if unknown
    place: str  # in the recording, in words
    number: int  # from 0


class JsonRecording:
    """The frames of a bag or a dataset as JSON; those of a trajectory as they are in the file."""

    # path: path of a recording of any format, ``-`` for a trajectory on standard input.

    def __init__(self, path: str, generation: str,
                 options: ReadOptions = READ_DEFAULTS) -> None:
        check_no_table(path)
        self._recording: RecordingReader = TrajectoryRecording(path) if is_trajectory(path) \
            else open_any(path, options)
        self.lost: dict[str, None] = {}
        self.name, self.format_name = self._recording.name, self._recording.format_name
        self.total, self.unit = self._recording.total, self._recording.unit
        self._generation = generation

    @property
    def cut(self) -> TruncatedError | None:
        """Return what is missing at the end, after the last frame."""
        return self._recording.cut

    @property
    def position(self) -> int:
        """Return the amount of the recording before the end of the last frame."""
        return self._recording.position

    def frames(self) -> Iterator[JsonFrame]:
        """Yield the frames; raise TrajectoryFormatError for one that is none."""
        recording = self._recording
        recording.is_timed = False
        for number, frame in enumerate(recording.frames()):
            place = recording.faults.place or f'frame {number}'
            for fault in recording.faults.take():
                if fault.kind == LOST:
                    raise TrajectoryFormatError(
                        f'{self.name}: {fault.place}: {fault.error.where}', fault.error.found,
                        fault.error.expected)
            generation = None
            if frame.generation not in GENERATIONS:
                generation = self._generation
                self.lost.update(dict.fromkeys(conversion_losses(frame, generation)))
            text = recording.payload if isinstance(recording, TrajectoryRecording) \
                else format_payload(frame, generation)
            yield JsonFrame(text, frame.game_time, place, number)

    def close(self) -> None:
        """Close the recording; a second call has no effect."""
        self._recording.close()

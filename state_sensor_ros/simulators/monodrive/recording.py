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

from collections.abc import Iterator
from dataclasses import replace
import io
import math
import os
import stat
import sys
from typing import BinaryIO, TYPE_CHECKING

import msgspec

from state_sensor_ros.simulators import (
    decode_packet,
    Packet,
    ReadOptions,
    RecordedFrame,
    RecordingReader,
    restated,
    TrajectoryFormatError,
    TruncatedError,
    Units,
)
from state_sensor_ros.simulators.frame_arrays import DEFAULT_UNITS
from state_sensor_ros.simulators.json_values import is_strict_json, NOT_TYPED
from state_sensor_ros.simulators.monodrive.decoder import (
    conversion_losses,
    Decoder,
    format_payload,
)
from state_sensor_ros.simulators.monodrive.trajectory import read_payloads, TRAJECTORY
from state_sensor_ros.simulators.monodrive.wire import GENERATIONS
from state_sensor_ros.simulators.recordings import (
    compression_of,
    decompressed,
    format_of,
    format_of_name,
    open_any,
    open_positioned,
    READ_DEFAULTS,
    read_range,
    STANDARD_INPUT,
    TimedRecording,
)

if TYPE_CHECKING:
    from state_sensor_ros.simulators.recordings import DecompressedFile


class _Head(msgspec.Struct, gc=False):
    """Where v0, v1 and v2 name their time."""

    game_time: float | None = None


class _Inner(msgspec.Struct, gc=False):
    """Where v1t names its time: in each actor."""

    frame: list[_Head]


_HEAD = msgspec.json.Decoder(_Head)
_INNER = msgspec.json.Decoder(_Inner)


def game_time_of(payload: bytes) -> float:
    """Look for the time of a frame without decoding it."""
    # Returns s, NaN if there is none or the payload is irregular.
    try:
        game_time = _HEAD.decode(payload).game_time
        if game_time is None:
            game_time = next((actor.game_time for actor in _INNER.decode(payload).frame), None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return math.nan
    return math.nan if game_time is None else game_time


class _Clocks:
    """Times of frames, read while it is checked whether a frame is JSON: one pass, not two."""

    # decoder: decoder of the recording. If it decoded the frame before, it decodes the next one
    # here already, so that the text is parsed once.

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._text, self._game_time = b'', math.nan

    def is_json(self, text: bytes) -> bool:
        """Return whether a text is strict JSON, and keep its time."""
        if self._text and self._decoder.is_at(self._text):
            clock_s = self._decoder.read_ahead(text)
            if not math.isnan(clock_s):
                self._text, self._game_time = text, clock_s
                return True
        try:
            game_time = _HEAD.decode(text).game_time
        except NOT_TYPED:
            return is_strict_json(text)
        if game_time is not None:
            self._text, self._game_time = text, game_time
        return True

    def of(self, payload: bytes) -> float:
        """Return the time of a frame as :func:`game_time_of`."""
        return self._game_time if payload == self._text else game_time_of(payload)


class TrajectoryRecording(TimedRecording):
    """A trajectory file, or standard input for ``-``."""

    # path: opened here, so that what is missing is missed at once.

    unit = 'B'

    def __init__(self, path: str, units: Units = DEFAULT_UNITS) -> None:
        self._units = units
        super().__init__(path, 'trajectory', 'monodrive')
        self._file: BinaryIO = sys.stdin.buffer
        if path != STANDARD_INPUT:
            self._file = open_positioned(path)
            status = os.fstat(self._file.fileno())
            # A pipe has no size and no beginning to go back to.
            self.total = status.st_size if stat.S_ISREG(status.st_mode) else None

    def new_decoder(self) -> Decoder:
        """Make a decoder of all frame generations."""
        return Decoder(self._units)

    def entries(self) -> Iterator[RecordedFrame]:
        """Yield a frame for each element of the array."""
        if self.total is not None:
            self._file.seek(0)
        content, compressed = self._content()
        assert isinstance(self.decoder, Decoder)
        clocks, n_frames = _Clocks(self.decoder), 0
        try:
            for payload in read_payloads(content, self.name, is_json=clocks.is_json):
                n_frames += 1
                clock_s, n_bytes = clocks.of(payload.data), len(payload.data)
                yield RecordedFrame(Packet(payload.data, clock_s, 0, 0), clock_s, payload.index,
                                    f'line {payload.line} column {payload.column}',
                                    payload.offset + n_bytes if compressed is None
                                    else compressed.n_read,
                                    (payload.offset, n_bytes)
                                    if compressed is None and self.total is not None else None)
        except TruncatedError as error:
            if compressed is not None:
                compressed.check_undamaged(error.where)
            raise
        if compressed is not None and compressed.fault:
            # After the end of the array.
            compressed.check_undamaged(self.name)
            raise TruncatedError(self.name, compressed.fault, 'its end', n_frames=n_frames, end=0,
                                 lost='nothing but the end of the compressed data')

    def payload_at(self, byte_range: tuple[int, int]) -> bytes:
        """Return the text of a frame of a file that is not compressed."""
        return read_range(self._file, self.name, byte_range)

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
        self.simulator, self.decoder = self._recording.simulator, self._recording.decoder
        self.total, self.unit = self._recording.total, self._recording.unit
        self.new_decoder = self._recording.new_decoder
        self._generation = generation

    @property
    def cut(self) -> TruncatedError | None:
        """Return what is missing at the end, after the last frame."""
        return self._recording.cut

    def frames(self) -> Iterator[RecordedFrame]:
        if isinstance(self._recording, TrajectoryRecording):
            yield from self._recording.frames()
            return
        for recorded in self._recording.frames():
            for payload in self._payloads(recorded):
                yield replace(recorded, packet=Packet(
                    payload, recorded.packet.game_time, recorded.packet.time,
                    recorded.packet.sample_count))

    def _payloads(self, recorded: RecordedFrame) -> Iterator[bytes]:
        with restated(TrajectoryFormatError, f'{self.name}: {recorded.place}'):
            decoded = decode_packet(self.decoder, recorded.packet)
        for frame in (payload.frame for payload in decoded):
            generation = None
            if frame.generation not in GENERATIONS:
                generation = self._generation
                self.lost.update(dict.fromkeys(conversion_losses(frame, generation)))
            yield format_payload(frame, generation)

    def close(self) -> None:
        """Close the recording; a second call has no effect."""
        self._recording.close()

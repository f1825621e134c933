# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Trajectory files, a JSON array of frames: read and written frame by frame in constant memory.

The format is in doc/protocol/trajectories.md. Frames are not decoded. The reader looks for their
ends line by line first, from the first frame that does not occupy one line on by its brackets
(scanner.py).
"""

from __future__ import annotations

from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Callable, Iterator
from dataclasses import dataclass
import re
from typing import BinaryIO

import msgspec

from state_sensor_ros.simulators import (
    counted,
    DecodeError,
    EVERY_PART,
    Format,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.simulators.json_values import (
    check_encoding,
    is_strict_json,
    JsonError,
    parse_payload,
    repaired,
)
from state_sensor_ros.simulators.monodrive.scanner import (
    BracketScanner,
    frame_end_on_line,
    INCOMPLETE,
    NO_LINE,
)
from state_sensor_ros.simulators.monodrive.single_actors import STRING_KEY
from state_sensor_ros.simulators.monodrive.wire import GENERATIONS

TRAJECTORY = Format(
    name='json', noun='a trajectory', suffixes=('.json', '.json.gz', '.json.zst'),
    generations=GENERATIONS, writes=frozenset(('generation',)), carries=EVERY_PART,
    reader='state_sensor_ros.simulators.monodrive.recording:open_trajectory',
    writer='state_sensor_ros.simulators.monodrive.trajectory_writer:new_trajectory',
    repair='state_sensor_ros.simulators.monodrive.trajectory_writer:copy_whole_frames')
# As ``max_frame_bytes``, the limit of a packet: no longer frame can have been recorded.
MAX_ELEMENT_BYTES = 64 * 1024 * 1024
# Large enough to amortize numpy's calls, small enough for the processor's cache.
_CHUNK_BYTES = 256 * 1024
# A longer line is that of a whole file rather than of a frame.
_MAX_LINE_BYTES = 4 * 1024 * 1024
_MAX_SHOWN = 40

_BLANK = re.compile(rb'[ \t\r\n]*')
# No text has these characters.
_CONTROL = re.compile(rb'[\x00-\x08\x0e-\x1f]')
_N_LOOKED_AT = 16
_EXPECTED = ('a JSON array of frames, or an unpacked file with the suffix of its format '
             '(.osi, .mcap)')
# Bytes of a mark of UTF-32.
_LONGEST_MARK = 4

# Members of a closed-loop scenario, a file that is sometimes confused with a trajectory.
_SCENARIO_KEYS = frozenset({'vehicles', 'trigger_boxes', 'tagged_actors'})

ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Payload:
    """One frame of a trajectory as it is in the file."""

    data: bytes  # JSON text
    index: int  # from 0
    offset: int  # bytes before it
    line: int  # line, column: 1-based, of its first byte, columns counted in bytes
    column: int

    def error(self, name: str, error: DecodeError) -> TrajectoryFormatError:
        """Return an error with the place in the file, for a frame that cannot be decoded."""
        line, column = self.line, self.column
        if isinstance(error, JsonError):
            column = error.column + (self.column - 1 if error.line == 1 else 0)
            line += error.line - 1
            return TrajectoryFormatError(_place(name, line, column), error.found, error.expected)
        return TrajectoryFormatError(f'{_place(name, line, column)}: frame {self.index}: '
                                     f'{error.where}', error.found, error.expected)


def _place(name: str, line: int, column: int) -> str:
    return f'{name}: line {line} column {column}'


def read_payloads(handle: BinaryIO, name: str, *,
                  is_json: Callable[[bytes], bool] = is_strict_json,
                  after: Payload | None = None) -> Iterator[Payload]:
    """
    Split a trajectory into its frames, undecoded; ``after`` one of them those behind it.

    A file with a single frame and no array is a trajectory of one. NaN, Infinity and single quotes
    are accepted, as in payloads.
    """
    return _Reader(handle, name, is_json, after).payloads()


class _Reader:
    """Position in a file, and the bytes that were read but not yielded."""

    def __init__(self, handle: BinaryIO, name: str, is_json: Callable[[bytes], bool],
                 after: Payload | None = None) -> None:
        self._handle = handle
        self._name = name
        self._is_json = is_json
        self._buffer = bytearray()
        # Place of the first byte in the buffer.
        self._offset, self._line, self._column = 0, 1, 1
        self._n_scanned = 0
        self._index = 0
        self._end = 0
        self._after = after

    def payloads(self) -> Iterator[Payload]:
        """Yield the frames; the file may contain one array or one frame, and nothing else."""
        outer = self._begin() if self._after is None else self._go_on(self._after)
        if outer:
            yield from self._on_own_lines()
        scanner = BracketScanner(outer, depth=outer)
        while True:
            ends, end_of_array = self._scan(scanner)
            for end in ends:
                yield self._element(end, outer)
                if not outer:
                    return self._finish('the end of the file (`jq -s . FILE` makes an array of '
                                        'frames that follow each other)')
            if end_of_array is not None:
                self._skip_blank()
                self._expect(self._offset == end_of_array - 1, "'{' or ']'")
                self._consume(1)
                return self._finish()
            if len(self._buffer) > MAX_ELEMENT_BYTES:
                raise self._without_end(is_too_long=True)
            if not self._fill():
                raise self._without_end(is_too_long=False)

    def _go_on(self, after: Payload) -> int:
        """Begin at the end of a frame of an array."""
        n_bytes, n_lines = len(after.data), after.data.count(b'\n')
        self._offset = self._end = after.offset + n_bytes
        self._handle.seek(self._offset)
        self._index, self._line = after.index + 1, after.line + n_lines
        self._column = n_bytes - after.data.rfind(b'\n') if n_lines else after.column + n_bytes
        return 1

    def _on_own_lines(self) -> Iterator[Payload]:
        """Yield frames up to the first that does not occupy one line."""
        text = b''

        def is_json(frame: bytes) -> bool:
            nonlocal text
            text = frame
            return self._is_json(frame)

        while (end := frame_end_on_line(self._buffer, is_first=not self._index,
                                        is_json=is_json)) != NO_LINE:
            if end != INCOMPLETE:
                yield self._element(self._offset + end, 1, text)
            elif len(self._buffer) > min(_MAX_LINE_BYTES, MAX_ELEMENT_BYTES) or not self._fill():
                break
        self._n_scanned = 0

    def _fill(self) -> bool:
        """Read the next bytes of the file; return False at its end."""
        chunk = self._handle.read(_CHUNK_BYTES)
        self._buffer += chunk
        return bool(chunk)

    def _consume(self, n_bytes: int, taken: bytes = b'') -> bytes:
        """Remove bytes, ``taken`` if they were copied, return them, update the position."""
        # Without the copy that a slice of the buffer would be.
        taken = taken or bytes(memoryview(self._buffer)[:n_bytes])
        del self._buffer[:n_bytes]
        self._offset += n_bytes
        self._n_scanned -= n_bytes
        # A search takes a tenth of the time of a count: a frame that occupies one line has none.
        if b'\n' in taken:
            self._line += taken.count(b'\n')
            self._column = n_bytes - taken.rfind(b'\n')
        else:
            self._column += n_bytes
        return taken

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self._buffer)
        if blank is not None and blank.end():
            self._consume(blank.end())

    def _expect(self, is_so: bool, expected: str) -> None:
        """Raise an error at the first byte in the buffer unless ``is_so``."""
        if not is_so:
            raise TrajectoryFormatError(_place(self._name, self._line, self._column),
                                        _shown(self._buffer), expected)

    def _begin(self) -> int:
        """Skip the beginning; return the depth around the frames, 1 in an array and 0 without."""
        while len(self._buffer) < _LONGEST_MARK and self._fill():
            pass
        try:
            check_encoding(self._buffer, self._name)
        except DecodeError as error:
            raise TrajectoryFormatError(error.where, error.found, error.expected) from None
        if self._buffer.startswith(BOM_UTF8):
            del self._buffer[:len(BOM_UTF8)]
            self._offset = len(BOM_UTF8)
        self._skip_blank()
        while not self._buffer and self._fill():
            self._skip_blank()
        if not self._buffer:
            raise TruncatedError(self._name, 'an empty file', 'a JSON array of frames', n_frames=0,
                                 end=0, lost='nothing')
        if _CONTROL.search(self._buffer, 0, _N_LOOKED_AT):
            raise TrajectoryFormatError(self._name, 'binary data', _EXPECTED)
        self._expect(self._buffer.startswith((b'[', b'{')), _EXPECTED)
        is_array = self._buffer.startswith(b'[')
        if is_array:
            self._consume(1)
        self._n_scanned = 0
        return int(is_array)

    def _scan(self, scanner: BracketScanner) -> tuple[list[int], int | None]:
        """Find the ends of frames in the bytes read since the last call."""
        # Returns offsets after the frames that end here; offset after the array if it ends here.
        begin = self._offset + self._n_scanned
        ends, depths, n_scanned = scanner.scan(bytes(self._buffer[self._n_scanned:]))
        self._n_scanned += n_scanned
        ends = [begin + end for end in ends]
        # Brackets after that of the array are ignored here.
        i_last = next((i for i, depth in enumerate(depths) if depth < scanner.outer), len(ends))
        return ends[:i_last], (ends[i_last] if i_last < len(ends) else None)

    def _element(self, end: int, outer: int, text: bytes = b'') -> Payload:
        """Remove the frame that ends before offset ``end``: ``text`` if it was checked."""
        self._begin_frame()
        offset, line, column = self._offset, self._line, self._column
        payload = Payload(self._consume(end - offset, text), self._index, offset, line, column)
        if not text:
            self._check(payload)
        if not outer:
            self._check_no_scenario(payload)
        self._index += 1
        self._end = end
        return payload

    def _check(self, payload: Payload) -> None:
        if self._is_json(payload.data):
            return
        try:
            # Not strict JSON: the decoder may accept it.
            parse_payload(payload.data)
        except DecodeError as error:
            raise payload.error(self._name, error) from None

    def _check_no_scenario(self, payload: Payload) -> None:
        value = parse_payload(payload.data)
        members = value.keys() if isinstance(value, dict) else set()
        found = _SCENARIO_KEYS & members
        if found and not members & {'frame', STRING_KEY}:
            raise TrajectoryFormatError(
                _place(self._name, payload.line, payload.column),
                f'a closed-loop scenario (member {min(found)!r})', 'a JSON array of frames')

    def _finish(self, expected: str = 'the end of the file') -> None:
        self._skip_blank()
        while not self._buffer and self._fill():
            self._skip_blank()
        self._expect(not self._buffer, expected)

    def _without_end(self, *, is_too_long: bool) -> TrajectoryFormatError:
        """Return the error for a frame or an array without end, or for an earlier fault in it."""
        self._begin_frame()
        payload = Payload(bytes(self._buffer), self._index, self._offset, self._line, self._column)
        error = _fault_before_end(payload.data)
        if error is not None:
            return payload.error(self._name, error)
        begun_at, lost = f'frame {self._index}', 'nothing but the end of the array'
        if payload.data:
            begun_at += f', begun at line {payload.line} column {payload.column}'
            lost = f'{counted(len(payload.data), "byte")} of {begun_at}'
        self._consume(len(self._buffer))
        place = _place(self._name, self._line, self._column)
        if is_too_long:
            return TrajectoryFormatError(
                place, f'more than {MAX_ELEMENT_BYTES} bytes in {begun_at}', 'a frame')
        return TruncatedError(
            place, f'the end of the file in {begun_at}', "']' at the end of the array",
            n_frames=self._index, end=self._end, lost=lost)

    def _begin_frame(self) -> None:
        """Skip what stands before a frame, as far as it was read."""
        self._skip_blank()
        if self._index and self._buffer:
            self._expect(self._buffer.startswith(b','), "',' or ']'")
            self._consume(1)
            self._skip_blank()
        self._expect(not self._buffer or self._buffer.startswith(b'{'), "'{', a frame")


def _fault_before_end(text: bytes) -> DecodeError | None:
    """Return the first fault in the beginning of a frame, apart from the missing end."""
    try:
        # Without an incomplete character at the end.
        parse_payload(getincrementaldecoder('utf-8')().decode(text).encode())
    except UnicodeDecodeError as error:
        return DecodeError(f'byte {error.start}', f'0x{text[error.start]:02x}', 'UTF-8')
    except JsonError as error:
        return None if error.is_at_end else error
    except DecodeError as error:
        return error
    return None


def _shown(text: bytearray) -> str:
    start = bytes(text[:_MAX_SHOWN]).decode('utf-8', 'replace')
    return repr(start) if text else 'the end of the file'


class TrajectoryWriter:
    """Write frames as the elements of one JSON array, unchanged."""

    def __init__(self, handle: BinaryIO) -> None:
        self._handle = handle
        self._is_closed = False
        self.n_frames = 0

    def write(self, payload: bytes) -> None:
        """
        Write a payload; of an array of frames, each of them.

        A payload that is not strict JSON (NaN, single quotes, BOM) is rewritten as strict JSON.

        :param payload: UTF-8.
        """
        text = (payload if is_strict_json(payload) else repaired(payload)).strip()
        frames = [bytes(frame) for frame in ELEMENTS.decode(text)] if text.startswith(b'[') \
            else [text]
        for frame in frames:
            self._handle.write((b',\n' if self.n_frames else b'[\n') + frame)
            self.n_frames += 1

    def close(self) -> None:
        """Write the end of the array; a second call has no effect."""
        if not self._is_closed:
            self._is_closed = True
            self._handle.write(b'\n]\n' if self.n_frames else b'[]\n')


def complete_trajectory(handle: BinaryIO) -> int:
    """Complete a trajectory whose writer was killed: keep the whole frames, end the array."""
    n_frames = 0
    try:
        for _ in read_payloads(handle, 'trajectory'):
            n_frames += 1
    except TruncatedError as error:
        handle.seek(error.end)
        handle.truncate()
        handle.write(b'\n]\n' if n_frames else b'[]\n')
    return n_frames

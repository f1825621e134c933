# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
r"""
Trajectory files, a JSON array of frames: read and written frame by frame in constant memory.

The format is in doc/protocol/trajectories.md. The ends of frames are searched line by line first,
as most files have a frame on each; from the first frame that does not occupy one line on, the
closing brackets are searched with numpy. Example, ``[{"a": "]\""}, 3]``::

    text        [  {  "  a  "  :     "  ]  \  "  "  }  ,     3  ]
    escaped     [  {  "  a  "  :     "  ]  _  _  "  }  ,     3  ]     each escape is replaced
    class      +1 +1  "  .  "  .  .  " -1  .  .  " -1  .  .  . -1     one table look-up per byte
    n_quotes    0  0  1  .  2  .  .  3  3  .  .  4  4  .  .  .  4     odd: inside a string
    step       +1 +1  0  .  0  .  .  0  0  .  .  0 -1  .  .  . -1     class outside of strings
    depth       1  2  2  .  2  .  .  2  2  .  .  2  1  .  .  .  0     sum of the steps

A ``}`` with depth 1 ends a frame. From one piece of the text to the next, the depth and "in
string" are carried over.
"""

from __future__ import annotations

from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Callable, Iterator
from dataclasses import dataclass
import os
import re
import stat
import sys
from typing import BinaryIO, Generic, NamedTuple, TypeVar

import numpy as np

from state_sensor_ros.errors import DecodeError, TrajectoryFormatError, TruncatedError
from state_sensor_ros.files import ReadOptions, STANDARD_INPUT, WriteOptions
from state_sensor_ros.files.input import decompressed, open_input
from state_sensor_ros.files.output import WholeFile
from state_sensor_ros.files.recording import FrameFile, FrameWriter
from state_sensor_ros.frame import Frame
from state_sensor_ros.simulators import json_text
from state_sensor_ros.simulators.monodrive.encoding import encode, losses, written_as
from state_sensor_ros.simulators.monodrive.frames import Decoder
from state_sensor_ros.source import LOST
from state_sensor_ros.texts import counted, MAX_SHOWN

# As ``max_frame_bytes``, the limit of a packet: no longer frame can have been recorded.
MAX_ELEMENT_BYTES = 64 * 1024 * 1024
# Large enough to amortize numpy's calls, small enough for the processor's cache.
_CHUNK_BYTES = 256 * 1024
# A longer line is that of a whole file rather than of a frame.
_MAX_LINE_BYTES = 4 * 1024 * 1024
_BLANK, _LEAD = re.compile(rb'[ \t\r\n]*'), re.compile(rb'[ \t\r\n]*(,?)[ \t\r\n]*')
_N_LOOKED_AT = 16
_EXPECTED = ('a JSON array of frames, or an unpacked file with the suffix of its format '
             '(.osi, .mcap)')
_OPEN, _CLOSE, _QUOTE = 1, -1, 2
_CLASSES = bytes({**dict.fromkeys(range(256), 0), **dict.fromkeys(b'{[', _OPEN),
                  **dict.fromkeys(b'}]', _CLOSE % 256), ord('"'): _QUOTE}.values())
_ESCAPED = re.compile(rb'\\.', re.DOTALL)
_READ, _WRITE = ReadOptions(), WriteOptions()

Value = TypeVar('Value')


class Place(NamedTuple):
    """A place between two bytes of a file."""

    offset: int = 0  # bytes before it
    line: int = 1  # line, column: 1-based, columns counted in bytes
    column: int = 1
    number: int = 0  # frames before it

    def __str__(self) -> str:
        return f'line {self.line} column {self.column}'


@dataclass(frozen=True, slots=True)
class Element(Generic[Value]):
    """One frame of a trajectory as it is in the file."""

    text: bytes
    value: Value | None  # as parsed, None or False for text that is not strict JSON
    begin: Place
    end: Place


def read_elements(handle: BinaryIO, name: str, parse: Callable[[bytes], Value | None],
                  mark: Place | None = None) -> Iterator[Element[Value]]:
    """
    Split a trajectory into its frames; a single frame without array is a trajectory of one.

    :param parse: returns the value of a text, None or False if it is not strict JSON.
    :param mark: end of a frame of an array, to begin there.
    :raises TruncatedError: after the whole frames, if the end is missing.
    :raises TrajectoryFormatError: if the text is not JSON, or no trajectory.
    """
    return _Splitter(handle, name, parse, mark).elements()


class _Splitter(Generic[Value]):
    """Position in a file, and the bytes that were read but not yielded."""

    def __init__(self, handle: BinaryIO, name: str,
                 parse: Callable[[bytes], Value | None], mark: Place | None) -> None:
        self._handle, self._name, self._parse, self._mark = handle, name, parse, mark
        self._buffer = bytearray()
        # Place of the first byte in the buffer, and offset after the last frame.
        self._here = mark or Place()
        self._end = self._here.offset
        # Of the search for brackets: its beginning in the buffer, and what is carried over.
        self._n_scanned = self._depth = 0
        self._in_string = False

    def elements(self) -> Iterator[Element[Value]]:
        """Yield the frames; the file may contain one array or one frame, and nothing else."""
        outer = self._depth = self._begin() if self._mark is None else 1
        if self._mark is not None:
            self._handle.seek(self._here.offset)
        if outer:
            yield from self._on_own_lines()
        while True:
            for end, depth in self._closing(outer):
                if depth < outer:
                    self._skip_blank()
                    self._expect(self._here.offset == end - 1, "'{' or ']'")
                    self._consume(b']')
                    return self._finish('the end of the file')
                self._begin_frame()
                yield self._element(bytes(memoryview(self._buffer)[:end - self._here.offset]))
                if not outer:
                    return self._finish('the end of the file (`jq -s . FILE` makes an array of '
                                        'frames that follow each other)')
            if len(self._buffer) > MAX_ELEMENT_BYTES:
                raise self._without_end(is_too_long=True)
            if not self._fill():
                raise self._without_end(is_too_long=False)

    def _on_own_lines(self) -> Iterator[Element[Value]]:
        """Yield frames up to the first that does not occupy one line."""
        while True:
            lead = _LEAD.match(self._buffer)
            assert lead is not None
            begin, end = lead.end(), -1
            if begin < len(self._buffer):
                # A frame that does not begin a line is not expected to end one.
                if bool(lead[1]) != bool(self._here.number) or b'\n' not in lead[0] \
                        or not self._buffer.startswith(b'{', begin):
                    return
                end = self._buffer.find(b'\n', begin)
            if end >= 0:
                text = bytes(memoryview(self._buffer)[begin:end]).rstrip(b', \t\r')
                # Text that is JSON up to the end of its line is a whole frame.
                if not (value := self._parse(text)):
                    return
                self._consume(lead[0])
                yield self._element(text, value)
            elif len(self._buffer) > _MAX_LINE_BYTES or not self._fill():
                return

    def _closing(self, outer: int) -> list[tuple[int, int]]:
        """Return the offsets after the brackets that close frames or the array, and the depths."""
        text, begin = bytes(memoryview(self._buffer)[self._n_scanned:]), \
            self._here.offset + self._n_scanned
        if b'\\' in text:
            # A backslash at the end is scanned with the next piece.
            text = _ESCAPED.sub(b'__', text).removesuffix(b'\\')
        self._n_scanned += len(text)
        classes = np.frombuffer(text.translate(_CLASSES), np.int8)
        # The search in booleans takes half the time of that in int8.
        at = np.flatnonzero(classes != 0)
        kinds = classes[at]
        is_quote = kinds == _QUOTE
        # Only the parity is used, so the sum may wrap.
        n_quotes = np.cumsum(is_quote, dtype=np.uint8) + np.uint8(self._in_string)
        steps = np.where((n_quotes & 1).astype(np.bool_) | is_quote, np.int8(0), kinds)
        depths = np.cumsum(steps, dtype=np.int32) + self._depth
        if len(at):
            self._in_string, self._depth = bool(n_quotes[-1] & 1), int(depths[-1])
        found = np.flatnonzero((steps == _CLOSE) & (depths <= outer))
        return list(zip((at[found] + (begin + 1)).tolist(), depths[found].tolist(), strict=True))

    def _fill(self) -> bool:
        """Read the next bytes of the file; return False at its end."""
        chunk = self._handle.read(_CHUNK_BYTES)
        self._buffer += chunk
        return bool(chunk)

    def _consume(self, taken: bytes) -> None:
        """Remove the beginning of the buffer, and update the position."""
        n_bytes, n_lines = len(taken), taken.count(b'\n')
        del self._buffer[:n_bytes]
        self._n_scanned = max(self._n_scanned - n_bytes, 0)
        offset, line, column, number = self._here
        column = n_bytes - taken.rfind(b'\n') if n_lines else column + n_bytes
        self._here = Place(offset + n_bytes, line + n_lines, column, number)

    def _skip_blank(self, *, to_end: bool = False) -> None:
        """Skip blanks as far as they were read, or in all of the file."""
        while (blank := _BLANK.match(self._buffer)) is not None:
            if blank.end():
                self._consume(blank[0])
            if not to_end or self._buffer or not self._fill():
                return

    def _expect(self, is_so: bool, expected: str) -> None:
        """Raise an error at the first byte in the buffer unless ``is_so``."""
        if not is_so:
            start = bytes(self._buffer[:MAX_SHOWN]).decode('utf-8', 'replace')
            raise TrajectoryFormatError(f'{self._name}: {self._here}', repr(start) if start
                                        else 'the end of the file', expected)

    def _begin(self) -> int:
        """Skip the beginning; return the depth around the frames, 1 in an array and 0 without."""
        while len(self._buffer) < _N_LOOKED_AT and self._fill():
            pass
        if self._buffer.startswith(BOM_UTF8):
            del self._buffer[:len(BOM_UTF8)]
            self._here = Place(len(BOM_UTF8))
        self._skip_blank(to_end=True)
        if not self._buffer:
            raise TruncatedError(self._name, 'an empty file', 'a JSON array of frames', n_frames=0,
                                 end=0, lost='nothing')
        self._expect(self._buffer.startswith((b'[', b'{')), _EXPECTED)
        is_array = self._buffer.startswith(b'[')
        self._consume(b'[' if is_array else b'')
        return int(is_array)

    def _begin_frame(self) -> None:
        """Skip what stands before a frame, as far as it was read."""
        self._skip_blank()
        if self._here.number and self._buffer:
            self._expect(self._buffer.startswith(b','), "',' or ']'")
            self._consume(b',')
            self._skip_blank()
        self._expect(not self._buffer or self._buffer.startswith(b'{'), "'{', a frame")

    def _element(self, text: bytes, value: Value | None = None) -> Element[Value]:
        """Remove the frame at the beginning of the buffer; ``value`` if it was parsed."""
        begin = self._here
        self._consume(text)
        if not value and not (value := self._parse(text)):
            try:
                json_text.parse(text)
            except DecodeError as error:
                raise self._error(error, begin) from None
        self._here = self._here._replace(number=begin.number + 1)
        self._end = self._here.offset
        return Element(text, value, begin, self._here)

    def _error(self, error: DecodeError, begin: Place) -> TrajectoryFormatError:
        """Return a fault of a frame with the place in the file."""
        where = f'{begin}: frame {begin.number}: {error.where}'
        if isinstance(error, json_text.JsonError):
            column = error.column + (begin.column - 1 if error.line == 1 else 0)
            where = f'line {begin.line + error.line - 1} column {column}'
        return TrajectoryFormatError(f'{self._name}: {where}', error.found, error.expected)

    def _finish(self, expected: str) -> None:
        self._skip_blank(to_end=True)
        self._expect(not self._buffer, expected)

    def _without_end(self, *, is_too_long: bool) -> TrajectoryFormatError:
        """Return the error for a frame or an array without end, or for an earlier fault in it."""
        self._begin_frame()
        text, begun = bytes(self._buffer), self._here
        error = _fault_before_end(text)
        if error is not None:
            return self._error(error, begun)
        begun_at, lost = f'frame {begun.number}', 'nothing but the end of the array'
        if text:
            begun_at += f', begun at {begun}'
            lost = f'{counted(len(text), "byte")} of {begun_at}'
        self._consume(text)
        where = f'{self._name}: {self._here}'
        if is_too_long:
            return TrajectoryFormatError(
                where, f'more than {MAX_ELEMENT_BYTES} bytes in {begun_at}', 'a frame')
        return TruncatedError(
            where, f'the end of the file in {begun_at}', "']' at the end of the array",
            n_frames=begun.number, end=self._end, lost=lost)


def _fault_before_end(text: bytes) -> DecodeError | None:
    """Return the first fault in the beginning of a frame, apart from the missing end."""
    try:
        # Without an incomplete character at the end.
        json_text.parse(getincrementaldecoder('utf-8')().decode(text).encode())
    except UnicodeDecodeError as error:
        return DecodeError(f'byte {error.start}', f'0x{text[error.start]:02x}', 'UTF-8')
    except json_text.JsonError as error:
        return None if error.is_at_end else error
    except DecodeError as error:
        return error
    return None


class TrajectoryRecording(FrameFile):
    """
    A trajectory file, or standard input for ``-``; ``payload`` is the text of the last frame.

    :param path: opened here, so that what is missing is missed at once.
    """

    unit = 'B'
    payload = b''
    n_bytes = 0  # of the frames so far

    def __init__(self, path: str, options: ReadOptions = _READ) -> None:
        self._units = options.settings
        super().__init__(path, 'trajectory', 'monodrive')
        self._file: BinaryIO = sys.stdin.buffer
        self._mark: Place | None = None
        if path != STANDARD_INPUT:
            self._file = open_input(path)
            status = os.fstat(self._file.fileno())
            # A pipe has no size and no beginning to go back to.
            self.total = status.st_size if stat.S_ISREG(status.st_mode) else None

    def mark(self) -> Place | None:
        """Return the end of the last frame, None unless the file can be read from there on."""
        return self._mark

    def read(self, mark: Place | None) -> Iterator[Frame]:
        """Yield the frames of the elements of the array."""
        decoder, self.n_bytes = Decoder(self._units, self.faults), 0
        decoder.details = self.details
        for element in self.elements(decoder.parse, mark):
            self.faults.place = str(element.begin)
            self.payload, self.n_bytes = element.text, self.n_bytes + len(element.text)
            try:
                yield from decoder.frames(element.text, parsed=element.value)
            except DecodeError as error:
                self.faults.add(LOST, error)
            decoder.details = self.details

    def elements(self, parse: Callable[[bytes], Value | None],
                 mark: Place | None = None) -> Iterator[Element[Value]]:
        """Yield the elements of the array, those after a mark; as :func:`read_elements`."""
        if self.total is not None:
            self._file.seek(0)
        content, compressed = decompressed(self._file)
        n_frames = 0
        try:
            for element in read_elements(content, self.name, parse, mark):
                n_frames += 1
                self.position = element.end.offset if compressed is None else compressed.n_read
                if compressed is None and self.total is not None:
                    self._mark = element.end
                yield element
        except TruncatedError as error:
            if compressed is not None:
                compressed.check_undamaged(error.where)
            raise
        if compressed is not None and compressed.fault:
            # After the end of the array.
            compressed.check_undamaged(self.name)
            raise TruncatedError(self.name, compressed.fault, 'its end', n_frames=n_frames, end=0,
                                 lost='nothing but the end of the compressed data')

    def close(self) -> None:
        if self._file is not sys.stdin.buffer:
            self._file.close()


class TrajectoryOutput(WholeFile, FrameWriter):
    """
    Frames as the elements of a JSON array.

    :param path: path of the file, ``-`` for standard output.
    :param options: ``generation`` is v2 or v1; without it, frames keep theirs as far as it is
        written.
    """

    is_timed = False

    def __init__(self, path: str, options: WriteOptions = _WRITE) -> None:
        super().__init__(path, force=options.force)
        self.n_frames = 0
        # What a generation cannot hold, in the order of its discovery.
        self._lost: dict[str, dict[str, None]] = {}
        self._generation, self._units = options.values.get('generation'), options.settings

    @property
    def notes(self) -> list[str]:
        """Return a line about what a generation does not carry."""
        return [f'{generation} does not carry: {", ".join(lost)}'
                for generation, lost in self._lost.items() if lost]

    def write(self, frame: Frame) -> None:
        """Append a frame; ``frame``: in SI units and REP-103 axes."""
        generation = self._generation or written_as(frame.generation)
        if generation != frame.generation:
            self._lost.setdefault(generation, {}).update(dict.fromkeys(losses(frame, generation)))
        self.handle.write((b',\n' if self.n_frames else b'[\n')
                          + encode(frame, generation, self._units))
        self.n_frames += 1

    def complete(self) -> None:
        """Finish the array, and wait until everything has reached the disk."""
        if self.n_frames and self.is_open:
            self.handle.write(b'\n]\n')
        super().complete()


def copy_whole_frames(source: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
    """
    Copy the whole frames of a trajectory; after a damaged place, those that occupy a line each.

    :returns: the number of frames copied; a description of the loss, ``''`` for none.
    """
    n_frames, end, have_lines, lost = 0, 0, True, ''
    target.write(b'[')
    try:
        for element in read_elements(source, name, json_text.is_strict):
            target.write((b',\n' if n_frames else b'\n') + element.text)
            n_frames, end = n_frames + 1, element.end.offset
            have_lines = have_lines and b'\n' not in element.text
    except TruncatedError as error:
        if not n_frames:
            raise
        lost = error.lost
    except TrajectoryFormatError as error:
        if not n_frames:
            raise
        n_lost = source.seek(0, os.SEEK_END) - end
        source.seek(end)
        while have_lines and (line := source.readline(MAX_ELEMENT_BYTES)):
            text = line.strip(b', \t\r\n')
            if text.startswith(b'{') and json_text.is_strict(text):
                target.write(b',\n' + text)
                n_frames, n_lost = n_frames + 1, n_lost - len(text)
        place = error.where.removeprefix(f'{name}: ')
        lost = f'{counted(n_lost, "byte")} at {place} or after it, which has {error.found}'
    target.write(b'\n]\n')
    return n_frames, lost

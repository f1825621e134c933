# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The packets of a recorder log, frame by frame: ids, numbers and events as the file has them.

The format is described in CARLA's documentation ("Recorder Binary File Format") and checked
against two genuine logs (doc/protocol/carla9.md#recorder-logs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
import os
import struct
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators import (
    counted,
    DecodeError,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.simulators.carla9.actors import MAX_ACTORS

MAGIC: Final = b'\x0e\x00CARLA_RECORDER'
_VERSION = struct.Struct('<H')
_LENGTH = struct.Struct('<H')
_DATE = struct.Struct('<q')
_PACKET = struct.Struct('<BI')
_COUNT = struct.Struct('<H')
_START = struct.Struct('<Qdd')
_ADDED = struct.Struct('<IB6fI')
_WHEEL_COUNT = struct.Struct('<II')
# Ids of packets.
(FRAME_START, FRAME_END, ADDED, REMOVED, PARENT, COLLISION, POSITIONS, LIGHTS, CONTROLS, WALKERS,
 VEHICLE_LIGHTS, SCENE_LIGHTS, KINEMATICS, BOXES, PLATFORM_TIME, PHYSICS, LIGHT_TIMES, TRIGGERS,
 FRAME_COUNTER, BONES, VISUAL_TIME, DOORS, WHEELS, BIKERS) = range(24)
# Records of one size: an id, then numbers.
_VECTORS = np.dtype([('id', '<u4'), ('first', '<f4', 3), ('second', '<f4', 3)])
_RECORDS: Mapping[int, np.dtype[np.void]] = {
    REMOVED: np.dtype([('id', '<u4')]), POSITIONS: _VECTORS, KINEMATICS: _VECTORS,
    BOXES: _VECTORS,
    LIGHTS: np.dtype([('id', '<u4'), ('frozen', 'u1'), ('elapsed', '<f4'), ('state', 'u1')]),
    VEHICLE_LIGHTS: np.dtype([('id', '<u4'), ('state', '<u4')]),
    CONTROLS: np.dtype([('id', '<u4'), ('steer', '<f4'), ('throttle', '<f4'), ('brake', '<f4'),
                        ('hand_brake', 'u1'), ('gear', '<i4')])}
_NAMES = {ADDED: 'added actors', REMOVED: 'removed actors', POSITIONS: 'positions',
          LIGHTS: 'traffic lights', CONTROLS: 'controls', VEHICLE_LIGHTS: 'vehicle lights',
          KINEMATICS: 'velocities', BOXES: 'boxes', WHEELS: 'wheels',
          FRAME_START: 'start of a frame'}
_WHEEL = np.dtype([('place', 'u1'), ('steer', '<f4'), ('spin', '<f4')])
_BICYCLE_WHEELS = 2
# 31 years: a larger number is not a time.
_MAX_ELAPSED_S = 1e9

Records = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class AddedActor:
    number: int
    pose: tuple[float, ...]  # position xyz cm, roll pitch yaw degrees
    type_id: str  # its blueprint
    attributes: Mapping[str, str]  # of the blueprint by name


@dataclass(slots=True)
class LoggedFrame:
    place: tuple[int, int]  # number of the complete frames before it, offset of its start
    number: int  # number, elapsed_s: of its start
    elapsed_s: float
    # added, removed: (R,) ids, in the order of the file.
    added: list[AddedActor] = field(default_factory=list)
    removed: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    # By packet, empty for one that the frame does not have.
    records: dict[int, Records] = field(default_factory=dict)
    # By id of a vehicle the angle of its front wheels, degrees (+ = right).
    steering: dict[int, float] = field(default_factory=dict)
    end: int = 0  # offset after it

    def of(self, packet: int) -> Records:
        found = self.records.get(packet)
        return np.zeros(0, _RECORDS[packet]) if found is None else found


@dataclass(frozen=True, slots=True)
class LogHeader:
    """``date`` s since the Unix epoch; ``town`` name of the map; ``end`` offset after it."""

    date: int
    town: str
    end: int


class LogFile:
    """An open log."""

    # unknown: ids of the packets that were skipped because they are not known.

    def __init__(self, file: BinaryIO, name: str, max_bytes: int) -> None:
        self._file, self._name, self._max_bytes = file, name, max_bytes
        self.unknown: set[int] = set()
        self.header = self._read_header()

    def _read(self, offset: int, n_bytes: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(n_bytes)

    def _read_header(self) -> LogHeader:
        head = self._read(0, 2 * _VERSION.size + len(MAGIC) + (1 << 16) + _DATE.size)
        begin = _VERSION.size + len(MAGIC)
        if head[_VERSION.size:begin] != MAGIC[:max(len(head) - _VERSION.size, 0)]:
            raise TrajectoryFormatError(self._name, 'another beginning',
                                        'a recorder log of CARLA')
        try:
            [date] = _DATE.unpack_from(head, begin)
            town, end = _text(head, begin + _DATE.size)
        except DecodeError as error:
            raise self._cut(error.where, 0, 0) from error
        except struct.error as error:
            raise self._cut('the header', 0, 0) from error
        # CARLA writes seconds since 1970; another number is not a date.
        return LogHeader(date if 0 <= date < 1 << 40 else 0, town, end)

    def _cut(self, where: str, n_frames: int, end: int) -> TruncatedError:
        return TruncatedError(
            self._name, f'the end of the file in {where}', 'its other bytes', n_frames=n_frames,
            end=end, lost='the incomplete frame' if n_frames else 'everything',
            container='the log', advice='`state_sensor repair` writes a whole log'
            if n_frames else '')

    def frames(self, begin: tuple[int, int] | None = None,
               ) -> Iterator[LoggedFrame | DecodeError | TruncatedError]:
        """Yield the frames, the error of one that cannot be read, and a cut as the last item."""
        # begin: place of the first one, None for that of the log.
        size = self._file.seek(0, os.SEEK_END)
        n_frames, start = begin or (0, self.header.end)
        offset, end, n_outside, n_bytes = start, start, 0, 0
        frame: LoggedFrame | DecodeError | None = None
        for packet, offset, length in self._packets(start, size):
            place = f'frame {n_frames}'
            if packet == FRAME_START:
                if n_outside:
                    yield _outside(n_outside, place)
                n_outside = n_bytes = 0
                if frame is not None:
                    yield frame if isinstance(frame, DecodeError) else DecodeError(
                        place, 'another start before its end', 'the end of the frame')
                frame = self._started(self._content(packet, offset, length, place, length), place,
                                      (n_frames, offset - _PACKET.size))
            elif packet == FRAME_END and frame is not None:
                n_frames, end = n_frames + 1, offset + length
                if isinstance(frame, LoggedFrame):
                    frame.end = end
                yield frame
                frame = None
            elif packet in _NAMES and isinstance(frame, LoggedFrame):
                n_bytes += length
                content = self._content(packet, offset, length, place, n_bytes)
                try:
                    _take(frame, packet, content, place)
                except DecodeError as error:
                    frame = error
            elif frame is None:
                n_outside += 1
            offset += length
        if n_outside:
            yield _outside(n_outside, 'the end')
        if frame is not None or offset < size:
            yield self._cut(f'frame {n_frames}', n_frames, end)

    def _packets(self, offset: int, size: int) -> Iterator[tuple[int, int, int]]:
        """Yield id, offset and length of each complete packet; note unknown ones."""
        while offset + _PACKET.size <= size:
            packet, length = _PACKET.unpack(self._read(offset, _PACKET.size))
            offset += _PACKET.size
            if offset + length > size:
                return
            if packet > BIKERS:
                self.unknown.add(packet)
            yield packet, offset, length
            offset += length

    def _content(self, packet: int, offset: int, length: int, place: str, n_bytes: int) -> bytes:
        """Return the content of a packet; ``n_bytes`` are those of its frame so far."""
        if n_bytes > self._max_bytes:
            raise TrajectoryFormatError(
                f'{self._name}: {place}: {_NAMES[packet]}', f'{n_bytes} bytes of the frame',
                f'at most {self._max_bytes} (--max-bag-bytes)')
        return self._read(offset, length)

    @staticmethod
    def _started(content: bytes, where: str, place: tuple[int, int]) -> LoggedFrame | DecodeError:
        if len(content) != _START.size:
            return DecodeError(f'{where}: start', f'{len(content)} bytes', str(_START.size))
        number, _, elapsed_s = _START.unpack(content)
        if not 0.0 <= elapsed_s < _MAX_ELAPSED_S:
            return DecodeError(f'{where}: elapsed', f'{elapsed_s:g}', 'a time in s')
        return LoggedFrame(place, number, elapsed_s)


def _outside(n_packets: int, place: str) -> DecodeError:
    return DecodeError(place, f'{counted(n_packets, "packet")} before it outside of a frame',
                       'a start and an end around each')


def _take(frame: LoggedFrame, packet: int, content: bytes, place: str) -> None:
    where = f'{place}: {_NAMES[packet]}'
    if len(content) < _COUNT.size:
        raise DecodeError(where, f'{len(content)} bytes', 'a number of records')
    if packet == ADDED:
        frame.added.extend(_added(content, where))
        if len(frame.added) > MAX_ACTORS:
            raise DecodeError(where, f'{len(frame.added)} actors', f'at most {MAX_ACTORS}')
    elif packet == WHEELS:
        frame.steering.update(_steering(content, where))
    else:
        dtype = _RECORDS[packet]
        [count] = _COUNT.unpack_from(content)
        n_bytes = len(content) - _COUNT.size
        # The count has 16 bits; a larger list is written whole, and its length says how long.
        n_records, rest = divmod(n_bytes, dtype.itemsize)
        if rest or n_records % 65536 != count:
            raise DecodeError(where, f'{n_bytes} bytes', f'{count} records of {dtype.itemsize}')
        records = np.frombuffer(content, dtype, n_records, _COUNT.size)
        if packet == REMOVED:
            frame.removed = np.unique(np.concatenate((frame.removed, records['id'])))
        else:
            frame.records[packet] = np.concatenate((frame.of(packet), records))
            n_records = len(frame.records[packet])
        if n_records > MAX_ACTORS or len(frame.removed) > MAX_ACTORS:
            raise DecodeError(where, f'{n_records} records', f'at most {MAX_ACTORS}, one an actor')


def _text(content: bytes, offset: int) -> tuple[str, int]:
    """Return a text, and the offset after it."""
    begin = offset + _LENGTH.size
    if begin <= len(content):
        end = begin + _LENGTH.unpack_from(content, offset)[0]
        if end <= len(content):
            return content[begin:end].decode(errors='replace'), end
    raise DecodeError('a text', f'{len(content) - offset} bytes', 'more')


def _added(content: bytes, where: str) -> Sequence[AddedActor]:
    actors: list[AddedActor] = []
    [count] = _COUNT.unpack_from(content)
    offset = _COUNT.size
    try:
        # As of other lists, the count may be that of a larger list modulo 65536.
        while offset < len(content) or (not actors and count):
            number, _, *pose, _ = _ADDED.unpack_from(content, offset)
            type_id, offset = _text(content, offset + _ADDED.size)
            [n_attributes] = _COUNT.unpack_from(content, offset)
            offset += _COUNT.size
            attributes: dict[str, str] = {}
            for _ in range(n_attributes):
                # A byte with the type of the value, then name and value.
                key, offset = _text(content, offset + 1)
                attributes[key], offset = _text(content, offset)
            actors.append(AddedActor(number, tuple(pose), type_id, attributes))
    except (struct.error, DecodeError) as error:
        raise DecodeError(where, f'{len(content)} bytes', f'{count} actors') from error
    if len(actors) % 65536 != count:
        raise DecodeError(where, f'{len(actors)} actors', f'{count}, as its count says')
    return actors


def _steering(content: bytes, where: str) -> Iterator[tuple[int, float]]:
    """Yield id of a vehicle and angle of its front wheels, degrees."""
    [count] = _COUNT.unpack_from(content)
    offset, n_vehicles = _COUNT.size, 0
    while offset < len(content) or n_vehicles < count:
        n_vehicles += 1
        try:
            number, n_wheels = _WHEEL_COUNT.unpack_from(content, offset)
            offset += _WHEEL_COUNT.size
            wheels = np.frombuffer(content, _WHEEL, n_wheels, offset)
        except (struct.error, ValueError) as error:
            raise DecodeError(where, f'{len(content)} bytes', f'{count} vehicles') from error
        offset += n_wheels * _WHEEL.itemsize
        if n_wheels:
            n_front = 1 if n_wheels == _BICYCLE_WHEELS else 2
            yield number, float(wheels['steer'][:n_front].mean())
    if n_vehicles % 65536 != count:
        raise DecodeError(where, f'{n_vehicles} vehicles', f'{count}, as its count says')

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Recorder logs of CARLA, frame by frame, without CARLA.

The format is described in CARLA's documentation ("Recorder Binary File Format") and checked
against two genuine logs (doc/protocol/carla9.md#recorder-logs). A log lists an actor and its box
when it appears; lights and signs have no place in later frames. Velocities are those of the log,
or differences of positions if it has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
import math
import os
from pathlib import Path
import pickle
import struct
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import DecodeError, TrajectoryFormatError, TruncatedError
from state_sensor_ros.files import input as input_file
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.files.recording import FrameFile
from state_sensor_ros.frame import DERIVED_VELOCITY, Floats, Frame, Rows
from state_sensor_ros.rotations import rotation_vectors
from state_sensor_ros.simulators.carla9 import actors, Carla9Parameters, frames
from state_sensor_ros.source import DROPPED, Fault, LOST, MEMBER

MAGIC: Final = b'\x0e\x00CARLA_RECORDER'
# After a version of two bytes.
_MAGIC_AT = 2
_DATE = struct.Struct('<q')
_PACKET = struct.Struct('<BI')
_COUNT = struct.Struct('<H')
_START = struct.Struct('<Qdd')
_ADDED = struct.Struct('<IB6fI')
_WHEELED = struct.Struct('<II')
# Ids of packets; those up to the last one have names in CARLA.
FRAME_START, FRAME_END, ADDED, REMOVED = range(4)
POSITIONS, LIGHTS, CONTROLS, VEHICLE_LIGHTS, KINEMATICS, BOXES, WHEELS = 6, 7, 8, 10, 12, 13, 22
_LAST_PACKET = 23
# Records of one size: an id, then numbers.
_VECTORS = np.dtype([('id', '<u4'), ('first', '<f4', 3), ('second', '<f4', 3)])
_RECORDS: Mapping[int, np.dtype[np.void]] = {
    REMOVED: np.dtype([('id', '<u4')]), POSITIONS: _VECTORS, KINEMATICS: _VECTORS,
    BOXES: _VECTORS,
    LIGHTS: np.dtype([('id', '<u4'), ('frozen', 'u1'), ('elapsed', '<f4'), ('state', 'u1')]),
    VEHICLE_LIGHTS: np.dtype([('id', '<u4'), ('state', '<u4')]),
    CONTROLS: np.dtype([('id', '<u4'), ('steer', '<f4'), ('throttle', '<f4'), ('brake', '<f4'),
                        ('hand_brake', 'u1'), ('gear', '<i4')])}
_WHEEL = np.dtype([('place', 'u1'), ('steer', '<f4'), ('spin', '<f4')])
_BICYCLE_WHEELS = 2
_CM = 100.0
# 31 years: a larger number is not a time.
_MAX_ELAPSED_S = 1e9
# Longest time between frames, and largest speed, m/s, that a difference of positions stands for:
# beyond it the actor was put somewhere else.
_MAX_STEP_S = 1.0
_MAX_SPEED = 200.0
# Frames between two states that are kept.
_MARKED = 64

Records = npt.NDArray[np.void]
# Number of the complete frames before a frame, and the offset of its start.
Place = tuple[int, int]
# What the frames of a log so far say about later ones: the actors, and the places of lights and
# signs by id, position xyz cm, roll pitch yaw degrees.
LogHistory = tuple[actors.WorldActors, dict[int, tuple[float, ...]]]


class AddedActor(NamedTuple):
    number: int
    pose: tuple[float, ...]  # position xyz cm, roll pitch yaw degrees
    type_id: str  # its blueprint
    attributes: Mapping[str, str]  # of the blueprint by name


@dataclass(slots=True)
class LoggedFrame:
    """What the file says between the start and the end of a frame."""

    place: Place
    number: int
    elapsed_s: float
    added: list[AddedActor] = field(default_factory=list)
    # By packet, absent for one that the frame does not have.
    records: dict[int, Records] = field(default_factory=dict)
    # By id of a vehicle the angle of its front wheels, degrees (+ = right).
    steering: dict[int, float] = field(default_factory=dict)

    def of(self, packet: int) -> Records:
        found = self.records.get(packet)
        return np.zeros(0, _RECORDS[packet]) if found is None else found


Item = LoggedFrame | DecodeError | TruncatedError


class LogFile:
    """
    An open log.

    :ivar date: s since the Unix epoch, 0 if it is unknown.
    :ivar town: name of the map.
    :ivar unknown: ids of the packets that were skipped because they are not known.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name = file, name
        self.unknown: set[int] = set()
        begin = _MAGIC_AT + len(MAGIC)
        head = self._read(0, begin + _DATE.size + _COUNT.size + (1 << 16))
        if not MAGIC.startswith(head[_MAGIC_AT:begin]):
            raise TrajectoryFormatError(name, 'another beginning', 'a recorder log of CARLA')
        try:
            [date] = _DATE.unpack_from(head, begin)
            self.town, self._begin = _text(head, begin + _DATE.size)
        except struct.error as error:
            raise self._cut('the header', 0, 0) from error
        # CARLA writes seconds since 1970; another number is not a date.
        self.date = date if 0 <= date < 1 << 40 else 0

    def _read(self, offset: int, n_bytes: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(n_bytes)

    def _cut(self, where: str, n_frames: int, end: int) -> TruncatedError:
        return TruncatedError(
            self._name, f'the end of the file in {where}', 'its other bytes', n_frames=n_frames,
            end=end, lost='the incomplete frame' if n_frames else 'everything',
            container='the log', advice='`state_sensor repair` writes a whole log'
            if n_frames else '')

    def frames(self, begin: Place | None = None) -> Iterator[Item]:
        """
        Yield the frames, and the error of one that cannot be read; at last, of a missing end.

        :param begin: place of the first one, None for that of the log.
        """
        size = self._file.seek(0, os.SEEK_END)
        n_frames, end = begin or (0, self._begin)
        after, packets = end, list[tuple[int, int, int]]()
        while (offset := after + _PACKET.size) <= size:
            packet, length = _PACKET.unpack(self._read(after, _PACKET.size))
            if (after := offset + length) > size:
                break
            packets.append((packet, offset, length))
            if packet > _LAST_PACKET:
                self.unknown.add(packet)
            if packet == FRAME_END:
                try:
                    yield self._frame(packets[:-1], (n_frames, end))
                except DecodeError as error:
                    yield error
                n_frames, end, packets = n_frames + 1, after, []
        if end < size:
            yield self._cut(f'frame {n_frames}', n_frames, end)

    def _frame(self, packets: list[tuple[int, int, int]], place: Place) -> LoggedFrame:
        """Read the packets before the end of a frame."""
        where, frame = f'frame {place[0]}', None
        for packet, offset, length in packets:
            if (packet == FRAME_START) is not (frame is None):
                raise DecodeError(where, f'packet {packet} before its start' if frame is None
                                  else 'another start before its end', 'one start and one end')
            if frame is None:
                frame = _started(self._read(offset, length), where, place)
            elif packet in _RECORDS or packet in (ADDED, WHEELS):
                _take(frame, packet, self._read(offset, length), f'{where}: packet {packet}')
        if frame is None:
            raise DecodeError(where, 'an end', 'a start before it')
        return frame


def _started(content: bytes, where: str, place: Place) -> LoggedFrame:
    if len(content) != _START.size:
        raise DecodeError(f'{where}: start', f'{len(content)} bytes', str(_START.size))
    number, _, elapsed_s = _START.unpack(content)
    if not 0.0 <= elapsed_s < _MAX_ELAPSED_S:
        raise DecodeError(f'{where}: elapsed', f'{elapsed_s:g}', 'a time in s')
    return LoggedFrame(place, number, elapsed_s)


def _take(frame: LoggedFrame, packet: int, content: bytes, where: str) -> None:
    count, n_records = 0, -1
    with suppress(struct.error, ValueError):
        [count] = _COUNT.unpack_from(content)
        if packet == ADDED:
            frame.added += (added := list(_added(content)))
            n_records = len(added)
        elif packet == WHEELS:
            steering = list(_steering(content))
            frame.steering.update(steering)
            n_records = len(steering)
        else:
            records = np.frombuffer(content, _RECORDS[packet], offset=_COUNT.size)
            frame.records[packet] = np.concatenate((frame.of(packet), records))
            n_records = len(records)
    # The count has 16 bits; a larger list is written whole, and its length says how long.
    if n_records < 0 or n_records % 65536 != count:
        raise DecodeError(where, f'{len(content)} bytes' if n_records < 0
                          else f'{n_records} records', f'{count}, as its count says')


def _text(content: bytes, offset: int) -> tuple[str, int]:
    """Return a text, and the offset after it."""
    [length] = _COUNT.unpack_from(content, offset)
    begin = offset + _COUNT.size
    if begin + length > len(content):
        raise struct.error('a text is cut')
    return content[begin:begin + length].decode(errors='replace'), begin + length


def _added(content: bytes) -> Iterator[AddedActor]:
    offset = _COUNT.size
    while offset < len(content):
        number, _, *pose, _ = _ADDED.unpack_from(content, offset)
        type_id, offset = _text(content, offset + _ADDED.size)
        [n_attributes] = _COUNT.unpack_from(content, offset)
        offset += _COUNT.size
        attributes: dict[str, str] = {}
        for _ in range(n_attributes):
            # A byte with the type of the value, then name and value.
            key, offset = _text(content, offset + 1)
            attributes[key], offset = _text(content, offset)
        yield AddedActor(number, tuple(pose), type_id, attributes)


def _steering(content: bytes) -> Iterator[tuple[int, float]]:
    """Yield ids of vehicles and the angles of their front wheels, degrees, NaN for none."""
    offset = _COUNT.size
    while offset < len(content):
        number, n_wheels = _WHEELED.unpack_from(content, offset)
        wheels = np.frombuffer(content, _WHEEL, n_wheels, offset + _WHEELED.size)
        offset += _WHEELED.size + wheels.nbytes
        front = wheels['steer'][:1 if n_wheels == _BICYCLE_WHEELS else 2]
        yield number, float(front.mean()) if n_wheels else math.nan


class _Moment(NamedTuple):
    """A frame without the velocities that the log does not have."""

    frame: Frame
    faults: tuple[Fault, ...]
    serials: Rows  # (N,) of its actors


class LogDecoder:
    """Decodes the frames of one log, in their order; ``date`` as of :class:`LogFile`."""

    def __init__(self, date: int, history: LogHistory) -> None:
        self._date = date
        self._table, self._fixed = history
        self._faults: list[Fault] = []

    def frames(self, items: Iterator[Item]) -> Iterator[_Moment | DecodeError]:
        """
        Yield the frames and errors; velocities by differences need the next frame, too.

        :raises TruncatedError: after the whole frames, if the end is missing.
        """
        last: _Moment | None = None
        now: _Moment | None = None
        for item in chain(items, (None,)):
            following = self._moment(item) if isinstance(item, LoggedFrame) else None
            if now is not None:
                yield now._replace(frame=_completed(last, now, following))
            last, now = now if following else None, following
            if isinstance(item, TruncatedError):
                raise item
            if isinstance(item, DecodeError):
                yield item

    def _moment(self, logged: LoggedFrame) -> _Moment:
        self._faults = []
        self._take_events(logged)
        numbers, poses = self._places(logged)
        table = self._table.rows(numbers)
        velocities = np.full((len(numbers), 6), np.nan)
        velocities[table.are_fixed] = 0.0
        rows, records = self._of_actors(logged, KINEMATICS, numbers, 'a velocity')
        velocities[rows] = np.concatenate((records['first'], records['second']), axis=1)
        kinematics = frames.to_rep103(np.concatenate((poses, velocities), axis=1))
        light_rows, lights = self._of_actors(logged, LIGHTS, numbers, 'a light')
        controls = np.full((len(numbers), 4), np.nan)
        rows, records = self._of_actors(logged, CONTROLS, numbers, 'controls')
        for i, name in enumerate(('throttle', 'brake', 'steer')):
            controls[rows, i] = records[name]
        if logged.steering:
            controls[:, 3] = [logged.steering.get(number, math.nan) for number in numbers.tolist()]
            for number in logged.steering.keys() - set(numbers.tolist()):
                self._fault(number, 'wheels', 'an actor with a position')
        rows, records = self._of_actors(logged, VEHICLE_LIGHTS, numbers, 'lights of a vehicle')
        frame = frames.make_frame(
            table, kinematics, game_time=logged.elapsed_s,
            number=logged.number if logged.number < 1 << 32 else 0,
            time=int(self._date + logged.elapsed_s) if self._date else 0,
            inputs=frames.to_inputs(controls), town=frames.TownMap(),
            lights=frames.shown_lights(table, kinematics, light_rows, lights['state']),
            indicators=frames.indicators_of(numbers, numbers[rows], records['state']))
        return _Moment(frame, tuple(self._faults), table.serials)

    def _fault(self, number: int, found: str, expected: str = 'an actor that was added') -> None:
        self._faults.append(Fault(DROPPED, DecodeError(f'actor {number}', found, expected)))

    def _take_events(self, logged: LoggedFrame) -> None:
        """Add and remove actors, and set their boxes."""
        replaced = {added.number for added in logged.added if added.number in self._table}
        for added in logged.added:
            self._fixed.pop(added.number, None)
            actor = self._table.add(added.number, added.type_id, added.attributes)
            if actor is not None and actor.is_fixed:
                self._fixed[added.number] = added.pose
        # Additions are written first: the removal of an id that is used again in the same frame is
        # that of the earlier actor.
        for number in sorted({*logged.of(REMOVED)['id'].tolist()} - replaced):
            if number not in self._table:
                self._fault(number, 'a removal')
            self._table.remove(number)
            self._fixed.pop(number, None)
        for record in logged.of(BOXES):
            if (number := int(record['id'])) not in self._table:
                self._fault(number, 'a box')
            with np.errstate(invalid='ignore'):
                self._table.set_box(number, actors.box_of(
                    (record['first'].astype(float) / _CM).tolist(),
                    (record['second'].astype(float) / _CM).tolist()))

    def _places(self, logged: LoggedFrame) -> tuple[Rows, Floats]:
        """Return ids, ascending, and poses (N, 6) in m and degrees, of the actors of the frame."""
        records = logged.of(POSITIONS)
        # Some versions write an actor that is neither vehicle nor person twice.
        moved, first = np.unique(records['id'].astype(np.int64), return_index=True)
        is_shown = np.array([self._table.get(number) is not None for number in moved.tolist()],
                            bool)
        for number in moved[~is_shown].tolist():
            if number not in self._table:
                self._fault(number, 'a position')
        moved, first = moved[is_shown], first[is_shown]
        fixed = np.setdiff1d(np.array(list(self._fixed), np.int64), moved)
        numbers = np.union1d(moved, fixed)
        poses, rows = np.empty((len(numbers), 6)), np.searchsorted(numbers, moved)
        poses[rows, 0:3], poses[rows, 3:6] = records['first'][first], records['second'][first]
        poses[np.searchsorted(numbers, fixed)] = np.array(
            [self._fixed[number] for number in fixed.tolist()]).reshape(-1, 6)
        poses[:, :3] /= _CM
        return numbers, poses

    def _of_actors(self, logged: LoggedFrame, packet: int, numbers: Rows,
                   what: str) -> tuple[Rows, Records]:
        """Return the records of actors of the frame, and their rows; others are faults."""
        records = logged.of(packet)
        ids = records['id'].astype(np.int64)
        rows, found = frames.matched(numbers, ids)
        for number in np.setdiff1d(ids, numbers).tolist() if len(found) < len(ids) else ():
            # Sensors and the spectator are known, and no actors of frames.
            if number not in self._table or self._table.get(number) is not None:
                self._fault(number, what, 'an actor with a position')
        return rows, records[found]


def _completed(last: _Moment | None, now: _Moment, following: _Moment | None) -> Frame:
    """
    Return a frame with the velocities that differences give, if the log has none.

    The difference is that of the next and the last frame, or of one of these and this one.
    """
    kinematics = now.frame.kinematics.copy()
    rows = np.flatnonzero(np.isnan(kinematics[:, 7:10]).any(axis=1)
                          & np.isfinite(kinematics[:, 0:7]).all(axis=1))
    if not len(rows):
        return now.frame
    # Poses and times of the begin and the end of each difference.
    poses = np.stack([kinematics[rows, 0:7]] * 2)
    times = np.full((2, len(rows)), now.frame.game_time)
    for side, other in enumerate((last, following)):
        if other is None:
            continue
        step_s = abs(now.frame.game_time - other.frame.game_time)
        mine, others = frames.matched(now.serials[rows], other.serials)
        places = other.frame.kinematics[others, 0:7]
        distances = np.linalg.norm(places[:, :3] - poses[side, mine, :3], axis=1)
        # NaN compares false.
        is_near = (distances <= _MAX_SPEED * step_s) & (0.0 < step_s <= _MAX_STEP_S)
        poses[side, mine[is_near]] = places[is_near]
        times[side, mine[is_near]] = other.frame.game_time
    elapsed_s = times[1] - times[0]
    elapsed_s[elapsed_s <= 0.0] = math.nan
    kinematics[rows, 7:13] = np.concatenate((
        poses[1, :, :3] - poses[0, :, :3], rotation_vectors(poses[0, :, 3:], poses[1, :, 3:]),
    ), axis=1) / elapsed_s[:, None]
    derived = np.zeros(len(kinematics), np.uint8) if now.frame.derived is None \
        else now.frame.derived.copy()
    derived[rows[np.isfinite(kinematics[rows, 7])]] |= DERIVED_VELOCITY
    return replace(now.frame, kinematics=kinematics, derived=derived)


class LogRecording(FrameFile):
    """A log as a recording, in constant memory."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        self._file: BinaryIO = input_file.open_input(path)
        self._own = options.settings.of(Carla9Parameters)
        with input_file.closed_on_failure(self._file):
            self._log = LogFile(self._file, path)
        self._next, self._states = 0, list[tuple[int, bytes]]()
        super().__init__(path, f'recorder log of CARLA, {self._log.town}', 'carla9')

    def mark(self) -> tuple[int, bytes, int] | None:
        """Return number and state of an earlier frame, and how many lie between."""
        # The frame before it has to be read, too, for its velocities.
        number, state = max((each for each in self._states if each[0] < self._next),
                            default=(0, b''))
        return (number, state, self._next - number) if state else None

    def read(self, mark: tuple[int, bytes, int] | None) -> Iterator[Frame]:
        """Yield the frames."""
        begin, state, n_skipped = mark or (0, b'', 0)
        place, history = pickle.loads(state) if state else (None, (
            actors.WorldActors(self._own.ego, with_level=self._own.static), {}))
        self._next, self._states, named = begin, [], set[int]()
        for item in LogDecoder(self._log.date, history).frames(
                self._noted(begin, place, history)):
            self._next += 1
            if self._next <= begin + n_skipped:
                continue
            for packet in sorted(self._log.unknown - named):
                named.add(packet)
                self.faults.add(MEMBER, DecodeError(
                    f'packet {packet}', 'an unknown member, which is ignored', 'none'))
            if isinstance(item, DecodeError):
                self.faults.add(LOST, item)
                continue
            for fault in item.faults:
                self.faults.add(fault.kind, fault.error)
            yield item.frame

    def _noted(self, begin: int, place: Place | None,
               history: LogHistory) -> Iterator[Item]:
        for number, item in enumerate(self._log.frames(place), begin):
            if isinstance(item, LoggedFrame) and not number % _MARKED:
                self._states = [*self._states[-1:], (number, pickle.dumps((item.place, history)))]
            yield item

    def close(self) -> None:
        self._file.close()


def is_log(path: Path) -> bool:
    """Return whether a file begins as a recorder log does."""
    with path.open('rb') as file:
        head = file.read(_MAGIC_AT + len(MAGIC))[_MAGIC_AT:]
    return bool(head) and MAGIC.startswith(head)


def copy_whole(cut: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
    """Copy a log up to its last complete frame; return their number and what is lost, if any."""
    n_frames, end, lost = 0, cut.seek(0, os.SEEK_END), ''
    # The header may be cut, too.
    with suppress(TruncatedError):
        for item in LogFile(cut, name).frames():
            n_frames += isinstance(item, LoggedFrame)
            if isinstance(item, TruncatedError):
                end, lost = item.end, item.lost
    if not n_frames:
        raise TrajectoryFormatError(name, 'no complete frame', 'at least one')
    input_file.copy_beginning(cut, target, end)
    return n_frames, lost

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A trace of ASAM OSI as a recording: its serialized messages are length-delimited, or in MCAP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
import os
from pathlib import Path
import re
import struct
from typing import Any, BinaryIO, NamedTuple

from state_sensor_ros import errors
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.files.bag import MCAP_MAGIC, McapStorage, PROFILE
from state_sensor_ros.files.input import decoding, decompressed, open_input
from state_sensor_ros.files.recording import FrameFile
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.osi import OsiParameters
from state_sensor_ros.simulators.osi.frames import Decoder, Run
from state_sensor_ros.simulators.osi.messages import GROUND_TRUTH, parse, SCHEMAS, SENSOR_VIEW
from state_sensor_ros.source import LOST
from state_sensor_ros.texts import counted

_LENGTH = struct.Struct('<I')
# Protobuf has no longer messages.
_MAX_BYTES = 2**31
# The beginning of an MCAP file up to the profile: the magic number, the head of a record.
_HEADER = struct.Struct('<8sBQI4s')
_FORMAT = 'a trace of ASAM OSI'
# As ASAM names its traces: DATE_TYPE_OSI_PROTOBUF_FRAMES.osi.
_SCHEMA_IN_NAME = re.compile(r'_(gt|sv)_')


class Message(NamedTuple):
    """A serialized message in a file."""

    data: bytes
    end: Any  # where the next one begins
    position: int  # of its end in the file, in the unit of the trace


class Trace(FrameFile):
    """
    Base of traces; a frame is one message.

    :param schema: of the messages, empty if it is not known.
    """

    def __init__(self, name: str, schema: str, settings: Settings, total: int) -> None:
        self._own, self._schema = settings.of(OsiParameters), schema
        super().__init__(name, ', '.join(filter(None, (_FORMAT.removeprefix('a '), schema))),
                         'osi', total)
        first = next(self.messages(None), None)
        if first is None:
            raise errors.TrajectoryFormatError(name, 'an empty file', _FORMAT)
        try:
            truth = parse(first.data, schema)
        except errors.DecodeError as error:
            raise errors.TrajectoryFormatError(f'{name}: message 1', error.found,
                                               error.expected) from error
        n_objects = len(truth.message.moving_object) + len(truth.message.stationary_object)
        if n_objects and not truth.n_placed:
            raise errors.TrajectoryFormatError(
                name, f'{counted(n_objects, "object")} without a position',
                f'positions, as an {schema or " or ".join(SCHEMAS)} has them')

    def messages(self, begin: Any) -> Iterator[Message]:  # noqa: ANN401
        """Yield the messages from the end of another one on; None for the first one."""
        raise NotImplementedError

    def mark(self) -> tuple[Any, Run]:
        """Return the end of the last message, and what later ones need not repeat."""
        return self._end, self._decoder.run

    def read(self, mark: tuple[Any, Run] | None) -> Iterator[Frame]:
        """Yield a frame for each message."""
        begin, run = mark or (None, Run())
        self._decoder = decoder = Decoder(self._own, run, self.faults, self._schema)
        for index, message in enumerate(self.messages(begin)):
            self.faults.place, decoder.details = f'message {index + 1}', self.details
            self._end = message.end
            if self.unit != 'frame':
                self.position = message.position
            try:
                yield decoder.frame(message.data)
            except errors.DecodeError as error:
                self.faults.add(LOST, error)


class PlainTrace(Trace):
    """A file of messages, each after its length; it may be compressed."""

    unit = 'B'

    def __init__(self, path: str, settings: Settings) -> None:
        with open_input(path) as file:
            self._n_bytes = os.fstat(file.fileno()).st_size
        found = _SCHEMA_IN_NAME.search(Path(path).name)
        super().__init__(path, {'gt': GROUND_TRUTH, 'sv': SENSOR_VIEW}[found[1]] if found else '',
                         settings, self._n_bytes)

    def messages(self, begin: int | None) -> Iterator[Message]:
        """Yield the messages from an offset on."""
        with open_input(self.name) as raw:
            file, compressed = decompressed(raw)
            for message in whole_messages(
                    file, self.name, begin or 0, _MAX_BYTES if compressed else self._n_bytes):
                yield message if compressed is None else message._replace(
                    position=compressed.n_read)
            if compressed is not None and compressed.fault:
                compressed.check_undamaged(self.name)
                raise errors.TruncatedError(
                    self.name, compressed.fault, 'a whole file', n_frames=1, end=file.tell(),
                    lost='what follows', container='compressed data', advice='')


def whole_messages(file: BinaryIO, name: str, begin: int, n_bytes: int) -> Iterator[Message]:
    """
    Yield messages, each after its length.

    :param n_bytes: size of the file, or of the longest message.
    :raises TruncatedError: after the whole ones, if the end is missing.
    """
    offset, n_messages = file.seek(begin), 0
    while head := file.read(_LENGTH.size):
        length = int.from_bytes(head, 'little')
        data = file.read(min(length, n_bytes))
        if len(head) < _LENGTH.size or len(data) < length:
            last = f'the last {len(head) + len(data)} bytes'
            raise errors.TruncatedError(
                f'{name}: message {n_messages + 1}', f'{last} of a message', 'a whole message',
                n_frames=n_messages, end=offset, lost=last, container='a message')
        n_messages += 1
        offset += _LENGTH.size + length
        yield Message(data, offset, offset)


def _reading(name: str) -> AbstractContextManager[None]:
    return decoding(name, 'a damaged trace ({})', 'a whole trace')


class McapTrace(Trace):
    """
    The messages of one channel of an MCAP file, in the order of their times.

    :param topic: of the channel, empty for the only one with ground truth.
    """

    def __init__(self, path: str, topic: str, settings: Settings) -> None:
        self.name = path
        with _reading(path), closing(McapStorage(Path(path), profile=None)) as storage:
            self._channel = self._chosen(storage, topic)
            schema = storage.topics[self._channel].type_name
            total = storage.counts[self._channel]
        super().__init__(path, schema, settings, total)

    def _chosen(self, storage: McapStorage, topic: str) -> int:
        channels = {stored.name: number for number, stored in storage.topics.items()
                    if stored.serialization == 'protobuf' and stored.type_name in SCHEMAS
                    and storage.counts[number]}
        if not channels:
            others = ', '.join(sorted({each.type_name for each in storage.topics.values()}))
            raise errors.TrajectoryFormatError(self.name, f'messages of {others or "no type"}',
                                               f'a channel of {" or ".join(SCHEMAS)}')
        if topic not in channels and (topic or len(channels) > 1):
            raise errors.TrajectoryFormatError(
                self.name, f'no channel {topic}' if topic else 'several channels',
                f'one of {", ".join(sorted(channels))} to be named by --topic')
        return channels[topic or next(iter(channels))]

    def messages(self, begin: tuple[int, int] | None) -> Iterator[Message]:
        """Yield the messages from a time on, without the first ones of that time."""
        time_ns, n_skipped = begin or (0, 0)
        n_same = 0
        with _reading(self.name), \
                closing(McapStorage(Path(self.name), profile=None)) as storage:
            for _, stamp_ns, data in storage.messages((self._channel,), time_ns):
                n_same = n_same + 1 if stamp_ns == time_ns else 1
                time_ns = stamp_ns
                if n_skipped:
                    n_skipped -= 1
                else:
                    yield Message(data, (time_ns, n_same), 0)


def is_mcap_trace(path: Path) -> bool:
    """
    Return whether an MCAP file is a trace: not of ROS, and with a channel of OSI's messages.

    A damaged one is, too, if it is not of ROS: opening it gives the reason.
    """
    with path.open('rb') as file:
        begin = file.read(_HEADER.size)
    if len(begin) < _HEADER.size or not begin.startswith(MCAP_MAGIC) \
            or begin.endswith(PROFILE.encode()):
        return False
    try:
        with closing(McapStorage(path, profile=None)) as storage:
            return any(each.type_name.startswith('osi3.') for each in storage.topics.values())
    except Exception:  # noqa: BLE001 the library raises anything
        return True


def open_trace(path: str, options: ReadOptions) -> Trace:
    """Open a trace by its suffix: length-delimited messages in ``.osi``, else MCAP."""
    if path.endswith('.mcap'):
        return McapTrace(path, options.topic, options.settings)
    if options.topic:
        raise errors.TrajectoryFormatError(path, f'a trace without channels for {options.topic}',
                                           'an MCAP file, or no topic')
    return PlainTrace(path, options.settings)


def copy_whole(cut: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
    """Copy the whole messages of a trace; return their number and the loss, empty for none."""
    n_messages, lost, n_bytes = 0, '', cut.seek(0, os.SEEK_END)
    try:
        for message in whole_messages(cut, '', 0, n_bytes):
            target.write(_LENGTH.pack(len(message.data)) + message.data)
            n_messages += 1
    except errors.TruncatedError as error:
        lost = error.lost
    if not n_messages:
        raise errors.TrajectoryFormatError(
            name, 'no whole message', 'at least one of a trace in .osi; of one in MCAP, a folder '
            'as OUT')
    return n_messages, lost

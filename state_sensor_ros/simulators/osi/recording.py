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
from contextlib import closing, contextmanager, suppress
from itertools import islice
import os
from pathlib import Path
import struct
from typing import BinaryIO, NamedTuple, Protocol

from state_sensor_ros.errors import (
    DecodeError,
    reason_of,
    StateSensorError,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.files.bag import MCAP_MAGIC, McapStorage, PROFILE
from state_sensor_ros.files.input import closed_on_failure, open_input
from state_sensor_ros.files.recording import FrameFile
from state_sensor_ros.frame import Frame
from state_sensor_ros.simulators.osi.decoder import OsiDecoder
from state_sensor_ros.simulators.osi.messages import (
    kind_of_messages,
    kind_of_name,
    KINDS,
    MessageKind,
    n_placed,
    parse_truth,
)
from state_sensor_ros.simulators.osi.parameters import OsiParameters
from state_sensor_ros.source import LOST
from state_sensor_ros.texts import one_line

_LENGTH = struct.Struct('<I')
# The beginning of an MCAP file up to the profile: the magic number, the head of a record.
_HEADER = struct.Struct('<8sBQI4s')
_PROTOBUF = 'protobuf'
# Most messages that are searched for objects if the name of the file does not say their type.
_N_TRIED = 50
# Most messages that are searched for a position.
_N_SEARCHED = 10_000
_FORMAT = 'a trace of ASAM OSI'


class StoredGroundTruth(NamedTuple):
    data: bytes  # serialized
    position: int  # of its end in the file, in :attr:`MessageFile.unit`


class MessageFile(Protocol):
    """An open trace."""

    kind: MessageKind  # of its messages
    total: int  # total, unit: of :attr:`StoredGroundTruth.position`
    unit: str

    def messages(self, begin: int = 0) -> Iterator[StoredGroundTruth]:
        """Yield the messages from the first one on, or from the end of another one."""

    def close(self) -> None:
        """Close the file; a second call has no effect."""


class CutTraceError(TruncatedError):
    """A trace ends in a message."""

    @property
    def warning(self) -> str:
        """One line for a command that uses the whole messages."""
        return one_line(f'{self.where}: found {self.found}; {self.summary}')


class PlainTrace:
    """A file of messages, each after its length."""

    unit = 'B'

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        self._file: BinaryIO = open_input(path)
        with closed_on_failure(self):
            self.total = os.fstat(self._file.fileno()).st_size
            try:
                self.kind = kind_of_name(path.name) or self._kind()
            except DecodeError as error:
                raise TrajectoryFormatError(self._name, error.found, error.expected) from error

    def _kind(self) -> MessageKind:
        if not self.total:
            raise TrajectoryFormatError(self._name, 'an empty file', _FORMAT)
        kind, _ = kind_of_messages(self._first_messages())
        if kind is None:
            raise TrajectoryFormatError(
                f'{self._name}: message 1', 'bytes that cannot be parsed',
                f'an {KINDS}')
        return kind

    def _first_messages(self) -> Iterator[bytes]:
        try:
            for stored in islice(self.messages(), _N_TRIED):
                yield stored.data
        except TruncatedError as error:
            if not error.n_frames:
                raise

    def messages(self, begin: int = 0) -> Iterator[StoredGroundTruth]:
        self._file.seek(begin)
        offset, n_messages = begin, 0
        while offset < self.total:
            head = self._file.read(_LENGTH.size)
            n_bytes = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
            content = offset + _LENGTH.size
            if len(head) < _LENGTH.size or content + n_bytes > self.total:
                raise self._cut(offset, n_messages, head, n_bytes)
            data = self._file.read(n_bytes)
            if len(data) < n_bytes:
                raise self._cut(offset, n_messages, head, n_bytes)
            n_messages += 1
            offset = content + n_bytes
            yield StoredGroundTruth(data, offset)

    def _cut(self, offset: int, n_messages: int, head: bytes, n_bytes: int) -> TruncatedError:
        where = f'{self._name}: message {n_messages + 1}'
        if len(head) < _LENGTH.size:
            found, expected = f'{len(head)} bytes at the end', f'{_LENGTH.size} of its length'
        else:
            found = f'a length of {n_bytes} bytes {self.total - offset} bytes before the end'
            expected = 'a whole message'
        return CutTraceError(where, found, expected, n_frames=n_messages, end=offset,
                             lost=f'the last {self.total - offset} bytes')

    def close(self) -> None:
        self._file.close()


@contextmanager
def _damage_of_trace(name: str) -> Iterator[None]:
    try:
        yield
    except (StateSensorError, ImportError):
        raise
    except OSError as error:
        raise TrajectoryFormatError(name, reason_of(error), _FORMAT) from error
    except Exception as error:
        raise TrajectoryFormatError(
            name, f'a damaged trace ({" ".join(str(error).split()) or type(error).__name__})',
            'a whole trace; `state_sensor repair` recovers its whole messages') from error


class McapTrace:
    """The messages of one channel of an MCAP file."""

    # topic: topic of the channel, empty for the only one with ground truth.

    unit = 'frame'

    def __init__(self, path: Path, topic: str) -> None:
        self._name = str(path)
        with _damage_of_trace(self._name):
            self._reader = McapStorage(path, profile=None)
        with closed_on_failure(self):
            self._channel = self._chosen(topic)
        self.kind = MessageKind(self._reader.topics[self._channel].type_name)
        self.total = self._reader.counts[self._channel]

    def _chosen(self, topic: str) -> int:
        channels = {stored.name: number for number, stored in self._reader.topics.items()
                    if is_truth(stored.type_name, stored.serialization)
                    and self._reader.counts[number]}
        if not channels:
            others = ', '.join(sorted({stored.type_name for stored
                                       in self._reader.topics.values()}))
            raise TrajectoryFormatError(self._name, f'messages of {others or "no type"}',
                                        f'a channel of {KINDS}')
        if topic and topic not in channels:
            raise TrajectoryFormatError(self._name, f'no channel {topic} of the type {KINDS}',
                                        f'one of {", ".join(sorted(channels))}')
        if not topic and len(channels) > 1:
            raise TrajectoryFormatError(self._name, f'the channels {", ".join(sorted(channels))}',
                                        'one of them to be named by --topic')
        return channels[topic or next(iter(channels))]

    def messages(self, begin: int = 0) -> Iterator[StoredGroundTruth]:
        """Yield the messages in the order of their times, from a number on."""
        with _damage_of_trace(self._name):
            for i, (_, _, data) in enumerate(self._reader.messages((self._channel,), 0)):
                if i >= begin:
                    yield StoredGroundTruth(data, i + 1)

    def close(self) -> None:
        self._reader.close()


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


def is_truth(type_name: str, encoding: str) -> bool:
    """Return whether a channel has ground truth."""
    return encoding == _PROTOBUF and type_name in {kind.value for kind in MessageKind}


class OsiRecording(FrameFile):
    """A trace; a frame is one message."""

    # ego: name or id of the ego if there is no host, empty for none.

    def __init__(self, name: str, file: MessageFile, ego: str = '') -> None:
        self._file, self._ego = file, ego
        self.unit = file.unit
        first = next(file.messages(), None)
        if first is None:
            raise TrajectoryFormatError(name, 'no messages', 'at least one')
        self._first, self._end = first.data, 0
        self._check_places(name)
        super().__init__(name, f'trace of ASAM OSI, {file.kind.value}', 'osi', file.total)

    def _check_places(self, name: str) -> None:
        """Refuse objects none of which has a position, up to the first message that has one."""
        n_objects = 0
        with suppress(TruncatedError, DecodeError):
            for stored in islice(self._file.messages(), _N_SEARCHED):
                truth = parse_truth(stored.data, self._file.kind).truth
                if n_placed(truth):
                    return
                n_objects += len(truth.moving_object) + len(truth.stationary_object)
        if n_objects:
            raise TrajectoryFormatError(name, f'{n_objects} objects without a position',
                                        f'positions, as an {self._file.kind.value} has them')

    def _new_decoder(self) -> OsiDecoder:
        """Make a decoder with what only the first message may have."""
        try:
            return OsiDecoder(self._file.kind, self.faults, self._ego, self._first)
        except DecodeError as error:
            raise TrajectoryFormatError(f'{self.name}: message 1', error.found,
                                        error.expected) from error

    def mark(self) -> int:
        """Return the end of the last message."""
        return self._end

    def read(self, mark: int | None) -> Iterator[Frame]:
        """Yield a frame for each message."""
        decoder = self._new_decoder()
        for index, stored in enumerate(self._file.messages(mark or 0)):
            self.faults.place, decoder.details = f'message {index + 1}', self.details
            self._end = stored.position
            if self.unit != 'frame':
                self.position = stored.position
            try:
                yield decoder.decode(stored.data)
            except DecodeError as error:
                self.faults.add(LOST, error)

    def close(self) -> None:
        self._file.close()


def open_trace(path: str, options: ReadOptions) -> OsiRecording:
    where = Path(path)
    file: MessageFile
    if where.name.endswith('.osi'):
        if options.topic:
            raise TrajectoryFormatError(path, f'a trace without channels for {options.topic}',
                                        'an MCAP file, or no topic')
        file = PlainTrace(where)
    else:
        file = McapTrace(where, options.topic)
    with closed_on_failure(file):
        return OsiRecording(path, file, options.settings.of(OsiParameters).ego)

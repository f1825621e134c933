# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Serialised messages of OSI as ground truth: which of the two kinds they are, and their time.

An entry of a list has two bytes at least, and takes 60 bytes of memory: entries are counted before
the message is parsed. Lists that frames do not need, such as lane boundaries, are not parsed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
import math
import re
from typing import TYPE_CHECKING

from state_sensor_ros.simulators import DecodeError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_sensorview_pb2 import SensorView

NS_PER_S = 1_000_000_000
# Most entries of a list of a message: more objects than a city has, and more lanes than its map.
MAX_ENTRIES = 100_000
# Most messages within one message: protobuf takes 60 MB for them.
MAX_PARTS = 1_000_000
# Members of a GroundTruth that frames are made of.
_USED = frozenset(('timestamp', 'host_vehicle_id', 'stationary_object', 'moving_object', 'lane',
                   'logical_lane'))
TIME = frozenset(('timestamp',))
_USED_OF_VIEW = frozenset(('timestamp', 'host_vehicle_id'))
_TRUTH_OF_VIEW = 'global_ground_truth'
# Encoding of fields (protobuf.dev/programming-guides/encoding): the lowest bits of a key say how
# long the value is.
_VARINT, _EIGHT_BYTES, _DELIMITED, _FOUR_BYTES = 0, 1, 2, 5
_LONGEST_VARINT = 10


class MessageKind(str, Enum):
    """A type of messages with ground truth; the values are the names of MCAP's schemas."""

    GROUND_TRUTH = 'osi3.GroundTruth'
    SENSOR_VIEW = 'osi3.SensorView'


# As ASAM names its traces: DATE_TYPE_OSI_PROTOBUF_FRAMES.osi.
_KINDS_OF_NAMES: Mapping[str, MessageKind] = {
    'gt': MessageKind.GROUND_TRUTH, 'sv': MessageKind.SENSOR_VIEW}
_KIND_IN_NAME = re.compile(r'_(gt|sv)_')


@dataclass(frozen=True, slots=True)
class TimedTruth:
    """
    The ground truth of a message.

    ``game_time`` s, NaN without a timestamp; ``host`` id of the host vehicle, None without one.
    """

    truth: GroundTruth
    game_time: float
    host: int | None


class TooManyError(DecodeError):
    """A list of a message is longer than any that is read."""


def text_of(value: str | bytes) -> str:
    """
    Return a text of a message.

    :param value: text, or bytes if it is not UTF-8.
    """
    return value.decode(errors='replace') if isinstance(value, bytes) else value


def kind_of_name(name: str) -> MessageKind | None:
    """
    Return the kind of the messages of a trace, None if its name does not say it.

    :param name: name of the file.
    """
    match = _KIND_IN_NAME.search(name)
    return None if match is None else _KINDS_OF_NAMES[match[1]]


def kind_of_messages(messages: Iterable[bytes]) -> tuple[MessageKind | None, bool]:
    """
    Return the kind of messages, None for neither, and whether it is certain.

    Messages of Protobuf do not name their type, and parsing skips members that a type does not
    have: the first message that has objects with positions as one of the kinds decides.

    :param messages: first messages of a trace or stream, serialised.
    """
    guess = None
    for data in messages:
        scores = {kind: _score(data, kind) for kind in MessageKind}
        best = max(scores, key=scores.__getitem__)
        if scores[best] > 1:
            return best, True
        if scores[best] >= 0 and guess is None:
            guess = best
    return guess, False


def _score(data: bytes, kind: MessageKind) -> int:
    """Return -1 if the data cannot be parsed, more than 1 if the message has objects."""
    try:
        truth = parse_truth(data, kind).truth
    except TooManyError:
        return 0
    except DecodeError:
        return -1
    n_placed = sum(thing.HasField('base') and thing.base.HasField('position')
                   for objects in (truth.moving_object, truth.stationary_object)
                   for thing in objects)
    score: int = 2 * n_placed + truth.HasField('timestamp')
    return score


def parse_truth(data: bytes, kind: MessageKind,
                members: frozenset[str] = _USED) -> TimedTruth:
    """
    Parse a message.

    :param data: serialised message.
    :param kind: its type.
    :param members: members of the ground truth that are used.
    :raises DecodeError: if it is not a message of that type.
    :raises TooManyError: if one of its lists is too long.
    """
    # Imported here: other recordings need no library of OSI.
    from google.protobuf.message import DecodeError as ProtobufError
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_sensorview_pb2 import SensorView
    try:
        if kind is MessageKind.GROUND_TRUTH:
            truth = GroundTruth.FromString(_used_members(data, GroundTruth.DESCRIPTOR, members))
            return TimedTruth(truth, _time_of(truth), _host_of(truth))
        view = SensorView.FromString(
            _used_members(data, SensorView.DESCRIPTOR, _USED_OF_VIEW))
        member = SensorView.DESCRIPTOR.fields_by_name[_TRUTH_OF_VIEW].number
        # Members of a message that occurs again are merged, as protobuf does.
        truth = GroundTruth.FromString(_used_members(
            b''.join([data[begin:end] for number, _, begin, end in _fields(data)
                      if number == member]), GroundTruth.DESCRIPTOR, members))
    except (ProtobufError, ValueError, IndexError) as error:
        if isinstance(error, TooManyError):
            raise
        raise DecodeError('message', f'{len(data)} bytes that cannot be parsed',
                          f'an {kind.value}') from error
    time_s, host = _time_of(truth), _host_of(truth)
    return TimedTruth(truth, _time_of(view) if math.isnan(time_s) else time_s,
                      _host_of(view) if host is None else host)


def _used_members(data: bytes, type_: Descriptor, used: frozenset[str]) -> bytes:
    """
    Return a message with the members that are used, after counting its entries.

    :raises TooManyError: if one of its lists is too long.
    :raises ValueError: if it cannot be parsed; IndexError likewise.
    """
    names = {field.number: field.name for field in type_.fields}
    counts: Counter[int] = Counter()
    parts = []
    for number, start, _, end in _fields(data):
        counts[number] += 1
        if counts[number] > MAX_ENTRIES:
            raise TooManyError(names.get(number, f'member {number}'), f'more than {MAX_ENTRIES}',
                               f'at most {MAX_ENTRIES} in a message')
        if names.get(number) in used:
            parts.append(data[start:end])
    kept = b''.join(parts)
    # An entry has two bytes at least: most messages are too short for too many.
    if len(kept) > 2 * MAX_PARTS and _n_parts(kept, type_) > MAX_PARTS:
        raise TooManyError('message', f'more than {MAX_PARTS} messages in it',
                           f'at most {MAX_PARTS}')
    return kept


def _n_parts(data: bytes, type_: Descriptor) -> int:
    """Return the number of messages within a message, or a number above MAX_PARTS."""
    n_parts, waiting = 0, [(data, type_)]
    while waiting and n_parts <= MAX_PARTS:
        data, type_ = waiting.pop()
        types = {field.number: field.message_type for field in type_.fields}
        for number, _, begin, end in _fields(data):
            inner = types.get(number)
            n_parts += 1
            if n_parts > MAX_PARTS:
                break
            if inner is not None and end > begin:
                waiting.append((data[begin:end], inner))
    return n_parts


def _fields(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """
    Yield the number of each field, and the offsets of its key, its value and its end.

    :raises ValueError: if the bytes are not fields; IndexError if they end in one.
    """
    offset, n_bytes = 0, len(data)
    while offset < n_bytes:
        start = offset
        key, offset = _varint(data, offset)
        kind = key & 7
        if kind == _DELIMITED:
            size, offset = _varint(data, offset)
            end = offset + size
        elif kind == _VARINT:
            end = _varint(data, offset)[1]
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            end = offset + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise ValueError(f'fields of kind {kind}')
        if end > n_bytes:
            raise IndexError(end)
        yield key >> 3, start, offset, end
        offset = end


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a number and the offset of its end."""
    value = data[offset]
    if value < 0x80:
        return value, offset + 1
    value &= 0x7F
    for i in range(1, _LONGEST_VARINT):
        byte = data[offset + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, offset + i + 1
    raise ValueError('a number of more than 10 bytes')


def _time_of(message: GroundTruth | SensorView) -> float:
    if not message.HasField('timestamp'):
        return math.nan
    stamp = message.timestamp
    # One division: the float that is nearest to the nanoseconds.
    return float((stamp.seconds * NS_PER_S + stamp.nanos) / NS_PER_S)


def _host_of(message: GroundTruth | SensorView) -> int | None:
    return message.host_vehicle_id.value if message.HasField('host_vehicle_id') else None

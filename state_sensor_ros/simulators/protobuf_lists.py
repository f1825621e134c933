# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Lists in serialized messages of protobuf, counted before they are parsed.

An empty entry has two bytes, and takes 60 bytes of memory or more: 64 MB of them would take 2 GB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast, TYPE_CHECKING, TypeVar

from state_sensor_ros.errors import DecodeError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

    Parsed = TypeVar('Parsed', bound=Message)

__all__ = ['NotFieldsError', 'TooManyError', 'fields_of', 'parse_message']

# Most entries of a list of a message: more objects than a city has, and more lanes than its map.
_MAX_ENTRIES = 100_000
# Most messages within one message: protobuf takes 60 MB for them.
_MAX_PARTS = 1_000_000
# Encoding of fields (protobuf.dev/programming-guides/encoding): the lowest bits of a key say how
# long the value is.
_VARINT, _EIGHT_BYTES, _DELIMITED, _FOUR_BYTES = 0, 1, 2, 5
_LONGEST_VARINT = 10


class TooManyError(DecodeError):
    """A list of a message is longer than any that is read."""


class NotFieldsError(Exception):
    """The bytes are not a message of protobuf."""


def parse_message(type_: type[Parsed], data: bytes | memoryview,
                  used: frozenset[str] | None = None) -> Parsed:
    """
    Parse a message after counting the entries of its lists.

    :param type_: class of the message.
    :param data: serialized message.
    :param used: names of the members that are used; None for all.
    :raises TooManyError: if one of its lists is too long.
    :raises NotFieldsError: if it cannot be parsed.
    """
    # Imported here: who lacks OSI's messages is to read their name, not that of protobuf.
    from google.protobuf.message import DecodeError as ProtobufError
    try:
        message, descriptor = type_(), cast('Descriptor', type_.DESCRIPTOR)
        # A view of bytes is parsed, too.
        message.ParseFromString(cast('bytes', _checked(data, descriptor, used)))
    except ProtobufError as error:
        raise NotFieldsError(str(error)) from error
    return message


def _checked(data: bytes | memoryview, type_: Descriptor,
             used: frozenset[str] | None) -> bytes | memoryview:
    """Count the entries of the lists in a message, and return what is to be parsed."""
    if used is None and len(data) <= 2 * _MAX_ENTRIES:
        return data
    names = {field.number: field.name for field in type_.fields}
    counts: Counter[int] = Counter()
    parts = []
    for number, start, _, end in fields_of(data):
        counts[number] += 1
        if counts[number] > _MAX_ENTRIES:
            raise TooManyError(names.get(number, f'member {number}'), f'more than {_MAX_ENTRIES}',
                               f'at most {_MAX_ENTRIES} in a message')
        if used is not None and names.get(number) in used:
            parts.append(data[start:end])
    kept = data if used is None else b''.join(parts)
    # An entry has two bytes at least: most messages are too short for too many.
    if len(kept) > 2 * _MAX_PARTS and _n_parts(kept, type_) > _MAX_PARTS:
        raise TooManyError('message', f'more than {_MAX_PARTS} messages in it',
                           f'at most {_MAX_PARTS}')
    return kept


def _n_parts(data: bytes | memoryview, type_: Descriptor) -> int:
    """Return the number of messages within a message, or a number above _MAX_PARTS."""
    n_parts, waiting = 0, [(data, type_)]
    while waiting and n_parts <= _MAX_PARTS:
        data, type_ = waiting.pop()
        types = {field.number: field.message_type for field in type_.fields}
        for number, _, begin, end in fields_of(data):
            inner = types.get(number)
            n_parts += 1
            if n_parts > _MAX_PARTS:
                break
            if inner is not None and end > begin:
                waiting.append((data[begin:end], inner))
    return n_parts


def fields_of(data: bytes | memoryview) -> Iterator[tuple[int, int, int, int]]:
    """
    Yield the number of each field, and the offsets of its key, its value and its end.

    :param data: serialized message.
    :raises NotFieldsError: if it cannot be parsed.
    """
    offset, n_bytes = 0, len(data)
    try:
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
                raise NotFieldsError(f'a field of kind {kind}')
            if end > n_bytes:
                raise NotFieldsError('a field beyond the end')
            yield key >> 3, start, offset, end
            offset = end
    except IndexError as error:
        raise NotFieldsError('a number beyond the end') from error


def _varint(data: bytes | memoryview, offset: int) -> tuple[int, int]:
    value = data[offset]
    if value < 0x80:
        return value, offset + 1
    value &= 0x7F
    for i in range(1, _LONGEST_VARINT):
        byte = data[offset + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, offset + i + 1
    raise NotFieldsError(f'a number of more than {_LONGEST_VARINT} bytes')

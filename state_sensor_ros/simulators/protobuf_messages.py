# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Serialized messages of protobuf: parsed in part, and cut into their fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast, TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from google.protobuf.message import Message

    Parsed = TypeVar('Parsed', bound=Message)

__all__ = ['NotFieldsError', 'fields_of', 'parse_message']

# Encoding of fields (protobuf.dev/programming-guides/encoding): the lowest bits of a key say how
# long the value is.
_VARINT, _EIGHT_BYTES, _DELIMITED, _FOUR_BYTES = 0, 1, 2, 5
_LONGEST_VARINT = 10


class NotFieldsError(Exception):
    """The bytes are not a message of protobuf."""


def parse_message(type_: type[Parsed], data: bytes | memoryview,
                  used: frozenset[str] | None = None) -> Parsed:
    """
    Parse a message.

    :param type_: class of the message.
    :param data: serialized message.
    :param used: names of the members that are used: the others are skipped; None for all.
    :raises NotFieldsError: if it cannot be parsed.
    """
    # Imported here: who lacks OSI's messages is to read their name, not that of protobuf.
    from google.protobuf.message import DecodeError as ProtobufError
    if used is not None:
        numbers = {field.number for field in type_.DESCRIPTOR.fields if field.name in used}
        data = b''.join([data[start:end] for number, start, _, end in fields_of(data)
                         if number in numbers])
    message = type_()
    try:
        # A view of bytes is parsed, too.
        message.ParseFromString(cast('bytes', data))
    except ProtobufError as error:
        raise NotFieldsError(str(error)) from error
    return message


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

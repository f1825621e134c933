# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Fields of message types, from the installed definitions.

The ``.msg`` files of a sourced ROS come first, because its subscribers were built with them; then
the files of this package, then its copies of definitions that no type store has
(``resource/interfaces``), then the type store of rosbags.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import os
from pathlib import Path
import re
import struct

from state_sensor_ros.errors import EncodeError, importing
from state_sensor_ros.small_files import PACKAGE, share_file

SEQUENCE = 0

# Formats of primitives by the name of their type, little-endian.
_FORMATS = {'bool': '?', 'byte': 'B', 'char': 'B', 'int8': 'b', 'uint8': 'B', 'int16': 'h',
            'uint16': 'H', 'int32': 'i', 'uint32': 'I', 'int64': 'q', 'uint64': 'Q',
            'float32': 'f', 'float64': 'd'}
PRIMITIVES = {name: struct.Struct(f'<{format_}') for name, format_ in _FORMATS.items()}

# rosidl adds this field to a message without fields: IDL has no empty structures.
DUMMY = 'structure_needs_at_least_one_member'

_LINE = re.compile(
    r'(?P<type>[A-Za-z][\w/]*)(<=\d+)?(?P<array>\[(?P<bound><=)?(?P<length>\d*)\])?'
    r'\s+(?P<name>[A-Za-z]\w*)\s*(?P<constant>=)?')


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type_name: str  # a primitive or ``package/msg/Name``
    # None for a single value, ``SEQUENCE`` for a sequence, otherwise the length of an array.
    length: int | None = None


class Definitions:
    """
    Fields of message types, each looked up once.

    :param find: function that returns the fields of a type or None.
    """

    def __init__(self, find: Callable[[str], tuple[Field, ...] | None]) -> None:
        self._find = find
        self._fields: dict[str, tuple[Field, ...]] = {}

    def __getitem__(self, type_name: str) -> tuple[Field, ...]:
        """
        Return the fields of ``type_name`` in their order.

        :raises EncodeError: if no definition is found.
        """
        if type_name not in self._fields:
            fields = self._find(type_name)
            if fields is None:
                raise EncodeError(type_name, 'no definition', 'a sourced ROS 2 that has it')
            self._fields[type_name] = fields
        return self._fields[type_name]


def load_definitions() -> Definitions:
    """Return the definitions of the sourced ROS, of this package and of rosbags, in this order."""
    return Definitions(_found)


def text_of(type_name: str) -> str | None:
    """Return the text of a type's ``.msg`` file in the sourced ROS or in this package, or None."""
    package, _, bare = type_name.partition('/msg/')
    folders = [Path(prefix, 'share', package, 'msg') for prefix in os.environ.get(
        'AMENT_PREFIX_PATH', '').split(os.pathsep) if prefix]
    folders.append(share_file('msg') if package == PACKAGE
                   else share_file('resource', 'interfaces') / package)
    return next((path.read_text('utf-8') for folder in folders
                 if (path := folder / f'{bare}.msg').is_file()), None)


def parse_message(text: str, type_name: str) -> tuple[Field, ...]:
    """Return the fields of a ``.msg`` file, without constants and defaults."""
    # type_name: type of the message, ``package/msg/Name``; a bare name in the text is a type of
    # the same package.
    fields = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.partition('#')[0].strip()
        if not stripped:
            continue
        match = _LINE.match(stripped)
        if match is None:
            raise EncodeError(f'{type_name} line {number}', repr(stripped), 'a field or constant')
        if not match['constant']:
            fields.append(Field(match['name'], _full_name(match['type'], type_name),
                                _length(match)))
    return tuple(fields) or (Field(DUMMY, 'uint8'),)


def _full_name(name: str, within: str) -> str:
    if name in PRIMITIVES or name in ('string', 'wstring'):
        return name
    package, _, bare = name.rpartition('/')
    return f"{package.removesuffix('/msg') or within.partition('/')[0]}/msg/{bare}"


def _length(match: re.Match[str]) -> int | None:
    if not match['array']:
        return None
    return int(match['length']) if match['length'] and not match['bound'] else SEQUENCE


def _found(type_name: str) -> tuple[Field, ...] | None:
    text = text_of(type_name) or _stored_text(type_name)
    return None if text is None else parse_message(text, type_name)


def _stored_text(type_name: str) -> str | None:
    """Return the definition in the type store of rosbags, which a sourced ROS does without."""
    with importing(f'the definition of {type_name}'):
        from rosbags.typesys import get_typestore, Stores
    store = get_typestore(Stores.ROS2_JAZZY)
    if type_name not in store.fielddefs:
        return None
    # Those of the types of its fields follow.
    return store.generate_msgdef(type_name, ros_version=2)[0].partition('=' * 80)[0]

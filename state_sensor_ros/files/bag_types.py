# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The message types of a bag: their definitions, hashes and deserializers."""

from __future__ import annotations

from functools import lru_cache
import struct

from rosbags.serde import SerdeError
from rosbags.typesys import get_types_from_msg, get_typestore, Stores, TypesysError
from rosbags.typesys.store import Typestore

from state_sensor_ros.cdr.definitions import foreign_texts, installed_text, parse_message
from state_sensor_ros.small_files import PACKAGE, share_file

# Exceptions of rosbags' deserializer for bytes that do not match the definition.
NOT_SUCH = (SerdeError, struct.error, ValueError, IndexError, AssertionError, OverflowError,
            MemoryError)
# Separates the definition of a type from those of the types of its fields.
_SEPARATOR = '=' * 80 + '\nMSG: '


@lru_cache(maxsize=1)
def typestore() -> Typestore:
    """Return the standard types and those of this package, with serializers; takes 0.1 s once."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in _own_texts().items():
        store.register(get_types_from_msg(text, name))
    return store


@lru_cache(maxsize=1)
def _own_texts() -> dict[str, str]:
    return {f'{PACKAGE}/msg/{path.stem}': path.read_text('utf-8')
            for path in sorted(share_file('msg').glob('*.msg'))}


@lru_cache(maxsize=1)
def _fields() -> Typestore:
    return get_typestore(Stores.EMPTY)


def _described(type_name: str) -> Typestore:
    """
    Return a store with the fields of a type and of the types it contains, but no classes.

    As in :mod:`definitions`, the definitions of a sourced ROS precede those of rosbags.
    """
    store, pending = _fields(), [type_name]
    while pending:
        name = pending.pop()
        if name in store.fielddefs:
            continue
        text = _own_texts().get(name) or installed_text(name) or foreign_texts().get(name)
        if text is None:
            standard = get_typestore(Stores.ROS2_JAZZY).fielddefs
            store.fielddefs = {**standard, **store.fielddefs}
        else:
            store.fielddefs |= get_types_from_msg(text, name)
            pending += [field.type_name for field in parse_message(text, name)
                        if '/' in field.type_name]
    return store


@lru_cache(maxsize=64)
def definition(type_name: str) -> str:
    """
    Return the definition of a type followed by those of the types it contains.

    Definitions of this package are those of ``msg/``, with the units in their comments.
    """
    whole, _ = _described(type_name).generate_msgdef(type_name, ros_version=2)
    first, *others = whole.split(_SEPARATOR)
    sections = [_own_texts().get(type_name, first)]
    for section in others:
        bare, _, text = section.partition('\n')
        package, _, name = bare.partition('/')
        sections.append(f'{bare}\n{_own_texts().get(f"{package}/msg/{name}", text)}')
    return _SEPARATOR.join(text if text.endswith('\n') else f'{text}\n' for text in sections)


@lru_cache(maxsize=64)
def type_hash(type_name: str) -> str:
    """Return the hash of a type, ``RIHS01_`` and 64 digits, as every ROS 2 computes it."""
    return _described(type_name).hash_rihs01(type_name)


@lru_cache(maxsize=64)
def hash_of_definition(type_name: str, text: str) -> str:
    """Compute the hash of a type from its definition in a bag, ``''`` if that is damaged."""
    store = get_typestore(Stores.EMPTY)
    try:
        store.fielddefs |= get_types_from_msg(text, type_name)
        return store.hash_rihs01(type_name)
    except (TypesysError, ValueError, KeyError, RecursionError):
        return ''

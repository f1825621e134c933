# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Message types as bags carry them: definition text and type hash.

May know: rosbags' type store, this package's msg/ files. Must not know: bags, fields of a message.
Hashes are RIHS01 of REP-2011; rosbags computes them.
"""

from __future__ import annotations

from functools import lru_cache

from rosbags.typesys import get_types_from_msg, get_typestore, Stores, TypesysError
from rosbags.typesys.store import Typestore

from state_sensor_ros.cdr.definitions import installed_text, parse_message
from state_sensor_ros.share import PACKAGE, share_file

# What stands between the definitions of a type and of those that it is made of.
# The time to parse a definition grows with its square.
_MAX_DEFINITION_BYTES = 64 * 1024
_SEPARATOR = '=' * 80 + '\nMSG: '


@lru_cache(maxsize=1)
def typestore() -> Typestore:
    """Return the standard types and ours, to (de)serialise with; it costs 0.1 s, once."""
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
    Return a store with the fields of a type and of all it is made of, but no classes.

    As for :mod:`definitions`, a sourced ROS comes before what rosbags knows.
    """
    store, wanted = _fields(), [type_name]
    while wanted:
        name = wanted.pop()
        if name in store.fielddefs:
            continue
        text = _own_texts().get(name) or installed_text(name)
        if text is None:
            standard = get_typestore(Stores.ROS2_JAZZY).fielddefs
            store.fielddefs = {**standard, **store.fielddefs}
        else:
            store.fielddefs |= get_types_from_msg(text, name)
            wanted += [field.type_name for field in parse_message(text, name)
                       if '/' in field.type_name]
    return store


@lru_cache(maxsize=64)
def definition(type_name: str) -> str:
    """
    Return the definition of a type followed by those of all it is made of.

    Our own stand there as they are in ``msg/``, with the units in their comments.

    :param type_name: ``package/msg/Name``.
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
def hash_of_definition(type_name: str, text: str, encoding: str) -> str:
    """
    Compute the hash of a type from its definition as a bag has it.

    :returns: ``''`` where that cannot be done.
    """
    if encoding != 'ros2msg' or len(text) > _MAX_DEFINITION_BYTES:
        return ''
    try:
        store = get_typestore(Stores.EMPTY)
        store.fielddefs |= get_types_from_msg(text, type_name)
        return store.hash_rihs01(type_name)
    except (TypesysError, ValueError, KeyError, RecursionError):
        return ''


@lru_cache(maxsize=64)
def type_hash(type_name: str) -> str:
    """Return ``RIHS01_`` and the hash of a type, which any ROS 2 computes alike."""
    return _described(type_name).hash_rihs01(type_name)

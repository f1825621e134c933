# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
One actor in any form, read member by member by the annotations of its type in ``wire``.

A member that is missing or ``null`` gets its default; without a default, a missing one is an
error. Vectors and quaternions may have each form of doc/protocol/frames.md#forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import UnionType
from typing import Any, cast, get_args, get_origin, TypeAlias, TypeVar, Union

import msgspec
from msgspec import Meta, NODEFAULT, Raw, Struct

from state_sensor_ros.simulators.json_text import Json
from state_sensor_ros.simulators.json_values import (
    member,
    NO_TRIPLE,
    Number,
    Quadruple,
    to_flag,
    to_integer,
    to_list,
    to_number,
    to_object,
    to_quadruple,
    to_text,
    to_triple,
    Triple,
    wrong,
)
from state_sensor_ros.simulators.monodrive.generations.wire import (
    NO_VECTOR,
    Quaternion,
    UnreadControlState,
    Vector,
)

# Reads parsed JSON with a key path; raises DecodeError with key path, found and expected.
Reader: TypeAlias = Callable[[Json, str], Any]
_Struct = TypeVar('_Struct', bound=Struct)

# The types that JSON has in another form, and None, as which an optional member is read.
_NOT_READ = (Raw, UnreadControlState, type(None))
_WORDS = {Vector: 'a vector', Triple: 'a vector', Quaternion: 'a quaternion',
          Quadruple: 'a quaternion', str: 'a string', int: 'an integer', bool: 'true or false'}


def located(items: Iterable[Json], where: str) -> Iterator[tuple[Json, str]]:
    """
    Yield each item with its key path.

    :param items: the elements of an array.
    :param where: key path of the array.
    """
    return ((item, f'{where}[{i}]') for i, item in enumerate(items))


def read_struct(kind: type[_Struct], value: Mapping[str, Json], where: str) -> _Struct:
    """
    Read an object by the annotations of a type.

    :param kind: a type of ``wire``; an actor whose wheels have ids has each id once.
    :param value: parsed JSON.
    :param where: its key path.
    :raises DecodeError: if a member is invalid, a required one missing, or a wheel id repeated.
    """
    read = kind(**{name: read_member(value, where) for name, read_member in _members(kind)})
    wheels = getattr(read, 'wheels', ())
    if len({wheel.id for wheel in wheels}) < len(wheels):
        raise wrong(f'{where}.wheels', [wheel.id for wheel in wheels], 'each wheel id once')
    return read


def read_optional(kind: type[Struct], key: str, value: Mapping[str, Json],
                  where: str) -> Any:  # noqa: ANN401
    """
    Read one member of an object and none of its others.

    :param kind: type of the object.
    :param key: name of the member, which has a default.
    :param value: parsed JSON.
    :param where: key path of the object, empty at the top.
    :raises DecodeError: if it is invalid.
    """
    return dict(_members(kind))[key](value, where)


@lru_cache(maxsize=32)
def nested_types(kind: type[Struct]) -> dict[str, type[Struct] | None]:
    """
    Return the members of a type, each with the type of the object or objects in it.

    :param kind: a type of ``wire``.
    :returns: None for a member whose content is a value: a number, a text, a vector.
    """
    found: dict[str, type[Struct] | None] = {}
    for field in msgspec.structs.fields(kind):
        plain, _ = _plain(field.type)
        items = get_args(plain)
        item = items[0] if items and items[-1] is ... else plain
        is_object = isinstance(item, type) and issubclass(item, Struct) \
            and item not in (Vector, Quaternion)
        found[field.name] = item if is_object else None
    return found


@lru_cache(maxsize=32)
def _members(kind: type[Struct]) -> tuple[tuple[str, Reader], ...]:
    """Return what reads each member out of an object with its key path."""
    return tuple((field.name, _member_reader(field)) for field in msgspec.structs.fields(kind))


def _member_reader(field: msgspec.structs.FieldInfo) -> Reader:
    key, default = field.name, field.default
    plain, is_optional = _plain(field.type)
    # A vector whose default is unknown may lack components, which are unknown then.
    read = _reader(plain, is_complete=default not in (NO_VECTOR, NO_TRIPLE))

    def read_required(owner: Mapping[str, Json], where: str) -> Any:  # noqa: ANN401
        return read(member(owner, key, where, _word(plain)), f'{where}.{key}')

    def read_or_default(owner: Mapping[str, Json], where: str) -> Any:  # noqa: ANN401
        value = owner.get(key)
        # NaN is how an optional integer may be written; as a number it is the same as none.
        if value is None or (is_optional and value != value):
            return default
        return read(value, f'{where}.{key}' if where else key)

    return cast(Reader, read_required if default is NODEFAULT else read_or_default)


def _plain(annotation: Any) -> tuple[Any, bool]:  # noqa: ANN401
    """Return the type that is read in place of an annotation, and whether it may be None."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation, False
    parts = get_args(annotation)
    return next(part for part in parts if part not in _NOT_READ), type(None) in parts


def _reader(plain: Any, *, is_complete: bool = True) -> Reader:  # noqa: ANN401
    if plain is Vector:
        return lambda value, where: Vector(*to_triple(value, where, complete=is_complete))
    if plain is Quaternion:
        return lambda value, where: _quaternion(*to_quadruple(value, where))
    if plain == Triple:
        return lambda value, where: to_triple(value, where, complete=is_complete)
    if plain == Quadruple:
        return to_quadruple
    items = get_args(plain)
    if items and items[-1] is ...:
        read = _reader(_plain(items[0])[0])
        return lambda value, where: tuple(
            [read(item, path) for item, path in located(to_list(value, where), where)])
    if hasattr(plain, '__metadata__'):
        limits: Meta = plain.__metadata__[0]
        return lambda value, where: to_integer(
            value, where, cast(int, limits.ge), cast(int, limits.le))
    if plain in (str, bool, float):
        return cast(Reader, {str: to_text, bool: to_flag, float: to_number}[plain])
    return lambda value, where: read_struct(plain, to_object(value, where), where)


def _quaternion(x: Number, y: Number, z: Number, w: Number) -> Quaternion:
    return Quaternion(w, x, y, z)


def _word(plain: Any) -> str:  # noqa: ANN401
    return _WORDS.get(getattr(plain, '__origin__', plain)) or _WORDS.get(plain, 'an object')

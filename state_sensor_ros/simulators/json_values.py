# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Values of parsed JSON, checked and converted (doc/protocol/frames.md#vector-formats).

``value`` is parsed JSON, ``where`` its key path, for errors. Each ``to_…`` function raises
DecodeError with the key path, the value found and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
import json
import math
import struct
from typing import TypeAlias

import numpy as np

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Floats
from state_sensor_ros.rep103 import mirrored_orientation, to_rep103_rotator
from state_sensor_ros.simulators.json_text import Json, shortened

__all__ = [
    'NAN', 'NO_QUADRUPLE', 'NO_TRIPLE', 'Number', 'Quadruple', 'Tags', 'Triple', 'as_rows',
    'located', 'member', 'packed_with_nulls', 'shown', 'to_flag', 'to_integer', 'to_list',
    'to_number', 'to_object', 'to_quadruple', 'to_text', 'to_triple', 'wrong',
]

# ``null`` is how the simulator writes NaN and infinity.
Number: TypeAlias = float | None
Triple: TypeAlias = tuple[Number, Number, Number]
Quadruple: TypeAlias = tuple[Number, Number, Number, Number]
Tags: TypeAlias = tuple[str, ...]

NAN = math.nan
NO_TRIPLE: Triple = (NAN, NAN, NAN)
NO_QUADRUPLE: Quadruple = (NAN, NAN, NAN, NAN)

_MISSING = object()


def shown(value: Json) -> str:
    """
    Return a short text of a value of any size, for errors.

    :param value: parsed JSON, or the mark of a missing member.
    """
    if value is _MISSING:
        return 'nothing'
    if isinstance(value, dict):
        return 'an object'
    if isinstance(value, list):
        return f'an array of {len(value)}'
    if isinstance(value, str):
        return repr(shortened(value))
    return json.dumps(value)


def wrong(where: str, value: Json, expected: str) -> DecodeError:
    """
    Return the error for a value of another type or range than expected.

    :param where: key path of the value.
    :param value: value found there, or the mark of a missing member.
    :param expected: description of the values that are accepted.
    """
    return DecodeError(where, shown(value), expected)


def to_object(value: Json, where: str) -> Mapping[str, Json]:
    """
    Return ``value`` if it is an object.

    :param value: parsed JSON.
    :param where: key path of ``value``.
    :raises DecodeError: if it is not an object.
    """
    if not isinstance(value, dict):
        raise wrong(where, value, 'an object')
    return value


def member(owner: Mapping[str, Json], key: str, where: str, expected: str) -> Json:
    """
    Return a required member of an object.

    :param owner: object.
    :param key: name of the member.
    :param where: key path of the object.
    :param expected: description of the values that are accepted, for the error.
    :raises DecodeError: if the object has no such member.
    """
    value = owner.get(key, _MISSING)
    if value is _MISSING:
        raise wrong(f'{where}.{key}', value, expected)
    return value


def to_list(value: Json, where: str) -> list[Json]:
    """
    Return ``value`` if it is an array; ``null`` is an empty one.

    :param value: parsed JSON.
    :param where: its key path.
    :raises DecodeError: if it is neither an array nor ``null``.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(where, value, 'an array')
    return value


def located(items: Iterable[Json], where: str) -> Iterator[tuple[Json, str]]:
    """
    Return each item of an array with its key path.

    :param items: items of the array.
    :param where: key path of the array.
    """
    return ((item, f'{where}[{i}]') for i, item in enumerate(items))


def to_number(value: Json, where: str) -> float:
    """
    Return a number, NaN for ``null`` and for numbers that are not finite.

    :param value: parsed JSON.
    :param where: its key path.
    :raises DecodeError: if it is neither a number nor ``null``.
    """
    if value is None:
        return NAN
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(where, value, 'a number')
    return float(value) if math.isfinite(value) else NAN


def to_integer(value: Json, where: str, low: int, high: int) -> int:
    """
    Return an integer between ``low`` and ``high``, which may be written as a float.

    :param value: parsed JSON.
    :param where: its key path.
    :param low: least value allowed.
    :param high: greatest value allowed.
    :raises DecodeError: if it is not an integer, or outside of the limits.
    """
    whole = (isinstance(value, int) and not isinstance(value, bool)) \
        or (isinstance(value, float) and value.is_integer())
    if not whole or not low <= value <= high:  # type: ignore[operator]
        raise wrong(where, value, f'an integer in {low} .. {high}')
    return int(value)  # type: ignore[call-overload,no-any-return]


def to_flag(value: Json, where: str) -> bool:
    """
    Return ``value`` if it is true or false.

    :param value: parsed JSON.
    :param where: its key path.
    :raises DecodeError: if it is another value, also 0 or 1.
    """
    if not isinstance(value, bool):
        raise wrong(where, value, 'true or false')
    return value


def to_text(value: Json, where: str) -> str:
    """
    Return ``value`` if it is a string that can be encoded as UTF-8.

    :param value: parsed JSON.
    :param where: its key path.
    :raises DecodeError: if it is not a string, or has half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise wrong(where, value, 'a string')
    # JSON can escape half of a surrogate pair, which is not a character.
    if not value.isascii() and any('\ud800' <= c <= '\udfff' for c in value):
        raise DecodeError(where, ascii(shortened(value)), 'Unicode text')
    return value


def to_triple(value: Json, where: str, *, complete: bool = False) -> Triple:
    """
    Return a vector from ``{x, y, z}`` or ``[x, y, z]``; ``null`` is all NaN.

    :param value: parsed JSON.
    :param where: its key path.
    :param complete: whether a missing component is an error rather than NaN.
    :raises DecodeError: if it has another format, or a component is not a number.
    """
    if value is None:
        return NO_TRIPLE
    if isinstance(value, list) and len(value) == 3:
        x, y, z = (to_number(item, f'{where}[{i}]') for i, item in enumerate(value))
        return x, y, z
    if not isinstance(value, dict):
        raise wrong(where, value, '{x, y, z} or [x, y, z]')
    x, y, z = _components(value, 'xyz', where, complete)
    return x, y, z


def to_quadruple(value: Json, where: str) -> Quadruple:
    """
    Return a quaternion xyzw from ``{w, x, y, z}`` or ``[x, y, z, w]``; ``null`` is all NaN.

    A rotator ``{pitch, yaw, roll}``, degrees, is accepted, too, as by the simulator's own reader.

    :param value: parsed JSON.
    :param where: its key path.
    :returns: quaternion in the axes of the source.
    :raises DecodeError: if it has another format, or a component is missing or not a number.
    """
    if value is None:
        return NO_QUADRUPLE
    if isinstance(value, list) and len(value) == 4:
        x, y, z, w = (to_number(item, f'{where}[{i}]') for i, item in enumerate(value))
        return x, y, z, w
    if not isinstance(value, dict):
        raise wrong(where, value, '{w, x, y, z} or [x, y, z, w]')
    if 'w' not in value and 'yaw' in value:
        rotator = _components(value, ('roll', 'pitch', 'yaw'), where, True)
        x, y, z, w = mirrored_orientation(to_rep103_rotator(np.array(rotator))).tolist()
        return x, y, z, w
    x, y, z, w = _components(value, 'xyzw', where, True)
    return x, y, z, w


def _components(value: Mapping[str, Json], keys: str | tuple[str, ...], where: str,
                complete: bool) -> list[float]:
    numbers = []
    for key in keys:
        item = value.get(key, _MISSING)
        if item is _MISSING:
            if complete:
                raise wrong(f'{where}.{key}', item, 'a number')
            item = None
        numbers.append(to_number(item, f'{where}.{key}'))
    return numbers


def as_rows(numbers: Sequence[Number], n_columns: int) -> Floats:
    """
    Arrange numbers as rows, with NaN for ``None``.

    :param numbers: numbers row by row.
    :param n_columns: number of columns.
    :returns: (len / n_columns, n_columns) float64, must not be written to.
    """
    try:
        # Takes a third of the time of np.array, which is needed only for None.
        packed = _doubles(len(numbers)).pack(*numbers)
    except struct.error:
        return np.array(numbers, np.float64).reshape(-1, n_columns)
    return np.ndarray((len(numbers) // n_columns, n_columns), np.float64, packed)


@lru_cache(maxsize=64)
def _doubles(n_numbers: int) -> struct.Struct:
    return struct.Struct(f'{n_numbers}d')


def packed_with_nulls(packed: struct.Struct) -> Callable[..., None]:
    """
    Return a slower ``packed.pack_into`` that packs NaN for ``None``.

    :param packed: format with float64 only.
    """
    def pack_into(buffer: bytearray, offset: int, *numbers: Number) -> None:
        packed.pack_into(buffer, offset, *[NAN if number is None else number
                                           for number in numbers])
    return pack_into

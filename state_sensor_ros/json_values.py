# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
JSON text and values in every form that simulators send (doc/protocol/frames.md#forms).

``value`` is parsed JSON, ``where`` its key path, for errors. Each ``to_…`` function raises
DecodeError with key path, found and expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import json
import math
import struct
from typing import TypeAlias

import msgspec
import numpy as np

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Floats
from state_sensor_ros.rep103 import mirrored_orientation, to_rep103_rotator

Json: TypeAlias = object
# ``null`` is how the simulator writes NaN and infinity.
Number: TypeAlias = float | None
Triple: TypeAlias = tuple[Number, Number, Number]
Quadruple: TypeAlias = tuple[Number, Number, Number, Number]
Tags: TypeAlias = tuple[str, ...]

NAN = math.nan
NO_TRIPLE: Triple = (NAN, NAN, NAN)
NO_QUADRUPLE: Quadruple = (NAN, NAN, NAN, NAN)

# More digits than any 64-bit integer has; a longer one is read as a float, out of range.
_MAX_INTEGER_DIGITS = 20
_MAX_SHOWN = 40
# The longest word of JSON is -Infinity; the parser reports the beginning of one that was cut.
_MAX_WORD = 9
_MISSING = object()
# Errors of msgspec for text that is not JSON, not UTF-8, nested too deep or of another shape.
NOT_TYPED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_STRICT_JSON = msgspec.json.Decoder(msgspec.Raw)


class JsonError(DecodeError):
    """
    Text is not JSON; ``line`` and ``column``, 1-based, of the first fault.

    ``is_at_end``: the text may be the beginning of valid JSON, cut off at its end.

    :param text: that is not JSON.
    :param fault: as :mod:`json` raises it.
    """

    def __init__(self, text: str, fault: json.JSONDecodeError) -> None:
        super().__init__(f'line {fault.lineno} column {fault.colno}',
                         _shown_text(text, fault.pos), f'JSON ({fault.msg})')
        self.line = fault.lineno
        self.column = fault.colno
        self.is_at_end = fault.msg.startswith('Unterminated') \
            or len(text) - fault.pos < _MAX_WORD


def is_strict_json(text: bytes) -> bool:
    """Return whether ``text`` is a JSON value, without BOM, NaN, Infinity and single quotes."""
    try:
        _STRICT_JSON.decode(text)
    except NOT_TYPED:
        return False
    return True


def parse_payload(payload: bytes | bytearray | memoryview | msgspec.Raw) -> Json:
    """
    Parse JSON, also with NaN, Infinity, numbers out of range or single quotes.

    :param payload: UTF-8, with or without BOM.
    :returns: objects as dict, arrays as list; numbers may be NaN or infinite.
    :raises JsonError: when it is not JSON, with the place of the first fault.
    :raises DecodeError: when it is not UTF-8, or nested deeper than Python's recursion limit.
    """
    return _parsed(payload, _PARSER)


def repaired(payload: bytes) -> bytes:
    """
    Rewrite text that :func:`parse_payload` accepts as strict JSON.

    :param payload: UTF-8, with or without BOM.
    :returns: JSON with ``null`` for NaN, infinite numbers and those out of range.
    :raises DecodeError: as :func:`parse_payload` does.
    """
    value = _parsed(payload, _NULL_PARSER)
    try:
        return json.dumps(value, allow_nan=False).encode()
    except RecursionError:
        raise _too_deep() from None


def check_utf8(payload: bytes | bytearray | memoryview | msgspec.Raw) -> str:
    """
    Return a payload as text, without its BOM.

    :param payload: with or without BOM.
    :raises DecodeError: when it is not UTF-8, with the offset of the first wrong byte.
    """
    try:
        return str(payload, 'utf-8-sig')
    except UnicodeDecodeError as exc:
        raise DecodeError(f'byte {exc.start}', f'0x{exc.object[exc.start]:02x}',
                          'UTF-8') from None


def _parsed(payload: bytes | bytearray | memoryview | msgspec.Raw,
            parser: json.JSONDecoder) -> Json:
    text = check_utf8(payload)
    try:
        return _loads(text, parser)
    except DecodeError:
        # Quotes are replaced only when no name can contain an apostrophe: with double quotes
        # anywhere, a single one may be one (doc/protocol/sensor.md#payload).
        if "'" not in text or '"' in text:
            raise
    return _loads(text.replace("'", '"'), parser)


def _loads(text: str, parser: json.JSONDecoder) -> Json:
    try:
        return parser.decode(text)
    except json.JSONDecodeError as exc:
        raise JsonError(text, exc) from None
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> DecodeError:
    return DecodeError('payload', 'brackets nested too deep', 'JSON of a frame')


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_INTEGER_DIGITS else float(digits)


def _finite_or_none(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _integer_or_none(digits: str) -> int | float | None:
    return int(digits) if len(digits) <= _MAX_INTEGER_DIGITS else _finite_or_none(digits)


_PARSER = json.JSONDecoder(parse_int=_integer, parse_constant=float)
_NULL_PARSER = json.JSONDecoder(parse_int=_integer_or_none, parse_float=_finite_or_none,
                                parse_constant=lambda _: None)


def _shown_text(text: str, start: int) -> str:
    return repr(text[start:start + _MAX_SHOWN]) if start < len(text) else 'the end'


def shortened(text: str, n_most: int = _MAX_SHOWN) -> str:
    """
    Return at most ``n_most`` characters of a text, and an ellipsis if it is longer.

    :param text: of any length.
    :param n_most: number of characters, without the ellipsis.
    """
    return text if len(text) <= n_most else text[:n_most] + '…'


def shown(value: Json) -> str:
    """
    Return a short text of a value of any size, for errors.

    :param value: as :func:`parse_payload` returns it, or the mark of a missing member.
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
    :param value: what was found there, or the mark of a missing member.
    :param expected: what was expected there, in words.
    """
    return DecodeError(where, shown(value), expected)


def to_object(value: Json, where: str) -> Mapping[str, Json]:
    """
    Return ``value`` if it is an object.

    :param value: parsed JSON.
    :param where: its key path, named in the error.
    :raises DecodeError: where it is none.
    """
    if not isinstance(value, dict):
        raise wrong(where, value, 'an object')
    return value


def member(owner: Mapping[str, Json], key: str, where: str, expected: str) -> Json:
    """
    Return a required member of an object.

    :param owner: the object.
    :param key: name of the member.
    :param where: key path of the owner.
    :param expected: what was expected there, in words, for the error.
    :raises DecodeError: where the owner has no such member.
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
    :raises DecodeError: where it is neither an array nor ``null``.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(where, value, 'an array')
    return value


def to_number(value: Json, where: str) -> float:
    """
    Return a number, NaN for ``null`` and for numbers that are not finite.

    :param value: parsed JSON.
    :param where: its key path.
    :raises DecodeError: where it is neither a number nor ``null``.
    """
    if value is None:
        return NAN
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(where, value, 'a number')
    return float(value) if math.isfinite(value) else NAN


def to_integer(value: Json, where: str, low: int, high: int) -> int:
    """
    Return an integer between ``low`` and ``high``, also one that is written as a float.

    :param value: parsed JSON.
    :param where: its key path.
    :param low: the least allowed.
    :param high: the greatest allowed.
    :raises DecodeError: where it is no integer, or outside of the limits.
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
    :raises DecodeError: where it is another value; 0 and 1 are no flags.
    """
    if not isinstance(value, bool):
        raise wrong(where, value, 'true or false')
    return value


def to_text(value: Json, where: str) -> str:
    """
    Return ``value`` if it is a string that can be encoded as UTF-8.

    :param value: parsed JSON.
    :param where: its key path.
    :raises DecodeError: where it is no string, or has half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise wrong(where, value, 'a string')
    # JSON can escape half of a surrogate pair, which is not a character.
    if not value.isascii() and any('\ud800' <= c <= '\udfff' for c in value):
        raise DecodeError(where, ascii(value[:_MAX_SHOWN]), 'Unicode text')
    return value


def to_tags(value: Json, where: str) -> Tags:
    """
    Return an array of strings as a tuple.

    :param value: parsed JSON; ``null`` is an empty array.
    :param where: its key path.
    :raises DecodeError: where it is no array, or an element is no string.
    """
    return tuple(to_text(tag, f'{where}[{i}]') for i, tag in enumerate(to_list(value, where)))


def to_triple(value: Json, where: str, *, complete: bool = False) -> Triple:
    """
    Return a vector from ``{x, y, z}`` or ``[x, y, z]``; ``null`` is all NaN.

    :param value: parsed JSON.
    :param where: its key path.
    :param complete: whether a missing component is an error rather than NaN.
    :raises DecodeError: where it has another form, or a component is no number.
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

    A rotator ``{pitch, yaw, roll}``, degrees, is accepted too, as by the simulator's own reader.

    :param value: parsed JSON.
    :param where: its key path.
    :returns: in the axes of the source.
    :raises DecodeError: where it has another form, or a component is missing or no number.
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

    :param numbers: row after row.
    :returns: (len / n_columns, n_columns) float64, must not be written to.
    """
    try:
        # Half the time of np.array of a list, which is needed only with None.
        flat: Floats = np.frombuffer(struct.pack(f'{len(numbers)}d', *numbers))
    except struct.error:
        flat = np.array(numbers, np.float64)
    return flat.reshape(-1, n_columns)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
JSON text, also with NaN and single quotes, to values, and these checked and converted.

The formats are in doc/protocol/frames.md#vector-formats. ``value`` is parsed JSON, ``where`` its
key path, for errors. Each ``to_…`` function raises DecodeError with the key path, the value found
and what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
import json
import math
import re
import struct
from typing import TypeAlias

import msgspec
import numpy as np

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Floats
from state_sensor_ros.texts import MAX_SHOWN, shortened

__all__ = [
    'NAN', 'NOT_TYPED', 'NO_QUADRUPLE', 'NO_TRIPLE', 'Json', 'JsonError', 'Number', 'Quadruple',
    'Tags', 'Triple', 'as_rows', 'check_encoding', 'check_utf8', 'is_strict_json', 'located',
    'packed_with_nulls', 'parse_finite', 'parse_payload', 'repaired', 'shortened',
    'shown', 'text_of', 'to_flag', 'to_integer', 'to_list', 'to_object', 'to_text', 'wrong',
]

Json: TypeAlias = object

# More digits than any 64-bit integer has; a longer one is read as a float, out of range.
_MAX_INTEGER_DIGITS = 20
# Length of the longest word of JSON, -Infinity; for a word that is cut off, the parser reports its
# beginning.
_MAX_WORD = 9
# Errors of msgspec for text that is not JSON, not UTF-8, nested too deep or of another shape.
NOT_TYPED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_JSON_WORDS = {'None': 'null', 'True': 'true', 'False': 'false'}
_PYTHON_WORD = re.compile('|'.join(_JSON_WORDS))
_STRICT_JSON = msgspec.json.Decoder(msgspec.Raw)


class JsonError(DecodeError):
    """
    Text is not JSON; ``line`` and ``column``, 1-based, of the first fault.

    ``is_at_end`` whether the text may be valid JSON that was cut off.

    :param text: text that is not JSON.
    :param fault: error of :mod:`json`.
    """

    def __init__(self, text: str, fault: json.JSONDecodeError) -> None:
        word = _PYTHON_WORD.match(text, fault.pos)
        reason = fault.msg if word is None else \
            f"{word[0]} is Python's: `json.dumps` writes {_JSON_WORDS[word[0]]}"
        super().__init__(f'line {fault.lineno} column {fault.colno}',
                         _shown_text(text, fault.pos), f'JSON ({reason})')
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

    :param payload: text in UTF-8, with or without BOM.
    :returns: the value, objects as dict, arrays as list; numbers may be NaN or infinite.
    :raises JsonError: if it is not JSON, with the position of the first fault.
    :raises DecodeError: if it is not UTF-8, or nested deeper than Python's recursion limit.
    """
    return _parsed(payload, _PARSER)


def parse_finite(payload: bytes | bytearray | memoryview | msgspec.Raw) -> Json:
    """
    Parse as :func:`parse_payload`, with None for NaN, infinite numbers and those out of range.

    :param payload: text in UTF-8, with or without BOM.
    """
    return _parsed(payload, _NULL_PARSER)


def repaired(payload: bytes) -> bytes:
    """
    Return text that :func:`parse_payload` accepts as strict JSON.

    :param payload: text in UTF-8, with or without BOM.
    :returns: JSON with ``null`` for NaN, infinite numbers and those out of range, and ``?`` for
        half of a surrogate pair, which is no character.
    :raises DecodeError: as :func:`parse_payload` does.
    """
    return text_of(parse_finite(payload)).encode('utf-8', 'replace')


def text_of(value: Json) -> str:
    """
    Return the JSON text of a value.

    :param value: parsed JSON.
    :raises DecodeError: if it is nested too deep.
    """
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise _too_deep() from None


# How a text of another encoding is made UTF-8, and marks at the beginning of such texts.
_CONVERSION = '`iconv -f {} -t UTF-8` converts it'
_MARKS = {b'\xff\xfe\0\0': 'UTF-32', b'\0\0\xfe\xff': 'UTF-32', b'\xff\xfe': 'UTF-16',
          b'\xfe\xff': 'UTF-16', b'[\0': 'UTF-16LE', b'{\0': 'UTF-16LE', b'\0[': 'UTF-16BE',
          b'\0{': 'UTF-16BE'}


def check_encoding(beginning: bytes | bytearray, where: str) -> None:
    """
    Check that a text does not begin as one of UTF-16 or UTF-32, as shells of Windows write it.

    :param beginning: at least its first four bytes.
    :param where: name of the text.
    :raises DecodeError: if it does.
    """
    for mark, encoding in _MARKS.items():
        if beginning.startswith(mark):
            raise DecodeError(where, encoding, f'UTF-8 ({_CONVERSION.format(encoding)})')


def check_utf8(payload: bytes | bytearray | memoryview | msgspec.Raw) -> str:
    """
    Return a payload as text, without its BOM.

    :param payload: text in UTF-8, with or without BOM.
    :raises DecodeError: if it is not UTF-8, with the offset of the first wrong byte.
    """
    try:
        return str(payload, 'utf-8-sig')
    except UnicodeDecodeError as exc:
        check_encoding(exc.object[:4], 'payload')
        wrong_byte = exc.object[exc.start:exc.start + 1]
        raise DecodeError(
            f'byte {exc.start}', f'0x{wrong_byte.hex()}, {wrong_byte.decode("latin-1")!r} in '
            'Latin-1', f'UTF-8 ({_CONVERSION.format("LATIN1")})') from None


def _parsed(payload: bytes | bytearray | memoryview | msgspec.Raw,
            parser: json.JSONDecoder) -> Json:
    text = check_utf8(payload)
    try:
        return _loads(text, parser)
    except DecodeError:
        # Next to double quotes, a single quote may be an apostrophe: then it is not replaced
        # (doc/protocol/sensor.md#payload).
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
    return DecodeError('payload', 'brackets nested too deep', 'JSON')


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
    return repr(text[start:start + MAX_SHOWN]) if start < len(text) else 'the end'


# ``null`` is how the simulator writes NaN and infinity.
Number: TypeAlias = float | None
Triple: TypeAlias = tuple[Number, Number, Number]
Quadruple: TypeAlias = tuple[Number, Number, Number, Number]
Tags: TypeAlias = tuple[str, ...]

NAN = math.nan
NO_TRIPLE: Triple = (NAN, NAN, NAN)
NO_QUADRUPLE: Quadruple = (NAN, NAN, NAN, NAN)


def shown(value: Json) -> str:
    """
    Return a short text of a value of any size, for errors.

    :param value: parsed JSON.
    """
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
    :param value: value found there.
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
JSON text that need not be strict: NaN and infinity, single quotes, a byte order mark.

``where`` is the key path of a value, for errors.
"""

from __future__ import annotations

from collections.abc import Sequence
import json
import math
import struct
from typing import Any, TypeVar

import msgspec
import numpy as np

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Floats
from state_sensor_ros.texts import MAX_SHOWN, shortened

Value = TypeVar('Value')
# Errors of msgspec for text that is not JSON, not UTF-8, nested too deep or of another shape.
NOT_TYPED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_STRICT = msgspec.json.Decoder(msgspec.Raw)
# Length of the longest word, -Infinity: for a word that is cut off, the parser reports its begin.
_MAX_WORD = 9
# An integer with more digits than any of 64 bits is read as a float, as which it may be infinite.
_PARSER = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) <= 20
                           else float(digits), parse_constant=lambda _: None)


class JsonError(DecodeError):
    """
    Text is not JSON; ``line`` and ``column``, 1-based, of the first fault.

    ``is_at_end`` whether the text may be valid JSON that was cut off.
    """

    def __init__(self, text: str, fault: json.JSONDecodeError) -> None:
        super().__init__(
            f'line {fault.lineno} column {fault.colno}', repr(
                text[fault.pos:fault.pos + MAX_SHOWN]) if fault.pos < len(text) else 'the end',
            f'JSON ({fault.msg})')
        self.line, self.column = fault.lineno, fault.colno
        self.is_at_end = fault.msg.startswith('Unterminated') or len(text) - fault.pos < _MAX_WORD


def is_strict(text: bytes) -> bool:
    """Return whether ``text`` is a JSON value, without BOM, NaN, Infinity and single quotes."""
    try:
        _STRICT.decode(text)
    except NOT_TYPED:
        return False
    return True


def parse(text: bytes | bytearray) -> Any:  # noqa: ANN401
    """
    Return the value of JSON that need not be strict, None for NaN and infinity.

    A number beyond a double is infinite; half of a surrogate pair, no character, is ``?``.

    :raises JsonError: if it is not JSON.
    :raises DecodeError: if it is not UTF-8, or nested too deep.
    """
    try:
        characters = str(text, 'utf-8-sig')
    except UnicodeDecodeError as error:
        raise DecodeError(f'byte {error.start}', f'0x{error.object[error.start]:02x}',
                          'UTF-8') from None
    try:
        value = _PARSER.decode(characters)
        if '\\u' in characters:
            value = json.loads(json.dumps(value, ensure_ascii=False).encode('utf-8', 'replace'))
        return value
    except json.JSONDecodeError as error:
        # Next to double quotes, a single quote may be an apostrophe: then it is not replaced.
        if "'" in characters and '"' not in characters:
            return parse(characters.replace("'", '"').encode())
        raise JsonError(characters, error) from None
    except RecursionError:
        raise DecodeError('payload', 'brackets nested too deep', 'JSON') from None


def strict(text: bytes) -> bytes:
    """Return text that :func:`parse` accepts as strict JSON, with null for infinite numbers."""
    if is_strict(text):
        return text
    return msgspec.json.encode(parse(text))


def shown(value: object) -> str:
    """Return a short text of a parsed value, for errors."""
    if isinstance(value, dict):
        return 'an object'
    if isinstance(value, list):
        return f'an array of {len(value)}'
    if isinstance(value, float) and math.isinf(value):
        return 'a number beyond 1.8e308'
    if isinstance(value, str):
        return repr(shortened(value))
    return json.dumps(value)


def wrong(where: str, value: object, expected: str) -> DecodeError:
    """Return the error for a value of another type or range than expected."""
    return DecodeError(where, shown(value), expected)


def to_kind(value: object, where: str, kind: type[Value], expected: str) -> Value:
    """Return ``value`` if it is of a class."""
    if not isinstance(value, kind):
        raise wrong(where, value, expected)
    return value


def to_list(value: object, where: str) -> list[Any]:
    """Return ``value`` if it is an array; ``null`` is an empty one."""
    return to_kind([] if value is None else value, where, list, 'an array')


def rows_of(numbers: Sequence[float | None], n_columns: int) -> Floats:
    """Return numbers as (len / n_columns, n_columns) float64, NaN for None."""
    try:
        # Takes a third of the time of np.array.
        packed = struct.pack(f'{len(numbers)}d', *numbers)
    except struct.error:
        return np.array(numbers, np.float64).reshape(-1, n_columns)
    return np.ndarray((len(numbers) // n_columns, n_columns), np.float64, packed)

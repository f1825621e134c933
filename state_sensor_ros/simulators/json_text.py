# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""JSON text to values, also with NaN and single quotes (doc/protocol/frames.md#vector-formats)."""

from __future__ import annotations

import json
import math
from typing import TypeAlias

import msgspec

from state_sensor_ros.errors import DecodeError, MAX_SHOWN, shortened

__all__ = [
    'NOT_TYPED', 'Json', 'JsonError', 'check_utf8', 'is_strict_json', 'parse_payload', 'repaired',
    'shortened', 'text_of',
]

Json: TypeAlias = object

# More digits than any 64-bit integer has; a longer one is read as a float, out of range.
_MAX_INTEGER_DIGITS = 20
# Length of the longest word of JSON, -Infinity; for a word that is cut off, the parser reports its
# beginning.
_MAX_WORD = 9
# Errors of msgspec for text that is not JSON, not UTF-8, nested too deep or of another shape.
NOT_TYPED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_STRICT_JSON = msgspec.json.Decoder(msgspec.Raw)


class JsonError(DecodeError):
    """
    Text is not JSON; ``line`` and ``column``, 1-based, of the first fault.

    ``is_at_end`` whether the text may be valid JSON that was cut off.

    :param text: text that is not JSON.
    :param fault: error of :mod:`json`.
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

    :param payload: text in UTF-8, with or without BOM.
    :returns: the value, objects as dict, arrays as list; numbers may be NaN or infinite.
    :raises JsonError: if it is not JSON, with the position of the first fault.
    :raises DecodeError: if it is not UTF-8, or nested deeper than Python's recursion limit.
    """
    return _parsed(payload, _PARSER)


def repaired(payload: bytes) -> bytes:
    """
    Return text that :func:`parse_payload` accepts as strict JSON.

    :param payload: text in UTF-8, with or without BOM.
    :returns: JSON with ``null`` for NaN, infinite numbers and those out of range.
    :raises DecodeError: as :func:`parse_payload` does.
    """
    return text_of(_parsed(payload, _NULL_PARSER)).encode()


def text_of(value: Json) -> str:
    """
    Return the JSON text of a value.

    :param value: parsed JSON.
    :raises DecodeError: if it is nested too deep.
    """
    try:
        return json.dumps(value)
    except RecursionError:
        raise _too_deep() from None


def check_utf8(payload: bytes | bytearray | memoryview | msgspec.Raw) -> str:
    """
    Return a payload as text, without its BOM.

    :param payload: text in UTF-8, with or without BOM.
    :raises DecodeError: if it is not UTF-8, with the offset of the first wrong byte.
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

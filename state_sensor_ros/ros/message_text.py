# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A message of any type as text: its fields line by line, or a table in CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import csv
import io
from typing import Any

from state_sensor_ros.texts import one_line

_MAX_NUMBERS = 12
_INDENT, _SECONDS = '  ', ' s'


def message_words(message: Any) -> str:  # noqa: ANN401
    """Return the fields of a message as text, one per line, nested ones indented."""
    return '\n'.join(_lines_of(message, ''))


def _lines_of(message: Any, indent: str) -> Iterator[str]:  # noqa: ANN401
    if _is_time(message):
        yield f'{indent}{_time_text(message)}'
        return
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if _is_message(value) and not _is_time(value):
            yield f'{indent}{name}:'
            yield from _lines_of(value, indent + _INDENT)
        elif _is_array_of_messages(message, name):
            yield f'{indent}{name}: {len(value)}'
            for item in value:
                lines = list(_lines_of(item, indent + _INDENT))
                yield f'{indent}- {lines[0].lstrip()}'
                yield from lines[1:]
        else:
            yield f'{indent}{name}: {_text_of(value)}'


def csv_table(message: Any) -> tuple[list[str], list[list[str]]]:  # noqa: ANN401
    """Return the columns and the rows of a message."""
    # Returns one row, or a row for each item of the first array of messages, such as ``actors``.
    columns: dict[str, str] = {}
    items: Sequence[Any] = ()
    name_of_items = ''
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        if not _is_array_of_messages(message, name):
            columns.update(_cells(value, name))
        elif name_of_items:
            columns[name] = str(len(value))
        else:
            items, name_of_items = value, name
    if not name_of_items:
        return list(columns), [list(columns.values())]
    rows = [{**columns, **dict(_cells(item, name_of_items))} for item in items]
    return (list(rows[0]), [list(row.values()) for row in rows]) if rows else (list(columns), [])


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    """Return lines of CSV, the last one without a line end."""
    out = io.StringIO()
    csv.writer(out, lineterminator='\n').writerows(rows)
    return out.getvalue().rstrip('\n')


def _cells(value: Any, name: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    if _is_message(value) and not _is_time(value):
        for field in value.get_fields_and_field_types():
            if _is_array_of_messages(value, field):
                yield f'{name}.{field}', str(len(getattr(value, field)))
            else:
                yield from _cells(getattr(value, field), f'{name}.{field}')
    elif _is_sequence(value):
        yield name, ' '.join(map(_scalar, value))
    else:
        yield name, _text_of(value).removesuffix(_SECONDS)


def _text_of(value: Any) -> str:  # noqa: ANN401
    if _is_message(value):
        return _time_text(value)
    if isinstance(value, bytes) or getattr(value, 'typecode', '') == 'B':
        return f'{len(value)} bytes'
    if _is_sequence(value):
        shown = ', '.join(map(_scalar, value[:_MAX_NUMBERS]))
        more = f', … {len(value)} in all' if len(value) > _MAX_NUMBERS else ''
        return f'[{shown}{more}]'
    return _scalar(value)


def _scalar(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, float):
        # Adding 0.0 turns -0.0 into 0.0.
        return f'{value + 0.0:.9g}'
    return one_line(str(value)) if isinstance(value, str) else str(value).lower() \
        if isinstance(value, bool) else str(value)


def _time_text(value: Any) -> str:  # noqa: ANN401
    return f'{value.sec}.{value.nanosec:09d}{_SECONDS}'


def _is_time(value: Any) -> bool:  # noqa: ANN401
    return _is_message(value) and set(value.get_fields_and_field_types()) == {'sec', 'nanosec'}


def _is_message(value: Any) -> bool:  # noqa: ANN401
    return hasattr(value, 'get_fields_and_field_types')


def _is_sequence(value: Any) -> bool:  # noqa: ANN401
    return hasattr(value, '__len__') and not isinstance(value, (str, bytes))


def _is_array_of_messages(message: Any, name: str) -> bool:  # noqa: ANN401
    type_name = message.get_fields_and_field_types()[name]
    return '/' in type_name and ('sequence<' in type_name or '[' in type_name)

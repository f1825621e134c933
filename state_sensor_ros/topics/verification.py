# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Check at start that an independent deserializer reads the same values from the messages.

In a sample each slot has a number that occurs once, and each given field a value. So a changed
definition, or a middleware with another serialization, is an error at start, not a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.definitions import Definitions, Field
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import (
    Each,
    Given,
    GivenRows,
    MessageInstance,
    Prototype,
    Slot,
    SlotText,
    Table,
    Template,
)
from state_sensor_ros.errors import EncodeError
from state_sensor_ros.settings import Settings

Path = tuple[str | int, ...]
Leaf = bool | int | float | str


def sample_settings(settings: Settings) -> Settings:
    """
    Return settings with which all constants of messages differ.

    :param settings: settings of the node.
    """
    return replace(settings, global_frame='world',
                   pose_covariance_diagonal=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
                   twist_covariance_diagonal=(7.0, 8.0, 9.0, 10.0, 11.0, 12.0))


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """
    A serialized message and the values that a deserializer must read from it.

    ``leaves`` path (names of fields and indices) and value of each field that a prototype names.
    """

    type_name: str
    data: bytes
    leaves: tuple[tuple[Path, Leaf], ...]


def verify(samples: Iterable[Sample], deserialize: Callable[[bytes, str], object]) -> None:
    """
    Compare the deserialized samples with their leaves.

    :param deserialize: returns a message from its bytes and the name of its type; raises
        RuntimeError, as rclpy does, for invalid bytes.
    :raises EncodeError: names type and field of the first difference.
    """
    for sample in samples:
        try:
            message = deserialize(sample.data, sample.type_name)
        except RuntimeError as exc:
            raise EncodeError(sample.type_name, str(exc),
                              'a message with the fields of its definition') from exc
        for path, expected in sample.leaves:
            value: object = message
            for step in path:
                value = cast(Sequence[object], value)[step] if isinstance(step, int) \
                    else getattr(value, step, None)
            if value != expected:
                name = '.'.join(str(step) for step in path)
                raise EncodeError(f'{sample.type_name} {name}', repr(value), repr(expected))


def sample_of(templates: Sequence[Template]) -> Sample:
    """
    Return a sample of one message.

    :param templates: that of a whole message; or that of an array's head, whose last field is the
        sequence, and one for each element.
    """
    walker = _PrototypeWalker(templates[0].definitions)
    sequence = templates[0].definitions[templates[0].type_name][-1].name
    instances: list[MessageInstance] = []
    leaves: list[tuple[Path, Leaf]] = []
    for i, template in enumerate(templates):
        values: dict[str, object] = {}
        leaves += [((sequence, i - 1, *path) if i else path, leaf)
                   for path, leaf in walker.of_instance(template, values, i)]
        instances.append(MessageInstance(template, values))
    buffer = PatchBuffer(is_array=len(templates) > 1)
    buffer.update(instances)
    for table in buffer.tables:
        buffer.patch(table, walker.numbers(table))
    begins, ends = buffer.message_bounds()
    return Sample(templates[0].type_name, buffer.tobytes(begins[0], ends[-1]), tuple(leaves))


class _PrototypeWalker:
    """Walk along prototypes and definitions, independently of the code that serializes."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._salt = 0
        # By table: number of rows in the instances before, and in this one.
        self._n_before: dict[Table, int] = {}
        self._n_rows: dict[Table, int] = {}
        # Tables of characters.
        self._texts: set[Table] = set()

    def of_instance(self, template: Template, values: dict[str, object],
                    salt: int) -> list[tuple[Path, Leaf]]:
        """
        Return path and value of each field that the prototype names.

        :param template: template of the instance.
        :param values: receives a value for each given field.
        :param salt: added to the length of texts, which moves the fields after them.
        """
        self._salt, self._n_rows = salt, {}
        leaves = list(self._of_message(template.type_name, template.prototype, values, 0))
        for table, n_rows in self._n_rows.items():
            self._n_before[table] = self._n_before.get(table, 0) + n_rows
        return leaves

    def numbers(self, table: Table) -> npt.NDArray[np.generic]:
        """Return the rows of a table that all instances hold."""
        n_rows = self._n_before[table]
        numbers = [[self._number(table, row, column) for column in range(table.width)]
                   for row in range(n_rows)]
        return np.array(numbers, table.dtype)

    def _number(self, table: Table, row: int, column: int) -> int:
        """Return a number that occurs once; a single byte is a letter, or 0 or 1 as for a bool."""
        if table in self._texts:
            return ord('a') + (row + column) % 26
        if table.word == 1:
            return (row + column) % 2
        i_table = list(self._n_before | self._n_rows).index(table)
        return 1000 * (i_table + 1) + row * table.width + column

    def _of_message(self, type_name: str, prototype: Mapping[str, Prototype],
                    values: dict[str, object], row: int) -> Iterator[tuple[Path, Leaf]]:
        """Return path and value of each field that ``prototype`` names, at ``row`` of tables."""
        for field in self._definitions[type_name]:
            if field.name in prototype:
                for path, leaf in self._of_field(field, prototype[field.name], values, row):
                    yield (field.name, *path), leaf

    def _of_field(self, field: Field, part: Prototype, values: dict[str, object],
                  row: int) -> Iterator[tuple[Path, Leaf]]:
        if field.length is None:
            yield from self._of_value(field.type_name, part, values, row)
            return
        if isinstance(part, Given):
            texts = values[part.key] = [self._text(part.key), 'text']
            yield from (((i,), text) for i, text in enumerate(texts))
            return
        if isinstance(part, GivenRows):
            rows = values[part.key] = 1.0 + np.arange(2 * len(part.fields)).reshape(2, -1)
            yield from (((i, name), float(rows[i, column])) for i in range(2)
                        for column, name in enumerate(part.fields))
            return
        if isinstance(part, Each):
            elements: list[dict[str, object]] = [{}, {}]
            parts: Sequence[Prototype] = [part.element] * len(elements)
            values[part.key] = elements
        else:
            parts = cast(Sequence[Prototype], part)
            elements = [values] * len(parts)
        for i, (item, givens) in enumerate(zip(parts, elements, strict=True)):
            i_row = row + i if isinstance(part, Each) else row
            for path, leaf in self._of_value(field.type_name, item, givens, i_row):
                yield (i, *path), leaf

    def _of_value(self, type_name: str, part: Prototype, values: dict[str, object],
                  row: int) -> Iterator[tuple[Path, Leaf]]:
        if isinstance(part, Mapping):
            yield from self._of_message(type_name, part, values, row)
        elif isinstance(part, Given):
            given: Leaf = self._text(part.key) if type_name == 'string' else \
                True if type_name == 'bool' else self._salt + 1
            values[part.key] = given
            yield (), given
        elif isinstance(part, Slot):
            self._n_rows[part.table] = max(self._n_rows.get(part.table, 0), row + 1)
            row += self._n_before.get(part.table, 0)
            number = self._number(part.table, row, part.column)
            yield (), cast(Leaf, np.array(number, part.table.dtype).item())
        elif isinstance(part, SlotText):
            self._texts.add(part.table)
            self._n_rows[part.table] = row + 1
            row += self._n_before.get(part.table, 0)
            yield (), ''.join([chr(self._number(part.table, row, column))
                               for column in range(part.table.width)])
        else:
            constant = cast(Leaf, part)
            yield (), np.float32(constant).item() if type_name == 'float32' else constant

    def _text(self, key: str) -> str:
        return key[0] * (self._salt + 1)

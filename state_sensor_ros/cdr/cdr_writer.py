# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Serialize messages as XCDR1, little-endian, with zeros as padding.

Rules: OMG DDS-XTypes 1.3, 7.4.1, as classic CDR. A primitive of n bytes is aligned to n, counted
from the end of the 4-byte encapsulation header. Here that end is at a multiple of 8, so that the
header is at 4 modulo 8 and alignment depends only on the *phase*, the position modulo 8.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
import struct
from typing import Any, cast, NamedTuple, TypeAlias

import numpy as np

from state_sensor_ros.errors import EncodeError

# Representation identifier CDR_LE, no options.
ENCAPSULATION = b'\x00\x01\x00\x00'

# The largest alignment of a primitive in XCDR1.
ALIGNMENT = 8

# Phase at which a message needs no padding in front of its encapsulation header.
MESSAGE_PHASE = ALIGNMENT - len(ENCAPSULATION)

_FORMATS = {'bool': '?', 'byte': 'B', 'char': 'B', 'int8': 'b', 'uint8': 'B', 'int16': 'h',
            'uint16': 'H', 'int32': 'i', 'uint32': 'I', 'int64': 'q', 'uint64': 'Q',
            'float32': 'f', 'float64': 'd'}
PRIMITIVES = {name: struct.Struct(f'<{format_}') for name, format_ in _FORMATS.items()}
COUNT = PRIMITIVES['uint32']

# Integers of one size are patched by their bits.
_SIGNED = {'u': 'i'}

# Values of the ``Given`` fields of a template, by key.
Values = Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """
    Numbers that change with each frame: rows of ``width`` numbers of ``dtype``.

    ``dtype`` is the type of the fields; integers may have the other sign. A message that holds a
    number of a row holds the whole row. Only a table with one row, such as the stamp, may occur
    several times in a message.
    """

    name: str
    dtype: type[np.generic]
    width: int

    @property
    def word(self) -> int:
        """Return the size of a number, bytes."""
        return np.dtype(self.dtype).itemsize

    def fits(self, type_name: str) -> bool:
        """
        Return whether a field can hold its numbers.

        :param type_name: name of a primitive type.
        """
        own, other = np.dtype(self.dtype), np.dtype(_FORMATS[type_name])
        kinds = {_SIGNED.get(kind, kind) for kind in (own.kind, other.kind)}
        return own.itemsize == other.itemsize and len(kinds) == 1


class Slot(NamedTuple):
    """A number that is patched with each frame, from ``column`` of a row of ``table``."""

    table: Table
    column: int


class Layout(NamedTuple):
    """
    A message, or an element of a sequence, serialized from a given phase on.

    ``data`` bytes, beginning with the padding that the phase requires; ``end_phase`` phase after
    them; ``slot_offsets`` by table: offsets in ``data`` of the columns of each row, packed int64.
    """

    data: bytes
    end_phase: int
    slot_offsets: Mapping[Table, bytes]


@dataclass(frozen=True, slots=True, eq=False)
class _RowSlots:
    """Slots of one row of a table: columns and their offsets; compared by identity."""

    table: Table
    columns: list[int]
    offsets: list[int]


# Row, offset that the offsets of the slots are relative to, slots.
_PlacedSlots: TypeAlias = tuple[int, int, _RowSlots]

# Instances of a template with texts of equal lengths have equal offsets of their slots.
KnownOffsets: TypeAlias = dict[tuple[_PlacedSlots, ...], Mapping[Table, bytes]]
# Bounds the memory when the texts have ever new lengths.
_MAX_KNOWN_OFFSETS = 256


class CdrWriter:
    """
    Bytes that begin at a phase, with the offsets of their slots.

    :param phase: position of the first byte, modulo 8.
    """

    __slots__ = ('_phase', '_slots', 'data')

    def __init__(self, phase: int) -> None:
        self.data = bytearray()
        self._phase = phase
        self._slots: list[_PlacedSlots] = []

    @property
    def phase(self) -> int:
        """Return the position of the next byte, modulo 8."""
        return (self._phase + len(self.data)) % ALIGNMENT

    def pack(self, alignment: int, packed: bytes) -> None:
        """
        Append bytes, with padding before them.

        :param alignment: alignment of the first byte: 1, 2, 4 or 8 bytes.
        :param packed: bytes to append, little-endian.
        """
        n_padding = -(self._phase + len(self.data)) % alignment
        if n_padding:
            self.data += bytes(n_padding)
        self.data += packed

    def pack_text(self, text: str) -> None:
        """
        Append a string.

        :param text: argument of :func:`packed_text`.
        """
        self.pack(COUNT.size, packed_text(text))

    def pack_texts(self, texts: Sequence[str]) -> None:
        """
        Append a sequence of strings.

        :param texts: arguments of :func:`packed_text`.
        """
        self.pack(COUNT.size, COUNT.pack(len(texts)))
        for text in texts:
            self.pack_text(text)

    def add_slots(self, row: int, base: int, slots: _RowSlots) -> None:
        """
        Record the slots of a row of this message.

        :param row: index of the row among those of the message, 0 outside of sequences.
        :param base: offset in ``data`` that the offsets of the slots are relative to, bytes.
        :param slots: slots of the row.
        """
        self._slots.append((row, base, slots))

    def layout(self, type_name: str, known: KnownOffsets) -> Layout:
        """
        Return the layout of what was written.

        :param type_name: type of the message, for the error.
        :param known: offsets in earlier messages of the same template; new ones are added.
        :raises EncodeError: if the message holds only a part of a row.
        """
        placed = tuple(self._slots)
        offsets = known.get(placed)
        if offsets is None:
            by_table: dict[Table, list[_PlacedSlots]] = {}
            for slots in placed:
                by_table.setdefault(slots[2].table, []).append(slots)
            offsets = {table: _in_order(type_name, table, slots)
                       for table, slots in by_table.items()}
            if len(known) >= _MAX_KNOWN_OFFSETS:
                known.clear()
            known[placed] = offsets
        return Layout(bytes(self.data), self.phase, offsets)


def _in_order(type_name: str, table: Table, slots: list[_PlacedSlots]) -> bytes:
    """Return the offsets of all slots of a table, row after row, packed int64."""
    rows = [row for row, _, _ in slots]
    if rows == list(range(len(rows))) or not any(rows):
        whole = list(range(table.width))
        if [of_row.columns for _, _, of_row in slots] == [whole] * len(slots):
            return array('q', [base + offset for _, base, of_row in slots
                               for offset in of_row.offsets]).tobytes()
    # A given field lies between the columns of a row, or they are in another order.
    words = sorted((row * table.width + column, base + offset) for row, base, of_row in slots
                   for column, offset in zip(of_row.columns, of_row.offsets, strict=True))
    numbers = [number for number, _ in words]
    if numbers != list(range(len(words))) or len(words) % table.width:
        raise EncodeError(type_name, f'words {numbers} of table {table.name}',
                          f'rows of all {table.width} columns')
    return array('q', [offset for _, offset in words]).tobytes()


# A step of serializing a template: appends to the writer, with the given values by key, those of
# the element in a sequence, and the index in the innermost sequence, 0 outside of sequences.
WriteStep: TypeAlias = Callable[[CdrWriter, Values, int], None]


class Chunk:
    """Consecutive fields without givens, serialized once for each phase."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, bytes | Slot]] = []
        self._by_phase: dict[int, tuple[bytes, list[_RowSlots]]] = {}

    def add(self, alignment: int, part: bytes | Slot) -> None:
        """
        Append a constant or a slot.

        :param alignment: alignment of the first byte: 1, 2, 4 or 8 bytes; of a slot also its size.
        :param part: bytes of the constant, or the slot.
        """
        self._parts.append((alignment, part))

    def write(self, writer: CdrWriter, values: Values, row: int) -> None:
        """
        Append the fields.

        :param writer: writer of the message.
        :param values: given values by key.
        :param row: row of the tables, as for a WriteStep.
        """
        phase = writer.phase
        if phase not in self._by_phase:
            self._by_phase[phase] = self._serialised(phase)
        data, slots = self._by_phase[phase]
        base = len(writer.data)
        writer.data += data
        for of_table in slots:
            writer.add_slots(row, base, of_table)

    def _serialised(self, phase: int) -> tuple[bytes, list[_RowSlots]]:
        writer = CdrWriter(phase)
        slots: list[_RowSlots] = []
        for alignment, part in self._parts:
            if not isinstance(part, Slot):
                writer.pack(alignment, part)
                continue
            writer.pack(alignment, bytes(alignment))
            of_row = next((of_row for of_row in slots if of_row.table is part.table
                           and part.column not in of_row.columns), None)
            if of_row is None:
                of_row = _RowSlots(part.table, [], [])
                slots.append(of_row)
            of_row.columns.append(part.column)
            of_row.offsets.append(len(writer.data) - alignment)
        return bytes(writer.data), slots


def given_field(key: str, pack: Callable[[CdrWriter, Any], None]) -> WriteStep:
    """
    Return the step of a number, a string or a sequence that is given for each instance.

    :param key: key of its values.
    :param pack: serializes a value.
    """
    return lambda writer, values, row: pack(writer, values[key])


def each_element(key: str, steps: Sequence[WriteStep]) -> WriteStep:
    """
    Return the step of a sequence whose number of elements is given for each instance.

    :param key: key of the elements.
    :param steps: write steps of an element.
    """
    def write(writer: CdrWriter, values: Values, row: int) -> None:
        elements = cast(Sequence[Values], values[key])
        writer.pack(COUNT.size, COUNT.pack(len(elements)))
        for i, element in enumerate(elements):
            for step in steps:
                step(writer, element, i)

    return write


def packed_text(text: str) -> bytes:
    """
    Return the length, the UTF-8 bytes and the terminating zero of a string.

    :param text: text; half of a surrogate pair becomes ``?``.
    :returns: bytes to be aligned to 4; the length counts the zero, too.
    """
    # A lone surrogate cannot be encoded: as '?' it does not keep the other actors from being sent.
    raw = text.encode('utf-8', 'replace')
    return b'%b%b\0' % (COUNT.pack(len(raw) + 1), raw)

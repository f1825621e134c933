# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Messages laid out as bytes: XCDR1, little-endian, padding zero.

May know: alignment, where the numbers that change with each frame go. Must not know: message
definitions, numpy. Steps are compiled from a prototype once and written for each actor.
Rules: OMG DDS-XTypes 1.3, 7.4.1, as classic CDR; alignment counts from behind the 4-byte header.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import struct
from typing import cast, NamedTuple, Protocol

from state_sensor_ros.errors import EncodeError

# Representation identifier CDR_LE and no options.
ENCAPSULATION = b'\x00\x01\x00\x00'

# No primitive of XCDR1 is aligned to more, so a layout depends on its start modulo this.
ALIGNMENT = 8

# Where a message that stands alone begins, so that no padding leads to it.
MESSAGE_PHASE = ALIGNMENT - len(ENCAPSULATION)

_FORMATS = {'bool': '?', 'byte': 'B', 'char': 'B', 'int8': 'b', 'uint8': 'B', 'int16': 'h',
            'uint16': 'H', 'int32': 'i', 'uint32': 'I', 'int64': 'q', 'uint64': 'Q',
            'float32': 'f', 'float64': 'd'}
PRIMITIVES = {name: struct.Struct(f'<{format_}') for name, format_ in _FORMATS.items()}
COUNT = PRIMITIVES['uint32']

# What is given for one layout, by the keys of the prototype.
Values = Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """
    Numbers that change with each frame: rows of ``width`` words of ``word`` bytes.

    Where a message holds a number of a row, it holds all of them; only of a table with one row,
    such as a stamp, it may hold them again.
    """

    name: str
    word: int
    width: int


class Slot(NamedTuple):
    """A number patched in each frame, from ``column`` of its row of ``table``."""

    table: Table
    column: int


class Layout:
    """
    One message or element laid out behind a given phase.

    ``data`` with the padding that leads to it; ``end`` phase behind it; ``slots`` by table: byte
    offsets of the columns of each row, packed int64.
    """

    __slots__ = ('data', 'end', 'slots')

    def __init__(self, data: bytes, end: int, slots: Mapping[Table, bytes]) -> None:
        self.data, self.end, self.slots = data, end, slots


class _Columns(NamedTuple):
    """Slots of one row: which columns, and where."""

    table: Table
    columns: list[int]
    offsets: list[int]


class Writer:
    """Bytes so far, behind ``phase`` bytes that are somebody else's."""

    __slots__ = ('_phase', '_slots', 'data')

    def __init__(self, phase: int) -> None:
        self.data = bytearray()
        self._phase = phase
        # By table: row, where the offsets count from, the slots.
        self._slots: dict[Table, list[tuple[int, int, _Columns]]] = {}

    @property
    def phase(self) -> int:
        """Position modulo the alignment."""
        return (self._phase + len(self.data)) % ALIGNMENT

    def pack(self, alignment: int, packed: bytes) -> None:
        """Append ``packed`` at the next multiple of ``alignment``."""
        n_padding = -(self._phase + len(self.data)) % alignment
        if n_padding:
            self.data += bytes(n_padding)
        self.data += packed

    def add_slots(self, row: int, base: int, slots: _Columns) -> None:
        """Note slots at ``base`` bytes behind the start."""
        self._slots.setdefault(slots.table, []).append((row, base, slots))

    def layout(self, type_name: str) -> Layout:
        """
        Return what was written.

        :raises EncodeError: where a row is held in part.
        """
        return Layout(bytes(self.data), self.phase, {
            table: _in_order(type_name, table, slots) for table, slots in self._slots.items()})


def _in_order(type_name: str, table: Table, slots: list[tuple[int, int, _Columns]]) -> bytes:
    """Return the offsets of all slots of a table, row after row."""
    rows = [row for row, _, _ in slots]
    if rows == list(range(len(rows))) or not any(rows):
        whole = list(range(table.width))
        if [own.columns for _, _, own in slots] == [whole] * len(slots):
            return array('q', [base + offset for _, base, own in slots
                               for offset in own.offsets]).tobytes()
    # Something given lies between the columns of a row, or they are in another order.
    words = sorted((row * table.width + column, base + offset) for row, base, own in slots
                   for column, offset in zip(own.columns, own.offsets, strict=True))
    numbers = [number for number, _ in words]
    if numbers != list(range(len(words))) or len(words) % table.width:
        raise EncodeError(type_name, f'words {numbers} of table {table.name}',
                          f'rows of all {table.width} columns')
    return array('q', [offset for _, offset in words]).tobytes()


class Step(Protocol):
    """One step of laying out."""

    def write(self, writer: Writer, values: Values, row: int) -> None:
        """Append to ``writer``; ``row`` counts the elements of the innermost sequence."""


class Chunk:
    """Fixed parts in a row: what lies between two givens."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, bytes | Slot]] = []
        self._pieces: dict[int, tuple[bytes, list[_Columns]]] = {}

    def add(self, alignment: int, part: bytes | Slot) -> None:
        """Append a part."""
        self._parts.append((alignment, part))

    def write(self, writer: Writer, values: Values, row: int) -> None:
        """Append what was laid out for the phase once."""
        phase = writer.phase
        if phase not in self._pieces:
            self._pieces[phase] = self._laid_out(phase)
        data, slots = self._pieces[phase]
        base = len(writer.data)
        writer.data += data
        for own in slots:
            writer.add_slots(row, base, own)

    def _laid_out(self, phase: int) -> tuple[bytes, list[_Columns]]:
        writer = Writer(phase)
        slots: list[_Columns] = []
        for alignment, part in self._parts:
            if not isinstance(part, Slot):
                writer.pack(alignment, part)
                continue
            writer.pack(alignment, bytes(alignment))
            own = next((own for own in slots if own.table is part.table
                        and part.column not in own.columns), None)
            if own is None:
                own = _Columns(part.table, [], [])
                slots.append(own)
            own.columns.append(part.column)
            own.offsets.append(len(writer.data) - alignment)
        return bytes(writer.data), slots


class GivenNumber:
    """A number that differs from actor to actor."""

    def __init__(self, key: str, type_name: str) -> None:
        self._key, self._primitive = key, PRIMITIVES[type_name]

    def write(self, writer: Writer, values: Values, row: int) -> None:
        """Append the number."""
        primitive = self._primitive
        writer.pack(primitive.size, primitive.pack(values[self._key]))


class GivenText:
    """A string that differs from actor to actor."""

    def __init__(self, key: str) -> None:
        self._key = key

    def write(self, writer: Writer, values: Values, row: int) -> None:
        """Append the string."""
        writer.pack(COUNT.size, packed_text(cast(str, values[self._key])))


class GivenTexts:
    """A sequence of strings that differs from actor to actor."""

    def __init__(self, key: str) -> None:
        self._key = key

    def write(self, writer: Writer, values: Values, row: int) -> None:
        """Append the strings."""
        texts = cast(Sequence[str], values[self._key])
        writer.pack(COUNT.size, COUNT.pack(len(texts)))
        for text in texts:
            writer.pack(COUNT.size, packed_text(text))


class EachElement:
    """A sequence whose length differs from actor to actor."""

    def __init__(self, key: str, steps: Sequence[Step]) -> None:
        self._key, self._steps = key, steps

    def write(self, writer: Writer, values: Values, row: int) -> None:
        """Append the elements."""
        elements = cast(Sequence[Values], values[self._key])
        writer.pack(COUNT.size, COUNT.pack(len(elements)))
        for i, element in enumerate(elements):
            for step in self._steps:
                step.write(writer, element, i)


def packed_text(text: str) -> bytes:
    """Return a string with its length in front and a zero behind."""
    # A lone surrogate is no text; one odd name must not stop the others.
    raw = text.encode('utf-8', 'replace')
    return b'%b%b\0' % (COUNT.pack(len(raw) + 1), raw)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Templates of messages, compiled from the installed definitions, and their instances.

In a prototype each field is constant, or given for each actor (``Given``, ``Each``), or it changes
with each frame (``Slot``: a column of a table). A template is a prototype that was compiled into
write steps. An instance is a template with its given values; its layout has the bytes, zero in
the slots, and the offsets at which a :class:`PatchBuffer` patches numbers.

Worked example: a message ``float64 x, string name, float64 y``, serialized from phase 4 on::

    XY = Table('xy', np.float64, width=2)
    template = Template(definitions, 'demo/msg/Item', {
        'x': Slot(XY, 0), 'name': Given('name'), 'y': Slot(XY, 1)})
    layout = MessageInstance(template, {'name': 'ab'}).layout_at(4)

    position   4         8         16         20            24        32
               | padding | x = 0.0 | length 3 | a b NUL pad | y = 0.0 |
    offset     0         4         12         16            20        28
    layout.slot_offsets[XY] is 4, 20; layout.end_phase is 0

A text of another length moves y and, if the padding differs, the phase of what follows.

Serialization is XCDR1, little-endian, with zeros as padding: OMG DDS-XTypes 1.3, 7.4.1, as classic
CDR. A primitive of n bytes is aligned to n, counted from the end of the 4-byte encapsulation
header. Here that end is at a multiple of 8, so that the header is at 4 modulo 8 and alignment
depends only on the *phase*, the position modulo 8.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.definitions import Definitions, Field, PRIMITIVES, SEQUENCE
from state_sensor_ros.errors import EncodeError
from state_sensor_ros.frame import Rows

# Representation identifier CDR_LE, no options.
ENCAPSULATION = b'\x00\x01\x00\x00'

# The largest alignment of a primitive in XCDR1.
ALIGNMENT = 8

# Phase at which a message needs no padding in front of its encapsulation header.
MESSAGE_PHASE = ALIGNMENT - len(ENCAPSULATION)

COUNT = PRIMITIVES['uint32']

# A table with fewer rows is patched word by word.
_MIN_ROWS = 64
_OFFSET_BYTES = 8

# Values of the ``Given`` fields of a template, by key.
Values = Mapping[str, object]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Numbers that change with each frame: rows of ``width`` numbers of ``dtype``."""

    name: str
    # The type of the fields; integers may have the other sign. A message that holds a number of a
    # row holds the whole row. Only a table with one row, such as the stamp, may occur several
    # times in a message.
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
        own, other = np.dtype(self.dtype), np.dtype(PRIMITIVES[type_name].format[-1:])
        # Integers of one size are patched by their bits.
        return own.itemsize == other.itemsize and (
            own.kind == other.kind or {own.kind, other.kind} == {'i', 'u'})


class Slot(NamedTuple):
    """A number that is patched with each frame, from ``column`` of a row of ``table``."""

    table: Table
    column: int


class Layout(NamedTuple):
    """A message, or an element of a sequence, serialized from a given phase on."""

    data: bytes  # bytes, beginning with the padding that the phase requires
    end_phase: int  # phase after them
    # By table: offsets in ``data`` of the columns of each row, packed int64.
    slot_offsets: Mapping[Table, bytes]


@dataclass(frozen=True, slots=True, eq=False)
class _RowSlots:
    """Slots of one row of a table: columns and their offsets; compared by identity."""

    table: Table
    columns: list[int]
    offsets: list[int]


# Row, offset that the offsets of the slots are relative to, slots.
_PlacedSlots: TypeAlias = tuple[int, int, _RowSlots]


class CdrWriter:
    """Bytes that begin at a phase, with the offsets of their slots."""

    # phase: position of the first byte, modulo 8.

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
        """Append bytes, with padding before them."""
        # alignment: alignment of the first byte: 1, 2, 4 or 8 bytes.
        n_padding = -(self._phase + len(self.data)) % alignment
        if n_padding:
            self.data += bytes(n_padding)
        self.data += packed

    def pack_text(self, text: str) -> None:
        self.pack(COUNT.size, packed_text(text))

    def pack_texts(self, texts: Sequence[str]) -> None:
        """Append a sequence of strings."""
        self.pack(COUNT.size, COUNT.pack(len(texts)))
        for text in texts:
            self.pack_text(text)

    def add_slots(self, row: int, base: int, slots: _RowSlots) -> None:
        """Record the slots of a row of this message."""
        # row: index of the row among those of the message, 0 outside of sequences.
        # base: offset in ``data`` that the offsets of the slots are relative to, bytes.
        self._slots.append((row, base, slots))

    def layout(self, type_name: str) -> Layout:
        """Return the layout of what was written."""
        return Layout(bytes(self.data), self.phase, _offsets(type_name, tuple(self._slots)))


# Instances of a template with texts of equal lengths have equal offsets of their slots.
@lru_cache(maxsize=1024)
def _offsets(type_name: str, placed: tuple[_PlacedSlots, ...]) -> Mapping[Table, bytes]:
    by_table: dict[Table, list[_PlacedSlots]] = {}
    for slots in placed:
        by_table.setdefault(slots[2].table, []).append(slots)
    return {table: _in_order(type_name, table, slots) for table, slots in by_table.items()}


def _in_order(type_name: str, table: Table, slots: list[_PlacedSlots]) -> bytes:
    """Return the offsets of all slots of a table, row after row, packed int64."""
    rows, whole = [row for row, _, _ in slots], list(range(table.width))
    if (rows == list(range(len(rows))) or not any(rows)) \
            and all(of_row.columns == whole for _, _, of_row in slots):
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
        """Append a constant or a slot."""
        # alignment: alignment of the first byte: 1, 2, 4 or 8 bytes; of a slot also its size.
        self._parts.append((alignment, part))

    def write(self, writer: CdrWriter, values: Values, row: int) -> None:
        """Append the fields."""
        phase = writer.phase
        if phase not in self._by_phase:
            self._by_phase[phase] = self._serialized(phase)
        data, slots = self._by_phase[phase]
        base = len(writer.data)
        writer.data += data
        for of_table in slots:
            writer.add_slots(row, base, of_table)

    def _serialized(self, phase: int) -> tuple[bytes, list[_RowSlots]]:
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
    return lambda writer, values, row: pack(writer, values[key])


def each_element(key: str, steps: Sequence[WriteStep]) -> WriteStep:
    def write(writer: CdrWriter, values: Values, row: int) -> None:
        elements = cast(Sequence[Values], values[key])
        writer.pack(COUNT.size, COUNT.pack(len(elements)))
        for i, element in enumerate(elements):
            for step in steps:
                step(writer, element, i)

    return write


def packed_text(text: str) -> bytes:
    """Return the length, the UTF-8 bytes and the terminating zero of a string."""
    # text: text; half of a surrogate pair becomes ``?``.
    # Returns bytes to be aligned to 4; the length counts the zero, too.
    # A lone surrogate cannot be encoded: as '?' it does not keep the other actors from being sent.
    raw = text.encode('utf-8', 'replace')
    return b'%b%b\0' % (COUNT.pack(len(raw) + 1), raw)


class Given(NamedTuple):
    """A number, a string or a sequence of strings that each instance gives under ``key``."""

    key: str


class Each(NamedTuple):
    """A sequence with an ``element``, and a row of its tables, for each mapping under ``key``."""

    key: str
    element: Prototype


class GivenRows(NamedTuple):
    """A sequence of messages of numbers, which each instance gives as an array under ``key``."""

    key: str
    fields: tuple[str, ...]  # the fields of the message, in the order of the array's columns


Constant = bool | int | float | str | bytes
Prototype = Constant | Slot | Given | GivenRows | Each | Sequence[
    'Prototype'] | Mapping[str, 'Prototype']


class _Compiler:
    """Flatten a prototype into write steps, in the order of the definitions."""

    def __init__(self, definitions: Definitions) -> None:
        self.steps: list[WriteStep] = []
        self._definitions = definitions
        # The last step, if it is one.
        self._chunk: Chunk | None = None

    def add_fields(self, type_name: str, prototype: Mapping[str, Prototype]) -> None:
        """Add all fields of a message; those without a prototype are zero or empty."""
        fields = self._definitions[type_name]
        if unknown := prototype.keys() - {field.name for field in fields}:
            raise EncodeError(type_name, f'no field {sorted(unknown)[0]}',
                              'the definition that this package was written for')
        for field in fields:
            where, value = f'{type_name} {field.name}', prototype.get(field.name)
            if field.length is None:
                self._add_value(where, field.type_name, value)
            elif field.length == SEQUENCE and isinstance(value, bytes):
                self.add_part(COUNT.size, COUNT.pack(len(value)) + value)
            elif field.length == SEQUENCE and isinstance(value, (Given, GivenRows, Each)):
                self._add_step(self._given_sequence(where, field.type_name, value))
            else:
                self._add_elements(where, field, value)

    def add_part(self, alignment: int, part: bytes | Slot) -> None:
        """Append the bytes of a constant, or a slot, to the last chunk."""
        if self._chunk is None:
            self._chunk = Chunk()
            self.steps.append(self._chunk.write)
        self._chunk.add(alignment, part)

    def _add_step(self, step: WriteStep) -> None:
        self.steps.append(step)
        self._chunk = None

    def _given_sequence(self, where: str, type_name: str,
                        value: Given | GivenRows | Each) -> WriteStep:
        if isinstance(value, Each):
            element = _Compiler(self._definitions)
            element._add_value(where, type_name, value.element)
            return each_element(value.key, element.steps)
        if isinstance(value, GivenRows):
            return given_field(value.key, self._packer_of_rows(type_name, value))
        if type_name != 'string':
            raise _unfit(where, f'a sequence of {type_name}', value)
        return given_field(value.key, CdrWriter.pack_texts)

    def _packer_of_rows(self, type_name: str,
                        value: GivenRows) -> Callable[[CdrWriter, npt.NDArray[Any]], None]:
        fields = self._definitions[type_name]
        if tuple(field.name for field in fields) != value.fields:
            raise EncodeError(type_name, ', '.join(field.name for field in fields),
                              ', '.join(value.fields))
        [kind] = {field.type_name if field.length is None else '' for field in fields}
        number = np.dtype(f'<{PRIMITIVES[kind].format[-1:]}')

        def pack(writer: CdrWriter, rows: npt.NDArray[Any]) -> None:
            writer.pack(COUNT.size, COUNT.pack(len(rows)))
            if len(rows):
                writer.pack(number.itemsize, rows.astype(number).tobytes())

        return pack

    def _add_elements(self, where: str, field: Field, value: Prototype | None) -> None:
        """Add the elements of a sequence, after their number, or of an array."""
        n_elements = field.length or 0
        if value is not None and (not isinstance(value, Sequence) or isinstance(
                value, (str, Slot, Given, GivenRows, Each))):
            raise _unfit(where, 'several elements', value)
        elements: Sequence[Prototype | None] = value or (None,) * n_elements
        if field.length == SEQUENCE:
            self.add_part(COUNT.size, COUNT.pack(len(elements)))
        elif len(elements) != n_elements:
            raise _unfit(where, f'{n_elements} elements', value)
        for item in elements:
            self._add_value(where, field.type_name, item)

    def _add_value(self, where: str, type_name: str, value: Prototype | None) -> None:
        primitive = PRIMITIVES.get(type_name)
        if primitive is None and type_name != 'string':
            if value is not None and (isinstance(value, Slot) or not isinstance(value, Mapping)):
                raise _unfit(where, f'the message {type_name}', value)
            self.add_fields(type_name, value or {})
        elif isinstance(value, Given):
            self._add_step(given_field(
                value.key, CdrWriter.pack_text if primitive is None else
                lambda writer, number: writer.pack(primitive.size, primitive.pack(number))))
        elif isinstance(value, Slot) and primitive is not None and value.table.fits(type_name):
            self.add_part(primitive.size, value)
        elif primitive is None and isinstance(value, (str, type(None))):
            self.add_part(COUNT.size, packed_text(value or ''))
        elif primitive is not None and isinstance(value, (int, float, type(None))):
            self.add_part(primitive.size, primitive.pack(value or 0))
        else:
            raise _unfit(where, type_name, value)


def _unfit(where: str, found: str, value: object) -> EncodeError:
    return EncodeError(where, f'{found} in the definition', f'what {value!r} can be')


class Template:
    """
    A message, or an element of a sequence, without its given values and numbers.

    :param definitions: definitions of the message types.
    :param type_name: type of the message, ``package/msg/Name``.
    :param prototype: value of each field; fields that are omitted are zero or empty.
    :param is_message: True puts the encapsulation header in front, at 4 modulo 8.
    :raises EncodeError: if ``prototype`` does not fit the definition.
    """

    def __init__(self, definitions: Definitions, type_name: str,
                 prototype: Mapping[str, Prototype], *, is_message: bool = False) -> None:
        self.type_name, self.is_message = type_name, is_message
        compiler = _Compiler(definitions)
        compiler.add_fields(type_name, prototype)
        self._steps = compiler.steps

    def lay_out(self, values: Values, phase: int) -> Layout:
        """
        Serialize with zero in the slots.

        :param values: given values by key.
        :param phase: position of the first byte, modulo 8.
        :raises EncodeError: if the message holds only a part of a table's row.
        """
        writer = CdrWriter(phase)
        if self.is_message:
            writer.data += bytes(-(phase + len(ENCAPSULATION)) % ALIGNMENT) + ENCAPSULATION
        for step in self._steps:
            step(writer, values, 0)
        return writer.layout(self.type_name)


class MessageInstance:
    """
    A template with its given values, serialized once for each phase at which it occurs.

    Both are immutable, so instances are compared by identity: the same object has the same bytes,
    and an equal one is only serialized again.

    :param template: template of a message or of an element of a sequence.
    :param values: given values by key.
    """

    __slots__ = ('_layouts', 'template', 'values')

    def __init__(self, template: Template, values: Values) -> None:
        self.template, self.values = template, values
        self._layouts: list[Layout | None] = [None] * ALIGNMENT

    def layout_at(self, phase: int) -> Layout:
        """Return the layout from ``phase`` on."""
        layout = self._layouts[phase]
        if layout is None:
            layout = self._layouts[phase] = self.template.lay_out(self.values, phase)
        return layout


class TablePatch(NamedTuple):
    """
    What patches a table, without look-ups.

    ``put(targets, numbers)`` writes (R, table.width) numbers, a row for each row that the
    instances hold, in their order; or (table.width,), one row for all.
    """

    table: Table
    put: Callable[[Rows, npt.NDArray[Any]], object]
    targets: Rows


class PatchBuffer:
    """
    Consecutive message instances.

    ``data`` their bytes, (B,) uint8; ``patches`` by table; ``bounds`` begin and end of each of
    the n messages, twice (n,) int64, bytes.

    :param instances: at least one.
    :param is_array: False: each instance is a message. True: the first instance is a message whose
        last field is an empty sequence, and the others are the elements of that sequence.
    """

    def __init__(self, instances: Sequence[MessageInstance], *, is_array: bool = False) -> None:
        if not instances[0].template.is_message:
            raise EncodeError(instances[0].template.type_name, 'an element of a sequence',
                              'a whole message')
        phase, layouts = 0, []
        for instance in instances:
            layout = instance.layout_at(phase)
            layouts.append(layout)
            phase = layout.end_phase
        # Offset of each instance, and the end of the last one.
        starts = np.array([0, *[len(layout.data) for layout in layouts]]).cumsum()
        data = b''.join([layout.data for layout in layouts])
        # Whole words of any size.
        memory = np.frombuffer(bytearray(data + bytes(-len(data) % ALIGNMENT)), np.uint8)
        self.data = memory[:len(data)]
        if is_array:
            # The first instance ends with the length of the sequence.
            memory.view(np.uint32)[starts[1] // COUNT.size - 1] = len(layouts) - 1
        ends = starts[-1:] if is_array else starts[1:]
        begins = starts[:len(ends)]
        # Padding precedes the encapsulation header, which is at 4 modulo 8.
        self.bounds = begins + (len(ENCAPSULATION) - begins) % ALIGNMENT, ends
        self.patches: list[TablePatch] = []
        for table in {table: None for layout in layouts for table in layout.slot_offsets}:
            packed = [layout.slot_offsets.get(table, b'') for layout in layouts]
            offsets = np.frombuffer(b''.join(packed), np.int64) + starts[:-1].repeat(
                [len(of_layout) // _OFFSET_BYTES for of_layout in packed])
            if len(offsets):
                words = memory.view(table.dtype)
                self.patches.append(TablePatch(table, *_patcher(
                    words, (offsets // table.word).reshape(-1, table.width))))


def _patcher(words: npt.NDArray[Any],
             targets: Rows) -> tuple[Callable[[Rows, npt.NDArray[Any]], object], Rows]:
    """Return what patches a table of which each row has its ``targets``, (R, width) int64."""
    n_words = _words_of_groups(targets)
    if n_words == targets.shape[1]:
        return words.put, targets
    # Overlapping views, from each word on: a copy for each group of words takes a tenth of the
    # time of a copy for each word.
    groups = np.lib.stride_tricks.as_strided(
        words, (len(words) - n_words + 1, n_words), words.strides * 2)

    def put(firsts: Rows, numbers: npt.NDArray[Any]) -> None:
        groups[firsts] = np.broadcast_to(numbers, targets.shape).reshape(-1, n_words)

    return put, targets.reshape(-1, n_words)[:, 0].copy()


def _words_of_groups(targets: Rows) -> int:
    """
    Return how many consecutive words of a table can be patched at once.

    The rows of a sequence in an instance, such as the poses of a path, follow each other without a
    gap: they form a group.

    :param targets: (R, width) int64, index of each word in the buffer.
    :returns: the greatest common divisor of the lengths of all groups, a multiple of the width;
        the width if the first two rows are not in a group.
    """
    n_rows, width = targets.shape
    if n_rows < _MIN_ROWS or targets[1, 0] != targets[0, -1] + 1:
        return width
    words = targets.ravel()
    gaps = np.flatnonzero(words[1:] != words[:-1] + 1) + 1
    n_words = int(np.gcd.reduce(np.diff(gaps, prepend=0, append=len(words))))
    return width if n_words % width else n_words

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Serialized messages in one buffer, whose numbers numpy patches from tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.templates import (
    ALIGNMENT,
    COUNT,
    ENCAPSULATION,
    Layout,
    MessageInstance,
    Table,
)
from state_sensor_ros.common_ends import common_ends
from state_sensor_ros.errors import EncodeError
from state_sensor_ros.frame import Bools, Rows

Octets = npt.NDArray[np.uint8]
# By size of a number: the number of bits that its offset is shifted by for its index.
_SHIFTS = {8: 3, 4: 2, 2: 1, 1: 0}
_OFFSET_BYTES = 8
# A table with fewer rows is patched word by word.
_MIN_ROWS = 64


class TablePatch(NamedTuple):
    table: Table
    # With its first argument ``targets``, a row for each group of numbers.
    put: Callable[[Rows, npt.NDArray[Any]], object]
    targets: Rows
    n_targets: Rows  # (K,) int64, how many of these rows each element has


class ArrayCut:
    """Patch and return some elements of an array."""

    # patches: the tables of the elements; of a table with one row for all, only ``put`` and
    # ``targets`` are used.

    def __init__(self, instances: Sequence[MessageInstance], starts: Sequence[int], data: Octets,
                 patches: Sequence[TablePatch]) -> None:
        self._instances, self._starts = instances[1:], starts[1:]
        # An array is a buffer, which its type does not say for all versions of Python.
        self._data = memoryview(cast(Any, data))
        # Padding precedes the encapsulation header, which is at 4 modulo 8.
        self._head = self._data[starts[0] + (4 - starts[0]) % ALIGNMENT:starts[1] - COUNT.size]
        self._patches = [(patch, bool((patch.n_targets == 1).all())) for patch in patches]
        # By element and phase: bytes, and slices of the data.
        self._moved: dict[tuple[int, int], list[bytes | slice]] = {}

    def message(self, kept: Bools, numbers: Mapping[Table, npt.NDArray[Any]]) -> bytes:
        """Return a message with some of the elements; ``kept``: (K,) bool, which ones."""
        rows = kept.nonzero()[0]
        for (table, put, targets, n_targets), has_one_each in self._patches:
            values = numbers[table]
            if values.ndim == 1:
                put(targets, values)
            elif len(values):
                put(targets[rows if has_one_each else kept.repeat(n_targets)], values)
        pieces: list[bytes | memoryview] = [self._head, COUNT.pack(len(rows))]
        phase = self._starts[0] % ALIGNMENT
        # Neighbors are copied at once.
        padded = np.zeros(len(kept) + 2, np.bool_)
        padded[1:-1] = kept
        edges = (padded[1:] != padded[:-1]).nonzero()[0].tolist()
        for begin, end in zip(edges[::2], edges[1::2], strict=True):
            while begin < end and phase != self._starts[begin] % ALIGNMENT:
                pieces += [piece if isinstance(piece, bytes) else self._data[piece]
                           for piece in self._at_phase(begin, phase)]
                phase = self._instances[begin].layout_at(phase).end_phase
                begin += 1
            if begin < end:
                pieces.append(self._data[self._starts[begin]:self._starts[end]])
                phase = self._starts[end] % ALIGNMENT
        return b''.join(pieces)

    def _at_phase(self, i: int, phase: int) -> list[bytes | slice]:
        """Return what element ``i`` consists of where it begins at another phase."""
        known = self._moved.get((i, phase))
        if known is None:
            known = self._moved[i, phase] = self._pieces(i, phase)
        return known

    def _pieces(self, i: int, phase: int) -> list[bytes | slice]:
        """Return constant bytes of the new layout, and between these the numbers in the data."""
        instance, start = self._instances[i], self._starts[i]
        old, new = instance.layout_at(start % ALIGNMENT), instance.layout_at(phase)
        slots = sorted((offset, old_offset, table.word)
                       for table, packed in new.slot_offsets.items()
                       for offset, old_offset in zip(
                           np.frombuffer(packed, np.int64).tolist(),
                           np.frombuffer(old.slot_offsets[table], np.int64).tolist(),
                           strict=True))
        pieces: list[bytes | slice] = []
        begin = 0
        while slots:
            offset, old_offset, _ = slots[0]
            # Slots that are moved by as much have the same bytes between them.
            n_alike = next((n for n, slot in enumerate(slots)
                            if slot[0] - slot[1] != offset - old_offset), len(slots))
            last, old_last, word = slots[n_alike - 1]
            pieces += [new.data[begin:offset], slice(start + old_offset, start + old_last + word)]
            begin, slots = last + word, slots[n_alike:]
        return [*pieces, new.data[begin:]]


class _GrowingArray:
    """A numpy array that is spliced in place; ``memory`` is longer than the content."""

    __slots__ = ('memory', 'numbers')

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.memory: npt.NDArray[Any] = np.zeros(ALIGNMENT, dtype)
        self.numbers = self.memory[:0]

    def splice(self, begin: int, end: int, new: npt.NDArray[Any], shift: int) -> None:
        """Replace the items from ``begin`` to ``end``, and add ``shift`` to those after them."""
        size, new_end = len(self.numbers), begin + len(new)
        new_size = size + new_end - end
        if new_size > len(self.memory):
            memory = np.zeros((new_size + new_size // 4) // ALIGNMENT * ALIGNMENT + ALIGNMENT,
                              self.memory.dtype)
            memory[:begin] = self.memory[:begin]
            memory[new_end:new_size] = self.memory[end:size]
            self.memory = memory
        elif new_end != end:
            # A memoryview copies overlapping parts directly; numpy makes a temporary copy.
            self.memory.data[new_end:new_size] = self.memory.data[end:size]
        self.memory[begin:new_end] = new
        if shift:
            self.memory[new_end:new_size] += shift
        self.numbers = self.memory[:new_size]


class PatchBuffer:
    """Consecutive message instances."""

    # is_array: False: each instance is a message. True: the first instance is a message whose last
    # field is an empty sequence, and the others are the elements of that sequence.

    def __init__(self, *, is_array: bool = False) -> None:
        self._is_array = is_array
        self._instances: list[MessageInstance] = []
        self._layouts: list[Layout] = []
        self._bytes = _GrowingArray(np.uint8)
        # Offset of each instance, and the end of the last one.
        self._starts = _GrowingArray(np.int64)
        self._starts.splice(0, 0, np.zeros(1, np.int64), 0)
        # By table: indices of its words in the buffer, row after row, ascending between rows.
        self._targets: dict[Table, _GrowingArray] = {}
        self._patches: dict[Table, tuple[npt.NDArray[Any], Rows]] = {}

    @property
    def tables(self) -> list[Table]:
        return list(self._patches)

    def update(self, instances: list[MessageInstance]) -> None:
        """Replace the content; only what differs from the last call is serialized."""
        n_old, n_new = len(self._instances), len(instances)
        head, tail = common_ends(self._instances, instances)
        if head == n_old == n_new:
            return
        if instances and not instances[0].template.is_message:
            raise EncodeError(instances[0].template.type_name, 'an element of a sequence',
                              'a whole message')
        phase, layouts = self._phase_at(head), []
        for instance in instances[head:n_new - tail]:
            layout = instance.layout_at(phase)
            layouts.append(layout)
            phase = layout.end_phase
        while tail and phase != self._phase_at(n_old - tail):
            layout = instances[n_new - tail].layout_at(phase)
            layouts.append(layout)
            phase = layout.end_phase
            tail -= 1
        self._splice(layouts, head, n_old - tail)
        self._instances = instances

    def patch(self, table: Table, numbers: npt.NDArray[Any]) -> None:
        """Write the numbers of a table into the messages."""
        # numbers: (R, table.width), a row for each row that the instances hold, in their order; or
        # (table.width,), one row for all.
        put, targets = self.patcher(table)
        put(targets, numbers)

    def patcher(self, table: Table) -> tuple[Callable[[Rows, npt.NDArray[Any]], object], Rows]:
        """Return the function that patches a table, to be called without look-ups."""
        # Returns a function and its first argument, valid until :meth:`update`; its second
        # argument is ``numbers`` of :meth:`patch`.
        words, targets = self._patches[table]
        n_words = _words_of_groups(targets)
        if n_words == table.width:
            return words.put, targets
        # Overlapping views, from each word on: a copy for each group of words takes a tenth of the
        # time of a copy for each word.
        groups = np.lib.stride_tricks.as_strided(
            words, (len(words) - n_words + 1, n_words), words.strides * 2)

        def put(firsts: Rows, numbers: npt.NDArray[Any]) -> None:
            if numbers.ndim == 1:
                numbers = np.broadcast_to(numbers, targets.shape)
            groups[firsts] = numbers.reshape(-1, n_words)

        return put, targets.reshape(-1, n_words)[:, 0].copy()

    def message_bounds(self) -> tuple[Rows, Rows]:
        """Return begin and end of each of the n messages: twice (n,) int64, bytes."""
        starts = self._starts.numbers
        ends = starts[-1:] if self._is_array else starts[1:]
        starts = starts[:len(ends)]
        # Padding precedes the encapsulation header, which is at 4 modulo 8.
        return starts + (len(ENCAPSULATION) - starts) % ALIGNMENT, ends

    def array_cut(self) -> ArrayCut:
        """Return what patches and cuts out elements; valid until :meth:`update`."""
        starts = self._starts.numbers
        patches = []
        for table in self.tables:
            put, targets = self.patcher(table)
            first_bytes = targets.reshape(len(targets), -1)[:, 0] << _SHIFTS[table.word]
            patches.append(TablePatch(table, put, targets, np.diff(
                first_bytes.searchsorted(starts[1:]))))
        return ArrayCut(self._instances, starts.tolist(), self._bytes.numbers, patches)

    def tobytes(self, begin: int, end: int) -> bytes:
        """Return a copy of the bytes from ``begin`` to ``end``."""
        return self.section(begin, end).tobytes()

    def section(self, begin: int, end: int) -> npt.NDArray[np.uint8]:
        """Return a view of the bytes from ``begin`` to ``end``, valid until :meth:`update`."""
        return self._bytes.numbers[begin:end]

    def _phase_at(self, i: int) -> int:
        """Return the phase at which instance ``i`` begins."""
        return self._layouts[i - 1].end_phase if i else 0

    def _splice(self, layouts: list[Layout], head: int, tail: int) -> None:
        """Replace the layouts from ``head`` to ``tail``."""
        begin, end = int(self._starts.numbers[head]), int(self._starts.numbers[tail])
        data = b''.join([layout.data for layout in layouts])
        shift = begin + len(data) - end
        starts = np.array([begin, *[len(layout.data) for layout in layouts]]).cumsum()
        for table in {table: None for layout in layouts for table in layout.slot_offsets}:
            if table not in self._targets:
                self._targets[table] = _GrowingArray(np.int64)
        for table, targets in self._targets.items():
            new = _targets_of(table, layouts, starts)
            bits = _SHIFTS[table.word]
            # Rows after a byte begin at the next whole word at the earliest.
            first, last = targets.numbers[::table.width].searchsorted(
                (-(-begin >> bits), -(-end >> bits))).tolist()
            targets.splice(first * table.width, last * table.width, new, shift >> bits)
        self._bytes.splice(begin, end, np.frombuffer(data, np.uint8), 0)
        self._starts.splice(head, tail + 1, starts, shift)
        self._layouts[head:tail] = layouts
        memory = self._bytes.memory
        words = {dtype: memory.view(dtype) for dtype in {table.dtype for table in self._targets}}
        self._patches = {
            table: (words[table.dtype], targets.numbers.reshape(-1, table.width))
            for table, targets in self._targets.items() if len(targets.numbers)}
        if self._is_array:
            # The first instance ends with the length of the sequence.
            i_length = (int(self._starts.numbers[1]) >> 2) - 1
            memory.view(np.uint32)[i_length] = len(self._layouts) - 1


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


def _targets_of(table: Table, layouts: list[Layout], starts: Rows) -> Rows:
    """Return the indices of the table's words in the buffer."""
    # starts: (len(layouts) + 1,) int64, offset of each layout and the end of the last one.
    packed = [layout.slot_offsets.get(table, b'') for layout in layouts]
    offsets = np.frombuffer(b''.join(packed), np.int64)
    n_offsets = [len(of_layout) // _OFFSET_BYTES for of_layout in packed]
    begins = starts[:-1].repeat(n_offsets) if len(layouts) > 1 else starts[0]
    targets: Rows = (offsets + begins) >> _SHIFTS[table.word]
    return targets

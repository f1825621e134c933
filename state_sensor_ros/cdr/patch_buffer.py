# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Laid-out messages behind each other in one block of memory, patched from tables by numpy.

May know: layouts, numpy. Must not know: any particular message. Where segments come or go the
strand is spliced, so that one of thousands costs little; a steady frame is one assignment a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.templates import ALIGNMENT, ENCAPSULATION, Layout, Segment, Table
from state_sensor_ros.common_ends import same_ends
from state_sensor_ros.frame import Rows

# Of words by their size; what they mean is known to whoever fills the tables.
_DTYPES: dict[int, npt.DTypeLike] = {8: np.float64, 4: np.int32, 1: np.uint8}
_SHIFTS = {8: 3, 4: 2, 1: 0}
_OFFSET_BYTES = 8


class _Buffer:
    """Numbers in a row with room to grow, so that a splice moves only what lies behind it."""

    __slots__ = ('_room', 'numbers')

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._room: npt.NDArray[Any] = np.zeros(ALIGNMENT, dtype)
        self.numbers = self._room[:0]

    @property
    def room(self) -> npt.NDArray[Any]:
        """All of the memory, of a multiple of 8 items."""
        return self._room

    def splice(self, begin: int, end: int, new: npt.NDArray[Any], shift: int) -> None:
        """Put ``new`` in the place of what is there, and add ``shift`` to what lies behind it."""
        size, new_end = len(self.numbers), begin + len(new)
        new_size = size + new_end - end
        if new_size > len(self._room):
            room = np.zeros((new_size + new_size // 4) // ALIGNMENT * ALIGNMENT + ALIGNMENT,
                            self._room.dtype)
            room[:begin] = self._room[:begin]
            room[new_end:new_size] = self._room[end:size]
            self._room = room
        elif new_end != end:
            # Python's views may overlap in an assignment; numpy would copy by way of a third.
            self._room.data[new_end:new_size] = self._room.data[end:size]
        self._room[begin:new_end] = new
        if shift:
            self._room[new_end:new_size] += shift
        self.numbers = self._room[:new_size]


class Strand:
    """
    Segments behind each other.

    Either each segment is a message, or, with ``is_array``, the first is one whose last field is
    a sequence, still empty, and the others are the elements of that.
    """

    def __init__(self, *, is_array: bool = False) -> None:
        self._is_array = is_array
        self._segments: list[Segment] = []
        self._layouts: list[Layout] = []
        self._memory = _Buffer(np.uint8)
        # Where each segment begins, and the last one ends.
        self._starts = _Buffer(np.int64)
        self._starts.splice(0, 0, np.zeros(1, np.int64), 0)
        # Words of the memory for the rows of each table, ascending from row to row.
        self._targets: dict[Table, _Buffer] = {}
        self._patches: dict[Table, tuple[npt.NDArray[Any], Rows]] = {}

    @property
    def tables(self) -> list[Table]:
        """Those that have to be patched."""
        return list(self._patches)

    def update(self, segments: list[Segment]) -> None:
        """Become a strand of ``segments``; what stays the same at both ends is kept."""
        old, n_old, n_new = self._layouts, len(self._segments), len(segments)
        head, tail = same_ends(self._segments, segments)
        if head == n_old == n_new:
            return
        phase = old[head - 1].end if head else 0
        layouts = []
        for segment in segments[head:n_new - tail]:
            layout = segment.layouts[phase] or segment.at(phase)
            layouts.append(layout)
            phase = layout.end
        # Behind a change the phase may differ, until some segment ends where it ended before.
        while tail and segments[n_new - tail].layouts[phase] is not old[n_old - tail]:
            layout = segments[n_new - tail].at(phase)
            layouts.append(layout)
            phase = layout.end
            tail -= 1
        self._splice(layouts, head, n_old - tail)
        self._segments = segments

    def patch(self, table: Table, numbers: npt.NDArray[Any]) -> None:
        """
        Put the numbers of a table where they belong.

        :param numbers: (R, table.width), a row for each that the segments have, in their order, or
            (table.width,) for all.
        """
        words, targets = self._patches[table]
        words.put(targets, numbers)

    def messages(self) -> tuple[Rows, Rows]:
        """Return where each message begins and ends in the memory, int64."""
        starts = self._starts.numbers
        ends = starts[-1:] if self._is_array else starts[1:]
        starts = starts[:len(ends)]
        # Padding leads to the encapsulation header, which is at 4 modulo 8.
        return starts + (len(ENCAPSULATION) - starts) % ALIGNMENT, ends

    def tobytes(self, begin: int, end: int) -> bytes:
        """Copy a part of the memory."""
        return self._memory.numbers[begin:end].tobytes()

    def _splice(self, layouts: list[Layout], head: int, tail: int) -> None:
        """Put ``layouts`` in the place of those from ``head`` to ``tail``."""
        begin, end = int(self._starts.numbers[head]), int(self._starts.numbers[tail])
        data = b''.join([layout.data for layout in layouts])
        shift = begin + len(data) - end
        starts = np.array([begin, *[len(layout.data) for layout in layouts]]).cumsum()
        for table in {table: None for layout in layouts for table in layout.slots}:
            if table not in self._targets:
                self._targets[table] = _Buffer(np.int64)
        for table, targets in self._targets.items():
            new = _targets_of(table, layouts, starts)
            bits = _SHIFTS[table.word]
            # The first word of a row that lies behind a byte is at least the next whole word.
            first, last = targets.numbers[::table.width].searchsorted(
                (-(-begin >> bits), -(-end >> bits))).tolist()
            targets.splice(first * table.width, last * table.width, new, shift >> bits)
        self._memory.splice(begin, end, np.frombuffer(data, np.uint8), 0)
        self._starts.splice(head, tail + 1, starts, shift)
        self._layouts[head:tail] = layouts
        words = {size: self._memory.room.view(dtype) for size, dtype in _DTYPES.items()}
        self._patches = {
            table: (words[table.word], targets.numbers.reshape(-1, table.width))
            for table, targets in self._targets.items() if len(targets.numbers)}
        if self._is_array:
            # The count of the sequence ends the first segment.
            words[4][(int(self._starts.numbers[1]) >> 2) - 1] = len(self._layouts) - 1


def _targets_of(table: Table, layouts: list[Layout], starts: Rows) -> Rows:
    packed = [layout.slots.get(table, b'') for layout in layouts]
    offsets = np.frombuffer(b''.join(packed), np.int64)
    n_offsets = [len(own) // _OFFSET_BYTES for own in packed]
    begins = starts[:-1].repeat(n_offsets) if len(layouts) > 1 else starts[0]
    targets: Rows = (offsets + begins) >> _SHIFTS[table.word]
    return targets

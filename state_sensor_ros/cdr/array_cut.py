# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Arrays with some of their elements, cut out of a serialised array whose layout stays.

An element that begins at the same phase as before is copied as it is, with the neighbours that
follow it. At another phase the padding before its first words of 8 bytes differs::

    all elements   head | 3 | a at phase 4 | b at 0 | c at 0
    without a      head | 2 | b at phase 4 | c at 0           b laid out anew, with its numbers
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.cdr_writer import COUNT, Table
from state_sensor_ros.cdr.templates import ALIGNMENT, MessageInstance
from state_sensor_ros.frame import Bools, Rows

Octets = npt.NDArray[np.uint8]


class TablePatch(NamedTuple):
    """
    How the numbers of a table are patched.

    ``put`` with its first argument ``targets``, a row for each group of numbers; ``n_targets``
    (K,) int64, how many of these rows each element has.
    """

    table: Table
    put: Callable[[Rows, npt.NDArray[Any]], object]
    targets: Rows
    n_targets: Rows


class ArrayCut:
    """
    Patch and return some elements of an array.

    :param instances: the head and K elements.
    :param starts: where each instance begins, and where the last one ends, bytes.
    :param data: the bytes of all instances.
    :param patches: the tables of the elements; of a table with one row for all, only ``put`` and
        ``targets`` are used.
    """

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
        """
        Return a message with some of the elements.

        :param kept: (K,) bool, which ones.
        :param numbers: by table, the rows of these elements, or (width,) one row for all.
        """
        rows = kept.nonzero()[0]
        for (table, put, targets, n_targets), has_one_each in self._patches:
            values = numbers[table]
            if values.ndim == 1:
                put(targets, values)
            elif len(values):
                put(targets[rows if has_one_each else kept.repeat(n_targets)], values)
        pieces: list[bytes | memoryview] = [self._head, COUNT.pack(len(rows))]
        phase = self._starts[0] % ALIGNMENT
        # Neighbours are copied at once.
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

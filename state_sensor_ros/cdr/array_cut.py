# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Arrays with some of their elements, cut out of a serialised array that does not change.

The bytes of an element can be moved to a position with the same phase. All elements but the first
one begin at the same phase if their lengths are multiples of 8. The first one follows the count:
its padding may differ::

    head | count | a at phase 4 | b at 0 | c at 0          without a:    head | count | b at 4 | c

The bytes of b up to its first slot are those of phase 4; the rest is the same at both phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.cdr_writer import COUNT, Layout
from state_sensor_ros.cdr.templates import ALIGNMENT, MessageInstance
from state_sensor_ros.frame import Bools

Octets = npt.NDArray[np.uint8]


class ArrayCut:
    """
    Leave out elements of an array.

    :param instances: head and elements of the array, at least one element.
    :param starts: offset of each instance, and the end of the last one, bytes.
    """

    def __init__(self, instances: Sequence[MessageInstance], starts: Sequence[int]) -> None:
        self._instances = instances
        # Padding precedes the encapsulation header, which is at 4 modulo 8.
        self._offset = starts[0] + (4 - starts[0]) % ALIGNMENT
        self._starts = [start - self._offset for start in starts[1:]]
        self._phases = starts[1] % ALIGNMENT, starts[2] % ALIGNMENT

    @classmethod
    def of(cls, instances: Sequence[MessageInstance], starts: Sequence[int]) -> ArrayCut | None:
        """
        Return a cut of an array, None if its elements cannot be moved.

        :param instances: head and elements of the array.
        :param starts: argument of the constructor.
        """
        if len(instances) < 2:
            return None
        first, other = starts[1] % ALIGNMENT, starts[2] % ALIGNMENT
        if any((start - other) % ALIGNMENT for start in starts[3:]):
            return None
        # Equal layouts share their offsets.
        known: set[tuple[int, ...]] = set()
        for instance in instances[1:] if first != other else ():
            layouts = instance.layout_at(first), instance.layout_at(other)
            offsets = tuple([id(of_table) for layout in layouts
                             for of_table in layout.slot_offsets.values()])
            if offsets not in known and not _differ_in_front(*layouts):
                return None
            known.add(offsets)
        return cls(instances, starts)

    def message(self, data: Octets, kept: Bools | None, n_others: int = 0,
                others: bytes = b'') -> bytes:
        """
        Return a message with some of the elements, followed by other elements.

        :param data: bytes of the whole message.
        :param kept: (K,) bool, whether each of its elements is kept; None for all.
        :param n_others: number of other elements, 0 if no element is kept.
        :param others: bytes of the other elements, valid after an element that is kept.
        """
        n_kept = len(self._starts) - 1 if kept is None else int(np.count_nonzero(kept))
        # Arrays are buffers, but typed as such only for newer versions of Python.
        head: list[Any] = [data[:self._starts[0] - COUNT.size], COUNT.pack(n_kept + n_others)]
        if not n_kept:
            return b''.join(head)
        if kept is None:
            head += [data[self._starts[0]:], others]
            return b''.join(head)
        first = int(kept.argmax())
        front: tuple[Any, ...] = self._as_first(data, first) if first else (
            b'', data[self._starts[0]:self._starts[1]])
        rest = kept.copy()
        rest[first] = False
        # Consecutive elements are copied in one piece.
        edges = np.flatnonzero(np.diff(rest, prepend=False, append=False)).tolist()
        pieces: list[Any] = [data[self._starts[begin]:self._starts[end]]
                             for begin, end in zip(edges[::2], edges[1::2], strict=True)]
        return b''.join((*head, *front, *pieces, others))

    def _as_first(self, data: Octets, i: int) -> tuple[bytes, Octets]:
        """Return the bytes of an element at the position of the first one, in two parts."""
        begin, end = self._starts[i], self._starts[i + 1]
        if self._phases[0] == self._phases[1]:
            return b'', data[begin:end]
        first, other = (self._instances[1 + i].layout_at(phase) for phase in self._phases)
        return first.data[:_first_slot(first)], data[begin + _first_slot(other):end]


def _first_slot(layout: Layout) -> int:
    return min(int(np.frombuffer(offsets, np.int64)[0])
               for offsets in layout.slot_offsets.values())


def _differ_in_front(first: Layout, other: Layout) -> bool:
    """Return whether two layouts of an instance differ only in the bytes before all slots."""
    shift = len(first.data) - len(other.data)
    return first.slot_offsets.keys() == other.slot_offsets.keys() and all(
        (np.frombuffer(offsets, np.int64) - np.frombuffer(other.slot_offsets[table], np.int64)
         == shift).all() for table, offsets in first.slot_offsets.items())

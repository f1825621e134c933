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

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.templates import (
    ALIGNMENT,
    COUNT,
    ENCAPSULATION,
    MessageInstance,
    Table,
)
from state_sensor_ros.errors import EncodeError
from state_sensor_ros.frame import Rows

_OFFSET_BYTES = 8
# A table with fewer rows is patched word by word.
_MIN_ROWS = 64


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

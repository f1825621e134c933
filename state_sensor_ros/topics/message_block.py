# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Blocks of serialised messages: a patch buffer, the rows of tables in it, and the topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import MessageInstance, Table, Template
from state_sensor_ros.frame import Bools, Rows
from state_sensor_ros.topics.topic import Topic

if TYPE_CHECKING:
    from state_sensor_ros.topics.topic_encoder import FrameToSend

Messages = list[tuple[Topic, bytes]]


class MessageBlock:
    """
    All messages of one patch buffer, valid until their layout changes.

    ``patches`` for each table in the buffer: the table, its rows or None for all, and the function
    that patches them with its first argument. They are looked up once for a layout: in each frame,
    that would take as long as the patches. ``rows`` those given. ``data`` the bytes; ``parts``
    topic, begin and end of each message in them; ``make`` patches the message itself and returns
    it, from the frame and the numbers by table; None to patch all rows and to send all bytes.

    :param buffer: buffer of the messages.
    :param rows: by table (R,) int64, the rows of the table in the order of the buffer; a table
        without an entry has all its rows in the buffer.
    :param topics: topic of each message.
    :param also: further topics, each with the index of the message that it shares.
    """

    __slots__ = ('data', 'make', 'parts', 'patches', 'rows')

    def __init__(self, buffer: PatchBuffer, rows: Mapping[Table, Rows], topics: Iterable[Topic],
                 also: Iterable[tuple[Topic, int]] = ()) -> None:
        self.make: Callable[[FrameToSend, Mapping[Table, npt.NDArray[Any]]], bytes] | None = None
        self.rows = rows
        self.patches = [(table, rows.get(table), *buffer.patcher(table))
                        for table in buffer.tables]
        begins, ends = buffer.message_bounds()
        begin = int(begins[0])
        self.data = buffer.section(begin, int(ends[-1]))
        self.parts = list(zip(topics, (begins - begin).tolist(), (ends - begin).tolist(),
                              strict=True))
        self.parts += [(topic, *self.parts[i][1:]) for topic, i in also]


class ArrayMessage:
    """
    A message that ends with a sequence of elements, laid out one by one.

    :param head: template of the message, with an empty sequence.
    """

    def __init__(self, head: Template) -> None:
        self._head = MessageInstance(head, {})
        self._buffer = PatchBuffer(is_array=True)

    def blocks(self, elements: Iterable[MessageInstance], rows: Mapping[Table, Rows],
               topics: Iterable[Topic]) -> list[MessageBlock]:
        """
        Lay out the message, which makes the blocks of the last call invalid.

        :param elements: elements of the sequence; those of the last call are not laid out again.
        :param rows: as for :class:`MessageBlock`.
        :param topics: topic of the message.
        :returns: one block.
        """
        self._buffer.update([self._head, *elements])
        return [MessageBlock(self._buffer, rows, topics)]


def rows_where(are_chosen: Bools, *tables: Table) -> dict[Table, Rows]:
    """
    Return the ``rows`` of a :class:`MessageBlock`.

    :param are_chosen: (R,) bool, for each row of the tables; if all are True the tables have no
        entry, which saves a copy of the rows in each frame.
    :param tables: tables with R rows.
    """
    return {} if are_chosen.all() else dict.fromkeys(tables, np.flatnonzero(are_chosen))

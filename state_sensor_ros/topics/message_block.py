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

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Table
from state_sensor_ros.frame import Bools, Rows
from state_sensor_ros.topics.topic import Topic

Messages = list[tuple[Topic, bytes]]


class MessageBlock:
    """
    All messages of one patch buffer, for as long as their layout holds.

    :param buffer: the messages.
    :param rows: by table, (R,) int64, the rows of the table in the order of the buffer; a table
        that is left out is held completely.
    :param topics: of each message.
    :param also: further topics, each with the index of the message that it shares.
    """

    __slots__ = ('_also', '_data', '_parts', '_patches', 'rows', 'tables')

    def __init__(self, buffer: PatchBuffer, rows: Mapping[Table, Rows], topics: list[Topic],
                 also: tuple[tuple[Topic, int], ...] = ()) -> None:
        self.rows, self.tables, self._also = rows, buffer.tables, also
        # The look-ups of each frame are done here, once: they take as long as the patches.
        self._patches = [(table, rows.get(table), *buffer.patcher(table))
                         for table in self.tables]
        begins, ends = buffer.message_bounds()
        begin = int(begins[0])
        self._data = buffer.section(begin, int(ends[-1]))
        self._parts = list(zip(topics, (begins - begin).tolist(), (ends - begin).tolist(),
                               strict=True))

    def messages(self, numbers: Mapping[Table, npt.NDArray[Any]]) -> Messages:
        """
        Return the messages of one frame.

        :param numbers: of all :attr:`tables`, (rows, table.width) each.
        """
        for table, rows, put, targets in self._patches:
            put(targets, numbers[table] if rows is None else numbers[table][rows])
        # One copy of the block and slices of it take less time than a copy of each message.
        data = self._data.tobytes()
        # A slice of all bytes is the object itself.
        messages = [(topic, data[begin:end]) for topic, begin, end in self._parts]
        for topic, i in self._also:
            messages.append((topic, messages[i][1]))
        return messages


def rows_where(are_chosen: Bools, *tables: Table) -> dict[Table, Rows]:
    """
    Return the ``rows`` of a :class:`MessageBlock`.

    :param are_chosen: (rows of the tables,) bool; if all are True the tables are left out, which
        saves the copy of the chosen rows in each frame.
    """
    return {} if are_chosen.all() else dict.fromkeys(tables, np.flatnonzero(are_chosen))

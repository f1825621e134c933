# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages that are still readable in an SQLite file that was not closed, or is malformed.

A log beside the file is applied to a copy of both. Rows on malformed pages are lost. After an
error at row 41, the next readable row is searched for by queries of ``rowid >= 42``, 43 and so on,
each of which fails if its first row is on a malformed page::

    row        1 ... 40 | 41 ... 97 | 98 ...
    page       readable | malformed | readable     42 to 97 fail, 98 does not: 57 rows are lost

After 2000 failures, more than a page has rows, the step doubles with each query.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
import shutil

import apsw

from state_sensor_ros.errors import counted
from state_sensor_ros.files.storage.bag_limits import BagError, BagLimits
from state_sensor_ros.files.storage.sqlite_reader import (
    connected,
    LOG_SUFFIXES,
    topics_of,
    unfinished_log,
)
from state_sensor_ros.files.storage.storage_file import Recovered, StoredTopic
from state_sensor_ros.files.whole.temporary import temporary_folder

# Number of rows that the search tries one by one: a page has fewer rows.
_N_SINGLE_STEPS = 2000
_FIRST_ROW, _LAST_ROW = -2**63, 2**62
_ROWS = 'SELECT rowid, topic_id, timestamp, data FROM messages WHERE rowid >= ? ORDER BY rowid'
# Text in a row may not be UTF-8.
_FAULTS = (apsw.Error, UnicodeDecodeError)
# Result of a search that finds no row.
_NO_ROW = 2**63 - 1


class SqliteSalvage:
    """
    A damaged SQLite file, a :class:`Salvage`.

    :param path: path of the file; it is open until :meth:`close`.
    :param name: name of the file in errors.
    :param limits: limits on sizes.
    :raises BagError: if the tables cannot be read.
    :raises OSError: if it cannot be copied.
    """

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self.topics: dict[int, StoredTopic] = {}
        self.losses: list[str] = []
        self.defects: list[str] = []
        self.n_lost: int | None = 0
        self._name = name
        self._stack = ExitStack()
        try:
            log = unfinished_log(path)
            if log is not None:
                path = self._copied(path)
                self.defects.append(f'a part of it was not in its file, but in {log.name}')
                if log.name.endswith('-journal'):
                    self.losses.append('messages that were written but not committed')
                    self.n_lost = None
            self._connection = connected(path, limits, is_copy=log is not None)
            self._stack.callback(self._connection.close)
            self.topics = topics_of(self._connection, name, limits, errors='replace')
        except apsw.Error as error:
            self.close()
            raise BagError(name, f'a database that cannot be read ({error})',
                           'tables of rosbag2') from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._stack.close()

    def messages(self) -> Iterator[Recovered]:
        """Yield all readable messages in the order of the file."""
        n_unknown = 0
        for topic_id, log_ns, data in self._rows():
            topic = self.topics.get(topic_id) if isinstance(topic_id, int) else None
            if topic is None or not isinstance(log_ns, int) or not isinstance(data, bytes):
                n_unknown += 1
            else:
                yield Recovered(topic, log_ns, data)
        if n_unknown:
            self._lose(n_unknown, f'{counted(n_unknown, "row")} without a topic or without data')

    def _copied(self, path: Path) -> Path:
        """Copy the file and its logs to a temporary folder; return the copy of the file."""
        folder = self._stack.enter_context(temporary_folder())
        for suffix in ('', *LOG_SUFFIXES):
            source = Path(f'{path}{suffix}')
            if source.is_file():
                shutil.copyfile(source, folder / f'bag{suffix}')
        return folder / 'bag'

    def _rows(self) -> Iterator[tuple[apsw.SQLiteValue, ...]]:
        """Yield topic number, log time and data of each readable row; note the others."""
        row: int | None = self._first_row()
        while row is not None:
            try:
                for number, *values in self._connection.execute(_ROWS, (row,)):
                    yield tuple(values)
                    row = self._checked(number) + 1
                return
            except _FAULTS as error:
                row = self._next_row(row, str(error))

    def _first_row(self) -> int:
        """Return the number to begin at: 1 as rosbag2 does, or that of a row before it."""
        # If the first page is malformed, rows are readable from some number on.
        for first in (_FIRST_ROW, *(-2**i for i in range(62, -1, -1))):
            number = self._first_from(first)
            if number is not None:
                if number < 1 and first != _FIRST_ROW:
                    self.n_lost = None
                    self.losses.append(f'all messages before number {number}')
                return min(number, 1)
        return 1

    def _checked(self, number: apsw.SQLiteValue) -> int:
        """Return the number of a row; raise BagError if a column has the name of the number."""
        if not isinstance(number, int):
            raise BagError(self._name, 'rows without numbers', 'tables of rosbag2')
        return number

    def _next_row(self, row: int, fault: str) -> int | None:
        """
        Return the number of the next readable row, None if there is none; note the loss.

        :param row: number of the row that could not be read.
        :param fault: reason.
        """
        last, step = row, 1
        while last <= _LAST_ROW - step:
            number = self._first_from(last + step)
            if number is not None:
                n_lost = (last + step if number == _NO_ROW else number) - row
                self._lose(n_lost, f'{counted(n_lost, "message")} from number {row} on ({fault})')
                return None if number == _NO_ROW else number
            last += step
            if last - row > _N_SINGLE_STEPS:
                step *= 2
        self.n_lost = None
        self.losses.append(f'all messages after number {row - 1} ({fault})')
        return None

    def _first_from(self, row: int) -> int | None:
        """Return the first row number from ``row`` on, _NO_ROW for none; None on failure."""
        try:
            for [number, *_] in self._connection.execute(f'{_ROWS} LIMIT 1', (row,)):
                return self._checked(number)
        except _FAULTS:
            return None
        return _NO_ROW

    def _lose(self, n_messages: int, what: str) -> None:
        self.losses.append(what)
        if self.n_lost is not None:
            self.n_lost += n_messages

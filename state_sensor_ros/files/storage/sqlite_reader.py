# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""SQLite files of rosbag2 of any version: messages in the order of their times, and salvage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, ExitStack
import os
from pathlib import Path
import shutil

import apsw

from state_sensor_ros.files.storage.storage_file import (
    BagError,
    BagLimits,
    damaged,
    Recovered,
    StoredMessage,
    StoredTopic,
    too_large,
)
from state_sensor_ros.files.whole.output import temporary_folder
from state_sensor_ros.texts import counted

MAX_TOPICS = 65535
LOG_SUFFIXES = ('-wal', '-journal')
# Largest number of characters of the default value of a column.
_MAX_DEFAULT = 100
# The first bytes of a journal with pages to be written back; a finished one begins with zeros.
_JOURNAL = bytes.fromhex('d9d505f920a163d7')
# Number of rows that the search tries one by one: a page has fewer rows.
_N_SINGLE_STEPS = 2000
_FIRST_ROW, _LAST_ROW = -2**63, 2**62
# Place of the size of a page in the file; 1 stands for 65536.
_PAGE_SIZE = slice(16, 18)
_ROWS = 'SELECT rowid, topic_id, timestamp, data FROM messages WHERE rowid >= ? ORDER BY rowid'
# Text in a row may not be UTF-8.
_FAULTS = (apsw.Error, UnicodeDecodeError)
# Result of a search that finds no row.
_NO_ROW = 2**63 - 1


class SqliteReader:
    """An SQLite file of rosbag2, with the interface of :class:`McapReader`."""

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self._name = name
        self._limits = limits
        if log := unfinished_log(path):
            raise damaged(name, f'messages are still in {log.name}')
        with path.open('rb'):
            pass  # raises an error with the reason, which SQLite does not give
        with self._reading():
            self._connection = connected(path, limits)
        try:
            with self._reading():
                self.topics = topics_of(self._connection, name, limits)
                self.counts = Counter(dict(self._connection.execute(
                    'SELECT topic_id, count(*) FROM messages GROUP BY topic_id '
                    f'LIMIT {MAX_TOPICS + 1}')))
            if unknown := self.counts.keys() - self.topics.keys():
                n_unknown = sum(self.counts[number] for number in unknown)
                raise damaged(name, f'{counted(n_unknown, "message")} of an unknown topic')
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._connection.close()

    def messages(self, selected: Collection[int]) -> Iterator[StoredMessage]:
        """Yield messages in the order of their log times."""
        places = ','.join('?' * len(selected))
        n_messages = 0
        with self._reading():
            for topic, log_ns, data in self._connection.execute(
                    'SELECT topic_id, timestamp, data FROM messages '
                    f'WHERE topic_id IN ({places}) ORDER BY timestamp', tuple(selected)):
                if not isinstance(data, bytes) or not isinstance(log_ns, int):
                    raise damaged(self._name, 'a message that is not data')
                n_messages += 1
                yield topic, log_ns, data
        expected = sum(self.counts[number] for number in selected)
        # The rows come from the index of timestamps, and a damaged one lacks some of the table.
        if n_messages != expected:
            raise damaged(self._name, f'{n_messages} of {expected} messages in the index of '
                          'their times')

    def messages_at(self, selected: Collection[int], at_ns: int) -> Iterator[StoredMessage]:
        """Yield the messages of a log time, in the order of :meth:`messages`."""
        places = ','.join('?' * len(selected))
        with self._reading():
            for topic, data in self._connection.execute(
                    'SELECT topic_id, data FROM messages WHERE timestamp = ? '
                    f'AND topic_id IN ({places}) ORDER BY rowid', (at_ns, *selected)):
                if not isinstance(data, bytes):
                    raise damaged(self._name, 'a message that is not data')
                yield topic, at_ns, data

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn the errors of SQLite into BagError."""
        try:
            yield
        except apsw.TooBigError as error:
            raise too_large(self._name, 'a message or a definition',
                            self._limits.n_bytes) from error
        except (apsw.Error, UnicodeDecodeError) as error:
            raise damaged(self._name, str(error)) from error


def unfinished_log(path: Path) -> Path | None:
    """Return the log beside a database that a program did not close."""
    # Returns a write-ahead log or a journal with content; None if there is none.
    wal, journal = (Path(f'{path}{suffix}') for suffix in LOG_SUFFIXES)
    if wal.is_file() and wal.stat().st_size:
        return wal
    if journal.is_file():
        with journal.open('rb') as file:
            return journal if file.read(len(_JOURNAL)) == _JOURNAL else None
    return None


def _n_whole_bytes(path: Path) -> int:
    """Return the size of the whole pages: SQLite reads zeros after the end of a cut one."""
    with path.open('rb') as file:
        page_bytes = int.from_bytes(file.read(_PAGE_SIZE.stop)[_PAGE_SIZE], 'big')
    n_bytes = path.stat().st_size
    return n_bytes - n_bytes % (65_536 if page_bytes == 1 else max(page_bytes, 512))


def connected(path: Path, limits: BagLimits, *, is_copy: bool = False) -> apsw.Connection:
    """Open a database from an untrusted source."""
    access = apsw.SQLITE_OPEN_READWRITE if is_copy else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(path.absolute().as_uri() + ('' if is_copy else '?immutable=1'),
                                 flags=access | apsw.SQLITE_OPEN_URI)
    # The schema may define computed columns: a few bytes of it produce a blob of any size.
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, limits.n_bytes)
    connection.execute('PRAGMA trusted_schema = OFF')
    connection.execute('PRAGMA cell_size_check = ON')
    return connection


def topics_of(connection: apsw.Connection, name: str, limits: BagLimits, *,
              errors: str = 'strict') -> dict[int, StoredTopic]:
    """Return the topics of a database by their numbers."""
    # errors: treatment of text that is not UTF-8, as for :meth:`bytes.decode`.
    n_bytes = 0

    def rows(query: str) -> Iterator[tuple[apsw.SQLiteValue, ...]]:
        nonlocal n_bytes
        for row in connection.execute(query):
            n_bytes += sum(len(value) for value in row if isinstance(value, str | bytes))
            if n_bytes > limits.n_bytes:
                raise too_large(name, 'definitions', limits.n_bytes)
            yield row

    def texts(columns: Iterable[str], rest: str) -> Iterator[list[str]]:
        # As bytes, because the text may not be UTF-8.
        for row in rows(f'SELECT {", ".join(f"CAST({column} AS BLOB)" for column in columns)} '
                        f'FROM {rest}'):
            yield [value.decode(errors=errors) if isinstance(value, bytes) else ''
                   for value in row]

    # A virtual table has no page.
    tables = {table for [table] in texts(
        ['name'], "sqlite_master WHERE type = 'table' AND rootpage > 0")}
    if not {'topics', 'messages'} <= tables:
        raise BagError(name, 'a database without the tables topics and messages', 'a bag of ROS 2')
    for table in {'topics', 'messages', 'message_definitions'} & tables:
        # A few bytes of the schema can produce a value of any size in each row.
        if any(True for _ in rows(f"SELECT 1 FROM pragma_table_xinfo('{table}') WHERE hidden > 1 "
                                  f'OR length(dflt_value) > {_MAX_DEFAULT}')):
            raise damaged(name, f'a table {table} with computed columns')
    definitions: dict[str, tuple[str, str]] = {}
    if 'message_definitions' in tables:
        definitions = {type_name: (text, encoding) for type_name, text, encoding in texts(
            ['topic_type', 'encoded_message_definition', 'encoding'],
            'message_definitions ORDER BY id DESC')}
    columns = {column for [column] in texts(['name'], "pragma_table_info('topics')")}
    optional = [column if column in columns else "''"
                for column in ('type_description_hash', 'offered_qos_profiles')]
    selected = 'topics ORDER BY id LIMIT ' + str(MAX_TOPICS)
    numbers = [number for [number] in rows(f'SELECT id FROM {selected}')]
    topics: dict[int, StoredTopic] = {}
    for number, values in zip(numbers, texts(
            ['name', 'type', 'serialization_format', *optional], selected), strict=True):
        if not isinstance(number, int):
            raise damaged(name, 'a topic without a number')
        topic, type_name, serialization, type_hash, qos = values
        topics[number] = StoredTopic(topic, type_name, *definitions.get(type_name, ('', '')),
                                     type_hash, serialization, qos)
    return topics


class SqliteSalvage:
    """A damaged SQLite file, with the interface of :class:`McapSalvage`."""

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self.topics: dict[int, StoredTopic] = {}
        self.losses: list[str] = []
        self.defects: list[str] = []
        self.n_lost: int | None = 0
        self._name = name
        self._stack = ExitStack()
        try:
            log, n_bytes = unfinished_log(path), _n_whole_bytes(path)
            is_copy = log is not None or n_bytes < path.stat().st_size
            if is_copy:
                path = self._copied(path)
                os.truncate(path, n_bytes)
            if log is not None:
                self.defects.append(f'a part of it was not in its file, but in {log.name}')
                if log.name.endswith('-journal'):
                    self.losses.append('messages that were written but not committed')
                    self.n_lost = None
            self._connection = connected(path, limits, is_copy=is_copy)
            self._stack.callback(self._connection.close)
            # Otherwise SQLite refuses a file that is shorter than its header says.
            self._connection.execute('PRAGMA writable_schema = ON')
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
        """Return the number of the next readable row, None if there is none; note the loss."""
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages of an SQLite file of rosbag2, of any version, in the order of their log times.

SQLite has no checksums: it detects malformed pages, but no changed bytes in a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from state_sensor_ros.files.storage.bag_limits import BagLimits, damaged, too_large
from state_sensor_ros.files.storage.storage_file import StoredMessage, StoredTopic

MAX_TOPICS = 65535
LOG_SUFFIXES = ('-wal', '-journal')
# The first bytes of a journal with pages to be written back; a finished one begins with zeros.
_JOURNAL = bytes.fromhex('d9d505f920a163d7')


class SqliteReader:
    """
    An SQLite file of rosbag2, a :class:`Storage`.

    :param path: of the file; it is open until :meth:`close`.
    :param name: of the file in errors.
    :param limits: on sizes, as they are read.
    :ivar topics: by their number in this file.
    :ivar counts: of messages by the same number.
    :raises BagError: where the file is damaged or too large.
    """

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self._name = name
        self._limits = limits
        if log := unfinished_log(path):
            raise damaged(name, f'messages are still in {log.name}')
        with self._reading():
            self._connection = connected(path, limits)
        try:
            with self._reading():
                self.topics = topics_of(self._connection, name, limits)
                self.counts = Counter(dict(self._connection.execute(
                    'SELECT topic_id, count(*) FROM messages GROUP BY topic_id '
                    f'LIMIT {MAX_TOPICS + 1}')))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._connection.close()

    def messages(self, selected: Collection[int]) -> Iterator[StoredMessage]:
        """
        Yield messages in the order of their log times.

        :param selected: numbers of topics.
        :raises BagError: where the file is damaged; after the last message, where some are
            missing.
        """
        places = ','.join('?' * len(selected))
        n_messages = 0
        with self._reading():
            for topic, log_ns, data in self._connection.execute(
                    'SELECT topic_id, timestamp, data FROM messages '
                    f'WHERE topic_id IN ({places}) ORDER BY timestamp', tuple(selected)):
                if not isinstance(data, bytes) or not isinstance(log_ns, int):
                    raise damaged(self._name, 'a message that is no data')
                n_messages += 1
                yield topic, log_ns, data
        expected = sum(self.counts[number] for number in selected)
        # The rows come from the index of timestamps, and a damaged one lacks some of the table.
        if n_messages != expected:
            raise damaged(self._name, f'{n_messages} of {expected} messages in the index of '
                          'their times')

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
    """
    Return the log that a program that did not close the database left beside it.

    :param path: of the database.
    :returns: a write-ahead log or a journal with content; None where there is none.
    :raises OSError: where a log cannot be read.
    """
    wal, journal = (Path(f'{path}{suffix}') for suffix in LOG_SUFFIXES)
    if wal.is_file() and wal.stat().st_size:
        return wal
    if journal.is_file():
        with journal.open('rb') as file:
            return journal if file.read(len(_JOURNAL)) == _JOURNAL else None
    return None


def connected(path: Path, limits: BagLimits, *, is_copy: bool = False) -> apsw.Connection:
    """
    Open a database from an untrusted source.

    :param path: of the file.
    :param limits: on the size of a value.
    :param is_copy: whether SQLite may change it, to apply its logs.
    :raises apsw.Error: where it cannot be opened.
    """
    access = apsw.SQLITE_OPEN_READWRITE if is_copy else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(path.absolute().as_uri() + ('' if is_copy else '?immutable=1'),
                                 flags=access | apsw.SQLITE_OPEN_URI)
    # The schema may define computed columns: a few bytes of it produce a blob of any size.
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, limits.n_bytes)
    connection.execute('PRAGMA trusted_schema = OFF')
    connection.execute('PRAGMA cell_size_check = ON')
    return connection


def topics_of(connection: apsw.Connection, name: str, limits: BagLimits,
              ) -> dict[int, StoredTopic]:
    """
    Return the topics of a database by their numbers.

    :param connection: as :func:`connected` returned it.
    :param name: of the file in errors.
    :param limits: on the size of all definitions.
    :raises BagError: where it lacks the tables of rosbag2, or they hold too much.
    :raises apsw.Error: where it cannot be read.
    """
    n_bytes = 0

    def rows(query: str) -> Iterator[tuple[apsw.SQLiteValue, ...]]:
        nonlocal n_bytes
        for row in connection.execute(query):
            n_bytes += sum(len(value) for value in row if isinstance(value, str | bytes))
            if n_bytes > limits.n_bytes:
                raise too_large(name, 'definitions', limits.n_bytes)
            yield row

    tables = {table for [table] in rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {'topics', 'messages'} <= tables:
        raise damaged(name, 'a database without the tables topics and messages')
    definitions: dict[object, tuple[str, str]] = {}
    if 'message_definitions' in tables:
        definitions = {type_name: (str(text), str(encoding)) for type_name, text, encoding in rows(
            'SELECT topic_type, encoded_message_definition, encoding FROM message_definitions '
            'ORDER BY id DESC')}
    columns = {row[1] for row in rows('PRAGMA table_info(topics)')}
    optional = [column if column in columns else "''"
                for column in ('type_description_hash', 'offered_qos_profiles')]
    topics: dict[int, StoredTopic] = {}
    for number, *texts in rows(
            f'SELECT id, name, type, serialization_format, {", ".join(optional)} FROM topics '
            f'ORDER BY id LIMIT {MAX_TOPICS}'):
        if not isinstance(number, int):
            raise damaged(name, 'a topic without a number')
        topic, type_name, serialization, type_hash, qos = (
            text if isinstance(text, str) else '' for text in texts)
        topics[number] = StoredTopic(topic, type_name, *definitions.get(type_name, ('', '')),
                                     type_hash, serialization, qos)
    return topics

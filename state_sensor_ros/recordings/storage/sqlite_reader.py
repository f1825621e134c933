# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The messages of an SQLite file of rosbag2 in the order of their log times.

May know: SQLite, the tables of rosbag2, of whatever version. Must not know: types of messages.
SQLite has no checksums: it notices pages that are malformed, not other bytes in a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from state_sensor_ros.recordings.storage.bag_limits import BagLimits, damaged, too_large
from state_sensor_ros.recordings.storage.storage_file import Message, StoredTopic

MAX_TOPICS = 65535
LOG_SUFFIXES = ('-wal', '-journal')
# What a journal begins with that has pages to be written back.
_JOURNAL = bytes.fromhex('d9d505f920a163d7')


class SqliteReader:
    """
    Read one file.

    :param path: of the file; open until :meth:`close`.
    :param name: of the file in messages.
    :param limits: what may be read at once.
    :ivar topics: by the number that they have in this file.
    :ivar counts: of messages, by the same.
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
        """Close the file; closing twice is quiet."""
        self._connection.close()

    def messages(self, wanted: Collection[int]) -> Iterator[Message]:
        """
        Yield messages in the order of their log times.

        :param wanted: numbers of topics.
        :raises BagError: where the file is damaged; at its end, where messages are missing.
        """
        places = ','.join('?' * len(wanted))
        n_messages = 0
        with self._reading():
            for topic, log_ns, data in self._connection.execute(
                    'SELECT topic_id, timestamp, data FROM messages '
                    f'WHERE topic_id IN ({places}) ORDER BY timestamp', tuple(wanted)):
                if not isinstance(data, bytes) or not isinstance(log_ns, int):
                    raise damaged(self._name, 'a message that is no data')
                n_messages += 1
                yield topic, log_ns, data
        expected = sum(self.counts[number] for number in wanted)
        # The order is that of an index, which may not have all rows of the table.
        if n_messages != expected:
            raise damaged(self._name, f'{n_messages} of {expected} messages in the index of '
                          'their times')

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except apsw.TooBigError as error:
            raise too_large(self._name, 'a message or a definition',
                            self._limits.n_bytes) from error
        except (apsw.Error, UnicodeDecodeError) as error:
            raise damaged(self._name, str(error)) from error


def unfinished_log(path: Path) -> Path | None:
    """Return the log beside a database that has what is missing in it, None where none has."""
    wal, journal = (Path(f'{path}{suffix}') for suffix in LOG_SUFFIXES)
    if wal.is_file() and wal.stat().st_size:
        return wal
    if journal.is_file():
        with journal.open('rb') as file:
            # Zeros where it was finished.
            return journal if file.read(len(_JOURNAL)) == _JOURNAL else None
    return None


def connected(path: Path, limits: BagLimits, *, is_copy: bool = False) -> apsw.Connection:
    """
    Open a database that may have been made to do harm.

    :param is_copy: whether it may be changed, by what is in its logs.
    :raises apsw.Error: where that fails.
    """
    access = apsw.SQLITE_OPEN_READWRITE if is_copy else apsw.SQLITE_OPEN_READONLY
    connection = apsw.Connection(path.absolute().as_uri() + ('' if is_copy else '?immutable=1'),
                                 flags=access | apsw.SQLITE_OPEN_URI)
    # Columns can be computed: a few bytes of schema would be a blob of any size.
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, limits.n_bytes)
    connection.execute('PRAGMA trusted_schema = OFF')
    connection.execute('PRAGMA cell_size_check = ON')
    return connection


def topics_of(connection: apsw.Connection, name: str, limits: BagLimits,
              ) -> dict[int, StoredTopic]:
    """
    Return the topics of a database by their numbers.

    :param name: of the file in messages.
    :raises BagError: where it has not got the tables of rosbag2, or too much in them.
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The messages that can still be read of an SQLite file that was not closed, or is malformed.

May know: SQLite, the tables of rosbag2. Must not know: types of messages, how a bag is written.
A log beside the file is applied to a copy of both. Rows on pages that are malformed are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
import shutil
from tempfile import TemporaryDirectory

import apsw

from state_sensor_ros.recordings.storage.bag_limits import BagError, BagLimits
from state_sensor_ros.recordings.storage.sqlite_reader import (
    connected,
    LOG_SUFFIXES,
    topics_of,
    unfinished_log,
)
from state_sensor_ros.recordings.storage.storage_file import Recovered, StoredTopic

# A malformed page is skipped row by row at first: it has no more rows than this.
_N_SINGLE_STEPS = 2000
_LAST_ROW = 2**62
# In place of the number of a row.
_NONE = 2**63 - 1


class SqliteSalvage:
    """
    Read what is left of one file.

    :param path: of the file; open until :meth:`close`.
    :param name: of the file in messages.
    :param limits: what may be read at once.
    :raises BagError: where not even its tables can be read.
    :raises OSError: where it cannot be copied.
    """

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self.topics: dict[int, StoredTopic] = {}
        self.losses: list[str] = []
        self.defects: list[str] = []
        self.n_lost: int | None = 0
        self._stack = ExitStack()
        try:
            log = unfinished_log(path)
            if log is not None:
                path = self._copied(path)
                self.defects.append(f'not all of it was in its file, but in {log.name}')
                if log.name.endswith('-journal'):
                    self.losses.append('what had been written but not committed')
                    self.n_lost = None
            self._connection = connected(path, limits, is_copy=log is not None)
            self._stack.callback(self._connection.close)
            self.topics = topics_of(self._connection, name, limits)
        except apsw.Error as error:
            self.close()
            raise BagError(name, f'a database that cannot be read ({error})',
                           'tables of rosbag2') from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; closing twice is quiet."""
        self._stack.close()

    def messages(self) -> Iterator[Recovered]:
        """Yield all messages that can be read, in the order of the file."""
        n_unknown = 0
        for topic_id, log_ns, data in self._rows():
            topic = self.topics.get(topic_id) if isinstance(topic_id, int) else None
            if topic is None or not isinstance(log_ns, int) or not isinstance(data, bytes):
                n_unknown += 1
            else:
                yield Recovered(topic, log_ns, data)
        if n_unknown:
            self._lose(n_unknown, f'{n_unknown} rows without a topic or without data')

    def _copied(self, path: Path) -> Path:
        """Copy the file and its logs to a folder where they can be changed."""
        folder = Path(self._stack.enter_context(TemporaryDirectory()))
        for suffix in ('', *LOG_SUFFIXES):
            source = Path(f'{path}{suffix}')
            if source.is_file():
                shutil.copyfile(source, folder / f'bag{suffix}')
        return folder / 'bag'

    def _rows(self) -> Iterator[tuple[apsw.SQLiteValue, ...]]:
        """Yield the rows that can be read; note the others."""
        row: int | None = 1
        while row is not None:
            try:
                for number, *values in self._connection.execute(
                        'SELECT rowid, topic_id, timestamp, data FROM messages WHERE rowid >= ? '
                        'ORDER BY rowid', (row,)):
                    assert isinstance(number, int)
                    yield tuple(values)
                    row = number + 1
                return
            except apsw.Error as error:
                row = self._behind(row, str(error))

    def _behind(self, row: int, fault: str) -> int | None:
        """Return the number of the next row that can be read, None where there is none."""
        last, step = row, 1
        while last <= _LAST_ROW - step:
            found = self._first_from(last + step)
            if found is not None:
                n_lost = (last + step if found == _NONE else found) - row
                self._lose(n_lost, f'{n_lost} messages from number {row} on ({fault})')
                return None if found == _NONE else found
            last += step
            if last - row > _N_SINGLE_STEPS:
                step *= 2
        self.n_lost = None
        self.losses.append(f'what follows message number {row - 1} ({fault})')
        return None

    def _first_from(self, row: int) -> int | None:
        """Return the number of the first row from one on, or _NONE; None where that fails."""
        try:
            for [number, *_] in self._connection.execute(
                    'SELECT rowid, topic_id, timestamp, data FROM messages WHERE rowid >= ? '
                    'ORDER BY rowid LIMIT 1', (row,)):
                assert isinstance(number, int)
                return number
        except apsw.Error:
            return None
        return _NONE

    def _lose(self, n_messages: int, what: str) -> None:
        self.losses.append(what)
        if self.n_lost is not None:
            self.n_lost += n_messages

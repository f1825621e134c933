# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Writer of the SQLite files of bags: that of rosbags, with commits in between."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
import sqlite3

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer

# Size of the messages in a commit; a killed program loses those after the last one.
_COMMIT_BYTES = 4 * 1024 * 1024


class SqliteStorageWriter(Sqlite3Writer):
    """
    Writer of an SQLite file.

    No commit waits for the disk: as with MCAP, the file is synced once it is complete.

    :param path: folder of the bag, from whose name rosbag2 derives that of the file.
    """

    def __init__(self, path: Path) -> None:
        # Without the base constructor, whose file name `ros2 bag reindex` does not find.
        self.path = path / f'{path.name}_0.db3'
        # A recorder writes in one thread, and opens and completes the file in another.
        self.conn = sqlite3.connect(self.path, check_same_thread=False)
        self.conn.executescript(self.SQLITE_SCHEMA)
        self.cursor = self.conn.cursor()
        self.conn.execute('PRAGMA synchronous = OFF')
        self._n_bytes = 0

    def add_msgtype(self, connection: Connection) -> None:
        """Write the definition of a type, if there is one."""
        if connection.msgdef.format is not MessageDefinitionFormat.NONE:
            super().add_msgtype(connection)

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview,
              publish_ns: int | None = None, sequence: int = 0) -> None:
        """Write a message."""
        # timestamp: its log time, ns.
        # publish_ns: not stored, like ``sequence``: the table has no columns for them.
        super().write(connection, timestamp, data)
        self._count(len(data))

    def write_frame(self, connections: Sequence[Connection], timestamp: int,
                    data: Sequence[bytes]) -> None:
        """Write messages of one log time; ``timestamp``: their log time, ns."""
        self.cursor.executemany(
            'INSERT INTO messages (topic_id, timestamp, data) VALUES(?, ?, ?)',
            zip([connection.id for connection in connections], repeat(timestamp), data,
                strict=False))
        self._count(sum(map(len, data)))

    def flush(self) -> None:
        """Commit the messages so far."""
        self._n_bytes = 0
        self.conn.commit()

    def _count(self, n_bytes: int) -> None:
        self._n_bytes += n_bytes
        if self._n_bytes > _COMMIT_BYTES:
            self.flush()

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The files of a bag that is written: a storage file with its topics and messages, and metadata.yaml.

This replaces the Writer of rosbags for bags of hundreds of topics: that one compares each topic
and each message with all topics, and formats the QoS of each topic as YAML three times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
    Qos,
)

from state_sensor_ros.files.bags.bag_metadata import (
    metadata_text,
    METADATA_VERSION,
    write_metadata,
)
from state_sensor_ros.files.bags.bag_qos import profiles_text
from state_sensor_ros.files.storage.mcap_writer import ENCODINGS, McapStorageWriter
from state_sensor_ros.files.storage.storage_file import StoredTopic

if TYPE_CHECKING:
    from state_sensor_ros.files.storage.sqlite_writer import SqliteStorageWriter

_FORMATS = {encoding: form for form, encoding in ENCODINGS.items()}
_MAX_TIME_NS = 2**63 - 1


def _new_storage(name: str, folder: Path,
                 compression: str) -> McapStorageWriter | SqliteStorageWriter:
    if name == 'mcap':
        return McapStorageWriter(folder, compression)
    # Imported here: it takes 20 ms.
    from state_sensor_ros.files.storage.sqlite_writer import SqliteStorageWriter
    return SqliteStorageWriter(folder)


class BagFiles:
    """
    A bag that is written, ended by :meth:`close` or :meth:`abort`.

    :param folder: path of the new bag folder; the storage file gets its name.
    :param storage: ``mcap`` or ``sqlite3``.
    :param compression: of the chunks of MCAP, one of :data:`COMPRESSIONS`.
    :param is_alone: whether the storage file is the whole bag, without metadata.yaml.
    :raises OSError: if a file cannot be written, here and by all methods.
    :raises sqlite3.Error: likewise.
    """

    def __init__(self, folder: Path, storage: str, *, compression: str = 'zstd',
                 is_alone: bool = False) -> None:
        self._folder, self._is_alone = folder, is_alone
        self._storage_name = storage
        # By the number of the topic, from 1 on.
        self._topics: dict[int, StoredTopic] = {}
        self._counts: Counter[int] = Counter()
        # Topics of the last frames, and the number of frames that are not in the counts yet.
        self._frame: Sequence[Connection] = ()
        self._n_frames = 0
        self._types: set[str] = set()
        self._first_ns, self._last_ns = _MAX_TIME_NS, 0
        folder.mkdir()
        self.storage = _new_storage(storage, folder, compression)
        self._is_open = True

    @property
    def n_topics(self) -> int:
        """Return the number of topics."""
        return len(self._topics)

    def add_topic(self, topic: StoredTopic, profiles: list[Qos]) -> Connection:
        """
        Add a topic.

        :param topic: topic whose name and type the bag does not have yet.
        :param profiles: offered profiles, in place of those of ``topic``.
        :returns: topic for :meth:`write` and :meth:`copy`.
        :raises OverflowError: if the storage has no number for it.
        """
        definition = MessageDefinition(
            _FORMATS.get(topic.encoding, MessageDefinitionFormat.NONE), topic.definition)
        connection = Connection(
            id=len(self._topics) + 1, topic=topic.name, msgtype=topic.type_name,
            msgdef=definition, digest=topic.type_hash, msgcount=0,
            ext=ConnectionExtRosbag2(topic.serialization, profiles), owner=self)
        if topic.type_name not in self._types:
            self.storage.add_msgtype(connection)
            self._types.add(topic.type_name)
        topic = replace(topic, qos=profiles_text(tuple(profiles)))
        self.storage.add_connection(connection, topic.qos)
        self._topics[connection.id] = topic
        return connection

    def write(self, connections: Sequence[Connection], data: Sequence[bytes],
              log_ns: int) -> None:
        """
        Write messages of one log time.

        :param connections: topic of each message, from :meth:`add_topic`; must not be changed
            afterwards. The same object as in the last call saves time.
        :param data: serialised messages.
        :param log_ns: their log time, which is also their time of publishing, ns.
        """
        if not connections:
            return
        self.storage.write_frame(connections, log_ns, data)
        if connections is not self._frame:
            self._count_frames()
            self._frame = connections
        self._n_frames += 1
        self._note_time(log_ns)

    def _count_frames(self) -> None:
        """Count the messages of the frames that have the same topics, all at once."""
        for connection in self._frame:
            self._counts[connection.id] += self._n_frames
        self._n_frames = 0

    def copy(self, connection: Connection, log_ns: int, data: bytes, *,
             publish_ns: int | None = None, sequence: int = 0) -> None:
        """
        Write a message of another bag with all of its stored values.

        :param connection: its topic, from :meth:`add_topic`.
        :param log_ns: its log time, ns.
        :param data: serialised message.
        :param publish_ns: its time of publishing, ns; None for the log time.
        :param sequence: its number at the publisher, 0 if unknown.
        """
        self.storage.write(connection, log_ns, data, publish_ns, sequence)
        self._counts[connection.id] += 1
        self._note_time(log_ns)

    def close(self) -> None:
        """Complete the files."""
        self._count_frames()
        text = metadata_text(
            self._storage_name, self.storage.path.name, self._first_ns, self._last_ns,
            [(topic, self._counts[number]) for number, topic in self._topics.items()])
        self.storage.close(METADATA_VERSION, text)
        self._is_open = False
        if not self._is_alone:
            write_metadata(self._folder, text)

    def abort(self) -> None:
        """Close the storage file without completing it; no effect after :meth:`close`."""
        if self._is_open:
            self._is_open = False
            self.storage.abort()

    def _note_time(self, log_ns: int) -> None:
        self._first_ns = min(log_ns, self._first_ns)
        self._last_ns = max(log_ns, self._last_ns)

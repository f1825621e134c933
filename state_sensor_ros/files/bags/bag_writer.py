# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The files of a bag that is written: a storage file and metadata.yaml.

This replaces the Writer of rosbags for bags of hundreds of topics: that one compares each topic
and each message with all topics, and formats the QoS of each topic as YAML three times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
import os
from pathlib import Path
import sqlite3

from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)
from rosbags.interfaces import Qos as Profile

from state_sensor_ros.errors import SinkError
from state_sensor_ros.files.bags.bag_metadata import (
    COMPRESSED_SUFFIXES,
    METADATA,
    metadata_text,
    METADATA_VERSION,
    read_metadata,
    STORAGE_SUFFIXES,
    write_metadata,
)
from state_sensor_ros.files.bags.bag_topics import (
    definition,
    full_name,
    parse_profiles,
    profile_of,
    profiles_text,
    type_hash,
)
from state_sensor_ros.files.storage.mcap_writer import ENCODINGS, McapStorageWriter
from state_sensor_ros.files.storage.sqlite_writer import SqliteStorageWriter
from state_sensor_ros.files.storage.storage_file import (
    BagError,
    BagLimits,
    Recovered,
    ROS2MSG,
    StoredTopic,
)
from state_sensor_ros.files.whole.output import sink_error
from state_sensor_ros.files.whole.whole_folder import Own, WholeFolder
from state_sensor_ros.topics.topic import EVERYTHING, Subscriptions, Topic

_FORMATS = {encoding: name for name, encoding in ENCODINGS.items()}
_MAX_TIME_NS = 2**63 - 1
# Step of the log times across a restart: the period of frames without their own times, 20 Hz.
_PERIOD_NS = 50_000_000
# An eighth of it limits metadata.yaml, which has 100 MB with the largest number of MCAP topics.
_OWN_LIMITS = BagLimits(8 * 268_435_456)


def _new_storage(name: str, folder: Path,
                 compression: str) -> McapStorageWriter | SqliteStorageWriter:
    if name == 'mcap':
        return McapStorageWriter(folder, compression)
    return SqliteStorageWriter(folder)


class BagSink(WholeFolder):
    """
    A new bag, ended by :meth:`finish`, :meth:`abort` or a ``with``.

    Log times are the stamps. If the stamps decrease, after a restart of the simulator, log times
    still increase, because players sort by them.

    :param path: path of the bag: a folder, or a single file with a suffix of ``storage``, which
        then has no metadata.yaml.
    :param storage: ``mcap`` or ``sqlite3``.
    :param node_name: fully qualified; ``~`` in a topic stands for it.
    """

    def __init__(self, path: str | Path, *, storage: str = 'mcap',
                 compression: str = 'zstd', node_name: str = '/state_sensor',
                 overwrite: bool = False) -> None:
        self._storage_name, self._node_name = storage, node_name
        # By the number of the topic, from 1 on.
        self._stored: dict[int, StoredTopic] = {}
        # By the name that this package has for a topic; those of another bag, by name and type.
        self._connections: dict[str, Connection] = {}
        self._copies: dict[tuple[str, str], Connection] = {}
        self._types: set[str] = set()
        # Of the last frame: the next one has the same topics in most cases.
        self._topics: list[Topic] = []
        self._frame_connections: list[Connection] = []
        # Numbers of messages by topic, and of frames that are not in them yet.
        self._counts: Counter[int] = Counter()
        self._n_frames = 0
        # Written before the first other message.
        self._latched: list[tuple[Topic, bytes]] = []
        self._offset_ns = 0
        self._log_ns: int | None = None
        self._first_ns, self._last_ns = _MAX_TIME_NS, 0
        super().__init__(path, noun='bag', own=_own_files, force=overwrite,
                         is_file=str(path).endswith(STORAGE_SUFFIXES))
        try:
            # The storage file has the name of the bag.
            self._bag = self.inside / _as_text(
                self.path.stem if self.is_file else self.path.name)
            with self._failing():
                self._bag.mkdir()
                self._storage = _new_storage(storage, self._bag, compression)
        except SinkError:
            super().abort()
            raise
        self._is_open = True
        self.whole = self._storage.path if self.is_file else self._bag

    def subscriptions(self) -> Subscriptions:
        return EVERYTHING

    def open(self, topics: Iterable[Topic]) -> None:  # noqa: A003
        """Add topics to the bag, except those that it has already."""
        # topics: topics, whose names may have ``~`` for the node's.
        with self._failing():
            for topic in topics:
                self._connection(topic)

    def shut(self, topics: Iterable[Topic]) -> None:
        """Ignore ``topics``: a bag keeps its topics."""

    def latch(self, topic: Topic, data: bytes) -> None:
        """Write a message before the first of the next :meth:`publish`, at its log time."""
        self._latched.append((topic, data))

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        """Write messages; ``stamp_ns``: stamp of their frame, ns."""
        log_ns = self._log_time(stamp_ns)
        if self._latched:
            messages = [*self._latched, *messages]
        topics = [topic for topic, _ in messages]
        with self._failing():
            if topics != self._topics:
                self._count_frames()
                known = self._connections
                # A new list: the storage recognizes the topics of a frame by the object.
                self._frame_connections = [known.get(topic.name) or self._connection(topic)
                                           for topic in topics]
                self._topics = topics
            if topics:
                self._storage.write_frame(self._frame_connections, log_ns,
                                          [data for _, data in messages])
                self._n_frames += 1
                self._note_time(log_ns)
        self._latched.clear()

    def _count_frames(self) -> None:
        """Count the messages of the frames that have the same topics, all at once."""
        for connection in self._frame_connections:
            self._counts[connection.id] += self._n_frames
        self._n_frames = 0

    def copy_topic(self, topic: StoredTopic) -> None:
        """Add a topic of another bag under its name there, unless it is there."""
        with self._failing():
            self._copy_of(topic)

    def _copy_of(self, topic: StoredTopic) -> Connection:
        key = topic.name, topic.type_name
        if key not in self._copies:
            self._copies[key] = self._add_topic(topic, parse_profiles(topic.qos) or [])
        return self._copies[key]

    def _add_topic(self, topic: StoredTopic, profiles: list[Profile]) -> Connection:
        connection = Connection(
            id=len(self._stored) + 1, topic=topic.name, msgtype=topic.type_name,
            msgdef=MessageDefinition(
                _FORMATS.get(topic.encoding, MessageDefinitionFormat.NONE), topic.definition),
            digest=topic.type_hash, msgcount=0,
            ext=ConnectionExtRosbag2(topic.serialization, profiles), owner=self)
        if topic.type_name not in self._types:
            self._storage.add_msgtype(connection)
            self._types.add(topic.type_name)
        topic = replace(topic, qos=profiles_text(tuple(profiles)))
        self._storage.add_connection(connection, topic.qos)
        self._stored[connection.id] = topic
        return connection

    def copy(self, message: Recovered) -> None:
        """Write a message of another bag with all of its stored values."""
        with self._failing():
            connection = self._copy_of(message.topic)
            self._storage.write(connection, message.log_ns, message.data, message.publish_ns,
                                message.sequence)
        self._counts[connection.id] += 1
        self._note_time(message.log_ns)

    def flush(self) -> None:
        """Write the messages so far."""
        with self._failing():
            self._storage.flush()

    def complete(self) -> None:
        """Complete the files and sync them to the disk."""
        if self._is_open:
            self._count_frames()
            text = metadata_text(
                self._storage_name, self._storage.path.name, self._first_ns, self._last_ns,
                [(topic, self._counts[number]) for number, topic in self._stored.items()])
            with self._failing():
                self._storage.close(METADATA_VERSION, text)
                self._is_open = False
                if not self.is_file:
                    write_metadata(self._bag, text)
        super().complete()

    def salvage(self) -> str:
        """Keep the messages."""
        self._close()
        self.keep()
        return f'{self.whole}; `state_sensor repair` makes a bag of it'

    def abort(self) -> None:
        """Close and remove the bag."""
        self._close()
        super().abort()

    def _close(self) -> None:
        """Close the storage file, which is not complete; on a full disk, that fails as well."""
        if self._is_open:
            self._is_open = False
            with suppress(OSError, sqlite3.Error):
                self._storage.abort()

    def _log_time(self, stamp_ns: int) -> int:
        if self._log_ns is not None and stamp_ns + self._offset_ns < self._log_ns:
            self._offset_ns = self._log_ns + _PERIOD_NS - stamp_ns
        self._log_ns = stamp_ns + self._offset_ns
        return self._log_ns

    def _note_time(self, log_ns: int) -> None:
        self._first_ns = min(log_ns, self._first_ns)
        self._last_ns = max(log_ns, self._last_ns)

    def _connection(self, topic: Topic) -> Connection:
        connection = self._connections.get(topic.name)
        if connection is None:
            stored = StoredTopic(full_name(topic.name, self._node_name), topic.type_name,
                                 definition(topic.type_name), ROS2MSG, type_hash(topic.type_name))
            connection = self._connections[topic.name] = self._add_topic(
                stored, [profile_of(topic.qos)])
        return connection

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn errors of the files into SinkError."""
        try:
            yield
        except OSError as error:
            raise sink_error(self.name, error) from error
        except sqlite3.Error as error:
            raise SinkError(self.name, str(error)) from error
        except OverflowError as error:
            # MCAP numbers topics with 16 bits.
            raise SinkError(self.name, f'{len(self._stored)} topics',
                            'at most 65535 in a bag') from error


def _own_files(folder: Path) -> Own:
    """Return a test for the files of a bag: metadata.yaml and the storage files that it names."""
    try:
        names = read_metadata(folder, _OWN_LIMITS).files
    except (OSError, BagError):
        # Not a bag: no file in it may be removed.
        return lambda entry: False
    suffixes = STORAGE_SUFFIXES + COMPRESSED_SUFFIXES
    own_names = {METADATA, *(name for name in names if name.endswith(suffixes))}
    return own_names.__contains__


def _as_text(name: str) -> str:
    """Return a name of a file as ``metadata.yaml`` can have it, which is UTF-8."""
    return os.fsencode(name).decode('utf-8', 'replace')

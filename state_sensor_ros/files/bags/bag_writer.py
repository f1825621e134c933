# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
Output to a rosbag2 bag, MCAP or SQLite, with the topic names and messages of a node.

The bag is written in a folder beside its name and renamed once it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
import sqlite3

from rosbags.interfaces import Connection
from rosbags.interfaces import Qos as Profile

from state_sensor_ros.errors import SinkError
from state_sensor_ros.files.bags.bag_files import BagFiles
from state_sensor_ros.files.bags.bag_form import (
    COMPRESSED_SUFFIXES,
    METADATA,
    STORAGE_SUFFIXES,
)
from state_sensor_ros.files.bags.bag_metadata import read_metadata
from state_sensor_ros.files.bags.bag_qos import profile_of
from state_sensor_ros.files.bags.bag_types import definition, type_hash
from state_sensor_ros.files.storage.bag_limits import BagError, BagLimits
from state_sensor_ros.files.storage.storage_file import ROS2MSG, StoredTopic
from state_sensor_ros.files.whole.output import Output, sink_error
from state_sensor_ros.files.whole.whole_folder import FileFromFolder, Own, WholeFolder
from state_sensor_ros.topics.topic import Demand, EVERYTHING, Topic

# Step of the log times across a restart: the period of frames without their own times, 20 Hz.
_PERIOD_NS = 50_000_000
# An eighth of it limits metadata.yaml, which has 100 MB with the largest number of MCAP topics.
_OWN_LIMITS = BagLimits(8 * 268_435_456)


class BagSink(Output):
    """
    A new bag, ended by :meth:`finish`, :meth:`abort` or a ``with``.

    Log times are the stamps. If the stamps decrease, after a restart of the simulator, log times
    still increase, because players sort by them.

    :param path: path of the bag: a folder, or a single file with a suffix of ``storage``.
    :param storage: ``mcap`` or ``sqlite3``.
    :param compression: of the chunks of MCAP, one of :data:`COMPRESSIONS`.
    :param node_name: fully qualified; ``~`` in a topic stands for it.
    :param overwrite: whether a bag of that name may be replaced.
    :raises SinkError: if the name is taken, or the bag cannot be written.
    """

    def __init__(self, path: str | Path, *, storage: str = 'mcap',
                 compression: str = 'zstd', node_name: str = '/state_sensor',
                 overwrite: bool = False) -> None:
        self.name = str(path)
        self._node_name = node_name
        self._connections: dict[str, Connection] = {}
        # Of the last frame: the next one has the same topics in most cases.
        self._topics: list[Topic] = []
        self._frame_connections: list[Connection] = []
        # Written before the first other message.
        self._latched: list[tuple[Topic, bytes]] = []
        self._offset_ns = 0
        self._last_ns: int | None = None
        self._is_complete = False
        is_file = self.name.endswith(STORAGE_SUFFIXES)
        self._folder: WholeFolder = (FileFromFolder if is_file else WholeFolder)(
            path, noun='bag', own=_own_files, force=overwrite)
        try:
            self._check_name()
            # The storage file has the name of the bag.
            inside = self._folder.inside / (self._folder.path.stem if is_file
                                            else self._folder.path.name)
            with self._failing():
                self._files = BagFiles(inside, storage, compression=compression,
                                       is_alone=is_file)
            self._whole = self._files.storage.path if is_file else inside
        except SinkError:
            self._folder.abort()
            raise

    @property
    def remains(self) -> str:
        """Return a description of what is left of a replaced bag, ``''`` for nothing."""
        return self._folder.remains

    def demand(self) -> Demand:
        """Return the demand for all topics."""
        return EVERYTHING

    def open(self, topics: Iterable[Topic]) -> None:
        """
        Add topics to the bag, except those that it has already.

        :param topics: topics, whose names may have ``~`` for the node's.
        :raises SinkError: if they cannot be written.
        """
        with self._failing():
            for topic in topics:
                self._connection(topic)

    def shut(self, topics: Iterable[Topic]) -> None:
        """Ignore ``topics``: a bag keeps its topics."""

    def latch(self, topic: Topic, data: bytes) -> None:
        """
        Write a message before the first of the next :meth:`publish`, at its log time.

        :param topic: topic, which is added to the bag if it is new.
        :param data: serialised message.
        """
        self._latched.append((topic, data))

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        """
        Write messages.

        :param messages: topics, each with a serialised message.
        :param stamp_ns: stamp of their frame, ns.
        :raises SinkError: if they cannot be written.
        """
        log_ns = self._log_time(stamp_ns)
        if self._latched:
            messages = [*self._latched, *messages]
        topics = [topic for topic, _ in messages]
        with self._failing():
            if topics != self._topics:
                known = self._connections
                self._frame_connections = [known.get(topic.name) or self._connection(topic)
                                           for topic in topics]
                self._topics = topics
            self._files.write(self._frame_connections, [data for _, data in messages], log_ns)
        self._latched.clear()

    def copy_topic(self, topic: StoredTopic, profiles: list[Profile]) -> Connection:
        """
        Add a topic of another bag under its name there.

        :param topic: topic whose name and type this bag does not have yet.
        :param profiles: its offered QoS.
        :returns: topic for :meth:`copy`.
        :raises SinkError: if it cannot be written.
        """
        with self._failing():
            return self._files.add_topic(topic, profiles)

    def copy(self, connection: Connection, log_ns: int, data: bytes, *,
             publish_ns: int | None = None, sequence: int = 0) -> None:
        """
        Write a message of another bag with all of its stored values.

        :param connection: its topic, from :meth:`copy_topic`.
        :param log_ns: its log time, ns.
        :param data: serialised message.
        :param publish_ns: its time of publishing, ns; None for the log time.
        :param sequence: its number at the publisher, 0 if unknown.
        :raises SinkError: if it cannot be written.
        """
        with self._failing():
            self._files.copy(connection, log_ns, data, publish_ns=publish_ns, sequence=sequence)

    def complete(self) -> None:
        """Complete the files and sync them to the disk."""
        if self._is_complete:
            return
        with self._failing():
            self._files.close()
        self._folder.complete()
        self._is_complete = True

    def commit(self) -> None:
        """Give the bag its name; if that fails, the complete bag is kept beside the name."""
        self.complete()
        self._folder.commit(self._whole)

    def discard(self) -> str:
        """Remove the written data; return a line about the result."""
        return self._folder.discard()

    def salvage(self) -> str:
        """Keep the messages."""
        with suppress(OSError, sqlite3.Error):
            self._files.abort()
        self._folder.keep()
        return f'{self._whole}; `state_sensor repair` makes a bag of it'

    def abort(self) -> None:
        """Close and remove the bag."""
        # On a full disk, close fails as well.
        with suppress(OSError, sqlite3.Error):
            self._files.abort()
        self._folder.abort()

    def _check_name(self) -> None:
        try:
            self._folder.path.name.encode()
        except UnicodeEncodeError as error:
            raise SinkError(self.name, 'a name that is not UTF-8',
                            'one that can be written to metadata.yaml') from error

    def _log_time(self, stamp_ns: int) -> int:
        if self._last_ns is not None and stamp_ns + self._offset_ns < self._last_ns:
            self._offset_ns = self._last_ns + _PERIOD_NS - stamp_ns
        self._last_ns = stamp_ns + self._offset_ns
        return self._last_ns

    def _connection(self, topic: Topic) -> Connection:
        connection = self._connections.get(topic.name)
        if connection is None:
            stored = StoredTopic(full_name(topic.name, self._node_name), topic.type_name,
                                 definition(topic.type_name), ROS2MSG, type_hash(topic.type_name))
            connection = self._connections[topic.name] = self._files.add_topic(
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
            raise SinkError(self.name, f'{self._files.n_topics} topics',
                            'at most 65535 in a bag') from error


def full_name(topic_name: str, node_name: str) -> str:
    """
    Resolve the name of a topic as a node does.

    :param topic_name: absolute, or with ``~`` for that of the node.
    :param node_name: fully qualified.

    >>> full_name('~/frame', '/front/state_sensor'), full_name('/tf', '/front/state_sensor')
    ('/front/state_sensor/frame', '/tf')
    """
    return node_name + topic_name[1:] if topic_name.startswith('~') else topic_name


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

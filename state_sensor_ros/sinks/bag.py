# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A rosbag2 bag, MCAP or SQLite, with the messages that the node would publish.

May know: the rosbags library, topic names of a node, QoS profiles. Must not know: what the bytes
mean. A bag appears whole under its name or not at all: it is written beside it and renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
import os
from pathlib import Path
import shutil
import sqlite3
import tempfile

from rosbags import interfaces
from rosbags.interfaces import Connection

from state_sensor_ros.bag_metadata import METADATA
from state_sensor_ros.bag_storage import StoredTopic
from state_sensor_ros.bag_types import definition, type_hash
from state_sensor_ros.encode import Demand, EVERYTHING, Qos, Topic
from state_sensor_ros.errors import SinkError, told
from state_sensor_ros.sinks.bag_files import BagFiles

# What rmw reports for a profile without deadline, lifespan or lease.
_FOREVER = interfaces.QosTime(9223372036, 854775807)
# Frames come this far apart unless they say otherwise (PROTOCOL 6).
_PERIOD_NS = 50_000_000


class BagSink:
    """
    Write messages into a new bag; :meth:`finish` or :meth:`abort` ends it.

    Log times are the stamps. Where the stamps of a stream go back, because its simulator was
    restarted, log times go on: who plays a bag sorts by them.

    :param path: of the bag, a folder.
    :param storage: ``mcap`` or ``sqlite3``.
    :param node_name: fully qualified; ``~`` in a topic stands for it.
    :param overwrite: whether a bag of that name may be replaced.
    :raises SinkError: when there is something of that name, or no place to write to.
    """

    def __init__(self, path: str | Path, *, storage: str = 'mcap',
                 node_name: str = '/state_sensor', overwrite: bool = False) -> None:
        self.path = Path(os.path.abspath(path))
        self._where = str(path)
        self._node_name = node_name
        self._connections: dict[str, Connection] = {}
        # Written before anything else: what is latched whoever is there.
        self._latched: list[tuple[Topic, bytes]] = []
        self._offset_ns = 0
        self._last_ns: int | None = None
        self._check_free(overwrite)
        with self._failing():
            # Beside the bag, so that renaming does not copy; its files carry the bag's name.
            self._folder = Path(tempfile.mkdtemp(prefix=f'.{self.path.name}.',
                                                 dir=self.path.parent))
            self._files = BagFiles(self._folder / self.path.name, storage)

    def demand(self) -> Demand:
        """Ask for all there is."""
        return EVERYTHING

    def open(self, topics: Iterable[Topic]) -> None:
        """Enter topics into the bag; those that are in it are left alone."""
        with self._failing():
            for topic in topics:
                self._connection(topic)

    def shut(self, topics: Iterable[Topic]) -> None:
        """Do nothing: what was in a bag once stays."""

    def latch(self, topic: Topic, data: bytes) -> None:
        """Put a message at the very beginning of the bag."""
        self._latched.append((topic, data))

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        """
        Write messages.

        :param stamp_ns: of their frame.
        :raises SinkError: when that fails.
        """
        log_ns = self._log_time(stamp_ns)
        with self._failing():
            self._files.write([(self._connection(topic), data)
                               for topic, data in (*self._latched, *messages)], log_ns)
        self._latched.clear()

    def copy_topic(self, topic: StoredTopic, profiles: list[interfaces.Qos]) -> Connection:
        """Enter a topic of another bag under the name that it has there."""
        with self._failing():
            return self._files.copy_topic(topic, profiles)

    def copy(self, connection: Connection, log_ns: int, data: bytes, *,
             publish_ns: int | None = None, sequence: int = 0) -> None:
        """
        Write a message of another bag as it was there.

        :raises SinkError: when that fails.
        """
        with self._failing():
            self._files.copy(connection, log_ns, data, publish_ns=publish_ns, sequence=sequence)

    def finish(self) -> None:
        """
        Complete the bag and give it its name.

        :raises SinkError: when that fails; nothing is left then.
        """
        try:
            with self._failing():
                self._files.close()
                _replace(self._folder / self.path.name, self.path)
                self._folder.rmdir()
        except SinkError:
            self.abort()
            raise

    def abort(self) -> None:
        """Leave nothing; doing so twice, or after :meth:`finish`, is harmless."""
        self._files.abort()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _check_free(self, overwrite: bool) -> None:
        try:
            self.path.name.encode()
        except UnicodeEncodeError as error:
            raise SinkError(self._where, 'a name that is not UTF-8',
                            'one that can be written to metadata.yaml') from error
        if not self.path.exists():
            return
        if not overwrite:
            raise SinkError(self._where, 'something that exists', 'another name, or --force')
        if not (self.path / METADATA).is_file():
            raise SinkError(self._where, 'something that is no bag', 'a bag to overwrite')

    def _log_time(self, stamp_ns: int) -> int:
        if self._last_ns is not None and stamp_ns + self._offset_ns < self._last_ns:
            self._offset_ns = self._last_ns + _PERIOD_NS - stamp_ns
        self._last_ns = stamp_ns + self._offset_ns
        return self._last_ns

    def _connection(self, topic: Topic) -> Connection:
        connection = self._connections.get(topic.name)
        if connection is None:
            connection = self._connections[topic.name] = self._files.add_topic(
                full_name(topic.name, self._node_name), topic.type_name,
                definition=definition(topic.type_name), type_hash=type_hash(topic.type_name),
                qos=_profile(topic.qos))
        return connection

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn what goes wrong into one line."""
        try:
            yield
        except OSError as error:
            raise SinkError(self._where, told(error), 'room to write a bag') from error
        except sqlite3.Error as error:
            raise SinkError(self._where, str(error), 'room to write a bag') from error
        except OverflowError as error:
            # MCAP numbers topics with 16 bits.
            raise SinkError(self._where, f'{len(self._connections)} topics',
                            'at most 65535 in a bag') from error


def full_name(topic_name: str, node_name: str) -> str:
    """
    Resolve the name of a topic as a node would.

    >>> full_name('~/frame', '/front/state_sensor'), full_name('/tf', '/front/state_sensor')
    ('/front/state_sensor/frame', '/tf')
    """
    return node_name + topic_name[1:] if topic_name.startswith('~') else topic_name


def _profile(qos: Qos) -> interfaces.Qos:
    reliability, durability = interfaces.QosReliability, interfaces.QosDurability
    return interfaces.Qos(
        interfaces.QosHistory.KEEP_LAST, qos.depth,
        reliability.RELIABLE if qos.reliable else reliability.BEST_EFFORT,
        durability.TRANSIENT_LOCAL if qos.latched else durability.VOLATILE,
        _FOREVER, _FOREVER, interfaces.QosLiveliness.AUTOMATIC, _FOREVER,
        avoid_ros_namespace_conventions=False)


def _replace(new: Path, path: Path) -> None:
    """Give a folder its name; one that has it goes when the new one is in its place."""
    if not path.exists():
        new.rename(path)
        return
    old = new.with_name(f'{new.name}.old')
    path.rename(old)
    try:
        new.rename(path)
    except OSError:
        old.rename(path)
        raise
    shutil.rmtree(old)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The ~/frame messages of a rosbag2 bag, whoever recorded it under whatever node name.

May know: the rosbags library, which topic to look for. Must not know: what is in a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
import struct

import apsw
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2 import Reader, ReaderError
from rosbags.rosbag2.reader import DirectoryReader
from rosbags.typesys import get_types_from_msg, TypesysError

from state_sensor_ros.bag_types import type_hash, typestore
from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.regular_files import check_regular
from state_sensor_ros.state_frames import STATE_FRAME

# What rosbags lets through of a damaged bag, besides its own; RuntimeError comes from lz4.
_DAMAGED = (ReaderError, TypesysError, OSError, apsw.Error, struct.error, EOFError, KeyError,
            TypeError, ValueError, IndexError, AssertionError, OverflowError, MemoryError,
            RuntimeError)


class Bag:
    """
    A bag whose StateFrames are wanted; open until :meth:`close`.

    :param path: folder with metadata.yaml, or a .mcap or .db3 file.
    :param topic: to read; ``''`` for the only one of the type StateFrame.
    :raises TrajectoryFormatError: when it cannot be read or has no such topic.
    """

    def __init__(self, path: Path, topic: str = '') -> None:
        self._name = str(path)
        with self._reading():
            for file in path.iterdir() if path.is_dir() else [path]:
                check_regular(file)
            _check_finished(path)
            self._reader = Reader(path)
            self._reader.open()
        try:
            with self._reading():
                self._connections = self._chosen(topic)
                self.topic = self._connections[0].topic
                self._node = self.topic.rpartition('/')[0]
                self.n_messages = sum(one.msgcount for one in self._connections)
        except TrajectoryFormatError:
            self.close()
            raise

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """
        Yield log time, ns, and serialised StateFrame of each message, in the order of log times.

        :raises TrajectoryFormatError: where the bag is damaged.
        """
        with self._reading():
            for _, log_ns, data in self._messages(self._connections):
                yield log_ns, bytes(data)

    def has(self, name: str, type_name: str) -> bool:
        """Tell whether the node that published the StateFrames has such a topic in the bag."""
        topic = f'{self._node}/{name}'
        return any((one.topic, one.msgtype) == (topic, type_name)
                   for one in self._reader.connections)

    def messages_of_node(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """
        Yield messages of the node that published the StateFrames, in the order of log times.

        :param names: of topics, without the node's, such as ``frame``.
        :returns: the name and the serialised message of each.
        :raises TrajectoryFormatError: where the bag is damaged.
        """
        wanted = {f'{self._node}/{name}': name for name in names}
        connections = [one for one in self._reader.connections if one.topic in wanted]
        with self._reading():
            for one, _, data in self._messages(connections):
                yield wanted[one.topic], bytes(data)

    def close(self) -> None:
        """Close the bag; closing twice is quiet."""
        if self._reader.is_open:
            self._reader.close()

    def _messages(self, connections: Iterable[Connection],
                  ) -> Iterator[tuple[Connection, int, bytes]]:
        """
        Yield the messages of topics.

        rosbags compares the QoS in metadata.yaml with that in the files, and yields nothing where
        they differ, as they do after `ros2 bag reindex`: hence the files' own connections.
        """
        storage = self._reader.storage
        files = storage.storages if isinstance(storage, DirectoryReader) else [storage]
        wanted = {(one.topic, one.msgtype) for one in connections}
        stored = [one for file in files for one in file.connections
                  if (one.topic, one.msgtype) in wanted]
        # To rosbags, no connections are all of them.
        return self._reader.messages(stored) if stored else iter(())

    def _chosen(self, topic: str) -> list[Connection]:
        frames = [one for one in self._reader.connections if one.msgtype == STATE_FRAME]
        topics = sorted({one.topic for one in frames})
        if not frames:
            raise TrajectoryFormatError(self._name, 'no topic of the type StateFrame',
                                        f'a bag with {STATE_FRAME}, such as ~/frame')
        if not topic and len(topics) > 1:
            raise TrajectoryFormatError(self._name, f'the topics {", ".join(topics)}',
                                        'one of them to be named by --topic')
        if topic and topic not in topics:
            raise TrajectoryFormatError(self._name, f'no topic {topic} of the type StateFrame',
                                        f'one of {", ".join(topics)}')
        chosen = [one for one in frames if one.topic == (topic or topics[0])]
        for one in chosen:
            self._check_definition(one)
        return chosen

    def _check_definition(self, connection: Connection) -> None:
        """Make sure that this StateFrame is the one that we know."""
        if connection.digest and connection.digest != type_hash(STATE_FRAME):
            self._refuse_definition(connection.digest)
        if connection.msgdef.format is MessageDefinitionFormat.MSG:
            ours = typestore().fielddefs
            for name, found in get_types_from_msg(connection.msgdef.data, STATE_FRAME).items():
                if ours.get(name) != found:
                    self._refuse_definition(f'another {name}')

    def _refuse_definition(self, found: str) -> None:
        raise TrajectoryFormatError(f'{self._name}: {STATE_FRAME}', found,
                                    f'{type_hash(STATE_FRAME)}, the definition of this version')

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what goes wrong into one line."""
        try:
            yield
        except TrajectoryFormatError:
            raise
        except _DAMAGED as error:
            text = ' '.join(str(error).split()).rstrip('.') or type(error).__name__
            raise TrajectoryFormatError(self._name, f'a damaged bag ({text})',
                                        'a whole rosbag2 bag; `ros2 bag convert` completes one '
                                        'whose recorder was killed') from error


def _check_finished(path: Path) -> None:
    """Make sure that SQLite has all in its files: rosbags does not look into its logs."""
    for log in path.glob('*.db3-wal') if path.is_dir() else [Path(f'{path}-wal')]:
        if log.is_file() and log.stat().st_size:
            raise ReaderError(f'messages are still in {log.name}')

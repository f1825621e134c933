# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The files of a rosbag2 bag: messages in a storage of rosbags, and metadata.yaml beside it.

May know: rosbags' storages, what stands in metadata.yaml. Must not know: topics of a node, stamps.
This is rosbags' Writer for bags of hundreds of topics: that one compares each topic and each
message with all topics, and has YAML represent the QoS of each topic three times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
import io
from pathlib import Path
import struct

from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
    Qos,
)
from rosbags.rosbag2.enums import CompressionMode
from rosbags.rosbag2.metadata import dump_qos_v9
from rosbags.rosbag2.storage_mcap import McapWriter
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer
from ruamel.yaml import YAML

METADATA = 'metadata.yaml'
_VERSION = 9
_SERIALIZATION = 'cdr'
_MAX_TIME_NS = 2**63 - 1
# Opcode and length of an MCAP message record, then channel, sequence, log and publish time.
_MESSAGE = struct.Struct('<BQHIQQ')
_MESSAGE_OPCODE = 5
_MESSAGE_FIELDS_BYTES = 22
# A chunk has an index for each topic in it: with hundreds of topics, few chunks are less work.
_CHUNK_BYTES = 4 * 1024 * 1024
# More than a chunk and its copies take.
_KEPT_BYTES = 20 * 1024 * 1024


class _McapStorage(McapWriter):
    """MCAP; the numbers of a message are packed at once, in a third of the time."""

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview) -> None:
        """Write a message."""
        chunk = self.chunk
        if timestamp < chunk.message_start_time:
            chunk.message_start_time = timestamp
            self.message_start_time = min(timestamp, self.message_start_time)
        if timestamp > chunk.message_end_time:
            chunk.message_end_time = timestamp
            self.message_end_time = max(timestamp, self.message_end_time)
        number, file = connection.id, chunk.bio
        offset = file.tell()
        self.channel_stats[number] += 1
        chunk.msgs[number].append((timestamp, offset))
        offset += file.write(_MESSAGE.pack(_MESSAGE_OPCODE, _MESSAGE_FIELDS_BYTES + len(data),
                                           number, 0, timestamp, timestamp))
        offset += file.write(data)
        if offset > _CHUNK_BYTES:
            self.close_chunk()


STORAGES: dict[str, type[McapWriter | Sqlite3Writer]] = {
    'mcap': _McapStorage, 'sqlite3': Sqlite3Writer}


class BagFiles:
    """
    Write a bag; :meth:`close` or :meth:`abort` ends it.

    :param folder: to be made, of the bag's name.
    :param storage: one of ``STORAGES``.
    :raises OSError: where there is no place to write to, here and later.
    :raises sqlite3.Error: likewise.
    """

    def __init__(self, folder: Path, storage: str) -> None:
        self.connections: list[Connection] = []
        self._folder = folder
        self._storage_name = storage
        self._counts: dict[int, int] = {}
        self._types: set[str] = set()
        self._first_ns, self._last_ns = _MAX_TIME_NS, 0
        # Once so much was freed, glibc keeps as much: otherwise it gives back the memory of each
        # chunk, and page faults take a tenth of the time. Nothing is written to it here.
        bytes(_KEPT_BYTES)
        folder.mkdir()
        self.storage = STORAGES[storage](folder, CompressionMode.NONE)
        self._is_open = True

    def add_topic(self, name: str, type_name: str, *, definition: str, type_hash: str,
                  qos: Qos) -> Connection:
        """
        Enter a topic, which must be new.

        :raises OverflowError: where the storage cannot number it.
        """
        connection = Connection(
            id=len(self.connections) + 1, topic=name, msgtype=type_name,
            msgdef=MessageDefinition(MessageDefinitionFormat.MSG, definition), digest=type_hash,
            msgcount=0, ext=ConnectionExtRosbag2(_SERIALIZATION, [qos]), owner=self)
        if type_name not in self._types:
            self.storage.add_msgtype(connection)
            self._types.add(type_name)
        self.storage.add_connection(connection, _profiles(qos))
        self.connections.append(connection)
        self._counts[connection.id] = 0
        return connection

    def write(self, messages: Sequence[tuple[Connection, bytes]], log_ns: int) -> None:
        """Write messages of one time."""
        write, counts = self.storage.write, self._counts
        for connection, data in messages:
            write(connection, log_ns, data)
            counts[connection.id] += 1
        if messages:
            self._first_ns = min(log_ns, self._first_ns)
            self._last_ns = max(log_ns, self._last_ns)

    def close(self) -> None:
        """Complete the files."""
        information = self._information()
        self.storage.close(_VERSION, information)
        self._is_open = False
        (self._folder / METADATA).write_text(
            f'rosbag2_bagfile_information:\n{_indented(information, 2)}\n', 'utf-8')

    def abort(self) -> None:
        """Close what is open, which is of no use then; harmless after :meth:`close`."""
        if self._is_open:
            self._is_open = False
            self.storage.abort()

    def _information(self) -> str:
        """Return what metadata.yaml says, which stands in the storage as well."""
        name, count = self.storage.path.name, sum(self._counts.values())

        def times() -> dict[str, object]:
            return {'starting_time': {'nanoseconds_since_epoch': self._first_ns},
                    'duration': {'nanoseconds': max(0, self._last_ns - self._first_ns)}}

        head = _yaml({
            'version': _VERSION, 'storage_identifier': self._storage_name,
            'relative_file_paths': [name], **times(), 'message_count': count,
            'compression_format': '', 'compression_mode': '',
            'files': [{'path': name, **times(), 'message_count': count}],
            'custom_data': None, 'ros_distro': 'rosbags'})
        topics = [self._topic(one) for one in self.connections]
        return '\n'.join((head, 'topics_with_message_count:', *(topics or ['  []'])))

    def _topic(self, connection: Connection) -> str:
        # Names and types of topics, and hashes, are what YAML takes as they are.
        assert isinstance(connection.ext, ConnectionExtRosbag2)
        [qos] = connection.ext.offered_qos_profiles
        return (f'- message_count: {self._counts[connection.id]}\n'
                '  topic_metadata:\n'
                f'    name: {connection.topic}\n'
                f'    type: {connection.msgtype}\n'
                f'    serialization_format: {_SERIALIZATION}\n'
                f'    type_description_hash: {connection.digest}\n'
                '    offered_qos_profiles:\n'
                f'{_indented(_profiles(qos), 4)}')


@lru_cache(maxsize=16)
def _profiles(qos: Qos) -> str:
    """Return a list of one profile as YAML."""
    return _yaml(dump_qos_v9([qos]))


def _indented(text: str, n_blanks: int) -> str:
    blanks = ' ' * n_blanks
    return blanks + text.replace('\n', f'\n{blanks}')


def _yaml(value: object) -> str:
    yaml = YAML(typ='safe')
    yaml.default_flow_style = False
    text = io.StringIO()
    yaml.dump(value, text)
    return text.getvalue().strip()

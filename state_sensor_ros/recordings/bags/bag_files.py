# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The files of a rosbag2 bag: messages in a storage of rosbags, and metadata.yaml beside it.

May know: rosbags' storages, what stands in metadata.yaml. Must not know: topics of a node, stamps.
This is rosbags' Writer for bags of hundreds of topics: that one compares each topic and each
message with all topics, and has YAML represent the QoS of each topic three times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
import io
from itertools import chain
import json
from pathlib import Path
import re
import struct
from zlib import crc32

from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
    Qos,
)
from rosbags.rosbag2.enums import CompressionMode
from rosbags.rosbag2.metadata import dump_qos_v9
from rosbags.rosbag2.storage_mcap import McapWriter, PendingChunk, Schema, write_schema
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer
from ruamel.yaml import YAML

from state_sensor_ros.recordings.bags.bag_metadata import METADATA
from state_sensor_ros.recordings.storage.storage_file import StoredTopic

_VERSION = 9
_SERIALIZATION = 'cdr'
# The languages of definitions.
_ENCODINGS = {MessageDefinitionFormat.MSG: 'ros2msg', MessageDefinitionFormat.IDL: 'ros2idl',
              MessageDefinitionFormat.NONE: ''}
# Text that YAML reads as the same text.
_PLAIN = re.compile(r'cdr|/[A-Za-z0-9_/]*|[A-Za-z][A-Za-z0-9]*[_/][A-Za-z0-9_/]*')
_MAX_TIME_NS = 2**63 - 1
# What the records of MCAP begin with: opcode and length of what follows, and for
# a message: channel, sequence, log and publish time;
_MESSAGE_OPCODE, _MESSAGE = 5, struct.Struct('<BQHIQQ')
# a chunk: first and last time, size, CRC, no name of a compression, size;
_CHUNK_OPCODE, _CHUNK = 6, struct.Struct('<BQQQQIIQ')
# an index of the messages of a channel: channel, size of the times and offsets.
_INDEX_OPCODE, _INDEX = 7, struct.Struct('<BQHI')
_OPCODE_AND_LENGTH_BYTES = 9
# The last record of the data section is its CRC. The file ends with a footer: where the summary
# begins, where its offsets begin, the CRC of all this; and eight bytes of magic.
_DATA_END_BYTES = 13
_FOOTER, _MAGIC_BYTES = struct.Struct('<BQQQI'), 8
_CRC = struct.Struct('<I')
# A chunk has an index for each topic in it: with hundreds of topics, few chunks are less work.
_CHUNK_BYTES = 4 * 1024 * 1024


class _McapStorage(McapWriter):
    """
    MCAP as rosbags writes it, in a third of the time, and with the CRCs that rosbags leaves zero.

    Numbers are packed at once, a chunk is not copied, and its memory serves the next one.
    """

    def __init__(self, path: Path, compression: CompressionMode) -> None:
        super().__init__(path, compression)
        self.bio.flush()
        # CRC-32 of what has been written to the file.
        self._crc = crc32(self.path.read_bytes())

    def add_msgtype(self, connection: Connection) -> None:
        """Write the definition of a type, also where there is none."""
        self.schemas.append(Schema(len(self.schemas) + 1, connection.msgtype,
                                   _ENCODINGS[connection.msgdef.format], connection.msgdef.data))
        write_schema(self.chunk.bio, self.schemas[-1])

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview,
              publish_ns: int | None = None, sequence: int = 0) -> None:
        """Write a message; without a time of publishing, that of the log is taken."""
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
        offset += file.write(_MESSAGE.pack(
            _MESSAGE_OPCODE, _MESSAGE.size - _OPCODE_AND_LENGTH_BYTES + len(data), number,
            sequence, timestamp, timestamp if publish_ns is None else publish_ns))
        offset += file.write(data)
        if offset > _CHUNK_BYTES:
            self.close_chunk()

    def close_chunk(self) -> None:
        """Write the chunk and an index for each of its channels; begin a new one."""
        chunk, file = self.chunk, self.bio
        times = chunk.message_start_time, chunk.message_end_time
        size, begin = chunk.bio.tell(), file.tell()
        records = chunk.bio.getbuffer()[:size]
        self._append(_CHUNK.pack(_CHUNK_OPCODE, _CHUNK.size - _OPCODE_AND_LENGTH_BYTES + size,
                                 *times, size, crc32(records), 0, size))
        self._append(records)
        # A buffer that is in use cannot grow.
        records.release()
        end = at = begin + _CHUNK.size + size
        offsets: list[int] = []
        for number, messages in chunk.msgs.items():
            offsets += number, at
            entries = struct.pack(f'<{2 * len(messages)}Q', *chain.from_iterable(messages))
            at += self._append(_INDEX.pack(
                _INDEX_OPCODE, _INDEX.size - _OPCODE_AND_LENGTH_BYTES + len(entries), number,
                len(entries)) + entries)
        # For the index of chunks at the end of the file.
        self.chunks.append(io.BytesIO())
        self.chunks[-1].write(struct.pack(
            f'<4QI{"HQ" * len(chunk.msgs)}QI2Q', *times, begin, end - begin,
            10 * len(chunk.msgs), *offsets, at - end, 0, size, size))
        chunk.bio.seek(0)
        self.chunk = PendingChunk(_MAX_TIME_NS, 0, chunk.bio, defaultdict(list))

    def _append(self, data: bytes | memoryview) -> int:
        """Write to the file; return how many bytes that were."""
        self._crc = crc32(data, self._crc)
        return self.bio.write(data)

    def close(self, version: int, metadata: str) -> None:
        """Write what is left, the summary and the CRCs of data section and summary."""
        if self.chunk.bio.tell():
            self.close_chunk()
        begin = self.bio.tell()
        super().close(version, metadata)
        with self.path.open('r+b') as file:
            file.seek(begin)
            tail = file.read()
            end = len(tail) - _MAGIC_BYTES
            _, _, summary, _, _ = _FOOTER.unpack_from(tail, end - _FOOTER.size)
            data_crc = crc32(tail[:summary - _DATA_END_BYTES - begin], self._crc)
            file.seek(summary - _CRC.size)
            file.write(_CRC.pack(data_crc))
            file.seek(begin + end - _CRC.size)
            file.write(_CRC.pack(crc32(tail[summary - begin:end - _CRC.size])))


class _SqliteStorage(Sqlite3Writer):
    """
    SQLite that waits for the disk no more than MCAP does.

    Messages are committed now and then: those are there after the program was killed.
    """

    def __init__(self, path: Path, compression: CompressionMode) -> None:
        super().__init__(path, compression)
        self.conn.execute('PRAGMA synchronous = OFF')
        self._n_bytes = 0

    def add_msgtype(self, connection: Connection) -> None:
        """Write the definition of a type, if there is one."""
        if connection.msgdef.format is not MessageDefinitionFormat.NONE:
            super().add_msgtype(connection)

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview,
              publish_ns: int | None = None, sequence: int = 0) -> None:
        """Write a message; there is no place for the time of publishing and a number."""
        super().write(connection, timestamp, data)
        self._n_bytes += len(data)
        if self._n_bytes > _CHUNK_BYTES:
            self._n_bytes = 0
            self.conn.commit()


STORAGES: dict[str, type[_McapStorage | _SqliteStorage]] = {
    'mcap': _McapStorage, 'sqlite3': _SqliteStorage}


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
        folder.mkdir()
        self.storage = STORAGES[storage](folder, CompressionMode.NONE)
        self._is_open = True

    def add_topic(self, name: str, type_name: str, *, definition: str, type_hash: str,
                  qos: Qos) -> Connection:
        """
        Enter a topic, which must be new.

        :raises OverflowError: where the storage cannot number it.
        """
        return self.copy_topic(StoredTopic(
            name, type_name, definition, _ENCODINGS[MessageDefinitionFormat.MSG], type_hash,
            _SERIALIZATION), [qos])

    def copy_topic(self, topic: StoredTopic, profiles: list[Qos]) -> Connection:
        """
        Enter a topic of another bag, which must be new in this one.

        :param profiles: of its quality of service.
        :raises OverflowError: where the storage cannot number it.
        """
        form = next((form for form, encoding in _ENCODINGS.items() if encoding == topic.encoding),
                    MessageDefinitionFormat.NONE)
        connection = Connection(
            id=len(self.connections) + 1, topic=topic.name, msgtype=topic.type_name,
            msgdef=MessageDefinition(form, topic.definition), digest=topic.type_hash, msgcount=0,
            ext=ConnectionExtRosbag2(topic.serialization, profiles), owner=self)
        if topic.type_name not in self._types:
            self.storage.add_msgtype(connection)
            self._types.add(topic.type_name)
        self.storage.add_connection(connection, _profiles(tuple(profiles)))
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

    def copy(self, connection: Connection, log_ns: int, data: bytes, *,
             publish_ns: int | None = None, sequence: int = 0) -> None:
        """Write a message of another bag as it was there."""
        self.storage.write(connection, log_ns, data, publish_ns, sequence)
        self._counts[connection.id] += 1
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
        assert isinstance(connection.ext, ConnectionExtRosbag2)
        return (f'- message_count: {self._counts[connection.id]}\n'
                '  topic_metadata:\n'
                f'    name: {_scalar(connection.topic)}\n'
                f'    type: {_scalar(connection.msgtype)}\n'
                f'    serialization_format: {_scalar(connection.ext.serialization_format)}\n'
                f'    type_description_hash: {_scalar(connection.digest)}\n'
                '    offered_qos_profiles:\n'
                f'{_indented(_profiles(tuple(connection.ext.offered_qos_profiles)), 4)}')


def _scalar(text: str) -> str:
    """Return text as YAML; names of topics and types, and hashes, are taken as they are."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


@lru_cache(maxsize=16)
def _profiles(profiles: tuple[Qos, ...]) -> str:
    """Return a list of profiles as YAML."""
    return _yaml(dump_qos_v9(list(profiles)))


def _indented(text: str, n_blanks: int) -> str:
    blanks = ' ' * n_blanks
    return blanks + text.replace('\n', f'\n{blanks}')


def _yaml(value: object) -> str:
    yaml = YAML(typ='safe')
    yaml.default_flow_style = False
    text = io.StringIO()
    yaml.dump(value, text)
    return text.getvalue().strip()

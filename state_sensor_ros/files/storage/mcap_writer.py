# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""MCAP files that are written: chunks, which a thread compresses, indices, summary, all CRCs."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
import io
from itertools import accumulate, chain
from pathlib import Path
from queue import SimpleQueue
import struct
import threading
from zlib import crc32

from lz4.frame import compress as lz4_compress  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinitionFormat

from state_sensor_ros.files.storage.input_file import zstd
from state_sensor_ros.files.storage.mcap_file import (
    CRC,
    FOOTER_RECORD,
    HEAD,
    INDEX_ENTRY_BYTES,
    INDEX_HEAD,
    LEAST_MESSAGE_BYTES,
    MAGIC,
    MESSAGE_HEAD,
    Opcode,
    record,
    text_field,
)

ENCODINGS = {MessageDefinitionFormat.MSG: 'ros2msg', MessageDefinitionFormat.IDL: 'ros2idl',
             MessageDefinitionFormat.NONE: ''}
# Name in the header, by which readers work around the faults of writers.
_LIBRARY = 'state_sensor_ros'
_CHUNK_BYTES = 4 * 1024 * 1024
_MESSAGE_HEADS = np.dtype([('opcode', 'u1'), ('length', '<u8'), ('channel', '<u2'),
                           ('sequence', '<u4'), ('log', '<u8'), ('publish', '<u8')])
_EXTENT, _TWO_NUMBERS = struct.Struct('<QQ'), struct.Struct('<HH')
_COUNTS, _COUNT, _GROUP = struct.Struct('<QHIIIIQQI'), struct.Struct('<HQ'), struct.Struct('<BQQ')
# Name of the metadata record, and the key of the text in it.
_METADATA, _METADATA_KEY = 'rosbag2', 'serialized_metadata'

MAX_TIME_NS = 2**63 - 1
# The chunk that is collected, one that waits and one that is written.
_N_CHUNKS = 3
_CHUNK_HEAD, _LENGTH = struct.Struct('<QQQI'), struct.Struct('<Q')
_Compress = Callable[[memoryview], bytes]


def _zstd(level: int) -> _Compress:
    # What repeats does so from frame to frame: with the window of level 3, half a chunk, the files
    # of 50 actors are half as large again.
    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.window_log: 22}
    return lambda records: zstd.compress(records, options=options)


# By their names in COMPRESSIONS: the name in the file, and the function.
_COMPRESSORS: dict[str, tuple[str, _Compress | None]] = {
    'none': ('', None), 'lz4': ('lz4', lz4_compress), 'zstd': ('zstd', _zstd(3)),
    'zstd_fast': ('zstd', _zstd(1)), 'zstd_small': ('zstd', _zstd(19))}


@dataclass(slots=True)
class OpenChunk:
    """
    Records that are collected, with an index of their messages.

    ``first_ns`` and ``last_ns`` log times; the index has, for each message, its channel, log time
    and offset in ``records``.
    """

    records: io.BytesIO = field(default_factory=io.BytesIO)
    first_ns: int = MAX_TIME_NS
    last_ns: int = 0
    channels: array[int] = field(default_factory=lambda: array('H'))
    times: array[int] = field(default_factory=lambda: array('Q'))
    offsets: array[int] = field(default_factory=lambda: array('Q'))

    def clear(self) -> None:
        """Begin again in the same buffer."""
        self.records.seek(0)
        self.first_ns, self.last_ns = MAX_TIME_NS, 0
        self.channels, self.times, self.offsets = array('H'), array('Q'), array('Q')

    def entries(self) -> list[tuple[int, bytes]]:
        """
        Return each channel with its entries of 16 bytes, a time and an offset.

        The channels are in the order of their first messages.
        """
        channels = np.frombuffer(self.channels, np.uint16)
        order = np.argsort(channels, kind='stable')
        entries = np.column_stack((np.frombuffer(self.times, '<u8'),
                                   np.frombuffer(self.offsets, '<u8')))[order]
        begins = np.flatnonzero(np.diff(channels[order], prepend=-1))
        ends = np.append(begins[1:], len(order))
        firsts = order[begins]
        return [(int(channels[firsts[i]]), entries[begins[i]:ends[i]].tobytes())
                for i in np.argsort(firsts).tolist()]


class McapOutput:
    """
    The file, ended by :meth:`close`.

    Before and after :meth:`settle`, the caller's thread writes; between :meth:`put` and it, the
    thread of the file does.

    :ivar crc: CRC-32 of what :meth:`append` and the chunks have written; may be set to 0.
    """

    def __init__(self, path: Path, compression: str) -> None:
        self._name, self._compress = _COMPRESSORS[compression]
        self._file = path.open('xb')
        self.chunk_indices: list[bytes] = []
        self.counts: Counter[int] = Counter()
        self.n_bytes = self.crc = 0
        self._error: BaseException | None = None
        # None ends the thread.
        self._full: SimpleQueue[OpenChunk | None] = SimpleQueue()
        self._free: SimpleQueue[OpenChunk] = SimpleQueue()
        for _ in range(_N_CHUNKS - 1):
            self._free.put(OpenChunk())
        self._thread = threading.Thread(target=self._work, daemon=True, name='chunks')
        self._thread.start()

    def append(self, *parts: bytes | memoryview) -> None:
        for part in parts:
            self.crc = crc32(part, self.crc)
            self._file.write(part)
            self.n_bytes += len(part)

    def put(self, chunk: OpenChunk) -> OpenChunk:
        """Hand a chunk over to be written; wait while two others are."""
        # Returns an empty chunk to collect the next records in.
        self._full.put(chunk)
        free = self._free.get()
        if self._error is not None:
            raise self._error
        return free

    def settle(self) -> None:
        """Wait until all chunks are written, and end the thread."""
        self._end()
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Write the chunks that wait, if the disk has room for them, and close the file."""
        self._end()
        self._file.close()

    def _end(self) -> None:
        self._full.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (chunk := self._full.get()) is not None:
            try:
                # A file with a gap could not be read further than it.
                if self._error is None:
                    self._write(chunk)
            except BaseException as error:  # noqa: BLE001
                # Raised by the next call of the caller's thread, which waits for free chunks.
                self._error = error
            chunk.clear()
            self._free.put(chunk)

    def _write(self, chunk: OpenChunk) -> None:
        begin, size = self.n_bytes, chunk.records.tell()
        # The buffer cannot grow as long as a view of it exists.
        with chunk.records.getbuffer() as buffer, buffer[:size] as records:
            data = records if self._compress is None else self._compress(records)
            times = chunk.first_ns, chunk.last_ns
            head = _CHUNK_HEAD.pack(*times, size, crc32(records)) + text_field(self._name) \
                + _LENGTH.pack(len(data))
            self.append(HEAD.pack(Opcode.CHUNK, len(head) + len(data)) + head, data)
            n_data = len(data)
        end = at = self.n_bytes
        offsets: list[int] = []
        indices: list[bytes] = []
        channels = chunk.entries()
        for number, entries in channels:
            offsets += number, at
            indices += INDEX_HEAD.pack(
                Opcode.MESSAGE_INDEX, INDEX_HEAD.size - HEAD.size + len(entries), number,
                len(entries)), entries
            at += INDEX_HEAD.size + len(entries)
            self.counts[number] += len(entries) // INDEX_ENTRY_BYTES
        self.append(b''.join(indices))
        self.chunk_indices.append(record(
            Opcode.CHUNK_INDEX,
            struct.pack(f'<4QI{"HQ" * len(channels)}Q', *times, begin, end - begin,
                        10 * len(channels), *offsets, at - end),
            text_field(self._name), struct.pack('<2Q', n_data, size)))
        self._file.flush()


class _FrameLayout:
    """
    The heads of the messages of one log time, and the offsets of the messages.

    In most cases, a frame has the topics and sizes of the frame before: its heads differ in the
    time only.
    """

    def __init__(self, connections: Sequence[Connection], sizes: list[int]) -> None:
        channels = [connection.id for connection in connections]
        self.connections, self.sizes = connections, sizes
        self.packed_channels = array('H', channels)
        self._heads = np.zeros(len(channels), _MESSAGE_HEADS)
        self._heads['opcode'], self._heads['channel'] = Opcode.MESSAGE, channels
        self._heads['length'] = [LEAST_MESSAGE_BYTES + size for size in sizes]
        *begins, self.n_bytes = accumulate([MESSAGE_HEAD.size + size for size in sizes],
                                           initial=0)
        self._begins: npt.NDArray[np.uint64] = np.array(begins, np.uint64)

    def heads(self, timestamp: int) -> list[bytes]:
        """Return the heads of messages of a log time, ns."""
        self._heads['log'] = self._heads['publish'] = timestamp
        text = self._heads.tobytes()
        return [text[begin:begin + MESSAGE_HEAD.size]
                for begin in range(0, len(text), MESSAGE_HEAD.size)]

    def begins(self, offset: int) -> bytes:
        """Return the offsets of the messages, uint64 each, the first one being ``offset``."""
        return (self._begins + np.uint64(offset)).tobytes()


class McapStorageWriter:
    """
    Writer of an MCAP file.

    The heads of all messages of a frame are packed with one call. A thread compresses and writes
    the chunks.

    :param path: folder of the bag, from whose name rosbag2 derives that of the file.
    """

    def __init__(self, path: Path, compression: str) -> None:
        self.path = path / f'{path.name}_0.mcap'
        self._output = McapOutput(self.path, compression)
        # Records, by the number of the schema and of the channel.
        self._schemas: dict[str, int] = {}
        self._schema_records: list[bytes] = []
        self._channel_records: list[bytes] = []
        self._channels: list[int] = []
        self._first_ns, self._last_ns = MAX_TIME_NS, 0
        self._chunk = OpenChunk()
        self._layout = _FrameLayout([], [])
        self._output.append(MAGIC + record(Opcode.HEADER, text_field('ros2'),
                                           text_field(_LIBRARY)))

    def add_msgtype(self, connection: Connection) -> None:
        """Write the definition of a type, an empty one if there is none."""
        number = self._schemas[connection.msgtype] = len(self._schemas) + 1
        self._schema_records.append(record(
            Opcode.SCHEMA, struct.pack('<H', number), text_field(connection.msgtype),
            text_field(ENCODINGS[connection.msgdef.format]), text_field(connection.msgdef.data)))
        self._chunk.records.write(self._schema_records[-1])

    def add_connection(self, connection: Connection, qos: str) -> None:
        if connection.id >= 2**16:
            raise OverflowError(f'the channel {connection.id}')
        assert isinstance(connection.ext, ConnectionExtRosbag2)
        pairs = text_field('offered_qos_profiles') + text_field(qos)
        self._channel_records.append(record(
            Opcode.CHANNEL, _TWO_NUMBERS.pack(connection.id, self._schemas[connection.msgtype]),
            text_field(connection.topic), text_field(connection.ext.serialization_format),
            struct.pack('<I', len(pairs)), pairs))
        self._channels.append(connection.id)
        self._chunk.records.write(self._channel_records[-1])

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview,
              publish_ns: int | None = None, sequence: int = 0) -> None:
        """Write a message."""
        # timestamp: its log time, ns.
        # publish_ns: its time of publishing, ns; None for the log time.
        # sequence: its number at the publisher, 0 if unknown.
        self._note_time(timestamp)
        number, chunk = connection.id, self._chunk
        file = chunk.records
        offset = file.tell()
        chunk.channels.append(number)
        chunk.times.append(timestamp)
        chunk.offsets.append(offset)
        offset += file.write(MESSAGE_HEAD.pack(
            Opcode.MESSAGE, LEAST_MESSAGE_BYTES + len(data), number, sequence, timestamp,
            timestamp if publish_ns is None else publish_ns))
        offset += file.write(data)
        if offset > _CHUNK_BYTES:
            self.close_chunk()

    def write_frame(self, connections: Sequence[Connection], timestamp: int,
                    data: Sequence[bytes]) -> None:
        """
        Write messages of one log time, in a fifth of the time of as many calls of :meth:`write`.

        :param connections: topic of each message; must not be changed afterward.
        :param timestamp: their log time, which is also their time of publishing, ns.
        """
        sizes = list(map(len, data))
        if connections is not self._layout.connections or sizes != self._layout.sizes:
            self._layout = _FrameLayout(connections, sizes)
        layout, chunk = self._layout, self._chunk
        file = chunk.records
        offset = file.tell()
        if offset + layout.n_bytes > _CHUNK_BYTES:
            # The chunk ends with one of these messages.
            for connection, message in zip(connections, data, strict=True):
                self.write(connection, timestamp, message)
            return
        self._note_time(timestamp)
        chunk.channels += layout.packed_channels
        chunk.times += array('Q', [timestamp]) * len(layout.sizes)
        chunk.offsets.frombytes(layout.begins(offset))
        file.writelines(chain.from_iterable(zip(layout.heads(timestamp), data, strict=True)))

    def _note_time(self, timestamp: int) -> None:
        chunk = self._chunk
        if timestamp < chunk.first_ns:
            chunk.first_ns = timestamp
            self._first_ns = min(timestamp, self._first_ns)
        if timestamp > chunk.last_ns:
            chunk.last_ns = timestamp
            self._last_ns = max(timestamp, self._last_ns)

    def close_chunk(self) -> None:
        """Hand the chunk over to be written; begin a new one."""
        self._chunk = self._output.put(self._chunk)

    def flush(self) -> None:
        """Hand over what is collected: a chunk that is written can be read without the end."""
        if self._chunk.records.tell():
            self.close_chunk()

    def close(self, version: int, metadata: str) -> None:
        """Write the last chunk, the metadata, the summary, and the CRCs of data and summary."""
        # version: version of metadata.yaml, which ``metadata`` contains.
        self.flush()
        output = self._output
        output.settle()
        begin = output.n_bytes
        pairs = text_field(_METADATA_KEY) + text_field(metadata)
        output.append(record(Opcode.METADATA, text_field(_METADATA),
                             struct.pack('<I', len(pairs)), pairs))
        metadata_index = record(
            Opcode.METADATA_INDEX, _EXTENT.pack(begin, output.n_bytes - begin),
            text_field(_METADATA))
        output.append(record(Opcode.DATA_END, CRC.pack(output.crc)))
        summary = output.n_bytes
        # CRC-32 of the summary and of the footer before the CRC.
        output.crc = 0
        offsets = []
        for opcode, records in (
                (Opcode.SCHEMA, self._schema_records), (Opcode.CHANNEL, self._channel_records),
                (Opcode.CHUNK_INDEX, output.chunk_indices),
                (Opcode.METADATA_INDEX, [metadata_index]),
                (Opcode.STATISTICS, [self._statistics()])):
            group = b''.join(records)
            if group:
                offsets.append(record(Opcode.SUMMARY_OFFSET, _GROUP.pack(
                    opcode, output.n_bytes, len(group))))
                output.append(group)
        at = output.n_bytes
        output.append(b''.join(offsets))
        footer = FOOTER_RECORD.pack(Opcode.FOOTER, FOOTER_RECORD.size - HEAD.size, summary, at,
                                    0)[:-CRC.size]
        output.append(footer + CRC.pack(crc32(footer, output.crc)) + MAGIC)
        output.close()

    def _statistics(self) -> bytes:
        counts = {number: self._output.counts[number] for number in self._channels}
        packed = [_COUNT.pack(*count) for count in sorted(counts.items())]
        return record(Opcode.STATISTICS, _COUNTS.pack(
            sum(counts.values()), len(self._schema_records), len(self._channel_records), 0,
            1, len(self._output.chunk_indices), self._first_ns, self._last_ns,
            _COUNT.size * len(packed)), *packed)

    def abort(self) -> None:
        """Close the file without completing it."""
        self._output.close()

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
Records of MCAP, version 0, and the bytes of a file with them (https://mcap.dev/spec).

A file of rosbag2; all numbers are little-endian::

    magic           89 4D 43 41 50 30 0D 0A
    HEADER          profile 'ros2'
    CHUNK           first and last log time, size, CRC-32, compression; in it records:
                        SCHEMA   name and definition of a type       } before the first message
                        CHANNEL  topic, its schema, QoS profiles     } that uses them
                        MESSAGE, MESSAGE, ...
    MESSAGE_INDEX   log time and offset of each message of one channel in the chunk before it
    MESSAGE_INDEX, ..., CHUNK, MESSAGE_INDEX, ...
    METADATA        the text of metadata.yaml
    DATA_END        CRC-32 of all bytes before it
    SCHEMA, CHANNEL, STATISTICS, ...                  the summary: all schemas and channels again
    FOOTER          offset of the summary, CRC-32 of the summary and of the footer before the CRC
    magic

Schemas, channels and messages may also be outside of chunks. Each record is a head, opcode and
length, and the content, whose length that is. A message of two bytes, AB CD, on channel 3 with
the sequence number 1, logged and published at 1 s::

    05 | 18 00 00 00 00 00 00 00 | 03 00 | 01 00 00 00 | 00 CA 9A 3B 00 00 00 00 | ... | AB CD
    op   length 24 = 22 + 2        channel sequence      log time, ns              publish data
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
import os
from pathlib import Path
import struct
from zlib import crc32

from state_sensor_ros.files.storage.input_file import decompress, pread
from state_sensor_ros.files.storage.storage_file import (
    BagError,
    BagLimits,
    damaged,
    StoredMessage,
    too_large,
)

# Compressions of the chunks that are written, the first by default; the last two are presets of
# rosbag2's MCAP plug-in.
COMPRESSIONS = ('zstd', 'lz4', 'none', 'zstd_fast', 'zstd_small')
MAGIC = b'\x89MCAP0\r\n'
# The head of a record: opcode, length of the content.
HEAD = struct.Struct('<BQ')
# A message up to its data: head; channel, sequence, log and publish time, ns.
MESSAGE_HEAD = struct.Struct('<BQHIQQ')
LEAST_MESSAGE_BYTES = MESSAGE_HEAD.size - HEAD.size
# A message index up to its entries: head; channel, size of the entries, each a time and an offset.
INDEX_HEAD = struct.Struct('<BQHI')
INDEX_ENTRY_BYTES = 16
# The whole footer: head; offset of the summary, offset of the summary offsets, CRC-32.
FOOTER_RECORD = struct.Struct('<BQQQI')
CRC = struct.Struct('<I')
# The CRC of summary and footer covers this much of the footer.
FOOTER_CRC_AT = FOOTER_RECORD.size - CRC.size
# Largest size of the content of a chunk up to its data: names of compressions are short.
CHUNK_HEAD_BYTES = 64

_U16, _U32, _U64 = struct.Struct('<H'), struct.Struct('<I'), struct.Struct('<Q')
_CHUNK_HEAD = struct.Struct('<QQQI')
_COUNTS = struct.Struct('<QHIIIIQQ')
_COUNT = struct.Struct('<HQ')
_FOOTER = struct.Struct('<QQI')


# Encodings of schemas with binary definitions, which are dropped.
_BINARY_ENCODINGS = frozenset(('protobuf', 'flatbuffer'))
# Heads are read in blocks: a chunk is followed by one short record for each topic in it.
_BLOCK_BYTES = 64 * 1024
_CRC_BLOCK_BYTES = 1024 * 1024
_MAX_HEAD_BYTES = HEAD.size + CHUNK_HEAD_BYTES


class Opcode:
    """Kinds of records."""

    HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
    MESSAGE_INDEX, CHUNK_INDEX, STATISTICS, METADATA = 0x07, 0x08, 0x0B, 0x0C
    METADATA_INDEX, SUMMARY_OFFSET, DATA_END = 0x0D, 0x0E, 0x0F


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a record: its opcode, its offset in the file, the length of its content."""

    opcode: int
    offset: int
    length: int

    @property
    def end(self) -> int:
        """Offset of the first byte after the record."""
        return self.offset + HEAD.size + self.length


@dataclass(frozen=True, slots=True)
class Schema:
    """Definition of a message type."""

    id: int
    name: str
    encoding: str
    definition: str


@dataclass(frozen=True, slots=True)
class Channel:
    """A topic; rosbag2 stores its QoS and the hash of its type in ``metadata``."""

    id: int
    schema: int
    topic: str
    encoding: str
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True)
class ChunkHead:
    """The fields of a chunk before its data."""

    first_ns: int  # first_ns, last_ns: log times in it
    last_ns: int
    size: int  # size, crc: of its records when decompressed, 0 for no CRC
    crc: int
    compression: str
    begin: int  # begin, length: of its data, offset and size in its content
    length: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of messages, schemas and channels, and of messages by channel."""

    n_messages: int
    n_schemas: int
    n_channels: int
    counts: dict[int, int]


class _Fields:
    """The fields of a record, parsed one after another; ValueError if the content ends before."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = data
        self.at = 0

    def take(self, layout: struct.Struct) -> tuple[int, ...]:
        if self.at + layout.size > len(self._data):
            raise ValueError('a truncated field')
        numbers = layout.unpack_from(self._data, self.at)
        self.at += layout.size
        return numbers

    def block(self) -> bytes:
        """Return bytes that follow their 32-bit length."""
        [length] = self.take(_U32)
        if self.at + length > len(self._data):
            raise ValueError('a truncated field')
        self.at += length
        return bytes(self._data[self.at - length:self.at])

    def text(self) -> str:
        """Return UTF-8 text that follows its 32-bit length in bytes."""
        return self.block().decode()

    def texts(self) -> dict[str, str]:
        """Return pairs of texts that follow their 32-bit length in bytes."""
        [length] = self.take(_U32)
        end, pairs = self.at + length, {}
        while self.at < end:
            key = self.text()
            pairs[key] = self.text()
        return pairs


def text_field(text: str) -> bytes:
    """Return ``text`` in UTF-8, after its 32-bit length in bytes."""
    data = text.encode()
    return _U32.pack(len(data)) + data


def record(opcode: int, *parts: bytes) -> bytes:
    return HEAD.pack(opcode, sum(map(len, parts))) + b''.join(parts)


def parse_header(content: bytes) -> str:
    return _Fields(content).text()


def parse_schema(content: bytes | memoryview) -> Schema:
    fields = _Fields(content)
    [number] = fields.take(_U16)
    name, encoding, definition = fields.text(), fields.text(), fields.block()
    return Schema(number, name, encoding,
                  '' if encoding in _BINARY_ENCODINGS else definition.decode())


def parse_channel(content: bytes | memoryview) -> Channel:
    fields = _Fields(content)
    [number], [schema] = fields.take(_U16), fields.take(_U16)
    return Channel(number, schema, fields.text(), fields.text(), fields.texts())


def parse_chunk_head(content: bytes | memoryview) -> ChunkHead:
    """Parse the fields of a chunk before its data."""
    fields = _Fields(content)
    first_ns, last_ns, size, crc = fields.take(_CHUNK_HEAD)
    compression = fields.text()
    [length] = fields.take(_U64)
    return ChunkHead(first_ns, last_ns, size, crc, compression, fields.at, length)


def parse_statistics(content: bytes | memoryview) -> Statistics:
    fields = _Fields(content)
    n_messages, n_schemas, n_channels, *_ = fields.take(_COUNTS)
    counts = fields.block()
    if len(counts) % _COUNT.size:
        raise ValueError('truncated counts')
    return Statistics(n_messages, n_schemas, n_channels, dict(_COUNT.iter_unpack(counts)))


def parse_footer(content: bytes | memoryview) -> tuple[int, int]:
    """Return the offset of the summary, 0 for none, and the CRC-32 of summary and footer."""
    # Returns offset in the file, bytes; CRC-32 of the summary and of the footer before the CRC.
    summary, _, crc = _Fields(content).take(_FOOTER)
    return summary, crc


def parse_crc(content: bytes | memoryview) -> int:
    """Return the CRC-32 at the beginning of a record."""
    [crc] = _Fields(content).take(CRC)
    return crc


class McapFile:

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self.name = name
        self.limits = limits
        self._file = path.open('rb', buffering=0)
        self.size = os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._file.close()

    def error(self, offset: int, found: str) -> BagError:
        return damaged(f'{self.name}: byte {offset}', found)

    def read(self, offset: int, n_bytes: int) -> bytes:
        if n_bytes > self.limits.n_bytes + _MAX_HEAD_BYTES:
            raise too_large(f'{self.name}: byte {offset}', 'a record', self.limits.n_bytes)
        data = pread(self._file.fileno(), n_bytes, offset)
        if len(data) < n_bytes:
            raise self.error(self.size, 'the end of the file in a record')
        return data

    def content(self, head: Head) -> bytes:
        return self.read(head.offset + HEAD.size, head.length)

    def heads(self, offset: int = len(MAGIC)) -> Iterator[Head]:
        """Yield the heads of records up to the footer."""
        block, begin = b'', offset
        while True:
            if not begin <= offset <= begin + len(block) - HEAD.size:
                block, begin = pread(self._file.fileno(), _BLOCK_BYTES, offset), offset
            try:
                opcode, length = HEAD.unpack_from(block, offset - begin)
            except struct.error:
                raise self.error(self.size, 'the end of the file without a footer') from None
            head = Head(opcode, offset, length)
            if not head.opcode:
                raise self.error(offset, 'no record')
            if head.end > self.size:
                raise self.error(offset, 'a record that the file ends in')
            yield head
            if head.opcode == Opcode.FOOTER:
                return
            offset = head.end

    def chunk_head(self, head: Head) -> ChunkHead:
        """Return the fields of a chunk before its data."""
        start = self.read(head.offset + HEAD.size, min(head.length, CHUNK_HEAD_BYTES))
        try:
            chunk = parse_chunk_head(start)
        except ValueError as error:
            raise self.error(head.offset, f'no chunk ({error})') from error
        if chunk.begin + chunk.length != head.length:
            raise self.error(head.offset, 'a chunk whose sizes do not agree')
        if max(chunk.size, chunk.length) > self.limits.n_bytes:
            raise too_large(f'{self.name}: chunk at byte {head.offset}', 'a chunk',
                            self.limits.n_bytes)
        return chunk

    def records_of(self, head: Head, chunk: ChunkHead, content: memoryview) -> memoryview:
        where = f'{self.name}: chunk at byte {head.offset}'
        records = content[chunk.begin:]
        if chunk.compression in ('lz4', 'zstd'):
            data, fault = decompress(records, chunk.compression, chunk.size)
            if fault:
                raise damaged(where, fault)
            records = memoryview(data)
        elif chunk.compression:
            raise BagError(where, f'the compression {chunk.compression!r}', 'lz4, zstd or none')
        if len(records) != chunk.size:
            raise damaged(where, 'a size other than that in its header')
        if chunk.crc and crc32(records) != chunk.crc:
            raise damaged(where, f'the CRC-32 {crc32(records):08x} in place of {chunk.crc:08x}')
        return records


class RunningCrc:
    """CRC-32 of a file from an offset on; reuses data that the caller has read anyway."""

    def __init__(self, file: McapFile, begin: int = 0) -> None:
        self._file = file
        self._end = begin
        self._value = 0

    def add(self, offset: int, data: bytes) -> None:
        """Extend the CRC over ``data``; bytes between its end and ``offset`` are read."""
        if offset >= self._end:
            self.up_to(offset)
            self._value = crc32(data, self._value)
            self._end = offset + len(data)

    def up_to(self, end: int) -> int:
        """Extend the CRC up to an offset and return it."""
        # Returns CRC-32 of the bytes from ``begin`` to its end.
        while self._end < end:
            data = self._file.read(self._end, min(end - self._end, _CRC_BLOCK_BYTES))
            self._value = crc32(data, self._value)
            self._end += len(data)
        return self._value


class LoadedChunk:

    def __init__(self, records: memoryview) -> None:
        self._records = records
        self.n_bytes = len(records)
        # Log times, ns, and offsets of the selected messages.
        self._times, self._places = array('Q'), array('Q')

    def scan(self, chunk: ChunkHead, selected: Collection[int], counts: Counter[int],
             ) -> Iterator[tuple[int, memoryview]]:
        """Check all records and note the selected messages."""
        # chunk: its head, between whose first and last time all log times must be.
        records, unpack, message = self._records, MESSAGE_HEAD.unpack_from, Opcode.MESSAGE
        first_ns, last_ns = chunk.first_ns, chunk.last_ns
        at, end = 0, len(records)
        while at < end:
            if records[at] == message:
                _, length, number, _, log_ns, _ = unpack(records, at)
                if length < LEAST_MESSAGE_BYTES:
                    raise ValueError('a truncated message')
                if not first_ns <= log_ns <= last_ns:
                    raise ValueError(f'a log time of {log_ns} ns, outside the span in its header')
                counts[number] += 1
                if number in selected:
                    self._times.append(log_ns)
                    self._places.append(at)
            else:
                opcode, length = HEAD.unpack_from(records, at)
                if opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                    yield opcode, records[at + HEAD.size:at + HEAD.size + length]
                elif not opcode:
                    raise ValueError('no record in it')
            at += HEAD.size + length
        if at != end:
            raise ValueError('a record that is longer than the chunk')

    def in_order(self) -> Iterator[StoredMessage]:
        """Yield the selected messages in the order of their log times."""
        times, records = self._times, self._records
        order: Collection[int] = range(len(times))
        if any(map(int.__gt__, times, times[1:])):
            order = sorted(order, key=times.__getitem__)
        for i in order:
            at = self._places[i]
            _, length, number, *_ = MESSAGE_HEAD.unpack_from(records, at)
            data = records[at + MESSAGE_HEAD.size:at + HEAD.size + length]
            yield number, times[i], bytes(data)

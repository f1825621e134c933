# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Bytes of an MCAP file: heads of its records, decompressed chunks with their messages, CRCs."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator
import os
from pathlib import Path
import struct
from zlib import crc32

from state_sensor_ros.files.storage.decompression import decompress
from state_sensor_ros.files.storage.mcap_records import (
    CHUNK_HEAD_BYTES,
    ChunkHead,
    HEAD,
    Head,
    LEAST_MESSAGE_BYTES,
    MAGIC,
    MESSAGE_HEAD,
    Opcode,
    parse_chunk_head,
)
from state_sensor_ros.files.storage.storage_file import (
    BagError,
    BagLimits,
    damaged,
    StoredMessage,
    too_large,
)

# Heads are read in blocks: a chunk is followed by one short record for each topic in it.
_BLOCK_BYTES = 64 * 1024
_CRC_BLOCK_BYTES = 1024 * 1024
_MAX_HEAD_BYTES = HEAD.size + CHUNK_HEAD_BYTES


class McapFile:
    """
    An open MCAP file.

    :param path: path of the file; it is open until :meth:`close`.
    :param name: name of the file in errors.
    :param limits: limits on the sizes of records and chunks.
    :ivar size: size of the file, bytes.
    :raises OSError: if it cannot be opened.
    """

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self.name = name
        self.limits = limits
        self._file = path.open('rb', buffering=0)
        self.size = os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._file.close()

    def error(self, offset: int, found: str) -> BagError:
        """
        Return the error for damage.

        :param offset: offset of the damage in the file.
        :param found: short description of it.
        """
        return damaged(f'{self.name}: byte {offset}', found)

    def read(self, offset: int, n_bytes: int) -> bytes:
        """
        Return bytes of the file.

        :param offset: offset of the first byte in the file.
        :param n_bytes: their number.
        :raises BagError: if they are more than the limit, or the file ends before them.
        """
        if n_bytes > self.limits.n_bytes + _MAX_HEAD_BYTES:
            raise too_large(f'{self.name}: byte {offset}', 'a record', self.limits.n_bytes)
        data = os.pread(self._file.fileno(), n_bytes, offset)
        if len(data) < n_bytes:
            raise self.error(self.size, 'the end of the file in a record')
        return data

    def content(self, head: Head) -> bytes:
        """
        Return the content of a record.

        :param head: head of the record.
        :raises BagError: as :meth:`read`.
        """
        return self.read(head.offset + HEAD.size, head.length)

    def heads(self, offset: int = len(MAGIC)) -> Iterator[Head]:
        """
        Yield the heads of records up to the footer.

        :param offset: offset of the first head.
        :raises BagError: if the bytes are not a record, or the file ends in one.
        """
        block, begin = b'', offset
        while True:
            if not begin <= offset <= begin + len(block) - HEAD.size:
                block, begin = os.pread(self._file.fileno(), _BLOCK_BYTES, offset), offset
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
        """
        Return the fields of a chunk before its data.

        :param head: head of the record of the chunk.
        :raises BagError: if the record is not a chunk, or the chunk is too large.
        """
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
        """
        Return the records of a chunk, decompressed.

        :param head: head of the chunk.
        :param chunk: its fields as :meth:`chunk_head` returned them.
        :param content: content of the chunk.
        :raises BagError: if decompression fails, or size or CRC-32 disagree with ``chunk``.
        """
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
            raise damaged(where, 'another size than in its head')
        if chunk.crc and crc32(records) != chunk.crc:
            raise damaged(where, f'the CRC-32 {crc32(records):08x} in place of {chunk.crc:08x}')
        return records


class RunningCrc:
    """
    CRC-32 of a file from an offset on; reuses data that the caller has read anyway.

    :param begin: offset of the first byte that it covers.
    """

    def __init__(self, file: McapFile, begin: int = 0) -> None:
        self._file = file
        self._end = begin
        self._value = 0

    def add(self, offset: int, data: bytes) -> None:
        """
        Extend the CRC over ``data``; bytes between its end and ``offset`` are read.

        :param offset: offset of the data in the file; data before the end of the CRC is ignored.
        """
        if offset >= self._end:
            self.up_to(offset)
            self._value = crc32(data, self._value)
            self._end = offset + len(data)

    def up_to(self, end: int) -> int:
        """
        Extend the CRC up to an offset and return it.

        :param end: offset in the file, bytes; no effect if the CRC already extends that far.
        :returns: CRC-32 of the bytes from ``begin`` to its end.
        :raises BagError: as :meth:`McapFile.read`.
        """
        while self._end < end:
            data = self._file.read(self._end, min(end - self._end, _CRC_BLOCK_BYTES))
            self._value = crc32(data, self._value)
            self._end += len(data)
        return self._value


class LoadedChunk:
    """
    A chunk in memory.

    :param records: decompressed records of the chunk.
    :ivar n_bytes: size of the records, bytes.
    """

    def __init__(self, records: memoryview) -> None:
        self._records = records
        self.n_bytes = len(records)
        # Log times, ns, and offsets of the selected messages.
        self._times, self._places = array('Q'), array('Q')

    def scan(self, chunk: ChunkHead, selected: Collection[int], counts: Counter[int],
             ) -> Iterator[tuple[int, memoryview]]:
        """
        Check all records and note the selected messages.

        :param chunk: its head, between whose first and last time all log times must be.
        :param selected: numbers of channels.
        :param counts: number of messages by channel, incremented for each message.
        :returns: opcode and content of each schema and channel.
        :raises ValueError: if a record is damaged; struct.error likewise.
        """
        records, unpack, message = self._records, MESSAGE_HEAD.unpack_from, Opcode.MESSAGE
        first_ns, last_ns = chunk.first_ns, chunk.last_ns
        at, end = 0, len(records)
        while at < end:
            if records[at] == message:
                _, length, number, _, log_ns, _ = unpack(records, at)
                if length < LEAST_MESSAGE_BYTES:
                    raise ValueError('a message that is cut')
                if not first_ns <= log_ns <= last_ns:
                    raise ValueError(f'a log time of {log_ns} ns, which its head excludes')
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The messages that can still be read of an MCAP file that was cut or damaged.

May know: MCAP. Must not know: types of messages, how a bag is written. A chunk whose CRC is wrong
is lost as a whole; behind what is no record, the next record is searched for.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
import re
import struct

from state_sensor_ros.recordings.storage.bag_limits import BagError, BagLimits, decompress
from state_sensor_ros.recordings.storage.mcap_file import McapFile, RunningCrc
from state_sensor_ros.recordings.storage.mcap_reader import topic_of
from state_sensor_ros.recordings.storage.mcap_records import (
    CHANNEL,
    CHUNK,
    CHUNK_HEAD_BYTES,
    DATA_END,
    FOOTER,
    FOOTER_BYTES,
    FOOTER_CRC_AT,
    HEAD,
    Head,
    INDEX_ENTRY_BYTES,
    LEAST_MESSAGE_BYTES,
    MAGIC,
    MESSAGE,
    MESSAGE_HEAD,
    MESSAGE_INDEX,
    parse_channel,
    parse_chunk_head,
    parse_crc,
    parse_footer,
    parse_schema,
    parse_statistics,
    SCHEMA,
    Schema,
    STATISTICS,
)
from state_sensor_ros.recordings.storage.storage_file import Recovered, StoredTopic

_BLOCK_BYTES = 1024 * 1024
# Where a message or a chunk of less than a terabyte may begin.
_CANDIDATE = re.compile(rb'(?=[\x05\x06].{5}\x00\x00\x00)', re.DOTALL)
_KNOWN_OPCODES = range(0x01, 0x10)


class McapSalvage:
    """
    Read what is left of one file.

    :param path: of the file; open until :meth:`close`.
    :param name: of the file in messages.
    :param limits: what may be read at once.
    :raises OSError: where it cannot be opened.
    """

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self.topics: dict[int, StoredTopic] = {}
        self.losses: list[str] = []
        self.defects: list[str] = []
        self._file = McapFile(path, name, limits)
        self._schemas: dict[int, Schema] = {}
        self._n_definition_bytes = 0
        # As the summary says it.
        self._n_messages: int | None = None
        self._n_found = self._n_unknown = self._n_unchecked = 0
        # Offset of what is to be read next.
        self._at = len(MAGIC)
        self._data_end: Head | None = None
        with suppress(BagError, ValueError):
            self._read_summary()

    @property
    def n_lost(self) -> int | None:
        """How many messages were not found, None where no summary says it."""
        return None if self._n_messages is None else max(self._n_messages - self._n_found, 0)

    def close(self) -> None:
        """Close the file; closing twice is quiet."""
        self._file.close()

    def messages(self) -> Iterator[Recovered]:
        """Yield all messages that can be read, in the order of the file."""
        while self._at < self._file.size and self._data_end is None:
            try:
                yield from self._records()
            except BagError as error:
                yield from self._behind(self._at, error.fault)
        if self._n_messages is None:
            self.defects.append('no summary')
        if self._n_unknown:
            self.losses.append(f'{self._n_unknown} messages of topics that are not known')
        if self.n_lost == 0:
            # What could not be read had no messages.
            self.defects += self.losses
            self.losses.clear()
        elif self._data_end is None and not self.losses:
            self.losses.append('nothing that is in the file, which was not completed')
        self._check_data_crc()

    def _read_summary(self) -> None:
        """Take topics and the number of messages from the end of the file, if it is there."""
        file = self._file
        footer = next(file.heads(file.size - len(MAGIC) - FOOTER_BYTES))
        if footer.opcode != FOOTER:
            return
        begin, crc = parse_footer(file.content(footer))
        if not begin or (crc and crc != RunningCrc(file, begin).up_to(
                footer.offset + FOOTER_CRC_AT)):
            return
        for head in file.heads(begin):
            if head.opcode == STATISTICS:
                self._n_messages = parse_statistics(file.content(head)).n_messages
            elif head.opcode in (SCHEMA, CHANNEL):
                self._enter(head.opcode, file.content(head))

    def _records(self) -> Iterator[Recovered]:
        """Yield the messages of records up to one that cannot be read, or to the end."""
        for head in self._file.heads(self._at):
            if head.opcode == CHUNK:
                yield from self._chunk(head)
            elif head.opcode == MESSAGE:
                yield from self._loose(head)
            elif head.opcode in (SCHEMA, CHANNEL):
                self._enter(head.opcode, self._file.content(head))
            elif head.opcode in (DATA_END, FOOTER):
                self._data_end = head
                return
            self._at = head.end

    def _enter(self, opcode: int, content: bytes | memoryview) -> None:
        """Note a schema or a topic, unless it is none."""
        self._n_definition_bytes += len(content)
        if self._n_definition_bytes > self._file.limits.n_bytes:
            return
        with suppress(ValueError):
            if opcode == SCHEMA:
                schema = parse_schema(content)
                self._schemas[schema.id] = schema
            else:
                channel = parse_channel(content)
                self.topics[channel.id] = topic_of(channel, self._schemas.get(channel.schema))

    def _chunk(self, head: Head) -> Iterator[Recovered]:
        try:
            chunk = self._file.chunk_head(head)
            records = self._file.records_of(head, chunk, memoryview(self._file.content(head)))
        except BagError as error:
            n_messages = self._n_indexed(head.end)
            what = f'{n_messages} messages in ' if n_messages else ''
            self.losses.append(f'{what}the chunk at byte {head.offset} ({error.fault})')
            return
        begin = self._n_found
        used = yield from self._in_chunk(records)
        if used < len(records):
            self._lose_end(head.offset, len(records) - used, len(records))
        if not chunk.crc:
            self._n_unchecked += self._n_found - begin

    def _n_indexed(self, offset: int) -> int:
        """Return how many messages the indexes say that the chunk before them has."""
        n_messages = 0
        with suppress(BagError):
            for head in self._file.heads(offset):
                if head.opcode != MESSAGE_INDEX:
                    break
                n_messages += head.length // INDEX_ENTRY_BYTES
        return n_messages

    def _in_chunk(self, records: bytes | memoryview) -> Generator[Recovered, None, int]:
        """Yield the messages of a chunk; return the offset of what is no record in it."""
        at, end = 0, len(records)
        while at + HEAD.size <= end:
            opcode, length = HEAD.unpack_from(records, at)
            begin, behind = at + HEAD.size, at + HEAD.size + length
            if not opcode or behind > end:
                break
            if opcode == MESSAGE:
                if length < LEAST_MESSAGE_BYTES:
                    break
                yield from self._message(bytes(records[at:behind]))
            elif opcode in (SCHEMA, CHANNEL):
                self._enter(opcode, records[begin:behind])
            at = behind
        return at

    def _loose(self, head: Head) -> Iterator[Recovered]:
        """Yield a message outside of chunks."""
        if head.length < LEAST_MESSAGE_BYTES:
            return
        try:
            record = self._file.read(head.offset, head.end - head.offset)
        except BagError as error:
            self.losses.append(f'the message at byte {head.offset} ({error.fault})')
            return
        self._n_unchecked += 1
        yield from self._message(record)

    def _message(self, record: bytes) -> Iterator[Recovered]:
        _, _, number, sequence, log_ns, publish_ns = MESSAGE_HEAD.unpack_from(record)
        topic = self.topics.get(number)
        if topic is None:
            self._n_unknown += 1
        else:
            self._n_found += 1
            yield Recovered(topic, log_ns, record[MESSAGE_HEAD.size:], publish_ns, sequence)

    def _behind(self, offset: int, fault: str) -> Iterator[Recovered]:
        """Go on behind a record that cannot be read; yield what is in the beginning of it."""
        size = self._file.size
        found = self._next_record(offset + 1)
        self._at = size if found is None else found
        n_before = len(self.losses)
        if found is None:
            yield from self._cut_chunk(offset)
        if offset < self._at and len(self.losses) == n_before:
            self.losses.append(f'{self._at - offset} bytes from byte {offset} on ({fault})')

    def _cut_chunk(self, offset: int) -> Iterator[Recovered]:
        """Yield the messages of a chunk that the file ends in, if it is one."""
        file = self._file
        start = file.read(offset, min(file.size - offset, HEAD.size + CHUNK_HEAD_BYTES))
        try:
            opcode, length = HEAD.unpack_from(start)
            chunk = parse_chunk_head(start[HEAD.size:])
        except (ValueError, struct.error):
            return
        if opcode != CHUNK or chunk.begin + chunk.length != length \
                or max(chunk.size, chunk.length) > file.limits.n_bytes:
            return
        begin = offset + HEAD.size + chunk.begin
        records = file.read(begin, min(file.size - begin, chunk.length))
        if chunk.compression:
            records = decompress(records, chunk.compression, chunk.size)[0]
        used = yield from self._in_chunk(records)
        self._lose_end(offset, chunk.size - used, chunk.size)

    def _lose_end(self, offset: int, n_bytes: int, size: int) -> None:
        self.losses.append(f'the last {n_bytes} of {size} bytes in the chunk at byte {offset}')

    def _next_record(self, offset: int) -> int | None:
        """Search for a record; return its offset."""
        size = self._file.size
        while offset + HEAD.size < size:
            block = self._file.read(offset, min(_BLOCK_BYTES, size - offset))
            for match in _CANDIDATE.finditer(block):
                if self._is_record(offset + match.start()):
                    return offset + match.start()
            offset += max(len(block) - HEAD.size, 1)
        return None

    def _is_record(self, offset: int) -> bool:
        """Tell whether a chunk, or a message of a known topic, begins at an offset."""
        file = self._file
        try:
            opcode, length = HEAD.unpack(file.read(offset, HEAD.size))
            head = Head(opcode, offset, length)
            if opcode == CHUNK:
                return bool(file.chunk_head(head).length)
            _, _, number, *_ = MESSAGE_HEAD.unpack(file.read(offset, MESSAGE_HEAD.size))
            return number in self.topics and length >= LEAST_MESSAGE_BYTES and (
                head.end == file.size or file.read(head.end, 1)[0] in _KNOWN_OPCODES)
        except BagError:
            return False

    def _check_data_crc(self) -> None:
        """Say where content may be other than it was, because only this CRC would show it."""
        if self._data_end is None or self._data_end.opcode != DATA_END or self.losses \
                or not self._n_unchecked:
            return
        with suppress(BagError, ValueError):
            expected = parse_crc(self._file.content(self._data_end))
            if expected and expected != RunningCrc(self._file).up_to(self._data_end.offset):
                self.losses.append('nothing that is known of, but the CRC of the data section is '
                                   'wrong, so that any message may be damaged')

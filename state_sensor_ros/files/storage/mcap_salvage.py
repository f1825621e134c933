# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages that are still readable in an MCAP file that was cut or damaged.

Records are read in the order of the file. An example with four kinds of damage::

    HEADER CHUNK INDEX CHUNK INDEX ######## CHUNK INDEX ######## MESSAGE ... CHUNK| end of file
                       1           2                    3                    4

1. A chunk that cannot be decompressed, or whose CRC-32 is wrong, is lost as a whole. The indexes
   after it contain the number of its messages.
2. If no record begins there, the next one is searched for at each byte. A candidate has the opcode
   of a chunk or message, and a length below 2**40, whose upper three bytes are zero. A chunk is
   accepted if its sizes agree:    06 | .. .. .. .. .. 00 00 00
3. A message is accepted if its channel is known and a known opcode follows it.
4. A chunk that the file ends in is decompressed as far as possible; its whole messages are
   returned.

A summary, if it can be read, provides channels in advance and the number of all messages.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
import re

from state_sensor_ros.files.storage.input_file import decompress
from state_sensor_ros.files.storage.mcap_file import (
    FOOTER_CRC_AT,
    FOOTER_RECORD,
    HEAD,
    Head,
    INDEX_ENTRY_BYTES,
    LEAST_MESSAGE_BYTES,
    MAGIC,
    McapFile,
    MESSAGE_HEAD,
    Opcode,
    parse_channel,
    parse_crc,
    parse_footer,
    parse_schema,
    parse_statistics,
    RunningCrc,
    Schema,
)
from state_sensor_ros.files.storage.mcap_reader import topic_of
from state_sensor_ros.files.storage.storage_file import BagError, BagLimits, Recovered, StoredTopic
from state_sensor_ros.texts import counted

_BLOCK_BYTES = 1024 * 1024
# The head of a message or a chunk of less than a terabyte.
_CANDIDATE = re.compile(rb'(?=[\x05\x06].{5}\x00\x00\x00)', re.DOTALL)
_KNOWN_OPCODES = range(0x01, 0x10)


class McapSalvage:
    """
    A damaged MCAP file.

    ``topics`` topics found so far, by number; ``losses`` descriptions of data that could not be
    read, and ``defects`` of other faults, both complete after the last message.
    """

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self.topics: dict[int, StoredTopic] = {}
        self.losses: list[str] = []
        self.defects: list[str] = []
        self._file = McapFile(path, name, limits)
        self._schemas: dict[int, Schema] = {}
        self._n_definition_bytes = 0
        # Number in the summary.
        self._n_messages: int | None = None
        self._n_found = self._n_unknown = self._n_unchecked = 0
        # Offset of the next record.
        self._at = len(MAGIC)
        self._data_end: Head | None = None
        with suppress(BagError, ValueError):
            self._read_summary()

    @property
    def n_lost(self) -> int | None:
        """Return the number of messages that were not found, None without a summary."""
        return None if self._n_messages is None else max(self._n_messages - self._n_found, 0)

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._file.close()

    def messages(self) -> Iterator[Recovered]:
        """Yield all readable messages in the order of the file."""
        while self._at < self._file.size and self._data_end is None:
            try:
                yield from self._records()
            except BagError as error:
                yield from self._skip_damage(self._at, error.fault)
        if self._n_messages is None:
            self.defects.append('no summary')
        if self._n_unknown:
            self.losses.append(f'{counted(self._n_unknown, "message")} of unknown topics')
        if self.n_lost == 0:
            # The unreadable bytes held no messages.
            self.defects += self.losses
            self.losses.clear()
        elif self._data_end is None and not self.losses:
            self.losses.append('nothing that is in the file, which was not completed')
        self._check_data_crc()

    def _read_summary(self) -> None:
        file = self._file
        at = file.size - len(MAGIC) - FOOTER_RECORD.size
        if at < len(MAGIC):
            return
        footer = next(file.heads(at))
        if footer.opcode != Opcode.FOOTER:
            return
        begin, crc = parse_footer(file.content(footer))
        if not begin or (crc and crc != RunningCrc(file, begin).up_to(
                footer.offset + FOOTER_CRC_AT)):
            return
        for head in file.heads(begin):
            if head.opcode == Opcode.STATISTICS:
                self._n_messages = parse_statistics(file.content(head)).n_messages
            elif head.opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._enter(head.opcode, file.content(head))

    def _records(self) -> Iterator[Recovered]:
        """Yield the messages up to the first unreadable record or the end."""
        for head in self._file.heads(self._at):
            if head.opcode == Opcode.CHUNK:
                yield from self._chunk(head)
            elif head.opcode == Opcode.MESSAGE:
                yield from self._loose(head)
            elif head.opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._enter(head.opcode, self._file.content(head))
            elif head.opcode in (Opcode.DATA_END, Opcode.FOOTER):
                self._data_end = head
                return
            self._at = head.end

    def _enter(self, opcode: int, content: bytes | memoryview) -> None:
        """Store a schema or a topic; ignore a damaged one."""
        self._n_definition_bytes += len(content)
        if self._n_definition_bytes > self._file.limits.n_bytes:
            return
        with suppress(ValueError):
            if opcode == Opcode.SCHEMA:
                schema = parse_schema(content)
                self._schemas[schema.id] = schema
            else:
                channel = parse_channel(content)
                self.topics[channel.id] = topic_of(channel, self._schemas.get(channel.schema))

    def _chunk(self, head: Head) -> Iterator[Recovered]:
        """Yield the messages of a chunk, or note their loss."""
        try:
            chunk = self._file.chunk_head(head)
            records = self._file.records_of(head, chunk, memoryview(self._file.content(head)))
        except BagError as error:
            n_messages = self._n_indexed(head.end)
            what = f'{counted(n_messages, "message")} in ' if n_messages else ''
            self.losses.append(f'{what}the chunk at byte {head.offset} ({error.fault})')
            return
        begin = self._n_found
        used = yield from self._in_chunk(records)
        if used < len(records):
            self._lose_end(head.offset, len(records) - used, len(records))
        if not chunk.crc:
            self._n_unchecked += self._n_found - begin

    def _n_indexed(self, offset: int) -> int:
        """Return the number of messages in a chunk according to its indexes."""
        n_messages = 0
        with suppress(BagError):
            for head in self._file.heads(offset):
                if head.opcode != Opcode.MESSAGE_INDEX:
                    break
                n_messages += head.length // INDEX_ENTRY_BYTES
        return n_messages

    def _in_chunk(self, records: bytes | memoryview) -> Generator[Recovered, None, int]:
        """Yield the messages of a chunk; return the size of the readable part."""
        at, size = 0, len(records)
        while at + HEAD.size <= size:
            opcode, length = HEAD.unpack_from(records, at)
            begin, end = at + HEAD.size, at + HEAD.size + length
            if not opcode or end > size:
                break
            if opcode == Opcode.MESSAGE:
                if length < LEAST_MESSAGE_BYTES:
                    break
                yield from self._message(bytes(records[at:end]))
            elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._enter(opcode, records[begin:end])
            at = end
        return at

    def _loose(self, head: Head) -> Iterator[Recovered]:
        """Yield a message that is outside of chunks."""
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
        """Yield a message, unless its topic is unknown."""
        _, _, number, sequence, log_ns, publish_ns = MESSAGE_HEAD.unpack_from(record)
        topic = self.topics.get(number)
        if topic is None:
            self._n_unknown += 1
        else:
            self._n_found += 1
            yield Recovered(topic, log_ns, record[MESSAGE_HEAD.size:], publish_ns, sequence)

    def _skip_damage(self, offset: int, fault: str) -> Iterator[Recovered]:
        """Move to the next record after damage; yield the messages of a chunk cut there."""
        size = self._file.size
        found = self._next_record(offset + 1)
        self._at = size if found is None else found
        n_before = len(self.losses)
        if found is None:
            yield from self._cut_chunk(offset)
        if offset < self._at and len(self.losses) == n_before:
            self.losses.append(f'{self._at - offset} bytes from byte {offset} on ({fault})')

    def _cut_chunk(self, offset: int) -> Iterator[Recovered]:
        """Yield the messages of a chunk that the file ends in, if a chunk begins there."""
        file = self._file
        try:
            opcode, length = HEAD.unpack(file.read(offset, HEAD.size))
            chunk = file.chunk_head(Head(opcode, offset, length))
        except BagError:
            return
        if opcode != Opcode.CHUNK:
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
        """Return the offset of the first record from an offset on, None if there is none."""
        size = self._file.size
        while offset + HEAD.size < size:
            block = self._file.read(offset, min(_BLOCK_BYTES, size - offset))
            for match in _CANDIDATE.finditer(block):
                if self._is_record(offset + match.start()):
                    return offset + match.start()
            offset += max(len(block) - HEAD.size, 1)
        return None

    def _is_record(self, offset: int) -> bool:
        """Return whether a chunk, or a message of a known topic, begins at an offset."""
        file = self._file
        try:
            opcode, length = HEAD.unpack(file.read(offset, HEAD.size))
            head = Head(opcode, offset, length)
            if opcode == Opcode.CHUNK:
                return bool(file.chunk_head(head).length)
            _, _, number, *_ = MESSAGE_HEAD.unpack(file.read(offset, MESSAGE_HEAD.size))
            return number in self.topics and length >= LEAST_MESSAGE_BYTES and (
                head.end == file.size or file.read(head.end, 1)[0] in _KNOWN_OPCODES)
        except BagError:
            return False

    def _check_data_crc(self) -> None:
        """Note a wrong CRC of the data section, if some message has no other CRC."""
        if self._data_end is None or self._data_end.opcode != Opcode.DATA_END or self.losses \
                or not self._n_unchecked:
            return
        with suppress(BagError, ValueError):
            expected = parse_crc(self._file.content(self._data_end))
            if expected and expected != RunningCrc(self._file).up_to(self._data_end.offset):
                self.losses.append('no message that is known of, but the CRC of the data '
                                   'section is wrong: any message may be damaged')

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages of an MCAP file in the order of their log times; every record is checked.

The constructor reads all heads, and the counts of the summary. Message indexes are ignored: each
chunk is read as a whole once the messages before its first log time have been returned, and a heap
merges the chunks that overlap::

    log time, s     0    1    2    3    4    5    6
    chunk A         [--------]                          read first
    chunk B                [--------]                   read before the first message after 1.4 s
    chunk C                              [-----]        read after the last message of B

The counts of the messages read must be those of the summary at the end.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator
import heapq
from pathlib import Path
import struct
from typing import TypeVar

from state_sensor_ros.files.storage.mcap_file import (
    Channel,
    FOOTER_CRC_AT,
    HEAD,
    Head,
    LEAST_MESSAGE_BYTES,
    LoadedChunk,
    MAGIC,
    McapFile,
    MESSAGE_HEAD,
    Opcode,
    parse_channel,
    parse_crc,
    parse_footer,
    parse_header,
    parse_schema,
    parse_statistics,
    RunningCrc,
    Schema,
    Statistics,
)
from state_sensor_ros.files.storage.storage_file import (
    BagError,
    BagLimits,
    damaged,
    StoredMessage,
    StoredTopic,
    too_large,
)

PROFILE = 'ros2'
# Limit on chunks in memory together because they overlap in time, as a multiple of that of one.
_MAX_OVERLAP = 4
# Enough for bags of hundreds of gigabytes.
_MAX_CHUNKS = 2**20
# The first record has the profile.
_BEGIN_BYTES = 4096

Parsed = TypeVar('Parsed')
Record = TypeVar('Record', Schema, Channel)


def profile_of(path: Path) -> str | None:
    """
    Return the profile of an MCAP file, empty if it cannot be read; None for no MCAP file.

    :param path: an existing file.
    :raises OSError: if it cannot be read.
    """
    with path.open('rb') as file:
        begin = file.read(_BEGIN_BYTES)
    if not begin.startswith(MAGIC):
        return None
    try:
        return parse_header(begin[len(MAGIC) + HEAD.size:])
    except ValueError:
        return ''


class McapReader:
    """
    An MCAP file.

    :param path: path of the file; it is open until :meth:`close`.
    :param name: name of the file in errors.
    :param limits: limits on sizes.
    :param profile: required profile of the file; None for any.
    :ivar topics: topics by their number in this file.
    :ivar counts: numbers of messages by the same number.
    :raises BagError: if the file is damaged or too large.
    :raises OSError: if it cannot be read.
    """

    def __init__(self, path: Path, name: str, limits: BagLimits,
                 profile: str | None = PROFILE) -> None:
        self._file = McapFile(path, name, limits)
        self._profile = profile
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._n_definition_bytes = 0
        # Set once all channels have been read: a further one is damage then.
        self._is_complete = False
        # For each chunk: offset, length of its content, first and last log time, ns.
        self._chunks = array('Q'), array('Q'), array('Q'), array('Q')
        self._has_loose_messages = False
        self._data_end: Head | None = None
        self._n_held = 0
        try:
            self.counts = self._counts(self._survey())
            self._is_complete = True
            self.topics = {number: topic_of(channel, self._schemas.get(channel.schema))
                           for number, channel in self._channels.items()}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        self._file.close()

    def messages(self, selected: Collection[int]) -> Iterator[StoredMessage]:
        """
        Yield messages in the order of their log times.

        :param selected: numbers of topics.
        :raises BagError: if the file is damaged; after the last message, if some are missing.
        """
        counts: Counter[int] = Counter()
        crc = RunningCrc(self._file)
        self._n_held = 0
        yield from self._merged(selected, counts, crc)
        if counts != self.counts:
            raise damaged(self._file.name, f'{counts.total()} messages, but {self.counts.total()} '
                          'or other topics in the summary')
        if self._data_end is not None and (expected := self._parsed(self._data_end, parse_crc)):
            self._check_crc(crc, self._data_end.offset, expected)

    def messages_at(self, selected: Collection[int], at_ns: int) -> Iterator[StoredMessage]:
        """
        Yield the messages of a log time, in the order of :meth:`messages`; read their chunks only.

        :param selected: numbers of topics.
        :param at_ns: log time, ns.
        :raises BagError: if the file is damaged.
        """
        if self._has_loose_messages:
            yield from (message for message in self._loose(selected, Counter())
                        if message[1] == at_ns)
        for offset, length, first_ns, last_ns in zip(*self._chunks, strict=True):
            if first_ns <= at_ns <= last_ns:
                head = Head(Opcode.CHUNK, offset, length)
                loaded = self._load(head, selected, Counter(), None)
                yield from (message for message in loaded.in_order() if message[1] == at_ns)

    def _survey(self) -> Statistics | None:
        """Read all heads; note the chunks, parse schemas, channels and statistics."""
        file = self._file
        if not file.size:
            raise BagError(file.name, 'an empty file', 'an MCAP file')
        if file.read(0, min(len(MAGIC), file.size)) != MAGIC:
            raise damaged(file.name, 'no MCAP file')
        heads = file.heads()
        head = next(heads)
        if head.opcode != Opcode.HEADER:
            raise file.error(head.offset, 'no header')
        profile = self._parsed(head, parse_header)
        if self._profile not in (None, profile):
            raise BagError(file.name, f'an MCAP file of the profile {profile!r}' if profile
                           else 'an MCAP file without a profile',
                           f'one of the profile {PROFILE}, as a bag of ROS 2 is')
        statistics = None
        for head in heads:
            if head.opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._enter(head.opcode, file.content(head), head.offset)
            elif head.opcode == Opcode.STATISTICS:
                statistics = self._parsed(head, parse_statistics)
            elif self._data_end is not None:
                continue  # part of the summary
            elif head.opcode == Opcode.CHUNK:
                self._note_chunk(head)
            elif head.opcode == Opcode.MESSAGE:
                self._has_loose_messages = True
            elif head.opcode == Opcode.DATA_END:
                self._data_end = head
        self._check_footer(head)
        return statistics

    def _note_chunk(self, head: Head) -> None:
        offsets, lengths, first_ns, last_ns = self._chunks
        if len(offsets) == _MAX_CHUNKS:
            raise BagError(self._file.name, f'more than {_MAX_CHUNKS} chunks', 'no more than that')
        offsets.append(head.offset)
        lengths.append(head.length)
        chunk = self._file.chunk_head(head)
        first_ns.append(chunk.first_ns)
        last_ns.append(chunk.last_ns)

    def _check_footer(self, footer: Head) -> None:
        file = self._file
        if file.size != footer.end + len(MAGIC) or file.read(footer.end, len(MAGIC)) != MAGIC:
            raise file.error(footer.end, 'other bytes than the end of an MCAP file')
        summary, crc = self._parsed(footer, parse_footer)
        begin = summary or footer.offset if self._data_end is None else self._data_end.end
        if summary and summary != begin:
            raise file.error(footer.offset, f'a wrong offset of the summary, {summary}')
        if crc:
            self._check_crc(RunningCrc(file, begin), footer.offset + FOOTER_CRC_AT, crc)

    def _check_crc(self, crc: RunningCrc, end: int, expected: int) -> None:
        found = crc.up_to(end)
        if found != expected:
            raise self._file.error(end, f'the CRC-32 {found:08x} of the bytes before it in place '
                                        f'of {expected:08x}')

    def _parsed(self, head: Head, parse: Callable[[bytes], Parsed]) -> Parsed:
        """Parse the content of a record."""
        try:
            return parse(self._file.content(head))
        except ValueError as error:
            raise self._file.error(head.offset, f'a damaged record ({error})') from error

    def _enter(self, opcode: int, content: bytes | memoryview, offset: int) -> None:
        """Store a schema or a channel; a repeated one must be the same."""
        try:
            is_new = _is_new(self._schemas, parse_schema(content)) if opcode == Opcode.SCHEMA \
                else _is_new(self._channels, parse_channel(content))
        except ValueError as error:
            raise self._file.error(offset, f'a damaged record ({error})') from error
        if is_new:
            self._n_definition_bytes += len(content)
            limit = self._file.limits.n_bytes
            if self._is_complete:
                raise self._file.error(offset, 'a topic that is not in the summary')
            if self._n_definition_bytes > limit:
                raise too_large(self._file.name, 'definitions', limit)

    def _counts(self, statistics: Statistics | None) -> Counter[int]:
        """Return the number of messages of each topic; without usable statistics, count them."""
        if statistics is not None and statistics.n_channels == len(self._channels) \
                and statistics.n_schemas == len(self._schemas) \
                and statistics.n_messages == sum(statistics.counts.values()):
            return Counter(statistics.counts)
        counts: Counter[int] = Counter()
        for offset, length, *_ in zip(*self._chunks, strict=True):
            self._load(Head(Opcode.CHUNK, offset, length), (), counts, None)
        for _ in self._loose((), counts):
            pass
        return counts

    def _merged(self, selected: Collection[int], counts: Counter[int], crc: RunningCrc,
                ) -> Iterator[StoredMessage]:
        """Yield messages in the order of their times; read each chunk when it is due."""
        offsets, lengths, times, _ = self._chunks
        waiting = iter(sorted(range(len(times)), key=times.__getitem__))
        i_next = next(waiting, None)
        # For each chunk in memory: log time of its next message, ns; its index; that message; the
        # messages after it. The index is unique, so that messages are never compared.
        heap: list[tuple[int, int, StoredMessage, Iterator[StoredMessage]]] = []

        def add(i_chunk: int, messages: Iterator[StoredMessage]) -> None:
            if (first := next(messages, None)) is not None:
                heapq.heappush(heap, (first[1], i_chunk, first, messages))

        if self._has_loose_messages:
            add(-1, self._loose(selected, counts))
        while heap or i_next is not None:
            if i_next is not None and (not heap or times[i_next] <= heap[0][0]):
                head = Head(Opcode.CHUNK, offsets[i_next], lengths[i_next])
                add(i_next, self._held(self._load(head, selected, counts, crc), head))
                i_next = next(waiting, None)
                continue
            _, i_chunk, message, others = heapq.heappop(heap)
            yield message
            add(i_chunk, others)

    def _held(self, loaded: LoadedChunk, head: Head) -> Iterator[StoredMessage]:
        """Yield the messages of a chunk; count its size as long as it is in memory."""
        self._n_held += loaded.n_bytes
        limit = _MAX_OVERLAP * self._file.limits.n_bytes
        if self._n_held > limit:
            raise too_large(f'{self._file.name}: chunk at byte {head.offset}',
                            'chunks that overlap in time', limit)
        yield from loaded.in_order()
        self._n_held -= loaded.n_bytes

    def _load(self, head: Head, selected: Collection[int], counts: Counter[int],
              crc: RunningCrc | None) -> LoadedChunk:
        """Read a chunk, check all of its records, and note the selected messages."""
        chunk = self._file.chunk_head(head)
        data = self._file.read(head.offset, HEAD.size + head.length)
        if crc is not None:
            crc.add(head.offset, data)
        loaded = LoadedChunk(self._file.records_of(head, chunk, memoryview(data)[HEAD.size:]))
        try:
            for opcode, content in loaded.scan(chunk, selected, counts):
                self._enter(opcode, content, head.offset)
            if not counts.keys() <= self._channels.keys():
                raise ValueError('a message of an unknown topic')
        except BagError:
            raise
        except (struct.error, ValueError) as error:
            raise damaged(f'{self._file.name}: chunk at byte {head.offset}',
                          str(error)) from error
        return loaded

    def _loose(self, selected: Collection[int], counts: Counter[int]) -> Iterator[StoredMessage]:
        """
        Yield the messages outside of chunks.

        :raises BagError: if they are not in the order of their log times.
        """
        before_ns = 0
        for head in self._file.heads():
            if head.opcode == Opcode.DATA_END:
                return
            if head.opcode != Opcode.MESSAGE:
                continue
            if head.length < LEAST_MESSAGE_BYTES:
                raise self._file.error(head.offset, 'no message')
            _, _, number, _, log_ns, _ = MESSAGE_HEAD.unpack(
                self._file.read(head.offset, MESSAGE_HEAD.size))
            counts[number] += 1
            if number not in self._channels:
                raise self._file.error(head.offset, 'a message of an unknown topic')
            if log_ns < before_ns:
                raise BagError(f'{self._file.name}: byte {head.offset}',
                               'messages outside of chunks that are not in the order of their '
                               'times', 'that order, as `state_sensor repair` restores it')
            before_ns = log_ns
            if number in selected:
                yield number, log_ns, self._file.read(
                    head.offset + MESSAGE_HEAD.size, head.length - LEAST_MESSAGE_BYTES)


def _is_new(records: dict[int, Record], record: Record) -> bool:
    """Store a record by its number, unless it is there."""
    stored = records.setdefault(record.id, record)
    if stored != record:
        raise ValueError(f'two {type(record).__name__.lower()}s of the number {record.id}')
    return stored is record


def topic_of(channel: Channel, schema: Schema | None) -> StoredTopic:
    """Return the topic of a channel; ``channel``: channel, with the metadata of rosbag2."""
    schema = schema or Schema(0, '', '', '')
    return StoredTopic(
        channel.topic, schema.name, schema.definition, schema.encoding,
        channel.metadata.get('topic_type_hash', ''), channel.encoding,
        channel.metadata.get('offered_qos_profiles', ''))

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The messages of an MCAP file in the order of their log times, each of them checked.

May know: MCAP, what rosbag2 puts there. Must not know: types of messages. The indexes of the file
are not used: its records are read in their order, and must agree with what the summary says.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator
import heapq
from pathlib import Path
import struct
from typing import TypeVar

from state_sensor_ros.recordings.storage.bag_limits import BagError, BagLimits, damaged, too_large
from state_sensor_ros.recordings.storage.mcap_file import McapFile, RunningCrc
from state_sensor_ros.recordings.storage.mcap_records import (
    CHANNEL,
    Channel,
    CHUNK,
    ChunkHead,
    DATA_END,
    FOOTER_CRC_AT,
    HEAD,
    Head,
    HEADER,
    LEAST_MESSAGE_BYTES,
    MAGIC,
    MESSAGE,
    MESSAGE_HEAD,
    parse_channel,
    parse_crc,
    parse_footer,
    parse_schema,
    parse_statistics,
    profile_of,
    SCHEMA,
    Schema,
    STATISTICS,
    Statistics,
)
from state_sensor_ros.recordings.storage.storage_file import Message, StoredTopic

PROFILE = 'ros2'
# Chunks that overlap in time are in memory together, up to this many times the size of one.
_MAX_OVERLAP = 4
# Enough for bags of hundreds of gigabytes.
_MAX_CHUNKS = 2**20

Parsed = TypeVar('Parsed')


class McapReader:
    """
    Read one file.

    :param path: of the file; open until :meth:`close`.
    :param name: of the file in messages.
    :param limits: what may be read at once.
    :ivar topics: by the number that they have in this file.
    :ivar counts: of messages, by the same.
    :raises BagError: where the file is damaged or too large.
    :raises OSError: where it cannot be read.
    """

    def __init__(self, path: Path, name: str, limits: BagLimits) -> None:
        self._file = McapFile(path, name, limits)
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._n_definition_bytes = 0
        # Whether all channels are known: another one is a fault then.
        self._is_complete = False
        # Of each chunk: offset, length of its content, first log time, ns.
        self._chunks = array('Q'), array('Q'), array('Q')
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
        """Close the file; closing twice is quiet."""
        self._file.close()

    def messages(self, wanted: Collection[int]) -> Iterator[Message]:
        """
        Yield messages in the order of their log times.

        :param wanted: numbers of topics.
        :raises BagError: where the file is damaged; at its end, where messages are missing.
        """
        counts: Counter[int] = Counter()
        crc = RunningCrc(self._file)
        self._n_held = 0
        yield from self._merged(wanted, counts, crc)
        if counts != self.counts:
            raise damaged(self._file.name, f'{counts.total()} messages where the summary says '
                          f'{self.counts.total()}, or others')
        if self._data_end is not None and (expected := self._parsed(self._data_end, parse_crc)):
            self._check_crc(crc, self._data_end.offset, expected)

    def _survey(self) -> Statistics | None:
        """Walk over all records; note where chunks are, read the rest but messages."""
        file = self._file
        if file.read(0, min(len(MAGIC), file.size)) != MAGIC:
            raise damaged(file.name, 'no MCAP')
        heads = file.heads()
        head = next(heads)
        if head.opcode != HEADER or self._parsed(head, profile_of) != PROFILE:
            raise file.error(head.offset, f'no header of the profile {PROFILE}')
        statistics = None
        for head in heads:
            if head.opcode in (SCHEMA, CHANNEL):
                self._enter(head.opcode, file.content(head), head.offset)
            elif head.opcode == STATISTICS:
                statistics = self._parsed(head, parse_statistics)
            elif self._data_end is not None:
                continue  # in the summary
            elif head.opcode == CHUNK:
                self._note_chunk(head)
            elif head.opcode == MESSAGE:
                self._has_loose_messages = True
            elif head.opcode == DATA_END:
                self._data_end = head
        self._check_footer(head)
        return statistics

    def _note_chunk(self, head: Head) -> None:
        offsets, lengths, times = self._chunks
        if len(offsets) == _MAX_CHUNKS:
            raise BagError(self._file.name, f'more than {_MAX_CHUNKS} chunks', 'no more than that')
        offsets.append(head.offset)
        lengths.append(head.length)
        times.append(self._file.chunk_head(head).first_ns)

    def _check_footer(self, footer: Head) -> None:
        file = self._file
        if file.size != footer.end + len(MAGIC) or file.read(footer.end, len(MAGIC)) != MAGIC:
            raise file.error(footer.end, 'something else than the end of an MCAP file')
        summary, crc = self._parsed(footer, parse_footer)
        begin = summary or footer.offset if self._data_end is None else self._data_end.end
        if summary and summary != begin:
            raise file.error(footer.offset, f'a summary said to be at byte {summary}')
        if crc:
            self._check_crc(RunningCrc(file, begin), footer.offset + FOOTER_CRC_AT, crc)

    def _check_crc(self, crc: RunningCrc, end: int, expected: int) -> None:
        found = crc.up_to(end)
        if found != expected:
            raise self._file.error(end, f'the CRC-32 {found:08x} of what is before it in place of '
                                        f'{expected:08x}')

    def _parsed(self, head: Head, parse: Callable[[bytes], Parsed]) -> Parsed:
        """Parse the content of a record."""
        try:
            return parse(self._file.content(head))
        except ValueError as error:
            raise self._file.error(head.offset, f'a damaged record ({error})') from error

    def _enter(self, opcode: int, content: bytes | memoryview, offset: int) -> None:
        """Note a schema or a channel; one that is known must be the same."""
        try:
            is_known = self._is_known_schema(parse_schema(content)) if opcode == SCHEMA \
                else self._is_known_channel(parse_channel(content))
        except ValueError as error:
            raise self._file.error(offset, f'a damaged record ({error})') from error
        if not is_known:
            self._n_definition_bytes += len(content)
            limit = self._file.limits.n_bytes
            if self._is_complete:
                raise self._file.error(offset, 'a topic that the summary does not name')
            if self._n_definition_bytes > limit:
                raise too_large(self._file.name, 'definitions', limit)

    def _is_known_schema(self, schema: Schema) -> bool:
        known = self._schemas.setdefault(schema.id, schema)
        if known != schema:
            raise ValueError(f'two schemas of the number {schema.id}')
        return known is not schema

    def _is_known_channel(self, channel: Channel) -> bool:
        known = self._channels.setdefault(channel.id, channel)
        if known != channel:
            raise ValueError(f'two channels of the number {channel.id}')
        return known is not channel

    def _counts(self, statistics: Statistics | None) -> Counter[int]:
        """Return how many messages each topic has; where the summary is silent, count them."""
        if statistics is not None and statistics.n_channels == len(self._channels) \
                and statistics.n_schemas == len(self._schemas) \
                and statistics.n_messages == sum(statistics.counts.values()):
            return Counter(statistics.counts)
        counts: Counter[int] = Counter()
        for offset, length, _ in zip(*self._chunks, strict=True):
            self._load(Head(CHUNK, offset, length), (), counts, None)
        for _ in self._loose((), counts):
            pass
        return counts

    def _merged(self, wanted: Collection[int], counts: Counter[int], crc: RunningCrc,
                ) -> Iterator[Message]:
        """Yield messages in the order of their times; read each chunk when its time comes."""
        offsets, lengths, times = self._chunks
        waiting = iter(sorted(range(len(times)), key=times.__getitem__))
        i_next = next(waiting, None)
        # Of each chunk that is in memory: its next message, its place in the file, the others.
        heap: list[tuple[int, int, Message, Iterator[Message]]] = []

        def add(place: int, messages: Iterator[Message]) -> None:
            if (first := next(messages, None)) is not None:
                heapq.heappush(heap, (first[1], place, first, messages))

        if self._has_loose_messages:
            add(-1, self._loose(wanted, counts))
        while heap or i_next is not None:
            if i_next is not None and (not heap or times[i_next] <= heap[0][0]):
                head = Head(CHUNK, offsets[i_next], lengths[i_next])
                add(i_next, self._held(self._load(head, wanted, counts, crc), head))
                i_next = next(waiting, None)
                continue
            _, place, message, others = heapq.heappop(heap)
            yield message
            add(place, others)

    def _held(self, loaded: _Loaded, head: Head) -> Iterator[Message]:
        """Yield the messages of a chunk, of which not too many may be in memory at a time."""
        self._n_held += loaded.n_bytes
        limit = _MAX_OVERLAP * self._file.limits.n_bytes
        if self._n_held > limit:
            raise too_large(f'{self._file.name}: chunk at byte {head.offset}',
                            'chunks that overlap in time', limit)
        yield from loaded.in_order()
        self._n_held -= loaded.n_bytes

    def _load(self, head: Head, wanted: Collection[int], counts: Counter[int],
              crc: RunningCrc | None) -> _Loaded:
        """Read a chunk, check all of its records, and find the wanted messages."""
        chunk = self._file.chunk_head(head)
        data = self._file.read(head.offset, HEAD.size + head.length)
        if crc is not None:
            crc.add(head.offset, data)
        loaded = _Loaded(self._file.records_of(head, chunk, memoryview(data)[HEAD.size:]))
        try:
            for opcode, content in loaded.scan(chunk, wanted, counts):
                self._enter(opcode, content, head.offset)
            if not counts.keys() <= self._channels.keys():
                raise ValueError('a message of an unknown topic')
        except (BagError, struct.error, ValueError) as error:
            if isinstance(error, BagError):
                raise
            raise damaged(f'{self._file.name}: chunk at byte {head.offset}',
                          str(error)) from error
        return loaded

    def _loose(self, wanted: Collection[int], counts: Counter[int]) -> Iterator[Message]:
        """Yield the messages outside of chunks, which must be in the order of their times."""
        before_ns = 0
        for head in self._file.heads():
            if head.opcode == DATA_END:
                return
            if head.opcode != MESSAGE:
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
            if number in wanted:
                yield number, log_ns, self._file.read(
                    head.offset + MESSAGE_HEAD.size, head.length - LEAST_MESSAGE_BYTES)


class _Loaded:
    """
    A chunk in memory.

    :param records: all of it.
    """

    def __init__(self, records: memoryview) -> None:
        self._records = records
        self.n_bytes = len(records)
        # Of the wanted messages: log times, ns, and offsets.
        self._times, self._places = array('Q'), array('Q')

    def scan(self, chunk: ChunkHead, wanted: Collection[int], counts: Counter[int],
             ) -> Iterator[tuple[int, memoryview]]:
        """
        Walk over all records and note the wanted messages.

        :returns: opcode and content of schemas and channels.
        :raises ValueError: where there is something else; struct.error likewise.
        """
        records, unpack = self._records, MESSAGE_HEAD.unpack_from
        first_ns, last_ns = chunk.first_ns, chunk.last_ns
        at, end = 0, len(records)
        while at < end:
            if records[at] == MESSAGE:
                _, length, number, _, log_ns, _ = unpack(records, at)
                if length < LEAST_MESSAGE_BYTES:
                    raise ValueError('a message that is cut')
                if not first_ns <= log_ns <= last_ns:
                    raise ValueError(f'a log time of {log_ns} ns, which its head excludes')
                counts[number] += 1
                if number in wanted:
                    self._times.append(log_ns)
                    self._places.append(at)
            else:
                opcode, length = HEAD.unpack_from(records, at)
                if opcode in (SCHEMA, CHANNEL):
                    yield opcode, records[at + HEAD.size:at + HEAD.size + length]
                elif not opcode:
                    raise ValueError('no record in it')
            at += HEAD.size + length
        if at != end:
            raise ValueError('a record that is longer than the chunk')

    def in_order(self) -> Iterator[Message]:
        """Yield the wanted messages in the order of their log times."""
        times, records = self._times, self._records
        order: Collection[int] = range(len(times))
        if any(map(int.__gt__, times, times[1:])):
            order = sorted(order, key=times.__getitem__)
        for i in order:
            at = self._places[i]
            _, length, number, *_ = MESSAGE_HEAD.unpack_from(records, at)
            data = records[at + MESSAGE_HEAD.size:at + HEAD.size + length]
            yield number, times[i], bytes(data)


def topic_of(channel: Channel, schema: Schema | None) -> StoredTopic:
    """Return what a channel and the schema of its messages say of a topic."""
    schema = schema or Schema(0, '', '', '')
    return StoredTopic(
        channel.topic, schema.name, schema.definition, schema.encoding,
        channel.metadata.get('topic_type_hash', ''), channel.encoding,
        channel.metadata.get('offered_qos_profiles', ''))

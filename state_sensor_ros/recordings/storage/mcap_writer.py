# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""MCAP files as rosbags writes them, in a third of the time, and with the CRCs it leaves zero."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
import io
from itertools import accumulate, chain
from pathlib import Path
import struct
from zlib import crc32

import numpy as np
import numpy.typing as npt
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2.enums import CompressionMode
from rosbags.rosbag2.storage_mcap import McapWriter, PendingChunk, Schema, write_schema

from state_sensor_ros.recordings.storage.crc_combination import combined_crc
from state_sensor_ros.recordings.storage.mcap_records import (
    CRC,
    FOOTER_RECORD,
    HEAD,
    INDEX_HEAD,
    LEAST_MESSAGE_BYTES,
    MAGIC,
    MESSAGE_HEAD,
    Opcode,
)

# Names of the languages of definitions.
ENCODINGS = {MessageDefinitionFormat.MSG: 'ros2msg', MessageDefinitionFormat.IDL: 'ros2idl',
             MessageDefinitionFormat.NONE: ''}
_MAX_TIME_NS = 2**63 - 1
# A chunk up to its data: head; first and last log time, size, CRC-32, the length 0 of the name of
# its compression, size.
_CHUNK_HEAD = struct.Struct('<BQQQQIIQ')
# Each chunk has an index of each topic in it: with hundreds of topics, fewer chunks are less work.
_CHUNK_BYTES = 4 * 1024 * 1024
# As MESSAGE_HEAD, for numpy.
_MESSAGE_HEADS = np.dtype([('opcode', 'u1'), ('length', '<u8'), ('channel', '<u2'),
                           ('sequence', '<u4'), ('log', '<u8'), ('publish', '<u8')])


class _FrameLayout:
    """
    The heads of the messages of one log time, and where the messages begin.

    A frame has the topics and sizes of the frame before in most cases: its heads differ in the
    time only.

    :param channels: of the messages.
    :param sizes: of their data, bytes.
    """

    def __init__(self, channels: list[int], sizes: list[int]) -> None:
        self.channels, self.sizes = channels, sizes
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
        """Return where the messages begin, uint64 each, the first of them at ``offset``."""
        return (self._begins + np.uint64(offset)).tobytes()


class _MessageIndex:
    """The channel, log time and offset of each message of a chunk, in their order."""

    def __init__(self) -> None:
        self._channels, self._times, self._offsets = array('H'), array('Q'), array('Q')

    def add(self, channel: int, timestamp: int, offset: int) -> None:
        """Add a message."""
        self._channels.append(channel)
        self._times.append(timestamp)
        self._offsets.append(offset)

    def add_frame(self, layout: _FrameLayout, timestamp: int, offset: int) -> None:
        """Add the messages of a frame."""
        self._channels += layout.packed_channels
        self._times += array('Q', [timestamp]) * len(layout.channels)
        self._offsets.frombytes(layout.begins(offset))

    def by_channel(self) -> list[tuple[int, bytes]]:
        """
        Return each channel with its entries, a time and an offset each, 16 bytes.

        The channels are in the order of their first messages.
        """
        channels = np.frombuffer(self._channels, np.uint16)
        order = np.argsort(channels, kind='stable')
        entries = np.column_stack((np.frombuffer(self._times, '<u8'),
                                   np.frombuffer(self._offsets, '<u8')))[order]
        begins = np.flatnonzero(np.diff(channels[order], prepend=-1))
        ends = np.append(begins[1:], len(order))
        firsts = order[begins]
        return [(int(channels[firsts[i]]), entries[begins[i]:ends[i]].tobytes())
                for i in np.argsort(firsts).tolist()]


class McapStorageWriter(McapWriter):
    """
    Writer of an MCAP file.

    The heads of all messages of a frame are packed with one call, and the buffer of a chunk is
    written without a copy and used again.

    :param path: folder of the bag; the file gets its name and ``.mcap``.
    :raises OSError: where the file cannot be written, by all methods.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, CompressionMode.NONE)
        self._index = _MessageIndex()
        self._layout = _FrameLayout([], [])
        self.bio.flush()
        # CRC-32 of the bytes written to the file.
        self._crc = crc32(self.path.read_bytes())

    def add_msgtype(self, connection: Connection) -> None:
        """
        Write the definition of a type, an empty one where there is none.

        :param connection: a topic of the type.
        """
        self.schemas.append(Schema(len(self.schemas) + 1, connection.msgtype,
                                   ENCODINGS[connection.msgdef.format], connection.msgdef.data))
        write_schema(self.chunk.bio, self.schemas[-1])

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview,
              publish_ns: int | None = None, sequence: int = 0) -> None:
        """
        Write a message.

        :param connection: its topic.
        :param timestamp: its log time, ns.
        :param data: serialised.
        :param publish_ns: its time of publishing, ns; None for the log time.
        :param sequence: its number at the publisher, 0 where unknown.
        """
        self._note_time(timestamp)
        number, file = connection.id, self.chunk.bio
        offset = file.tell()
        self.channel_stats[number] += 1
        self._index.add(number, timestamp, offset)
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

        :param connections: the topic of each.
        :param timestamp: their log time and time of publishing, ns.
        :param data: of each, serialised.
        """
        channels, sizes = [connection.id for connection in connections], list(map(len, data))
        if channels != self._layout.channels or sizes != self._layout.sizes:
            self._layout = _FrameLayout(channels, sizes)
        layout, file = self._layout, self.chunk.bio
        offset = file.tell()
        if offset + layout.n_bytes > _CHUNK_BYTES:
            # The chunk ends with one of these messages.
            for connection, own in zip(connections, data, strict=True):
                self.write(connection, timestamp, own)
            return
        self._note_time(timestamp)
        stats = self.channel_stats
        for channel in channels:
            stats[channel] += 1
        self._index.add_frame(layout, timestamp, offset)
        file.writelines(chain.from_iterable(zip(layout.heads(timestamp), data, strict=True)))

    def _note_time(self, timestamp: int) -> None:
        chunk = self.chunk
        if timestamp < chunk.message_start_time:
            chunk.message_start_time = timestamp
            self.message_start_time = min(timestamp, self.message_start_time)
        if timestamp > chunk.message_end_time:
            chunk.message_end_time = timestamp
            self.message_end_time = max(timestamp, self.message_end_time)

    def close_chunk(self) -> None:
        """Write the chunk and an index for each of its channels; begin a new one."""
        chunk, begin = self.chunk, self.bio.tell()
        times = chunk.message_start_time, chunk.message_end_time
        size = chunk.bio.tell()
        records = chunk.bio.getbuffer()[:size]
        crc = crc32(records)
        self._append(_CHUNK_HEAD.pack(Opcode.CHUNK, _CHUNK_HEAD.size - HEAD.size + size,
                                      *times, size, crc, 0, size))
        # The sum over the file needs no second pass over the records.
        self._crc = combined_crc(self._crc, crc, size)
        self.bio.write(records)
        # The buffer cannot grow as long as a view of it exists.
        records.release()
        end = at = begin + _CHUNK_HEAD.size + size
        offsets: list[int] = []
        indices: list[bytes] = []
        channels = self._index.by_channel()
        for number, entries in channels:
            offsets += number, at
            indices += INDEX_HEAD.pack(
                Opcode.MESSAGE_INDEX, INDEX_HEAD.size - HEAD.size + len(entries), number,
                len(entries)), entries
            at += INDEX_HEAD.size + len(entries)
        self._append(b''.join(indices))
        # The chunk index, which is written into the summary.
        self.chunks.append(io.BytesIO())
        self.chunks[-1].write(struct.pack(
            f'<4QI{"HQ" * len(channels)}QI2Q', *times, begin, end - begin,
            10 * len(channels), *offsets, at - end, 0, size, size))
        chunk.bio.seek(0)
        self.chunk = PendingChunk(_MAX_TIME_NS, 0, chunk.bio, {})
        self._index = _MessageIndex()

    def _append(self, data: bytes) -> None:
        """Write to the file."""
        self._crc = crc32(data, self._crc)
        self.bio.write(data)

    def close(self, version: int, metadata: str) -> None:
        """
        Write the last chunk, the summary, and the CRCs of data section and summary.

        :param version: of metadata.yaml.
        :param metadata: its text.
        """
        if self.chunk.bio.tell():
            self.close_chunk()
        begin = self.bio.tell()
        super().close(version, metadata)
        with self.path.open('r+b') as file:
            file.seek(begin)
            tail = file.read()
            end = len(tail) - len(MAGIC)
            _, _, summary, _, _ = FOOTER_RECORD.unpack_from(tail, end - FOOTER_RECORD.size)
            # The data section ends with a record of its CRC, after which the summary begins.
            data_crc = crc32(tail[:summary - CRC.size - HEAD.size - begin], self._crc)
            file.seek(summary - CRC.size)
            file.write(CRC.pack(data_crc))
            file.seek(begin + end - CRC.size)
            file.write(CRC.pack(crc32(tail[summary - begin:end - CRC.size])))

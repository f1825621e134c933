# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The readable messages of an MCAP file that was cut or damaged, and of the files of a bag.

Records are read in the order of the file. An example with three kinds of damage::

    HEADER CHUNK INDEX CHUNK INDEX ######## CHUNK INDEX CHUNK| end of file
                       1           2                    3

1. A chunk that cannot be decompressed, or whose CRC-32 is wrong, is lost as a whole.
2. If no record is there, the next chunk is searched for at each byte: its sizes must agree.
3. A chunk that the file ends in is decompressed as far as possible; its whole messages are used.

A summary, if it can be read, provides the topics in advance and the number of all messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
import io
import mmap
import os
from pathlib import Path
import re
import struct
from typing import BinaryIO, TYPE_CHECKING

from state_sensor_ros import errors, texts
from state_sensor_ros.files import bag
from state_sensor_ros.files.input import zstd, ZSTD_MAGIC

if TYPE_CHECKING:
    from mcap.records import Channel, Chunk, Message, Schema

# The head of a record: opcode, length of the content.
_HEAD = struct.Struct('<BQ')
# Of a record of less than a terabyte: the first byte of a chunk.
_CANDIDATE = re.compile(rb'\x06(?=.{5}\x00\x00\x00)', re.DOTALL)
# The head of a chunk: of its fields, those before the compression, and the length of that.
_CHUNK_HEAD = struct.Struct('<BQQQQII')
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 0x02, 0x03, 0x04, 0x05, 0x06, 0x0F
_KNOWN_OPCODES = range(0x01, 0x10)


class _Salvage:
    """
    A damaged MCAP file.

    ``topics`` by number; ``losses`` descriptions of data that could not be read, and ``n_lost``
    number of messages that are lost, None if it is unknown, both complete after the last message.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        # The system reads what is used of a file of any size; it maps none without content.
        self._data: bytes | mmap.mmap = mmap.mmap(
            file.fileno(), 0, access=mmap.ACCESS_READ) if self._size else b''
        self.topics: dict[int, bag.StoredTopic] = {}
        self._schemas: dict[int, Schema] = {}
        self.losses: list[str] = []
        self.n_lost: int | None = None
        self._n_found = self._n_unknown = 0

    def messages(self) -> Iterator[Message]:
        """Yield the messages of known topics in the order of the file."""
        n_messages = self._read_summary()
        at, opcode = len(bag.MCAP_MAGIC), 0
        while at < self._size and opcode not in (_DATA_END, _FOOTER):
            begin, end, n_before = at, self._end_of(at), len(self.losses)
            is_whole = 0 < end <= self._size
            at = end if is_whole else self._next_chunk(begin + 1)
            if is_whole or (end and at == self._size and self._data[begin] == _CHUNK):
                opcode = self._data[begin]
                yield from self._in_record(opcode, begin, end)
            if not is_whole and len(self.losses) == n_before:
                self.losses.append(f'{at - begin} bytes from byte {begin} on')
        if self._n_unknown:
            self.losses.append(f'{texts.counted(self._n_unknown, "message")} of unknown topics')
        if n_messages is not None:
            self.n_lost = max(n_messages - self._n_found, 0)
        if self.n_lost == 0:
            # The unreadable bytes held no messages.
            self.losses.clear()
        elif opcode not in (_DATA_END, _FOOTER) and not self.losses:
            self.losses.append('nothing that is in the file, which was not completed')

    def _read_summary(self) -> int | None:
        """Take the topics in the summary; return its number of messages, None without."""
        from mcap.records import Channel, Schema, Statistics
        from mcap.stream_reader import StreamReader
        try:
            self._file.seek(bag.summary_offset(self._file, self._size))
            summary = list(StreamReader(self._file, skip_magic=True,
                                        record_size_limit=self._size).records)
        except Exception:  # noqa: BLE001 the library raises anything
            return None
        self._schemas |= {each.id: each for each in summary if isinstance(each, Schema)}
        for record in summary:
            if isinstance(record, Channel):
                self._add(record)
        return next((record.message_count for record in summary
                     if isinstance(record, Statistics)), None)

    def _add(self, channel: Channel) -> None:
        """Add a topic with the hash of its type."""
        if channel.id in self.topics:
            return
        topic = bag.topic_of(channel, self._schemas.get(channel.schema_id))
        self.topics[channel.id] = replace(topic, type_hash=topic.type_hash or (
            bag.hash_of_definition(topic.type_name, topic.definition)))

    def _end_of(self, at: int) -> int:
        """Return the offset after a record, also if the file ends in it; 0 if there is none."""
        head = self._data[at:at + _CHUNK_HEAD.size + 12]
        if len(head) < _HEAD.size:
            return 0
        opcode, length = _HEAD.unpack_from(head)
        if opcode == _CHUNK:
            # Its sizes must agree: it may have been found by chance.
            if len(head) < _CHUNK_HEAD.size + 12:
                return 0
            n_text = _CHUNK_HEAD.unpack_from(head)[-1]
            begin = _CHUNK_HEAD.size + n_text + 8
            n_bytes = int.from_bytes(head[begin - 8:begin], 'little')
            if n_text > 4 or _HEAD.size + length != begin + n_bytes:
                return 0
        return at + _HEAD.size + int(length) if opcode in _KNOWN_OPCODES else 0

    def _next_chunk(self, at: int) -> int:
        """Return the offset of the first chunk from an offset on, else the size of the file."""
        return next((match.start() for match in _CANDIDATE.finditer(self._data, at)
                     if self._end_of(match.start())), self._size)

    def _in_record(self, opcode: int, begin: int, end: int) -> Iterator[Message]:
        """Take the definitions in a record, and yield its messages; note a damaged one."""
        from mcap.data_stream import ReadDataStream
        from mcap.records import Channel, Chunk, Message, Schema
        from mcap.stream_reader import breakup_chunk
        if opcode not in (_SCHEMA, _CHANNEL, _MESSAGE, _CHUNK):
            return
        data, is_cut = self._data[begin:end], end > self._size
        try:
            chunk = Chunk('', data, 0, 0, 0, len(data)) if opcode != _CHUNK else \
                Chunk.read(ReadDataStream(io.BytesIO(data[_HEAD.size:])))
            # No serialized message begins as compressed ones do.
            records = [replace(record, data=zstd.decompress(record.data)) if isinstance(
                record, Message) and record.data.startswith(ZSTD_MAGIC) else record
                for record in breakup_chunk(self._without_end(chunk, begin) if is_cut else chunk,
                                            validate_crc=True)]
        except Exception as error:  # noqa: BLE001 damaged data can raise anything
            if not is_cut:
                reason = ' '.join(str(error).split()) or type(error).__name__
                self.losses.append(f'the record at byte {begin} ({reason})')
            return
        for record in records:
            if isinstance(record, Schema):
                self._schemas.setdefault(record.id, record)
            elif isinstance(record, Channel):
                self._add(record)
            elif isinstance(record, Message) and record.channel_id in self.topics:
                self._n_found += 1
                yield record
            else:
                self._n_unknown += 1

    def _without_end(self, chunk: Chunk, begin: int) -> Chunk:
        """Return the whole records of a chunk that is cut, as far as it can be decompressed."""
        data = chunk.data
        if chunk.compression == 'zstd':
            data = bytes(zstd.ZstdDecompressor().decompress(data))
        elif chunk.compression == 'lz4':
            from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]
            data = bytes(LZ4FrameDecompressor().decompress(data))
        at = after = 0
        while after <= len(data):
            at = after
            # At the end of the data that of a record beyond it.
            head = data[at:at + _HEAD.size].ljust(_HEAD.size, b'\xff')
            after += _HEAD.size + _HEAD.unpack(head)[1]
        if at < chunk.uncompressed_size:
            self.losses.append(f'the last {chunk.uncompressed_size - at} of '
                               f'{chunk.uncompressed_size} bytes in the chunk at byte {begin}')
        return replace(chunk, compression='', data=data[:at], uncompressed_crc=0)


class BagRepair:
    """
    A damaged or incomplete bag.

    ``losses`` descriptions of what could not be read, ``n_lost`` number of lost messages, None if
    it is unknown, and ``topics``, all complete after the last message.

    :param files: storage files in the order of time.
    """

    def __init__(self, files: list[Path]) -> None:
        self.losses: list[str] = []
        self.n_lost: int | None = 0
        self.topics: list[bag.StoredTopic] = []
        self._files = files

    def messages(self) -> Iterator[tuple[bag.StoredTopic, Message]]:
        """Yield all readable messages, file after file, each with its topic."""
        for file in self._files:
            where = f'{file.name}: ' if len(self._files) > 1 else ''
            with bag.plain_file(file) as (plain, fault), plain.open('rb') as opened:
                if fault:
                    self.losses.append(f'{where}the rest of {fault}')
                if opened.read(len(bag.SQLITE_MAGIC)) == bag.SQLITE_MAGIC:
                    raise errors.TrajectoryFormatError(
                        str(file), 'a database of SQLite', 'MCAP; the program sqlite3 has the '
                        'command .recover for its own files')
                with errors.importing('the repair of a bag'):
                    salvage = _Salvage(opened)
                    for message in salvage.messages():
                        yield salvage.topics[message.channel_id], message
            self.topics += salvage.topics.values()
            self.losses += [f'{where}{text}' for text in salvage.losses]
            self.n_lost = None if None in (self.n_lost, salvage.n_lost) \
                else (self.n_lost or 0) + (salvage.n_lost or 0)


def _is_storage(path: Path) -> bool:
    """Return whether a file is one of a bag, by its first bytes or, of MCAP, its last ones."""
    with path.open('rb') as file:
        begin = file.read(len(bag.SQLITE_MAGIC))
        file.seek(max(path.stat().st_size - len(bag.MCAP_MAGIC), 0))
        return begin.startswith((bag.MCAP_MAGIC, bag.SQLITE_MAGIC)) or (
            begin.startswith(ZSTD_MAGIC) and path.name.endswith(bag.COMPRESSED_SUFFIXES)
            ) or file.read() == bag.MCAP_MAGIC


def find_files(path: Path) -> list[Path]:
    """
    Return the storage files of a bag, in its folder or in one of those in it; none for no bag.

    :raises TrajectoryFormatError: if a folder has not the files of one bag.
    """
    if not path.is_dir():
        return [path] if _is_storage(path) else []
    # A bag that is being written is a folder in another one.
    folders = filter(Path.is_dir, (path, *path.glob('*'), *path.glob('*/*')))
    found = [files for folder in folders if (files := [
        file for file in bag.storage_files(folder) if _is_storage(file)])]
    if len(found) != 1:
        what = f'storage files of bags in {len(found)} folders' if found \
            else 'no storage file of a bag (.mcap)'
        raise errors.TrajectoryFormatError(str(path), what, 'the files of one bag')
    return found[0]

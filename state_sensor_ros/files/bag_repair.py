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
from contextlib import ExitStack
from dataclasses import replace
import io
import os
from pathlib import Path
import re
import shutil
import struct
from tempfile import TemporaryDirectory
from typing import BinaryIO, TYPE_CHECKING
from zlib import crc32

from state_sensor_ros.errors import importing, TrajectoryFormatError
from state_sensor_ros.files import bag
from state_sensor_ros.files.bag_writer import profiles_of
from state_sensor_ros.files.input import decompressed, zstd, ZSTD_MAGIC
from state_sensor_ros.texts import counted

if TYPE_CHECKING:
    from mcap.records import Channel, Chunk, Message, Schema

# The head of a record: opcode, length of the content.
_HEAD = struct.Struct('<BQ')
# The head of a chunk of less than a terabyte; of its fields, those before the compression.
_CANDIDATE = re.compile(rb'(?=\x06.{5}\x00\x00\x00)', re.DOTALL)
_CHUNK_HEAD = struct.Struct('<QQQII')
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _DATA_END = 0x02, 0x03, 0x04, 0x05, 0x06, 0x0F
_KNOWN_OPCODES = range(0x01, 0x10)
# Of the records in a chunk: their smallest size.
_LEAST_BYTES = {_SCHEMA: 14, _CHANNEL: 16, _MESSAGE: 22}
_BLOCK_BYTES = 1024 * 1024
_FORMATS = {bag.MCAP_MAGIC: 'mcap', bag.SQLITE_MAGIC: 'sqlite3', ZSTD_MAGIC: 'zstd'}
# A bag that is being written is a folder in another one.
_MAX_DEPTH = 3


class _Salvage:
    """
    A damaged MCAP file.

    ``topics`` by number; ``losses`` descriptions of data that could not be read, and ``n_lost``
    number of messages that are lost, None if it is unknown, both complete after the last message.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        self.topics: dict[int, bag.StoredTopic] = {}
        self._schemas: dict[int, Schema] = {}
        self.losses: list[str] = []
        self.n_lost: int | None = None
        self._n_found = self._n_unknown = 0
        self._is_complete = False

    def messages(self) -> Iterator[Message]:
        """Yield the messages of known topics in the order of the file."""
        n_messages = self._read_summary()
        at = len(bag.MCAP_MAGIC)
        while at < self._size and not self._is_complete:
            end = self._end_of(at)
            if end is not None:
                yield from self._in_record(at)
                at = end
                continue
            begin, n_before, at = at, len(self.losses), self._next_chunk(at + 1)
            if at == self._size:
                yield from self._in_cut_chunk(begin)
            if len(self.losses) == n_before:
                self.losses.append(f'{at - begin} bytes from byte {begin} on')
        if self._n_unknown:
            self.losses.append(f'{counted(self._n_unknown, "message")} of unknown topics')
        if n_messages is not None:
            self.n_lost = max(n_messages - self._n_found, 0)
        if self.n_lost == 0:
            # The unreadable bytes held no messages.
            self.losses.clear()
        elif not self._is_complete and not self.losses:
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
        """Add a topic with the hash of its type, and without a profile that cannot be parsed."""
        if channel.id in self.topics:
            return
        topic = bag.topic_of(channel, self._schemas.get(channel.schema_id))
        try:
            profiles_of(topic.qos)
        except ValueError:
            self.losses.append(f'the quality of service of {topic.name}')
            topic = replace(topic, qos='[]')
        self.topics[channel.id] = replace(topic, type_hash=topic.type_hash or (
            bag.hash_of_definition(topic.type_name, topic.definition)))

    def _read(self, at: int, n_bytes: int) -> bytes:
        self._file.seek(at)
        return self._file.read(n_bytes)

    def _end_of(self, at: int) -> int | None:
        """Return the offset after a record, None if there is none, or the file ends in it."""
        head = self._read(at, _HEAD.size)
        if len(head) < _HEAD.size:
            return None
        opcode, length = _HEAD.unpack(head)
        end = at + _HEAD.size + int(length)
        is_record = opcode in _KNOWN_OPCODES and end <= self._size and (
            opcode != _CHUNK or self._is_chunk(at))
        return end if is_record else None

    def _is_chunk(self, at: int) -> bool:
        """Return whether the sizes of a chunk agree, whether the file has all of it or not."""
        head = self._read(at, _HEAD.size + _CHUNK_HEAD.size + 12)
        if len(head) < _HEAD.size + _CHUNK_HEAD.size + 12:
            return False
        _, length = _HEAD.unpack_from(head)
        *_, n_text = _CHUNK_HEAD.unpack_from(head, _HEAD.size)
        begin = _CHUNK_HEAD.size + n_text + 8
        n_bytes = int.from_bytes(head[_HEAD.size + begin - 8:_HEAD.size + begin], 'little')
        return bool(n_text <= 4 and length == begin + n_bytes)

    def _next_chunk(self, at: int) -> int:
        """Return the offset of the first chunk from an offset on, else the size of the file."""
        while at < self._size:
            block = self._read(at, _BLOCK_BYTES)
            for match in _CANDIDATE.finditer(block):
                if self._is_chunk(at + match.start()):
                    return at + match.start()
            at += max(len(block) - _HEAD.size, 1)
        return self._size

    def _in_record(self, at: int) -> Iterator[Message]:
        """Yield the messages in the record at an offset; note a damaged chunk."""
        opcode, length = _HEAD.unpack(self._read(at, _HEAD.size))
        self._is_complete = opcode in (_DATA_END, _FOOTER)
        if opcode in _LEAST_BYTES:
            n_bytes = _HEAD.size + length
            yield from self._in_data(at, self._read(at, n_bytes), n_bytes)
        elif opcode == _CHUNK:
            try:
                data, chunk = self._chunk(at, length)
                if len(data) != chunk.uncompressed_size or chunk.uncompressed_crc not in (
                        0, crc32(data)):
                    raise ValueError('a wrong CRC-32')
            except Exception as error:  # noqa: BLE001 damaged data can raise anything
                self.losses.append(f'the record at byte {at} '
                                   f'({" ".join(str(error).split()) or type(error).__name__})')
            else:
                yield from self._in_data(at, data, len(data))

    def _in_cut_chunk(self, at: int) -> Iterator[Message]:
        """Yield the messages of a chunk that the file ends in, if a chunk begins there."""
        if self._is_chunk(at):
            try:
                data, chunk = self._chunk(at, self._size)
            except Exception:  # noqa: BLE001 damaged data can raise anything
                return
            yield from self._in_data(at, data, chunk.uncompressed_size)

    def _chunk(self, at: int, length: int) -> tuple[bytes, Chunk]:
        """Return the records of a chunk, as far as they can be decompressed, and the chunk."""
        from mcap.data_stream import ReadDataStream
        from mcap.records import Chunk
        chunk = Chunk.read(ReadDataStream(io.BytesIO(self._read(at + _HEAD.size, length))))
        data = chunk.data
        if chunk.compression == 'zstd':
            data = bytes(zstd.ZstdDecompressor().decompress(data))
        elif chunk.compression == 'lz4':
            from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]
            data = bytes(LZ4FrameDecompressor().decompress(data))
        return data, chunk

    def _in_data(self, at: int, data: bytes, size: int) -> Iterator[Message]:
        """Yield the messages of the whole records of a chunk; note what is missing of its size."""
        begin = 0
        while begin + _HEAD.size <= len(data):
            opcode, length = _HEAD.unpack_from(data, begin)
            end = begin + _HEAD.size + length
            if end > len(data) or length < _LEAST_BYTES.get(opcode, 0):
                break
            try:
                message = self._parsed(opcode, data[begin + _HEAD.size:end])
            except Exception:  # noqa: BLE001 damaged data can raise anything
                break
            if message is not None:
                yield message
            begin = end
        if begin < size:
            self.losses.append(
                f'the last {size - begin} of {size} bytes in the chunk at byte {at}')

    def _parsed(self, opcode: int, content: bytes) -> Message | None:
        """Take a definition; return a message of a known topic."""
        from mcap.data_stream import ReadDataStream
        from mcap.records import Channel, Message, Schema
        stream = ReadDataStream(io.BytesIO(content))
        if opcode == _SCHEMA:
            schema = Schema.read(stream)
            self._schemas.setdefault(schema.id, schema)
        elif opcode == _CHANNEL:
            self._add(Channel.read(stream))
        elif opcode == _MESSAGE:
            message: Message = Message.read(stream, len(content))
            if message.channel_id not in self.topics:
                self._n_unknown += 1
                return None
            self._n_found += 1
            # No serialized message begins with these bytes.
            if message.data.startswith(ZSTD_MAGIC):
                try:
                    return replace(message, data=zstd.decompress(message.data))
                except zstd.ZstdError as error:
                    self.losses.append(f'a message that is not whole ({error})')
                    return None
            return message
        return None


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
            with ExitStack() as stack:
                opened: BinaryIO = stack.enter_context(file.open('rb'))
                if format_of(file) == 'zstd':
                    folder = stack.enter_context(TemporaryDirectory(prefix='state_sensor_'))
                    source, compressed = decompressed(opened)
                    opened = stack.enter_context(Path(folder, file.name).open('w+b'))
                    shutil.copyfileobj(source, opened)
                    if compressed is not None and compressed.fault:
                        self.losses.append(f'{where}the rest of {compressed.fault}')
                if opened.seek(0) or opened.read(len(bag.SQLITE_MAGIC)) == bag.SQLITE_MAGIC:
                    raise TrajectoryFormatError(
                        str(file), 'a database of SQLite', 'MCAP; the program sqlite3 has the '
                        'command .recover for its own files')
                with importing('the repair of a bag'):
                    salvage = _Salvage(opened)
                    for message in salvage.messages():
                        yield salvage.topics[message.channel_id], message
            self.topics += salvage.topics.values()
            self.losses += [f'{where}{text}' for text in salvage.losses]
            self.n_lost = None if None in (self.n_lost, salvage.n_lost) \
                else (self.n_lost or 0) + (salvage.n_lost or 0)


def format_of(path: Path) -> str:
    """Return the format of a file by its first bytes, of an MCAP file also by its last ones."""
    # Returns ``mcap``, ``sqlite3``, ``zstd`` of one of them, or ``''`` for any other.
    with path.open('rb') as file:
        begin = file.read(max(map(len, _FORMATS)))
        found = next((name for magic, name in _FORMATS.items() if begin.startswith(magic)), '')
        if found == 'zstd' and not path.name.endswith(bag.COMPRESSED_SUFFIXES):
            return ''
        if not found and len(begin) > len(bag.MCAP_MAGIC):
            file.seek(-len(bag.MCAP_MAGIC), os.SEEK_END)
            found = 'mcap' if file.read() == bag.MCAP_MAGIC else ''
    return found


def find_files(path: Path) -> list[Path]:
    """
    Return the storage files of a bag, in its folder or in one of those in it; none for no bag.

    :raises TrajectoryFormatError: if a folder has not the files of one bag.
    """
    if not path.is_dir():
        return [path] if format_of(path) else []
    found = [files for folder in (path, *(Path(where, name) for where, names, _ in os.walk(path)
                                          for name in names))
             if len(folder.relative_to(path).parts) < _MAX_DEPTH
             and (files := [file for file in bag.storage_files(folder) if format_of(file)])]
    if len(found) != 1:
        what = f'storage files of bags in {len(found)} folders' if found \
            else 'no storage file of a bag (.mcap)'
        raise TrajectoryFormatError(str(path), what, 'the files of one bag')
    return found[0]

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
An MCAP file to which a thread compresses and writes chunks, in their order.

The compressor does not hold the interpreter lock: the thread that collects messages goes on.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
import io
from pathlib import Path
from queue import SimpleQueue
import struct
import sys
import threading
from zlib import crc32

from lz4.frame import compress as lz4_compress  # type: ignore[import-untyped]
import numpy as np

from state_sensor_ros.files.storage.mcap_records import (
    HEAD,
    INDEX_ENTRY_BYTES,
    INDEX_HEAD,
    Opcode,
    record,
    text_field,
)

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

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

    :param path: path of the new file.
    :param compression: one of :data:`COMPRESSIONS`.
    :ivar chunk_indices: records of the summary, for the written chunks.
    :ivar counts: numbers of the written messages by channel.
    :ivar n_bytes: size of the file so far.
    :ivar crc: CRC-32 of what :meth:`append` and the chunks have written; may be set to 0.
    :raises OSError: if the file cannot be written, by all methods but :meth:`close`.
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
        """Write to the file."""
        for part in parts:
            self.crc = crc32(part, self.crc)
            self._file.write(part)
            self.n_bytes += len(part)

    def put(self, chunk: OpenChunk) -> OpenChunk:
        """
        Hand a chunk over to be written; wait while two others are.

        :param chunk: collected chunk.
        :returns: an empty chunk to collect the next records in.
        """
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
        """Write the chunk and an index for each of its channels."""
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

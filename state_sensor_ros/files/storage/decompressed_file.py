# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The decompressed content of a gzip or zstd file, read in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
import io
import os
from pathlib import Path
from typing import BinaryIO, cast, TYPE_CHECKING

from state_sensor_ros.files.storage.compressed_form import compression_of
from state_sensor_ros.files.storage.decompression import DecompressedStream

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PIECE_BYTES = 64 * 1024
_BLOCK_BYTES = 256 * 1024
_NO_LIMIT = 2 ** 62
# More than the white space before the first frame of a trajectory.
_HEAD_BYTES = 4096


class DecompressedFile(io.RawIOBase):
    """
    The decompressed content of a file, up to its end or to the first fault.

    A seek backwards decompresses from the beginning.

    :param source: compressed file, at its beginning; it stays open.
    :param compression: ``gzip`` or ``zstd``.
    :ivar n_read: compressed bytes read so far.
    """

    def __init__(self, source: BinaryIO, compression: str) -> None:
        self._source, self._compression = source, compression
        self._begin()

    @property
    def fault(self) -> str:
        """Return a description of the fault after the last byte read, ``''`` for none."""
        return self._stream.fault

    @property
    def is_cut(self) -> bool:
        """Whether the fault is a missing end."""
        return self._stream.is_cut

    def _begin(self) -> None:
        self.n_read = self._position = 0
        self._block = memoryview(b'')
        self._stream = DecompressedStream(self._pieces(), self._compression, _NO_LIMIT,
                                          block_bytes=_BLOCK_BYTES)
        self._blocks = iter(self._stream)

    def _pieces(self) -> Iterator[memoryview]:
        while piece := self._source.read(_PIECE_BYTES):
            self.n_read += len(piece)
            yield memoryview(piece)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether the compressed file is seekable."""
        return self._source.seekable()

    def tell(self) -> int:
        """Return the position in the decompressed content."""
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read up to the length of ``buffer``; 0 at the end and at a fault."""
        target = memoryview(buffer).cast('B')
        while not self._block:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._block = memoryview(block)
        n_bytes = min(len(target), len(self._block))
        target[:n_bytes] = self._block[:n_bytes]
        self._block = self._block[n_bytes:]
        self._position += n_bytes
        return n_bytes

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """
        Go to a position; of those from the end, only to the end itself.

        :param offset: offset, bytes.
        :param whence: origin of the offset, as for :meth:`io.IOBase.seek`.
        """
        target = offset + (self._position if whence == os.SEEK_CUR else 0)
        if whence == os.SEEK_END:
            target = _NO_LIMIT
        if target < self._position:
            self._source.seek(0)
            self._begin()
        skipped = bytearray(_BLOCK_BYTES)
        while self._position < target and self.readinto(
                memoryview(skipped)[:target - self._position]):
            pass
        return self._position


def decompressed(file: BinaryIO) -> tuple[BinaryIO, DecompressedFile | None]:
    """
    Return the content of a file that may be compressed.

    :param file: file, open for reading, at its beginning; need not be seekable.
    :returns: the file to read from, and the decompression, None if it is not compressed.
    """
    if not isinstance(file, io.BufferedReader):
        return file, None
    compression = compression_of(file.peek(4))
    if not compression:
        return file, None
    raw = DecompressedFile(cast(BinaryIO, file), compression)
    return io.BufferedReader(raw, _BLOCK_BYTES), raw


def is_compressed_trajectory(path: Path) -> bool:
    """
    Return whether a file is compressed and its content begins like JSON.

    :param path: path of a file or a folder.
    :raises OSError: if it cannot be read.
    """
    if path.is_dir():
        return False
    with path.open('rb') as file:
        content, compressed = decompressed(file)
        return compressed is not None and content.read(_HEAD_BYTES).lstrip(
            b'\xef\xbb\xbf \t\r\n').startswith((b'[', b'{'))

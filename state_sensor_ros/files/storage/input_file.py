# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
An input before it is read: its kind and position, and its decompression up to a size limit.

The memory depends on the limit, not on the size that the compressed data declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import io
import os
from pathlib import Path
import stat
import sys
from typing import BinaryIO, cast, Protocol, TYPE_CHECKING
import zlib

from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]

from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files.storage.storage_file import damaged, too_large

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BUFFER_BYTES = 64 * 1024
_KINDS = {stat.S_IFIFO: 'a pipe', stat.S_IFSOCK: 'a socket', stat.S_IFCHR: 'a device',
          stat.S_IFBLK: 'a device'}
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
# Magic numbers of a frame without content, which may precede the others: 0x184d2a50 to 0x184d2a5f.
_SKIPPABLE_BEGIN, _SKIPPABLE_END = 0x50, b'\x2a\x4d\x18'
GZIP_MAGIC = b'\x1f\x8b'

_READ_BYTES = 64 * 1024
_BLOCK_BYTES = 256 * 1024
_NO_LIMIT = 2 ** 62
# More than the white space before the first frame of a trajectory.
_HEAD_BYTES = 4096


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# Argument of zlib.decompressobj() for data with the header and the CRC of gzip.
_GZIP_WINDOW = 31
# A decompressor returns nothing of a piece with a fault.
_PIECE_BYTES = 64 * 1024
_FRAME_HEADER_BYTES = 18


class _PositionedFile(io.RawIOBase):
    """
    A regular file.

    :param descriptor: descriptor, open for reading; closed with this object.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._position = 0

    def fileno(self) -> int:
        """Return the descriptor; its own position is not used."""
        return self._descriptor

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """
        Go to a position.

        :param offset: offset, bytes.
        :param whence: origin of the offset, as for :meth:`io.IOBase.seek`.
        """
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence)
        if begin is None:
            begin = os.fstat(self._descriptor).st_size
        self._position = max(0, begin + offset)
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read up to the length of ``buffer``; 0 at the end."""
        n_bytes = os.preadv(self._descriptor, [buffer], self._position)
        self._position += n_bytes
        return n_bytes

    def close(self) -> None:
        """Close the file; a second call has no effect."""
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def open_positioned(path: str | Path) -> BinaryIO:
    """
    Open a file for reading, buffered.

    :param path: path of the file; a pipe or a device has no position, and is opened as usual.
    :raises OSError: if it cannot be opened.
    """
    file = open(path, 'rb')  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or not hasattr(os, 'preadv'):
        return file
    with file:
        descriptor = os.dup(file.fileno())
    return cast(BinaryIO, io.BufferedReader(_PositionedFile(descriptor), _BUFFER_BYTES))


def check_regular(path: str | Path) -> None:
    """
    Check that ``path``, if it exists, is a file or a folder.

    :raises TrajectoryFormatError: if it is something else.
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return  # the attempt to open it raises a more specific error
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise TrajectoryFormatError(str(path), _KINDS.get(kind, 'a special file'), 'a file')


def compression_of(begin: bytes) -> str:
    """
    Return the compression of a file.

    :param begin: its first four bytes.
    :returns: ``gzip``, ``zstd``, or ``''`` for none of them.
    """
    if begin.startswith(ZSTD_MAGIC) or (
            begin[1:4] == _SKIPPABLE_END and begin[0] & 0xf0 == _SKIPPABLE_BEGIN):
        return 'zstd'
    return 'gzip' if begin.startswith(GZIP_MAGIC) else ''


class _Decompressor(Protocol):
    """Common interface of the decompressors of zstd and lz4."""

    @property
    def eof(self) -> bool:
        """Whether the end of the compressed data was reached."""

    @property
    def needs_input(self) -> bool:
        """Whether more compressed data is needed for the next byte."""

    @property
    def unused_data(self) -> bytes:
        """Return the data after that end."""

    def decompress(self, data: memoryview, max_length: int) -> bytes:
        """Return at most ``max_length`` bytes."""


class _GzipDecompressor:
    """The decompressor of zlib with the interface of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_GZIP_WINDOW)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        """Whether the end of the compressed data was reached."""
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        """Return the data after that end."""
        return self._zlib.unused_data

    def decompress(self, data: memoryview, max_length: int) -> bytes:
        """Return at most ``max_length`` bytes."""
        rest = self._zlib.unconsumed_tail
        block = self._zlib.decompress(rest + bytes(data) if rest else data, max_length)
        self.needs_input = len(block) < max_length and not self._zlib.unconsumed_tail
        return block


_DECOMPRESSORS: dict[str, Callable[[], _Decompressor]] = {
    'gzip': _GzipDecompressor, 'zstd': zstd.ZstdDecompressor, 'lz4': LZ4FrameDecompressor}
# lz4 raises RuntimeError.
_FAULTS = (zlib.error, zstd.ZstdError, RuntimeError, EOFError)


def decompress(data: bytes | memoryview, compression: str, limit: int) -> tuple[bytes, str]:
    """
    Decompress data up to the first fault or the limit.

    :param data: one or several compressed frames.
    :param compression: ``zstd`` or ``lz4``.
    :param limit: greatest size of the result, bytes; of longer data, one more byte is returned.
    :returns: the decompressed bytes; a description of the fault after them, ``''`` for none.
    """
    view = memoryview(data)
    pieces = (view[at:at + _PIECE_BYTES] for at in range(0, len(view), _PIECE_BYTES))
    stream = DecompressedStream(pieces, compression, limit)
    return b''.join(stream), stream.fault


def decompress_message(data: bytes, where: str, limit: int) -> bytes:
    """
    Decompress a message that is compressed by zstd.

    :param data: the compressed message.
    :param where: place of the message, for the error.
    :param limit: greatest size of the result, bytes.
    :raises BagError: if it is damaged or larger than ``limit``.
    """
    message, fault = decompress(data, 'zstd', limit)
    if fault:
        raise damaged(where, fault)
    if len(message) > limit:
        raise too_large(where, 'a message', limit)
    return message


def decompress_file(source: Path, target: Path, limit: int) -> str:
    """
    Decompress a file that is compressed by zstd as a whole, up to the first fault.

    :param source: path of the compressed file.
    :param target: path of the decompressed file, which is created.
    :param limit: greatest size of ``target``, bytes.
    :returns: a description of the fault after the written data, ``''`` for none.
    :raises BagError: if the decompressed data is larger than ``limit``.
    :raises OSError: if a file cannot be read or written.
    """
    if _declared_size(source) > limit:
        raise too_large(str(source), 'a compressed file', limit)
    n_bytes = 0
    with source.open('rb') as compressed, target.open('wb') as file:
        pieces = iter(lambda: memoryview(compressed.read(_PIECE_BYTES)), b'')
        stream = DecompressedStream(pieces, 'zstd', limit)
        for block in stream:
            n_bytes += len(block)
            if n_bytes > limit:
                raise too_large(str(source), 'a compressed file', limit)
            file.write(block)
    return stream.fault


class DecompressedStream:
    """
    Decompressed data, block by block.

    :param pieces: pieces of the compressed data.
    :param compression: ``gzip``, ``zstd`` or ``lz4``.
    :param limit: size after which the stream ends, with one byte more, bytes.
    :param block_bytes: greatest size of a block, None for the limit.
    :ivar fault: description of the fault after the last block, ``''`` for none.
    :ivar is_cut: whether that fault is a missing end.
    """

    def __init__(self, pieces: Iterator[memoryview], compression: str, limit: int, *,
                 block_bytes: int | None = None) -> None:
        self.fault = ''
        self.is_cut = False
        self._pieces, self._compression, self._limit = pieces, compression, limit
        self._block_bytes = limit + 1 if block_bytes is None else block_bytes

    def __iter__(self) -> Iterator[bytes]:
        n_bytes = 0
        piece = next(self._pieces, None)
        # Several compressed frames may follow each other.
        while piece and n_bytes <= self._limit:
            decompressor = _DECOMPRESSORS[self._compression]()
            while not decompressor.eof and n_bytes <= self._limit:
                try:
                    block = decompressor.decompress(
                        piece, min(self._block_bytes, self._limit + 1 - n_bytes))
                except _FAULTS as error:
                    self.fault = f'no {self._compression} ({" ".join(str(error).split())})'
                    return
                yield block
                n_bytes += len(block)
                if decompressor.eof:
                    piece = self._next_frame(decompressor.unused_data or b'')
                elif decompressor.needs_input:
                    piece = next(self._pieces, None)
                    if piece is None:
                        self.fault = f'a stream of {self._compression} that is cut'
                        self.is_cut = True
                        return
                else:
                    piece = memoryview(b'')

    def _next_frame(self, unused: bytes) -> memoryview | None:
        """Return the data from the next frame on, None at the end; skip zero padding of gzip."""
        piece: memoryview | None = memoryview(unused)
        while piece is not None:
            if self._compression == 'gzip':
                piece = memoryview(bytes(piece).lstrip(b'\0'))
            if piece:
                break
            piece = next(self._pieces, None)
        return piece


def _declared_size(source: Path) -> int:
    """Return the size that the first frame of zstd declares, bytes, 0 if it declares none."""
    with source.open('rb') as file:
        begin = file.read(_FRAME_HEADER_BYTES)
    try:
        return zstd.get_frame_info(begin).decompressed_size or 0
    except zstd.ZstdError:
        return 0


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
        while piece := self._source.read(_READ_BYTES):
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""An input before it is read: its kind and position, and its decompression up to a size limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from gzip import GzipFile
import io
import os
from pathlib import Path
import stat
import sys
from typing import Any, BinaryIO, cast, Protocol, TYPE_CHECKING
import zlib

from lz4.frame import LZ4FrameFile  # type: ignore[import-untyped]

from state_sensor_ros.errors import reading, TrajectoryFormatError
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

_BLOCK_BYTES = 256 * 1024
_NO_LIMIT = 2 ** 62
# More than the white space before the first frame of a trajectory.
_HEAD_BYTES = 4096


if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

_FRAME_HEADER_BYTES = 18


def pread(descriptor: int, n_bytes: int, offset: int) -> bytes:
    """Read from an offset; the position of the descriptor stays."""
    if hasattr(os, 'pread'):
        return os.pread(descriptor, n_bytes, offset)
    # Windows; one thread reads a file.
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, offset, os.SEEK_SET)
    try:
        return os.read(descriptor, n_bytes)
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)


class _PositionedFile(io.FileIO):
    """A regular file whose position is its own, also after a fork: not that of its descriptor."""

    # Those of the base class use the position of the descriptor.
    read, readall = io.RawIOBase.read, io.RawIOBase.readall  # type: ignore[assignment]

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self._position = 0

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}.get(whence)
        if begin is None:
            begin = os.fstat(self.fileno()).st_size
        self._position = max(0, begin + offset)
        return self._position

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read up to the length of ``buffer``; 0 at the end."""
        if hasattr(os, 'preadv'):
            n_bytes = os.preadv(self.fileno(), [buffer], self._position)
        else:
            data = pread(self.fileno(), memoryview(buffer).nbytes, self._position)
            n_bytes = len(data)
            memoryview(buffer).cast('B')[:n_bytes] = data
        self._position += n_bytes
        return n_bytes


class _Closable(Protocol):

    def close(self) -> None:
        """Release what it has opened."""


def open_positioned(path: str | Path) -> BinaryIO:
    """
    Open a file for reading, buffered.

    :param path: path of the file; a pipe or a device has no position, and is opened as usual.
    :raises TrajectoryFormatError: if it cannot be opened.
    """
    with reading(str(path)):
        file = open(path, 'rb')  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    with file:
        return reopened(file)


def reopened(file: BinaryIO) -> BinaryIO:
    """Open a regular file that is open again, at its beginning, with a position of its own."""
    return cast(BinaryIO, io.BufferedReader(
        _PositionedFile(os.dup(file.fileno())), _BUFFER_BYTES))


def read_range(file: BinaryIO, name: str, byte_range: tuple[int, int]) -> bytes:
    """
    Read a part of an open file again; its position stays.

    :param file: open file.
    :param name: its path, for errors.
    :param byte_range: offset and length.
    :raises TrajectoryFormatError: if the file has changed or cannot be read.
    """
    offset, n_bytes = byte_range
    with reading(name):
        data = pread(file.fileno(), n_bytes, offset)
    if len(data) < n_bytes:
        raise TrajectoryFormatError(name, 'a shorter file than before', 'the same file')
    return data


def copy_beginning(source: BinaryIO, target: BinaryIO, n_bytes: int) -> None:
    """Copy the first ``n_bytes`` of a file, which may have fewer."""
    source.seek(0)
    while n_bytes and (block := source.read(min(n_bytes, _BLOCK_BYTES))):
        target.write(block)
        n_bytes -= len(block)


@contextmanager
def closed_on_failure(file: _Closable) -> Iterator[None]:
    """
    Close a file if the block fails.

    :param file: what is open.
    """
    try:
        yield
    except BaseException:
        file.close()
        raise


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


def _gzip_file(source: BinaryIO) -> Any:  # noqa: ANN401
    return GzipFile(fileobj=source, mode='rb')


# Each reads several compressed frames that follow each other.
_FILES: dict[str, Callable[[BinaryIO], Any]] = {
    'gzip': _gzip_file, 'zstd': zstd.ZstdFile, 'lz4': LZ4FrameFile}
# gzip raises OSError, without a number, and lz4 RuntimeError.
_FAULTS = (zlib.error, zstd.ZstdError, RuntimeError, EOFError, OSError)


def decompress(data: bytes | memoryview, compression: str, limit: int) -> tuple[bytes, str]:
    """Decompress data up to the first fault or the limit."""
    # compression: ``zstd`` or ``lz4``.
    # Returns the decompressed bytes; a description of the fault after them, ``''`` for none.
    stream = DecompressedFile(io.BytesIO(data), compression)
    return b''.join(stream.blocks(limit)), stream.fault


def decompress_message(data: bytes, where: str, limit: int) -> bytes:
    """Decompress a message that is compressed by zstd."""
    message, fault = decompress(data, 'zstd', limit)
    if fault:
        raise damaged(where, fault)
    if len(message) > limit:
        raise too_large(where, 'a message', limit)
    return message


def decompress_file(source: Path, target: Path, limit: int) -> str:
    """Decompress a file that is compressed by zstd as a whole, up to the first fault."""
    # limit: greatest size of ``target``, bytes.
    # Returns a description of the fault after the written data, ``''`` for none.
    if _declared_size(source) > limit:
        raise too_large(str(source), 'a compressed file', limit)
    with source.open('rb') as compressed, target.open('wb') as file:
        stream = DecompressedFile(compressed, 'zstd')
        for block in stream.blocks(limit):
            file.write(block)
    if stream.tell() > limit:
        raise too_large(str(source), 'a compressed file', limit)
    return stream.fault


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

    A seek backward decompresses from the beginning.

    :param source: compressed file, at its beginning; it stays open.
    :param compression: ``gzip``, ``zstd`` or ``lz4``.
    :ivar fault: description of the fault after the last byte read, ``''`` for none.
    :ivar is_cut: whether that fault is a missing end.
    """

    def __init__(self, source: BinaryIO, compression: str) -> None:
        self._source, self._compression = source, compression
        self._begin()

    def check_undamaged(self, name: str) -> None:
        """
        Check that nothing is wrong except a missing end.

        :param name: the place, for errors.
        :raises TrajectoryFormatError: if the data is damaged.
        """
        if self.fault and not self.is_cut:
            raise TrajectoryFormatError(name, self.fault, 'undamaged compressed data')

    def _begin(self) -> None:
        self.fault, self.is_cut, self._position = '', False, 0
        self._content = _FILES[self._compression](self._source)

    @property
    def n_read(self) -> int:
        """Compressed bytes read so far; of a pipe, bytes of the content."""
        return self._source.tell() if self._source.seekable() else self._position

    def blocks(self, limit: int) -> Iterator[bytes]:
        """
        Yield the content in blocks.

        :param limit: size after which it ends, with one byte more, bytes.
        """
        while block := self._block(min(_BLOCK_BYTES, limit + 1 - self._position)):
            yield block

    def _block(self, n_bytes: int) -> bytes:
        """Return up to a number of bytes; none at the end and at a fault."""
        try:
            # A single read of the compressed file: the data before a fault is returned.
            block: bytes = b'' if self.fault else self._content.read1(n_bytes)
        except _FAULTS as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self.is_cut = isinstance(error, EOFError)
            self.fault = f'a stream of {self._compression} that is cut' if self.is_cut \
                else f'no {self._compression} ({" ".join(str(error).split())})'
            return b''
        self._position += len(block)
        return block

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
        block = self._block(len(target))
        target[:len(block)] = block
        return len(block)

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
        for _ in self.blocks(target - 1):
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


@contextmanager
def opened_beside(path: str | Path, limit: int) -> Iterator[BinaryIO]:
    """
    Open a file that lies beside a recording, as a recording is opened: regular, within a limit.

    :param path: path of the file; its content may be compressed.
    :param limit: greatest size of the content, bytes.
    :returns: the content; a read beyond the limit or of damaged data raises TrajectoryFormatError.
    :raises TrajectoryFormatError: if it is not a file, or cannot be opened.
    """
    check_regular(path)
    with open_positioned(path) as file:
        content, compressed = decompressed(file)
        yield cast(BinaryIO, io.BufferedReader(
            _LimitedFile(content, compressed, str(path), limit), _BLOCK_BYTES))


class _LimitedFile(io.RawIOBase):

    def __init__(self, content: BinaryIO, compressed: DecompressedFile | None, name: str,
                 limit: int) -> None:
        self._content, self._compressed = content, compressed
        self._name, self._limit = name, limit

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._content.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._content.seek(offset, whence)

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read up to the length of ``buffer``; 0 at the end."""
        n_bytes = self._content.readinto(buffer)  # type: ignore[attr-defined]
        if self._content.tell() > self._limit:
            raise TrajectoryFormatError(self._name, f'more than {self._limit} bytes',
                                        'no more than that')
        if not n_bytes and self._compressed is not None and self._compressed.fault:
            raise TrajectoryFormatError(self._name, self._compressed.fault,
                                        'undamaged compressed data')
        return int(n_bytes)


def is_compressed_trajectory(path: Path) -> bool:
    """Return whether a file is compressed and its content begins like JSON."""
    if path.is_dir():
        return False
    with path.open('rb') as file:
        content, compressed = decompressed(file)
        return compressed is not None and content.read(_HEAD_BYTES).lstrip(
            b'\xef\xbb\xbf \t\r\n').startswith((b'[', b'{'))

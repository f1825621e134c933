# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""An input file before its format reads it: regular or not, plain or compressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from gzip import GzipFile
import io
import os
from pathlib import Path
import sys
from typing import Any, BinaryIO, cast, TYPE_CHECKING
import zlib

from state_sensor_ros.errors import reading, reason_of, TrajectoryFormatError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

_BLOCK_BYTES = 256 * 1024
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
_NO_LIMIT, _MAX_SHOWN = 2 ** 62, 200
# gzip raises OSError, without a number.
_FAULTS = (zlib.error, zstd.ZstdError, EOFError, OSError)


def check_regular(path: str | Path) -> None:
    """
    Check that ``path``, if it exists, is a file or a folder.

    :raises TrajectoryFormatError: if it is something else.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise TrajectoryFormatError(str(path), 'a pipe, a socket or a device', 'a file or folder')


def open_input(path: str | Path) -> BinaryIO:
    """
    Open a file for reading, buffered.

    :raises TrajectoryFormatError: if it cannot be opened.
    """
    with reading(str(path)):
        return open(path, 'rb', buffering=_BLOCK_BYTES)


def copy_beginning(source: BinaryIO, target: BinaryIO, n_bytes: int) -> None:
    """Copy the first ``n_bytes`` of a file, which may have fewer."""
    source.seek(0)
    while n_bytes and (block := source.read(min(n_bytes, _BLOCK_BYTES))):
        target.write(block)
        n_bytes -= len(block)


@contextmanager
def decoding(where: str, found: str, expected: str) -> Iterator[None]:
    """
    Turn what a library raises at damaged data into TrajectoryFormatError.

    Caught is every Exception but that error itself and ImportError: mcap, rosbags, SQLite, Arrow,
    YAML and the decompressors have no common base, and damaged bytes make them raise TypeError,
    KeyError, AssertionError, RecursionError and MemoryError as well. The block should hold little
    else than calls of them. A failure of the operating system keeps its reason.

    :param found: description of what was found, with ``{}`` for the text of the library.
    """
    try:
        yield
    except (TrajectoryFormatError, ImportError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise TrajectoryFormatError(where, reason_of(error)) from error
        text = ' '.join(str(error)[:_MAX_SHOWN].split()) or type(error).__name__
        raise TrajectoryFormatError(where, found.format(text), expected) from error


@contextmanager
def closed_on_failure(file: Any) -> Iterator[None]:  # noqa: ANN401
    """Close ``file`` if the block fails."""
    try:
        yield
    except BaseException:
        file.close()
        raise


# By the first bytes of a file: the compression, and what reads several compressed frames that
# follow each other.
_COMPRESSIONS: dict[bytes, tuple[str, Callable[[BinaryIO], Any]]] = {
    b'\x1f\x8b': ('gzip', lambda source: GzipFile(fileobj=source, mode='rb')),
    ZSTD_MAGIC: ('zstd', zstd.ZstdFile)}


class DecompressedFile(io.RawIOBase):
    """
    The decompressed content of a file, up to its end or to the first fault.

    :param source: compressed file, at its beginning; it stays open.
    :param compression: its name, and what reads it.
    :ivar fault: description of the fault after the last byte read, ``''`` for none.
    :ivar is_cut: whether that fault is a missing end.
    """

    def __init__(self, source: BinaryIO,
                 compression: tuple[str, Callable[[BinaryIO], Any]]) -> None:
        self._source = source
        self._compression, self._open = compression
        self._begin()

    def _begin(self) -> None:
        self.fault, self.is_cut, self._position = '', False, 0
        self._content = self._open(self._source)

    def check_undamaged(self, name: str, *, allows_cut: bool = True) -> None:
        """
        Check that nothing is wrong, except a missing end where that is allowed.

        :param name: the place, for errors.
        :raises TrajectoryFormatError: if the data is damaged.
        """
        if self.fault and not (self.is_cut and allows_cut):
            raise TrajectoryFormatError(name, self.fault, 'undamaged compressed data')

    @property
    def n_read(self) -> int:
        """Compressed bytes read so far; of a pipe, bytes of the content."""
        return self._source.tell() if self._source.seekable() else self._position

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
        try:
            # A single read of the compressed file: the data before a fault is returned.
            block: bytes = b'' if self.fault else self._content.read1(len(target))
        except _FAULTS as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self.is_cut = isinstance(error, EOFError)
            self.fault = f'a stream of {self._compression} that is cut' if self.is_cut \
                else f'no {self._compression} ({" ".join(str(error).split())})'
            return 0
        self._position += len(block)
        target[:len(block)] = block
        return len(block)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """
        Go to a position, backward by decompressing from the beginning.

        :param offset: offset, bytes; from the end, only the end itself.
        :param whence: origin of the offset, as for :meth:`io.IOBase.seek`.
        """
        target = offset + {os.SEEK_CUR: self._position, os.SEEK_END: _NO_LIMIT}.get(whence, 0)
        if target < self._position:
            self._source.seek(0)
            self._begin()
        while self._position < target and self.read(min(_BLOCK_BYTES, target - self._position)):
            pass
        return self._position


def decompressed(file: BinaryIO) -> tuple[BinaryIO, DecompressedFile | None]:
    """
    Return the content of a file that may be compressed.

    :param file: file, open for reading, at its beginning; need not be seekable.
    :returns: the file to read from, and the decompression, None if it is not compressed.
    """
    begin = file.peek(4) if isinstance(file, io.BufferedReader) else b''
    for magic, compression in _COMPRESSIONS.items():
        if begin.startswith(magic):
            raw = DecompressedFile(file, compression)
            return cast(BinaryIO, io.BufferedReader(raw, _BLOCK_BYTES)), raw
    return file, None


@contextmanager
def opened_beside(path: str | Path) -> Iterator[BinaryIO]:
    """
    Open a file that lies beside a recording; its content may be compressed.

    :raises TrajectoryFormatError: if it is not a file, cannot be opened, or is damaged.
    """
    check_regular(path)
    with open_input(path) as file:
        content, compressed = decompressed(file)
        yield content
        if compressed is not None:
            compressed.check_undamaged(str(path), allows_cut=False)

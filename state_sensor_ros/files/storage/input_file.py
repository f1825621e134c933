# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""An input before it is read: whether it is a regular file, its compression, its position."""

from __future__ import annotations

import io
import os
from pathlib import Path
import stat
from typing import BinaryIO, cast, TYPE_CHECKING

from state_sensor_ros.errors import TrajectoryFormatError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BUFFER_BYTES = 64 * 1024
_KINDS = {stat.S_IFIFO: 'a pipe', stat.S_IFSOCK: 'a socket', stat.S_IFCHR: 'a device',
          stat.S_IFBLK: 'a device'}
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
# Magic numbers of a frame without content, which may precede the others: 0x184d2a50 to 0x184d2a5f.
_SKIPPABLE_BEGIN, _SKIPPABLE_END = 0x50, b'\x2a\x4d\x18'
GZIP_MAGIC = b'\x1f\x8b'


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

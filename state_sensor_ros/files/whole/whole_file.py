# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A file that gets its name once it is complete; until then it is `.NAME.part` beside it."""

from __future__ import annotations

from contextlib import suppress
import errno
from gzip import GzipFile
import os
from pathlib import Path
import stat
import sys
from types import TracebackType
from typing import BinaryIO, cast

from state_sensor_ros.errors import SinkError, StateSensorError
from state_sensor_ros.files.whole.output import Output, sink_error, standard_output, unnamed
from state_sensor_ros.files.whole.part import Part, sync_folder

STANDARD_OUTPUT = '-'
# At 9, the library's default, writing takes three times as long and saves 3 %.
_GZIP_LEVEL = 6


class WholeFile(Output):
    """
    An output file, ended by either :meth:`commit` or :meth:`abort`, or by a ``with``.

    :param path: path of the file; ``-`` for standard output. A device or a pipe is written
        directly. A file NAME.gz or NAME.zst is compressed; ``handle.flush()`` completes a block of
        it, which can be decompressed even if the end is missing after a crash.
    :param force: whether a file of that name may be replaced.
    :raises SinkError: if it cannot be written.
    """

    def __init__(self, path: str, *, force: bool = False) -> None:
        self.name = path
        self._is_committed = False
        self._handle: BinaryIO | None = None
        # The file that compresses, or the handle itself; None before the first use.
        self._compressor: BinaryIO | None = None
        # None if the output is written directly.
        self._part: Part | None = None
        self._path = Path(path)
        try:
            if self._path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not self._is_special():
                # The target of a link is replaced, not the link.
                self._path = Path(os.path.realpath(path))
                if not force and self._path.exists():
                    raise SinkError(path, 'a file of that name exists; --force replaces it')
                self._part = Part(self._path, is_folder=False)
                self._handle = os.fdopen(os.open(self._part.path, os.O_WRONLY), 'wb')
        except OSError as error:
            raise sink_error(self.name, error) from error

    @property
    def handle(self) -> BinaryIO:
        """
        Return the open file to write to.

        A device or a pipe is opened at the first use, which waits for a reader of the pipe.

        :raises SinkError: if it cannot be opened.
        """
        if self._handle is None:
            try:
                self._handle = standard_output().buffer if self.name == STANDARD_OUTPUT \
                    else self._path.open('wb')
            except OSError as error:
                raise sink_error(self.name, error) from error
        if self._compressor is None:
            self._compressor = _compressing(self.name, self._handle)
        return self._compressor

    @property
    def is_direct(self) -> bool:
        """Whether written data cannot be removed or read again: a device or a pipe."""
        return self._part is None

    @property
    def part(self) -> Path | None:
        """Path of the file until it has its name; None if it is written directly."""
        return None if self._part is None else self._part.path

    @property
    def other_parts(self) -> list[Path]:
        """Parts of this file that other programs left or write."""
        return [] if self._part is None else self._part.others

    @property
    def is_taken(self) -> bool:
        """Whether a file of that name exists, which :meth:`commit` replaces."""
        return self._part is not None and self._path.exists()

    def _is_special(self) -> bool:
        """Return whether it is standard output, or exists and is a pipe or a device."""
        if self.name == STANDARD_OUTPUT:
            return True
        # Not the path without links: that of a pipe such as /dev/stdout does not exist.
        try:
            return not stat.S_ISREG(self._path.stat().st_mode)
        except FileNotFoundError:
            return False

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        super().__exit__(kind, error, traceback)
        # BrokenPipeError: the reader of a pipe has closed it, which is not an error of this file.
        # An error of this package, such as one of a stream that is read, names its place itself.
        if isinstance(error, OSError) and not isinstance(
                error, (BrokenPipeError, StateSensorError)):
            raise sink_error(self.name, error) from error

    def flush(self) -> None:
        """Write what is collected; compressed, it can be read without the end."""
        if self._handle is not None and not self._handle.closed:
            self.handle.flush()

    def complete(self) -> None:
        """Sync everything to the disk; nothing can be written after that."""
        handle = self._handle
        if handle is None or handle.closed:
            return
        try:
            if self._compressor is not None and self._compressor is not handle:
                self._compressor.close()
            handle.flush()
            if self._part is not None:
                os.fsync(handle.fileno())
            if self.name != STANDARD_OUTPUT:
                handle.close()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise sink_error(self.name, error) from error

    def commit(self) -> None:
        """
        Give the file its name; a second call has no effect.

        :raises SinkError: if that fails; the complete file is kept beside the name.
        """
        self.complete()
        if self._part is None or self._is_committed:
            return
        try:
            self._part.path.replace(self._path)
        except OSError as error:
            raise unnamed(self.name, error, self._part.path) from error
        finally:
            self._part.keep()
        self._is_committed = True
        try:
            sync_folder(self._path.parent)
        except OSError as error:
            raise sink_error(self.name, error) from error

    def reopen(self) -> BinaryIO:
        """Open the part again after a failure, to rescue its content; there must be a part."""
        assert self._part is not None
        self._close()
        self._handle = self._compressor = self._part.path.open('r+b')
        return self._handle

    def _close(self) -> None:
        """Close the file, even if its buffer cannot be written."""
        for handle in (self._compressor, self._handle):
            if handle is not None and self.name != STANDARD_OUTPUT:
                with suppress(OSError, ValueError):
                    handle.close()

    def keep(self) -> None:
        """Keep the part: :meth:`abort` does not remove it after this."""
        if self._part is not None:
            self._part.keep()

    def kept(self) -> str:
        """Close the file and keep its part; return its path, ``''`` if it has none."""
        self.keep()
        part = self.part
        self.abort()
        return '' if part is None else str(part)

    def discard(self) -> str:
        """Remove the written data; return a line about the result."""
        if self._part is not None:
            self._part.discard()
        elif self._handle is not None:
            return f'what was written to {self.name} is not complete'
        return f'nothing was written to {self.name}'

    def abort(self) -> None:
        """Close the file and remove the written data."""
        self.discard()
        self._close()


def _compressing(path: str, handle: BinaryIO) -> BinaryIO:
    """Return a file object that compresses the data for another one."""
    # Returns ``handle`` itself if the name is not that of a compressed file.
    if path.endswith('.gz'):
        # Without name and time: equal contents are equal files.
        return cast(BinaryIO, GzipFile('', 'wb', _GZIP_LEVEL, handle, mtime=0))
    if path.endswith('.zst'):
        if sys.version_info >= (3, 14):
            from compression.zstd import CompressionParameter, ZstdFile
        else:
            from backports.zstd import CompressionParameter, ZstdFile
        return cast(BinaryIO, ZstdFile(
            handle, 'wb', options={CompressionParameter.checksum_flag: True}))
    return handle

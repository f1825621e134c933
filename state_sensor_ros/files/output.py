# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Outputs that appear whole or not at all.

An output OUT is written to the temporary neighbor ``.OUT.part``, which gets the name at the end.
What is no regular file, such as a pipe, is written directly.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from gzip import GzipFile
from io import BufferedWriter
import os
from pathlib import Path
import shlex
import shutil
import sys
from types import TracebackType
from typing import BinaryIO, cast, TypeVar

from state_sensor_ros.errors import reason_of, SinkError, StateSensorError
from state_sensor_ros.files.input import zstd

Self = TypeVar('Self', bound='Output')
STANDARD_OUTPUT = '-'
# Parts that have neither got their name nor been removed nor kept.
_parts: set[Path] = set()
# At 9, the library's default, writing takes three times as long and saves 3 %.
_GZIP_LEVEL = 6


@contextmanager
def failing(name: str) -> Iterator[None]:
    """
    Turn errors of the operating system into SinkError.

    BrokenPipeError passes: the reader has closed the pipe, and nothing is wrong with the output.

    :param name: name of the output.
    """
    try:
        yield
    except (BrokenPipeError, StateSensorError):
        raise
    except OSError as error:
        folder = Path(name).parent
        raise SinkError(name, reason_of(error) if folder.exists() else
                        f'no such folder {folder}; make it: mkdir -p {shlex.quote(str(folder))}'
                        ) from error


def part_of(path: str | Path, read: Path | None = None) -> Path:
    """Return the temporary neighbor of an output, another one than the part that is read."""
    output = Path(os.path.realpath(path))
    part = output.with_name(f'.{output.name}.part')
    return part if part != read else output.with_name(f'.{output.name}.repair.part')


def refuse_part(path: str) -> None:
    """Refuse an output whose part has data, such as that of a recording that was killed."""
    part = part_of(path)
    if path != STANDARD_OUTPUT and (any(part.iterdir()) if part.is_dir() else
                                    part.is_file() and part.stat().st_size):
        raise SinkError(path, f'{part} is there, of a program that was killed; `state_sensor '
                        'repair` recovers a trajectory or a bag, --force overwrites it')


def remove(part: Path) -> None:
    """Remove a file or a folder, which need not exist."""
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


def remove_parts() -> None:
    """Remove what a signal has left that came between the making of an output and its ``with``."""
    while _parts:
        remove(_parts.pop())


class Output(ABC):
    """
    An output, ended by either :meth:`finish` or :meth:`abort`, or by a ``with``.

    :ivar name: path as given; ``path`` without links; ``part`` temporary neighbor, None if the
        output is written directly; ``survives_cut`` whether the part can be read without its end.
    """

    name: str
    path: Path
    survives_cut = False
    _part: Path | None = None

    @property
    def part(self) -> Path | None:
        """Return the temporary neighbor, which is removed with the output unless this is None."""
        return self._part

    @part.setter
    def part(self, part: Path | None) -> None:
        _parts.difference_update([self._part])
        _parts.update([] if part is None else [part])
        self._part = part

    def flush(self) -> None:  # noqa: B027
        """Write what is collected, as far as the format allows: it survives a kill."""

    def complete(self) -> None:  # noqa: B027
        """Write the end; nothing can be written after that; a second call has no effect."""

    def commit(self) -> None:
        """Give the complete output its name."""
        raise NotImplementedError

    def abort(self) -> None:
        """Remove the written data; no effect after :meth:`commit`."""
        if self.part is not None:
            remove(self.part)
        self.part = None

    def salvage(self) -> str:
        """
        End an output that cannot be completed: keep the data that can be read without its end.

        :returns: a description of its place, ``''`` if nothing is kept.
        """
        kept = self.part if self.survives_cut else None
        self.part = None if kept else self.part
        self.abort()
        return str(kept or '')

    def finish(self) -> None:
        """Complete the output and give it its name; remove it if that fails."""
        try:
            self.complete()
            self.commit()
        finally:
            self.abort()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if error is None:
            self.finish()
            return
        self.abort()
        if isinstance(error, OSError):
            with failing(self.name):
                raise error


class WholeFile(Output):
    """
    An output file.

    :param path: path of the file; ``-`` for standard output. A file NAME.gz or NAME.zst is
        compressed; ``handle.flush()`` completes a block of it, which can be decompressed even if
        the end is missing after a crash.
    :param force: whether a file of that name may be replaced.
    :param read: part of a killed program from which the file is made, without links.
    :ivar handle: open file to write to.
    :raises SinkError: if it cannot be written.
    """

    def __init__(self, path: str, *, force: bool = False, read: Path | None = None) -> None:
        self.name, self.path = path, Path(os.path.realpath(path))
        self.is_open = True
        with failing(path):
            if path == STANDARD_OUTPUT:
                self._file: BinaryIO = sys.stdout.buffer
            # Not the path without links: that of a pipe such as /dev/stdout does not exist.
            elif os.path.exists(path) and not os.path.isfile(path):
                self._file = open(path, 'wb')  # noqa: SIM115  # a folder is an error
            else:
                if not force and self.path.exists():
                    raise SinkError(path, 'a file of that name exists; --force replaces it')
                self.part = part_of(path, read)
                self._file = self.part.open('wb')
            self.handle = _compressing(path, self._file)

    def flush(self) -> None:
        """Write what is collected; compressed, it can be read without the end."""
        if self.is_open:
            self.handle.flush()

    def complete(self) -> None:
        """Write everything to the disk; nothing can be written after that."""
        if not self.is_open:
            return
        with failing(self.name):
            if self.handle is not self._file:
                self.handle.close()
            self._file.flush()
            if self.part is not None:
                os.fsync(self._file.fileno())
            self.is_open = False
            if self.name != STANDARD_OUTPUT:
                self._file.close()

    def commit(self) -> None:
        """Give the file its name."""
        if self.part is not None:
            with failing(self.name):
                self.part.replace(self.path)
            self.part = None

    def abort(self) -> None:
        """Close the file and remove the written data; no effect after :meth:`commit`."""
        self.is_open = False
        if self.name != STANDARD_OUTPUT:
            # Not its buffer: the disk may be full, or the reader of a pipe may have stopped.
            with suppress(OSError):
                cast(BufferedWriter, self._file).raw.close()
        super().abort()


def _compressing(path: str, handle: BinaryIO) -> BinaryIO:
    """Return a file object that compresses the data for another one."""
    # Returns ``handle`` itself if the name is not that of a compressed file.
    if path.endswith('.gz'):
        # Without name and time: equal contents are equal files.
        return cast(BinaryIO, GzipFile('', 'wb', _GZIP_LEVEL, handle, mtime=0))
    if path.endswith('.zst'):
        return cast(BinaryIO, zstd.ZstdFile(
            handle, 'wb', options={zstd.CompressionParameter.checksum_flag: True}))
    return handle

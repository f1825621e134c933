# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Outputs of a program: what appears whole or not at all, standard output, temporary folders."""

from __future__ import annotations

from abc import ABC, abstractmethod
import atexit
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
import secrets
import shlex
import shutil
import sys
import tempfile
from types import TracebackType
from typing import TextIO, TypeVar

from state_sensor_ros.errors import reason_of, SinkError

Self = TypeVar('Self', bound='Output')
_reserved: TextIO | None = None
_folders: set[Path] = set()


def sink_error(name: str, error: OSError) -> SinkError:
    """
    Return the SinkError of an output for an error.

    :param name: name of the output.
    :param error: error of the operating system; a SinkError is returned unchanged.
    """
    if isinstance(error, SinkError):
        return error
    folder = Path(name).parent
    if isinstance(error, FileNotFoundError) and not folder.exists():
        quoted = shlex.quote(str(folder))
        return SinkError(name, f'no such folder {folder}; make it: mkdir -p {quoted}')
    return SinkError(name, reason_of(error))


def unnamed(name: str, error: OSError, part: Path) -> SinkError:
    """Return the error for a complete output that cannot get its name."""
    kept = f'; what was written is in {part}'
    if isinstance(error, SinkError) and error.expected:
        return SinkError(name, error.found, error.expected + kept)
    return SinkError(name, reason_of(error) + kept)


class Output(ABC):
    """An output, ended by either :meth:`commit` or :meth:`abort`, or by a ``with``."""

    name: str  # path of the output as given
    remains = ''  # description of what is left of a replaced output, ``''`` for nothing

    def flush(self) -> None:  # noqa: B027
        """Write what is collected, as far as the format allows: it survives a kill."""

    @abstractmethod
    def complete(self) -> None:
        """Sync everything to the disk; nothing can be written after that."""

    @abstractmethod
    def commit(self) -> None:
        """Complete the output if necessary, and give it its name; a second call has no effect."""

    @abstractmethod
    def discard(self) -> str:
        """Remove the written data, from any thread; no effect after :meth:`commit`."""

    @abstractmethod
    def abort(self) -> None:
        """Close the output and remove the written data; no effect after :meth:`commit`."""

    def salvage(self) -> str:
        """
        End an output that cannot be completed: keep the data that can be read without its end.

        :returns: a description of its place, ``''`` if nothing is kept.
        """
        self.abort()
        return ''

    def finish(self) -> None:
        """Commit the output; abort it if it cannot be completed."""
        try:
            self.commit()
        finally:
            self.abort()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if error is None:
            self.finish()
        else:
            self.abort()


def reserve() -> None:
    """Keep standard output for :func:`standard_output`, until the process ends."""
    global _reserved
    if _reserved is None:
        _reserved, sys.stdout = sys.stdout, sys.stderr


def standard_output() -> TextIO:
    """Return the stream of the program's own output."""
    return sys.stdout if _reserved is None else _reserved


def print_output(text: str, *, end: str = '\n') -> None:
    """Write ``text`` and ``end`` to standard output, at once."""
    print(text, end=end, file=standard_output(), flush=True)


@contextmanager
def captured_output() -> Iterator[StringIO]:
    """Capture the program's own output; what libraries print goes to standard error."""
    global _reserved
    before, _reserved = _reserved, StringIO()
    try:
        with redirect_stdout(sys.stderr):
            yield _reserved
    finally:
        _reserved = before


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """
    Make a folder, and remove it with its content when the block ends.

    It is noted before it is made, so that the exception of a signal cannot come between the two;
    with :class:`tempfile.TemporaryDirectory` it could.
    """
    path = Path(tempfile.gettempdir(), f'state_sensor_{secrets.token_hex(8)}')
    _folders.add(path)
    try:
        path.mkdir(0o700)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        _folders.discard(path)


def remove_folders() -> None:
    """Remove the folders before the process ends, also those whose blocks have not ended."""
    for path in tuple(_folders):
        shutil.rmtree(path, ignore_errors=True)


atexit.register(remove_folders)

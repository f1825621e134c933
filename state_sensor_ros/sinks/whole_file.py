# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A file that gets its name once it is whole; until then it lies beside it under another.

May know: paths, what is overwritten and what is not. Must not know: what is written.
"""

from __future__ import annotations

from contextlib import suppress
import os
from pathlib import Path
import stat
import sys
import tempfile
from types import TracebackType
from typing import BinaryIO

from state_sensor_ros.errors import SinkError, told

STANDARD_OUTPUT = '-'


class WholeFile:
    """
    Somewhere to write to, ended by either :meth:`commit` or :meth:`abort`, or by a ``with``.

    :param path: of the file; ``-`` for standard output. A device or a pipe is written to directly.
    :param force: whether a file of that name may be replaced.
    :ivar handle: open for writing.
    :raises SinkError: where it cannot be written to.
    """

    def __init__(self, path: str, *, force: bool = False) -> None:
        self.name = path
        self._force = force
        # None where writing goes to the final place directly.
        self._temporary: Path | None = None
        # The file that a link leads to is replaced, not the link.
        self._path = Path(os.path.realpath(path))
        try:
            self.handle = self._open()
        except OSError as error:
            raise self.error(error) from error

    @property
    def is_direct(self) -> bool:
        """Whether what is written can neither be taken back nor looked at again."""
        return self._temporary is None

    def _open(self) -> BinaryIO:
        if self.name == STANDARD_OUTPUT:
            return sys.stdout.buffer
        if self._path.exists() and not stat.S_ISREG(self._path.stat().st_mode):
            return self._path.open('wb')
        if self._path.exists() and not self._force:
            raise SinkError(self.name, 'a file of that name', 'none, or --force')
        descriptor, name = tempfile.mkstemp(
            prefix=f'.{self._path.name}.', suffix='.part', dir=self._path.parent)
        self._temporary = Path(name)
        return os.fdopen(descriptor, 'wb')

    def __enter__(self) -> WholeFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        try:
            if error is None:
                self.commit()
        finally:
            self.abort()
        # Who reads from a pipe may leave; that is no error of this file.
        if isinstance(error, OSError) and not isinstance(error, (BrokenPipeError, SinkError)):
            raise self.error(error) from error

    def error(self, error: OSError) -> SinkError:
        """Make the error that says what went wrong with this file."""
        if isinstance(error, SinkError):
            return error
        return SinkError(self.name, told(error), 'a place to write to')

    def commit(self) -> None:
        """
        Give the file its name.

        :raises SinkError: where that fails; where the name is taken, nothing is lost.
        """
        try:
            self._close()
            if self._temporary is not None:
                self._name_it(self._temporary)
        except OSError as error:
            raise self.error(error) from error

    def _name_it(self, temporary: Path) -> None:
        # A file of that name may have appeared meanwhile.
        if self._path.exists() and not self._force:
            self._temporary = None
            raise SinkError(self.name, 'a file of that name, which was not there before',
                            f'none; what was written is in {temporary}')
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(self._path)

    def reopen(self) -> BinaryIO:
        """Close what failed and open it again, to save what is in it; not where it is direct."""
        assert self._temporary is not None
        with suppress(OSError):
            self.handle.close()
        self.handle = self._temporary.open('r+b')
        return self.handle

    def abort(self) -> None:
        """Leave no trace; harmless after :meth:`commit`."""
        with suppress(OSError):
            self._close()
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)

    def _close(self) -> None:
        if self.name == STANDARD_OUTPUT:
            self.handle.flush()
        else:
            self.handle.close()


def _umask() -> int:
    """Return the rights that new files do not get; there is no other way to ask."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask

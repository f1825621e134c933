# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A folder that gets its name once it is whole, and replaces nothing but a folder of its own kind.

May know: paths, what is overwritten and what is not. Must not know: what is in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
import os
from pathlib import Path

from state_sensor_ros.errors import SinkError, told
from state_sensor_ros.recordings.files.part import Part
from state_sensor_ros.recordings.files.renaming import exchange, rename_new, sync_folder, sync_tree

# Tells whether an entry of a folder, 'name' of a file or 'name/' of a folder, is of a kind.
Own = Callable[[str], bool]


class WholeFolder:
    """
    A folder to write into, ended by either :meth:`commit` or :meth:`abort`.

    :param path: of the folder.
    :param noun: what it is, such as ``bag``.
    :param own: returns, for a folder that is there, what tells the entries of such an output from
        others; a folder with others in it is not replaced.
    :param force: whether one of that name may be replaced.
    :ivar path: of the folder that a link leads to.
    :ivar inside: what to write into, an empty folder on the same file system.
    :ivar remains: what is left of one that was replaced, in words, ``''`` if nothing.
    :raises SinkError: when there is something of that name, or no place to write to.
    """

    def __init__(self, path: str | Path, *, noun: str, own: Callable[[Path], Own],
                 force: bool) -> None:
        self.name = str(path)
        self.path = Path(os.path.realpath(path))
        self.remains = ''
        self._noun, self._own, self._force = noun, own, force
        self._is_complete = self._is_committed = False
        try:
            if os.path.lexists(self.path):
                self._check_replaceable()
            self._part = Part(self.path, self.name, is_folder=True)
        except OSError as error:
            raise self.error(error) from error
        self.inside = self._part.path

    def error(self, error: OSError) -> SinkError:
        """Make the error that says what went wrong with this folder."""
        if isinstance(error, SinkError):
            return error
        return SinkError(self.name, told(error), f'room to write a {self._noun}')

    def _check_replaceable(self) -> Own:
        """
        Make sure that the folder of that name may be replaced.

        :returns: what tells its entries from others.
        """
        if not self._force:
            raise SinkError(self.name, 'something that exists', 'another name, or --force')
        if not self.path.is_dir():
            raise SinkError(self.name, f'something that is no {self._noun}',
                            f'a {self._noun} to overwrite')
        if os.path.ismount(self.path):
            raise SinkError(self.name, 'a mount point', 'a folder that can be renamed')
        own, is_empty = self._own(self.path), True
        for entry in _entries(self.path):
            is_empty = False
            if not own(entry):
                raise SinkError(
                    self.name, f'{entry.rstrip("/")} in it, which is not part of a {self._noun} '
                    'that this program writes', f'nothing but a {self._noun} to overwrite')
        if is_empty:
            raise SinkError(self.name, 'an empty folder', f'a {self._noun} to overwrite')
        return own

    def complete(self) -> None:
        """
        Wait until everything has reached the disk; doing so twice is harmless.

        :raises SinkError: where it has not.
        """
        if self._is_complete:
            return
        try:
            sync_tree(self.inside)
        except OSError as error:
            raise self.error(error) from error
        self._is_complete = True

    def commit(self, whole: Path) -> None:
        """
        Give a folder the name, and remove the one that had it.

        :param whole: the folder, somewhere in :attr:`inside`.
        :raises SinkError: where that fails; what was written is kept beside the name then.
        """
        if self._is_committed:
            return
        # From here on the old folder may be in it.
        self._part.keep()
        try:
            if self._force and os.path.lexists(self.path):
                own = self._check_replaceable()
                old = exchange(whole, self.path)
            else:
                own, old = None, whole
                rename_new(whole, self.path)
        except OSError as error:
            raise self._unnamed(error, whole) from error
        self._is_committed = True
        try:
            sync_folder(self.path.parent)
        except OSError as error:
            raise self.error(error) from error
        if own is not None:
            self.remains = _remove(old, own)
        for place, _, _ in os.walk(self.inside, topdown=False):
            with suppress(OSError):
                os.rmdir(place)

    def _unnamed(self, error: OSError, whole: Path) -> SinkError:
        """Make the error for a folder that is whole but could not get its name."""
        kept = f'what was written is in {whole}'
        if isinstance(error, SinkError):
            return SinkError(self.name, error.found, f'{error.expected}; {kept}')
        if isinstance(error, FileExistsError):
            return SinkError(self.name, 'something of that name, which was not there before',
                             f'nothing; {kept}')
        return SinkError(self.name, told(error), f'a name that can be given; {kept}')

    def discard(self) -> str:
        """
        Remove what was written, from any thread; harmless after :meth:`commit`.

        :returns: what is left, in words.
        """
        self._part.discard()
        return f'nothing was written to {self.name}'

    def abort(self) -> None:
        """Leave no trace; harmless after :meth:`commit`."""
        self.discard()
        self._part.release()


def _entries(folder: Path, prefix: str = '') -> Iterator[str]:
    """Name everything in a folder, 'name/' for a folder, each before what is in it."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield f'{prefix}{entry.name}/'
            yield from _entries(Path(entry.path), f'{prefix}{entry.name}/')
        elif entry.is_file(follow_symlinks=False):
            yield f'{prefix}{entry.name}'
        else:
            # A link or a device has no name that an output of this program could have.
            yield f'{prefix}{entry.name}//'


def _remove(folder: Path, own: Own) -> str:
    """
    Remove a folder with those entries that are of its kind.

    :returns: what is left of it, in words, ``''`` if nothing.
    """
    reason = ''
    try:
        entries = [entry for entry in _entries(folder) if own(entry)]
    except OSError:
        entries = []
    for entry in (*reversed(entries), './'):
        remove = os.rmdir if entry.endswith('/') else os.unlink
        try:
            remove(folder / entry)
        except OSError as error:
            # The first that stays is why the folders around it stay, too.
            reason = reason or told(error)
    return reason and f'what is left of the old one is in {folder}: {reason}'

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A folder that gets its name once it is complete, and replaces only a folder of its own kind.

A bag ``run`` that replaces an older one is written to ``.run.part/run``. The old bag is then moved
to ``.run.part/run.old``, the new one gets the name, and the part is removed. A program that is
killed between the two renames leaves both bags, whole, in the part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
import os
from pathlib import Path

from state_sensor_ros.errors import reason_of, SinkError
from state_sensor_ros.files.whole.output import Output, sink_error, unnamed
from state_sensor_ros.files.whole.part import Part, remove_tree, sync_folder, sync_tree

# Returns whether an entry, 'name' of a file or 'name/' of a folder, belongs to such an output.
Own = Callable[[str], bool]


class WholeFolder(Output):
    """
    An output folder, or a file that is written in a folder together with temporary files.

    :param path: path of the folder.
    :param noun: its kind in errors, such as ``bag``.
    :param own: function that returns the test for entries of an existing folder; a folder
        with any other entry is not replaced.
    :param force: whether one of that name may be replaced.
    :param is_file: whether the output is a file.
    :ivar path: path of the output; of a link, that of its target.
    :ivar inside: an empty folder to write into, on the same file system.
    :ivar whole: the folder or file that gets the name: :attr:`inside`, or one in it.
    :raises SinkError: if the name is taken, or the folder cannot be written.
    """

    def __init__(self, path: str | Path, *, noun: str, own: Callable[[Path], Own],
                 force: bool, is_file: bool = False) -> None:
        self.name, self.is_file = str(path), is_file
        self.path = Path(os.path.realpath(path))
        self._noun, self._own = noun, own
        self._is_complete = self._is_committed = False
        try:
            if os.path.lexists(self.path):
                if not force:
                    found = 'a folder' if self.path.is_dir() else 'a file'
                    raise SinkError(self.name, f'{found} of that name exists; --force replaces it')
                self._check_replaceable()
            self._part = Part(self.path, is_folder=True)
        except OSError as error:
            raise sink_error(self.name, error) from error
        self.inside = self.whole = self._part.path

    def _check_replaceable(self) -> None:
        """
        Check that what has the name may be replaced.

        :raises SinkError: if it is of another kind, or a folder with other entries.
        """
        if self.is_file:
            if not self.path.is_file():
                raise SinkError(self.name, f'something that is not a {self._noun} in one file',
                                f'a {self._noun} to overwrite')
            return
        if not self.path.is_dir():
            raise SinkError(self.name, f'something that is not a {self._noun}',
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

    def complete(self) -> None:
        """
        Sync everything to the disk; a second call has no effect.

        :raises SinkError: if that fails, for example on a full disk.
        """
        if self._is_complete:
            return
        try:
            sync_tree(self.inside)
        except OSError as error:
            raise sink_error(self.name, error) from error
        self._is_complete = True

    def commit(self) -> None:
        """
        Give the complete output the name, and remove the output that had it.

        :raises SinkError: if that fails; the complete output is kept beside the name.
        """
        self.complete()
        if self._is_committed:
            return
        self._part.keep()
        old = self.inside / f'{self.path.name}.old'
        try:
            if os.path.lexists(self.path):
                self._check_replaceable()
                if not self.is_file:
                    self.path.rename(old)
            self.whole.replace(self.path)
        except OSError as error:
            if old.exists():
                with suppress(OSError):
                    old.rename(self.path)
            raise unnamed(self.name, error, self.whole) from error
        self._is_committed = True
        try:
            sync_folder(self.path.parent)
        except OSError as error:
            raise sink_error(self.name, error) from error
        if (fault := remove_tree(self.inside)) is not None:
            self.remains = f'what is left of the old one is in {old}: {reason_of(fault)}'

    def discard(self) -> str:
        """
        Remove the written data, from any thread; no effect after :meth:`commit`.

        :returns: a line about the result.
        """
        self._part.discard()
        return f'nothing was written to {self.name}'

    def keep(self) -> None:
        """Keep the written data, without its name."""
        self._part.keep()

    def abort(self) -> None:
        """Remove the written data; no effect after :meth:`commit`."""
        self.discard()


def _entries(folder: Path, prefix: str = '') -> Iterator[str]:
    """Yield all entries of a folder, 'name/' for a folder, each before its own entries."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield f'{prefix}{entry.name}/'
            yield from _entries(Path(entry.path), f'{prefix}{entry.name}/')
        elif entry.is_file(follow_symlinks=False):
            yield f'{prefix}{entry.name}'
        else:
            # A link or a device: a name that no output has as an entry.
            yield f'{prefix}{entry.name}//'

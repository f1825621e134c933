# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The part beside an output in which it is written until complete, and its atomic renaming."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
import ctypes
import errno
import fcntl
from itertools import count
import os
from pathlib import Path
import re
import shutil

from state_sensor_ros.errors import SinkError

# <linux/fs.h> and <fcntl.h>; the os module has no renameat2().
_NOREPLACE, _EXCHANGE = 1, 2
_AT_FDCWD = -100


def rename_new(old: Path, new: Path) -> None:
    """
    Rename a file or a folder without replacing another one.

    :param old: present path.
    :param new: new path, on the same file system.
    :raises FileExistsError: if the new name is taken.
    :raises OSError: if it cannot be renamed; both names are unchanged.
    """
    try:
        _renameat2(old, new, _NOREPLACE)
    except FileExistsError:
        raise
    except OSError:
        # A file system without it: here, another program may take the name between the two steps.
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        old.rename(new)


def exchange(new: Path, path: Path) -> Path:
    """
    Give a folder the name of another one.

    One step on file systems that support it (ext4, XFS, Btrfs and tmpfs), so that ``path`` exists
    at any time. Elsewhere two steps::

                    before    one step     two steps
        path        old       new          (none), then new
        new         new       old          new, then (none)
        new + .old                         old

    :param new: the folder, on the file system of ``path``.
    :param path: path of the folder to replace.
    :returns: the new path of the old folder.
    :raises OSError: if that fails; the old folder keeps its name.
    """
    try:
        _renameat2(new, path, _EXCHANGE)
    except OSError:
        old = new.with_name(f'{new.name}.old')
        path.rename(old)
        try:
            new.rename(path)
        except OSError:
            old.rename(path)
            raise
        return old
    return new


def sync(path: Path) -> None:
    """
    Write the content of a file to the disk.

    :param path: path of a file, or of a folder for the names in it.
    :raises OSError: if that fails, for example on a full disk.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """
    Write the names in a folder to the disk, if the file system supports it.

    :param path: path of the folder; without permission to read it, nothing is done.
    :raises OSError: if that fails.
    """
    try:
        sync(path)
    except PermissionError:
        # A folder with permission to write but not to read cannot be opened.
        return
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise


def sync_tree(folder: Path) -> None:
    """
    Write all files and names in a folder to the disk.

    :param folder: path of the folder, which is synced after its content.
    :raises OSError: if that fails.
    """
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(place, name))
        sync_folder(Path(place))


def _renameat2(old: Path, new: Path, flags: int) -> None:
    """Call renameat2() of the C library; raise OSError also if the library lacks it."""
    with suppress(AttributeError):
        function = ctypes.CDLL(None, use_errno=True).renameat2
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
                             ctypes.c_uint)
        if function(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) == 0:
            return
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


class Part:
    """
    The part of an output, until :meth:`release`.

    :param output: path of the output.
    :param name: name of the output in errors.
    :param is_folder: whether it is a folder.
    :ivar path: path of the part, at first an empty file or folder.
    :ivar left_behind: parts of killed programs.
    :raises SinkError: if another program writes the same output.
    :raises OSError: if the part cannot be created.
    """

    def __init__(self, output: Path, name: str, *, is_folder: bool) -> None:
        self.path = output
        self.left_behind: list[Path] = []
        self._name = name
        self._lock: int | None = None
        self._is_ours = False
        while not self._is_ours:
            numbered = _parts_of(output)
            self._take_one_of(numbered.values(), is_folder)
            if not self._is_ours:
                _make(_next_part(output, numbered), is_folder)

    def keep(self) -> None:
        """Keep the part: :meth:`discard` has no effect after this."""
        self._is_ours = False

    def discard(self) -> None:
        """Remove the part, from any thread; no effect if it was removed, renamed or kept."""
        if not self._is_ours or (self._lock is not None and not _is_at(self.path, self._lock)):
            return
        if not self.path.is_dir():
            self.path.unlink(missing_ok=True)
            return
        # Renamed first: a thread that still writes can create no further file in it.
        gone = self.path.with_name(f'{self.path.name}.gone')
        with suppress(OSError):
            self.path.rename(gone)
        for path in (gone, self.path):
            shutil.rmtree(path, ignore_errors=True)

    def release(self) -> None:
        """Unlock the part; a second call has no effect."""
        self._is_ours = False
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_one_of(self, parts: Iterable[Path], is_folder: bool) -> None:
        """Lock an empty part, if there is one; list the others in :attr:`left_behind`."""
        self.left_behind = []
        try:
            for part in parts:
                lock = self._locked(part)
                if lock is None:
                    continue
                if self._is_ours or not _is_empty(part, is_folder):
                    os.close(lock)
                    self.left_behind.append(part)
                else:
                    self.path, self._lock, self._is_ours = part, lock, True
        except (SinkError, OSError):
            self.discard()
            self.release()
            raise

    def _locked(self, part: Path) -> int | None:
        """
        Lock a part.

        :returns: descriptor, whose close ends the lock; None if the part is gone.
        :raises SinkError: if another program has locked it.
        """
        try:
            # A link is not followed, and a pipe is opened without waiting for its other end.
            descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise SinkError(self._name, f'another program is writing it, in {part}') from error
        except OSError:
            # A file system without locks: a second writer is not detected.
            pass
        if _is_at(part, descriptor):
            return descriptor
        # Renamed or removed since it was opened.
        os.close(descriptor)
        return None


def _make(part: Path, is_folder: bool) -> None:
    """Create a part, unless another program has just done so; the caller then locks it."""
    with suppress(FileExistsError):
        if is_folder:
            part.mkdir()
        else:
            part.touch(exist_ok=False)


def next_part(output: Path) -> Path:
    """
    Return the path of the part that a program would make to write an output now.

    :param output: path of the output.
    """
    try:
        numbered = _parts_of(output)
    except (FileNotFoundError, NotADirectoryError):
        numbered = {}
    return _next_part(output, numbered)


def _next_part(output: Path, numbered: Collection[int]) -> Path:
    return _part_of(output, next(number for number in count(1) if number not in numbered))


def remove_part(part: Path) -> None:
    """
    Remove a part that a killed program has left; a locked one stays.

    :param part: path of the part, which may be gone.
    :raises OSError: if it cannot be removed.
    """
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


def _part_of(output: Path, number: int) -> Path:
    return output.with_name(f'.{output.name}.part' if number == 1
                            else f'.{output.name}.{number}.part')


def _parts_of(output: Path) -> dict[int, Path]:
    """Return the existing parts of an output by their numbers, in that order."""
    pattern = re.compile(rf'\.{re.escape(output.name)}(?:\.([2-9]|[1-9][0-9]{{1,9}}))?\.part')
    matches = map(pattern.fullmatch, os.listdir(output.parent))
    numbers = sorted(int(match[1] or 1) for match in matches if match)
    return {number: _part_of(output, number) for number in numbers}


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether an open file or folder has that path."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _is_empty(part: Path, is_folder: bool) -> bool:
    """Return whether a part belongs to this user, is a folder or file as given, and is empty."""
    if part.stat().st_uid != os.geteuid():
        return False
    if part.is_dir():
        return is_folder and not os.listdir(part)
    return not is_folder and part.is_file() and not part.stat().st_size

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Atomic renames, and syncs to the disk.

Linux has the system call renameat2() for them, other systems replacements in two steps.
"""

from __future__ import annotations

from contextlib import suppress
import ctypes
import errno
import os
from pathlib import Path

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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Names that change in one step, and data that have reached the disk.

May know: system calls of Linux and what other systems have instead. Must not know: what is
written.
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
    Rename a file or a folder; nothing is replaced.

    :raises FileExistsError: where something has the new name.
    :raises OSError: where it cannot be renamed; both names are as before.
    """
    try:
        _renameat2(old, new, _NOREPLACE)
    except FileExistsError:
        raise
    except OSError:
        # Not every file system has it; without it, another program may come between these two.
        if os.path.lexists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        old.rename(new)


def exchange(new: Path, path: Path) -> Path:
    """
    Give a folder the name of another one.

    One step where the file system has it (ext4, XFS, Btrfs and tmpfs do), so that ``path`` is one
    of the two at any moment. Elsewhere two: in between, the old one has the name that is returned.

    :param new: the folder, on the file system of ``path``.
    :param path: its name to be.
    :returns: where the old one is now.
    :raises OSError: where that fails; the old one has its name then.
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
    Wait until what is in a file has reached the disk.

    :raises OSError: where it has not, for example on a full disk.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """
    Wait until the names in a folder have reached the disk, where the file system can say so.

    :raises OSError: where they have not.
    """
    try:
        sync(path)
    except PermissionError:
        # A folder that may be written to but not be read cannot be opened.
        return
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise


def sync_tree(folder: Path) -> None:
    """
    Wait until everything in a folder has reached the disk.

    :raises OSError: where it has not.
    """
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(place, name))
        sync_folder(Path(place))


def _renameat2(old: Path, new: Path, flags: int) -> None:
    """Call renameat2() of the C library; OSError also where there is none."""
    with suppress(AttributeError):
        function = ctypes.CDLL(None, use_errno=True).renameat2
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
                             ctypes.c_uint)
        if function(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags) == 0:
            return
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

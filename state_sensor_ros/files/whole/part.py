# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The part of an output: a temporary neighbor, in which it is written until it is complete."""

from __future__ import annotations

from contextlib import suppress
import errno
from itertools import count
import os
from pathlib import Path
import re
import sys


class Part:
    """
    ``.NAME.part`` beside the output NAME, or ``.NAME.2.part`` and so on where that name is taken.

    :ivar path: path of the part, at first an empty file or folder.
    :ivar others: other parts of the output, of programs that were killed or that write it, too.
    """

    def __init__(self, output: Path, *, is_folder: bool) -> None:
        self.others = parts_of(output)
        self.path = next(path for number in count(1)
                         if _make(path := _part_of(output, number), is_folder=is_folder))
        self._is_ours = True

    def keep(self) -> None:
        """Keep the part: :meth:`discard` has no effect after this."""
        self._is_ours = False

    def discard(self) -> None:
        """Remove the part, from any thread; no effect if it was kept."""
        # Once: another program may have made a part of that name since.
        is_ours, self._is_ours = self._is_ours, False
        if is_ours:
            remove_part(self.path)


def _part_of(output: Path, number: int) -> Path:
    return output.with_name(f'.{output.name}.part' if number == 1
                            else f'.{output.name}.{number}.part')


def _make(part: Path, *, is_folder: bool) -> bool:
    try:
        if is_folder:
            part.mkdir()
        else:
            part.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def parts_of(output: Path) -> list[Path]:
    pattern = re.compile(rf'\.{re.escape(output.name)}(\.[0-9]+)?\.part')
    return [output.with_name(name) for name in sorted(os.listdir(output.parent))
            if pattern.fullmatch(name)]


def remove_part(part: Path) -> None:
    if not part.is_dir():
        part.unlink(missing_ok=True)
        return
    # Renamed first: a thread that still writes can create no further file in it.
    gone = part.with_name(f'{part.name}.gone')
    with suppress(OSError):
        part.rename(gone)
    for folder in (gone, part):
        remove_tree(folder)


def remove_tree(folder: Path) -> OSError | None:
    """Remove what can be removed of a folder; return the first error, None for none."""
    # Unlike shutil.rmtree, this needs one descriptor at a time: there may be no more.
    errors: list[OSError] = []
    for place, folders, names in os.walk(folder, False, errors.append):
        links = [name for name in folders if os.path.islink(Path(place, name))]
        for remove, path in (*((os.unlink, Path(place, name)) for name in (*names, *links)),
                             (os.rmdir, Path(place))):
            try:
                remove(path)
            except OSError as error:
                errors.append(error)
    return errors[0] if errors else None


def sync(path: Path) -> None:
    """Write the content of a file, or the names in a folder, to the disk."""
    # Windows writes no file that is open for reading only.
    descriptor = os.open(path, os.O_RDWR if sys.platform == 'win32' else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    try:
        sync(path)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EINVAL):
            raise


def sync_tree(folder: Path) -> None:
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(place, name))
        sync_folder(Path(place))

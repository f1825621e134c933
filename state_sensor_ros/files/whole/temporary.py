# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Temporary folders, which are also removed when a signal ends the program at any moment."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import shutil

_folders: set[Path] = set()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """
    Make a folder, and remove it with its content when the block ends.

    It is noted before it is made, so that the exception of a signal cannot come between the two;
    with :class:`tempfile.TemporaryDirectory` it could.

    :raises OSError: if no folder can be made.
    """
    # Imported here: it would take 10 ms of each start of a command.
    import secrets
    import tempfile
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Temporary folders that are removed at whatever moment a signal ends the program."""

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
    Make a folder and remove it with what is in it when the block ends.

    It is noted before it is made: an exception that a signal raises has no moment at which the
    folder exists and is not noted, as :class:`tempfile.TemporaryDirectory` has one.

    :raises OSError: where no folder can be made.
    """
    # Loaded where a folder is made: 10 ms of each start of a command.
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
    """Remove what is left of the folders before the process ends; no block has to end before."""
    for path in tuple(_folders):
        shutil.rmtree(path, ignore_errors=True)


atexit.register(remove_folders)

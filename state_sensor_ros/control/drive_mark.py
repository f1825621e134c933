# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The mark of a node that drives an ego: one that is left shows that the node was killed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
import re
import tempfile


class DriveMark:
    """
    A file of this user on this machine, which is locked while its node lives.

    :param address: simulator that the node drives, part of the name of the file.
    :ivar was_left: whether a node has driven there and ended without its last brake.
    :raises OSError: if there can be no such file.
    """

    def __init__(self, address: str) -> None:
        folder = Path(tempfile.gettempdir()) / f'state_sensor_ros-{os.getuid()}'
        folder.mkdir(0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            raise PermissionError(f'{folder} belongs to another user')
        self._descriptor = os.open(folder / re.sub(r'[^\w.-]', '_', address),
                                   os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._is_own = self._locked()
        self.was_left = self._is_own and os.fstat(self._descriptor).st_size > 0

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Another node drives there.
            return False
        return True

    def set(self) -> None:  # noqa: A003
        """Note that the ego is driven; the file is open already."""
        if self._is_own:
            os.pwrite(self._descriptor, b'driven\n', 0)

    def clear(self) -> None:
        """Note that the last brake was sent; the mark may be set again."""
        if self._is_own:
            os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        """Release the file."""
        os.close(self._descriptor)

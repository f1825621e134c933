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

    :param address: that of the simulator, the same for each name of its host.
    :raises OSError: if the file cannot be made.
    """

    def __init__(self, address: str) -> None:
        folder = Path(tempfile.gettempdir()) / f'state_sensor_ros-{os.getuid()}'
        folder.mkdir(0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            raise PermissionError(f'{folder} belongs to another user')
        self._path = folder / re.sub(r'[^\w.-]', '_', address)
        self._descriptor: int | None = None
        if self._path.exists():
            self.set()
        self.was_left = self._descriptor is not None

    def set(self) -> None:  # noqa: A003
        """Note that the ego is driven, unless another node drives there."""
        if self._descriptor is not None:
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC,
                             0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
        else:
            self._descriptor = descriptor

    def close(self, *, is_kept: bool) -> None:
        if self._descriptor is not None:
            if not is_kept:
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The check that an input is not a pipe, socket or device.

Opening a pipe waits until another program opens its other end, possibly for ever.
"""

from __future__ import annotations

import os
from pathlib import Path
import stat

from state_sensor_ros.errors import TrajectoryFormatError

_KINDS = {stat.S_IFIFO: 'a pipe', stat.S_IFSOCK: 'a socket', stat.S_IFCHR: 'a device',
          stat.S_IFBLK: 'a device'}


def check_regular(path: str | Path) -> None:
    """
    Check that ``path``, if it exists, is a file or a folder.

    :raises TrajectoryFormatError: if it is something else.
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return  # the attempt to open it raises a more specific error
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise TrajectoryFormatError(str(path), _KINDS.get(kind, 'a special file'), 'a file')

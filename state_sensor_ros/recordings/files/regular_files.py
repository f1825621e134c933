# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Files that can be opened without a wait: no pipes, sockets or devices.

May know: the kinds of files. Must not know: what is in them. A pipe is opened once another program
opens its other end, which may be never.
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
    Make sure that ``path``, if it exists, is a file or a folder.

    :raises TrajectoryFormatError: when it is something else.
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return  # an attempt to open it says why it cannot be opened
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise TrajectoryFormatError(str(path), _KINDS.get(kind, 'a special file'), 'a file')

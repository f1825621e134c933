# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The process of one job of a batch: standard input has the command and its options as JSON."""

from __future__ import annotations

from contextlib import suppress
import ctypes
import json
import os
import signal
import sys

# <sys/prctl.h>
_SET_PARENT_DEATH_SIGNAL = 1


def _end_with_parent() -> None:
    """
    Make the system kill this process when its parent ends.

    Otherwise it would still write after its Dask worker was killed, while another attempt writes.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def main() -> int:
    """Run the job; return its exit code."""
    # Before the modules of the command are imported, which takes 0.1 s and more.
    _end_with_parent()
    try:
        command, options, parent = json.load(sys.stdin)
    except ValueError:
        # The parent ended before it had written everything.
        return 1
    if os.getppid() != parent:
        return 1
    import argparse

    from state_sensor_ros.commands.command_line import run_parsed
    return run_parsed(command, argparse.Namespace(**options))


if __name__ == '__main__':
    sys.exit(main())

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The process of one job of a batch: standard input has the command and its options as JSON."""

from __future__ import annotations

import argparse
from contextlib import suppress
import ctypes
import json
import os
import signal
import sys

from state_sensor_ros.commands.command_line import run_parsed

# <sys/prctl.h>
_SET_PARENT_DEATH_SIGNAL = 1


def main() -> int:
    """Run the job; return its exit code."""
    parent = os.getppid()
    # Otherwise it would go on writing beside another attempt after its Dask worker is killed.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    command, options = json.load(sys.stdin)
    if os.getppid() != parent:
        return 1
    return run_parsed(command, argparse.Namespace(**options))


if __name__ == '__main__':
    sys.exit(main())

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Single keys from a terminal, without Enter; no keys without a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import os
import select
import sys

try:
    import termios
    import tty
except ImportError:
    # These modules do not exist on every operating system.
    _HAS_TERMINALS = False
else:
    _HAS_TERMINALS = True


class Keyboard:
    """
    The keys of a terminal.

    :param descriptor: descriptor of the terminal in single-key mode; None without a terminal.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    @property
    def is_there(self) -> bool:
        """Whether there is a terminal to read keys from."""
        return self._descriptor is not None

    def wait(self, timeout_s: float) -> str:
        """Wait for a key and return it; ``''`` if none was pressed within ``timeout_s``."""
        if self._descriptor is None or not select.select([self._descriptor], [], [], timeout_s)[0]:
            return ''
        data = os.read(self._descriptor, 1)
        if not data:
            # The terminal was closed.
            self._descriptor = None
        return data.decode('ascii', 'replace')


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """Read keys from standard input while the block runs; restore the terminal's mode then."""
    descriptor = _terminal()
    if descriptor is None:
        yield Keyboard(None)
        return
    before = termios.tcgetattr(descriptor)
    try:
        # Ctrl-C still interrupts in this mode.
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _terminal() -> int | None:
    """Return standard input if it is a terminal and this process is in its foreground."""
    if not _HAS_TERMINALS or not sys.stdin.isatty():
        return None
    descriptor = sys.stdin.fileno()
    try:
        # In the background, a change of the terminal would stop the program.
        is_in_foreground = os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        # It is not the controlling terminal of this process.
        is_in_foreground = True
    return descriptor if is_in_foreground else None

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Single keys from a terminal, without Enter; nothing where there is no terminal.

May know: terminals. Must not know: what a key means.
"""

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
    # Not on every operating system; there are no keys then.
    _HAS_TERMINALS = False
else:
    _HAS_TERMINALS = True


class Keyboard:
    """
    The keys of a terminal.

    :param descriptor: of the terminal in single-key mode; None where there is none.
    """

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    @property
    def is_there(self) -> bool:
        """Whether keys can come."""
        return self._descriptor is not None

    def wait(self, timeout_s: float) -> str:
        """Wait for a key; ``''`` where none was pressed."""
        if self._descriptor is None or not select.select([self._descriptor], [], [], timeout_s)[0]:
            return ''
        data = os.read(self._descriptor, 1)
        if not data:
            # The terminal has gone.
            self._descriptor = None
        return data.decode('ascii', 'replace')


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """Read keys from standard input while the block runs, and leave the terminal as it was."""
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
    """Return standard input if it is a terminal and we are who it talks to."""
    if not _HAS_TERMINALS or not sys.stdin.isatty():
        return None
    descriptor = sys.stdin.fileno()
    try:
        # In the background, a change of the terminal would stop the program.
        is_ours = os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        # It controls nobody, or not us.
        is_ours = True
    return descriptor if is_ours else None

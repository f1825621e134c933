# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Ctrl-C and SIGTERM between two pieces of work, so that what was done so far can be kept.

May know: signals. Must not know: what the work is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
import os
import signal
import threading
import time
from types import FrameType
from typing import TypeVar

Item = TypeVar('Item')

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A handler runs within this time, or its thread waits in a system call.
_GRACE_S = 0.2


class Interruption:
    """Whether the user wants to stop; made by :func:`interruptible`."""

    def __init__(self) -> None:
        self.is_wanted = False
        self._is_waiting = False

    def until(self, items: Iterable[Item]) -> Iterator[Item]:
        """
        Yield ``items`` until there are no more or an interruption comes, even while waiting.

        :raises KeyboardInterrupt: where nothing was yielded yet, so that there is nothing to keep.
        """
        iterator = iter(items)
        has_begun = False
        while True:
            try:
                self._is_waiting = True
                if self.is_wanted:
                    raise KeyboardInterrupt
                item = next(iterator)
                self._is_waiting = False
            except StopIteration:
                return
            except KeyboardInterrupt:
                if has_begun:
                    return
                raise
            finally:
                self._is_waiting = False
            has_begun = True
            yield item

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Note the wish; where nothing is half done, follow it at once."""
        self.is_wanted = True
        if self._is_waiting:
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Turn SIGINT and SIGTERM into an :class:`Interruption` while the block runs."""
    interruption = Interruption()
    before = [signal.signal(number, interruption.on_signal) for number in _SIGNALS]
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=_send_again, args=(reader, interruption), daemon=True)
    thread.start()
    try:
        yield interruption
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)
        os.close(writer)
        thread.join()


def _send_again(reader: int, interruption: Interruption) -> None:
    """
    Send a signal again that came just before a read that waits: Python would sit on it.

    :param reader: gets a byte for each signal, and its end when no more are watched for.
    """
    with os.fdopen(reader, 'rb', buffering=0) as signals:
        while number := signals.read(1):
            time.sleep(_GRACE_S)
            if not interruption.is_wanted and number[0] in _SIGNALS:
                signal.pthread_kill(threading.main_thread().ident or 0, number[0])

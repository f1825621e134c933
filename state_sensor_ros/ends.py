# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The signals that end a program, received by a thread and by the main thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import os
import signal
import threading
from types import FrameType
from typing import Any, NoReturn

Handler = Callable[[int, FrameType | None], None]


def ending_signals() -> list[signal.Signals]:
    """Return the signals that end a program; SIGHUP unless it is ignored, as with nohup."""
    signals = [signal.SIGINT, signal.SIGTERM]
    # Sent when the terminal is closed; not on every operating system.
    if hasattr(signal, 'SIGHUP') and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


@contextmanager
def raising_at_signals() -> Iterator[None]:
    """
    Let SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt in the main thread, once.

    Its argument is the number of the signal. The first signal disarms the handler: a second one
    acts as before the block. A SIGHUP that is ignored stays so, as with nohup.
    """
    before: dict[int, Any] = {}

    def disarm() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, _: FrameType | None) -> NoReturn:
        disarm()
        raise KeyboardInterrupt(number)

    before.update((number, signal.signal(number, handle)) for number in ending_signals())
    try:
        yield
    finally:
        disarm()


class EndingSignals:
    """
    The receiver of :func:`ending_signals`, made in the main thread.

    It also receives a SIGINT that the shell has ignored, as for a program started with ``&``.
    """

    def __init__(self, receive: Callable[[int], None], handle: Handler) -> None:
        numbers = ending_signals()
        reader, self._writer = os.pipe()
        if hasattr(os, 'set_blocking'):
            os.set_blocking(self._writer, False)
        self._receive = receive
        self.thread = threading.Thread(target=self._run, args=(reader, numbers), daemon=True,
                                       name='signals')
        self.thread.start()
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, handle) for number in numbers}

    def ignore(self) -> None:
        """Ignore the signals from now on, in a process that ends."""
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)

    def restore(self) -> None:
        """End the thread, which may still send a signal, and handle the signals as before."""
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._writer)
        self.thread.join()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _run(self, reader: int, numbers: list[signal.Signals]) -> None:
        """Report each byte of the pipe, which is the number of a signal."""
        try:
            while byte := os.read(reader, 1):
                if byte[0] in numbers:
                    self._receive(byte[0])
        finally:
            os.close(reader)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The signals that end a program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import os
import signal
import sys
from threading import Timer
from types import FrameType

# Time for a destructor to end.
_PAUSE_S = 0.01
# A signal that comes just before a call that blocks is noticed after this time.
_LOOK_S = 0.1


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
    acts as before the block. A SIGHUP that is ignored stays so, as with nohup. Python drops what
    is raised in a destructor or a callback of C: the signal is then sent again.
    """
    before = {number: signal.getsignal(number) for number in ending_signals()}
    hook = sys.unraisablehook

    def arm() -> None:
        for number in before:
            signal.signal(number, handle)

    def disarm() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, _: FrameType | None) -> None:
        disarm()
        if _held.depth:
            _held.number = number
        else:
            raise KeyboardInterrupt(number)

    def send_again(dropped: sys.UnraisableHookArgs) -> None:
        if isinstance(dropped.exc_value, KeyboardInterrupt) and dropped.exc_value.args:
            arm()
            Timer(_PAUSE_S, os.kill, (os.getpid(), *dropped.exc_value.args)).start()
        else:
            hook(dropped)

    arm()
    sys.unraisablehook = send_again
    interrupt_blocking_calls(_LOOK_S)
    try:
        yield
    finally:
        interrupt_blocking_calls(0.0)
        disarm()
        sys.unraisablehook = hook


def interrupt_blocking_calls(period_s: float = _LOOK_S) -> None:
    """
    Let Python call the handlers of signals while the main thread is in a call that blocks.

    They are called between two instructions. A signal that comes after the last one before a call
    such as a read from a pipe, or that another thread takes, would wait for the end of the call.
    SIGALRM does nothing from now on; 0 s ends the interruptions.
    """
    # Not on Windows.
    if hasattr(signal, 'setitimer'):
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, period_s, period_s)


class _Held:
    depth = number = 0


_held = _Held()


@contextmanager
def signals_held() -> Iterator[None]:
    """Let a signal in the block raise at its end, such as when a frame is written as a whole."""
    _held.depth += 1
    try:
        yield
    finally:
        _held.depth -= 1
    if not _held.depth and _held.number:
        number, _held.number = _held.number, 0
        raise KeyboardInterrupt(number)

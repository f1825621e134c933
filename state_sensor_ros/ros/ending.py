# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The end of a program by a signal, within a fixed time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
import gc
import os
import sys
import threading
from types import FrameType
from typing import NoReturn

from state_sensor_ros.pipeline.ending_signals import EndingSignals
from state_sensor_ros.pipeline.unblocked_output import StandardStreams

# Every program ends within 2 s of a signal; the system needs the rest to remove the process.
END_S = 1.3
_STANDARD_ERROR = 2


class Ending:
    """
    Whether a signal has been received; made in the main thread, once in a process.

    A thread waits for the signals, because the main thread may be in a call that does not return.
    :data:`END_S` after the first signal it ends the process with the exit code 0 unless
    :meth:`leave` was called before.

    :param streams: standard streams, which get a moment for what was written last.
    :ivar on_signal: called by that thread at the first signal, before anything else.
    """

    def __init__(self, streams: StandardStreams) -> None:
        self._streams = streams
        self.on_signal: Callable[[], None] = lambda: None
        self._is_wanted = threading.Event()
        self._is_over = threading.Event()
        self._signals = EndingSignals(self._end, self._on_signal)

    def is_wanted(self) -> bool:
        """Return whether a signal has been received."""
        return self._is_wanted.is_set()

    def leave(self, code: int) -> int:
        """
        Return ``code``; end the process with it if threads of the program still run.

        The interpreter must not be finalised while a thread is inside a library.

        :param code: exit code.
        """
        self._is_over.set()
        known = (threading.main_thread(), self._signals.thread, *self._streams.threads)
        if any(thread not in known for thread in threading.enumerate()):
            sys.stdout.flush()
            self._streams.close()
            os._exit(code)
        return code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_wanted.set()

    def _end(self, number: int) -> None:
        self._is_wanted.set()
        # With the objects of a large frame, a collection would stop all threads for a second.
        gc.disable()
        try:
            self.on_signal()
        finally:
            if not self._is_over.wait(END_S):
                self._leave_unfinished()

    def _leave_unfinished(self) -> NoReturn:
        # Without sys.stderr, whose lock the main thread may hold.
        with suppress(OSError):
            os.write(_STANDARD_ERROR, b'warning: found work that did not end within '
                     + f'{END_S:g} s of a signal; left it unfinished\n'.encode())
        self._streams.close()
        os._exit(0)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
SIGINT, SIGTERM and SIGHUP: a program either completes its work, or leaves no output.

A signal raises KeyboardInterrupt in the main thread. A thread watches: it leaves with the exit
code of the signal if the main thread has not ended after 1.6 s, because it waits in a library.
"""

from __future__ import annotations

from _thread import interrupt_main
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
import os
import select
import signal
import sys
import threading
import time
from types import FrameType
from typing import TypeVar

from state_sensor_ros.commands.printing import discard_output, print_line
from state_sensor_ros.ends import EndingSignals
from state_sensor_ros.files.whole.output import Output, remove_folders
from state_sensor_ros.standard_streams import StandardStreams
from state_sensor_ros.texts import one_line

AnyOutput = TypeVar('AnyOutput', bound=Output)
Result = TypeVar('Result')

# Limits after a signal, s: for the work to end by a call, and for the process.
_STOP_S, _END_S = 1.2, 1.6
_PERIOD_S = 0.05
_STANDARD_ERROR = 2


class Interruption:
    """The effect of signals on a program."""

    # is_program: whether the process ends after the work: it then ignores signals. Otherwise the
    # previous handlers are restored.
    # number: number of the first signal, 0 if none was received.
    # is_endless: whether only a signal ends the work, so that it is not a failure.

    def __init__(self, *, is_program: bool) -> None:
        self.number = 0
        self.is_endless = False
        self._is_program = is_program
        # Set by the main thread: whether it may raise now, has raised, and need not any more
        # because the work is done, with which exit code.
        self._may_raise = self._has_raised = self._is_done = False
        self._code = 0
        self._ended = threading.Event()
        self._outputs: list[Output] = []
        self._stop: Callable[[], None] | None = None
        self._streams: StandardStreams | None = None
        self._remains: Callable[[], str] | None = None

    def run(self, work: Callable[[], int]) -> int:
        """Do the work of a program in the main thread."""
        # Returns that code, or 128 plus the number of the signal that ended the work; 0 for
        # endless work.
        hook, signals = sys.unraisablehook, EndingSignals(self._receive, self._handle)
        try:
            self._may_raise = True
            self._handle()
            self.conclude(work())
        except BaseException as error:
            self._may_raise = False
            # After KeyboardInterrupt, another error may be its effect.
            if not (self._has_raised or (self.number and isinstance(error, KeyboardInterrupt))):
                raise
            self._is_done, self._code = True, self._signal_code()
            with suppress(OSError):
                sys.stderr.write(self._line())
            if self._is_program:
                # Buffered output is discarded: a flush could block without a reader.
                discard_output()
        finally:
            self._is_done = True
            self._ended.set()
            if self._is_program:
                signals.ignore()
            else:
                signals.restore()
                sys.unraisablehook = hook
        return self._code

    def unblock_errors(self) -> None:
        """Print errors and progress without a wait for their reader, in endless work."""
        if self._is_program and self._streams is None:
            self._streams = StandardStreams(_STANDARD_ERROR)
            errors = self._streams.errors()
            # Standard output may be reserved for data: what is printed goes to standard error.
            sys.stderr, sys.stdout = errors, errors if sys.stdout is sys.stderr else sys.stdout

    def describe(self, remains: Callable[[], str],
                 stop: Callable[[], None] | None = None) -> None:
        """Set what is printed if a signal ends the work, and how it does."""
        # remains: function that returns what remains of the work, ``''`` to print nothing.
        # stop: function that another thread calls instead of an exception in the main thread,
        # which ends the work soon after; None for an exception.
        self._remains, self._stop = remains, None if self.number else stop

    def end_without_frame(self) -> None:
        """
        End the work on a stream without a frame if a signal has ended the stream.

        :raises KeyboardInterrupt: then.
        """
        if self.number:
            self.is_endless = False
            self.describe(lambda: 'no frame was received, nothing was written')
            raise KeyboardInterrupt

    def made(self, make: Callable[[], AnyOutput]) -> AnyOutput:
        """Return the output that ``make`` makes; it is discarded if a signal ends the work."""
        self._may_raise = False
        output = make()
        self._outputs.append(output)
        self._may_raise = not self._is_done
        self._handle()
        return output

    @contextmanager
    def writing(self, make: Callable[[], AnyOutput]) -> Iterator[AnyOutput]:
        """Make an output and, when the block has ended without an error, commit it."""
        with self.made(make) as output:
            yield output
            # This may take long, and a signal may still interrupt it.
            output.complete()
            with self.committing():
                output.commit()
        if output.remains:
            print_line(f'warning: {output.name}: {output.remains}')

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Run the block as the last step of the work: no signal interrupts it or what follows."""
        self._may_raise = False
        self._check()
        yield
        self._is_done = True

    def conclude(self, code: int) -> None:
        """Prevent signals from ending the work from now on; ``code``: exit code."""
        self._may_raise = False
        self._check()
        self._is_done, self._code = True, code

    def _check(self) -> None:
        """Raise KeyboardInterrupt again where a library has caught it."""
        if self._has_raised:
            raise KeyboardInterrupt

    def _handle(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Raise KeyboardInterrupt in the main thread, once."""
        if self.number and self._may_raise and self._stop is None:
            # Python would print a warning if the exception is raised in a destructor.
            sys.unraisablehook = lambda _: None
            self._may_raise, self._has_raised = False, True
            raise KeyboardInterrupt

    def _receive(self, number: int) -> None:
        """End the work after the first of the signals, and the process if it does not end."""
        if self.number:
            return
        self.number = number
        begin_s = time.monotonic()
        if self._stop is not None:
            self._stop()
            self._ended.wait(begin_s + _STOP_S - time.monotonic())
            self._stop = None
        while not self._ended.is_set():
            # Sent again: one that came just before a call that blocks has not interrupted it.
            if hasattr(signal, 'pthread_kill'):
                signal.pthread_kill(threading.main_thread().ident or 0, number)
            else:
                interrupt_main(signal.Signals(number))
            if time.monotonic() > begin_s + _END_S:
                self._leave()
            self._ended.wait(_PERIOD_S)

    def _leave(self) -> None:
        """End the process at once."""
        remove_folders()
        line = b'' if self._is_done else self._line().encode(errors='backslashreplace')
        with suppress(OSError, ValueError):
            # Not into a full pipe: the write could block.
            if line and select.select([], [_STANDARD_ERROR], [], 0)[1]:
                os.write(_STANDARD_ERROR, line)
        if self._streams is not None:
            self._streams.close()
        os._exit(self._code if self._is_done else self._signal_code())

    def _signal_code(self) -> int:
        return 0 if self.is_endless else 128 + self.number

    def _line(self) -> str:
        """Discard the outputs of unfinished work; return a line about the rest."""
        if self._remains is not None:
            text = self._remains()
        elif self._outputs:
            text = ', '.join([output.discard() for output in self._outputs])
        else:
            text = '' if self.is_endless else 'nothing was written'
        return f'{one_line(f"interrupted: {text}")}\n' if text else ''


def call_in_daemon(call: Callable[[], Result], name: str) -> Future[Result]:
    """
    Run a call that may never end, such as the look-up of a host name, in a daemon thread.

    An executor would wait for its threads when the process ends.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again by the future
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future

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

=======  =====================================  ===============================================
state    meaning                                left by
=======  =====================================  ===============================================
LOADING  modules are imported                   begin(): WORKING; the work fails before: DONE;
                                                a signal: the process ends
WORKING  the work is running                    a commit or its end: DONE; a signal: ENDING
ENDING   a signal has ended the work            the main thread: RAISED
RAISED   it has raised KeyboardInterrupt        --
DONE     no signal has an effect on the work    --
=======  =====================================  ===============================================

A lock is held for the way from WORKING to DONE or to ENDING, and is never released afterward in
ENDING: a main thread that waits for it is woken by the signal that makes it raise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
import os
import select
import signal
import sys
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from state_sensor_ros.commands.printing import discard_output, print_line
from state_sensor_ros.errors import one_line
from state_sensor_ros.files.whole.output import Output, remove_folders
from state_sensor_ros.pipeline.process import EndingSignals, StandardStreams

if TYPE_CHECKING:
    from concurrent.futures import Future

AnyOutput = TypeVar('AnyOutput', bound=Output)
Result = TypeVar('Result')

# Limits after a signal, s: for the work to end by a call, and for the process.
_STOP_S, _END_S = 1.2, 1.6
_PERIOD_S = 0.05
_STANDARD_ERROR = 2


class _State(Enum):
    """Progress of the work of a program; the table of the module has the transitions."""

    LOADING = 'loading'
    WORKING = 'working'
    ENDING = 'ending'
    RAISED = 'raised'
    DONE = 'done'


class Interruption:
    """
    The effect of signals on a program.

    A thread receives the signals, so that none is lost just before a blocking system call. It
    makes the main thread raise KeyboardInterrupt once, unless the work is done by then. A commit
    completes the work under a lock, so that a signal is handled either before or after it. If the
    main thread does not end in time, because it waits in a library, the thread ends the process.

    :param is_program: whether the process ends after the work: it then ignores signals. Otherwise
        the previous handlers are restored.
    :ivar number: number of the first signal, 0 if none was received.
    :ivar is_endless: whether only a signal ends the work, so that it is not a failure.
    """

    def __init__(self, *, is_program: bool) -> None:
        self.number = 0
        self.is_endless = False
        self._is_program = is_program
        self._state = _State.LOADING if is_program else _State.WORKING
        self._deciding = threading.Lock()
        # Whether an output is being made, in which the main thread must not raise.
        self._is_held = False
        self._ended = threading.Event()
        self._code = 0
        self._outputs: list[Output] = []
        self._stop: Callable[[], None] | None = None
        self._streams: StandardStreams | None = None
        self._remains: Callable[[], str] | None = None

    def run(self, work: Callable[[], int]) -> int:
        """
        Do the work of a program in the main thread.

        :param work: function that returns an exit code.
        :returns: that code, or 128 plus the number of the signal that ended the work; 0 for
            endless work.
        """
        with self._receiving():
            try:
                try:
                    return work()
                finally:
                    self.conclude()
            except BaseException as error:
                # While the work is being ended, an error may be the effect of a closed output.
                if not (self._is_ending() or (
                        self.number and isinstance(error, KeyboardInterrupt))):
                    raise
                line = self._line()
                self._remains = lambda: ''
                with suppress(OSError):
                    sys.stderr.write(line)
                if self._is_program:
                    # Buffered output is discarded: a flush could block without a reader.
                    discard_output()
                return self._signal_code()

    def begin(self) -> None:
        """Note that the work begins; no effect if it has ended."""
        # After a signal the lock stays held while the process ends, so that no output is made.
        with self._deciding:
            if self._state is _State.LOADING:
                self._state = _State.WORKING

    def unblock_errors(self) -> None:
        """Print errors and progress without a wait for their reader, in endless work."""
        if self._is_program and self._streams is None:
            self._streams = StandardStreams(_STANDARD_ERROR)
            errors = self._streams.errors()
            # Standard output may be reserved for data: what is printed goes to standard error.
            sys.stderr, sys.stdout = errors, errors if sys.stdout is sys.stderr else sys.stdout

    def describe(self, remains: Callable[[], str],
                 stop: Callable[[], None] | None = None) -> None:
        """
        Set what is printed if a signal ends the work, and how it does.

        :param remains: function that returns what remains of the work, ``''`` to print nothing.
        :param stop: function that another thread calls instead of an exception in the main thread,
            which ends the work soon after; None for an exception.
        :raises KeyboardInterrupt: if a signal was received before.
        """
        with self._decided():
            self._remains, self._stop = remains, stop

    def made(self, make: Callable[[], AnyOutput]) -> AnyOutput:
        """Return the output that ``make`` makes; it is discarded if a signal ends the work."""
        self._is_held = True
        try:
            output = make()
            self._outputs.append(output)
        finally:
            self._is_held = False
        return output

    @contextmanager
    def writing(self, make: Callable[[], AnyOutput]) -> Iterator[AnyOutput]:
        """
        Make an output and, when the block has ended without an error, commit it.

        :param make: function that returns the output.
        :raises SinkError: if the output cannot be made or committed.
        """
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
        with self._decided():
            yield
            self._state = _State.DONE

    def conclude(self, code: int | None = None) -> None:
        """
        Prevent signals from ending the work from now on.

        :param code: exit code of the program; None keeps the one given before, at first 0.
        :raises KeyboardInterrupt: if a signal was received before.
        """
        with self._decided():
            self._state = _State.DONE
            self._code = self._code if code is None else code

    @contextmanager
    def _decided(self) -> Iterator[None]:
        """Hold the lock; raise KeyboardInterrupt if the work is being ended."""
        if self._state is _State.RAISED:
            raise KeyboardInterrupt
        with self._deciding:
            yield

    @contextmanager
    def _receiving(self) -> Iterator[None]:
        """Receive signals while the block runs."""
        hook = sys.unraisablehook
        signals = EndingSignals(self._receive, self._handle)
        try:
            yield
        finally:
            self._ended.set()
            if self._is_program:
                signals.ignore()
            else:
                signals.restore()
                sys.unraisablehook = hook

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt in the main thread, once, if the work is being ended."""
        if self._state is _State.ENDING and not self._is_held:
            self._state = _State.RAISED
            raise KeyboardInterrupt

    def _receive(self, number: int) -> None:
        """Handle the first of the signals."""
        if not self.number:
            self.number = number
            self._end_work()

    def _end_work(self) -> None:
        """End the work within two seconds."""
        begin_s = time.monotonic()
        self._decide(may_stop=True)
        if not self._is_ending():
            if self._stop is not None:
                self._stop()
            self._ended.wait(max(0.0, begin_s + _STOP_S - time.monotonic()))
            self._decide(may_stop=False)
        while not self._ended.is_set():
            if self._state is _State.ENDING:
                signal.pthread_kill(threading.main_thread().ident or 0, self.number)
            if time.monotonic() > begin_s + _END_S:
                self._leave()
            self._ended.wait(_PERIOD_S)

    def _decide(self, *, may_stop: bool) -> None:
        """End the work by an exception, unless it is done, or may be stopped by a call."""
        self._deciding.acquire()
        if self._state is _State.DONE or (may_stop and self._stop is not None):
            self._deciding.release()
            return
        if self._state is _State.LOADING:
            self._leave()
        # Python would print a warning if the exception is raised in a destructor.
        sys.unraisablehook = lambda _: None
        self._state = _State.ENDING

    def _is_ending(self) -> bool:
        return self._state in (_State.ENDING, _State.RAISED)

    def _leave(self) -> None:
        """End the process at once."""
        is_done = self._state is _State.DONE
        remove_folders()
        line = b'' if is_done else self._line().encode(errors='backslashreplace')
        with suppress(OSError, ValueError):
            # Not into a full pipe: the write could block.
            if line and select.select([], [_STANDARD_ERROR], [], 0)[1]:
                os.write(_STANDARD_ERROR, line)
        if self._streams is not None:
            self._streams.close()
        os._exit(self._code if is_done else self._signal_code())

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

    :param call: function to call.
    :param name: name of the thread.
    :returns: future with the result, or with any exception of the call.
    """
    # Every command imports this module, and few make calls: the library loads logging.
    from concurrent.futures import Future
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again by the future
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A live source whose frames a child process makes, such as one with a library that blocks.

The child is started as ``python -m MODULE``, with its requests on standard input and its messages
on standard output; what it prints goes to standard error. It ends when its requests end::

    ChildSource -- first_request(), then StepPace, Indicate, commands, changes --> child
                <-- messages for take(), at last a ProcessEnd ------------------
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
import math
from multiprocessing.connection import Connection, Pipe
import os
from queue import Empty, SimpleQueue
import subprocess
import sys
import threading
import time
from typing import ClassVar, IO, NamedTuple

from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.control.ego_commands import EgoCommand, Proof
from state_sensor_ros.errors import reason_of, RefusalError, TransportError, UnreachableError
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import DELETE, EntityEdit, SET, SourceState, SPAWN

# Time for the child to release what it holds after its requests have ended, s.
_END_S = 1.0
# A child that has not ended by itself in that time, although busy, is stuck, s.
_STUCK_S = 1.4
# Longest wait for a change, s; the frames after it that may show it first.
_EDIT_S, _N_SHOWING = 10.0, 3
# Longest delay of steps that is made up for, s: the node would drop a longer burst of frames.
_LONGEST_DELAY_S = 0.2
# Last lines that the child has printed, for an error, and their longest part.
_LAST_LINES, _MAX_LINE = 5, 300


class ProcessEnd(NamedTuple):
    """The last message of a child."""

    reason: str  # one line
    is_failure: bool = True
    is_unreachable: bool = False  # whether the failure is that no simulator runs


class StepPace(NamedTuple):
    """A request to a child that makes the steps."""

    rate: float  # times real time, 0 as fast as possible
    is_paused: bool  # whether to make no steps
    n_steps: int | None = 0  # more steps at once in a pause, None to end those that are left
    number: int = 0  # of the request for steps
    is_restart: bool = False  # whether to begin again, with a first step even in a pause


class StepsMade(NamedTuple):
    """The message that all steps of a request were sent."""

    number: int  # as in StepPace


class EditMade(NamedTuple):
    """The answer to a change, before the frame that shows it."""

    edit: EntityEdit
    error: str  # why it was not made, empty if it was


class Indicate(NamedTuple):
    """A request to such a child: set the turn signals of the ego."""

    indicators: int


class StepClock:
    """
    When a child makes its next step: by the pace that was requested last.

    :param rate: as in :class:`StepPace`.
    :param is_paused: whether steps are made only on request.
    :ivar number: number of the last request, 0 once it is answered.
    """

    def __init__(self, rate: float, *, is_paused: bool) -> None:
        self._pace = StepPace(rate, is_paused)
        self._n_steps = self.number = 0
        self._due_s = time.monotonic()

    def take(self, pace: StepPace) -> None:
        """Keep another pace."""
        self._pace, self.number = pace, pace.number or self.number
        self._n_steps = 0 if pace.n_steps is None else self._n_steps + pace.n_steps
        self._due_s = time.monotonic()

    def restart(self) -> None:
        """Let the first step of a run be due at once, even in a pause."""
        self._n_steps = int(self._pace.is_paused)
        self._due_s = time.monotonic()

    def left_s(self) -> float | None:
        """Return the time until the next step, s, None if it waits for a request."""
        if self._pace.is_paused:
            return 0.0 if self._n_steps else None
        return max(self._due_s - time.monotonic(), 0.0) if self._pace.rate else 0.0

    def made(self) -> StepsMade | None:
        """Return the answer to a request in a pause, once, after its last step was sent."""
        if not self.number or self._n_steps or not self._pace.is_paused:
            return None
        number, self.number = self.number, 0
        return StepsMade(number)

    def step(self, step_s: float) -> None:
        """Count a step that is due, of ``step_s`` of simulated time, s."""
        if self._pace.is_paused:
            self._n_steps -= 1
        elif self._pace.rate:
            self._due_s = max(self._due_s, time.monotonic() - _LONGEST_DELAY_S)
            self._due_s += step_s / self._pace.rate


def process_pipes() -> tuple[Connection, Connection]:
    """
    Return the requests and the messages of this child; called at its start.

    What it prints goes to standard error from then on.
    """
    messages = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)
    return Connection(os.dup(0), writable=False), messages


class ChildSource(LiveSource):
    """
    Yield the steps of a simulation that a child sends.

    :param settings: waits before the child is started again.
    :param address: what the child connects to, for errors.
    :param module: module that is run.
    :param reconnect: whether to start again after a failure.
    :cvar simulator: its name, for the diagnostics.
    :cvar program: what has ended if the child has, for errors.
    :ivar is_paused: whether steps are made only on request.
    :ivar is_stepping: whether steps of a request are outstanding.
    :ivar position: simulated time since the first step of the run, s.
    """

    simulator: ClassVar[str]
    program: ClassVar[str] = 'its process'
    edits = SET, SPAWN, DELETE

    def __init__(self, settings: Settings, address: str, module: str, *,
                 reconnect: bool = True) -> None:
        super().__init__(settings, address, reconnect=reconnect)
        self._module = module
        self.is_paused = self.is_stepping = False
        self.position, self._begin_s = 0.0, math.nan
        # Of the requests for steps, of the last order that has had an effect, and of the next
        # frames that may show a change.
        self._n_requests = self.n_proven = self._n_showing = 0
        # Answers to changes, with the game time of the last frame before each, s.
        self._edited: SimpleQueue[tuple[EntityEdit, str, float]] = SimpleQueue()
        # Guards the child and the pipe to it.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: Connection | None = None
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)

    def command(self) -> list[str]:
        """Return the words that start the child."""
        return [sys.executable, '-m', self._module]

    @abstractmethod
    def first_request(self) -> object:
        """
        Return the first request to a new child.

        :raises StateSensorError: if it need not be started: the simulator cannot be reached.
        """

    @abstractmethod
    def take(self, message: object) -> Frame | None:
        """Take a message of the child other than :class:`ProcessEnd`; return its frame, if any."""

    def printed(self, line: str) -> None:
        """Take a line that the child has printed; called by another thread."""
        self._lines.append(line)

    def receive(self) -> Iterator[Frame]:
        """
        Start the child and yield its frames until it ends.

        :raises TransportError: if it fails or is killed.
        """
        request = self.first_request()
        with self._lock:
            if self.is_closing:
                return
            requests, self._requests = Pipe(duplex=False)
            messages, sent = Pipe(duplex=False)
            with requests, sent:
                self._process = process = subprocess.Popen(
                    self.command(), stdin=requests.fileno(),
                    stdout=sent.fileno(), stderr=subprocess.PIPE, start_new_session=True)
                self._requests.send(request)
            # A full pipe must not hold up close(); a request is short: written whole, or not.
            os.set_blocking(self._requests.fileno(), False)
        assert process.stderr is not None
        self._lines.clear()
        listener = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        listener.start()
        end: ProcessEnd | None = None
        with messages, suppress(EOFError, OSError):
            while end is None and not self.is_closing:
                self.before_message(messages)
                message = messages.recv()
                if isinstance(message, ProcessEnd):
                    end = message
                elif isinstance(message, StepsMade):
                    self.is_stepping &= message.number != self._n_requests
                elif isinstance(message, EditMade):
                    self._n_showing = _N_SHOWING
                    self._edited.put((*message, self._begin_s + self.position))
                elif (item := self.take(message)) is not None:
                    yield item
        if end and not end.is_failure:
            self.finish(end.reason)
        elif not self.is_closing:
            # The pipe ends before the child, and what it printed arrives after it.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
            listener.join(_END_S)
            error = UnreachableError if end and end.is_unreachable else TransportError
            raise error(self._address, self.failure(end, process.returncode))

    def before_message(self, messages: Connection) -> None:
        """Take notice that the child is silent; ``messages`` may be polled, for some time."""

    def failure(self, end: ProcessEnd | None, exit_code: int | None) -> str:
        """
        Return why the child has failed.

        :param end: its last message, None if it has sent none.
        :param exit_code: negative for the signal that killed it.
        """
        if end is not None:
            return end.reason
        if exit_code is not None and exit_code < 0:
            return f'{self.program} was ended by signal {-exit_code}'
        last = f': {self._lines[-1]}' if self._lines else ''
        return f'{self.program} ended with exit code {exit_code}{last}'

    def send(self, request: object) -> None:
        """
        Send a request to the child; from any thread.

        :raises TransportError: if the child does not run, or has not read many requests.
        """
        with self._lock:
            if self._requests is None:
                raise TransportError(self._address, f'{self.program} is not running')
            try:
                self._requests.send(request)
            except OSError as error:
                raise TransportError(self._address,
                                     f'{self.program} does not take commands: '
                                     f'{reason_of(error)}') from error

    def disconnect(self) -> None:
        """End the child, and free its pipe."""
        with self._lock:
            process, self._process = self._process, None
            requests, self._requests = self._requests, None
            self.is_stepping = False
        if requests is not None:
            requests.close()
        if process is not None:
            self._await_end(process)
            self.ended(process.returncode)

    def may_kill(self) -> bool:
        """Return whether a child that does not end within a second is killed."""
        return True

    def _await_end(self, process: subprocess.Popen[bytes], limit_s: float = _END_S) -> None:
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            if self.may_kill():
                process.kill()
                process.wait()

    def ended(self, exit_code: int | None) -> None:
        """Note how a child has ended; ``exit_code`` as for :meth:`failure`."""

    def interrupt(self) -> None:
        """End the requests, after which the child ends, and with it :meth:`receive`."""
        with self._lock:
            process, requests, self._requests = self._process, self._requests, None
        if requests is not None:
            # Requests that were sent, such as a last command, are taken before the end.
            requests.close()
        if process is not None:
            # A library that waits with the interpreter lock held would keep the child alive.
            threading.Thread(target=self._await_end, args=(process, _STUCK_S),
                             daemon=True).start()

    @property
    def process_id(self) -> int:
        """Id of the child, 0 if there is none."""
        process = self._process
        return 0 if process is None else process.pid

    def _listen(self, output: IO[bytes]) -> None:
        """Take the lines that the child prints; ends with it."""
        with output:
            for raw in output:
                if line := raw.decode(errors='replace').strip()[:_MAX_LINE]:
                    self.printed(line)

    def drive(self, order: Order) -> None:
        """Send a command to the child; :meth:`send` says what is raised."""
        self.send(order)

    def brake(self) -> None:
        """Do nothing: commands go through the child only."""

    def edit(self, edit: EntityEdit) -> float:
        """Have the child make a change, as of :class:`EditableSource`."""
        self._edited, made = SimpleQueue(), None
        self.send(edit)
        try:
            # A late answer is to another one. As texts: a NaN is not equal to itself.
            while repr(made) != repr(edit):
                made, error, before_s = self._edited.get(timeout=_EDIT_S)
        except Empty:
            raise TransportError(self._address, f'no answer within {_EDIT_S:g} s') from None
        if error:
            raise RefusalError(self._address, error)
        return before_s

    # The steps.

    def begun(self) -> None:
        """Note that a run has begun: the next step is its first one."""
        self._begin_s = math.nan

    @property
    def has_frame(self) -> bool:
        """Whether the child has sent a step of this run."""
        return not math.isnan(self._begin_s)

    def stepped(self, frame: Frame, *, is_first: bool) -> Frame:
        """Note a step; ``is_first`` after the run was begun again. Return what is yielded."""
        if not self.is_paused:
            self.health.silence = ''
        if not self.has_frame:
            self._begin_s = frame.game_time
        self.position = frame.game_time - self._begin_s
        has_gap, self._n_showing = is_first or self._n_showing > 0, max(self._n_showing - 1, 0)
        return replace(frame, is_behind_gap=True) if has_gap else frame

    def step_rate(self, settings: Settings) -> float:
        """Return the pace of the steps, 0 for as fast as possible, or as others make them."""
        return settings.rate

    def reconfigure(self, settings: Settings) -> None:
        """Use a changed rate; may be called from any thread."""
        super().reconfigure(settings)
        self.send_pace()

    def send_pace(self, n_steps: int | None = 0) -> None:
        """Send pace and pause, which a new child is started with; ``n_steps`` as in StepPace."""
        with suppress(TransportError):
            self.send(StepPace(self.step_rate(self.settings), self.is_paused, n_steps))

    def show_pause(self) -> None:
        """Have the diagnostics show whether the simulation is paused."""
        if self.health.state in (SourceState.CONNECTED, SourceState.PAUSED):
            self.health.state = SourceState.PAUSED if self.is_paused else SourceState.CONNECTED
            self.health.silence = f'{self.simulator} is paused' if self.is_paused else ''


class Order(NamedTuple):
    """The request for a command to the ego, and its number."""

    number: int
    command: EgoCommand | None  # None before the first one


class StepControl(ChildSource):
    """A simulation whose steps the child makes, so that it can pause, step and begin again."""

    def pause(self) -> None:
        """Make no further steps."""
        self._set_pause(is_paused=True)

    def resume(self) -> None:
        """Go on after a pause."""
        self._set_pause(is_paused=False)

    def step(self, n_frames: int = 1) -> None:
        """Make so many steps at once while paused."""
        self._check_running()
        self._ask(n_frames)

    def restart(self) -> None:
        """Begin the run again; it stays paused after its first step if it is paused."""
        self._check_running()
        # A child that is started anew begins with the run.
        with suppress(TransportError):
            self._ask(is_restart=True)
        self.position = 0.0

    def _ask(self, n_steps: int = 0, *, is_restart: bool = False) -> None:
        self._n_requests, self.is_stepping = self._n_requests + 1, self.is_paused
        try:
            self.send(StepPace(self.step_rate(self.settings), self.is_paused, n_steps,
                               self._n_requests, is_restart))
        except TransportError:
            self.is_stepping = False
            raise

    def _set_pause(self, *, is_paused: bool) -> None:
        self._check_running()
        self.is_paused, self.is_stepping = is_paused, False
        self.send_pace(None)
        self.show_pause()

    def _check_running(self) -> None:
        if self.is_over:
            raise TransportError(self._address, self.health.loss)


class ChildCommands:
    """Write commands through a child, which applies them at once or in its next step."""

    def __init__(self, source: ChildSource) -> None:
        self._source, self._number = source, 0

    def write(self, command: EgoCommand) -> Proof:
        """Send a command; its proof is a step after which the child says that it has acted."""
        self._number = number = self._number + 1
        self._source.drive(Order(number, command))
        return lambda: self._source.n_proven >= number

    def brake(self) -> None:
        """Brake without the child, where that is possible."""
        self._source.brake()

    def indicate(self, indicators: int) -> None:
        """Set the turn signals of the ego."""
        self._source.send(Indicate(indicators))

    def close(self) -> None:
        """Do nothing: the command is in the pipe, which the child reads before its end."""

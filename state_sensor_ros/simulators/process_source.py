# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A live source whose frames another process makes, such as one with a library that blocks.

The process is started as ``python -m MODULE``, with its requests on standard input and its
messages on standard output, both pickled; what it prints goes to standard error. It ends when its
requests end. :class:`StepSource` is one whose process makes the steps of a simulation, or follows
them.
"""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
import fcntl
import math
from multiprocessing.connection import Connection, Pipe
import os
import pickle
import subprocess
import sys
import termios
import threading
import time
from typing import ClassVar, IO

from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.errors import reason_of, TransportError, UnreachableError
from state_sensor_ros.payloads import Decoded, FrameLike, LateFrame, Packet
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import SourceState

__all__ = ['Indicate', 'ProcessEnd', 'ProcessSource', 'Restart', 'StepClock', 'StepControl',
           'StepPace', 'StepSource', 'process_pipes']

# Time for the process to release what it holds after its requests have ended, s.
_END_S = 1.0
# A process that has not ended by itself in that time, although busy, is stuck, s.
_STUCK_S = 1.4
# Longest delay of steps that is made up for, s: the node would drop a longer burst of frames.
_LONGEST_DELAY_S = 0.2
# Last lines that the process has printed, for an error.
_LAST_LINES = 5
_MAX_LINE = 300
# Bytes of a request in the pipe in front of what is pickled.
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """The last message of a process."""

    reason: str  # one line
    is_failure: bool = True
    is_unreachable: bool = False  # whether the failure is that no simulator runs


@dataclass(frozen=True, slots=True)
class StepPace:
    """A request to a process that makes the steps."""

    rate: float  # times real time, 0 as fast as possible
    is_paused: bool  # whether to make no steps
    n_steps: int = 0  # more steps at once in a pause


@dataclass(frozen=True, slots=True)
class Restart:
    """A request to such a process: begin again, with a first step even in a pause."""


@dataclass(frozen=True, slots=True)
class Indicate:
    """A request to such a process: set the turn signals of the ego."""

    indicators: int


class StepClock:
    """
    When a process makes its next step: by the pace that was requested last.

    :param rate: as in :class:`StepPace`.
    :param is_paused: whether steps are made only on request.
    """

    def __init__(self, rate: float, *, is_paused: bool) -> None:
        self._pace = StepPace(rate, is_paused)
        self._n_steps = 0
        self._due_s = time.monotonic()

    def take(self, pace: StepPace) -> None:
        """
        Keep another pace from now on.

        :param pace: a change of its pause drops the steps that were requested before.
        """
        if pace.is_paused != self._pace.is_paused:
            self._n_steps = 0
        self._pace = pace
        self._n_steps += pace.n_steps
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

    def step(self, step_s: float) -> None:
        """
        Count a step that is due.

        :param step_s: simulated time of a step.
        """
        if self._pace.is_paused:
            self._n_steps -= 1
        elif self._pace.rate:
            self._due_s = max(self._due_s, time.monotonic() - _LONGEST_DELAY_S)
            self._due_s += step_s / self._pace.rate


def process_pipes() -> tuple[Connection, Connection]:
    """
    Return the requests and the messages of this process; called by the process at its start.

    What the process prints goes to standard error from then on.
    """
    messages = Connection(os.dup(1), readable=False)
    os.dup2(2, 1)
    return Connection(os.dup(0), writable=False), messages


class ProcessSource(LiveSource):
    """
    Yield what a process sends.

    :param settings: waits before the process is started again.
    :param address: what the process connects to, for errors.
    :param module: module that is run.
    :param reconnect: whether to start again after a failure.
    :cvar program: what has ended if the process has, for errors.
    """

    program: ClassVar[str] = 'its process'

    def __init__(self, settings: Settings, address: str, module: str, *,
                 reconnect: bool = True) -> None:
        super().__init__(settings, address, reconnect=reconnect)
        self._module = module
        # Guards the process and the pipe to it.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: Connection | None = None
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        # Bytes of the requests, those of them that were read when it was last looked, and when
        # the number of these had last changed, s of the steady clock.
        self._n_sent, self._n_read, self._read_s = 0, 0, 0.0

    def command(self) -> list[str]:
        """Return the words that start the process."""
        return [sys.executable, '-m', self._module]

    @abstractmethod
    def first_request(self) -> object:
        """
        Return the first request to a new process.

        :raises StateSensorError: if it need not be started: the simulator cannot be reached.
        """

    @abstractmethod
    def take(self, message: object) -> FrameLike | Packet | None:
        """
        Take a message of the process.

        :param message: any but :class:`ProcessEnd`.
        :returns: a frame, None for another message.
        """

    def printed(self, line: str) -> None:
        """
        Take a line that the process has printed; called by another thread.

        :param line: without its end.
        """
        self._lines.append(line)

    def receive(self) -> Iterator[FrameLike | Packet]:
        """
        Start the process and yield its frames until it ends.

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
                self._n_sent = self._n_read = 0
                self._write(self._requests, request)
            # A full pipe must not hold up close(); a request is short: written whole, or not.
            os.set_blocking(self._requests.fileno(), False)
        assert process.stderr is not None
        self._lines.clear()
        listener = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        listener.start()
        end: ProcessEnd | None = None
        with messages:
            while not self.is_closing:
                self.before_message(messages)
                try:
                    message = messages.recv()
                except (EOFError, OSError):
                    break
                if isinstance(message, ProcessEnd):
                    end = message
                    if not end.is_failure:
                        self.finish(end.reason)
                    break
                if (item := self.take(message)) is not None:
                    yield item
        if not self.is_closing and not self.is_over:
            # The pipe ends before the process, and what it printed arrives after it.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
            listener.join(_END_S)
            error = UnreachableError if end and end.is_unreachable else TransportError
            raise error(self._address, self.failure(end, process.returncode))

    def before_message(self, messages: Connection) -> None:
        """
        Take notice that the process is silent, before the next message is awaited.

        :param messages: may be polled, for some time.
        """

    def failure(self, end: ProcessEnd | None, exit_code: int | None) -> str:
        """
        Return why a process has failed.

        :param end: its last message, None if it has sent none.
        :param exit_code: as for :meth:`reason`.
        """
        return end.reason if end else self.reason(exit_code)

    def reason(self, exit_code: int | None) -> str:
        """
        Return why a process has ended without a reason.

        :param exit_code: its exit code, negative for the signal that killed it.
        """
        if exit_code is not None and exit_code < 0:
            return f'{self.program} was ended by signal {-exit_code}'
        last = f': {self._lines[-1]}' if self._lines else ''
        return f'{self.program} ended with exit code {exit_code}{last}'

    def send(self, request: object) -> None:
        """
        Send a request to the process; from any thread.

        :param request: what the process takes.
        :raises TransportError: if the process does not run, or has not read many requests.
        """
        with self._lock:
            if self._requests is None:
                raise TransportError(self._address, f'{self.program} is not running')
            try:
                self._write(self._requests, request)
            except OSError as error:
                raise TransportError(self._address,
                                     f'{self.program} does not take commands: '
                                     f'{reason_of(error)}') from error

    def _write(self, requests: Connection, request: object) -> None:
        pickled = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
        requests.send_bytes(pickled)
        self._n_sent += _LENGTH_BYTES + len(pickled)

    def unread_s(self) -> float:
        """Return for how long the process has read nothing although a request waits, s."""
        with self._lock:
            n_unread = array('i', [0])
            if self._requests is not None:
                fcntl.ioctl(self._requests.fileno(), termios.FIONREAD, n_unread)
            now_s, n_read = time.monotonic(), self._n_sent - n_unread[0]
            if not n_unread[0] or n_read != self._n_read:
                self._n_read, self._read_s = n_read, now_s
            return now_s - self._read_s

    def disconnect(self) -> None:
        """End the process, and free its pipe."""
        with self._lock:
            process, self._process = self._process, None
            requests, self._requests = self._requests, None
        if requests is not None:
            requests.close()
        if process is None:
            return
        self._await_end(process)
        self.ended(process.returncode)

    def may_kill(self) -> bool:
        """Return whether a process that does not end within a second is killed."""
        return True

    def _await_end(self, process: subprocess.Popen[bytes], limit_s: float = _END_S) -> None:
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            if self.may_kill():
                process.kill()
                process.wait()

    def ended(self, exit_code: int | None) -> None:
        """
        Note how a process has ended.

        :param exit_code: its exit code, negative for the signal that killed it.
        """

    def run_briefly(self, request: object) -> None:
        """
        Run another process for this request alone, for a second at most; called after the end.

        :param request: its first request.
        """
        requests, sender = Pipe(duplex=False)
        with requests, sender, subprocess.Popen(
                self.command(), stdin=requests.fileno(),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True) as process:
            sender.send(request)
            self._await_end(process)
            self.ended(process.returncode)

    def interrupt(self) -> None:
        """End the requests, after which the process ends, and with it :meth:`receive`."""
        with self._lock:
            process, requests, self._requests = self._process, self._requests, None
        if requests is not None:
            # Requests that were sent, such as a last command, are taken before the end.
            requests.close()
        if process is not None:
            # A library that waits with the interpreter lock held would keep the process alive.
            threading.Thread(target=self._await_end, args=(process, _STUCK_S),
                             daemon=True).start()

    @property
    def process_id(self) -> int:
        """Id of the process, 0 if there is none."""
        with self._lock:
            return self._process.pid if self._process is not None else 0

    def _listen(self, output: IO[bytes]) -> None:
        """Take the lines that the process prints; ends with the process."""
        with output:
            for raw in output:
                if line := raw.decode(errors='replace').strip()[:_MAX_LINE]:
                    self.printed(line)


class StepSource(ProcessSource):
    """
    Yield the steps of a simulation; the parameters are those of :class:`ProcessSource`.

    :cvar simulator: its name, for the diagnostics.
    :ivar is_paused: whether steps are made only on request.
    :ivar position: simulated time since the first step of the run, s.
    """

    simulator: ClassVar[str]

    def __init__(self, settings: Settings, address: str, module: str, *,
                 reconnect: bool = True) -> None:
        super().__init__(settings, address, module, reconnect=reconnect)
        self._begin_s = math.nan
        self.is_paused = False
        self.position = 0.0

    def begun(self) -> None:
        """Note that a run has begun: the next step is its first one."""
        self._begin_s = math.nan

    @property
    def has_frame(self) -> bool:
        """Whether the process has sent a step of this run."""
        return not math.isnan(self._begin_s)

    def stepped(self, decoded: Decoded | LateFrame, game_time: float, sample_count: int, *,
                is_first: bool) -> Packet:
        """
        Note a step, and return what is yielded for it.

        :param decoded: its frame, or what makes it when it is used.
        :param game_time: time of the frame, s.
        :param sample_count: its number, 0 if it has none.
        :param is_first: whether it is the first one after the run was begun again.
        """
        if not self.is_paused:
            self.health.silence = ''
        if math.isnan(self._begin_s):
            self._begin_s = game_time
        self.position = game_time - self._begin_s
        return Packet(b'', game_time, 0, sample_count, is_behind_gap=is_first, decoded=decoded)

    def step_rate(self, settings: Settings) -> float:
        """
        Return the pace of the steps, times real time.

        :param settings: all parameters.
        :returns: 0 for steps as fast as possible, or as others make them.
        """
        return settings.rate

    def reconfigure(self, settings: Settings) -> None:
        """
        Use a changed rate; may be called from any thread.

        :param settings: all parameters.
        """
        super().reconfigure(settings)
        self.send_pace()

    def send_pace(self, n_steps: int = 0) -> None:
        """
        Send pace and pause; a process that does not run is started with them.

        :param n_steps: steps to make at once in a pause.
        """
        with suppress(TransportError):
            self.send(StepPace(self.step_rate(self.settings), self.is_paused, n_steps))

    def show_pause(self) -> None:
        """Have the diagnostics show whether the simulation is paused."""
        if self.health.state in (SourceState.CONNECTED, SourceState.PAUSED):
            self.health.state = SourceState.PAUSED if self.is_paused else SourceState.CONNECTED
            self.health.silence = f'{self.simulator} is paused' if self.is_paused else ''


class StepControl(StepSource):
    """A simulation whose steps the process makes, so that it can pause, step and begin again."""

    def pause(self) -> None:
        """Make no further steps."""
        self._set_pause(is_paused=True)

    def resume(self) -> None:
        """Go on after a pause."""
        self._set_pause(is_paused=False)

    def step(self, n_frames: int = 1) -> None:
        """
        Make steps at once while paused.

        :param n_frames: number of steps.
        """
        self._check_running()
        self.send_pace(n_frames)

    def restart(self) -> None:
        """Begin the run again; it stays paused after its first step if it is paused."""
        self._check_running()
        with suppress(TransportError):
            self.send(Restart())
        self.position = 0.0

    def _set_pause(self, *, is_paused: bool) -> None:
        self._check_running()
        self.is_paused = is_paused
        self.send_pace()
        self.show_pause()

    def _check_running(self) -> None:
        """
        Check that there is a run to control.

        :raises TransportError: if it is over.
        """
        if self.is_over:
            raise TransportError(self._address, self.health.loss)

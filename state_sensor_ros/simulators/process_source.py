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
requests end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
import os
import subprocess
import sys
import threading
from typing import IO

from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.errors import reason_of, TransportError, UnreachableError
from state_sensor_ros.payloads import FrameLike, Packet
from state_sensor_ros.settings import Settings

__all__ = ['ProcessEnd', 'ProcessSource', 'process_pipes']

# Time for the process to release what it holds after its requests have ended, s.
_END_S = 1.0
# Last lines that the process has printed, for an error.
_LAST_LINES = 5
_MAX_LINE = 300


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """
    The last message of a process.

    ``reason`` one line; ``is_failure`` whether it failed; ``is_unreachable`` whether the failure
    is that no simulator runs.
    """

    reason: str
    is_failure: bool = True
    is_unreachable: bool = False


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
    """

    def __init__(self, settings: Settings, address: str, module: str, *,
                 reconnect: bool = True) -> None:
        super().__init__(settings, address, reconnect=reconnect)
        self._module = module
        # Guards the process and the pipe to it.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: Connection | None = None
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)

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
                    [sys.executable, '-m', self._module], stdin=requests.fileno(),
                    stdout=sent.fileno(), stderr=subprocess.PIPE, start_new_session=True)
                self._requests.send(request)
            # A full pipe must not hold up close(); a request is short: written whole, or not.
            os.set_blocking(self._requests.fileno(), False)
        assert process.stderr is not None
        self._lines.clear()
        listener = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        listener.start()
        end: ProcessEnd | None = None
        with messages:
            while not self.is_closing:
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
            raise error(self._address, end.reason if end else self.reason(process.returncode))

    def reason(self, exit_code: int | None) -> str:
        """
        Return why a process has ended without a reason.

        :param exit_code: its exit code, negative for the signal that killed it.
        """
        if exit_code is not None and exit_code < 0:
            return f'its process was ended by signal {-exit_code}'
        last = f': {self._lines[-1]}' if self._lines else ''
        return f'its process ended with exit code {exit_code}{last}'

    def send(self, request: object) -> None:
        """
        Send a request to the process; from any thread.

        :param request: what the process takes.
        :raises TransportError: if the process does not run, or has not read many requests.
        """
        with self._lock:
            if self._requests is None:
                raise TransportError(self._address, 'no connection')
            try:
                self._requests.send(request)
            except OSError as error:
                raise TransportError(self._address,
                                     f'requests are not taken: {reason_of(error)}') from error

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

    @staticmethod
    def _await_end(process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
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
                [sys.executable, '-m', self._module], stdin=requests.fileno(),
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
            threading.Thread(target=self._await_end, args=(process,), daemon=True).start()

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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames of SUMO, which a process of its own starts or joins."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
import math
from multiprocessing.connection import Connection, Pipe
import os
import signal
import subprocess
import sys
import threading
from typing import IO

from state_sensor_ros.simulators import (
    counted,
    Decoded,
    EgoCommand,
    Frame,
    LiveSource,
    Packet,
    reason_of,
    Report,
    Settings,
    SourceState,
    TransportError,
    UnreachableError,
)
from state_sensor_ros.simulators.sumo.map import Signals
from state_sensor_ros.simulators.sumo.simulator import SumoParameters
from state_sensor_ros.simulators.sumo.step_frames import with_roads
from state_sensor_ros.simulators.sumo.sumo_messages import (
    Ended,
    NewRate,
    Paused,
    Request,
    Reset,
    Run,
    Started,
    Stepped,
    Steps,
)

# A joined SUMO that has not answered for this long probably waits for other clients, s.
_SILENCE_S = 2.0
# Time for SUMO to close its files after the pipe for requests is closed, s.
_END_S = 1.0
# Last lines that SUMO has printed, for an error.
_LAST_LINES = 5
_MAX_LINE = 300


class SumoSource(LiveSource):
    """
    Yield a frame for each step of SUMO.

    :param own: ``config`` of the scenario to start; empty to join a running SUMO.
    :param settings: ``rate``, and waits before the process is started again.
    :param report: called with SUMO's warnings.
    :param reconnect: whether to start again after SUMO has failed.
    :ivar is_paused: whether steps are made only on request.
    :ivar position: simulated time since the first step of the run, s.
    """

    def __init__(self, own: SumoParameters, settings: Settings, report: Report, *,
                 reconnect: bool = True) -> None:
        super().__init__(settings, own.config or f'{own.host}:{own.port}', reconnect=reconnect)
        self._own = own
        self._report = report
        # Guards the process and the pipe to it.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: Connection | None = None
        self._lines: deque[str] = deque(maxlen=_LAST_LINES)
        # Whether the process is a client of SUMO.
        self._has_begun = False
        self.is_paused = False
        self.position = 0.0

    def receive(self) -> Iterator[Frame | Packet]:
        """
        Start the process and yield its frames until the scenario is over.

        :raises TransportError: if SUMO cannot be started or joined, fails, or is killed.
        """
        with self._lock:
            if self.is_closing:
                return
            requests, self._requests = Pipe(duplex=False)
            frames, sent = Pipe(duplex=False)
            with requests, sent:
                self._process = process = subprocess.Popen(
                    [sys.executable, '-m', f'{__package__}.sumo_process'],
                    stdin=requests.fileno(), stdout=sent.fileno(), stderr=subprocess.PIPE,
                    start_new_session=True)
                self._requests.send(Run(self._own, self._rate(self.settings), self.is_paused))
            # A full pipe must not hold up close(); a request is short: written whole, or not.
            os.set_blocking(self._requests.fileno(), False)
        assert process.stderr is not None
        self._lines.clear()
        listener = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        listener.start()
        with frames:
            end = yield from self._frames(frames)
        if not self.is_closing and not self.is_over:
            # The pipe ends before the process, and what SUMO printed arrives after it.
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
            listener.join(_END_S)
            error = UnreachableError if end and end.is_unreachable else TransportError
            raise error(self._address, self._reason(end, process.returncode))

    def _rate(self, settings: Settings) -> float:
        """Return the pace of the steps, 0 if the other clients of a joined SUMO set it."""
        return settings.rate if self._own.config or self._own.step_it else 0.0

    def _frames(self, pipe: Connection) -> Generator[Frame | Packet, None, Ended | None]:
        """Yield the frames; return how the process failed, None if it has not sent it."""
        network, signals, begin_s = None, None, math.nan
        self._has_begun = False
        while not self.is_closing:
            if not (self._own.config or self.health.n_packets or pipe.poll(_SILENCE_S)):
                self.health.silence = (
                    f'{self._address} has not answered: it may wait for other clients '
                    '(--num-clients), or for one that steps it')
                self._report('silence', self.health.silence)
            try:
                message = pipe.recv()
            except (EOFError, OSError):
                break
            if isinstance(message, Started):
                self._has_begun = True
                # A scenario that begins again has the same network.
                if network is None:
                    self.connected()
                    self.health.silence = 'SUMO has not made its first step yet'
                network, begin_s = message.network, math.nan
                signals = Signals(network)
                self._show_pause()
            elif isinstance(message, Ended):
                if message.is_failure:
                    return message
                self.finish(message.reason)
                break
            elif isinstance(message, Stepped) and network and signals:
                if not self.is_paused:
                    self.health.silence = ''
                frame = replace(with_roads(message.frame, network),
                                traffic_lights=signals.lights(message.lights))
                if message.lights is not None and signals.n_left_out:
                    self._report('lights', f'{counted(signals.n_left_out, "traffic light")} '
                                 'without a colour, off or blinking: left out')
                begin_s = frame.game_time if math.isnan(begin_s) else begin_s
                self.position = frame.game_time - begin_s
                yield Packet(b'', frame.game_time, 0, 0, is_behind_gap=True,
                             decoded=Decoded(frame, ())) if message.is_first else frame
        return None

    def reconfigure(self, settings: Settings) -> None:
        """
        Use a changed rate; may be called from any thread.

        :param settings: all parameters.
        """
        super().reconfigure(settings)
        # A process that does not run is started with the new rate.
        with suppress(TransportError):
            self.send(NewRate(self._rate(settings)))

    def disconnect(self) -> None:
        """End the process, or let it leave a joined SUMO, and free its pipe."""
        with self._lock:
            process, self._process = self._process, None
            requests, self._requests = self._requests, None
        if requests is not None:
            requests.close()
        if process is None:
            return
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            # A joined SUMO ends if a client is lost: the process leaves it after its step.
            if self._own.config or not self._has_begun:
                process.kill()
                process.wait()

    def interrupt(self) -> None:
        """End the process, which ends :meth:`receive`."""
        with self._lock:
            if self._process is not None:
                self._process.terminate()
                # A process that is stopped ends only if it continues.
                self._process.send_signal(signal.SIGCONT)

    @property
    def process_id(self) -> int:
        """Id of the process that runs SUMO, 0 if there is none."""
        with self._lock:
            return self._process.pid if self._process is not None else 0

    def _show_pause(self) -> None:
        """Have the diagnostics show whether SUMO is paused."""
        if self.health.state in (SourceState.CONNECTED, SourceState.PAUSED):
            self.health.state = SourceState.PAUSED if self.is_paused else SourceState.CONNECTED
            self.health.silence = 'SUMO is paused' if self.is_paused else ''

    def send(self, request: Request) -> None:
        """
        Send a request to the process, which takes it before its next step; from any thread.

        :param request: a command to the ego counts until the next one.
        :raises TransportError: if the process does not run, or has not read many requests.
        """
        with self._lock:
            if self._requests is None:
                raise TransportError(self._address, 'SUMO is not running')
            try:
                self._requests.send(request)
            except OSError as error:
                why = f'SUMO does not take commands: {reason_of(error)}'
                raise TransportError(self._address, why) from error

    def _listen(self, output: IO[bytes]) -> None:
        """Report SUMO's warnings, and keep its last lines; ends with the process."""
        with output:
            for raw in output:
                line = raw.decode(errors='replace').strip()[:_MAX_LINE]
                if line.startswith('Warning: '):
                    self._report('sumo', f'SUMO: {line.removeprefix("Warning: ")}')
                elif line:
                    self._lines.append(line)

    def _reason(self, end: Ended | None, exit_code: int | None) -> str:
        """Return what went wrong; SUMO prints the reason of its general errors."""
        printed = [line for line in self._lines if line.startswith('Error: ')]
        if printed:
            return printed[-1].removeprefix('Error: ')
        if exit_code is not None and exit_code < 0:
            return f'SUMO was ended by signal {-exit_code}'
        return end.reason if end else f'SUMO ended with exit code {exit_code}'


class StartedSumo(SumoSource):
    """A SUMO that this source starts, which it can therefore pause, step and begin again."""

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
        self._request(Steps(n_frames))

    def restart(self) -> None:
        """Begin the scenario again; it stays paused after its first step if it is paused."""
        self._request(Reset())
        self.position = 0.0

    def _set_pause(self, *, is_paused: bool) -> None:
        self._request(Paused(is_paused))
        self.is_paused = is_paused
        self._show_pause()

    def _request(self, request: Request) -> None:
        """
        Send a request to the process.

        :raises TransportError: if the scenario is over.
        """
        if self.is_over:
            raise TransportError(self._address, self.health.loss)
        with suppress(TransportError):
            self.send(request)


class SumoCommands:
    """
    Send commands to the process that runs SUMO.

    :param source: runs the process.
    """

    def __init__(self, source: SumoSource) -> None:
        self._source = source

    def send(self, command: EgoCommand) -> None:
        """
        Send a command; the next step uses the newest one.

        :param command: counts until the next.
        :raises TransportError: if SUMO is not running, or does not read commands any more.
        """
        self._source.send(command)

    def close(self) -> None:
        """Do nothing: the command is in the pipe, and a started SUMO ends with the source."""

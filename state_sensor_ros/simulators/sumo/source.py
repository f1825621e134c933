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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
import signal
from typing import TYPE_CHECKING

from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.child_process import (
    ChildSource,
    Indicate,
    ProcessEnd,
    StepControl,
)
from state_sensor_ros.simulators.sumo.map import RoadNetwork, Signals
from state_sensor_ros.source import Report
from state_sensor_ros.texts import counted

if TYPE_CHECKING:
    from state_sensor_ros.simulators.sumo.simulator import SumoParameters

# A joined SUMO that has not answered for this long probably waits for other clients, s.
_SILENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class Run:
    # Parameters of SUMO: it starts the scenario ``config``, or joins a running SUMO if that is
    # empty.
    own: SumoParameters
    rate: float  # times real time, 0 as fast as possible
    is_paused: bool  # whether it makes steps only on request
    is_driven: bool  # whether commands are expected


@dataclass(frozen=True, slots=True)
class Stepped:
    frame: Frame
    lights: Mapping[str, str] | None  # states of traffic lights by id, None if no light changed
    is_first: bool = False  # whether it is the first one after a restart


class SumoSource(ChildSource):
    """Yield a frame for each step of SUMO."""

    # own: ``config`` of the scenario to start; empty to join a running SUMO.
    # reconnect: whether to start again after SUMO has failed.

    program = simulator = 'SUMO'

    def __init__(self, own: SumoParameters, settings: Settings, report: Report, *,
                 reconnect: bool = True) -> None:
        super().__init__(settings, own.config or f'{own.host}:{own.port}',
                         f'{__package__}.sumo_process', reconnect=reconnect)
        self._own = own
        self._report = report
        # Whether the process is a client of SUMO.
        self._has_begun = False
        self._network: RoadNetwork | None = None
        self._signals: Signals | None = None

    def first_request(self) -> Run:
        self._has_begun, self._network = False, None
        return Run(self._own, self.step_rate(self.settings), self.is_paused,
                   bool(self.settings.control_input))

    def step_rate(self, settings: Settings) -> float:
        """Return the pace of the steps, 0 if the other clients of a joined SUMO set it."""
        return settings.rate if self._own.config or self._own.step_it else 0.0

    def before_message(self, messages: Connection) -> None:
        """Report a joined SUMO that does not answer."""
        if not (self._own.config or self.health.n_packets or messages.poll(_SILENCE_S)):
            self.health.silence = (
                f'{self._address} has not answered: it may be waiting for other '
                'clients (--num-clients), or for a client that steps it')
            self._report('silence', self.health.silence)

    def take(self, message: object) -> Frame | None:
        if isinstance(message, RoadNetwork):
            self._started(message)
        elif isinstance(message, Stepped) and self._network and self._signals:
            return self._stepped(message, self._network, self._signals)
        return None

    def _started(self, network: RoadNetwork) -> None:
        self._has_begun = True
        # A scenario that begins again has the same network.
        if self._network is None:
            self.connected()
            self.health.silence = 'SUMO has not made its first step yet'
        self._network, self._signals = network, Signals(network)
        self.begun()
        self.show_pause()

    def _stepped(self, message: Stepped, network: RoadNetwork, signals: Signals) -> Frame:
        frame = replace(
            message.frame, traffic_lights=signals.lights(message.lights), map_lines=network.lines,
            lanes=replace(message.frame.lanes, road_names=network.road_names))
        if message.lights is not None and signals.n_dropped:
            self._report('lights', f'{counted(signals.n_dropped, "traffic light")} '
                         'without a color, off or blinking: dropped')
        return self.stepped(frame, is_first=message.is_first)

    def may_kill(self) -> bool:
        """Return False for a joined SUMO: it ends if a client is killed, which has to leave it."""
        return bool(self._own.config) or not self._has_begun

    def interrupt(self) -> None:
        """End the process, which ends :meth:`receive`."""
        with self._lock:
            if self._process is not None:
                self._process.terminate()
                # A process that is stopped ends only if it continues.
                self._process.send_signal(signal.SIGCONT)

    def printed(self, line: str) -> None:
        """Report a warning of SUMO, and keep other lines."""
        if line.startswith('Warning: '):
            self._report('sumo', f'SUMO: {line.removeprefix("Warning: ")}')
        else:
            super().printed(line)

    def failure(self, end: ProcessEnd | None, exit_code: int | None) -> str:
        """Return what went wrong; SUMO prints the reason of its general errors."""
        printed = [line for line in self._lines if line.startswith('Error: ')]
        if printed:
            return printed[-1].removeprefix('Error: ')
        is_killed = exit_code is not None and exit_code < 0
        return super().failure(None if is_killed else end, exit_code)


class StartedSumo(StepControl, SumoSource):
    """A SUMO that this source starts, which it can therefore pause, step and begin again."""


class SumoCommands:
    """Send commands to the process that runs SUMO."""

    def __init__(self, source: SumoSource) -> None:
        self._source = source

    def send(self, command: EgoCommand) -> None:
        """Send a command; the next step uses the newest one."""
        self._source.send(command)

    def indicate(self, indicators: int) -> None:
        """Set the turn signals of the ego."""
        self._source.send(Indicate(indicators))

    def close(self) -> None:
        """Do nothing: the command is in the pipe, and a started SUMO ends with the source."""

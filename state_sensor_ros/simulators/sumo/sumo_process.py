# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
SUMO in a process of its own: the source in the driver, and the process.

The process starts SUMO or joins one; then it makes a step, sends a frame, and again, until the
driver closes the pipe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
import math
from multiprocessing.connection import Connection
import os
import signal
import struct
from types import FrameType, ModuleType
from typing import NamedTuple

import numpy as np

from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.errors import importing, line_of, TransportError, UnreachableError
from state_sensor_ros.frame import Floats, Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import child_process
from state_sensor_ros.simulators.sumo import SumoParameters
from state_sensor_ros.simulators.sumo.commands import Sumo, SumoEgo
from state_sensor_ros.simulators.sumo.edits import SumoEdits
from state_sensor_ros.simulators.sumo.map import read_network, RoadNetwork, Signals
from state_sensor_ros.simulators.sumo.steps import ActorType, COLUMNS, Steps
from state_sensor_ros.source import EntityEdit, Report
from state_sensor_ros.texts import counted

# A joined SUMO that has not answered for this long probably waits for other clients, s.
_SILENCE_S = 2.0


class Run(NamedTuple):
    """The first request to the process."""

    # It starts the scenario ``config``, or joins a running SUMO if that is empty.
    own: SumoParameters
    rate: float  # times real time, 0 as fast as possible
    is_paused: bool  # whether it makes steps only on request


class Stepped(NamedTuple):
    """The message of the process after each step."""

    frame: Frame
    lights: Mapping[str, str] | None  # states of traffic lights by id, None if no light changed
    is_first: bool = False  # whether it is the first one after a restart
    n_proven: int = 0  # number of the order by which the ego has moved


class SumoSource(child_process.ChildSource):
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
        # None until the process is a client of SUMO.
        self._network: RoadNetwork | None = None
        self._signals: Signals | None = None

    def first_request(self) -> Run:
        self._network = None
        return Run(self._own, self.step_rate(self.settings), self.is_paused)

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
        # A scenario that begins again has the same network.
        if self._network is None:
            self.connected()
            self.health.silence = 'SUMO has not made its first step yet'
        self._network, self._signals = network, Signals(network)
        self.begun()
        self.show_pause()

    def _stepped(self, message: Stepped, network: RoadNetwork, signals: Signals) -> Frame:
        self.n_proven = message.n_proven
        frame = replace(
            message.frame, traffic_lights=signals.lights(message.lights), map_lines=network.lines,
            lanes=replace(message.frame.lanes, road_names=network.road_names))
        if message.lights is not None and signals.n_dropped:
            self._report('lights', f'{counted(signals.n_dropped, "traffic light")} '
                         'without a color, off or blinking: dropped')
        return self.stepped(frame, is_first=message.is_first)

    def may_kill(self) -> bool:
        """Return False for a joined SUMO: it ends if a client is killed, which has to leave it."""
        return bool(self._own.config) or self._network is None

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

    def failure(self, end: child_process.ProcessEnd | None, exit_code: int | None) -> str:
        """Return what went wrong; SUMO prints the reason of its general errors."""
        printed = [line for line in self._lines if line.startswith('Error: ')]
        if printed:
            return printed[-1].removeprefix('Error: ')
        is_killed = exit_code is not None and exit_code < 0
        return super().failure(None if is_killed else end, exit_code)


class StartedSumo(child_process.StepControl, SumoSource):
    """A SUMO that this source starts, which it can therefore pause, step and begin again."""


# Time for a SUMO whose call does not return, s.
_END_S = 1


def main() -> None:
    """Serve the driver that started this process."""
    # Ctrl-C in a terminal is handled by the driver, which closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    requests, frames = child_process.process_pipes()
    try:
        serve(requests.recv(), requests, frames)
    except (EOFError, BrokenPipeError):
        pass
    except Exception as error:  # noqa: BLE001  # SUMO's errors have no common base
        frames.send(child_process.ProcessEnd(
            line_of(error), is_unreachable=isinstance(error, UnreachableError)))


def _end(signum: int, frame: FrameType | None) -> None:
    """Close SUMO, so that its files end. A joined one goes on if no call is under way."""
    signal.alarm(_END_S)
    raise SystemExit


def serve(run: Run, requests: Connection, frames: Connection) -> None:
    """Run SUMO until the scenario is over, again after each request to reset it."""
    driver = DriverRequests(run, requests, frames)
    is_reset = False
    while _serve_once(run, driver, frames, is_reset=is_reset):
        is_reset = True
        driver.clock.restart()
    frames.send(child_process.ProcessEnd('the scenario is over', is_failure=False))


def _serve_once(run: Run, driver: DriverRequests, frames: Connection, *,
                is_reset: bool) -> bool:
    """Run the scenario until it is over; return True if it is to begin again."""
    own = run.own
    with _opened(own) as sumo:
        from traci import constants
        # SUMO resolves the path of the network of a configuration.
        network = read_network(own.net or sumo.simulation.getOption('net-file'))
        step_s = sumo.simulation.getDeltaT()
        frames.send(network)
        reader = StepReader(sumo, constants)
        maker = Steps(network, own.ego)
        lights: dict[str, str] = {}
        n_proven = 0
        ego, frame = SumoEgo(sumo, is_lent=not own.config), None
        edits = SumoEdits(sumo, ego, maker.run)
        with nullcontext() if own.config else _lending(ego, own, step_s, driver.pipe):
            while _goes_on(sumo):
                if not driver.await_step(step_s):
                    return True
                if ego.advance(driver.command, frame, step_s, driver.indicators):
                    n_proven = driver.order.number
                while driver.edits:
                    edit = driver.edits.pop(0)
                    frames.send(child_process.EditMade(edit, edits.make(edit)))
                edits.hold()
                sumo.simulationStep()
                edits.settle()
                # After a step SUMO's clock shows the next one.
                time_s = round(sumo.simulation.getTime() - step_s, 6)
                frame = ego.shown(maker.frame(time_s, *reader.read()))
                changed = reader.lights()
                # The names of the roads and the map are in the network: they need not be sent.
                frame = replace(frame, lanes=replace(frame.lanes, road_names={}), map_lines=())
                frames.send(Stepped(frame, None if changed == lights else changed, is_reset,
                                    n_proven))
                lights, is_reset = changed, False
    return False


def _end_requests(requests: Connection) -> None:
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, requests.fileno())
    os.close(empty)


@contextmanager
def _lending(ego: SumoEgo, own: SumoParameters, step_s: float,
             requests: Connection) -> Iterator[None]:
    """Give the ego back when the driver ends; a signal to end has effect after a step only."""
    signal.signal(signal.SIGTERM, lambda *_: _end_requests(requests))
    try:
        yield
    except (EOFError, BrokenPipeError):
        # Not if SUMO itself has ended.
        with suppress(Exception):
            if own.release == 'stop':
                ego.stop(step_s)
            ego.release()
        raise


class DriverRequests:
    """The requests of the driver: when a step is made, and the command to the ego."""

    def __init__(self, run: Run, pipe: Connection, messages: Connection) -> None:
        self.clock = child_process.StepClock(run.rate, is_paused=run.is_paused)
        self.pipe, self._messages = pipe, messages
        self.order = child_process.Order(0, None)
        # Wanted turn signals of the ego, None before the first request.
        self.indicators: int | None = None
        # Changes to make before the next step.
        self.edits: list[EntityEdit] = []

    @property
    def command(self) -> EgoCommand | None:
        """Return what the gate passes now, None before the first command."""
        # The driver may be stopped or be busy. Its clock is that of this process.
        return self.order.command and self.order.command.now()

    def await_step(self, step_s: float) -> bool:
        """Take requests until the next step is due, or the scenario is to begin again."""
        while True:
            if (made := self.clock.made()) is not None:
                self._messages.send(made)
            if self.pipe.poll(self.clock.left_s()):
                request = self.pipe.recv()
                if isinstance(request, child_process.Order):
                    self.order = request
                elif isinstance(request, EntityEdit):
                    self.edits.append(request)
                elif isinstance(request, child_process.Indicate):
                    self.indicators = request.indicators
                else:
                    self.clock.take(request)
                    if request.is_restart:
                        return False
            elif self.clock.left_s() == 0.0:
                self.clock.step(step_s)
                return True


@contextmanager
def _opened(own: SumoParameters) -> Iterator[Sumo]:
    """Start SUMO in this process, or join one; close it afterward."""
    if own.config:
        with importing('source sumo'):
            import libsumo
        libsumo.start(['sumo', '-c', own.config, '--step-length', str(own.step), '--seed',
                       str(own.seed), '--no-step-log', '--duration-log.disable', *own.args])
        try:
            yield libsumo
        finally:
            libsumo.close()
        return
    with importing('source sumo'):
        import traci
    try:
        sumo = traci.connect(own.port, numRetries=0, host=own.host)
    except (OSError, traci.exceptions.FatalTraCIError) as error:
        raise UnreachableError('cannot connect', 'is SUMO running with --remote-port?') from error
    try:
        sumo.setOrder(own.order)
    except (traci.exceptions.FatalTraCIError, struct.error, ValueError) as error:
        raise TransportError('SUMO does not answer', 'is this its --remote-port, and does '
                             '--num-clients allow one more client?') from error
    try:
        yield sumo
    finally:
        sumo.close()


def _goes_on(sumo: Sumo) -> bool:
    if 0 <= sumo.simulation.getEndTime() <= sumo.simulation.getTime():
        return False
    return bool(sumo.simulation.getMinExpectedNumber() > 0)


class StepReader:
    """Subscribes to each actor once, and reads all of them by one call a step."""

    def __init__(self, sumo: Sumo, constants: ModuleType) -> None:
        self._sumo = sumo
        self._position = constants.VAR_POSITION3D
        self._lane = constants.VAR_LANE_ID
        self._edge = constants.VAR_ROAD_ID
        self._inside = constants.VAR_VEHICLE
        self._state = constants.TL_RED_YELLOW_GREEN_STATE
        common = [constants.VAR_ANGLE, constants.VAR_SLOPE, constants.VAR_SPEED]
        self._of_vehicles = [*common, constants.VAR_SPEED_LAT, constants.VAR_LANEPOSITION,
                             constants.VAR_SIGNALS]
        self._of_persons = [*common, constants.VAR_LANEPOSITION]
        # Vehicles and persons have ids of their own.
        self._vehicles, self._persons = dict[str, ActorType](), dict[str, ActorType]()
        self._parked: dict[str, str] = {}
        for name in sumo.trafficlight.getIDList():
            sumo.trafficlight.subscribe(name, [self._state])
        self._subscribe(sumo.vehicle.getIDList(), sumo.person.getIDList())

    def read(self) -> tuple[list[str], list[ActorType], list[str], Floats]:
        """Return the actors of the step that SUMO has just made."""
        # Returns N ids, N types, N names of lanes or edges and (N, 9) float64, as
        # :meth:`Steps.frame` takes them; vehicles first.
        simulation = self._sumo.simulation
        for known, arrived in ((self._vehicles, simulation.getArrivedIDList()),
                               (self._persons, simulation.getArrivedPersonIDList())):
            for name in arrived:
                known.pop(name, None)
        self._subscribe(simulation.getDepartedIDList(), simulation.getDepartedPersonIDList())
        names, places, types = list[str](), list[str](), list[ActorType]()
        rows, parked = list[tuple[float, ...]](), dict[str, str]()
        for name, values in self._sumo.vehicle.getAllSubscriptionResults().items():
            if name not in self._vehicles:
                # Another client has removed it: its results are those of the step before.
                continue
            names.append(name)
            types.append(self._vehicles[name])
            places.append(values[self._lane] or parked.setdefault(
                name, self._parked.get(name) or self._lane_of_stop(name)))
            rows.append((*values[self._position], *[values[key] for key in self._of_vehicles]))
        for name, values in self._sumo.person.getAllSubscriptionResults().items():
            if values[self._inside] or name not in self._persons:
                continue
            names.append(name)
            types.append(self._persons[name])
            places.append(values[self._edge])
            angle, slope, speed, along = [values[key] for key in self._of_persons]
            rows.append((*values[self._position], angle, slope, speed, math.nan, along, math.nan))
        self._parked = parked
        columns = np.array(rows, float).reshape(len(names), len(COLUMNS))
        return names, types, places, columns

    def lights(self) -> dict[str, str]:
        """Return the state of each traffic light by its id, a letter for each link."""
        results = self._sumo.trafficlight.getAllSubscriptionResults()
        return {name: values[self._state] for name, values in results.items()}

    def _lane_of_stop(self, name: str) -> str:
        """Return the lane of a vehicle that has parked beside it; SUMO then says none."""
        stops = self._sumo.vehicle.getStops(name, 1)
        return str(stops[0].lane) if stops else ''

    def _subscribe(self, vehicles: list[str], persons: list[str]) -> None:
        vehicle, person = self._sumo.vehicle, self._sumo.person
        for name in vehicles:
            vehicle.subscribe(name, [self._position, self._lane, *self._of_vehicles])
            self._vehicles[name] = ActorType(vehicle.getVehicleClass(name), _size(vehicle, name))
        for name in persons:
            person.subscribe(name, [self._position, self._edge, *self._of_persons, self._inside])
            self._persons[name] = ActorType(
                self._sumo.vehicletype.getVehicleClass(person.getTypeID(name)),
                _size(person, name), is_person=True)


def _size(domain: Sumo, name: str) -> tuple[float, float, float]:
    return domain.getLength(name), domain.getWidth(name), domain.getHeight(name)


if __name__ == '__main__':
    # By its name, as which the classes of its messages are known to the driver.
    from state_sensor_ros.simulators.sumo import sumo_process
    sumo_process.main()

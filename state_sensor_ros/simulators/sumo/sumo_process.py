# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The process that runs SUMO: a step, a frame, and again, until the driver closes the pipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
import math
from multiprocessing.connection import Connection
import os
import signal
import struct
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.errors import importing, TransportError, UnreachableError
from state_sensor_ros.frame import Floats
from state_sensor_ros.simulators.child_process import (
    Indicate,
    process_pipes,
    ProcessEnd,
    Restart,
    StepClock,
)
from state_sensor_ros.simulators.sumo.commands import Sumo, SumoEgo
from state_sensor_ros.simulators.sumo.map import read_network
from state_sensor_ros.simulators.sumo.simulator import SumoParameters
from state_sensor_ros.simulators.sumo.source import Run, Stepped
from state_sensor_ros.simulators.sumo.steps import ActorType, COLUMNS, Steps

_END_S = 1


def main() -> None:
    """Serve the driver that started this process."""
    # Ctrl-C in a terminal is handled by the driver, which closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    requests, frames = process_pipes()
    try:
        serve(requests.recv(), requests, frames)
    except (EOFError, BrokenPipeError):
        pass
    except Exception as error:  # noqa: BLE001  # SUMO's errors have no common base
        frames.send(ProcessEnd(' '.join(str(error).split()) or type(error).__name__,
                               is_unreachable=isinstance(error, UnreachableError)))


def _end(signum: int, frame: FrameType | None) -> None:
    """Close SUMO, so that its files end. A joined one goes on if no call is under way."""
    signal.alarm(_END_S)
    raise SystemExit


def serve(run: Run, requests: Connection, frames: Connection) -> None:
    """Run SUMO until the scenario is over, again after each request to reset it."""
    driver = DriverRequests(run, requests)
    is_reset = False
    while _serve_once(run, driver, frames, is_reset=is_reset):
        is_reset = True
        driver.clock.restart()
    frames.send(ProcessEnd('the scenario is over', is_failure=False))


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
        reader = StepReader(sumo, constants, is_joined=not own.config)
        maker = Steps(network, own.ego)
        lights: dict[str, str] = {}
        ego, frame = SumoEgo(sumo, is_lent=not own.config, is_driven=run.is_driven), None
        with nullcontext() if own.config else _lending(ego, own, step_s, driver.pipe):
            while _goes_on(sumo):
                if not driver.await_step(step_s):
                    return True
                ego.advance(driver.command, frame, step_s, driver.indicators)
                sumo.simulationStep()
                # After a step SUMO's clock shows the next one.
                time_s = round(sumo.simulation.getTime() - step_s, 6)
                frame = ego.shown(maker.frame(time_s, *reader.read()))
                changed = reader.lights()
                # The names of the roads and the map are in the network: they need not be sent.
                frame = replace(frame, lanes=replace(frame.lanes, road_names={}), map_lines=())
                frames.send(Stepped(frame, None if changed == lights else changed, is_reset))
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

    def __init__(self, run: Run, pipe: Connection) -> None:
        self.clock = StepClock(run.rate, is_paused=run.is_paused)
        self.pipe = pipe
        self._command: EgoCommand | None = None
        # Wanted turn signals of the ego, None before the first request.
        self.indicators: int | None = None

    @property
    def command(self) -> EgoCommand | None:
        """Return what the gate passes now, None before the first command."""
        # The driver may be stopped or be busy. Its clock is that of this process.
        return self._command and self._command.now()

    def await_step(self, step_s: float) -> bool:
        """Take requests until the next step is due, or the scenario is to begin again."""
        while True:
            if self.pipe.poll(self.clock.left_s()):
                request = self.pipe.recv()
                if isinstance(request, Restart):
                    return False
                if isinstance(request, EgoCommand):
                    self._command = request
                elif isinstance(request, Indicate):
                    self.indicators = request.indicators
                else:
                    self.clock.take(request)
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
    end = sumo.simulation.getEndTime()
    if 0 <= end <= sumo.simulation.getTime():
        return False
    return bool(sumo.simulation.getMinExpectedNumber() > 0)


class StepReader:
    """Subscribes to each actor once, and reads all of them by one call a step."""

    def __init__(self, sumo: Sumo, constants: ModuleType, *, is_joined: bool = False) -> None:
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
        self._of_types = [constants.VAR_VEHICLECLASS, constants.VAR_LENGTH, constants.VAR_WIDTH,
                          constants.VAR_HEIGHT] if is_joined else []
        # Vehicles and persons have ids of their own.
        self._vehicles, self._persons = dict[str, ActorType](), dict[str, ActorType]()
        self._parked: dict[str, str] = {}
        for name in sumo.trafficlight.getIDList():
            sumo.trafficlight.subscribe(name, [self._state])
        self._subscribe(sumo.vehicle.getIDList(), sumo.person.getIDList())

    def read(self) -> tuple[list[str], list[ActorType], list[str], Floats]:
        """Return the actors of the step that SUMO has just made."""
        # Returns N ids, N types, N names of lanes or edges and (N, 9) float64, as
        # :meth:`StepFrames.frame` takes them; vehicles first.
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
            types.append(self._type(self._vehicles[name], values))
            places.append(values[self._lane] or parked.setdefault(
                name, self._parked.get(name) or self._lane_of_stop(name)))
            rows.append((*values[self._position], *[values[key] for key in self._of_vehicles]))
        for name, values in self._sumo.person.getAllSubscriptionResults().items():
            if values[self._inside] or name not in self._persons:
                continue
            names.append(name)
            types.append(self._type(self._persons[name], values))
            places.append(values[self._edge])
            angle, slope, speed, along = [values[key] for key in self._of_persons]
            rows.append((*values[self._position], angle, slope, speed, math.nan, along, math.nan))
        self._parked = parked
        columns = np.array(rows, float).reshape(len(names), len(COLUMNS))
        return names, types, places, columns

    def _type(self, known: ActorType, values: dict[int, Any]) -> ActorType:
        # Another client may have changed it.
        if not self._of_types:
            return known
        vclass, *size = [values[key] for key in self._of_types]
        return ActorType(vclass, tuple(size), known.is_person)

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
            vehicle.subscribe(name, [self._position, self._lane, *self._of_vehicles,
                                     *self._of_types])
            self._vehicles[name] = ActorType(vehicle.getVehicleClass(name), _size(vehicle, name))
        for name in persons:
            person.subscribe(name, [self._position, self._edge, *self._of_persons, self._inside,
                                    *self._of_types])
            self._persons[name] = ActorType(
                self._sumo.vehicletype.getVehicleClass(person.getTypeID(name)),
                _size(person, name), is_person=True)


def _size(domain: Sumo, name: str) -> tuple[float, float, float]:
    return domain.getLength(name), domain.getWidth(name), domain.getHeight(name)


if __name__ == '__main__':
    main()

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Reads the actors and traffic lights of each step from SUMO, through libsumo or TraCI alike."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from state_sensor_ros.simulators.frame_arrays import Floats
from state_sensor_ros.simulators.sumo.step_frames import ActorType, N_COLUMNS

# The module libsumo, or a connection of traci: the same calls.
Sumo: TypeAlias = Any


class StepReader:
    """
    Subscribes to each actor once, and reads all of them by one call a step.

    :param sumo: SUMO, started or joined.
    :param constants: the module `traci.constants`.
    """

    def __init__(self, sumo: Sumo, constants: ModuleType) -> None:
        self._sumo = sumo
        self._position = constants.VAR_POSITION3D
        self._lane = constants.VAR_LANE_ID
        self._edge = constants.VAR_ROAD_ID
        self._inside = constants.VAR_VEHICLE
        self._state = constants.TL_RED_YELLOW_GREEN_STATE
        common = [constants.VAR_ANGLE, constants.VAR_SLOPE, constants.VAR_SPEED]
        self._of_vehicles = [*common, constants.VAR_SPEED_LAT, constants.VAR_LANEPOSITION]
        self._of_persons = [*common, constants.VAR_LANEPOSITION]
        # Vehicles and persons have ids of their own.
        self._vehicles: dict[str, ActorType] = {}
        self._persons: dict[str, ActorType] = {}
        self._parked: dict[str, str] = {}
        for name in sumo.trafficlight.getIDList():
            sumo.trafficlight.subscribe(name, [self._state])
        self._subscribe(sumo.vehicle.getIDList(), sumo.person.getIDList())

    def read(self) -> tuple[list[str], list[ActorType], list[str], Floats]:
        """
        Return the actors of the step that SUMO has just made.

        :returns: N ids, N types, N names of lanes or edges and (N, 8) float64, as
            :meth:`StepFrames.frame` takes them; vehicles first.
        """
        simulation = self._sumo.simulation
        for types, arrived in ((self._vehicles, simulation.getArrivedIDList()),
                               (self._persons, simulation.getArrivedPersonIDList())):
            for name in arrived:
                types.pop(name, None)
        self._subscribe(simulation.getDepartedIDList(), simulation.getDepartedPersonIDList())
        names: list[str] = []
        types_of_actors: list[ActorType] = []
        places: list[str] = []
        rows: list[tuple[float, ...]] = []
        parked: dict[str, str] = {}
        for name, values in self._sumo.vehicle.getAllSubscriptionResults().items():
            if name not in self._vehicles:
                # Another client has removed it: its results are those of the step before.
                continue
            names.append(name)
            types_of_actors.append(self._vehicles[name])
            places.append(values[self._lane] or parked.setdefault(
                name, self._parked.get(name) or self._lane_of_stop(name)))
            rows.append((*values[self._position], *[values[key] for key in self._of_vehicles]))
        for name, values in self._sumo.person.getAllSubscriptionResults().items():
            if values[self._inside] or name not in self._persons:
                continue
            names.append(name)
            types_of_actors.append(self._persons[name])
            places.append(values[self._edge])
            angle, slope, speed, along = [values[key] for key in self._of_persons]
            rows.append((*values[self._position], angle, slope, speed, math.nan, along))
        self._parked = parked
        columns = np.array(rows, float).reshape(len(names), N_COLUMNS)
        return names, types_of_actors, places, columns

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

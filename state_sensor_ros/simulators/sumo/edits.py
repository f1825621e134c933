# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Entities that are moved, added or removed on request.

A vehicle of the scenario goes on to its goal from the lane to which it was moved. SUMO removes
what is beside its lanes unless it is moved again in each step: such a vehicle, and one that was
added, stands where it was put. A person walks on from there, or stands beside the ways.
"""

from __future__ import annotations

from contextlib import suppress
import math
from typing import NamedTuple

from state_sensor_ros.errors import line_of
from state_sensor_ros.rotations import heading_of
from state_sensor_ros.simulators.sumo import commands
from state_sensor_ros.simulators.sumo.commands import Sumo, SumoEgo
from state_sensor_ros.simulators.sumo.steps import Run
from state_sensor_ros.source import DELETE, EntityEdit, SPAWN


class _Stand(NamedTuple):
    """Where a vehicle is put in each step."""

    place: tuple[float, float, float]  # x and y of its front bumper, m, and SUMO's angle
    speed: float = 0.0  # with which it goes on, m/s
    goals: tuple[str, ...] | None = None  # edges of its route, None for a vehicle that was added


class SumoEdits:
    """Makes changes of vehicles between two steps; ``run`` has what a move ends."""

    def __init__(self, sumo: Sumo, ego: SumoEgo, run: Run) -> None:
        self._sumo, self._ego, self._run = sumo, ego, run
        self._stands: dict[str, _Stand] = {}
        # Ids and places of persons, one for each step to come.
        self._puts: list[tuple[str, tuple[float, float, float]]] = []

    def make(self, edit: EntityEdit) -> str:
        """Make a change before a step; return why it was not made, empty if it was."""
        if edit.twist is not None and any(edit.twist[3:]):
            return f'found the angular velocity {edit.twist[3:]}; expected 0: SUMO sets none'
        try:
            if edit.kind == SPAWN:
                self._add(edit)
            elif edit.name in self._sumo.person.getIDList():
                self._change_person(edit)
            elif edit.kind == DELETE:
                # Otherwise the next step fails.
                self._sumo.vehicle.unsubscribe(edit.name)
                self._sumo.vehicle.remove(edit.name)
            else:
                self._move(edit, edit.name)
        except Exception as error:  # noqa: BLE001  # SUMO's errors have no common base
            return line_of(error)
        return ''

    def _add(self, edit: EntityEdit) -> None:
        types, network = self._sumo.vehicletype, self._sumo.simulation
        assert edit.pose is not None
        place = commands.front_of(edit.pose, heading_of(edit.pose[3:]),
                                  types.getLength(edit.resource) / 2)
        edge, along, lane = network.convertRoad(
            *place[:2], False, types.getVehicleClass(edit.resource))
        route = f'{edit.name}#{network.getTime()}'
        self._sumo.route.add(route, [edge])
        self._sumo.vehicle.add(edit.name, route, edit.resource)
        # It has to begin on a lane.
        self._sumo.vehicle.moveToXY(edit.name, '', -1, *network.convert2D(edge, along, lane), 0.0,
                                    commands.ON_LANE, commands.FARTHEST_LANE_M)
        self._stands[edit.name] = _Stand(place)

    def _change_person(self, edit: EntityEdit) -> None:
        person = self._sumo.person
        if edit.kind == DELETE:
            person.removeStages(edit.name)
        elif edit.pose is not None:
            # The second time without a way: beside the ways, SUMO keeps the last speed.
            self._puts = 2 * [(edit.name, commands.front_of(
                edit.pose, heading_of(edit.pose[3:]), person.getLength(edit.name) / 2))]

    def _move(self, edit: EntityEdit, name: str) -> None:
        vehicle, before = self._sumo.vehicle, self._stands.get(name)
        yaw = heading_of(edit.pose[3:]) if edit.pose \
            else math.radians(90.0 - vehicle.getAngle(name))
        speed = vehicle.getSpeed(name) if edit.twist is None \
            else edit.twist[0] * math.cos(yaw) + edit.twist[1] * math.sin(yaw)
        if self._ego.drives(name):
            # Its speed is that of its commands.
            self._ego.let_go()
            self._run.moved[name] = speed
        if edit.pose is None:
            vehicle.setPreviousSpeed(name, speed)
            return
        # SUMO takes the way for a movement.
        self._run.moved.setdefault(name, math.nan)
        self._run.yaws[name] = math.nan
        goals = before.goals if before is not None else tuple(
            vehicle.getRoute(name)[vehicle.getRouteIndex(name):])
        self._stands[name] = _Stand(commands.front_of(
            edit.pose, yaw, vehicle.getLength(name) / 2), speed, goals)

    def hold(self) -> None:
        """Move what stands, before each step."""
        if self._puts:
            name, place = self._puts.pop()
            # SUMO takes the way for a movement.
            self._run.moved[name] = self._run.yaws[name] = math.nan
            # It may have left.
            with suppress(Exception):
                self._sumo.person.moveToXY(name, '', *place, commands.ANY_PLACE,
                                           commands.FARTHEST_LANE_M)
        present = self._sumo.vehicle.getIDList() if self._stands else ()
        for name, stand in [*self._stands.items()]:
            if name not in present or self._ego.drives(name):
                del self._stands[name]
                continue
            self._run.moved.setdefault(name, 0.0)
            self._sumo.vehicle.moveToXY(name, '', -1, *stand.place, commands.ANY_PLACE)

    def settle(self) -> None:
        """Let vehicles of the scenario that are on a lane go on, after each step."""
        vehicle = self._sumo.vehicle
        for name, stand in [*self._stands.items()]:
            # It may have left; without a way back, it will at the end of this edge.
            with suppress(Exception):
                if stand.goals is not None and vehicle.getLaneID(name):
                    del self._stands[name]
                    vehicle.setPreviousSpeed(name, stand.speed)
                    commands.restore_route(self._sumo, name, stand.goals, vehicle.getTypeID(name))

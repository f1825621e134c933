# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The ego that a stack drives: the bicycle of the mock servers, to whose place SUMO moves the ego.

SUMO's position is the middle of the front bumper; the rear axle is assumed half a wheelbase behind
the middle of the vehicle. SUMO's own speed of a vehicle that is moved from outside differs from
its movement, so the frame has the velocity of the bicycle.

A joined SUMO gets its ego back: SUMO removes a vehicle that is beside its lanes when no client
moves it, so it is first put on the nearest lane; then it continues on the route that it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
import math
import sys
from typing import Any, TypeAlias

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.emulator.bicycle import Bicycle, FULL_LOCK_DEG, Pedals
from state_sensor_ros.frame import Floats, Frame
from state_sensor_ros.rotations import global_from_unit, heading_of

# The module libsumo, or a connection of traci: the same calls.
Sumo: TypeAlias = Any
# m, between the axles of each ego.
_WHEELBASE_M = 2.9
# moveToXY: any place of the network or outside of it; the middle of the nearest lane, m away.
ANY_PLACE = 2
ON_LANE, FARTHEST_LANE_M = 0, 1000.0
_NO_CHECKS = 0
# SUMO warns of each step that is faster than the maximum speed of the vehicle, m/s.
_MOST_SPEED = 200.0
_FULL_BRAKE = Pedals(brake=1.0)
# Longest braking before the ego is given back, s of simulated time: from 200 m/s.
_LONGEST_STOP_S = 30.0
# Signals of SUMO: right, left, and both as hazard lights; -1 are those of SUMO itself.
_BLINKERS = {frames.INDICATORS_OFF: 0, frames.INDICATORS_RIGHT: 1,
             frames.INDICATORS_LEFT: 2, frames.INDICATORS_BOTH: 4}
_ALL_BLINKERS, _OWN_SIGNALS = 7, -1
# Edges of its route to which a way is searched; the first ones may be out of reach.
_N_EDGES = 20


@dataclass(frozen=True, slots=True)
class _Found:
    """What a vehicle had before it was taken over."""

    name: str
    speed_mode: int  # speed_mode, lane_change_mode: as SUMO's bits
    lane_change_mode: int
    max_speed: float  # m/s
    type_name: str  # of its type, which SUMO replaces by one of its own with the first change
    route: tuple[str, ...]  # edges, current first


class SumoEgo:
    """Takes the ego over at the first command."""

    def __init__(self, sumo: Sumo, *, is_lent: bool) -> None:
        self._sumo = sumo
        self._is_lent = is_lent
        self._body: Bicycle | None = None
        self._pedals = Pedals()
        self._name = ''
        self._length = 0.0
        self._found: _Found | None = None
        self._is_warned = False
        self._has_signals = False

    def advance(self, command: EgoCommand | None, last: Frame | None, elapsed_s: float,
                indicators: int | None = None) -> bool:
        """Move the ego to its place after the next step; return whether it was moved."""
        # command: command in effect, None before the first one.
        # elapsed_s: simulated time of the step, s.
        # indicators: wanted turn signals, None for those of SUMO.
        if command is None or last is None or last.ego is None:
            self._body = None
            return False
        try:
            if self._body is None or self._name != last.names[last.ego]:
                self._take_over(last, last.ego)
            body = self._body
            if body is None:
                return False
            # The angle, not the share of a lock that is not this vehicle's.
            self._pedals = Pedals(
                command.steering_angle / math.radians(FULL_LOCK_DEG), command.throttle,
                command.brake, command.hand_brake, command.reverse)
            body.advance(self._pedals, elapsed_s, frames.climb_of(last, last.ego))
            self._move(body, ANY_PLACE)
            if indicators is not None:
                self._indicate(indicators)
        except Exception:
            if self._has_vehicle():
                raise
            # Another client has removed it since the last step.
            self._body = None
        return self._body is not None

    def drives(self, name: str) -> bool:
        """Return whether commands move a vehicle."""
        return self._body is not None and name == self._name

    def let_go(self) -> None:
        """Take the ego over again in the next step, as it is in the frame then."""
        self._body = None

    def shown(self, frame: Frame) -> Frame:
        """Return a frame with the velocity and the inputs of the driven ego."""
        body, pedals = self._body, self._pedals
        if frame.ego is None or body is None or frame.names[frame.ego] != self._name:
            return frame
        inputs: Floats = np.full((frame.n_actors, 4), math.nan)
        inputs[frame.ego] = (pedals.throttle, pedals.brake, body.steering_angle / math.radians(
            FULL_LOCK_DEG), body.steering_angle)
        kinematics = frame.kinematics.copy()
        row = kinematics[frame.ego]
        rate = body.speed * body.curvature
        axes = global_from_unit(row[None, 3:7])[0]
        row[7:10] = body.speed * axes[:, 0] + rate * _WHEELBASE_M / 2 * axes[:, 1]
        row[10:13] = (0.0, 0.0, rate)
        return replace(frame, kinematics=kinematics, inputs=inputs)

    def stop(self, step_s: float) -> None:
        """Make steps until the driven ego stands; ``step_s``: simulated time of a step, s."""
        left_s = _LONGEST_STOP_S
        while self._has_vehicle() and self._body is not None and self._body.speed and left_s > 0.0:
            self._body.advance(_FULL_BRAKE, step_s)
            self._move(self._body, ANY_PLACE)
            self._sumo.simulationStep()
            left_s -= step_s

    def release(self) -> None:
        """Give the ego back as it was found; makes a step if it is beside the lanes."""
        found = self._found
        if found is None or not self._has_vehicle():
            return
        # What one of SUMO's errors refuses must not keep the rest.
        for restore in (self._restore_route, self._restore_modes):
            try:
                restore(found)
            except Exception as error:  # noqa: BLE001  # SUMO's errors have no common base
                _warn(f'the ego was not fully restored: {error}')

    def _restore_route(self, found: _Found) -> None:
        vehicle, body = self._sumo.vehicle, self._body
        if body is not None and not vehicle.getLaneID(self._name):
            self._move(body, ON_LANE, FARTHEST_LANE_M)
            self._sumo.simulationStep()
        restore_route(self._sumo, self._name, found.route, found.type_name)

    def _restore_modes(self, found: _Found) -> None:
        vehicle = self._sumo.vehicle
        vehicle.setMaxSpeed(self._name, found.max_speed)
        if vehicle.getTypeID(self._name) != found.type_name:
            vehicle.setType(self._name, found.type_name)
        vehicle.setLaneChangeMode(self._name, found.lane_change_mode)
        vehicle.setSpeedMode(self._name, found.speed_mode)
        if self._has_signals:
            vehicle.setSignals(self._name, _OWN_SIGNALS)

    def _has_vehicle(self) -> bool:
        return self._name in self._sumo.vehicle.getIDList()

    def _move(self, body: Bicycle, keep_route: int, farthest_m: float = 100.0) -> None:
        """Move the ego to the place of the bicycle, or to a lane that is at most so far away."""
        front = front_of((body.x, body.y), body.yaw, _WHEELBASE_M / 2 + self._length / 2)
        self._sumo.vehicle.moveToXY(self._name, '', -1, *front, keep_route, farthest_m)

    def _indicate(self, indicators: int) -> None:
        vehicle = self._sumo.vehicle
        bits = _BLINKERS[indicators] | (vehicle.getSignals(self._name) & ~_ALL_BLINKERS)
        vehicle.setSignals(self._name, bits)
        self._has_signals = True

    def _take_over(self, last: Frame, row: int) -> None:
        vehicle, name = self._sumo.vehicle, last.names[row]
        self._name, self._length = name, vehicle.getLength(name)
        modes = vehicle.getSpeedMode(name), vehicle.getMaxSpeed(name)
        if self._is_lent and modes != (_NO_CHECKS, _MOST_SPEED):
            self._found = _Found(
                name, modes[0], vehicle.getLaneChangeMode(name), modes[1],
                vehicle.getTypeID(name),
                tuple(vehicle.getRoute(name)[vehicle.getRouteIndex(name):]))
        elif self._is_lent and (self._found is None or self._found.name != name):
            # Else it was away for a while, such as between two places of a teleport.
            self._body = None
            if not self._is_warned:
                self._is_warned = True
                _warn(f'another client drives the vehicle {name!r} (speed mode {_NO_CHECKS}, '
                      f'maximum speed {_MOST_SPEED:g} m/s): commands have no effect until that '
                      'client releases it')
            return
        vehicle.setSpeedMode(self._name, _NO_CHECKS)
        vehicle.setLaneChangeMode(self._name, _NO_CHECKS)
        vehicle.setMaxSpeed(self._name, _MOST_SPEED)
        yaw = heading_of(last.orientation_xyzw[row].tolist())
        x, y, _ = front_of(last.position_xyz[row].tolist(), yaw, -_WHEELBASE_M / 2)
        self._body = Bicycle(x, y, yaw, frames.speed_along(last, row), _WHEELBASE_M)


def front_of(place: Sequence[float], yaw: float, ahead_m: float) -> tuple[float, float, float]:
    """Return what is ahead of a place, m, with SUMO's angle; its places are those of bumpers."""
    return (place[0] + ahead_m * math.cos(yaw), place[1] + ahead_m * math.sin(yaw),
            90.0 - math.degrees(yaw))


def restore_route(sumo: Sumo, name: str, goals: tuple[str, ...], type_name: str) -> None:
    """Lead a vehicle, wherever it was moved to, back to the route with these edges."""
    vehicle = sumo.vehicle
    route = tuple(vehicle.getRoute(name))
    if route[-len(goals):] == goals:
        # SUMO has not replaced it.
        return
    at = vehicle.getRouteIndex(name)
    # From within a junction, SUMO accepts no other next edge.
    is_inside = vehicle.getRoadID(name).startswith(':')
    *fixed, edge = route[at:at + 1 + is_inside]
    # With a type that only this vehicle has, SUMO deletes that type: it crashes.
    type_name = type_name.removesuffix(f'@{name}')
    first = goals.index(edge) if edge in goals else 0
    for i, goal in enumerate(goals[first:first + _N_EDGES], first + 1):
        way = sumo.simulation.findRoute(edge, goal, type_name).edges
        if way:
            vehicle.setRoute(name, (*fixed, *way, *goals[i:]))
            return
    raise ValueError(f'no way from {edge} back to its route')


def _warn(line: str) -> None:
    """Print a warning for the node's log, which a node that has ended does not read."""
    with suppress(OSError):
        sys.stderr.write(f'Warning: {line}\n')

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Velocities of SUMO's actors: those of the middles of their footprints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import math

import numpy as np

from state_sensor_ros.simulators.frame_arrays import Bools, Floats, wrapped
from state_sensor_ros.simulators.sumo.map import RoadNetwork

# Columns of numbers of an actor, as SUMO gives them.
X, Y, Z, ANGLE, SLOPE, SPEED, LATERAL_SPEED, LANE_POSITION = range(8)
N_COLUMNS = 8
# Movement between two frames beyond twice the speed and this is a jump, such as a teleport, m.
_JUMP_M = 3.0
# A greater speed to the side, or difference from the speed along the heading, is a jump, m/s.
_MOST_LATERAL_SPEED = 5.0


@dataclass(frozen=True, slots=True)
class SumoStep:
    """
    What SUMO says of one step, in the axes of REP 103.

    ``time_s`` of the step; ``names`` of N actors; ``lanes`` N names of lanes, empty for none;
    ``columns`` (N, 8) float64, numbers as SUMO gives them, NaN for none; ``is_person`` (N,);
    ``slopes`` (N,) rad, positive uphill, 0 for people; ``yaws`` (N,) rad; ``middle_xyz`` (N, 3) m,
    middles of the footprints; ``rounding_m`` least difference of two positions.
    """

    time_s: float
    names: Sequence[str]
    lanes: Sequence[str]
    columns: Floats
    is_person: Bools
    slopes: Floats
    yaws: Floats
    middle_xyz: Floats
    rounding_m: float


class Movements:
    """
    The motion of the actors of one run.

    SUMO moves the middle of the front bumper along the lane and to its side, and turns the body
    about its rear: the heading is not the direction of movement. Where the lane or the lateral
    speed is unknown, as without a network, an actor that moves to its side has the velocity of
    this movement.

    :param network: roads of the actors.
    """

    def __init__(self, network: RoadNetwork) -> None:
        self._network = network
        self._rows: Mapping[str, int] = {}
        self._last: SumoStep | None = None

    def velocities(self, step: SumoStep) -> tuple[Floats, Floats]:
        """
        Return how the middles of the footprints move.

        :param step: the next step.
        :returns: velocities, m/s, and angular velocities, rad/s, each (N, 3), global frame.
        """
        speeds = step.columns[:, SPEED]
        moved, front_moved, rates = self._changes(step)
        climbed, moved = moved[:, 2], moved[:, :2]
        ahead, left = _axes(step.yaws)
        lateral = np.nan_to_num(step.columns[:, LATERAL_SPEED])
        velocity = (np.cos(step.slopes) * np.hypot(speeds, lateral))[:, None] * ahead
        to_side = np.sum(moved * left, 1)
        is_sideways = (np.abs(to_side) < _MOST_LATERAL_SPEED) & self._is_beyond_rounding(
            step, to_side) & (np.abs(np.sum(moved * ahead, 1) - speeds) < _MOST_LATERAL_SPEED)
        velocity[is_sideways] = moved[is_sideways]
        along_lane = self._along_lanes(step, front_moved, rates)
        is_known = np.isfinite(along_lane).all(axis=1)
        velocity[is_known] = along_lane[is_known]
        still = np.zeros(len(speeds))
        is_climbing = step.is_person & (np.abs(climbed) < speeds) & self._is_beyond_rounding(
            step, climbed)
        upward = np.where(is_climbing, climbed, np.sin(step.slopes) * speeds)
        self._rows, self._last = dict(zip(step.names, range(len(speeds)), strict=True)), step
        return (np.column_stack((velocity, upward)), np.column_stack((still, still, rates)))

    def _changes(self, step: SumoStep) -> tuple[Floats, Floats, Floats]:
        """
        Return what has changed since the last step, by its duration.

        :returns: movements of the middles (N, 3) and the fronts (N, 2), m/s, NaN for a new actor
            or after a jump; (N,) turning, rad/s, 0 for these.
        """
        n_actors = len(step.names)
        moved, front_moved = np.full((n_actors, 3), np.nan), np.full((n_actors, 2), np.nan)
        rates = np.zeros(n_actors)
        last = self._last
        if last is not None and step.time_s > last.time_s:
            step_s = step.time_s - last.time_s
            before = np.array([self._rows.get(name, -1) for name in step.names], np.int64)
            rows = np.flatnonzero(before >= 0)
            ways = (step.columns[rows] - last.columns[before[rows]])[:, [X, Y]]
            is_steady = np.hypot(ways[:, 0], ways[:, 1]) < _JUMP_M + 2 * step_s * np.abs(
                np.nan_to_num(step.columns[rows, SPEED]))
            rows, ways = rows[is_steady], ways[is_steady]
            before = before[rows]
            front_moved[rows] = ways / step_s
            moved[rows] = (step.middle_xyz[rows] - last.middle_xyz[before]) / step_s
            rates[rows] = wrapped(step.yaws[rows] - last.yaws[before]) / step_s
        return moved, front_moved, rates

    def _along_lanes(self, step: SumoStep, front_moved: Floats, rates: Floats) -> Floats:
        """Return velocities (N, 2) of vehicles by the directions of their lanes, else NaN."""
        yaws, scales = self._network.directions.at(step.lanes, step.columns[:, LANE_POSITION])
        # One that drives against its lane, as to overtake, is none that the lane guides.
        yaws[step.is_person | ~(np.cos(yaws - step.yaws) > 0.0)] = math.nan
        ahead, left = _axes(yaws)
        side = -1.0 if self._network.is_left_hand else 1.0
        lateral = step.columns[:, LATERAL_SPEED] * side
        to_side = np.sum(front_moved * left, 1)
        is_said = np.isfinite(lateral)
        is_moved = (np.abs(to_side) < _MOST_LATERAL_SPEED) & self._is_beyond_rounding(
            step, to_side)
        lateral = np.where(is_said, lateral, np.where(is_moved, to_side, 0.0))
        along = np.cos(step.slopes) * step.columns[:, SPEED] * scales
        to_middle = step.middle_xyz[:, :2] - step.columns[:, [X, Y]]
        turning = rates[:, None] * np.column_stack((-to_middle[:, 1], to_middle[:, 0]))
        velocities: Floats = along[:, None] * ahead + lateral[:, None] * left + turning
        return velocities

    def _is_beyond_rounding(self, step: SumoStep, speeds: Floats) -> Bools:
        """Return whether movements since the last step (N,) are more than rounding; not if NaN."""
        step_s = step.time_s - self._last.time_s if self._last is not None else math.nan
        # Two positions that are rounded differ by up to 1.42 of it more than they should.
        return np.asarray(np.abs(speeds) * step_s > 1.5 * step.rounding_m)


def _axes(yaws: Floats) -> tuple[Floats, Floats]:
    """Return unit vectors (N, 2) ahead and to the left."""
    cos, sin = np.cos(yaws), np.sin(yaws)
    return np.column_stack((cos, sin)), np.column_stack((-sin, cos))

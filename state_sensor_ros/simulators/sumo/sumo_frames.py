# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The actors of one step of SUMO as a frame in SI units and REP-103 axes.

SUMO's axes are x east, y north, z up, metres; angles are degrees clockwise from north, slopes
degrees uphill. Its position is the middle of the front bumper; an actor's origin here is the
middle of its footprint, on the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
import math

import numpy as np

from state_sensor_ros.simulators import build_frame, EGO_TAG, Frame, lane_states, Lanes
from state_sensor_ros.simulators.frame_arrays import (
    Floats,
    global_from_unit,
    quaternion_from_rpy,
    wrapped,
)
from state_sensor_ros.simulators.sumo.road_network import RoadNetwork
from state_sensor_ros.simulators.sumo.vehicle_classes import is_vehicle, tags_of

GENERATION = 'sumo'
# SUMO's "no value" (INVALID_DOUBLE_VALUE); its coordinates are greater.
NO_VALUE = -1073741824.0
# A drift within the lane is slower, a lane change of the usual 3 s faster (about 1 m/s).
LANE_CHANGE_SPEED = 0.1
FIRST_EGO = 'first'
# Columns of numbers of an actor, as SUMO gives them.
X, Y, Z, ANGLE, SLOPE, SPEED, LATERAL_SPEED, LANE_POSITION = range(8)
N_COLUMNS = 8


@dataclass(frozen=True, slots=True)
class ActorType:
    """
    The constant properties of an actor.

    ``vclass`` SUMO's vehicle class; ``size_xyz`` length, width, height, m.
    """

    vclass: str
    size_xyz: tuple[float, float, float]


def with_roads(frame: Frame, network: RoadNetwork) -> Frame:
    """
    Return a frame with the names of the roads and the map, which are the same in each.

    :param frame: made by :class:`StepFrames`.
    :param network: the roads of the run.
    """
    return replace(frame, lanes=replace(frame.lanes, road_names=network.road_names),
                   map_lines=network.lines)


@dataclass(slots=True)
class StepFrames:
    """
    Makes the frames of one run, in their order.

    ``network`` roads of the actors; ``ego`` id of the ego, ``first`` for the first vehicle and
    the next one after it has left, empty for none.
    """

    network: RoadNetwork
    ego: str = ''
    _first: str = ''
    _yaws: dict[str, float] = field(default_factory=dict)
    _time: float = math.nan

    def frame(self, time_s: float, names: Sequence[str], types: Sequence[ActorType],
              lanes: Sequence[str], columns: Floats) -> Frame:
        """
        Make the frame of one step.

        :param time_s: time of the step, s.
        :param names: ids of N actors.
        :param types: N types of actors.
        :param lanes: N names of lanes, empty for none.
        :param columns: (N, 8) float64, numbers as SUMO gives them, in the order of the columns.
        """
        columns = np.where(columns <= NO_VALUE, np.nan, columns)
        is_here = np.isfinite(columns[:, [X, Y, ANGLE]]).all(axis=1)
        if not is_here.all():
            kept = np.flatnonzero(is_here)
            columns = columns[kept]
            names, types, lanes = ([column[i] for i in kept] for column in (names, types, lanes))
        sizes = np.array([kind.size_xyz for kind in types], float).reshape(-1, 3)
        angles = np.zeros((len(names), 3))
        # Uphill is positive in SUMO, nose down is positive in REP 103; without a value: flat.
        angles[:, 1] = -np.radians(np.nan_to_num(columns[:, SLOPE]))
        angles[:, 2] = np.radians(90 - columns[:, ANGLE])
        orientation_xyzw = quaternion_from_rpy(angles)
        forward = global_from_unit(orientation_xyzw)[:, :, 0]
        # While a vehicle changes its lane, SUMO's angle is already that of its movement, so that
        # speed along the lane and lateral speed together point forward (measured: the velocity
        # fits the movement within 0.06 m/s, and within 1.0 m/s if the lateral speed points left).
        speed = np.hypot(columns[:, SPEED], np.nan_to_num(columns[:, LATERAL_SPEED]))
        rates = np.zeros((len(names), 3))
        rates[:, 2] = self._yaw_rates(time_s, names, angles[:, 2])
        ego = self._ego_of(names, types)
        return build_frame(
            GENERATION, time_s, names,
            np.nan_to_num(columns[:, :3]) - forward * sizes[:, :1] / 2,
            orientation_xyzw=orientation_xyzw, velocity_xyz=forward * speed[:, None],
            angular_velocity_xyz=rates, size_xyz=sizes,
            tags=[(*tags_of(kind.vclass), EGO_TAG) if name == ego else tags_of(kind.vclass)
                  for name, kind in zip(names, types, strict=True)],
            is_vehicle=np.array([is_vehicle(kind.vclass) for kind in types], bool),
            lanes=self._lanes(lanes, columns))

    def _yaw_rates(self, time_s: float, names: Sequence[str], yaws: Floats) -> Floats:
        """Return rad/s from the change since the last frame; SUMO gives none."""
        before = np.array([self._yaws.get(name, math.nan) for name in names])
        step_s = time_s - self._time
        self._yaws = dict(zip(names, yaws.tolist(), strict=True))
        self._time = time_s
        if not step_s > 0:
            return np.zeros(len(names))
        rates: Floats = np.nan_to_num(wrapped(yaws - before) / step_s)
        return rates

    def _ego_of(self, names: Sequence[str], types: Sequence[ActorType]) -> str:
        if self.ego != FIRST_EGO:
            return self.ego
        if self._first not in self._yaws:
            self._first = next((name for name, kind in zip(names, types, strict=True)
                                if is_vehicle(kind.vclass)), '')
        return self._first

    def _lanes(self, lanes: Sequence[str], columns: Floats) -> Lanes:
        known = self.network.lane_ids
        rows = [i for i, lane in enumerate(lanes) if lane in known]
        ids = [(road, 0, lane) for road, lane in (known[lanes[i]] for i in rows)]
        lateral = columns[rows, LATERAL_SPEED]
        is_changing = np.stack((lateral > LANE_CHANGE_SPEED, lateral < -LANE_CHANGE_SPEED), 1)
        return lane_states(rows, np.array(ids).reshape(-1, 3), columns[rows, LANE_POSITION],
                           is_changing)

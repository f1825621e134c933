# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The wheels of vehicles of OSI, or at least the places of their rear axles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from state_sensor_ros.simulators import FRONT_LEFT, FRONT_RIGHT, REAR_LEFT, REAR_RIGHT, Wheels
from state_sensor_ros.simulators.frame_arrays import NO_WHEELS, quaternion_from_rpy

if TYPE_CHECKING:
    from osi3.osi_object_pb2 import MovingObject

# By axle, counted from the front, and index on it, counted from the right.
_PLACES = {(0, 0): FRONT_RIGHT, (0, 1): FRONT_LEFT, (1, 0): REAR_RIGHT, (1, 1): REAR_LEFT}
# Actor, wheel, its number in the message, position xyz, roll pitch yaw, speed.
_N_COLUMNS = 10


class AxleWheels:
    """Collects the wheels of the vehicles of a message."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []

    def add(self, row: int, vehicle: MovingObject) -> None:
        """
        Add the wheels of a car, or the ends of the rear axle of another vehicle.

        :param row: row of the actor.
        :param vehicle: moving object with vehicle attributes.
        """
        attributes, size = vehicle.vehicle_attributes, vehicle.base.dimension
        # Places in OSI are counted from the centre of the box.
        up = size.height / 2.0
        wheels = attributes.wheel_data
        if len(wheels) == len(_PLACES) and \
                {(wheel.axle, wheel.index) for wheel in wheels} == _PLACES.keys():
            for number, wheel in enumerate(wheels):
                place, angles = wheel.position, wheel.orientation
                self._rows.append((
                    row, _PLACES[wheel.axle, wheel.index], number, place.x, place.y, place.z + up,
                    angles.roll, angles.pitch, angles.yaw,
                    wheel.rotation_rate if wheel.HasField('rotation_rate') else np.nan))
        elif attributes.HasField('bbcenter_to_rear'):
            axle = attributes.bbcenter_to_rear
            # Assumed: an axle is as long as the vehicle is wide. Only its middle is used.
            for wheel_place, side in ((REAR_LEFT, 0.5), (REAR_RIGHT, -0.5)):
                self._rows.append((row, wheel_place, -1, axle.x, axle.y + side * size.width,
                                   axle.z + up, *(np.nan,) * 4))

    def wheels(self) -> Wheels:
        """Return the wheels of all vehicles."""
        if not self._rows:
            return NO_WHEELS
        rows = np.array(self._rows).reshape(-1, _N_COLUMNS)
        return Wheels(
            rows[:, 0].astype(np.int64), rows[:, 1].astype(np.uint8),
            rows[:, 2].astype(np.int32), rows[:, 3:6].copy(), quaternion_from_rpy(rows[:, 6:9]),
            np.isfinite(rows[:, 3:6]).all(axis=1), np.isfinite(rows[:, 6:9]).all(axis=1),
            rows[:, 9].copy())

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The static objects beside the road: cones and traffic signs.

Cones are as in the State sensor's documentation: an aligned box named `None`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from state_sensor_ros.emulator.traffic.road import FloatArray, LANE_WIDTH_M, Road

CONE_SIZE_M = (0.323, 0.324, 0.644)
CONE_FOOT_M = 0.05
SIGN_SIZE_M = (0.12, 0.9, 2.4)
# Distance from the right edge of the road; every third object is a sign.
CONE_MARGIN_M = 0.6
SIGN_MARGIN_M = 2.2
SPACING_M = 15.0
FIRST_M = 230.0


@dataclass(frozen=True, slots=True)
class StaticObject:
    """
    An object that does not move; left-handed world axes.

    :param position: position, m.
    :param yaw: rad, positive to the right.
    :param center: centre of its box, m.
    :param size: full edge lengths of its box, m.
    """

    name: str
    tag: str
    box_name: str
    position: tuple[float, float, float]
    yaw: float
    center: tuple[float, float, float]
    size: tuple[float, float, float]


def make_objects(road: Road, n_objects: int) -> tuple[StaticObject, ...]:
    """
    Place cones and signs along the right edge of a road.

    :param road: the road.
    :param n_objects: number of objects; every third is a sign.
    :returns: the objects in order of s.
    """
    spacing = min(SPACING_M, road.length_m / max(n_objects, 1))
    i = np.arange(n_objects)
    is_sign = i % 3 == 2
    edge = road.n_lanes * LANE_WIDTH_M
    surface = road.surface(FIRST_M + spacing * i.astype(np.float64),
                           edge + np.where(is_sign, SIGN_MARGIN_M, CONE_MARGIN_M))
    yaw = np.arctan2(surface.along[:, 1], surface.along[:, 0])
    return tuple(_sign(k, surface.point[k], float(yaw[k])) if is_sign[k]
                 else _cone(k, surface.point[k]) for k in range(n_objects))


def _cone(number: int, foot: FloatArray) -> StaticObject:
    x, y, z = (float(value) for value in foot)
    return StaticObject(f'Misc_TrafficCone_{number}', 'cone', 'None', (x, y, z), 0.0,
                        (x, y, z - CONE_FOOT_M + CONE_SIZE_M[2] / 2), CONE_SIZE_M)


def _sign(number: int, foot: FloatArray, yaw: float) -> StaticObject:
    x, y, z = (float(value) for value in foot)
    # The sign faces oncoming traffic.
    return StaticObject(f'SpeedLimit_sign{number:03d}', 'traffic_sign', 'Sign', (x, y, z),
                        yaw + np.pi, (x, y, z + SIGN_SIZE_M[2] / 2), SIGN_SIZE_M)

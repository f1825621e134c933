# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What stands beside the road: cones and traffic signs, which never move.

May know: the road, SI, left-handed axes. Must not: vehicles, JSON.
Source of truth: the cone of the State sensor's documentation (box aligned, named `None`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.emulator.road import LANE_WIDTH_M, Road

FloatArray = npt.NDArray[np.float64]

CONE_SIZE_M = (0.323, 0.324, 0.644)
CONE_FOOT_M = 0.05
SIGN_SIZE_M = (0.12, 0.9, 2.4)
# Cones close to the right edge, signs further out; one sign for two cones.
CONE_MARGIN_M = 0.6
SIGN_MARGIN_M = 2.2
SPACING_M = 15.0
FIRST_M = 230.0


@dataclass(frozen=True, slots=True)
class Thing:
    """
    Something that stands still.

    :param position: m.
    :param yaw: rad, positive to the right.
    :param center: of its box, m.
    :param size: full edge lengths, m.
    :param rate_x_unknown: whether its x angular velocity is not a number.
    """

    name: str
    tag: str
    box_name: str
    position: tuple[float, float, float]
    yaw: float
    center: tuple[float, float, float]
    size: tuple[float, float, float]
    rate_x_unknown: bool


def make_things(road: Road, n_objects: int) -> tuple[Thing, ...]:
    """
    Put cones and signs along the right edge of the road.

    :param road: where.
    :param n_objects: how many; every third is a sign.
    :returns: the objects, in order along the road.
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


def _cone(number: int, foot: FloatArray) -> Thing:
    x, y, z = (float(value) for value in foot)
    return Thing(f'Misc_TrafficCone_{number}', 'cone', 'None', (x, y, z), 0.0,
                 (x, y, z - CONE_FOOT_M + CONE_SIZE_M[2] / 2), CONE_SIZE_M, number == 0)


def _sign(number: int, foot: FloatArray, yaw: float) -> Thing:
    x, y, z = (float(value) for value in foot)
    # A sign faces the traffic that comes towards it.
    return Thing(f'SpeedLimit_sign{number:03d}', 'traffic_sign', 'Sign', (x, y, z), yaw + np.pi,
                 (x, y, z + SIGN_SIZE_M[2] / 2), SIGN_SIZE_M, False)

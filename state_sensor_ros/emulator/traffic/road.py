# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A closed multi-lane road with curves, slopes and banking, its ids, and the objects beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

LANE_WIDTH_M = 3.5
# Roads of 500 m with two sections each: the ids change within seconds of driving.
ROAD_PIECE_M = 500.0
SECTIONS_PER_ROAD = 2
# Bank angle per curvature, rad*m: 2.9 degrees in a curve with a radius of 200 m.
BANK_PER_CURVATURE = 10.0
# Wavelength (m) and peak curvature (1/m) of the sines that are added to the circle.
WINDINGS = ((900.0, 1 / 600.0), (420.0, 1 / 900.0))
# Wavelength (m) and peak slope of the hills.
HILLS = ((1100.0, 0.025), (500.0, 0.012))
# The number of waves on the loop is a multiple of this: the loop then closes by symmetry.
SYMMETRY = 2
# Nodes and weights of 3-point Gauss-Legendre integration on [0, 1].
GAUSS_NODES = 0.5 + 0.5 * np.array([-np.sqrt(0.6), 0.0, np.sqrt(0.6)])
GAUSS_WEIGHTS = np.array([5.0, 8.0, 5.0]) / 18.0
CONE_SIZE_M = (0.323, 0.324, 0.644)
CONE_FOOT_M = 0.05
SIGN_SIZE_M = (0.12, 0.9, 2.4)
# Distance from the right edge of the road; every third object is a sign.
CONE_MARGIN_M = 0.6
SIGN_MARGIN_M = 2.2
SPACING_M = 15.0
FIRST_M = 230.0


@dataclass(frozen=True, slots=True)
class Surface:
    """Points of the road surface; arrays are (..., 3) float64."""

    point: FloatArray  # the points, meters
    along: FloatArray  # derivatives of the points by s at constant lateral offset
    right: FloatArray  # derivatives of the points by the lateral offset, unit vectors


class Road:
    """A closed road; the reference line is its left edge, offsets are positive to the right."""

    # n_lanes: number of lanes, all in the direction of increasing s.

    def __init__(self, length_m: float, n_lanes: int, seed: int) -> None:
        rng = np.random.default_rng((seed, 1))
        self.length_m = length_m
        self.n_lanes = n_lanes
        turn = 2 * np.pi / length_m
        windings = np.array([max(SYMMETRY, SYMMETRY * round(length_m / wave / SYMMETRY))
                             for wave, _ in WINDINGS])
        wind_rate = turn * windings
        wind_gain = np.array([peak for _, peak in WINDINGS]) / wind_rate
        self._windings = _rows(wind_rate, wind_gain, rng.uniform(0, 2 * np.pi, len(WINDINGS)))
        hill_rate = turn * np.array([max(1, round(length_m / wave)) for wave, _ in HILLS])
        hill_gain = np.array([peak for _, peak in HILLS]) / hill_rate
        self._hills = _rows(hill_rate, hill_gain, rng.uniform(0, 2 * np.pi, len(HILLS)))
        self._n_cells = int(np.ceil(length_m))
        self._cell_m = length_m / self._n_cells
        knots: FloatArray = np.arange(self._n_cells + 1, dtype=np.float64) * self._cell_m
        knots_heading = self._heading(knots)[0]
        # Of each cell x of both ends and their derivatives by s, then the same of y.
        self._ends = np.stack([end for values in zip(
            self._integrate_plan(), (np.cos(knots_heading), np.sin(knots_heading)), strict=True)
            for each in values for end in (each[:-1], each[1:])], axis=-1)

    def _heading(self, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return heading (rad, + to the right), curvature (1/m) and its derivative at s."""
        turn = 2 * np.pi / self.length_m
        heading, curvature, change = _waves(self._windings, s)
        return s * turn + heading, turn + curvature, change

    def _integrate_plan(self) -> tuple[FloatArray, FloatArray]:
        """Integrate the heading; return (n_cells + 1,) x and y of the reference line."""
        starts: FloatArray = np.arange(self._n_cells, dtype=np.float64) * self._cell_m
        heading = self._heading(starts[:, None] + GAUSS_NODES * self._cell_m)[0]
        x, y = (np.append(0.0, np.cumsum(function(heading) @ GAUSS_WEIGHTS * self._cell_m))
                for function in (np.cos, np.sin))
        return x, y

    def curvature(self, s: FloatArray) -> FloatArray:
        """Return the curvature of the reference line in plan."""
        # Returns 1/m, positive to the right, same shape.
        return self._heading(np.mod(s, self.length_m))[1]

    def surface(self, s: FloatArray, offset: FloatArray) -> Surface:
        """Evaluate the surface."""
        # offset: lateral offsets to the right of the reference line, meters, same shape.
        s = np.mod(s, self.length_m)
        cell = np.minimum((s / self._cell_m).astype(np.int64), self._n_cells - 1)
        t, ends = s / self._cell_m - cell, np.moveaxis(self._ends[cell], -1, 0)
        heading, curvature, change = self._heading(s)
        height, slope, _ = _waves(self._hills, s)
        bank, bank_change = BANK_PER_CURVATURE * curvature, BANK_PER_CURVATURE * change
        cos_h, sin_h = np.cos(heading), np.sin(heading)
        cos_b, sin_b = np.cos(bank), np.sin(bank)
        # The inner side of a curve is lower than the outer side.
        right = -sin_h * cos_b, cos_h * cos_b, -sin_b
        right_change = (-cos_h * cos_b * curvature + sin_h * sin_b * bank_change,
                        -sin_h * cos_b * curvature - cos_h * sin_b * bank_change,
                        -cos_b * bank_change)
        # The reference line by cubic Hermite interpolation.
        rest = 1 - t
        x, y = (rest**2 * (1 + 2 * t) * first + t**2 * (3 - 2 * t) * last
                + self._cell_m * t * rest * (rest * first_slope - t * last_slope)
                for first, last, first_slope, last_slope in (ends[:4], ends[4:]))
        return Surface(*(np.stack(components, axis=-1) for components in (
            (x + offset * right[0], y + offset * right[1], height + offset * right[2]),
            (cos_h + offset * right_change[0], sin_h + offset * right_change[1],
             slope + offset * right_change[2]), right)))

    def lane_offset(self, lane: IntArray) -> FloatArray:
        """Return the lateral offset of the middle of a lane."""
        # lane: any shape, 0 is the leftmost lane.
        # Returns meters to the right of the reference line, same shape.
        return (lane.astype(np.float64) + 0.5) * LANE_WIDTH_M

    @property
    def n_roads(self) -> int:
        """Return the number of OpenDRIVE-like roads, all of the same length."""
        return max(1, round(self.length_m / ROAD_PIECE_M))

    def ids(self, s: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Convert distances along the loop to OpenDRIVE-like positions."""
        # s: (N,) distances along the whole loop, meters.
        # Returns road ids, section ids and distances along the road in meters, (N,) each.
        n_roads = self.n_roads
        piece_m = self.length_m / n_roads
        s = np.mod(s, self.length_m)
        road = np.minimum((s / piece_m).astype(np.int64), n_roads - 1)
        on_road = s - road * piece_m
        section = np.minimum((on_road * SECTIONS_PER_ROAD / piece_m).astype(np.int64),
                             SECTIONS_PER_ROAD - 1)
        return road, section, on_road


def _rows(*columns: FloatArray) -> list[tuple[float, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _waves(rows: list[tuple[float, ...]],
           s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a sum of sines, rows of rate, gain and phase, and its first two derivatives by s."""
    value, slope, change = np.zeros((3, *s.shape))
    for rate, gain, phase in rows:
        angle = rate * s + phase
        value += gain * np.sin(angle)
        slope += gain * rate * np.cos(angle)
        change -= gain * rate**2 * np.sin(angle)
    return value, slope, change


@dataclass(frozen=True, slots=True)
class StaticObject:
    """An object that does not move; left-handed world axes."""

    name: str
    tag: str
    box_name: str
    position: tuple[float, float, float]  # position, m
    yaw: float  # rad, positive to the right
    center: tuple[float, float, float]  # center of its box, m
    size: tuple[float, float, float]  # full edge lengths of its box, m


def make_objects(road: Road, n_objects: int) -> tuple[StaticObject, ...]:
    """Place cones and signs along the right edge of a road: the objects in order of s."""
    spacing = min(SPACING_M, road.length_m / max(n_objects, 1))
    i = np.arange(n_objects)
    is_sign = i % 3 == 2
    edge = road.n_lanes * LANE_WIDTH_M
    surface = road.surface(FIRST_M + spacing * i.astype(np.float64),
                           edge + np.where(is_sign, SIGN_MARGIN_M, CONE_MARGIN_M))
    yaw = np.arctan2(surface.along[:, 1], surface.along[:, 0])
    # Signs face oncoming traffic.
    return tuple(
        StaticObject(f'SpeedLimit_sign{k:03d}', 'traffic_sign', 'Sign', (x, y, z), heading + np.pi,
                     (x, y, z + SIGN_SIZE_M[2] / 2), SIGN_SIZE_M) if is_sign[k] else
        StaticObject(f'Misc_TrafficCone_{k}', 'cone', 'None', (x, y, z), 0.0,
                     (x, y, z - CONE_FOOT_M + CONE_SIZE_M[2] / 2), CONE_SIZE_M)
        for k, ((x, y, z), heading) in enumerate(zip(
            surface.point.tolist(), yaw.tolist(), strict=True)))

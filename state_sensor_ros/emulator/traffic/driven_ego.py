# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The ego that a client drives: a bicycle on the surface of the road, among the other vehicles.

SI units and left-handed world axes, as in motion. The other vehicles follow it and change lanes
around it as if it were one of them.
"""

from __future__ import annotations

from dataclasses import replace
import math

import numpy as np

from state_sensor_ros.emulator.bicycle import Bicycle, Pedals
from state_sensor_ros.emulator.traffic.drivers import Drivers, Fleet
from state_sensor_ros.emulator.traffic.motion import EPSILON_M, Kinematics, Motion
from state_sensor_ros.emulator.traffic.road import FloatArray, LANE_WIDTH_M, Road, Surface

# Iterations of Newton's method; from the place of the step before it takes two.
_N_ITERATIONS = 8
_CLOSE_M = 1e-9


class DrivenEgo:
    """
    Takes the ego over from its driver at its place.

    :param road: the ground, which continues beside the lanes.
    :param fleet: the vehicles.
    :param drivers: drivers of all vehicles.
    :param motion: motion of all vehicles at this instant.
    :ivar row: row of the ego.
    :ivar pedals: pedals until they are replaced.
    """

    def __init__(self, road: Road, fleet: Fleet, drivers: Drivers, motion: Motion) -> None:
        self._road = road
        self.row = row = next(i for i, tags in enumerate(fleet.tags) if 'ego' in tags)
        model = fleet.models[row]
        self._rear_m = model.rear_x
        forward = motion.axes[row, 0]
        x, y, _ = motion.position[row] - model.rear_x * forward
        self._body = Bicycle(
            float(x), float(y), math.atan2(forward[1], forward[0]),
            float(motion.velocity[row] @ forward), model.front_x + model.rear_x,
            float(motion.bicycle_steering[row]))
        # The rear axle: distance along the loop, and to the right of the reference line.
        self._s = float(drivers.s[row])
        self._offset = float(road.lane_offset(drivers.lane[row:row + 1])[0])
        self._slope = math.asin(min(max(float(forward[2]), -1.0), 1.0))
        self.pedals = Pedals()

    def advance(self, elapsed_s: float, drivers: Drivers) -> None:
        """
        Move by the pedals, and take the place of the ego among the drivers.

        :param elapsed_s: simulated time, s.
        :param drivers: drivers, already advanced by this time.
        """
        before = self._s
        self._body.advance(self.pedals, elapsed_s, self._slope)
        forward = self._pose(0.0)[1][0]
        self._slope = math.asin(float(forward[2]))
        self._s, self._offset = self._place(self._body.x, self._body.y)
        lane = round(self._offset / LANE_WIDTH_M - 0.5)
        drivers.place(self.row, self._s, max((self._s - before) / elapsed_s, 0.0),
                      min(max(lane, 0), self._road.n_lanes - 1))

    def show(self, motion: Motion, kinematics: Kinematics) -> None:
        """
        Replace the ego's motion.

        :param motion: motion of all vehicles, with the ego as its driver would drive it.
        :param kinematics: kinematics of the fleet.
        """
        row, body = self.row, self._body
        poses = [self._pose(distance) for distance in (-EPSILON_M, 0.0, EPSILON_M)]
        origins = np.array([origin for origin, _ in poses])
        axes = np.array([rows for _, rows in poses])
        by_m = 0.5 / EPSILON_M
        turn = 0.5 * np.cross(axes[1], (axes[2] - axes[0]) * by_m).sum(axis=0)
        for array, value in (
                (motion.position, origins[1]), (motion.axes, axes[1]),
                (motion.velocity, (origins[2] - origins[0]) * by_m * body.speed),
                (motion.angular_velocity, turn * body.speed),
                (motion.bicycle_steering, body.steering_angle),
                (motion.s, self._s + self._rear_m)):
            array[row] = value
        curvature = np.zeros(len(motion.s))
        curvature[row] = body.curvature
        speed = np.zeros(len(motion.s))
        speed[row] = body.speed
        motion.steering[row] = kinematics.steer(curvature)[row]
        motion.wheel_speed[row] = kinematics.wheel_speed(curvature, speed)[row]

    def _pose(self, distance: float) -> tuple[FloatArray, FloatArray]:
        """Return origin (3,) and axes (3, 3), ``distance`` meters ahead on the path."""
        body = replace(self._body)
        body.move(distance * math.cos(self._slope))
        surface = self._surface(*self._place(body.x, body.y))
        up = np.cross(surface.along, surface.right)
        up /= np.linalg.norm(up)
        heading = np.array((math.cos(body.yaw), math.sin(body.yaw), 0.0))
        # In the plane of the road, above the heading.
        heading[2] = -(up @ heading) / up[2]
        forward = heading / np.linalg.norm(heading)
        # x and y of the surface point differ from the axle by less than the last Newton step.
        rear = np.array((body.x, body.y, surface.point[2]))
        return rear + self._rear_m * forward, np.stack([forward, np.cross(up, forward), up])

    def _place(self, x: float, y: float) -> tuple[float, float]:
        """Return distance along the loop and offset of a point of the ground."""
        s, offset = self._s, self._offset
        for _ in range(_N_ITERATIONS):
            surface = self._surface(s, offset)
            gap = np.array((x, y)) - surface.point[:2]
            if gap @ gap < _CLOSE_M ** 2:
                break
            slopes = np.stack([surface.along[:2], surface.right[:2]], axis=1)
            # In the center of a curve all points of the road meet.
            ahead, aside = np.linalg.lstsq(slopes, gap, rcond=None)[0]
            s, offset = s + float(ahead), offset + float(aside)
        return s, offset

    def _surface(self, s: float, offset: float) -> Surface:
        surface = self._road.surface(np.array([s]), np.array([offset]))
        return Surface(surface.point[0], surface.along[0], surface.right[0])

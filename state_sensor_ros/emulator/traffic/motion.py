# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Motion of vehicles: on the road, and of those that a client drives or places, as bicycles.

SI units, left-handed world axes (x forward, y right, z up). The rear axle does not slip: its path
gives the heading, its curvature the steering angles (Ackermann) and the wheel speeds.

The yaw angle turns x toward y, and so does the steering angle of a bicycle. Equal commands at
equal times give equal paths. The other vehicles follow a bicycle and change lanes around it as if
it were one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
import math

import numpy as np

from state_sensor_ros.emulator.bicycle import Bicycle, Pedals
from state_sensor_ros.emulator.traffic.drivers import Drivers, Fleet
from state_sensor_ros.emulator.traffic.road import FloatArray, LANE_WIDTH_M, Road

# Step of the central differences by s, meters: truncation and rounding errors are below 1e-8.
EPSILON_M = 1e-3
# Iterations of Newton's method; from the place of the step before it takes two.
_N_ITERATIONS = 8
_CLOSE_M = 1e-9
# Distance of the points of the road of which the nearest one is its begin after a jump.
_SEARCH_M = 5.0


@dataclass(frozen=True, slots=True)
class Motion:
    """Poses and velocities of N vehicles at one instant; float64, left-handed world axes."""

    position: FloatArray  # (N, 3) actor origins, m
    velocity: FloatArray  # (N, 3) their derivatives by time, m/s
    axes: FloatArray  # (N, 3, 3) body axes as rows x, y, z
    angular_velocity: FloatArray  # (N, 3) rad/s, world axes
    steering: FloatArray  # (N, 2) angles of the front wheels, left and right, rad, + = right
    bicycle_steering: FloatArray  # (N,) angle of a single wheel in the middle, rad, + = right
    wheel_speed: FloatArray  # (N, 4) rad/s, order FL FR RL RR
    s: FloatArray  # (N,) distance of the origin along the loop, m


class Kinematics:
    """Computes the motion of a fleet on a road."""

    def __init__(self, road: Road, fleet: Fleet) -> None:
        self._road = road
        self._rear_m = fleet.column('rear_x')
        self._wheelbase_m = fleet.column('front_x') + self._rear_m
        self._track_m = fleet.column('track')
        self._radius_m = fleet.column('radius')

    def _path(self, drivers: Drivers, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (3, N) lateral offsets (m) and their derivatives by s."""
        old = self._road.lane_offset(drivers.old_lane)
        width = self._road.lane_offset(drivers.lane) - old
        u = np.clip((s - drivers.change_s) / drivers.change_m, 0.0, 1.0)
        # Fifth-order polynomial: its first and second derivatives are zero at both ends.
        blend = u**3 * (10 - 15 * u + 6 * u**2)
        return old + width * blend, width * (30 * u**2 * (1 - u) ** 2 / drivers.change_m)

    def evaluate(self, drivers: Drivers) -> Motion:
        """Compute the motion at this instant."""
        # Returns the motion; velocities are derivatives of the poses by s, times the speed.
        s = drivers.s + np.array([[-EPSILON_M], [0.0], [EPSILON_M]])
        offset, offset_by_s = self._path(drivers, s)
        surface = self._road.surface(s, offset)
        along = surface.along + offset_by_s[..., None] * surface.right
        # Meters of path per meter of s.
        stretch = np.linalg.norm(along, axis=-1)
        forward = along / stretch[..., None]
        up = np.cross(surface.along, surface.right)
        up /= np.linalg.norm(up, axis=-1)[..., None]
        axes = np.stack([forward, np.cross(up, forward), up], axis=-2)
        origin = surface.point + self._rear_m[:, None] * forward
        by_s = 0.5 / EPSILON_M
        turn = 0.5 * np.cross(axes[1], (axes[2] - axes[0]) * by_s).sum(axis=-2)
        rate = drivers.speed[:, None]
        # Curvature (1/m) of the rear axle's path in the plane of the road, positive to the right.
        curvature = np.einsum('ij,ij->i', turn, up[1]) / stretch[1]
        steering, wheel_speed = self.wheels(curvature, stretch[1] * drivers.speed)
        return Motion(
            position=origin[1],
            velocity=(origin[2] - origin[0]) * by_s * rate,
            axes=axes[1],
            angular_velocity=turn * rate,
            steering=steering,
            bicycle_steering=np.arctan(self._wheelbase_m * curvature),
            wheel_speed=wheel_speed,
            s=drivers.s + self._rear_m / stretch[1],
        )

    def wheels(self, curvature: FloatArray,
               rear_speed: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Ackermann angles, and speeds of wheels without slip."""
        # curvature: (N,) of the path of the rear axle, 1/m, + = right.
        # rear_speed: (N,) of the middle of the rear axle, m/s.
        # Returns (N, 2) left and right, rad, + = right: the axes of both wheels meet in the same
        # center; (N, 4) rad/s.
        lateral = 0.5 * self._track_m[:, None] * np.array([-1.0, 1.0, -1.0, 1.0])
        ahead = self._wheelbase_m[:, None] * np.array([1.0, 1.0, 0.0, 0.0])
        beside, before = 1 - curvature[:, None] * lateral, curvature[:, None] * ahead
        return (np.arctan2(before, beside)[:, :2],
                (rear_speed / self._radius_m)[:, None] * np.hypot(beside, before))


class FreeVehicle:
    """Takes a vehicle over from its driver at its place."""

    def __init__(self, road: Road, fleet: Fleet, drivers: Drivers, motion: Motion,
                 row: int) -> None:
        self._road, self.row = road, row
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

    def place(self, x: float, y: float, yaw: float, speed: float) -> None:
        """Put it on the ground."""
        # x, y: of its origin, m, above which the slope of the road moves it by millimeters.
        body = self._body
        body.x, body.y = x - self._rear_m * math.cos(yaw), y - self._rear_m * math.sin(yaw)
        body.yaw, body.speed = yaw, speed
        s: FloatArray = np.arange(0.0, self._road.length_m, _SEARCH_M, np.float64)
        self._offset = self._road.n_lanes * LANE_WIDTH_M / 2
        points = self._road.surface(s, np.full(len(s), self._offset)).point
        self._s = float(s[np.hypot(points[:, 0] - body.x, points[:, 1] - body.y).argmin()])
        self._settle()

    def advance(self, elapsed_s: float, drivers: Drivers) -> None:
        """Move by the pedals, and take a place among the drivers."""
        # elapsed_s: simulated time, s.
        before = self._s
        self._body.advance(self.pedals, elapsed_s, self._slope)
        self._settle()
        lane = round(self._offset / LANE_WIDTH_M - 0.5)
        drivers.place(self.row, self._s, max((self._s - before) / elapsed_s, 0.0),
                      min(max(lane, 0), self._road.n_lanes - 1))

    def _settle(self) -> None:
        """Note the slope and the place on the road."""
        self._slope = math.asin(float(self._poses(0.0)[1][0, 0, 2]))
        [self._s], [self._offset] = self._places(np.array([(self._body.x, self._body.y)]))

    def show(self, motion: Motion, kinematics: Kinematics) -> None:
        row, body = self.row, self._body
        origins, axes = self._poses(-EPSILON_M, 0.0, EPSILON_M)
        by_m = 0.5 / EPSILON_M
        turn = 0.5 * np.cross(axes[1], (axes[2] - axes[0]) * by_m).sum(axis=0)
        for array, value in (
                (motion.position, origins[1]), (motion.axes, axes[1]),
                (motion.velocity, (origins[2] - origins[0]) * by_m * body.speed),
                (motion.angular_velocity, turn * body.speed),
                (motion.bicycle_steering, body.steering_angle),
                (motion.s, self._s + self._rear_m)):
            array[row] = value
        curvature, speed = (np.full(len(motion.s), each) for each in (body.curvature, body.speed))
        steering, wheel_speed = kinematics.wheels(curvature, speed)
        motion.steering[row], motion.wheel_speed[row] = steering[row], wheel_speed[row]

    def _poses(self, *distances: float) -> tuple[FloatArray, FloatArray]:
        """Return origins (K, 3) and axes (K, 3, 3), ``distances`` meters ahead on the path."""
        bodies = [replace(self._body) for _ in distances]
        for body, distance in zip(bodies, distances, strict=True):
            body.move(distance * math.cos(self._slope))
        xy, yaws = np.array([(body.x, body.y) for body in bodies]), [body.yaw for body in bodies]
        surface = self._road.surface(*self._places(xy))
        up = np.cross(surface.along, surface.right)
        up /= np.linalg.norm(up, axis=1)[:, None]
        # In the plane of the road, above the heading.
        heading = np.column_stack((np.cos(yaws), np.sin(yaws)))
        forward = np.column_stack((heading, -(up[:, :2] * heading).sum(axis=1) / up[:, 2]))
        forward /= np.linalg.norm(forward, axis=1)[:, None]
        # x and y of the surface point differ from the axle by less than the last Newton step.
        return (np.column_stack((xy, surface.point[:, 2])) + self._rear_m * forward,
                np.stack([forward, np.cross(up, forward), up], axis=1))

    def _places(self, xy: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (K,) distances along the loop and offsets of points of the ground, (K, 2)."""
        s, offset = np.full(len(xy), self._s), np.full(len(xy), self._offset)
        for _ in range(_N_ITERATIONS):
            surface = self._road.surface(s, offset)
            gaps = xy - surface.point[:, :2]
            if (np.hypot(*gaps.T) < _CLOSE_M).all():
                break
            along, right = surface.along[:, :2], surface.right[:, :2]
            areas = along[:, 0] * right[:, 1] - along[:, 1] * right[:, 0]
            # In the center of a curve all points of the road meet: the way is to the side alone.
            ahead = np.divide(gaps[:, 0] * right[:, 1] - gaps[:, 1] * right[:, 0], areas,
                              out=np.zeros(len(xy)), where=np.abs(areas) > _CLOSE_M)
            s += ahead
            gaps -= ahead[:, None] * along
            offset += (gaps * right).sum(axis=1) / (right ** 2).sum(axis=1)
        return s, offset

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The driven ego of all mock servers: a bicycle with pedals whose tires do not slip.

Its axes are those of the simulator: the yaw angle turns x toward y, and so does the steering
angle. Equal commands at equal times give equal paths.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

# Acceleration at full throttle and full brake, m/s2; drag, 1/s times the speed.
FULL_THROTTLE, FULL_BRAKE, DRAG = 4.0, 8.0, 0.08
WHEELBASE_M = 2.9
# Angle of the front tire at full lock.
FULL_LOCK_DEG = 70.0
GRAVITY = 9.81


@dataclass(frozen=True, slots=True)
class Pedals:
    """Positions of the pedals, the steering wheel and the gear lever."""

    steer: float = 0.0  # -1..1, share of full lock, + turns x toward y
    throttle: float = 0.0  # throttle, brake: 0..1
    brake: float = 0.0
    hand_brake: bool = False
    reverse: bool = False


@dataclass(slots=True)
class Bicycle:
    """A bicycle; its rear axle moves along its heading."""

    x: float  # x, y: of the middle of the rear axle, m
    y: float
    yaw: float  # rad
    speed: float  # along the heading, m/s, negative backward
    wheelbase: float = WHEELBASE_M  # m
    steering_angle: float = 0.0  # of the front tire, rad

    @property
    def curvature(self) -> float:
        """Curvature of the path of the rear axle, 1/m, positive from x toward y."""
        return math.tan(self.steering_angle) / self.wheelbase

    def advance(self, pedals: Pedals, elapsed_s: float, slope: float = 0.0) -> None:
        """
        Change the speed by the pedals and the slope, then move along an arc.

        :param pedals: pedals during the step; values out of range are clamped.
        :param elapsed_s: simulated time, s.
        :param slope: slope of the ground along the heading, rad, + = up.
        """
        thrust = FULL_THROTTLE * min(max(pedals.throttle, 0.0), 1.0)
        self.speed += elapsed_s * ((-thrust if pedals.reverse else thrust)
                                   - DRAG * self.speed - GRAVITY * math.sin(slope))
        brake = FULL_BRAKE * (1.0 if pedals.hand_brake else min(max(pedals.brake, 0.0), 1.0))
        # A brake does not reverse the direction.
        self.speed = math.copysign(max(abs(self.speed) - elapsed_s * brake, 0.0), self.speed)
        self.steering_angle = math.radians(FULL_LOCK_DEG) * min(max(pedals.steer, -1.0), 1.0)
        self.move(self.speed * elapsed_s * math.cos(slope))

    def move(self, distance: float) -> None:
        """
        Move along the arc of the steering angle.

        :param distance: horizontal, m, negative backward.
        """
        turn = distance * self.curvature
        # The chord of the arc: exact for a constant steering angle.
        chord = distance * (math.sin(turn / 2) / (turn / 2) if abs(turn) > 1e-9 else 1.0)
        self.x += chord * math.cos(self.yaw + turn / 2)
        self.y += chord * math.sin(self.yaw + turn / 2)
        self.yaw = math.remainder(self.yaw + turn, math.tau)

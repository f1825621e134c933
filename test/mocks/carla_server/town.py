# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
A small town: vehicles and pedestrians on a banked ring road over hills, traffic lights and signs.

Units and axes of CARLA 0.8: meters, degrees, y to the right; rotations are rotators. Speeds and
angles are derived from the motion along the ring.
"""

from __future__ import annotations

from dataclasses import dataclass
import math
import random
from typing import NamedTuple

from state_sensor_ros.emulator.bicycle import (
    Bicycle,
    FULL_LOCK_DEG,
    Pedals,
    WHEELBASE_M,
)

RADIUS_M = 80.0
LANE_WIDTH_M = 3.5
# The height is HILL_M sin(HILLS angle); vehicles lean by BANK_DEG to the right, into the curve.
HILL_M = 3.0
HILLS = 2
BANK_DEG = 4.0
WALKWAY_M = 8.0
WALKING_SPEED = 1.4
# The speed limits of CARLA's towns, km/h.
LIMITS_KMH = (30.0, 60.0, 90.0)
GREEN_S, YELLOW_S, RED_S = 8.0, 2.0, 6.0
GREEN, YELLOW, RED = range(3)

CRUISE_SPEED = 9.0
# The autopilot's steering, rad, per meter beside the lane and per radian beside its direction.
STEER_PER_M, STEER_PER_RAD = 0.05, 0.8
KMH = 1.0 / 3.6
N_START_SPOTS = 8


class CarlaPose(NamedTuple):
    """Place, m, and rotator of an actor, degrees."""

    xyz: tuple[float, float, float]
    roll_pitch_yaw: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(slots=True)
class RingActor:
    """A vehicle or pedestrian that follows a ring around the center of the town."""

    id: int
    angle: float  # position on the ring, rad
    speed: float  # along the ring, m/s, negative backward
    radius: float  # radius of its lane, m
    half_sizes: tuple[float, float, float]  # half sizes of its box, m
    bank_deg: float = BANK_DEG  # roll angle, degrees

    def advance(self, elapsed_s: float) -> None:
        """Move along the ring; a slope shortens the horizontal distance."""
        # elapsed_s: simulated time, s.
        self.angle += self.speed * elapsed_s * math.cos(self._slope()) / self.radius

    def _slope(self) -> float:
        return math.atan2(HILL_M * HILLS * math.cos(HILLS * self.angle), self.radius)

    def pose(self) -> CarlaPose:
        """Return the pose; x points in the direction of positive speed."""
        return CarlaPose(
            (self.radius * math.cos(self.angle), self.radius * math.sin(self.angle),
             HILL_M * math.sin(HILLS * self.angle)),
            (self.bank_deg, math.degrees(self._slope()),
             math.remainder(math.degrees(self.angle) + 90.0, 360.0)))


@dataclass(slots=True)
class DrivenCar:
    """The player's car on the hills."""

    id: int
    body: Bicycle  # bicycle in CARLA's axes; its rear axle is the origin of the car
    half_sizes: tuple[float, float, float]  # half sizes of its box, m

    @property
    def speed(self) -> float:
        """Speed along the heading, m/s, negative backward."""
        return self.body.speed

    @property
    def angle(self) -> float:
        """Angle of its place on the ring, rad."""
        return math.atan2(self.body.y, self.body.x)

    @property
    def radius(self) -> float:
        """Distance from the center of the town, m."""
        return math.hypot(self.body.x, self.body.y)

    def advance(self, elapsed_s: float, pedals: Pedals) -> None:
        """Drive on the ground; ``elapsed_s``: simulated time, s."""
        self.body.advance(pedals, elapsed_s, self._slope())

    def _slope(self) -> float:
        """Return the slope of the hills along the heading, rad."""
        across = self.body.yaw - self.angle - math.pi / 2
        return math.atan(HILL_M * HILLS * math.cos(HILLS * self.angle)
                         / max(self.radius, 1.0) * math.cos(across))

    def pose(self) -> CarlaPose:
        """Return the pose; x points in the direction of positive speed."""
        return CarlaPose((self.body.x, self.body.y, HILL_M * math.sin(HILLS * self.angle)),
                         (BANK_DEG, math.degrees(self._slope()), math.degrees(self.body.yaw)))


class Town:
    """The actors of the town; the same seed gives the same town."""

    def __init__(self, n_vehicles: int = 12, n_pedestrians: int = 6, n_signs: int = 4,
                 seed: int = 1, start: int = 0) -> None:
        chance = random.Random(seed)
        self.time_s = 0.0
        angle = self.start_angle(start)
        self.player = DrivenCar(0, Bicycle(
            RADIUS_M * math.cos(angle), RADIUS_M * math.sin(angle),
            math.remainder(angle + math.pi / 2, math.tau), 0.0), (2.3, 1.0, 0.7))
        self.acceleration = (0.0, 0.0, 0.0)
        first = 100
        self.vehicles = [
            RingActor(first + i, angle + math.tau * (i + 1) / (n_vehicles + 1),
                      chance.uniform(5.0, 12.0), RADIUS_M + LANE_WIDTH_M * (1 + i % 2),
                      (chance.uniform(1.8, 2.6), chance.uniform(0.8, 1.1),
                       chance.uniform(0.6, 0.9)))
            for i in range(n_vehicles)]
        first += n_vehicles
        self.pedestrians = [
            RingActor(first + i, chance.uniform(0.0, math.tau),
                      WALKING_SPEED * chance.choice((-1.0, 1.0)),
                      RADIUS_M + WALKWAY_M + LANE_WIDTH_M, (0.25, 0.25, 0.9), 0.0)
            for i in range(n_pedestrians)]
        first += n_pedestrians
        self.lights = [(first + i, self._beside(math.tau * i / n_signs)) for i in range(n_signs)]
        first += n_signs
        self.signs = [(first + i, self._beside(math.tau * (i + 0.5) / n_signs),
                       LIMITS_KMH[i % len(LIMITS_KMH)] * KMH) for i in range(n_signs)]

    @staticmethod
    def start_angle(start: int) -> float:
        """Return the position of a start spot on the ring."""
        # Returns rad, from CARLA's x axis toward its y axis.
        return math.tau * (start % N_START_SPOTS) / N_START_SPOTS

    @staticmethod
    def _beside(angle: float) -> CarlaPose:
        """Return a pose beside the road that faces oncoming traffic."""
        radius = RADIUS_M - LANE_WIDTH_M
        return CarlaPose(
            (radius * math.cos(angle), radius * math.sin(angle), HILL_M * math.sin(HILLS * angle)),
            (0.0, 0.0, math.remainder(math.degrees(angle) - 90.0, 360.0)))

    def advance(self, elapsed_s: float, control: Pedals | None = None) -> None:
        """Advance all actors."""
        # elapsed_s: simulated time, s.
        # control: command to the player, None for the autopilot.
        control = control or self.autopilot()
        before = self._velocity()
        self.player.advance(elapsed_s, control)
        for actor in (*self.vehicles, *self.pedestrians):
            actor.advance(elapsed_s)
        after = self._velocity()
        ax, ay, az = ((b - a) / elapsed_s for a, b in zip(before, after, strict=True))
        self.acceleration = (ax, ay, az)
        self.time_s += elapsed_s

    def autopilot(self) -> Pedals:
        """Return the control command that holds the player in its lane at CRUISE_SPEED."""
        player = self.player
        missing_speed = CRUISE_SPEED - player.speed
        beside = math.remainder(player.body.yaw - player.angle - math.pi / 2, math.tau)
        wheel = math.atan2(WHEELBASE_M, RADIUS_M) + STEER_PER_M * min(max(
            player.radius - RADIUS_M, -10.0), 10.0) - STEER_PER_RAD * beside
        return Pedals(min(max(math.degrees(wheel) / FULL_LOCK_DEG, -1.0), 1.0),
                      min(max(0.2 + 0.4 * missing_speed, 0.0), 1.0),
                      min(max(-0.5 * missing_speed - 1.0, 0.0), 1.0))

    def light_state(self, i: int) -> int:
        """Return the state of a light; each light is 5 s ahead of the one before."""
        # i: index of the light in ``lights``.
        phase = (self.time_s + 5.0 * i) % (GREEN_S + YELLOW_S + RED_S)
        if phase < GREEN_S:
            return GREEN
        return YELLOW if phase < GREEN_S + YELLOW_S else RED

    def _velocity(self) -> tuple[float, float, float]:
        speed, (_, pitch, yaw) = self.player.speed, map(
            math.radians, self.player.pose().roll_pitch_yaw)
        return (speed * math.cos(pitch) * math.cos(yaw), speed * math.cos(pitch) * math.sin(yaw),
                speed * math.sin(pitch))

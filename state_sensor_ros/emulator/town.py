# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A small town as CARLA 0.8 would measure it: a banked ring road over hills, walkers, lights, signs.

May know: CARLA's units and axes (metres, degrees, y to the right). Must not: sockets, protobuf.
Source of truth: PROTOCOL 7.2 and 7.3. Speeds, slopes and headings are those of the motion itself.
"""

from __future__ import annotations

from dataclasses import dataclass
import math
import random

RADIUS_M = 80.0
LANE_WIDTH_M = 3.5
# Two hills on the ring; everybody leans this much to the right, into the curve.
HILL_M = 3.0
HILLS = 2
BANK_DEG = 4.0
WALKWAY_M = 8.0
WALKING_SPEED = 1.4
# km/h, as on the signs of CARLA's towns.
LIMITS_KMH = (30.0, 60.0, 90.0)
GREEN_S, YELLOW_S, RED_S = 8.0, 2.0, 6.0
GREEN, YELLOW, RED = range(3)

# What the pedals of the player do: m/s2 at full throttle and brake, and drag per m/s.
THROTTLE_GAIN, BRAKE_GAIN, DRAG = 4.0, 8.0, 0.08
CRUISE_SPEED = 9.0
WHEELBASE_M, FULL_LOCK_DEG = 2.9, 70.0
KMH = 1.0 / 3.6


@dataclass(frozen=True, slots=True)
class Pose:
    """Place, m, and rotator, degrees, in CARLA's axes."""

    x: float
    y: float
    z: float
    roll: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0


@dataclass(frozen=True, slots=True)
class Pedals:
    """A command: ``steer`` -1..1, + = right; ``throttle`` and ``brake`` 0..1."""

    steer: float = 0.0
    throttle: float = 0.0
    brake: float = 0.0
    hand_brake: bool = False
    reverse: bool = False


@dataclass(slots=True)
class Mover:
    """
    Somebody on a ring around the centre of the town.

    ``angle`` where, rad; ``speed`` m/s along the ring, negative backwards; ``radius`` m of its
    lane; ``half_sizes`` of its box, m.
    """

    id: int
    angle: float
    speed: float
    radius: float
    half_sizes: tuple[float, float, float]
    bank_deg: float = BANK_DEG

    def advance(self, elapsed_s: float) -> None:
        """Move along the ring; a slope shortens the way seen from above."""
        self.angle += self.speed * elapsed_s * math.cos(self._slope()) / self.radius

    def _slope(self) -> float:
        return math.atan2(HILL_M * HILLS * math.cos(HILLS * self.angle), self.radius)

    def pose(self) -> Pose:
        """Return where it is; it faces the way of positive speed."""
        return Pose(self.radius * math.cos(self.angle), self.radius * math.sin(self.angle),
                    HILL_M * math.sin(HILLS * self.angle), self.bank_deg,
                    math.degrees(self._slope()),
                    math.remainder(math.degrees(self.angle) + 90.0, 360.0))


class Town:
    """
    Everybody who is there; the same seed makes the same town.

    :param n_vehicles: other than the player.
    :param n_pedestrians: on the walkway.
    :param n_signs: lights and as many speed limit signs.
    :param seed: of places and speeds.
    :param start: which of the start spots the player begins at.
    """

    def __init__(self, n_vehicles: int = 12, n_pedestrians: int = 6, n_signs: int = 4,
                 seed: int = 1, start: int = 0) -> None:
        chance = random.Random(seed)
        self.time_s = 0.0
        self.player = Mover(0, self.start_angle(start), 0.0, RADIUS_M, (2.3, 1.0, 0.7))
        self.acceleration = (0.0, 0.0, 0.0)
        first = 100
        self.vehicles = [
            Mover(first + i, self.player.angle + math.tau * (i + 1) / (n_vehicles + 1),
                  chance.uniform(5.0, 12.0), RADIUS_M + LANE_WIDTH_M * (1 + i % 2),
                  (chance.uniform(1.8, 2.6), chance.uniform(0.8, 1.1), chance.uniform(0.6, 0.9)))
            for i in range(n_vehicles)]
        first += n_vehicles
        self.pedestrians = [
            Mover(first + i, chance.uniform(0.0, math.tau),
                  WALKING_SPEED * chance.choice((-1.0, 1.0)),
                  RADIUS_M + WALKWAY_M + LANE_WIDTH_M, (0.25, 0.25, 0.9), 0.0)
            for i in range(n_pedestrians)]
        first += n_pedestrians
        self.lights = [(first + i, self._beside(math.tau * i / max(n_signs, 1)))
                       for i in range(n_signs)]
        first += n_signs
        self.signs = [(first + i, self._beside(math.tau * (i + 0.5) / n_signs),
                       LIMITS_KMH[i % len(LIMITS_KMH)] * KMH) for i in range(n_signs)]

    @staticmethod
    def start_angle(start: int) -> float:
        """Return where a start spot is on the ring, rad."""
        return math.tau * (start % 8) / 8

    @staticmethod
    def _beside(angle: float) -> Pose:
        """Return a place at the kerb, facing those who come along."""
        radius = RADIUS_M - LANE_WIDTH_M
        return Pose(radius * math.cos(angle), radius * math.sin(angle),
                    HILL_M * math.sin(HILLS * angle), 0.0, 0.0,
                    math.remainder(math.degrees(angle) - 90.0, 360.0))

    def advance(self, elapsed_s: float, pedals: Pedals | None = None) -> None:
        """
        Let time pass.

        :param pedals: of the player, None for those of the autopilot. The road steers.
        """
        pedals = pedals or self.autopilot()
        before = self._velocity()
        speed = self.player.speed
        thrust = THROTTLE_GAIN * pedals.throttle * (-1.0 if pedals.reverse else 1.0)
        brake = BRAKE_GAIN * max(pedals.brake, float(pedals.hand_brake))
        speed += elapsed_s * (thrust - DRAG * speed)
        # A brake stops, it does not turn round.
        self.player.speed = math.copysign(max(abs(speed) - elapsed_s * brake, 0.0), speed)
        for mover in (self.player, *self.vehicles, *self.pedestrians):
            mover.advance(elapsed_s)
        after = self._velocity()
        ax, ay, az = ((b - a) / elapsed_s for a, b in zip(before, after, strict=True))
        self.acceleration = (ax, ay, az)
        self.time_s += elapsed_s

    def autopilot(self) -> Pedals:
        """Return what would keep the player at cruising speed."""
        wanted = CRUISE_SPEED - self.player.speed
        steer = math.degrees(math.atan2(WHEELBASE_M, self.player.radius)) / FULL_LOCK_DEG
        return Pedals(steer, min(max(0.2 + 0.4 * wanted, 0.0), 1.0),
                      min(max(-0.5 * wanted - 1.0, 0.0), 1.0))

    def light_state(self, i: int) -> int:
        """Return the state of a light; they are not in step with each other."""
        phase = (self.time_s + 5.0 * i) % (GREEN_S + YELLOW_S + RED_S)
        if phase < GREEN_S:
            return GREEN
        return YELLOW if phase < GREEN_S + YELLOW_S else RED

    def _velocity(self) -> tuple[float, float, float]:
        pose, speed = self.player.pose(), self.player.speed
        pitch, yaw = math.radians(pose.pitch), math.radians(pose.yaw)
        return (speed * math.cos(pitch) * math.cos(yaw), speed * math.cos(pitch) * math.sin(yaw),
                speed * math.sin(pitch))

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A vehicle of CARLA 0.9 that follows a speed: pedals by the controller of its server.

Two loops in series: the error of the speed changes an acceleration, whose error changes a pedal.
Both add to their last output in each step, so that the response depends on the length of the step.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

from state_sensor_ros.emulator.bicycle import FULL_LOCK_DEG, Pedals

# Gains per step, of the error and of the measured rate of change.
_SPEED_GAIN, _SPEED_DAMPING = 0.15, 0.25
_PEDAL_GAIN, _PEDAL_DAMPING = 0.01, 0.01
# Limits without a wanted acceleration, m/s2, and the acceleration below which none is wanted.
_MAX_ACCELERATION, _MAX_DECELERATION, _NO_ACCELERATION = 3.0, 8.0, 1e-4
# Below this speed a vehicle stands: it may change its direction, and brakes if it is to stand.
_STANDSTILL = 0.1
# Share of the last acceleration in the measured one.
_SMOOTHING = 0.8
_NO_STEERING_SPEED = 1e-3


@dataclass(frozen=True, slots=True)
class AckermannTarget:
    """What a client requests, in the order of the client's type."""

    steering_angle: float = 0.0  # rad, + = right
    steering_speed: float = 0.0  # rad/s, 0 for at once
    speed: float = 0.0  # m/s, negative backward
    acceleration: float = 0.0  # m/s2, limit in both directions, 0 for that of the server
    jerk: float = 0.0  # m/s3, not used by the server


class AckermannController:
    """Follows a target until a client applies pedals."""

    def __init__(self) -> None:
        self.target = AckermannTarget()
        self._is_reverse = False
        self._throttle = self._brake = 0.0
        self._speed = self._acceleration = self._wanted_acceleration = self._pedal = 0.0
        # Measured values at the last call of each loop.
        self._last_speed = self._last_acceleration = 0.0

    def pedals(self, speed: float, last: Pedals, elapsed_s: float) -> Pedals:
        """Return the pedals of a step."""
        # speed: along the vehicle, m/s, negative backward.
        # last: pedals of the step before; the hand brake stays.
        # elapsed_s: simulated time since then, s, positive.
        target = self.target
        measured = (speed - self._speed) / elapsed_s
        self._acceleration = _SMOOTHING * self._acceleration + (1.0 - _SMOOTHING) * measured
        self._speed = speed
        if abs(speed) < _STANDSTILL and abs(target.speed) < _STANDSTILL:
            self._throttle, self._brake = 0.0, 1.0
        else:
            self._follow(speed, target, elapsed_s)
        return Pedals(self._steer(last.steer, elapsed_s), self._throttle, self._brake,
                      last.hand_brake, self._is_reverse)

    def _steer(self, last: float, elapsed_s: float) -> float:
        lock = math.radians(FULL_LOCK_DEG)
        wanted = _clamped(self.target.steering_angle / lock, -1.0, 1.0)
        rate = abs(self.target.steering_speed)
        if rate < _NO_STEERING_SPEED:
            return wanted
        most = rate * elapsed_s / lock
        return last + _clamped(wanted - last, -most, most)

    def _follow(self, speed: float, target: AckermannTarget, elapsed_s: float) -> None:
        wanted = target.speed
        if abs(speed) < _STANDSTILL:
            self._is_reverse = wanted < 0.0
        elif speed * wanted < 0.0:
            wanted = 0.0
        change = _SPEED_GAIN * (wanted - speed) \
            - _SPEED_DAMPING * (speed - self._last_speed) / elapsed_s
        self._last_speed = speed
        limit = abs(target.acceleration)
        low, high = (-limit, limit) if limit >= _NO_ACCELERATION \
            else (-_MAX_DECELERATION, _MAX_ACCELERATION)
        self._wanted_acceleration = _clamped(
            self._wanted_acceleration + _clamped(change, -1.0, 1.0), low, high)
        change = _PEDAL_GAIN * (self._wanted_acceleration - self._acceleration) \
            - _PEDAL_DAMPING * (self._acceleration - self._last_acceleration) / elapsed_s
        self._last_acceleration = self._acceleration
        self._pedal = _clamped(self._pedal + _clamped(change, -1.0, 1.0), -1.0, 1.0)
        throttle, brake = max(self._pedal, 0.0), max(-self._pedal, 0.0)
        self._throttle, self._brake = (brake, throttle) if self._is_reverse \
            else (throttle, brake)


def _clamped(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)

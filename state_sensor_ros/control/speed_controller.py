# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
From speed, acceleration and steering angle to pedals and wheel: PI on the speed, fed forward.

Accelerations are along the engaged gear, speeds in it positive::

    a = a_wanted + kp (v_ref - v) + integral of ki (v_ref - v)
    throttle = a / full_throttle where a > 0,   brake = -a / full_brake where a < 0

``v_ref`` is the wanted speed, or a ramp towards it; at ``v_ref = 0`` the brake has a least value.
The integral stands still while a pedal is at its limit (anti-windup), and is 0 at standstill,
where the brake holds the ego. The gear changes at standstill only.
"""

from __future__ import annotations

import math

from state_sensor_ros.control.control_parameters import ControlParameters
from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.control.setpoint import Setpoint

# Below this speed the ego stands, m/s; a wanted speed below half of it is 0.
STANDSTILL_SPEED = 0.1
# Brake that holds the ego at standstill.
HOLDING_BRAKE = 0.5
# Least deceleration of an ego that is to stop, m/s2; with the error alone it creeps for seconds.
_STOPPING = 1.0
# A longer time between two calls is not integrated, s.
_LONGEST_STEP_S = 0.5
# Accelerations and speeds beyond these are errors of the source; they only have to stay finite.
_MOST_ACCELERATION, _MOST_SPEED = 1e3, 1e3


class SpeedController:
    """
    The state between two commands: integral, ramp and gear.

    :param own: gains and limits.
    """

    def __init__(self, own: ControlParameters) -> None:
        self._own = own
        self._integral = 0.0
        self._reference = math.nan
        self._is_reverse = False

    def reset(self) -> None:
        """Forget the past: another controller has driven since."""
        self._integral, self._reference = 0.0, math.nan

    def command(self, wanted: Setpoint, speed: float, elapsed_s: float) -> EgoCommand:
        """
        Return pedals and wheel.

        :param wanted: within its limits; one with NaN or infinite numbers is full brake.
        :param speed: of the ego along its x axis, m/s; NaN, if it is not known, is full brake.
        :param elapsed_s: simulated time since the last call, s; 0 if the clock stands.
        """
        numbers = (wanted.speed, wanted.acceleration, wanted.steering_angle, speed)
        if not all(map(math.isfinite, numbers)) or not wanted.max_acceleration > 0.0:
            self.reset()
            return self._pedals(-self._own.full_brake, 0.0 if not math.isfinite(
                wanted.steering_angle) else wanted.steering_angle)
        elapsed_s = min(max(elapsed_s, 0.0), _LONGEST_STEP_S) if elapsed_s == elapsed_s else 0.0
        angle = wanted.steering_angle
        target = _clamped(wanted.speed, self._own.max_speed)
        speed = _clamped(speed, _MOST_SPEED)
        if abs(target) < STANDSTILL_SPEED / 2:
            target = 0.0
        if abs(speed) < STANDSTILL_SPEED:
            if not target:
                self.reset()
                return self._pedals(-HOLDING_BRAKE * self._own.full_brake, angle,
                                    hand_brake=wanted.hand_brake)
            self._engage(is_reverse=target < 0.0)
        elif self._is_reverse is not (speed < 0.0):
            self._engage(is_reverse=speed < 0.0)
        sign = -1.0 if self._is_reverse else 1.0
        # Of the other direction: stop first.
        along = max(sign * target, 0.0)
        forward = sign * _clamped(wanted.acceleration, _MOST_ACCELERATION) if along else 0.0
        return self._pedals(self._acceleration(
            along, forward, sign * speed, wanted.max_acceleration, elapsed_s), angle)

    def _engage(self, *, is_reverse: bool) -> None:
        if is_reverse is not self._is_reverse:
            self.reset()
            self._is_reverse = is_reverse

    def _acceleration(self, target: float, forward: float, speed: float, limit: float,
                      elapsed_s: float) -> float:
        """Return the acceleration to ask of the pedals; all numbers are along the gear."""
        own = self._own
        reference = target
        if math.isfinite(limit):
            before = speed if math.isnan(self._reference) else self._reference
            reference = before + _clamped(target - before, limit * elapsed_s)
            if reference != target:
                forward += math.copysign(min(limit, _MOST_ACCELERATION), target - reference)
        self._reference = reference
        error = reference - speed
        integral = self._integral + own.ki * error * elapsed_s
        asked = forward + own.kp * error + integral
        if -own.full_brake < asked < own.full_throttle:
            self._integral = _clamped(integral, own.full_throttle)
        asked = forward + own.kp * error + self._integral
        return asked if reference else min(asked, -min(_STOPPING, limit))

    def _pedals(self, acceleration: float, steering_angle: float, *,
                hand_brake: bool = False) -> EgoCommand:
        own = self._own
        steering_angle = _clamped(steering_angle, own.max_steering_angle)
        return EgoCommand(
            throttle=min(max(acceleration / own.full_throttle, 0.0), 1.0),
            brake=min(max(-acceleration / own.full_brake, 0.0), 1.0),
            steer=steering_angle / own.max_steering_angle, steering_angle=steering_angle,
            hand_brake=hand_brake, reverse=self._is_reverse)


def _clamped(value: float, most: float) -> float:
    return min(max(value, -most), most)

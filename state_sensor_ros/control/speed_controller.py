# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""From a setpoint within its limits to pedals and wheel: PI on the speed, fed forward."""

from __future__ import annotations

from dataclasses import dataclass, replace
import math

from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand
from state_sensor_ros.errors import StateError

# Below this speed the ego counts as standing, m/s; a wanted speed below half of it is 0.
STANDSTILL_SPEED = 0.1
# Brake that holds the ego at standstill, 0..1.
HOLDING_BRAKE = 0.5
# Least deceleration of an ego that is to stop, m/s2; with the error alone it creeps for seconds.
_STOPPING = 1.0
# A wanted acceleration must not reach the wanted speed earlier than after this time, s: it fades
# out over some frames, of which the last ones are measured late.
_FADING_S = 0.5
# Excess of the largest speed from which the ego brakes by pedals, m/s.
_TOO_FAST = 1.0
# Controllers of simulators take 0 for no limit, m/s2.
_LEAST_ACCELERATION = 0.01
# Longest time between two calls that is integrated, s.
_LONGEST_STEP_S = 0.5
# Larger accelerations and speeds are errors of the source, and are clamped to stay finite.
_MOST_ACCELERATION, _MOST_SPEED = 1e3, 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Setpoint:
    """
    A speed and a steering angle.

    ``speed`` m/s, negative backward; ``acceleration`` m/s2 along the ego's x axis, fed forward;
    ``max_acceleration`` m/s2, positive: limit on the change of the speed, infinity for none;
    ``steering_angle`` of the tires, rad, + = left; ``hand_brake`` whether the hand brake is on
    while the speed is 0.
    """

    speed: float
    acceleration: float = 0.0
    max_acceleration: float = math.inf
    steering_angle: float = 0.0
    hand_brake: bool = False


def limited(wanted: Setpoint, parameters: ControlParameters) -> Setpoint:
    """
    Return a setpoint with its speed and its steering angle clamped to their limits.

    :param wanted: received setpoint.
    :param parameters: the limits.
    :raises StateError: if one of its numbers is NaN or infinite.
    """
    for name in ('speed', 'acceleration', 'steering_angle'):
        finite(name, getattr(wanted, name))
    if not wanted.max_acceleration > 0.0:
        raise StateError('acceleration', f'{wanted.max_acceleration:g}', 'at least 0')
    return replace(
        wanted, speed=clamped(wanted.speed, parameters.max_speed),
        steering_angle=clamped(wanted.steering_angle, parameters.max_steering_angle))


def pedals(throttle: float, brake: float, steer: float, steering_angle: float,
           parameters: ControlParameters, *, hand_brake: bool = False,
           reverse: bool = False) -> EgoCommand:
    """
    Return a command of the pedals with its steering in both units.

    :param throttle: 0..1.
    :param brake: 0..1.
    :param steer: -1..1, + = left; NaN to use the angle.
    :param steering_angle: rad, + = left, clamped; used only if ``steer`` is NaN.
    :param parameters: the full lock.
    :param hand_brake: whether it is on.
    :param reverse: whether the reverse gear is engaged.
    :raises StateError: if a number that is used is NaN, infinite or out of its range.
    """
    for name, value in (('throttle', throttle), ('brake', brake)):
        if not 0.0 <= value <= 1.0:
            raise StateError(name, f'{value:g}', '0 to 1')
    lock = parameters.max_steering_angle
    if math.isnan(steer):
        steer = clamped(finite('steering_angle', steering_angle), lock) / lock
    elif not -1.0 <= steer <= 1.0:
        raise StateError('steer', f'{steer:g}', '-1 to 1')
    return EgoCommand(throttle=throttle, brake=brake, steer=steer, steering_angle=steer * lock,
                      hand_brake=hand_brake, reverse=reverse)


def finite(name: str, value: float) -> float:
    """
    Return a number of a command if it is finite.

    :param name: name of its field, for the error.
    :param value: received number.
    :raises StateError: if it is NaN or infinite.
    """
    if not math.isfinite(value):
        raise StateError(name, f'{value:g}', 'a finite number')
    return value


def clamped(value: float, limit: float) -> float:
    """
    Return a number clamped to -limit..limit.

    :param value: any number but NaN.
    :param limit: largest absolute value.
    """
    return min(max(value, -limit), limit)


class SpeedController:
    """
    Compute pedals from a wanted speed; keeps the integral, the ramp and the gear.

    :param parameters: gains and limits.
    """

    def __init__(self, parameters: ControlParameters) -> None:
        self._parameters = parameters
        self._integral = 0.0
        self._reference = math.nan
        self._is_reverse = False

    def reset(self) -> None:
        """Clear the integral and the ramp: another controller has driven since."""
        self._integral, self._reference = 0.0, math.nan

    def command(self, wanted: Setpoint, speed: float, elapsed_s: float) -> EgoCommand:
        """
        Return the pedals and the steering.

        :param wanted: setpoint within its limits; NaN or infinite numbers give full brake.
        :param speed: speed of the ego along its x axis, m/s; NaN gives full brake.
        :param elapsed_s: simulated time since the last call, s; 0 if the clock stands.
        """
        numbers = (wanted.speed, wanted.acceleration, wanted.steering_angle, speed)
        if not all(map(math.isfinite, numbers)) or not wanted.max_acceleration > 0.0:
            self.reset()
            return self._pedals(-self._parameters.full_brake, 0.0 if not math.isfinite(
                wanted.steering_angle) else wanted.steering_angle)
        elapsed_s = min(max(elapsed_s, 0.0), _LONGEST_STEP_S) if elapsed_s == elapsed_s else 0.0
        angle = wanted.steering_angle
        target = clamped(wanted.speed, self._parameters.max_speed)
        speed = clamped(speed, _MOST_SPEED)
        if abs(target) < STANDSTILL_SPEED / 2:
            target = 0.0
        if abs(speed) < STANDSTILL_SPEED:
            if not target:
                self.reset()
                return self._pedals(-HOLDING_BRAKE * self._parameters.full_brake, angle,
                                    hand_brake=wanted.hand_brake)
            self._engage(is_reverse=target < 0.0)
        else:
            self._engage(is_reverse=speed < 0.0)
        sign = -1.0 if self._is_reverse else 1.0
        # A speed in the other direction: stop first.
        along = max(sign * target, 0.0)
        forward = sign * clamped(wanted.acceleration, _MOST_ACCELERATION) if along else 0.0
        return self._pedals(self._acceleration(
            along, forward, sign * speed, wanted.max_acceleration, elapsed_s), angle)

    def _engage(self, *, is_reverse: bool) -> None:
        if is_reverse is not self._is_reverse:
            self.reset()
            self._is_reverse = is_reverse

    def _acceleration(self, target: float, forward: float, speed: float, limit: float,
                      elapsed_s: float) -> float:
        """Return the wanted acceleration; all numbers are in the direction of the gear."""
        parameters = self._parameters
        reference = target
        if math.isfinite(limit):
            before = speed if math.isnan(self._reference) else self._reference
            reference = before + clamped(target - before, limit * elapsed_s)
            if reference != target:
                forward += math.copysign(min(limit, _MOST_ACCELERATION), target - reference)
        self._reference = reference
        # In the direction of the wanted speed, never beyond it.
        needed = (target - speed) / _FADING_S
        forward = min(max(forward, min(needed, 0.0)), max(needed, 0.0))
        error = reference - speed
        integral = self._integral + parameters.ki * error * elapsed_s
        asked = forward + parameters.kp * error + integral
        least = -min(parameters.max_deceleration, parameters.full_brake)
        most = min(parameters.max_acceleration, parameters.full_throttle)
        if least < asked < most:
            self._integral = clamped(integral, parameters.full_throttle)
        asked = forward + parameters.kp * error + self._integral
        if not reference:
            asked = min(asked, -min(_STOPPING, limit))
        return min(max(asked, least), most)

    def _pedals(self, acceleration: float, steering_angle: float, *,
                hand_brake: bool = False) -> EgoCommand:
        parameters = self._parameters
        steering_angle = clamped(steering_angle, parameters.max_steering_angle)
        return EgoCommand(
            throttle=min(max(acceleration / parameters.full_throttle, 0.0), 1.0),
            brake=min(max(-acceleration / parameters.full_brake, 0.0), 1.0),
            steer=steering_angle / parameters.max_steering_angle, steering_angle=steering_angle,
            hand_brake=hand_brake, reverse=self._is_reverse)


class SpeedLimiter(SpeedController):
    """
    Have the controller of the simulator follow a wanted speed, within the limits.

    Pedals stop the ego and hold it, change its direction, and brake it if it is too fast. A moving
    ego is driven by pedals until it has stood: a controller that begins with a standing vehicle
    takes its speed for an acceleration, and accelerates.

    :param parameters: gains and limits.
    """

    def __init__(self, parameters: ControlParameters) -> None:
        super().__init__(parameters)
        self._is_followed = False

    def reset(self) -> None:
        """Clear the state: another controller has driven since."""
        super().reset()
        self._is_followed = False

    def command(self, wanted: Setpoint, speed: float, elapsed_s: float) -> EgoCommand:
        """
        Return the speed to follow, or pedals; parameters as of :class:`SpeedController`.

        :returns: with a speed if the ego is to be driven and may be.
        """
        parameters = self._parameters
        is_followed = self._is_followed
        # It may reset the state, as at a change of the gear.
        pedals = super().command(wanted, speed, elapsed_s)
        target = clamped(wanted.speed, parameters.max_speed)
        stands = abs(speed) < STANDSTILL_SPEED
        # NaN compares false; a wanted acceleration is not used.
        self._is_followed = (stands or is_followed) and abs(target) >= STANDSTILL_SPEED / 2 \
            and (stands or target * speed > 0.0) \
            and abs(speed) <= parameters.max_speed + _TOO_FAST and math.isfinite(
                wanted.steering_angle + wanted.acceleration) and wanted.max_acceleration > 0.0
        if not self._is_followed:
            return pedals
        most = parameters.max_acceleration if stands or abs(target) > abs(speed) \
            else parameters.max_deceleration
        return replace(
            pedals, throttle=math.nan, brake=math.nan, hand_brake=False, reverse=target < 0.0,
            speed=target, max_acceleration=max(min(most, wanted.max_acceleration),
                                               _LEAST_ACCELERATION))

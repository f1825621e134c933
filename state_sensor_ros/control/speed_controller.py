# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""From a setpoint within its limits to pedals and wheel, by the measured speed."""

from __future__ import annotations

from dataclasses import dataclass, replace
import math

from state_sensor_ros.control import ego_commands
from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand, slowing_by_slope
from state_sensor_ros.errors import StateError

# Least deceleration of an ego that is to stop, m/s2; with the error alone it creeps for seconds.
_STOPPING = 1.0
# A wanted acceleration must not reach the wanted speed earlier than after this time, s: it fades
# out over some frames, of which the last ones are measured late.
_FADING_S = 0.5
# Excess over an unchanged wanted speed at which throttle still holds the speed, m/s.
_TOLERANCE = 0.1
# Excess over the wanted speed at which the ego brakes, and no disturbance is known any more, m/s.
_BRAKING = 0.5
# Uphill the brake holds the ego while the engine builds up thrust: climb, rad, and time, s.
_STEEP, _LAUNCH_S = 0.02, 0.4
# Speed at which a start is over, m/s: pedals that come late stop a slower one once more.
_STARTED = 0.5
# Speed against the wanted direction at which a start has failed, m/s; thrust added to the next
# one, m/s2.
_ROLLING, _MORE_THRUST = 0.05, 1.0
# Excess of the largest speed from which the ego brakes by pedals, m/s.
_TOO_FAST = 1.0
# Controllers of simulators take 0 for no limit, m/s2.
_LEAST_ACCELERATION = 0.01
# Longest time between two calls that is integrated, s; shares of an error that a step corrects at
# most, and of a disturbance that it shows.
_LONGEST_STEP_S, _CORRECTED, _LEARNED = 2.0, 0.4, 0.5
_MOST_SPEED = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Setpoint:
    """
    A speed and a steering angle; :func:`limited` makes all numbers finite and within limits.

    An acceleration toward a lower speed is also the limit of the deceleration.
    """

    # m/s, negative backward.
    speed: float
    # m/s2 along the ego's x axis, fed forward.
    acceleration: float = 0.0
    # m/s2, positive: limit on the change of the speed, infinity for none.
    max_acceleration: float = math.inf
    # Of the tires, rad, + = left.
    steering_angle: float = 0.0
    # In place of the angle, rad/s, + = left; NaN if the angle counts.
    yaw_rate: float = math.nan
    # Whether the hand brake is on while the speed is 0.
    hand_brake: bool = False


def limited(wanted: Setpoint, parameters: ControlParameters) -> Setpoint:
    """Return a setpoint with its speed and its steering angle clamped to their limits."""
    for name in ('speed', 'acceleration', 'steering_angle'):
        finite(name, getattr(wanted, name))
    if not wanted.max_acceleration > 0.0:
        raise StateError('acceleration', f'{wanted.max_acceleration:g}', 'at least 0')
    return replace(
        wanted, speed=clamped(wanted.speed, parameters.max_speed),
        steering_angle=parameters.steering(wanted.steering_angle)[0])


def steered(wanted: Setpoint, speed: float, angle: float, wheelbase: float) -> Setpoint:
    """
    Return a setpoint with the steering angle of its yaw rate, by the measured speed.

    :param speed: measured along the ego's x axis, m/s; at standstill the wanted speed is used.
    :param angle: present angle, rad, kept if both are 0: no angle turns a standing ego.
    :param wheelbase: m.
    """
    if math.isnan(wanted.yaw_rate):
        return wanted
    along = speed if abs(speed) >= ego_commands.STANDSTILL_SPEED else wanted.speed
    # Backward, the same angle turns the other way.
    return replace(wanted, steering_angle=math.atan(wheelbase * wanted.yaw_rate / along) if abs(
        along) >= ego_commands.STANDSTILL_SPEED / 2 else angle)


def pedals(throttle: float, brake: float, steer: float, steering_angle: float,
           parameters: ControlParameters, *, hand_brake: bool = False,
           reverse: bool = False) -> EgoCommand:
    """Return a command of the pedals with its steering in both units."""
    # steer: -1..1 of the full lock, + = left; NaN to use the angle.
    # steering_angle: rad, + = left; used only if ``steer`` is NaN.
    if math.isnan(steer):
        steer = 0.0
        finite('steering_angle', steering_angle)
    else:
        steering_angle = steer * parameters.full_steering_angle
    for name, value, low in (('throttle', throttle, 0), ('brake', brake, 0), ('steer', steer, -1)):
        if not low <= value <= 1.0:
            raise StateError(name, f'{value:g}', f'{low} to 1')
    steering_angle, steer = parameters.steering(steering_angle)
    return EgoCommand(throttle=throttle, brake=brake, steer=steer, steering_angle=steering_angle,
                      hand_brake=hand_brake, reverse=reverse)


def finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise StateError(name, f'{value:g}', 'a finite number')
    return value


def clamped(value: float, limit: float) -> float:
    """Return a number clamped to -limit..limit; ``value``: any number but NaN."""
    return min(max(value, -limit), limit)


class SpeedController:
    """
    Compute pedals from a wanted and a measured speed.

    The wanted acceleration is proportional to the error, within its limits. What the vehicle does
    differently, such as by drag or its mass, is measured and compensated; the slope is known.

    With ``follows_speed`` a controller of the simulator follows a speed. Pedals stop the ego and
    hold it, change its direction, and brake it if it is too fast. A moving ego is driven by pedals
    until it has stood: a controller that begins with a standing vehicle takes its speed for an
    acceleration, and accelerates.
    """

    def __init__(self, parameters: ControlParameters, *, follows_speed: bool = False) -> None:
        self._parameters, self._follows_speed = parameters, follows_speed
        self._is_reverse = False
        self._step_s, self._target = 0.0, math.nan
        self.reset()

    def reset(self) -> None:
        """Forget what was measured: another controller has driven since."""
        # Acceleration that the vehicle lacks, m/s2.
        self._disturbance = 0.0
        # Speed of the last call and the acceleration that was wanted then, NaN if it could not
        # follow.
        self._speed, self._wanted = math.nan, math.nan
        # Time of the present start from standstill, s.
        self._launch_s = 0.0
        self._is_followed = False

    def command(self, wanted: Setpoint, speed: float, elapsed_s: float,
                climb: float = 0.0, step_s: float = 0.0) -> EgoCommand:
        """
        Return the pedals, or the speed to follow, and the steering.

        :param wanted: setpoint within its limits.
        :param speed: speed of the ego along its x axis, m/s; NaN gives full brake.
        :param elapsed_s: simulated time since the last call, s; 0 if the clock stands.
        :param climb: angle of the ego's x axis above the horizontal, rad; NaN is taken as 0.
        :param step_s: simulated time for which it acts, s; 0 for that of the last call.
        """
        # Pedals may reset the state, as at a change of the gear.
        parameters, is_followed = self._parameters, self._is_followed
        driven = self._driven(wanted, speed, elapsed_s, climb, step_s)
        stands = abs(speed) < ego_commands.STANDSTILL_SPEED
        # NaN compares false; a wanted acceleration is not used.
        self._is_followed = self._follows_speed \
            and (stands or (is_followed and wanted.speed * speed > 0.0)) \
            and abs(wanted.speed) >= ego_commands.STANDSTILL_SPEED / 2 \
            and abs(speed) <= parameters.max_speed + _TOO_FAST
        if not self._is_followed:
            return driven
        most = parameters.max_acceleration if abs(wanted.speed) > abs(speed) \
            else parameters.max_deceleration
        return replace(
            driven, throttle=math.nan, brake=math.nan, hand_brake=False, speed=wanted.speed,
            reverse=wanted.speed < 0.0, max_acceleration=max(
                min(most, wanted.max_acceleration), _LEAST_ACCELERATION))

    def _driven(self, wanted: Setpoint, speed: float, elapsed_s: float, climb: float,
                step_s: float) -> EgoCommand:
        parameters, angle = self._parameters, wanted.steering_angle
        if math.isnan(speed):
            self.reset()
            return self._pedals(-parameters.full_brake, angle)
        # NaN compares false; what happened in a longer time is not known.
        elapsed_s = elapsed_s if 0.0 <= elapsed_s <= _LONGEST_STEP_S else 0.0
        self._step_s = step_s if step_s > 0.0 else elapsed_s
        # A larger speed is an error of the source.
        speed = clamped(speed, _MOST_SPEED)
        target = 0.0 if abs(wanted.speed) < ego_commands.STANDSTILL_SPEED / 2 else wanted.speed
        is_new, self._target = target != self._target, target
        stands = abs(speed) < ego_commands.STANDSTILL_SPEED
        if target * speed < 0.0 or (stands and not target):
            return self._held(target, speed, wanted, climb)
        self._engage(is_reverse=(target if stands else speed) < 0.0)
        sign = -1.0 if self._is_reverse else 1.0
        # Gravity along the direction of the gear, m/s2.
        gravity = slowing_by_slope(climb, sign)
        acceleration = self._acceleration(sign * target, sign * speed, sign * wanted.acceleration,
                                          wanted.max_acceleration, elapsed_s)
        # What compensates drag accelerates nothing: only the rest is limited.
        asked = gravity + max(acceleration + self._disturbance, -parameters.max_deceleration)
        if sign * target < sign * speed - (0.0 if is_new else _TOLERANCE):
            # Slower is wanted: uphill the slope alone may do more than that.
            asked = min(asked, 0.0)
        elif stands and self._launch_s < _LAUNCH_S:
            return self._launched(asked, angle, gravity, elapsed_s)
        if abs(speed) >= _STARTED:
            self._launch_s = 0.0
        # A saturated pedal says nothing about the vehicle.
        is_saturated = not -parameters.full_brake < asked < parameters.full_throttle
        self._wanted = math.nan if is_saturated or (gravity and not asked) else acceleration
        return self._pedals(asked, angle)

    def _engage(self, *, is_reverse: bool) -> None:
        if is_reverse is not self._is_reverse:
            self.reset()
            self._is_reverse = is_reverse

    def _held(self, target: float, speed: float, wanted: Setpoint, climb: float) -> EgoCommand:
        """Brake an ego that is to stand, or that moves against the wanted direction."""
        parameters, stands = self._parameters, abs(speed) < ego_commands.STANDSTILL_SPEED
        if stands and target:
            self._engage(is_reverse=target < 0.0)
        # The gear of an ego that was driven in the other direction changes when it stands.
        limit = parameters.full_brake if stands or self._launch_s else min(
            wanted.max_acceleration, parameters.max_deceleration) + abs(
                slowing_by_slope(climb, speed))
        if not target or abs(speed) > _ROLLING:
            # If it rolls back after a start, the next one gets more thrust, up to all of it.
            missing = max(self._disturbance, 0.0) + (_MORE_THRUST if self._launch_s else 0.0) \
                if target and self._is_reverse is (target < 0.0) else 0.0
            self.reset()
            self._disturbance = missing
        return self._pedals(-limit, wanted.steering_angle,
                            hand_brake=wanted.hand_brake and not target)

    def _launched(self, asked: float, angle: float, gravity: float,
                  elapsed_s: float) -> EgoCommand:
        """Start from standstill; uphill the brake is released when there is thrust."""
        self._wanted = math.nan
        if self._disturbance > self._parameters.full_throttle:
            # Full throttle does not move it: it stays where it is until it is to stop.
            return self._pedals(-self._parameters.full_brake, angle)
        self._launch_s += elapsed_s
        command = self._pedals(asked, angle)
        is_uphill = gravity > ego_commands.GRAVITY * _STEEP or self._disturbance > 0.0
        return replace(command, brake=1.0) if is_uphill else command

    def _acceleration(self, target: float, speed: float, forward: float, limit: float,
                      elapsed_s: float) -> float:
        """Return the wanted acceleration; all numbers are in the direction of the gear."""
        parameters = self._parameters
        error = target - speed
        # 1/s.
        per_step = _CORRECTED / self._step_s if self._step_s else math.inf
        if error < -_BRAKING and self._disturbance > 0.0:
            # Measured with the throttle, by a mass rather than a force.
            self._disturbance = 0.0
        elif not math.isnan(self._wanted + self._speed):
            missing = self._wanted * elapsed_s - (speed - self._speed)
            self._disturbance = clamped(self._disturbance + missing * min(
                parameters.ki / (max(parameters.kp, parameters.ki) or 1.0), _LEARNED * per_step),
                parameters.full_throttle)
        self._speed = speed
        # In the direction of the wanted speed, never beyond it.
        needed = error * min(1.0 / _FADING_S, per_step)
        fed = min(max(forward, min(needed, 0.0)), max(needed, 0.0))
        least = -min(limit, parameters.max_deceleration, parameters.full_brake,
                     -forward if forward < 0.0 else math.inf)
        most = min(limit, parameters.max_acceleration)
        wanted = fed + parameters.kp * error
        if abs(wanted) > abs(error) * per_step:
            wanted = error * per_step
        if not target:
            wanted = min(wanted, -_STOPPING)
        return min(max(wanted, least), most)

    def _pedals(self, acceleration: float, steering_angle: float, *,
                hand_brake: bool = False) -> EgoCommand:
        parameters = self._parameters
        steering_angle, steer = parameters.steering(steering_angle)
        return EgoCommand(
            throttle=min(max(acceleration / parameters.full_throttle, 0.0), 1.0),
            brake=min(max(-acceleration / parameters.full_brake, 0.0), 1.0),
            steer=steer, steering_angle=steering_angle, hand_brake=hand_brake,
            reverse=self._is_reverse)

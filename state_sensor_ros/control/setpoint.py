# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Commands of a stack within their limits: a speed and a steering angle, or pedals."""

from __future__ import annotations

from dataclasses import dataclass, replace
import math

from state_sensor_ros.control.control_parameters import ControlParameters
from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.errors import StateError


@dataclass(frozen=True, slots=True, kw_only=True)
class Setpoint:
    """
    A speed and a steering angle.

    ``speed`` m/s, negative backward; ``acceleration`` m/s2 along the ego's x axis, fed forward;
    ``max_acceleration`` m/s2, positive: limit on the change of the speed, infinity for none;
    ``steering_angle`` of the tyres, rad, + = left; ``hand_brake`` whether the hand brake is on
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

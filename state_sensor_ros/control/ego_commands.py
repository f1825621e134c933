# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The commands to the ego: the hook by which a simulator takes them, and their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
import math
import time
from typing import Any, Protocol, runtime_checkable, TypeAlias

from state_sensor_ros.parameters import parameter

# Full lock of a usual car and of the mock servers, 70 degrees.
_FULL_LOCK_RAD = 1.2217
# Below this speed the ego counts as standing, m/s; a wanted speed below half of it is 0.
STANDSTILL_SPEED = 0.1
# m/s2.
GRAVITY = 9.81


def slowing_by_slope(climb: float, direction: float) -> float:
    """
    Return by how much gravity slows an ego, m/s2; 0 if the slope is unknown.

    :param climb: angle of its x axis above the horizontal, rad, or NaN.
    :param direction: sign of its movement along that axis.
    """
    return GRAVITY * math.sin(math.copysign(1.0, direction) * climb) \
        if math.isfinite(climb) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EgoCommand:
    """
    One command to the ego, checked and within its limits.

    ``throttle`` and ``brake`` 0..1; ``steer`` -1..1, + = left; ``steering_angle`` rad, + = left,
    the same in another unit; ``speed`` m/s, negative backward, that a controller of the simulator
    follows with pedals of its own, which are NaN here, and ``max_acceleration`` m/s2, in both
    directions; both NaN if the pedals count. The gate sets how long it may be written, in times of
    ``time.monotonic()``, which all processes of a machine share: with its throttle until
    ``coast_s``, at all until ``until_s``, both infinity for full brake.
    """

    throttle: float
    brake: float
    steer: float
    steering_angle: float
    hand_brake: bool = False
    reverse: bool = False
    speed: float = math.nan
    max_acceleration: float = math.nan
    coast_s: float = field(default=math.inf, compare=False)
    until_s: float = field(default=math.inf, compare=False)

    def full_brake(self) -> EgoCommand:
        """Return full brake with the steering and the gear of this command."""
        return replace(self, throttle=0.0, brake=1.0, hand_brake=False, speed=math.nan,
                       max_acceleration=math.nan, coast_s=math.inf, until_s=math.inf)

    def is_urgent(self, last: EgoCommand | None) -> bool:
        """Return whether it must not wait: less throttle, more brake or another angle."""
        return last is None or self.throttle < last.throttle or self.brake > last.brake \
            or self.steer != last.steer

    def now(self, now_s: float | None = None) -> EgoCommand:
        """Return what may be written now: this command, the same without throttle, or a brake."""
        now_s = time.monotonic() if now_s is None else now_s
        if now_s >= self.until_s:
            return self.full_brake()
        return replace(self, throttle=0.0) if now_s >= self.coast_s else self

    def left_s(self, now_s: float | None = None) -> float:
        """Return the time until the result of :meth:`now` changes, s; infinity for never."""
        now_s = time.monotonic() if now_s is None else now_s
        at_s = self.coast_s if now_s < self.coast_s else self.until_s
        return max(min(at_s, self.until_s) - now_s, 0.0)


# Returns whether the simulator has shown that it has taken a write.
Proof: TypeAlias = Callable[[], bool]


class EgoCommands(Protocol):
    """
    Writes commands to the ego of a running simulator.

    Its methods are called by one thread, which is not that of the source; only the last brake is
    written by another one if :meth:`write` has not returned by then. The newest command counts.
    None is written before the first one arrives, and the last one is full brake.
    """

    def write(self, command: EgoCommand) -> Proof:
        """
        Write a command, without waiting for a reply, a frame or a step.

        It counts until the next one. It is repeated from time to time, also after an error. What
        is kept, such as for the next step, is written as ``command.now()``.

        :param command: the newest command, or full brake if no more commands arrive.
        :returns: its proof: a write counts as not written until the simulator has shown that it
            was taken, by a reply, or by the pedals or the step of a later frame.
        :raises StateSensorError: if it cannot be written now, or an earlier one was refused.
        """

    def brake(self) -> None:
        """Brake by each way other than that of :meth:`write`, if there is one, without waiting."""

    def close(self) -> None:
        """Wait a quarter of a second at most until the last command is sent, then end."""


@runtime_checkable
class IndicatorCommands(EgoCommands, Protocol):
    """Commands of a simulator whose ego has turn signals."""

    def indicate(self, indicators: int) -> None:
        """
        Set the turn signals of the ego, without waiting.

        :param indicators: INDICATORS_OFF, INDICATORS_LEFT, INDICATORS_RIGHT or INDICATORS_BOTH.
        :raises StateSensorError: if that cannot be written now.
        """


def _parameter(default: float, help: str, low: float, high: float) -> Any:  # noqa: A002, ANN401
    return parameter(default, help, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlParameters:
    """Parameters with the prefix ``control.``."""

    kp: float = _parameter(
        1.5, 'Proportional gain: acceleration per speed error, 1/s.', 0.0, 100.0)
    ki: float = _parameter(
        1.5, 'Integral gain: acceleration per integrated speed error, 1/s2.', 0.0, 100.0)
    full_throttle: float = _parameter(
        4.0, 'Acceleration of the ego at full throttle, m/s2.', 0.1, 100.0)
    full_brake: float = _parameter(
        8.0, 'Deceleration of the ego at full brake, m/s2.', 0.1, 100.0)
    wheelbase: float = _parameter(
        2.9, 'Wheelbase of the ego, m: the angle of a yaw rate, the largest angle at a speed.',
        0.1, 100.0)
    full_steering_angle: float = _parameter(
        _FULL_LOCK_RAD, "Steering angle of the ego's tires at full lock in the simulator, rad.",
        0.01, 1.5)
    max_steering_angle: float = _parameter(
        _FULL_LOCK_RAD, "Largest steering angle of the ego's tires, rad; commands are limited to "
        'it.', 0.01, 1.5)
    max_lateral_acceleration: float = _parameter(
        8.0, 'Largest lateral acceleration at the measured speed, m/s2; angles are limited to it.',
        0.1, 100.0)
    max_steering_rate: float = _parameter(
        0.7, "Largest rate of the steering angle of the ego's tires, rad/s of simulated time.",
        0.01, 100.0)
    max_speed: float = _parameter(
        30.0, 'Largest speed, forward or backward, m/s; speeds and pedals are limited to it.',
        0.0, 150.0)
    max_acceleration: float = _parameter(
        4.0, 'Largest acceleration toward a commanded speed, m/s2. Pedal commands are not '
        'limited.', 0.1, 100.0)
    max_deceleration: float = _parameter(
        8.0, 'Largest deceleration toward a commanded speed, m/s2. Emergency braking is not '
        'limited.', 0.1, 100.0)
    timeout: float = _parameter(
        0.5, 'Time without a command after which the ego brakes, s of the steady clock.',
        0.01, 60.0)
    brake_at_start: bool = parameter(
        True, 'At start, brake an ego that still moves on the last command of a killed node.')

    def steering(self, angle: float) -> tuple[float, float]:
        """Return an angle of the tires, rad, within its limits, and its part of the full lock."""
        most = min(self.max_steering_angle, self.full_steering_angle)
        angle = min(max(angle, -most), most)
        return angle, angle / self.full_steering_angle

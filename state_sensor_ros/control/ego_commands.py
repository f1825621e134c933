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

from dataclasses import dataclass, field, replace
import math
import time
from typing import Any, Protocol

from state_sensor_ros.parameters import NODE, parameter

# Full lock of a usual car and of the mock servers, 70 degrees.
_FULL_LOCK_RAD = 1.2217


@dataclass(frozen=True, slots=True, kw_only=True)
class EgoCommand:
    """
    One command to the ego, checked and within its limits.

    ``throttle`` and ``brake`` 0..1; ``steer`` -1..1, + = left; ``steering_angle`` rad, + = left,
    the same in another unit; ``speed`` m/s, negative backward, that a controller of the simulator
    follows with pedals of its own, which are NaN here, and ``max_acceleration`` m/s2, in both
    directions; both NaN if the pedals count; ``until_s`` time of ``time.monotonic()`` after which
    the command is too old to be sent, infinity for full brake.
    """

    throttle: float
    brake: float
    steer: float
    steering_angle: float
    hand_brake: bool = False
    reverse: bool = False
    speed: float = math.nan
    max_acceleration: float = math.nan
    until_s: float = field(default=math.inf, compare=False)

    def full_brake(self) -> EgoCommand:
        """Return full brake with the steering and the gear of this command."""
        return replace(self, throttle=0.0, brake=1.0, hand_brake=False, speed=math.nan,
                       max_acceleration=math.nan, until_s=math.inf)

    def or_full_brake(self) -> EgoCommand:
        """Return this command, or :meth:`full_brake` after its time."""
        return self if time.monotonic() < self.until_s else self.full_brake()


class EgoCommands(Protocol):
    """
    Sends commands to the ego of a running simulator.

    Its methods are called by one thread, which is not that of the source; only the last brake is
    sent by another one if :meth:`send` still waits for the simulator then. The newest command
    counts: one that cannot be sent before the next replaces it is dropped. None is sent before the
    first one arrives, and the last one is full brake.
    """

    def send(self, command: EgoCommand) -> None:
        """
        Send a command now, or with the next step of a simulator that waits for one.

        It counts until the next one. It is repeated from time to time, also after an error.

        :param command: the newest command, or full brake if no more commands arrive. After its
            ``until_s`` it fails, or ``full_brake()`` is sent in its place. Full brake does not
            wait for earlier commands.
        :raises StateSensorError: if the simulator cannot take it in time.
        """

    def close(self) -> None:
        """Wait a quarter of a second at most until the last command is sent, then end."""


def _parameter(default: float, help: str, low: float, high: float) -> Any:  # noqa: A002, ANN401
    return parameter(default, help, low=low, high=high, affects=NODE,
                     needs=('control_input',))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlParameters:
    """Parameters with the prefix ``control.``."""

    kp: float = _parameter(
        1.5, 'Proportional gain: acceleration per speed error, 1/s.', 0.0, 100.0)
    ki: float = _parameter(
        0.3, 'Integral gain: acceleration per integrated speed error, 1/s2.', 0.0, 100.0)
    full_throttle: float = _parameter(
        4.0, 'Acceleration of the ego at full throttle, m/s2.', 0.1, 100.0)
    full_brake: float = _parameter(
        8.0, 'Deceleration of the ego at full brake, m/s2.', 0.1, 100.0)
    wheelbase: float = _parameter(
        2.9, 'Wheelbase of the ego, m, for the input twist.', 0.1, 100.0)
    max_steering_angle: float = _parameter(
        _FULL_LOCK_RAD, "Steering angle of the ego's tires at full lock, rad; commands are "
        "limited to it.",
        0.01, 1.5)
    max_speed: float = _parameter(
        30.0, 'Largest speed, forward or backward, m/s; commands are limited to it.',
        0.0, 150.0)
    max_acceleration: float = _parameter(
        4.0, 'Largest acceleration toward a wanted speed, m/s2. Pedal commands are not '
        'limited.', 0.1, 100.0)
    max_deceleration: float = _parameter(
        8.0, 'Largest deceleration toward a wanted speed, m/s2. Emergency braking is not '
        'limited.', 0.1, 100.0)
    timeout: float = _parameter(
        0.5, 'Time without a command after which the ego brakes, s of the steady clock.',
        0.01, 60.0)

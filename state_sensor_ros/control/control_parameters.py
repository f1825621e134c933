# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The parameters of commands to the ego."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state_sensor_ros.parameters import NODE, parameter

# Full lock of a usual car and of the stand-ins, 70 degrees (doc/protocol/units.md).
_FULL_LOCK_RAD = 1.2217


def _parameter(default: float, help: str, low: float, high: float) -> Any:  # noqa: A002, ANN401
    return parameter(default, help, low=low, high=high, affects=NODE,
                     needs=('control_input',))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlParameters:
    """Parameters with the prefix ``control.``."""

    kp: float = _parameter(
        1.5, 'Acceleration for each m/s of speed that is missing, 1/s.', 0.0, 100.0)
    ki: float = _parameter(
        0.3, 'Its growth for each second that the speed is missing, 1/s2.', 0.0, 100.0)
    full_throttle: float = _parameter(
        4.0, 'Acceleration of the ego at full throttle, m/s2.', 0.1, 100.0)
    full_brake: float = _parameter(
        8.0, 'Deceleration of the ego at full brake, m/s2.', 0.1, 100.0)
    wheelbase: float = _parameter(
        2.9, "Distance of the ego's axles, m, for the input twist.", 0.1, 100.0)
    max_steering_angle: float = _parameter(
        _FULL_LOCK_RAD, "Angle of the ego's tyres at full lock, rad; a larger one is clamped.",
        0.01, 1.5)
    max_speed: float = _parameter(
        30.0, 'Largest speed, forward or backward, m/s; a larger one is clamped.',
        0.0, 150.0)
    max_acceleration: float = _parameter(
        4.0, 'Largest acceleration towards a wanted speed, m/s2; a larger one is clamped. Pedals '
        'are not limited.', 0.1, 100.0)
    max_deceleration: float = _parameter(
        8.0, 'Largest deceleration towards a wanted speed, m/s2; a larger one is clamped. Full '
        'brake without commands is not limited.', 0.1, 100.0)
    timeout: float = _parameter(
        0.5, 'Time without a command after which the ego brakes, s, of the steady clock.',
        0.01, 60.0)

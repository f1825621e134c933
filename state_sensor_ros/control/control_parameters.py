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

from state_sensor_ros.parameters import parameter

# Full lock of CARLA's default vehicle and of the stand-ins, 70 degrees (doc/protocol/units.md).
_FULL_LOCK_RAD = 1.2217


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlParameters:
    """Parameters with the prefix ``control.``."""

    kp: float = parameter(
        1.5, 'Acceleration for each m/s of speed that is missing, 1/s.', low=0.0, high=100.0)
    ki: float = parameter(
        0.3, 'Its growth for each second that the speed is missing, 1/s2.', low=0.0, high=100.0)
    full_throttle: float = parameter(
        4.0, 'Acceleration of the ego at full throttle, m/s2.', low=0.1, high=100.0)
    full_brake: float = parameter(
        8.0, 'Deceleration of the ego at full brake, m/s2.', low=0.1, high=100.0)
    wheelbase: float = parameter(
        2.9, "Distance of the ego's axles, m, for the input twist.", low=0.1, high=100.0)
    max_steering_angle: float = parameter(
        _FULL_LOCK_RAD, "Angle of the ego's tyres at full lock, rad; a larger one is clamped.",
        low=0.01, high=1.5)
    max_speed: float = parameter(
        30.0, 'Largest speed, forward or backward, m/s; a larger one is clamped.',
        low=0.0, high=150.0)
    timeout: float = parameter(
        0.5, 'Time without a command after which the ego brakes, s, of the steady clock.',
        low=0.01, high=60.0)

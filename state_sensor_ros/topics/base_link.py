# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The frame base_link of an autonomy stack: its position on the ego, and motion at this point."""

from __future__ import annotations

from collections.abc import Callable
import math

import numpy as np

from state_sensor_ros.frame import Floats, Frame, REAR_LEFT, REAR_RIGHT, Wheels
from state_sensor_ros.settings import Settings

# Child frame of the ego's pose for a stack if ``ego_frame`` is empty.
BASE_LINK = 'base_link'
_ORIGIN: Floats = np.zeros(3)


class BaseLink:
    """The origin of base_link in the axes of the ego."""

    def __init__(self, settings: Settings, report: Callable[[str, str], None]) -> None:
        self._given = None if is_measured(settings) else np.array(settings.base_link_xyz)
        self._report = report
        self._is_reported = False

    def offset(self, frame: Frame, i_ego: int) -> Floats:
        """Return the position of base_link on the ego: (3,) float64, m, axes of the ego."""
        if self._given is not None:
            return self._given
        middle = None if frame.wheels is None else _rear_middle(frame.wheels, i_ego)
        if middle is None:
            if not self._is_reported:
                self._is_reported = True
                self._report('base_link', 'no rear wheel has a position, so base_link is the '
                             "ego's origin; set base_link_xyz (reported once)")
            return _ORIGIN
        return middle


def is_measured(settings: Settings) -> bool:
    """Return whether the position of base_link follows from wheels: ``base_link_xyz`` is NaN."""
    return math.isnan(settings.base_link_xyz[0])


def is_on_wheels(settings: Settings) -> bool:
    """Return whether the ego's frame is base_link at a position that follows from its wheels."""
    return bool(settings.ego_frame) and is_measured(settings)


def _rear_middle(wheels: Wheels, i_ego: int) -> Floats | None:
    rows = {int(wheels.wheel[row]): row for row in wheels.rows_of(i_ego)
            if wheels.position_known[row]}
    if REAR_LEFT not in rows or REAR_RIGHT not in rows:
        return None
    left, right = wheels.position_xyz[rows[REAR_LEFT]], wheels.position_xyz[rows[REAR_RIGHT]]
    middle: Floats = (left + right) / 2.0
    return middle


def move_by(numbers: Floats, arm: Floats) -> None:
    """Move a pose and its velocity to another point of the body."""
    # numbers: (13,) float64, changed in place: position, orientation of unit length, velocity,
    # angular velocity; global frame. The velocity stays if one of its numbers or of those of the
    # angular velocity is NaN.
    # arm: (3,) float64, from the old point to the new one, m, axes of the global frame.
    numbers[0:3] += arm
    # Without numpy: its calls take longer for a single body.
    (x, y, z), (a, b, c) = numbers[10:13].tolist(), arm.tolist()
    v_x, v_y, v_z = numbers[7:10].tolist()
    moved = v_x + (y * c - z * b), v_y + (z * a - x * c), v_z + (x * b - y * a)
    if all(map(math.isfinite, moved)):
        numbers[7:10] = moved

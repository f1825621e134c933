# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The speed of an actor along its own x axis."""

from __future__ import annotations

import math

from state_sensor_ros.frame import Frame
from state_sensor_ros.rotations import global_from_body


def speed_along(frame: Frame, row: int) -> float:
    """
    Return the speed of an actor along its own x axis.

    :param frame: frame of any source.
    :param row: row of the actor.
    :returns: m/s, negative backward; NaN if its pose or velocity is not known.
    """
    if frame.forward_speed is not None:
        return float(frame.forward_speed[row])
    if not frame.has_pose()[row]:
        return math.nan
    forward = global_from_body(frame.orientation_xyzw[row:row + 1])[0, :, 0]
    return float(forward @ frame.velocity_xyz[row])

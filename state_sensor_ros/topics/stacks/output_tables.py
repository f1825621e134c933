# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Tables of the numbers in messages for autonomy stacks, and prototypes that hold them.

A table has a row for each object of the frame, in their order, or one row for the ego.
"""

from __future__ import annotations

from collections.abc import Sequence

from state_sensor_ros.cdr.templates import Slot, Table
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.tables import UNKNOWN_VARIANCE

# Of objects: centre xyz, orientation xyzw; a second place for the same in one message.
CENTRE = Table('object centre', 8, 7)
CENTRE_AGAIN = Table('object centre again', 8, 7)
# Of objects: length, width, height; 1 where it stands still.
SIZE = Table('object size', 8, 3)
IS_STATIONARY = Table('object is stationary', 1, 1)
# Of objects: linear xyz, angular xyz, in the axes of the object and of the global frame.
OWN_TWIST = Table('object twist, own axes', 8, 6)
OWN_ACCELERATION = Table('object acceleration, own axes', 8, 6)
GLOBAL_TWIST = Table('object twist, global axes', 8, 6)
GLOBAL_ACCELERATION = Table('object acceleration, global axes', 8, 6)
# Of objects: variance of the speed along x and of its change, of a source that measures this
# component only. A message has a row of a table once.
SPEED_VARIANCE = Table('object speed variance', 8, 1)
CHANGE_VARIANCE = Table('object acceleration variance', 8, 1)
# Of predicted poses, object by object: position xyz, orientation xyzw.
PATH = Table('predicted path', 8, 7)

# Of base_link: position and orientation; velocities and their changes in its own axes; variance of
# the speed; speeds forward and left, heading rate (float32); angle of the tyres (float32).
EGO_POSE = Table('ego pose', 8, 7)
EGO_TWIST = Table('ego twist', 8, 6)
EGO_ACCELERATION = Table('ego acceleration', 8, 6)
EGO_SPEED_VARIANCE = Table('ego speed variance', 8, 1)
EGO_SPEEDS = Table('ego speeds', 4, 3)
TYRE_ANGLE = Table('ego tyre angle', 4, 1)


def motion_variances(settings: Settings, speed: Table | None) -> Sequence[float | Slot]:
    """
    Return the variances of a twist or an acceleration in the body's own axes.

    :param settings: of which ``twist_covariance_diagonal`` is used.
    :param speed: variance of the speed forward, where the source measures nothing else.
    """
    return settings.twist_covariance_diagonal if speed is None \
        else (Slot(speed, 0), *[UNKNOWN_VARIANCE] * 5)

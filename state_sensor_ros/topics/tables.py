# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Tables of numbers that several topics hold, and prototypes of the fields that hold them.

SI units, REP-103 axes; a table has a row for each actor or lane of the frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.templates import Prototype, Slot, Table
from state_sensor_ros.frame import Floats, Lanes, NS_PER_S

# Of the frame: seconds, nanoseconds.
STAMP = Table('stamp', np.int32, 2)
# Of actors: position xyz, orientation xyzw of unit length.
POSE = Table('pose', np.float64, 7)
# Of lanes: change left, change right; road, section, lane; s.
LANE_CHANGE = Table('lane change', np.bool_, 2)
LANE_ID = Table('lane id', np.int32, 3)
LANE_S = Table('lane s', np.float64, 1)
LANE_TABLES = (LANE_CHANGE, LANE_ID, LANE_S)

# (m/s)2 or (rad/s)2, of a component that is unknown and published as 0. The standard deviation is
# far above the speed of any vehicle.
UNKNOWN_VARIANCE = 1e6

Fields = Mapping[str, Prototype]

_STAMP = struct.Struct('2i')


def stamp_numbers(stamp_ns: int) -> npt.NDArray[np.int32]:
    """Return (2,) int32, seconds and nanoseconds of ``stamp_ns``, ns since the epoch."""
    return np.frombuffer(_STAMP.pack(*divmod(stamp_ns, NS_PER_S)), np.int32)


# The stamp of the frame.
STAMP_FIELD: Fields = {'sec': Slot(STAMP, 0), 'nanosec': Slot(STAMP, 1)}


def header(frame_id: Prototype) -> Fields:
    """
    Return a header with the stamp of the frame.

    :param frame_id: name of a frame, or a Given for it.
    :returns: prototype of a std_msgs/Header.
    """
    return {'stamp': STAMP_FIELD, 'frame_id': frame_id}


def xyz(table: Table, column: int) -> Fields:
    """
    Return a vector or point from three columns.

    :param table: table with x, y, z.
    :param column: index of x.
    :returns: prototype of a Vector3 or Point.
    """
    return {axis: Slot(table, column + i) for i, axis in enumerate('xyz')}


def xyzw(table: Table, column: int) -> Fields:
    """Return a quaternion from four columns."""
    return {axis: Slot(table, column + i) for i, axis in enumerate('xyzw')}


def pose(table: Table, column: int = 0) -> Fields:
    """
    Return a pose from seven columns.

    :param table: table with position xyz, then orientation xyzw.
    :param column: index of the first of these columns.
    :returns: prototype of a Pose.
    """
    return {'position': xyz(table, column), 'orientation': xyzw(table, column + 3)}


def twist(table: Table, column: int) -> Fields:
    """Return a twist, or an acceleration, from six columns."""
    return {'linear': xyz(table, column), 'angular': xyz(table, column + 3)}


def diagonal(variances: Sequence[float | Slot]) -> list[float | Slot]:
    """Return a 6x6 matrix row by row, in the order of axes of REP-103."""
    matrix: list[float | Slot] = [0.0] * 36
    matrix[::7] = variances
    return matrix


def slots(table: Table) -> list[float | Slot]:
    return [Slot(table, i) for i in range(table.width)]


def with_variances(motion: Floats, variances: Sequence[float]) -> tuple[Floats, Floats]:
    """Return twists or accelerations without unknown numbers, and their variances."""
    # motion: (K, 6) float64, NaN if unknown.
    # Returns (K, 6) 0 if unknown, and (K, 6) UNKNOWN_VARIANCE if unknown.
    is_known = np.isfinite(motion)
    return np.where(is_known, motion, 0.0), np.where(is_known, variances, UNKNOWN_VARIANCE)


def lane() -> Fields:
    """Return the prototype of a ControlState."""
    return {'lane_change_left': Slot(LANE_CHANGE, 0), 'lane_change_right': Slot(LANE_CHANGE, 1),
            'road_id': Slot(LANE_ID, 0), 'section_id': Slot(LANE_ID, 1),
            'lane_id': Slot(LANE_ID, 2), 's': Slot(LANE_S, 0)}


def lane_numbers(lanes: Lanes) -> dict[Table, npt.NDArray[Any]]:
    return {LANE_CHANGE: lanes.is_changing, LANE_ID: lanes.ids, LANE_S: lanes.s[:, None]}

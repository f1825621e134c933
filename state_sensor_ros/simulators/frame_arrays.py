# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames made of arrays: their parts, the axes of left-handed simulators, and rotations."""

from state_sensor_ros.bodies import are_lengths
from state_sensor_ros.common_ends import common_ends, spliced
from state_sensor_ros.frame import (
    Bools,
    DERIVED_SIZE,
    DERIVED_VELOCITY,
    Floats,
    Ints,
    KIND_OBJECT,
    KIND_VEHICLE,
    Kinds,
    MAX_ID,
    NO_LANES,
    NO_SOURCE_ID,
    NO_WHEELS,
    Rows,
)
from state_sensor_ros.rep103 import (
    DEFAULT_UNITS,
    from_rep103_boxes,
    from_rep103_inputs,
    from_rep103_kinematics,
    from_rep103_road_s,
    from_rep103_rotator,
    from_rep103_wheels,
    mirrored_orientation,
    mirrored_vectors,
    to_rep103_bodies,
    to_rep103_boxes,
    to_rep103_inputs,
    to_rep103_kinematics,
    to_rep103_road_s,
    to_rep103_rotator,
    to_rep103_wheels,
)
from state_sensor_ros.rotations import (
    body_from_global,
    CONJUGATE_XYZW,
    global_from_unit,
    normalized,
    quaternion_from_rpy,
    quaternion_product,
    rotation_vectors,
    wrapped,
)

__all__ = [
    'CONJUGATE_XYZW', 'DEFAULT_UNITS', 'DERIVED_SIZE', 'DERIVED_VELOCITY', 'KIND_OBJECT',
    'KIND_VEHICLE', 'MAX_ID', 'NO_LANES', 'NO_SOURCE_ID', 'NO_WHEELS', 'Bools',
    'Floats', 'Ints', 'Kinds', 'Rows', 'are_lengths', 'body_from_global', 'common_ends',
    'from_rep103_boxes', 'from_rep103_inputs',
    'from_rep103_kinematics', 'from_rep103_road_s', 'from_rep103_rotator', 'from_rep103_wheels',
    'global_from_unit', 'mirrored_orientation', 'mirrored_vectors', 'normalized',
    'quaternion_from_rpy', 'quaternion_product', 'rotation_vectors', 'spliced',
    'to_rep103_bodies', 'to_rep103_boxes', 'to_rep103_inputs', 'to_rep103_kinematics',
    'to_rep103_road_s', 'to_rep103_rotator', 'to_rep103_wheels', 'wrapped',
]

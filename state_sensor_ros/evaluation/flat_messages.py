# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages with poses, twists and vectors as arrays of numbers, decoded in half the time.

In CDR a pose has the bytes of an array of seven float64: only the type that rosbags makes of the
definition differs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from rosbags.typesys.store import Typestore

from state_sensor_ros.bodies import usable_poses
from state_sensor_ros.errors import counted, DecodeError
from state_sensor_ros.files.bags.bag_types import definition
from state_sensor_ros.files.bags.state_frames import NOT_SUCH
from state_sensor_ros.frame import Floats, NS_PER_S

# Number of float64 in a message; its only field is ``values``.
_FLAT: Final = {
    'geometry_msgs/msg/Pose': 7, 'geometry_msgs/msg/Transform': 7, 'geometry_msgs/msg/Twist': 6,
    'geometry_msgs/msg/Accel': 6, 'geometry_msgs/msg/Vector3': 3}


@lru_cache(maxsize=16)
def _types(type_name: str) -> Typestore:
    store = get_typestore(Stores.EMPTY)
    types = get_types_from_msg(definition(type_name), type_name)
    for name, n_values in _FLAT.items():
        if name in types:
            types |= get_types_from_msg(f'float64[{n_values}] values', name)
    store.register(types)
    return store


# rosbags generates message classes at run time; they have no static type.
def decode_flat(data: bytes, type_name: str) -> Any:  # noqa: ANN401
    """
    Decode a message.

    :param data: serialised message with its encapsulation.
    :param type_name: ``package/msg/Name``.
    :raises DecodeError: if it is not such a message.
    """
    try:
        return _types(type_name).deserialize_cdr(data, type_name)
    except NOT_SUCH as error:
        raise DecodeError(type_name, f'{counted(len(data), "byte")} that are no such message '
                          f'({error})', 'a message of that definition') from error


def nanoseconds(time: Any) -> int:  # noqa: ANN401
    """
    Return a time or a duration, ns.

    :param time: builtin_interfaces/Time or Duration.
    """
    return int(time.sec) * NS_PER_S + int(time.nanosec)


def unit_pose(values: Floats) -> Floats | None:
    """
    Return a pose or a transform with a rotation of unit length.

    :param values: (7,) float64, position xyz and orientation xyzw.
    :returns: a copy; None if the position is not finite or the quaternion is not a rotation.
    """
    if not usable_poses(values[None, :3], values[None, 3:])[0]:
        return None
    pose = values.copy()
    pose[3:] /= np.linalg.norm(pose[3:])
    return pose

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""/tf_static: ``global_frame`` in ``parent_frame``, and the transforms of the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import MESSAGE_PHASE, Template
from state_sensor_ros.rotations import quaternion_from_rpy
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.tables import Fields
from state_sensor_ros.topics.topic import STATIC_TF_TOPIC, Topic


@dataclass(frozen=True, slots=True)
class StaticTransform:
    """
    A frame that does not move in its parent.

    ``pose`` x y z, m, roll pitch yaw, rad, of ``child`` in ``parent``.
    """

    parent: str
    child: str
    pose: Sequence[float]


def encode_static_frames(settings: Settings, definitions: Definitions,
                         transforms: Sequence[StaticTransform]) -> tuple[Topic, bytes] | None:
    """
    Return the topic and the message, or None without static transforms.

    The stamp is zero: the transforms are valid at any time.

    :param settings: parameters; the global and the parent frame are used.
    :param definitions: definitions of the messages.
    :param transforms: transforms of the simulator.
    """
    if settings.parent_frame:
        transforms = (StaticTransform(settings.parent_frame, settings.global_frame,
                                      settings.global_frame_pose), *transforms)
    if not transforms:
        return None
    message = Template(definitions, STATIC_TF_TOPIC.type_name, {
        'transforms': [_fields(transform) for transform in transforms]}, is_message=True)
    return STATIC_TF_TOPIC, message.lay_out({}, MESSAGE_PHASE).data


def _fields(transform: StaticTransform) -> Fields:
    x, y, z, *roll_pitch_yaw = transform.pose
    qx, qy, qz, qw = quaternion_from_rpy(np.array([roll_pitch_yaw]))[0].tolist()
    return {'header': {'frame_id': transform.parent}, 'child_frame_id': transform.child,
            'transform': {'translation': {'x': x, 'y': y, 'z': z},
                          'rotation': {'x': qx, 'y': qy, 'z': qz, 'w': qw}}}

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""/tf_static: ``global_frame`` in ``parent_frame``, and the sensors on the player of CARLA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import MESSAGE_PHASE, Template
from state_sensor_ros.rotations import quaternion_from_rpy
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.base_link import is_measured
from state_sensor_ros.topics.tables import Fields
from state_sensor_ros.topics.topic import STATIC_TF_TOPIC, Topic

# From a body's axes to those of its images: z forward, x right, y down (REP-103).
_OPTICAL = (0.0, 0.0, 0.0, -math.pi / 2.0, 0.0, -math.pi / 2.0)
_OPTICAL_END = '_optical'
CAMERAS = ('central', 'left', 'right')
# Name and tags of CARLA's player. With another ego tag it has a frame of its own.
_PLAYER, _PLAYER_TAGS = 'player', ('ego', 'vehicle')


@dataclass(frozen=True, slots=True)
class Mount:
    """
    A sensor on the player.

    ``frame`` last part of its frame's name; ``pose`` x y z, m, roll pitch yaw, rad, on the player
    (REP-103); ``is_camera`` whether it has a frame of its images as well; ``parent`` frame of a
    recorded pose, empty for the origin of the player.
    """

    frame: str
    pose: tuple[float, ...]
    is_camera: bool
    parent: str = ''


def camera_frame(player_frame: str, camera: str) -> str:
    """
    Return the frame of a camera as a body: x forward, y left, z up (REP-103).

    :param player_frame: name of the player's own frame.
    :param camera: its name in topics.
    """
    return f'{player_frame}/camera_{camera}'


def optical_frame(player_frame: str, camera: str) -> str:
    """
    Return the frame of a camera's images: z forward, x right, y down (REP-103).

    :param player_frame: name of the player's own frame.
    :param camera: its name in topics.
    """
    return f'{camera_frame(player_frame, camera)}{_OPTICAL_END}'


def encode_static_frames(settings: Settings, definitions: Definitions,
                         mounts: Sequence[Mount]) -> tuple[Topic, bytes] | None:
    """
    Return the topic and the message, or None if ``settings`` have no static transforms.

    The stamp is zero: the transforms hold at any time.

    :param settings: frames, and poses in m and rad.
    :param definitions: of the messages.
    :param mounts: the sensors on the player, for ``camera_tf``.
    """
    transforms = []
    if settings.parent_frame:
        transforms.append(_transform(settings.parent_frame, settings.global_frame,
                                     settings.global_frame_pose))
    if settings.camera_tf:
        player = f'{settings.frame_prefix}{_PLAYER}'
        offset: tuple[float, ...] = (0.0,) * 6
        if settings.ego_frame and settings.ego_tag.lower() in _PLAYER_TAGS:
            player = settings.ego_frame
            # Without wheels, as in CARLA, base_link is at the origin unless its place is given.
            if not is_measured(settings):
                offset = (*settings.base_link_xyz, 0.0, 0.0, 0.0)
        for mount in mounts:
            frame = f'{player}/{mount.frame}'
            pose = mount.pose if mount.parent == player else [
                number - shift for number, shift in zip(mount.pose, offset, strict=True)]
            transforms.append(_transform(player, frame, pose))
            if mount.is_camera:
                transforms.append(_transform(frame, f'{frame}{_OPTICAL_END}', _OPTICAL))
    if not transforms:
        return None
    message = Template(definitions, STATIC_TF_TOPIC.type_name, {'transforms': transforms},
                       is_message=True)
    return STATIC_TF_TOPIC, message.lay_out({}, MESSAGE_PHASE).data


def _transform(parent: str, child: str, pose: Sequence[float]) -> Fields:
    x, y, z, *roll_pitch_yaw = pose
    qx, qy, qz, qw = quaternion_from_rpy(np.array([roll_pitch_yaw]))[0].tolist()
    return {'header': {'frame_id': parent}, 'child_frame_id': child,
            'transform': {'translation': {'x': x, 'y': y, 'z': z},
                          'rotation': {'x': qx, 'y': qy, 'z': qz, 'w': qw}}}

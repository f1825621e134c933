# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The frames of the sensors on the player, and of the images of its cameras."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
import math
from typing import TYPE_CHECKING

from state_sensor_ros.simulators import Settings
from state_sensor_ros.simulators.carla.carla_data import PLAYER_NAME, PLAYER_TAGS
from state_sensor_ros.simulators.carla.carla_parameters import CarlaParameters

if TYPE_CHECKING:
    from state_sensor_ros.simulators.own_topics import StaticTransform

# From a body's axes to those of its images: z forward, x right, y down (REP-103).
_OPTICAL = (0.0, 0.0, 0.0, -math.pi / 2.0, 0.0, -math.pi / 2.0)
_OPTICAL_END = '_optical'


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


def optical_frame(player_frame: str, camera: str) -> str:
    """
    Return the frame of a camera's images: z forward, x right, y down (REP-103).

    :param player_frame: name of the player's own frame.
    :param camera: its name in topics.
    """
    return f'{player_frame}/camera_{camera}{_OPTICAL_END}'


def sensor_transforms(mounts: Iterable[Mount],
                      settings: Settings) -> tuple[StaticTransform, ...]:
    """
    Return the frames of the sensors on the player, none unless ``camera_tf`` is true.

    :param mounts: the sensors on the player.
    :param settings: frames, and the place of base_link.
    """
    if not settings.of(CarlaParameters).camera_tf:
        return ()
    # Loaded for topics only.
    from state_sensor_ros.simulators.own_topics import registry_of, StaticTransform
    player = registry_of(settings).first_frame_id(PLAYER_NAME)
    offset: tuple[float, ...] = (0.0,) * 6
    # With another ego tag the player has a frame of its own.
    if settings.ego_frame and settings.ego_tag.lower() in PLAYER_TAGS:
        player = settings.ego_frame
        # CARLA has no wheels: base_link is at the origin unless its place is given.
        if math.isfinite(settings.base_link_xyz[0]):
            offset = (*settings.base_link_xyz, 0.0, 0.0, 0.0)
    transforms = []
    for mount in mounts:
        frame = f'{player}/{mount.frame}'
        pose = mount.pose if mount.parent == player else [
            number - shift for number, shift in zip(mount.pose, offset, strict=True)]
        transforms.append(StaticTransform(player, frame, pose))
        if mount.is_camera:
            transforms.append(StaticTransform(frame, f'{frame}{_OPTICAL_END}', _OPTICAL))
    return tuple(transforms)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The transforms of a bag: from any frame to any other one at a given time."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

import numpy as np

from state_sensor_ros.evaluation.messages import decode_flat, nanoseconds, unit_pose
from state_sensor_ros.evaluation.truth import brackets
from state_sensor_ros.frame import Floats, Rows
from state_sensor_ros.rotations import (
    CONJUGATE_XYZW,
    global_from_unit,
    IDENTITY_XYZW,
    quaternion_product,
    slerp,
)

TF_TYPE: Final = 'tf2_msgs/msg/TFMessage'
TF_TOPIC: Final = '/tf'
STATIC_TF_TOPIC: Final = '/tf_static'
# Orientation (4,) xyzw and origin (3,) of a frame in another one.
Placed = tuple[Floats, Floats]
# Longer chains of frames are loops.
_MAX_DEPTH = 100


class FrameTransforms:

    def __init__(self, messages: Iterable[tuple[bytes, bool]]) -> None:
        self._parents: dict[str, str] = {}
        # Stamps and 7 numbers for each: a long bag has millions of transforms.
        found: dict[str, tuple[array[int], array[float]]] = {}
        self._static: dict[str, Floats] = {}
        for data, is_static in messages:
            for each in decode_flat(data, TF_TYPE).transforms:
                child = _plain(each.child_frame_id)
                values = unit_pose(each.transform.values)
                if values is None:
                    continue
                self._parents[child] = _plain(each.header.frame_id)
                if is_static:
                    self._static[child] = values
                else:
                    times, poses = found.setdefault(child, (array('q'), array('d')))
                    times.append(nanoseconds(each.header.stamp))
                    poses.extend(values)
        self._moving: dict[str, tuple[Rows, Floats]] = {}
        for child, (times, poses) in found.items():
            stamps, order = np.unique(np.array(times), return_index=True)
            self._moving[child] = stamps, np.array(poses).reshape(-1, 7)[order]

    def between(self, target: str, source: str,
                stamp_ns: int) -> Placed | None:
        """Return the orientation (4,) xyzw and the origin (3,) of a frame in another one."""
        # stamp_ns: time; a moving frame needs a transform within 0.1 s of it.
        target, source = _plain(target), _plain(source)
        source_root, source_turn, source_origin = self._to_root(source, stamp_ns)
        target_root, target_turn, target_origin = self._to_root(target, stamp_ns)
        if source_root != target_root or source_turn is None or target_turn is None:
            return None
        back = target_turn * CONJUGATE_XYZW
        return quaternion_product(back, source_turn), turned(back, source_origin - target_origin)

    def _to_root(self, name: str, stamp_ns: int) -> tuple[str, Floats | None, Floats]:
        """Return the root above a frame, its orientation, None if unknown, and its origin."""
        turn: Floats = np.array(IDENTITY_XYZW)
        origin: Floats = np.zeros(3)
        for _ in range(_MAX_DEPTH):
            if name not in self._parents:
                return name, turn, origin
            values = self._at(name, stamp_ns)
            if values is None:
                return name, None, origin
            turn = quaternion_product(values[3:], turn)
            origin = turned(values[3:], origin) + values[:3]
            name = self._parents[name]
        return name, None, origin

    def _at(self, child: str, stamp_ns: int) -> Floats | None:
        """Return translation xyz and rotation xyzw of a frame in its parent."""
        values: Floats
        if child in self._moving:
            stamps, moving = self._moving[child]
            [before], [after], [share], [is_near] = brackets(stamps, np.array([stamp_ns]))
            if not is_near or (before == after and stamps[before] != stamp_ns):
                return None
            values = moving[before] + share * (moving[after] - moving[before])
            values[3:] = slerp(moving[[before], 3:], moving[[after], 3:], np.array([share]))[0]
            return values
        return self._static[child]


def turned(orientation_xyzw: Floats, vector_xyz: Floats) -> Floats:
    """Return a vector turned by a rotation; ``orientation_xyzw``: (4,) float64, of unit length."""
    vector: Floats = global_from_unit(orientation_xyzw[None])[0] @ vector_xyz
    return vector


def _plain(name: str) -> str:
    """Return a frame without the leading slash of ROS 1."""
    return name.removeprefix('/')

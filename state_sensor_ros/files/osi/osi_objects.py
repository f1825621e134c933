# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The objects of a frame in the terms of ASAM OSI."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.bodies import Floats
from state_sensor_ros.files.osi.osi_notes import OsiNotes
from state_sensor_ros.files.osi.osi_types import type_of
from state_sensor_ros.files.tables.table_columns import FLOAT_NAMES
from state_sensor_ros.files.tables.table_rows import FrameRows
from state_sensor_ros.frame import Kinds
from state_sensor_ros.objects.object_maker import transported
from state_sensor_ros.pipeline.stamps import Step
from state_sensor_ros.rotations import global_from_unit, quaternion_from_rpy

# Columns of OsiFrame.values with angles.
ANGLES = slice(6, 9)


def _columns(*names: str) -> list[int]:
    return [FLOAT_NAMES.index(name) for name in names]


_ORIGIN, _CENTRE = _columns('x', 'y', 'z'), _columns('center_x', 'center_y', 'center_z')
_VELOCITY, _TURNING = _columns('vx', 'vy', 'vz'), _columns('wx', 'wy', 'wz')
_SPEED, _ANGLES = FLOAT_NAMES.index('speed'), _columns('roll', 'pitch', 'yaw')
_VALUES = _columns('length', 'width', 'height', 'center_x', 'center_y', 'center_z', 'roll',
                   'pitch', 'yaw', 'vx', 'vy', 'vz', 'ax', 'ay', 'az', 'wx', 'wy', 'wz')


@dataclass(frozen=True, slots=True, eq=False)
class OsiFrame:
    """
    K objects at one time.

    ``ids`` (K,) ids of their actors; ``types`` (K,) indices in OSI_TYPES; ``values`` (K, 18)
    dimension (m), center (m), roll, pitch, yaw (rad), velocity (m/s), acceleration (m/s2), turning
    rate about the axes of the global frame (rad/s); ``host`` row of the ego, None without one.
    """

    stamp_ns: int
    ids: npt.NDArray[np.uint32]
    types: Kinds
    values: Floats
    host: int | None
    is_restart: bool


def objects_of(rows: FrameRows, notes: OsiNotes) -> OsiFrame | None:
    """
    Return the objects of a frame, and the ego.

    :param rows: rows of the frame.
    :param notes: notes of what is dropped or assumed.
    :returns: the objects; None for a frame without a new time.
    """
    if rows.step is Step.REPEATED or rows.stamp_ns is None:
        notes.add('repeated', f'frame {rows.index}')
        return None
    actors = rows.actors
    notes.add_actors(actors.actor_list)
    sizes = rows.floats[:, _VALUES[0:3]]
    with np.errstate(all='ignore'):
        chosen = np.flatnonzero((sizes > 0.0).all(axis=1)
                                & np.isfinite(rows.floats[:, _VALUES[0:9]]).all(axis=1))
        has_pose = np.isfinite(rows.floats[:, _VALUES[6:9]]).all(axis=1)
        notes.add_each('poses', actors.ids[~has_pose])
        notes.add_each('dropped', np.setdiff1d(actors.ids[has_pose], actors.ids[chosen]))
        notes.add_objects(actors.ids[chosen])
        notes.add_each('sizes', actors.ids[chosen][~rows.has_box[chosen]])
        floats = rows.floats[chosen].copy()
        _set_velocities(floats)
    values = np.nan_to_num(floats[:, _VALUES])
    egos = np.flatnonzero(actors.are_egos[chosen])
    tags = actors.actor_list.tags
    types = np.array([type_of(int(actors.classes[row]), tags[row]) for row in chosen], np.uint8)
    return OsiFrame(rows.stamp_ns, actors.ids[chosen], types, values,
                    int(egos[0]) if len(egos) else None, rows.step is Step.RESTARTED)


def _set_velocities(floats: Floats) -> None:
    """Replace velocities of origins by those of centers; unknown ones by the speed, if known."""
    unknown = np.isnan(floats[:, _VELOCITY]).any(axis=1)
    forward = global_from_unit(quaternion_from_rpy(floats[unknown][:, _ANGLES]))[:, :, 0]
    arms = floats[:, _CENTRE] - floats[:, _ORIGIN]
    moved = transported(floats[:, _VELOCITY + _TURNING], arms, is_finite=False)[:, :3]
    moved[unknown] = floats[unknown, _SPEED, None] * forward
    floats[:, _VELOCITY] = moved

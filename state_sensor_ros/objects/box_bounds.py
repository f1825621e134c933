# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The box of one actor: its corners in the actor's frame, and whether it overlaps a volume."""

from __future__ import annotations

from dataclasses import dataclass
import itertools

import numpy as np

from state_sensor_ros.frame import Floats, Frame
from state_sensor_ros.rotations import global_from_body

_CORNERS: Floats = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


@dataclass(frozen=True, slots=True, eq=False)
class ActorBox:
    """The largest box of an actor, or its origin if it has none."""

    center: Floats  # (3,) m
    axes: Floats  # (3, 3) columns, both in the global frame
    half: Floats  # (3,) half edge lengths along the axes, m
    position: Floats  # (3,)
    body: Floats  # (3, 3) of the actor likewise

    def corners(self) -> Floats:
        """Return (8, 3) corners, m, from the actor's origin in its axes."""
        corners: Floats = ((self.center - self.position) + (_CORNERS * self.half) @ self.axes.T) \
            @ self.body
        return corners

    def overlaps_sphere(self, center: Floats, radius: float) -> bool:
        """Return whether the box has a point within a sphere."""
        # center: (3,) m, global frame.
        # radius: m.
        way = (center - self.center) @ self.axes
        outside = way - np.clip(way, -self.half, self.half)
        return bool(np.sqrt(outside @ outside) <= radius)

    def overlaps_box(self, low: Floats, high: Floats) -> bool:
        """Return whether no axis separates the box from one along the global axes."""
        # low: (3,) lowest corner, m, global frame.
        # high: (3,) highest corner, m, global frame.
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        crossed = np.cross(np.eye(3)[:, None], self.axes.T).reshape(9, 3)
        normals = np.concatenate((np.eye(3), self.axes.T, crossed))
        reach = np.abs(normals) @ half + np.abs(normals @ self.axes) @ self.half
        return not (np.abs(normals @ (self.center - middle)) > reach).any()


def box_of(frame: Frame, row: int) -> ActorBox | None:
    """Return the largest usable box of an actor by volume."""
    boxes = frame.boxes
    if boxes is None or not frame.has_pose()[row]:
        return None
    largest = frame.largest_boxes()
    # Of one item, or empty.
    box = largest[boxes.actor[largest] == row]
    if not len(box):
        return None
    axes = global_from_body(boxes.orientation_xyzw[box])[0]
    point = point_of(frame, row)
    return ActorBox(boxes.position_xyz[box[0]], axes, boxes.size_xyz[box[0]] / 2.0,
                    point.position, point.body)


def point_of(frame: Frame, row: int) -> ActorBox:
    """Return the origin of an actor as a box without extent."""
    # frame: frame in SI units and REP-103 axes.
    body = global_from_body(frame.orientation_xyzw[row:row + 1])[0]
    position = frame.position_xyz[row]
    return ActorBox(position, body, np.zeros(3), position, body)

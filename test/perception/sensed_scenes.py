# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Scenes of an ego and vehicles with boxes, and what a sensor makes of them."""

from encode_world import box_at, boxes_of, make_frame
import numpy as np

from state_sensor_ros.naming import Registry
from state_sensor_ros.objects.object_maker import ObjectMaker
from state_sensor_ros.perception.perceiver import Perceiver
from state_sensor_ros.rotations import quaternion_from_rpy
from state_sensor_ros.settings import parse_settings

SIZE = (4.0, 2.0, 1.5)


def scene(places, *, ego=(0.0, 0.0, 0.0), game_time=1.0, size=SIZE, names=None, has_ego=True):
    """
    Return a frame of an ego and vehicles.

    :param places: x, y (m), yaw (rad) of each.
    :param ego: likewise.
    """
    rows = [(*place, *size) for place in (ego, *places)]
    kinematics = np.zeros((len(rows), 13))
    kinematics[:, :2] = [row[:2] for row in rows]
    kinematics[:, 3:7] = [quaternion_from_rpy(np.array((0.0, 0.0, row[2]))) for row in rows]
    kinematics[:, 7] = kinematics[:, 0] / 10.0
    boxes = boxes_of(*[box_at(i, (row[0], row[1], size[2] / 2.0), kinematics[i, 3:7], size)
                       for i, row in enumerate(rows)])
    names = names or [f'car_{i}' for i in range(len(places))]
    frame = make_frame(('ego', *names), kinematics, boxes=boxes, tags=(
        ('vehicle', 'ego' if has_ego else 'other'), *[('vehicle', 'car')] * len(places)))
    object.__setattr__(frame, 'game_time', game_time)
    return frame


class Sensor:
    """A perceiver with the parameters ``perception.*`` of its keywords."""

    def __init__(self, *, settings=(), **perception):
        self.reports = []
        given = parse_settings({**dict(settings), **{
            f'perception.{name}': value for name, value in perception.items()}})
        self._registry = Registry()
        self._perceiver = Perceiver(given, ObjectMaker(given), lambda *words:
                                    self.reports.append(words))

    def perceived(self, frame):
        return self._perceiver.of(frame, self._registry.update(frame))

    def by_name(self, frame):
        """Return by name of an actor its pose, size and twist, as bytes."""
        actor_list = self._registry.update(frame)
        objects = self._perceiver.of(frame, actor_list).seen_objects()
        return {actor_list.names[row]: b''.join((pose.tobytes(), size.tobytes(), twist.tobytes()))
                for row, pose, size, twist in zip(
                    objects.rows.tolist(), objects.poses, objects.sizes, objects.twists,
                    strict=True)}

    def names(self, frame):
        return set(self.by_name(frame))

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames of perceived objects: the same objects are made of them again."""

from dataclasses import replace

import numpy as np

from state_sensor_ros.fields import extended
from state_sensor_ros.frame import (
    Boxes,
    Floats,
    Frame,
    KIND_VEHICLE,
    NO_BOXES,
    Rows,
)
from state_sensor_ros.naming import registry_of
from state_sensor_ros.objects.object_maker import ObjectMaker, Objects, origin_twist, transported
from state_sensor_ros.perception.perceiver import Perceived, Perceiver
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import ignore

_FALSE_TAGS = ('vehicle', 'car')
_BOX_NAME = 'perceived'


class FramePerceiver:
    """
    Make frames of perceived objects.

    The ego, and actors that are not objects, stay as they are.
    """

    def __init__(self, settings: Settings) -> None:
        self._registry = registry_of(settings)
        self._perceiver = Perceiver(settings, ObjectMaker(settings), ignore)

    def perceived(self, frame: Frame) -> Frame:
        """Return a frame as a sensor would see it."""
        perceived = self._perceiver.of(frame, self._registry.update(frame))
        if perceived.is_noisy:
            frame = _with_objects(frame, perceived)
        if perceived.seen is not None:
            missed = np.delete(perceived.truth.rows, perceived.seen)
            frame = frame.select(np.delete(np.arange(frame.n_actors), missed))
        return _with_false_positives(frame, perceived) if perceived.false_positives else frame


def _with_objects(frame: Frame, perceived: Perceived) -> Frame:
    objects = perceived.seen_objects()
    rows = objects.rows
    truth = perceived.truth if perceived.seen is None else perceived.truth.at(perceived.seen)
    # From the center to the origin, in the axes of the actor, which are turned with it.
    arms = ((frame.position_xyz[rows] - truth.poses[:, :3])[:, None] @ truth.axes)[:, 0]
    arms = (objects.axes @ arms[:, :, None])[:, :, 0]
    kinematics = _full(frame)
    kinematics[rows, :3] = objects.poses[:, :3] + arms
    kinematics[rows, 3:7] = objects.poses[:, 3:]
    kinematics[rows, 7:] = transported(objects.twists, arms, is_finite=False)
    return replace(frame, kinematics=kinematics, forward_speed=None, accelerations=None,
                   boxes=_with_boxes(frame.boxes or NO_BOXES, rows, objects))


def _full(frame: Frame) -> Floats:
    """Return (N, 13) kinematics, also of a source that measures the speed forward alone."""
    kinematics = frame.kinematics.copy()
    if frame.forward_speed is not None:
        kinematics[:, 7:] = [origin_twist(frame, row) for row in range(frame.n_actors)]
    return kinematics


def _with_boxes(boxes: Boxes, rows: Rows, objects: Objects) -> Boxes:
    """Return boxes with one for each actor at ``rows``, that of its object."""
    kept = np.flatnonzero(~np.isin(boxes.actor, rows))
    owners = np.concatenate((boxes.actor[kept], rows))
    order = np.argsort(owners, kind='stable')
    names = (*[boxes.names[i] for i in kept.tolist()], *[_BOX_NAME] * len(rows))
    numbers = np.concatenate((boxes.rows[kept], np.column_stack((
        objects.poses, objects.sizes, np.ones((len(rows), 3))))))
    return Boxes(owners[order], tuple([names[i] for i in order.tolist()]), numbers[order])


def _with_false_positives(frame: Frame, perceived: Perceived) -> Frame:
    """Return a frame with the false positives as its last actors; they stand on the ground."""
    n_false, false_positives = len(perceived.false_positives), perceived.false_objects()
    rows = frame.n_actors + np.arange(n_false)
    kinematics = np.column_stack((false_positives.poses, false_positives.twists))
    kinematics[:, 2] -= false_positives.sizes[:, 2] / 2.0
    # An extension has the actors of the simulator alone.
    known = replace(frame, kinematics=_full(frame), forward_speed=None, accelerations=None,
                    extension=None, boxes=None)
    return replace(
        extended(known, n_false, kinematics=kinematics, tags=(_FALSE_TAGS,) * n_false,
                 names=tuple([actor.name for actor in perceived.false_positives]),
                 kinds=np.full(n_false, KIND_VEHICLE, np.uint8)),
        boxes=_with_boxes(frame.boxes or NO_BOXES, rows, false_positives))

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Objects as messages of derived_object_msgs, which bridges to simulators use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from state_sensor_ros.cdr.templates import Given, Slot, Table, Values
from state_sensor_ros.classes import CLASSES, UNKNOWN
from state_sensor_ros.naming import Actor
from state_sensor_ros.objects.object_maker import Objects
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.stacks.object_topic import CENTER, ObjectTopicEncoder, SIZE
from state_sensor_ros.topics.tables import Fields, header, pose, twist
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, Numbers

# Of objects: linear xyz, angular xyz, in the axes of the global frame.
GLOBAL_TWIST = Table('object twist, global axes', np.float64, 6)
GLOBAL_ACCELERATION = Table('object acceleration, global axes', np.float64, 6)
# Of false positives, a uint32 by its bits.
FALSE_ID = Table('false positive number', np.uint32, 1)

_TRACKED: Final = 1
_BOX: Final = 1
_CERTAIN: Final = 255


class DerivedObjectsEncoder(ObjectTopicEncoder):
    """One ObjectArray, with velocities in the axes of its header."""

    topics = (Topic('~/objects', 'derived_object_msgs/msg/ObjectArray', is_perceived=True),)

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        return {
            'header': header(settings.global_frame), 'id': Given('id'),
            'detection_level': _TRACKED, 'object_classified': Given('is_classified'),
            'pose': pose(CENTER), 'twist': twist(GLOBAL_TWIST, 0),
            'accel': twist(GLOBAL_ACCELERATION, 0),
            'shape': {'type': _BOX, 'dimensions': [Slot(SIZE, i) for i in range(3)]},
            'classification': Given('class'), 'classification_certainty': Given('certainty')}

    def values(self, actor: Actor, class_: int, n_poses: int) -> Values:
        is_classified = class_ != UNKNOWN
        return {'id': actor.id, 'is_classified': is_classified, 'class': CLASSES[class_].derived,
                'certainty': _CERTAIN if is_classified else 0}

    def false_positive_fields(self) -> Fields:
        return {'id': Slot(FALSE_ID, 0)}

    def false_positive_ids(self, false_positives: Sequence[Actor]) -> Numbers:
        ids = np.array([false_positive.id for false_positive in false_positives], np.uint32)
        return {FALSE_ID: ids[:, None]}

    def tables(self, now: FrameToSend, objects: Objects, numbers: Numbers) -> None:
        """Add the motion in the global frame, NaN if unknown: a message has no variances."""
        super().tables(now, objects, numbers)
        numbers[GLOBAL_TWIST], numbers[GLOBAL_ACCELERATION] = objects.twists, objects.accelerations

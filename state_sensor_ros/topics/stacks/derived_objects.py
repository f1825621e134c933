# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Objects as messages of derived_object_msgs, which bridges of CARLA use."""

from __future__ import annotations

from typing import Final

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Given, Slot, Template, Values
from state_sensor_ros.classes import CLASSES, UNKNOWN
from state_sensor_ros.naming import Actor
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.stacks.output_tables import (
    CENTRE,
    GLOBAL_ACCELERATION,
    GLOBAL_TWIST,
    SIZE,
)
from state_sensor_ros.topics.stacks.output_topics import OBJECT_ARRAY_TOPIC
from state_sensor_ros.topics.tables import header, pose, twist

_TRACKED: Final = 1
_BOX: Final = 1
_CERTAIN: Final = 255


class DerivedObjects:
    """
    Templates of an ObjectArray, with velocities in the axes of its header.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    topic = OBJECT_ARRAY_TOPIC

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.head = Template(definitions, self.topic.type_name,
                             {'header': header(settings.global_frame)}, is_message=True)
        self.element = Template(definitions, 'derived_object_msgs/msg/Object', {
            'header': header(settings.global_frame), 'id': Given('id'),
            'detection_level': _TRACKED, 'object_classified': Given('is_classified'),
            'pose': pose(CENTRE), 'twist': twist(GLOBAL_TWIST, 0),
            'accel': twist(GLOBAL_ACCELERATION, 0),
            'shape': {'type': _BOX, 'dimensions': [Slot(SIZE, i) for i in range(3)]},
            'classification': Given('class'), 'classification_certainty': Given('certainty')})

    @staticmethod
    def values(actor: Actor, class_: int, n_poses: int) -> Values:
        """
        Return the givens of an object.

        :param actor: that it is made of.
        :param class_: index in CLASSES.
        :param n_poses: not used.
        """
        is_classified = class_ != UNKNOWN
        return {'id': actor.id, 'is_classified': is_classified, 'class': CLASSES[class_].derived,
                'certainty': _CERTAIN if is_classified else 0}

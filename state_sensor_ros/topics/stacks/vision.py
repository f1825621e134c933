# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Objects as messages of vision_msgs, and the names of their classes."""

from __future__ import annotations

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Given, MESSAGE_PHASE, Template, Values
from state_sensor_ros.classes import CLASSES
from state_sensor_ros.naming import Actor
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.stacks.output_tables import CENTRE, CENTRE_AGAIN, SIZE
from state_sensor_ros.topics.stacks.output_topics import DETECTIONS_TOPIC, LABELS_TOPIC
from state_sensor_ros.topics.tables import (
    diagonal,
    given_header,
    given_stamp,
    header,
    pose,
    xyz,
)
from state_sensor_ros.topics.topic import Topic


class VisionObjects:
    """
    Templates of a Detection3DArray and of the LabelInfo of its classes.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    topic = DETECTIONS_TOPIC

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.head = Template(definitions, self.topic.type_name,
                             {'header': header(settings.global_frame)}, is_message=True)
        self.element = Template(definitions, 'vision_msgs/msg/Detection3D', {
            'header': header(settings.global_frame), 'id': Given('id'),
            'results': [{'hypothesis': {'class_id': Given('class'), 'score': 1.0},
                         'pose': {'pose': pose(CENTRE_AGAIN), 'covariance': diagonal(
                             settings.pose_covariance_diagonal)}}],
            'bbox': {'center': pose(CENTRE), 'size': xyz(SIZE, 0)}})
        self.labels = Template(definitions, LABELS_TOPIC.type_name, {
            'header': given_header(settings.global_frame),
            'class_map': [{'class_id': each.autoware, 'class_name': each.name}
                          for each in sorted(CLASSES, key=lambda each: each.autoware)]},
            is_message=True)

    @staticmethod
    def values(actor: Actor, class_: int, n_poses: int) -> Values:
        """
        Return the givens of an object.

        :param actor: that it is made of.
        :param class_: index in CLASSES.
        :param n_poses: not used.
        """
        return {'id': actor.name, 'class': CLASSES[class_].name}

    def encode_labels(self, stamp_ns: int) -> tuple[Topic, bytes]:
        """
        Encode the names of the classes.

        :param stamp_ns: ns since the epoch of the messages' clock.
        """
        return LABELS_TOPIC, self.labels.lay_out(given_stamp(stamp_ns), MESSAGE_PHASE).data

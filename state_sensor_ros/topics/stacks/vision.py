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

from collections.abc import Sequence

import numpy as np

from state_sensor_ros.cdr.templates import Given, MESSAGE_PHASE, SlotText, Table, Values
from state_sensor_ros.classes import CLASSES
from state_sensor_ros.naming import Actor
from state_sensor_ros.objects.object_maker import Objects
from state_sensor_ros.perception.perceiver import FALSE_NAME_LENGTH
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.stacks.object_topic import CENTER, ObjectTopicEncoder, SIZE
from state_sensor_ros.topics.tables import (
    diagonal,
    Fields,
    given_header,
    given_stamp,
    header,
    pose,
    xyz,
)
from state_sensor_ros.topics.topic import LATCHED, Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, Messages, Numbers, TopicEncoder

# CENTER in a second place of one message.
CENTER_AGAIN = Table('object center again', np.float64, 7)
# Of false positives: the characters of their names.
FALSE_NAME = Table('false positive name', np.uint8, FALSE_NAME_LENGTH)


class DetectionsEncoder(ObjectTopicEncoder):
    """One Detection3DArray."""

    topics = (Topic('~/detections', 'vision_msgs/msg/Detection3DArray', is_perceived=True),)
    uses_perception = ObjectTopicEncoder.uses_perception - {'perception.velocity_std'}

    def object_fields(self, settings: Settings, is_partial: bool) -> Fields:
        return {
            'header': header(settings.global_frame), 'id': Given('id'),
            'results': [{'hypothesis': {'class_id': Given('class'), 'score': 1.0},
                         'pose': {'pose': pose(CENTER_AGAIN), 'covariance': diagonal(
                             self._measured.pose_covariance_diagonal)}}],
            'bbox': {'center': pose(CENTER), 'size': xyz(SIZE, 0)}}

    def values(self, actor: Actor, class_: int, n_poses: int) -> Values:
        return {'id': actor.name, 'class': CLASSES[class_].name}

    def tables(self, now: FrameToSend, objects: Objects, numbers: Numbers) -> None:
        """Add the centers of the objects, which a detection has in two fields."""
        super().tables(now, objects, numbers)
        numbers[CENTER_AGAIN] = numbers[CENTER]

    def false_positive_fields(self) -> Fields:
        return {'id': SlotText(FALSE_NAME)}

    def false_positive_ids(self, false_positives: Sequence[Actor]) -> Numbers:
        names = ''.join([each.name for each in false_positives]).encode('ascii')
        return {FALSE_NAME: np.frombuffer(names, np.uint8).reshape(-1, FALSE_NAME.width)}


class LabelInfoEncoder(TopicEncoder):
    """One LabelInfo before the first detections."""

    topics = (Topic('~/label_info', 'vision_msgs/msg/LabelInfo', LATCHED),)
    is_of_new_actors = True

    def set_up(self, settings: Settings) -> None:
        self._template = self.message(self.topics[0].type_name, {
            'header': given_header(settings.global_frame),
            'class_map': [{'class_id': each.autoware, 'class_name': each.name}
                          for each in sorted(CLASSES, key=lambda each: each.autoware)]})
        self._is_sent = False

    def messages(self, now: FrameToSend) -> Messages:
        """Return the message with the first frame that has actors."""
        if self._is_sent:
            return []
        self._is_sent = True
        return [(self.topics[0], self._template.lay_out(
            given_stamp(now.stamp_ns), MESSAGE_PHASE).data)]

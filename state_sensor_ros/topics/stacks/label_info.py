# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/label_info: the names of the classes of ~/detections."""

from __future__ import annotations

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import MESSAGE_PHASE
from state_sensor_ros.classes import CLASSES
from state_sensor_ros.payloads import Report
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.message_block import Messages
from state_sensor_ros.topics.tables import given_header, given_stamp
from state_sensor_ros.topics.topic import LATCHED, Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, TopicEncoder


class LabelInfoEncoder(TopicEncoder):
    """One LabelInfo before the first detections."""

    topics = (Topic('~/label_info', 'vision_msgs/msg/LabelInfo', LATCHED),)
    is_of_new_actors = True

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        super().__init__(settings, definitions, report)
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

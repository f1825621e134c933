# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""/clock: the stamp of the frame."""

from __future__ import annotations

from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import MessageInstance, Slot
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.tables import STAMP
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, MessageBlock, TopicEncoder


class ClockEncoder(TopicEncoder):
    """One Clock."""

    topics = (Topic('/clock', 'rosgraph_msgs/msg/Clock'),)

    def _set_up(self, settings: Settings) -> None:
        self._template = self.message(ClockEncoder.topics[0].type_name, {
            'clock': {'sec': Slot(STAMP, 0), 'nanosec': Slot(STAMP, 1)}})
        self._buffer = PatchBuffer()
        self._buffer.update([MessageInstance(self._template, {})])

    @classmethod
    def topics_of(cls, settings: Settings) -> tuple[Topic, ...]:
        """Return the topic if ``publish_clock`` is true."""
        return cls.topics if settings.publish_clock else ()

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the message."""
        return [MessageBlock(self._buffer, {}, self.topics)]

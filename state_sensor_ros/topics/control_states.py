# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/control_states: the lane states of all vehicles in one array."""

from __future__ import annotations

from itertools import compress

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import MessageInstance, Template
from state_sensor_ros.frame import Needs
from state_sensor_ros.payloads import Report
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.control_state import (
    actors_with_lanes,
    CONTROL_STATE,
    names_in_lane,
    STAMPED_LANE,
)
from state_sensor_ros.topics.message_block import MessageBlock, rows_where
from state_sensor_ros.topics.per_actor import PerActor
from state_sensor_ros.topics.tables import header, LANE_TABLES
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, TopicEncoder


class ControlStatesEncoder(TopicEncoder):
    """One array for each frame that has a lane state."""

    topics = (Topic('~/control_states', 'state_sensor_ros/msg/ControlStateArray'),)
    uses_lanes = True

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        super().__init__(settings, definitions, report)
        self._element = Template(definitions, CONTROL_STATE, STAMPED_LANE)
        self._array = self.array({'header': header(settings.global_frame)},
                                 self._element, self._element)
        self._elements = PerActor(lambda actor, *_: MessageInstance(
            self._element, names_in_lane(actor)))

    def needs(self, settings: Settings) -> Needs:
        """Return the lane states."""
        return Needs.of(lanes=True)

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the array; there is none without lane states."""
        present = actors_with_lanes(now)
        if not present.any():
            return []
        elements = compress(self._elements.of(now.actor_list), present.tobytes())
        return self._array.blocks(elements, rows_where(
            present[now.frame.lanes.actor], *LANE_TABLES), self.topics)

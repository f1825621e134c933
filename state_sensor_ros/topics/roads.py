# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/roads: names of the roads by their ids, sent again when there are more."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import Each, Given, MESSAGE_PHASE
from state_sensor_ros.frame import NO_ROADS
from state_sensor_ros.payloads import Report
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.message_block import Messages
from state_sensor_ros.topics.tables import given_header, given_stamp
from state_sensor_ros.topics.topic import LATCHED, Topic
from state_sensor_ros.topics.topic_encoder import FrameToSend, TopicEncoder


class RoadsEncoder(TopicEncoder):
    """One RoadArray for each frame with further roads; it has all roads so far."""

    topics = (Topic('~/roads', 'state_sensor_ros/msg/RoadArray', LATCHED),)
    opens_with = attrgetter('lanes.road_names')

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        super().__init__(settings, definitions, report)
        self._message = self.message(self.topics[0].type_name, {
            'header': given_header(settings.global_frame),
            'roads': Each('roads', {'road_id': Given('road_id'), 'name': Given('name')})})
        self.restart()

    def restart(self) -> None:
        """Remove the roads of the previous run."""
        self._newest: Mapping[int, str] = NO_ROADS
        self._names: dict[int, str] = {}

    def messages(self, now: FrameToSend) -> Messages:
        """Return the array if there are further roads."""
        newest = now.frame.lanes.road_names
        if newest is self._newest:
            return []
        self._newest = newest
        if newest.items() <= self._names.items():
            return []
        self._names.update(newest)
        roads = [{'road_id': number, 'name': name} for number, name in self._names.items()]
        data = self._message.lay_out({'roads': roads, **given_stamp(now.stamp_ns)}, MESSAGE_PHASE)
        return [(self.topics[0], data.data)]

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What Autoware reads of the ego besides its motion: gear, control mode, indicators, hazards."""

from __future__ import annotations

from collections.abc import Sequence

from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot
from state_sensor_ros.frame import (
    INDICATORS_BOTH,
    INDICATORS_LEFT,
    INDICATORS_OFF,
    INDICATORS_RIGHT,
    INDICATORS_UNKNOWN,
)
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.tables import STAMP
from state_sensor_ros.topics.topic import Qos, Topic
from state_sensor_ros.topics.topic_encoder import (
    FrameToSend,
    message_blocks,
    MessageBlock,
    TopicEncoder,
)

# The field of each report, which the messages of autoware_vehicle_msgs name differently.
_FIELDS = {
    Topic(f'/vehicle/status/{name}', f'autoware_vehicle_msgs/msg/{kind}Report', Qos(depth=1),
          is_exclusive=True): field for name, kind, field in (
        ('gear_status', 'Gear', 'report'), ('control_mode', 'ControlMode', 'mode'),
        ('turn_indicators_status', 'TurnIndicators', 'report'),
        ('hazard_lights_status', 'HazardLights', 'report'))}
# Constants of the messages; 0 is unknown in each.
_UNKNOWN, _DRIVE, _REVERSE, _PARK = 0, 2, 20, 22
_AUTONOMOUS, _MANUAL = 1, 4
_TURNS = {INDICATORS_OFF: 1, INDICATORS_BOTH: 1, INDICATORS_LEFT: 2, INDICATORS_RIGHT: 3}
_HAZARDS = {INDICATORS_OFF: 1, INDICATORS_LEFT: 1, INDICATORS_RIGHT: 1, INDICATORS_BOTH: 2}


class AutowareStatusEncoder(TopicEncoder):
    """
    One report for each of gear, control mode, turn indicators and hazard lights.

    Gear and mode are those of the last command that was sent: the sources have neither.
    """

    topics = tuple(_FIELDS)

    def set_up(self, settings: Settings) -> None:
        self._templates = [self.message(topic.type_name, {
            'stamp': {'sec': Slot(STAMP, 0), 'nanosec': Slot(STAMP, 1)}, field: Given('report')})
            for topic, field in _FIELDS.items()]

    def key(self, now: FrameToSend) -> object:
        """Return the reports, None in a frame without an ego."""
        i_ego = now.actor_list.i_ego
        if i_ego < 0:
            return None
        command, lit = now.last_command(), now.frame.indicators
        indicators = INDICATORS_UNKNOWN if lit is None else int(lit[i_ego])
        if command is None:
            gear, mode = _UNKNOWN, _MANUAL
        else:
            gear = _PARK if command.is_parked else _REVERSE if command.is_reverse else _DRIVE
            mode = _AUTONOMOUS
        return gear, mode, _TURNS.get(indicators, _UNKNOWN), _HAZARDS.get(indicators, _UNKNOWN)

    def blocks(self, now: FrameToSend) -> Sequence[MessageBlock]:
        """Lay out the reports; there is none without an ego."""
        reports = self.key(now)
        if not isinstance(reports, tuple):
            return []
        chosen = [(topic, template, report) for topic, template, report in zip(
            self.topics, self._templates, reports, strict=True) if now.subscriptions.has(topic)]
        return message_blocks(
            [MessageInstance(template, {'report': report}) for _, template, report in chosen], {},
            [topic for topic, _, _ in chosen]) if chosen else []

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Turn indicators and hazard lights that Autoware commands, for a simulator that has them."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from state_sensor_ros.control.ego_commands import IndicatorCommands
from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.frame import (
    INDICATORS_BOTH,
    INDICATORS_LEFT,
    INDICATORS_OFF,
    INDICATORS_RIGHT,
)
from state_sensor_ros.ros.topic_sink import message_class
from state_sensor_ros.source import Report

_PLACE, _TYPES = '/control/command/', 'autoware_vehicle_msgs/msg/'
# Constants of the messages; 0 is no command.
_TURNS = {1: INDICATORS_OFF, 2: INDICATORS_LEFT, 3: INDICATORS_RIGHT}
_HAZARDS = {1: False, 2: True}


class IndicatorTopics:
    """Subscribe; hazard lights come before turn indicators. Callbacks are those of one thread."""

    def __init__(self, node: Node, commands: IndicatorCommands, report: Report) -> None:
        self._node, self._commands, self._report = node, commands, report
        self._turn, self._is_hazard = INDICATORS_OFF, False
        self._subscriptions = [
            node.create_subscription(message_class(f'{_TYPES}{kind}Command'), f'{_PLACE}{name}',
                                     callback, QoSProfile(depth=1))
            for kind, name, callback in (
                ('TurnIndicators', 'turn_indicators_cmd', self._take_turn),
                ('HazardLights', 'hazard_lights_cmd', self._take_hazard))]

    def _take_turn(self, message: Any) -> None:  # noqa: ANN401
        if message.command in _TURNS:
            self._turn = _TURNS[message.command]
            self._send()

    def _take_hazard(self, message: Any) -> None:  # noqa: ANN401
        if message.command in _HAZARDS:
            self._is_hazard = _HAZARDS[message.command]
            self._send()

    def _send(self) -> None:
        indicators = INDICATORS_BOTH if self._is_hazard else self._turn
        try:
            self._commands.indicate(indicators)
        except StateSensorError as error:
            self._report('turn signals', f'turn signals are not sent: {error}')

    def close(self) -> None:
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

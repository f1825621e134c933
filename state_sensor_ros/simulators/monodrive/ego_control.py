# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Commands to the ego over monoDrive's control port (doc/protocol/control.md#commands)."""

from __future__ import annotations

from state_sensor_ros.simulators import EgoCommand
from state_sensor_ros.simulators.monodrive.control_client import ControlClient
from state_sensor_ros.simulators.monodrive.control_messages import CONTROL_EGO


class MonodriveCommands:
    """
    Send each command as a request, between those of the sensor.

    :param client: client of the control port; it connects again after a loss.
    """

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def send(self, command: EgoCommand) -> None:
        """
        Send a command and wait for the reply.

        :param command: the hand brake, which the simulator does not have, is full brake.
        :raises TransportError: when there is no connection, no reply or no ego.
        """
        direction = -1 if command.reverse else 1
        self._client.request(CONTROL_EGO, {
            'forward_amount': direction * command.throttle, 'right_amount': -command.steer,
            'brake_amount': 1.0 if command.hand_brake else command.brake,
            'drive_mode': direction})

    def close(self) -> None:
        """Do nothing: the last command was replied to; the source closes the connection."""

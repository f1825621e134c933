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

import math
import time

from state_sensor_ros.simulators import EgoCommand
from state_sensor_ros.simulators.monodrive.control_client import ControlClient
from state_sensor_ros.simulators.monodrive.control_messages import CONTROL_EGO

_PATIENCE_S = 0.5


class MonodriveCommands:
    """
    Send each command as a request, between those of the sensor; full brake at once.

    :param client: client of the control port; it connects again after a loss.
    """

    def __init__(self, client: ControlClient) -> None:
        self._client = client
        self._newest: EgoCommand | None = None

    def send(self, command: EgoCommand) -> None:
        """
        Send a command and wait for the reply, for half a second at most.

        :param command: the hand brake, which the simulator does not have, is full brake. One
            without an end of its time does not wait for replies to earlier requests.
        :raises TransportError: when there is no connection, no reply or no ego.
        """
        self._newest = command
        is_urgent = math.isinf(command.until_s)
        left_s = command.until_s - time.monotonic()
        direction = -1 if command.reverse else 1
        self._client.order(CONTROL_EGO, {
            'forward_amount': direction * command.throttle, 'right_amount': -command.steer,
            'brake_amount': 1.0 if command.hand_brake else command.brake,
            'drive_mode': direction}, lambda: self._is_current(command),
            patience_s=min(max(left_s, 0.0), _PATIENCE_S), is_urgent=is_urgent)

    def _is_current(self, command: EgoCommand) -> bool:
        """Return whether a command is the newest, and not too old."""
        return command is self._newest and time.monotonic() < command.until_s

    def close(self) -> None:
        """Do nothing: the last command is sent; the source closes the connection."""

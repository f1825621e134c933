# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Commands to the ego of SUMO, which take effect with its next step."""

from __future__ import annotations

from state_sensor_ros.simulators import EgoCommand
from state_sensor_ros.simulators.sumo.sumo_source import SumoSource


class SumoCommands:
    """
    Send commands to the process that runs SUMO.

    :param source: that runs it.
    """

    def __init__(self, source: SumoSource) -> None:
        self._source = source

    def send(self, command: EgoCommand) -> None:
        """
        Send a command; the next step uses the newest one.

        :param command: counts until the next.
        :raises TransportError: if SUMO does not run, or has stopped to read commands.
        """
        self._source.drive(command)

    def close(self) -> None:
        """Do nothing: the command is in the pipe, and a started SUMO ends with the source."""

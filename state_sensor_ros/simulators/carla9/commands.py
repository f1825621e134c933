# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Commands to the ego of CARLA 0.9: to the process with its client library."""

from __future__ import annotations

import math
import time

from state_sensor_ros.simulators import EgoCommand, TransportError
from state_sensor_ros.simulators.carla9.source import Carla9Source, Indicate

# The process notes it after this time, s.
_NOTED_S = 1.0


class Carla9Commands:
    """
    Send commands to the process, whose thread for requests applies them at once.

    If it cannot take them, the ego is braked without it.
    """

    def __init__(self, source: Carla9Source) -> None:
        self._source = source

    def send(self, command: EgoCommand) -> None:
        if not self._source.has_frame:
            raise TransportError(self._source.address, 'not connected, or no frame yet')
        self._source.drive(command)

    def indicate(self, indicators: int) -> None:
        """Set the turn signals of the ego."""
        self._source.send(Indicate(indicators))

    def unanswered_s(self) -> float:
        """Return for how long the server has shown other pedals than those sent, s."""
        since_s = self._source.unanswered_since_s
        return time.monotonic() - since_s + _NOTED_S if math.isfinite(since_s) else 0.0

    def brake(self) -> None:
        """Have the server brake the ego without the process."""
        self._source.brake()

    def close(self) -> None:
        """Do nothing: the process sends the last command before its end."""

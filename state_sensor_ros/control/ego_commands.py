# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The hook by which a simulator takes commands to its ego."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
import math
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class EgoCommand:
    """
    One command to the ego, checked and within its limits.

    ``throttle`` and ``brake`` 0..1; ``steer`` -1..1, + = left; ``steering_angle`` rad, + = left,
    the same in another unit; ``until_s`` time of ``time.monotonic()`` after which the command is
    too old to be sent, infinity for full brake.
    """

    throttle: float
    brake: float
    steer: float
    steering_angle: float
    hand_brake: bool = False
    reverse: bool = False
    until_s: float = field(default=math.inf, compare=False)

    def full_brake(self) -> EgoCommand:
        """Return full brake with the steering and the gear of this command."""
        return replace(self, throttle=0.0, brake=1.0, hand_brake=False, until_s=math.inf)


class EgoCommands(Protocol):
    """
    Sends commands to the ego of a running simulator.

    Its methods are called by one thread, which is not that of the source; only the last brake is
    sent by another one if :meth:`send` still waits for the simulator then. The newest command
    counts: one that cannot be sent before the next replaces it is dropped. None is sent before the
    first one arrives, and the last one is full brake.
    """

    def send(self, command: EgoCommand) -> None:
        """
        Send a command now, or with the next step of a simulator that waits for one.

        It counts until the next one. It is repeated from time to time, also after an error.

        :param command: the newest command, or full brake if no more commands arrive. After its
            ``until_s`` it fails, or ``full_brake()`` is sent in its place. Full brake does not
            wait for earlier commands.
        :raises StateSensorError: if the simulator cannot take it in time.
        """

    def close(self) -> None:
        """Wait a quarter of a second at most until the last command is sent, then end."""

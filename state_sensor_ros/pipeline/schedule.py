# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The time at which the next frame of a source is due, from the times of frames and a rate."""

from __future__ import annotations

import threading
import time

# A longer time between two frames is a step of the clock and is not waited for.
MAX_GAP_S = 10.0
# A delay above this is not made up for, since that would be a burst of frames.
_MAX_LAG_S = 0.5


class Schedule:
    """
    The times at which the frames of one source are due.

    :param rate: speed relative to real time; 0 for as fast as possible. It may be changed.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        # Time at which the last frame was due, None if the next one is due at once.
        self._due_s: float | None = None

    def restart(self) -> None:
        """Make the next frame due at once."""
        self._due_s = None

    def time_left(self, gap_s: float) -> float:
        """
        Return how long to wait for the next frame, s; at 0 the frame counts as sent.

        :param gap_s: difference of its game time to that of the frame before, s.
        """
        now_s = time.monotonic()
        due_s = now_s if self._due_s is None or not self.rate else self._due_s + gap_s / self.rate
        if due_s > now_s:
            # A longer wait is none that the system can do.
            return min(due_s - now_s, threading.TIMEOUT_MAX)
        self._due_s = due_s if now_s - due_s <= _MAX_LAG_S else now_s
        return 0.0

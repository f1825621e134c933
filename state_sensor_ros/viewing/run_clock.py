# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The time of the viewer, which continues when a simulator is restarted."""

from __future__ import annotations

import math

from state_sensor_ros.frame import Frame, NS_PER_S

# Time between the last frame of a run and the first frame of the next.
PAUSE_NS = NS_PER_S
# Stamps of ROS are below this, s.
_MAX_TIME_S = 2.0 ** 31


class RunClock:
    """
    Game time, continued over restarts: the next run begins a second after the last frame.

    :ivar n_runs: number of runs so far.
    :ivar offset_ns: offset from the game time of this run to the time of the viewer, ns.
    """

    def __init__(self) -> None:
        self.n_runs = 0
        self.offset_ns = 0
        self._now_ns = 0
        # Game time and identity of the last frame with a time.
        self._last: tuple[float, int | None] = (math.nan, None)

    def advance(self, frame: Frame) -> int:
        """
        Return the time of a frame, ns.

        :param frame: next frame; without a ``game_time`` that a stamp can have it gets the time of
            the frame before.
        """
        # False for NaN.
        if not abs(frame.game_time) < _MAX_TIME_S:
            return self._now_ns
        own_ns = round(frame.game_time * NS_PER_S)
        if not self.n_runs or frame.begins_run(*self._last):
            self.offset_ns = self._now_ns + PAUSE_NS - own_ns if self.n_runs else 0
            self.n_runs += 1
        self._last = frame.game_time, frame.identity
        self._now_ns = own_ns + self.offset_ns
        return self._now_ns

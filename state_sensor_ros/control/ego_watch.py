# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What was measured of the ego: the frames in which its time advanced, and their age."""

from __future__ import annotations

from dataclasses import dataclass
import math
import time

from state_sensor_ros.control.gate import EgoMotion

# Frames that are closer, s, say nothing about the acceleration; a larger one, m/s2, is an error.
_SHORTEST_STEP_S, _MOST_ACCELERATION = 1e-3, 15.0


@dataclass(frozen=True, slots=True)
class EgoFrame:
    received_s: float  # steady time of its receipt
    game_time: float  # s
    speed: float = math.nan  # along its x axis, m/s, NaN if unknown
    climb: float = math.nan  # angle of that axis above the horizontal, rad
    has_ego: bool = False  # whether it is there, with a pose
    n_egos: int = 0  # actors with its tag


class EgoWatch:
    """Keeps the last frames; :meth:`see` is called by one thread, the others by any."""

    def __init__(self) -> None:
        self.last: EgoFrame | None = None
        self._acceleration = 0.0
        # From here the age of the ego counts: at first from the activation.
        self._fresh_s = time.monotonic()
        self._was_paused = False

    def see(self, frame: EgoFrame) -> None:
        last, self.last = self.last, frame
        step_s = math.nan if last is None else frame.game_time - last.game_time
        self._acceleration = 0.0
        if math.isfinite(frame.speed):
            self._fresh_s = frame.received_s
            if last is not None and step_s > _SHORTEST_STEP_S:
                gain = (frame.speed - last.speed) / step_s
                self._acceleration = gain if abs(gain) < _MOST_ACCELERATION else 0.0

    def motion(self, fault: str, *, is_paused: bool) -> EgoMotion:
        """Return the ego's motion."""
        # fault: why the simulation is not under control, empty if it is.
        now_s, last = time.monotonic(), self.last
        if is_paused or self._was_paused:
            self._fresh_s = now_s
        self._was_paused = is_paused
        age_s = now_s - self._fresh_s
        if last is None or not last.has_ego:
            return EgoMotion(age_s=age_s, fault=fault, is_paused=is_paused)
        return EgoMotion(last.speed, last.game_time, age_s, self._acceleration, last.n_egos,
                         fault, is_paused, last.climb)

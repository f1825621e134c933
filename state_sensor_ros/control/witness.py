# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The witness: whether an order to slow is followed by measured slowing."""

from __future__ import annotations

import math

from state_sensor_ros.control.gate import EgoMotion

# Time from an order to slow until the ego must be measured to slow: simulated, and, without a new
# frame of the ego, of the steady clock, s.
OBEY_S, _UNSEEN_S = 1.5, 2.5
# Below this speed it stands, m/s.
_STANDS = 0.3
# Share of the ordered deceleration that is slowing; an ego may be heavy, or go downhill.
_SHARE = 0.1
_MANY_FRAMES = 3


class Witness:
    """Compares orders to slow with the measured speed; called by one thread."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.is_disobeyed = False
        # Speed and times when the present order, or the part of it that is measured, began.
        self._speed, self._game_time, self._seen_s = math.nan, math.nan, math.nan
        self._last_time, self._demand = math.nan, 0.0
        # Frames in a row in which the ego was not slower: one may be wrong.
        self._n_not_slower = 0

    def note(self, deceleration: float, motion: EgoMotion, now_s: float) -> None:
        """Note what is ordered, with what is measured now."""
        # deceleration: that of the order, m/s2; 0 if it is no order to slow.
        speed = abs(motion.speed)
        if deceleration <= 0.0 or speed < _STANDS:
            self._begin()
            return
        if math.isnan(self._seen_s) or (motion.is_paused and not motion.fault):
            # Nothing can slow while time stands.
            self._seen_s = now_s
        if motion.game_time > self._last_time:
            self._demand += deceleration * (motion.game_time - self._last_time)
            self._last_time, self._seen_s = motion.game_time, now_s
            self._compare(speed)
        elif math.isfinite(speed) and motion.game_time != self._last_time:
            # The first frame, or that of a new run.
            self._speed, self._demand = speed, 0.0
            self._game_time = self._last_time = motion.game_time
            self._seen_s = now_s
        if now_s - self._seen_s > _UNSEEN_S and math.isfinite(speed):
            self.is_disobeyed = True

    def _compare(self, speed: float) -> None:
        if self._last_time - self._game_time < OBEY_S:
            return
        is_slower = self._speed - speed >= _SHARE * self._demand
        self._n_not_slower = 0 if is_slower else self._n_not_slower + 1
        if not is_slower and self._n_not_slower < _MANY_FRAMES:
            return
        self.is_disobeyed = not is_slower
        # The next part.
        self._speed, self._game_time, self._demand = speed, self._last_time, 0.0

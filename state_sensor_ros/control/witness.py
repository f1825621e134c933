# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The witness: what is measured of the ego, and whether it slows when that is ordered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import math
import time

from state_sensor_ros.control.gate import EgoMotion

# Frames that are closer, s, say nothing about the acceleration; a larger one, m/s2, is an error.
_SHORTEST_STEP_S, _MOST_ACCELERATION = 1e-3, 15.0
# Time from an order to slow until the ego must be measured to slow: simulated, and, without a new
# frame of the ego, of the steady clock, s.
OBEY_S, _UNSEEN_S = 1.5, 2.5
# Below this speed it stands, m/s.
_STANDS = 0.3
# Share of the ordered deceleration that is slowing; an ego may be heavy, or go downhill.
_SHARE = 0.1
_MANY_FRAMES = 3


@dataclass(frozen=True, slots=True)
class EgoFrame:
    received_s: float  # steady time of its receipt
    game_time: float  # s
    speed: float = math.nan  # along its x axis, m/s, NaN if unknown
    climb: float = math.nan  # angle of that axis above the horizontal, rad
    has_ego: bool = False  # whether it is there, with a pose
    n_egos: int = 0  # actors with its tag


class EgoWatch:
    """
    Keeps the last frame; :meth:`see` is called by one thread, the others by any.

    :param clock: returns the steady time, s.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.last: EgoFrame | None = None
        self._clock, self._acceleration, self._was_paused = clock, 0.0, False
        self._elapsed_s = math.nan
        # From here the age of the ego counts: at first from the activation.
        self._fresh_s = clock()

    def see(self, frame: EgoFrame) -> None:
        last, self.last = self.last, frame
        self._acceleration = 0.0
        self._elapsed_s = math.nan if last is None else frame.game_time - last.game_time
        if math.isfinite(frame.speed):
            self._fresh_s = frame.received_s
            if last is not None and frame.game_time - last.game_time > _SHORTEST_STEP_S:
                gain = (frame.speed - last.speed) / (frame.game_time - last.game_time)
                self._acceleration = gain if abs(gain) < _MOST_ACCELERATION else 0.0

    def motion(self, fault: str, *, is_paused: bool) -> EgoMotion:
        """Return the ego's motion; ``fault``: why the simulation is not under control, or ''."""
        now_s, last = self._clock(), self.last
        if is_paused or self._was_paused:
            self._fresh_s = now_s
        self._was_paused = is_paused
        age_s = now_s - self._fresh_s
        if last is None or not last.has_ego:
            return EgoMotion(age_s=age_s, fault=fault, is_paused=is_paused)
        return EgoMotion(last.speed, last.game_time, age_s, self._acceleration, last.n_egos,
                         fault, is_paused, last.climb, self._elapsed_s)


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

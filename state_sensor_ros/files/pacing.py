# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Rate, jitter and jumps of the clock of a recording, computed from the steps of ``game_time``.

Memory does not grow with the number of steps: equal steps are counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
import math

import numpy as np

# Steps are counted with a resolution of 10 us, up to this many different ones.
_STEPS_PER_S = 100_000
_MAX_DIFFERENT = 10_000
# A step of more than this many times the median is a jump.
_JUMP = 5.0
# A step is usual between these multiples of the median.
_USUAL = (0.5, 1.5)


@dataclass(frozen=True, slots=True)
class Pace:
    """
    Steps of a clock, s; all NaN if there are none.

    ``rate`` Hz, of the usual steps; ``jitter`` mean absolute deviation from the ``median``;
    ``n_jumps`` number of steps of more than five times the median.
    """

    n_steps: int
    rate: float
    median: float
    least: float
    greatest: float
    jitter: float
    n_jumps: int


class Pacing:
    """
    Collected steps of a clock.

    :ivar duration: sum of the steps, s.
    :ivar greatest: longest step, s.
    """

    def __init__(self) -> None:
        self.duration = 0.0
        self.greatest = 0.0
        self._steps: Counter[int] = Counter()

    def add(self, seconds: float) -> bool:
        """
        Add a step.

        :param seconds: its length, above 0.
        :returns: whether it is the longest so far.
        """
        self.duration += seconds
        step = round(seconds * _STEPS_PER_S)
        if step in self._steps or len(self._steps) < _MAX_DIFFERENT:
            self._steps[step] += 1
        is_greatest = seconds > self.greatest
        self.greatest = max(seconds, self.greatest)
        return is_greatest

    def pace(self) -> Pace:
        """Return the statistics of the steps so far."""
        if not self._steps:
            return Pace(0, *(math.nan,) * 5, n_jumps=0)
        different = sorted(self._steps)
        steps = np.array(different) / _STEPS_PER_S
        counts = np.array([self._steps[step] for step in different])
        n_steps = int(counts.sum())
        median = float(steps[np.searchsorted(np.cumsum(counts), n_steps / 2)])
        usual = (steps >= _USUAL[0] * median) & (steps <= _USUAL[1] * median)
        spent = float(steps[usual] @ counts[usual])
        return Pace(
            n_steps=n_steps, rate=float(counts[usual].sum()) / spent if spent else math.nan,
            median=median, least=float(steps[0]), greatest=self.greatest,
            jitter=float(np.abs(steps - median) @ counts / n_steps),
            n_jumps=int(counts[steps > _JUMP * median].sum()))

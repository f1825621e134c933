# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The percentile bootstrap (Efron, 1979): blocks of time of a recording, or recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Floats, Rows

LEVEL: Final = 0.95
BLOCK_S: Final = 10.0
# Shorter recordings have as many shorter blocks.
MIN_BLOCKS: Final = 10
N_RESAMPLES: Final = 1000
_SEED = 0

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class TimeBlocks:
    """
    Blocks of time of F frames.

    ``of_frames`` (F,) int64, block of each frame; ``n_blocks``, at least 1; ``length_s`` of a
    block, 0 if there are too few frames to resample.
    """

    of_frames: Rows
    n_blocks: int
    length_s: float

    def sums(self, values: Floats) -> Floats:
        """
        Return (B, K) sums of the values of the frames of each block.

        :param values: (F, K) float64.
        """
        return self.sums_at(np.arange(len(values)), values)

    def sums_at(self, frames: npt.NDArray[np.integer[Any]], values: Floats) -> Floats:
        """
        Return (B, K) sums of values.

        :param frames: (N,) index of the frame of each row.
        :param values: (N, K) float64.
        """
        rows = self.of_frames[frames]
        sums: Floats = np.empty((self.n_blocks, values.shape[1]))
        for total, column in zip(sums.T, values.T, strict=True):
            total[:] = np.bincount(rows, column, self.n_blocks)
        return sums


def time_blocks(stamps_ns: Rows) -> TimeBlocks:
    """
    Divide frames into blocks of time.

    :param stamps_ns: (F,) int64.
    """
    single = TimeBlocks(np.zeros(len(stamps_ns), np.int64), 1, 0.0)
    if len(stamps_ns) < MIN_BLOCKS:
        return single
    times_s = (stamps_ns - stamps_ns.min()) * 1e-9
    duration_s = float(times_s.max())
    length_s = min(BLOCK_S, duration_s / MIN_BLOCKS)
    if not length_s:
        return single
    blocks = np.minimum((times_s / length_s).astype(np.int64),
                        max(round(duration_s / length_s) - 1, 0))
    return TimeBlocks(blocks, int(blocks.max()) + 1, length_s)


def weights_of(n_units: int) -> Floats:
    """Return (N_RESAMPLES, n_units) how often each unit is drawn."""
    random = np.random.default_rng(_SEED)
    return random.multinomial(n_units, np.full(n_units, 1.0 / n_units), N_RESAMPLES) \
        .astype(np.float64)


def interval(samples: Floats) -> Interval | None:
    """
    Return the interval of the resampled values of a number, None if most are undefined.

    :param samples: (N_RESAMPLES,) float64.
    """
    known = samples[np.isfinite(samples)]
    if 2 * len(known) <= len(samples):
        return None
    low, high = np.percentile(known, (50.0 * (1.0 - LEVEL), 50.0 * (1.0 + LEVEL))).tolist()
    return low, high


def mean_interval(numbers: Sequence[float]) -> Interval | None:
    """
    Return the interval of the mean of a number over scenes; None for less than two of them.

    :param numbers: a number of each scene.
    """
    if len(numbers) < 2:
        return None
    return interval(weights_of(len(numbers)) @ np.array(numbers) / len(numbers))

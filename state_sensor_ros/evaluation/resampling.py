# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Confidence intervals by the jackknife (Tukey, 1958): of blocks of time of a recording, or of bags.

A number is computed again without each unit. The spread of these values, times the quantile of
Student's t, is the interval around the number, of errors on the scale of the logarithm, of shares
on that of the logit, so that it ends within their bounds. Of skewed values it is wider on the side
of the long tail (the acceleration of Efron, 1987). It covers at 10 units, too, where a percentile
bootstrap does not (test/evaluation/test_coverage.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Floats, Rows

LEVEL: Final = 0.95
# Blocks of 10 s, but at least MIN_BLOCKS shorter and at most MAX_BLOCKS longer ones.
BLOCK_S: Final = 10.0
MIN_BLOCKS: Final = 10
MAX_BLOCKS: Final = 60
# Fewer units give no interval, nor does one whose effect is so many times that of any other.
MIN_UNITS: Final = 5
_SOLE_EFFECT: Final = 10.0
# Quantile of the normal distribution at 97.5 %, and of Student's t by the powers of the inverse
# number of degrees of freedom (Abramowitz and Stegun, 26.7.5): right to 0.3 % from 4 on.
_T_SERIES: Final[tuple[float, ...]] = (1.95996, 2.37227, 2.82250, 2.55585)
# By the last key of a path: numbers that may be negative, shares of at most 1, counts.
_SIGNED = frozenset(('mota', 'bias'))
_SHARES = frozenset((
    'map', 'nds', 'recall', 'precision', 'hota', 'mota', 'idf1', 'amota', '0.5', '1.0', '2.0',
    '4.0', 'ase', 'aae', 'mase', 'maae', 'miss_rate', 'miss_rate_nuscenes', 'overlap_rate'))
# Greatest change on the scale of a logarithm.
_MOST = 20.0
_MOST_SKEW = 0.5
COUNTS = frozenset(('misses', 'false_positives', 'identity_switches'))

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class TimeBlocks:
    """Blocks of time of F frames."""

    of_frames: Rows  # (F,) int64, block of each frame
    n_blocks: int  # at least 1
    length_s: float  # of a block, 0 if there are too few frames

    def sums(self, values: Floats) -> Floats:
        """Return (B, K) sums of the values of the frames of each block."""
        # values: (F, K) float64.
        return self.sums_at(np.arange(len(values)), values)

    def sums_at(self, frames: npt.NDArray[np.integer[Any]], values: Floats) -> Floats:
        """Return (B, K) sums of values."""
        # frames: (N,) index of the frame of each row.
        # values: (N, K) float64.
        rows = self.of_frames[frames]
        sums: Floats = np.empty((self.n_blocks, values.shape[1]))
        for total, column in zip(sums.T, values.T, strict=True):
            total[:] = np.bincount(rows, column, self.n_blocks)
        return sums


def time_blocks(stamps_ns: Rows) -> TimeBlocks:
    """Divide frames into blocks of time; ``stamps_ns``: (F,) int64."""
    single = TimeBlocks(np.zeros(len(stamps_ns), np.int64), 1, 0.0)
    if len(stamps_ns) < MIN_BLOCKS:
        return single
    times_s = (stamps_ns - stamps_ns.min()) * 1e-9
    duration_s = float(times_s.max())
    length_s = min(max(BLOCK_S, duration_s / MAX_BLOCKS), duration_s / MIN_BLOCKS)
    if not length_s:
        return single
    blocks = np.minimum((times_s / length_s).astype(np.int64),
                        max(round(duration_s / length_s) - 1, 0))
    return TimeBlocks(blocks, int(blocks.max()) + 1, length_s)


def weights_without(n_units: int) -> Floats:
    """Return (N, N) how often each unit counts if one is left out: as many in total."""
    weights: Floats = np.full((n_units, n_units), n_units / (n_units - 1.0))
    np.fill_diagonal(weights, 0.0)
    return weights


def interval(path: str, value: float, deviations: Floats, n_units: int) -> Interval | None:
    """Return the interval of a number, None from few units, and of no or all events."""
    # deviations: (N,) float64, the number without each unit, less their mean.
    half, name = half_width(path, deviations, n_units), path.rpartition('/')[2]
    if half is None or (name in COUNTS | _SHARES and value in (0.0, 1.0) and not half):
        return None
    spread = float(np.square(deviations).sum())
    skew = -half * float((deviations ** 3).sum()) / (6.0 * spread ** 2) if spread else 0.0
    skew = min(max(skew, -_MOST_SKEW), _MOST_SKEW)
    low, high = _bounded(path, value, half / (1.0 + skew), half / (1.0 - skew))
    return min(low, value), max(high, value)


def half_width(path: str, deviations: Floats, n_units: int) -> float | None:
    """Return half the width of an interval, None below MIN_UNITS units."""
    # deviations: (N,) float64, see :func:`interval`.
    n_all = len(deviations)
    if path.endswith('rmse'):
        # Few blocks make most of a sum of squares.
        n_units //= 2
    if n_units < MIN_UNITS or not np.isfinite(deviations).all():
        return None
    # Rare events in one unit: all others are near the median.
    away = np.abs(deviations - np.median(deviations))
    if (_SOLE_EFFECT * away >= away.max()).sum() < 2:
        return None
    quantile = sum(factor / float(n_units - 1) ** power for power, factor in enumerate(_T_SERIES))
    return quantile * math.sqrt((n_all - 1) / n_all * float(np.square(deviations).sum()))


def mean_interval(path: str, numbers: Sequence[float]) -> Interval | None:
    """Return the interval of the mean of a number over bags, None below MIN_UNITS of them."""
    values = np.array(numbers)
    return interval(path, float(values.mean()), (values.mean() - values) / max(
        len(values) - 1, 1), len(values))


def _bounded(path: str, value: float, below: float, above: float) -> Interval:
    """Return the interval on the scale of the number: logit of shares, logarithm of errors."""
    # below, above: widths of its two parts, on the plain scale.
    name = path.rpartition('/')[2]
    if name in COUNTS:
        # Rounding does not make an interval wider.
        return (min(max(math.floor(value - below + 1e-6), 0), value),
                math.ceil(value + above - 1e-6))
    if name in _SIGNED:
        return value - below, min(value + above, 1.0) if name == 'mota' else value + above
    if name in _SHARES:
        share = max(value * (1.0 - value), below / _MOST, above / _MOST)
        down, up = (math.exp(part / share) if share else 1.0 for part in (below, above))
        return value / (value + down * (1.0 - value)), value / (value + (1.0 - value) / up)
    down, up = (math.exp(min(part / value, _MOST)) if value else 1.0 for part in (below, above))
    return value / down, value * up

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The stamp of each frame, and whether the simulator's clock advanced, repeated or restarted.

May know: clocks of the stream and the rule of INTERFACE 3.3. Must not know: who publishes.
"""

from __future__ import annotations

from enum import Enum
import math

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Frame

NS_PER_S = 1_000_000_000
# builtin_interfaces/Time counts seconds in an int32.
_MAX_STAMP_NS = 2 ** 31 * NS_PER_S
# PROTOCOL 8 #29: beyond this share of a period, differences of float32 times mean nothing.
_COARSE_STEP_SHARE = 0.1
_FLOAT32_BITS = 24
# The generation whose times are no float32: CARLA counts whole milliseconds.
_EXACT = 'carla'


def float32_step(game_time: float) -> float:
    """Return how far float32 numbers about ``game_time`` are apart, both in s."""
    return math.ldexp(1.0, math.frexp(game_time)[1] - _FLOAT32_BITS)


class Step(Enum):
    """What the simulator's clock did since the frame before."""

    ADVANCED = 'advanced'
    REPEATED = 'repeated'
    RESTARTED = 'restarted'


class Stamper:
    """
    Stamps that strictly increase within a run of the simulator.

    :param stamp_source: ``game_time``, ``utc`` or ``ros`` as INTERFACE 3.3 defines them.
    """

    def __init__(self, stamp_source: str) -> None:
        self._stamp_source = stamp_source
        self.stamp_ns = -1
        self.n_missed = 0
        self.n_coarse = 0
        self._game_time = -math.inf
        self._sample_count = 0
        self._base_ns = 0

    def step(self, frame: Frame, now_ns: int) -> Step:
        """
        Set :attr:`stamp_ns` for ``frame``.

        ``n_missed`` counts gaps in ``sample_count``; ``n_coarse`` frames whose ``game_time``, a
        float32, can no longer tell a tenth of the period.

        :param now_ns: the clock of ROS at receipt, ns.
        :raises DecodeError: when ``game_time`` is no time that a ROS stamp can hold.
        """
        game_time, sample_count = frame.game_time, frame.sample_count
        # One comparison finds NaN, too: it compares false with everything.
        if not 0.0 <= game_time < 2.0 ** 31:
            raise DecodeError('game_time', str(game_time), 'seconds from 0 to 2147483647')
        restarted = game_time < self._game_time or sample_count < self._sample_count
        if not restarted and game_time == self._game_time:
            self._count_gap(sample_count)
            return Step.REPEATED
        first = self._game_time == -math.inf
        if restarted or first:
            self._base_ns = self._base(frame)
        else:
            self._count_gap(sample_count)
            if float32_step(game_time) > _COARSE_STEP_SHARE * (game_time - self._game_time):
                self.n_coarse += frame.generation != _EXACT
        self._game_time, self._sample_count = game_time, sample_count
        stamp_ns = now_ns if self._stamp_source == 'ros' \
            else self._base_ns + round(game_time * NS_PER_S)
        if not restarted or self._stamp_source == 'ros':
            stamp_ns = max(stamp_ns, self.stamp_ns + 1)
        if stamp_ns >= _MAX_STAMP_NS:
            raise DecodeError('time', f'a stamp of {stamp_ns // NS_PER_S} s', 'below 2147483648 s')
        self.stamp_ns = stamp_ns
        return Step.RESTARTED if restarted else Step.ADVANCED

    def _base(self, frame: Frame) -> int:
        """Return what is added to ``game_time``: for utc the epoch of the run's first frame."""
        if self._stamp_source != 'utc':
            return 0
        return frame.time * NS_PER_S - round(frame.game_time * NS_PER_S)

    def _count_gap(self, sample_count: int) -> None:
        if sample_count and self._sample_count:
            self.n_missed += max(sample_count - self._sample_count - 1, 0)
        self._sample_count = sample_count

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The stamp of each frame, and whether the simulator's clock advanced, repeated or restarted."""

from __future__ import annotations

from enum import Enum
import math

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Frame, NS_PER_S

# builtin_interfaces/Time counts seconds in an int32.
_MAX_STAMP_NS = 2 ** 31 * NS_PER_S
# A float32 time is too coarse if its step exceeds this share of a period.
_COARSE_STEP_SHARE = 0.1
# Assumed: a counter that skips more, hours of samples at 100 Hz, was set to another value.
_MAX_MISSED = 1_000_000
_FLOAT32_BITS = 24


def float32_step(game_time: float) -> float:
    """Return the distance of neighboring float32 numbers at ``game_time``, both in s."""
    return math.ldexp(1.0, math.frexp(game_time)[1] - _FLOAT32_BITS)


class Step(Enum):
    """Change of the simulator's clock since the frame before."""

    ADVANCED = 'advanced'
    REPEATED = 'repeated'
    RESTARTED = 'restarted'


class Stamper:
    """
    Stamps that strictly increase within a run of the simulator.

    A run ends if ``game_time``, ``sample_count`` or, for ``ros``, the clock of ROS goes back, or
    if a different frame has the same ``game_time``: :meth:`Frame.begins_run`.

    :param stamp_source: ``game_time`` for that of the frame; ``utc`` for the first frame's
        ``time`` plus the ``game_time`` elapsed since; ``ros`` for the clock of ROS at receipt.
    :ivar stamp_ns: stamp of the last frame, -1 before the first one.
    :ivar n_coarse: number of frames whose ``game_time``, a float32, is coarser than a tenth of the
        period.
    """

    def __init__(self, stamp_source: str) -> None:
        self._stamp_source = stamp_source
        self.stamp_ns = -1
        self.restart_cause = ''
        self.n_missed = 0
        self.n_coarse = 0
        self._game_time = -math.inf
        self._identity: int | None = None
        self._sample_count = 0
        self._now_ns = -1
        self._base_ns = 0
        self._is_resuming = False

    def resume(self) -> None:
        """Count no samples between the last frame and the next one as missed."""
        self._is_resuming = True

    def step(self, frame: Frame, now_ns: int, n_lost: int = 0) -> Step:
        """Set :attr:`stamp_ns` for a frame; a refused frame changes nothing."""
        # now_ns: time of ROS at receipt, ns; 0 unless ``stamp_source`` is ``ros``.
        # n_lost: number of frames since the last one that were received, but dropped or skipped;
        # their samples do not count as missed.
        game_time = frame.game_time
        # 0: the frame has no count.
        sample_count = frame.sample_count or self._sample_count
        # Also refuses NaN, for which every comparison is false.
        if not 0.0 <= game_time < 2.0 ** 31:
            raise DecodeError('game_time', str(game_time), 'seconds from 0 to 2147483647')
        restarted = frame.begins_run(self._game_time, self._identity) \
            or sample_count < self._sample_count or now_ns < self._now_ns
        if not restarted and game_time == self._game_time:
            self._count_gap(frame, n_lost)
            self._now_ns = now_ns
            return Step.REPEATED
        is_first_of_run = restarted or self._game_time == -math.inf
        base_ns = self._base(frame) if is_first_of_run else self._base_ns
        stamp_ns = self._stamp(game_time, now_ns, base_ns, restarted)
        if restarted:
            went_back = ', '.join(name for name, has_gone_back in (
                ('game_time', game_time < self._game_time),
                ('sample_count', sample_count < self._sample_count),
                ('the ROS clock', now_ns < self._now_ns)) if has_gone_back)
            self.restart_cause = f'{went_back} went back' if went_back \
                else 'another frame has the same game_time'
            self._sample_count = 0
        self._count_gap(frame, n_lost)
        if not is_first_of_run and \
                float32_step(game_time) > _COARSE_STEP_SHARE * (game_time - self._game_time):
            self.n_coarse += not frame.has_exact_time
        self._game_time, self._identity, self._now_ns = game_time, frame.identity, now_ns
        self._base_ns, self.stamp_ns = base_ns, stamp_ns
        return Step.RESTARTED if restarted else Step.ADVANCED

    def _stamp(self, game_time: float, now_ns: int, base_ns: int, restarted: bool) -> int:
        """Return the stamp, ns, greater than the last one unless the clock went back."""
        is_ros = self._stamp_source == 'ros'
        exact_ns = now_ns if is_ros else base_ns + round(game_time * NS_PER_S)
        went_back = now_ns < self._now_ns if is_ros else restarted
        stamp_ns = exact_ns if went_back else max(exact_ns, self.stamp_ns + 1)
        if exact_ns < 0 or stamp_ns >= _MAX_STAMP_NS:
            raise DecodeError('time', f'a stamp of {exact_ns // NS_PER_S} s',
                              'seconds from 0 to 2147483647')
        return stamp_ns

    def _base(self, frame: Frame) -> int:
        """Return the offset of the run's ``game_time``, ns: for utc that to the Unix epoch."""
        if self._stamp_source != 'utc':
            return 0
        if not frame.time:
            raise DecodeError('time', 'none', 'seconds since 1970, for stamp_source utc')
        return frame.time * NS_PER_S - round(frame.game_time * NS_PER_S)

    def _count_gap(self, frame: Frame, n_lost: int) -> None:
        if not frame.sample_count:
            self._is_resuming = True
            return
        if self._sample_count and not self._is_resuming:
            n_missed = max(frame.sample_count - self._sample_count - 1 - n_lost, 0)
            self.n_missed += n_missed if n_missed <= _MAX_MISSED else 0
        self._sample_count = frame.sample_count
        self._is_resuming = False

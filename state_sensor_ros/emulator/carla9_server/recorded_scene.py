# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A sequence of recorded frames as a scene; clients cannot drive in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.carla9_server.bodies_in_motion import (
    ACCELERATION,
    EnvironmentObject,
    SceneFrame,
    Triple,
    VELOCITY,
)

# Period of frames whose times do not define one, and longest time between two frames, s.
_PERIOD_S, _MAX_GAP_S = 0.05, 10.0
# A frame is shown up to so much before its time, s: recorded times are rounded.
_EARLY_S = 1e-3


class RecordedScene:
    """
    Frames of a recording; each episode begins with the first one.

    :param frames: returns the frames from the first one on.
    :param xodr: text of the map.
    """

    ego = ''

    def __init__(self, frames: Callable[[], Iterator[SceneFrame]], xodr: str) -> None:
        self.xodr = xodr
        self.spawn_points: list[tuple[Triple, Triple]] = []
        self.environment: list[EnvironmentObject] = []
        self._recorded = frames
        self._frames: Iterator[SceneFrame] = iter(())

    def first(self) -> SceneFrame | None:
        """Return the first frame, whose time is 0; None if there is none."""
        self._frames = self._timed(self._recorded())
        self._elapsed_s = 0.0
        self._next = next(self._frames, None)
        return self._take()

    def advance(self, elapsed_s: float | None) -> SceneFrame | None:
        """
        Return the next frame, None after the last one.

        :param elapsed_s: simulated time, s: the frame that is the last one then, which may be
            the same again; None for the next frame.
        """
        if self._next is None:
            return None
        if elapsed_s is None:
            self._elapsed_s = self._next.time_s
            return self._take()
        self._elapsed_s += elapsed_s
        while self._next is not None and self._next.time_s <= self._elapsed_s + _EARLY_S:
            self._take()
        return self._now

    def drive(self, pedals: Pedals) -> None:
        """Leave the ego as it was recorded."""

    def _take(self) -> SceneFrame | None:
        self._now, self._next = self._next, next(self._frames, None)
        return self._now

    def _timed(self, frames: Iterator[SceneFrame]) -> Iterator[SceneFrame]:
        """Yield frames whose times begin at 0 and increase, with accelerations."""
        before: SceneFrame | None = None
        recorded_s = 0.0
        for frame in frames:
            time_s, numbers = 0.0, frame.numbers
            if before is not None:
                gap_s = frame.time_s - recorded_s
                gap_s = gap_s if 0.0 < gap_s <= _MAX_GAP_S else _PERIOD_S
                time_s = before.time_s + gap_s
                if not numbers[:, ACCELERATION].any() and frame.bodies is before.bodies:
                    numbers = numbers.copy()
                    numbers[:, ACCELERATION] = np.nan_to_num(
                        numbers[:, VELOCITY] - before.numbers[:, VELOCITY]) / gap_s
            recorded_s = frame.time_s
            before = SceneFrame(time_s, frame.bodies, numbers, frame.controls, frame.lights)
            yield before

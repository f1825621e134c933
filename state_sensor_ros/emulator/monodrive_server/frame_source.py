# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The sources of frames: a trajectory, endless traffic, or a cycle of a few frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
import time

import msgspec
import numpy as np

from state_sensor_ros.emulator.monodrive_server.emulated_frame import EmulatedFrame, FrameClock
from state_sensor_ros.emulator.traffic.frame_generator import generate, TrafficFrames, WARM_UP_S
from state_sensor_ros.emulator.traffic.json_template import encode_json
from state_sensor_ros.emulator.traffic.motion import Pedals

# Period of frames whose clocks do not define one: trajectories run at 20 Hz.
DEFAULT_PERIOD_S = 0.05
# A longer time between two frames is a step of the clock and is not waited for.
MAX_GAP_S = 10.0
# Most frames of one step: traffic is simulated frame by frame, even if a step skips frames.
MAX_SKIPPED = 1000


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """
    A frame and the clock that its packet reports.

    :param frame: the frame.
    :param clock: the clock.
    :param is_verbatim: whether the text is sent unchanged, with its own sample count; otherwise
        the sensor writes the clock and its own sample count.
    """

    frame: EmulatedFrame
    clock: FrameClock
    is_verbatim: bool


class FrameSource(ABC):
    """A sequence of frames with a current position."""

    @abstractmethod
    def advance(self) -> TimedFrame | None:
        """Return the next frame, or None at the end."""

    @abstractmethod
    def step(self, amount: int) -> TimedFrame | None:
        """
        Move by a number of frames, as far as possible, and return the frame there.

        :param amount: frames, negative ones backwards; the first step of 1 returns the first one.
        :returns: the frame, None if there are none.
        """

    def rewind(self) -> None:  # noqa: B027
        """Return to the position before the first frame, if the source can go back."""

    def drive(self, pedals: Pedals) -> None:  # noqa: B027
        """
        Drive the ego from now on, if it can be driven.

        :param pedals: pedals until the next call; steering to the right is positive.
        """


class TrajectorySource(FrameSource):
    """
    A list of frames, sent verbatim.

    :param frames: the elements of the trajectory.
    :param loop: whether the first frame follows the last one; game_time decreases there.
    """

    def __init__(self, frames: Sequence[EmulatedFrame], loop: bool = False) -> None:
        self._frames = frames
        self._loop = loop
        self._index = -1

    def _current(self) -> TimedFrame | None:
        if not self._frames:
            return None
        frame = self._frames[self._index]
        return TimedFrame(frame, frame.clock, is_verbatim=True)

    def advance(self) -> TimedFrame | None:
        """Return the next frame, or None after the last one."""
        if self._index + 1 >= len(self._frames):
            if not self._loop:
                return None
            self._index = -1
        self._index += 1
        return self._current()

    def step(self, amount: int) -> TimedFrame | None:
        """
        Move within the trajectory, or round it if it loops, and return the frame there.

        :param amount: number of frames, negative backwards.
        """
        target = self._index + amount
        if self._loop and self._frames:
            self._index = target % len(self._frames)
        else:
            self._index = max(0, min(target, len(self._frames) - 1))
        return self._current()

    def rewind(self) -> None:
        """Return to the position before the first frame."""
        self._index = -1


class IteratorSource(FrameSource):
    """
    Frames of an iterator, which cannot go back.

    :param frames: frames as plain JSON data.
    """

    def __init__(self, frames: Iterator[dict[str, object]]) -> None:
        self._frames = frames
        self._current: TimedFrame | None = None

    def advance(self) -> TimedFrame | None:
        """Return the next frame, or None at the end of the iterator."""
        members = next(self._frames, None)
        if members is None:
            return None
        frame = EmulatedFrame(members)
        self._current = TimedFrame(frame, frame.clock, is_verbatim=False)
        return self._current

    def step(self, amount: int) -> TimedFrame | None:
        """
        Take up to 1000 frames and return the last; 0 and less return the current one.

        :param amount: number of frames.
        """
        current = self._current
        for _ in range(min(max(amount, 0 if current else 1), MAX_SKIPPED)):
            current = self.advance() or current
        return current

    def drive(self, pedals: Pedals) -> None:
        """
        Drive the ego of generated traffic; other frames do not change.

        :param pedals: pedals until the next call; steering to the right is positive.
        """
        if isinstance(self._frames, TrafficFrames):
            self._frames.drive(pedals)


class CycleSource(FrameSource):
    """
    A few frames, encoded once and sent again and again with a clock that increases.

    The cost per frame does not depend on its size; vehicles jump when the cycle begins again.

    :param frames: frames as plain JSON data; the first ``n_frames`` are used.
    :param n_frames: length of the cycle.
    :param period_s: simulated time between frames, s.
    """

    def __init__(self, frames: Iterator[dict[str, object]], n_frames: int,
                 period_s: float) -> None:
        self._frames = [EmulatedFrame(members) for members in islice(frames, n_frames)]
        first = self._frames[0].clock
        self._start_s, self._epoch_s = first.game_time or 0.0, first.time or 0
        self._period_s = period_s
        self._index = -1
        for frame in self._frames:
            frame.freeze()

    def advance(self) -> TimedFrame | None:
        """Return the next frame with its new clock."""
        self._index += 1
        elapsed_s = self._index * self._period_s
        clock = FrameClock(float(np.float32(self._start_s + elapsed_s)),
                           self._epoch_s + int(elapsed_s), self._index + 1)
        return TimedFrame(self._frames[self._index % len(self._frames)], clock,
                          is_verbatim=False)

    def step(self, amount: int) -> TimedFrame | None:
        """
        Move forward and return the frame there; 0 and less return the current one.

        :param amount: number of frames.
        """
        self._index += max(amount, 0 if self._index >= 0 else 1) - 1
        return self.advance()


def synthetic_source(n_vehicles: int, n_objects: int, rate_hz: float, seed: int, generation: str,
                     *, n_cycle: int = 0) -> FrameSource:
    """
    Return endless traffic, as of :func:`generate`, that began a while ago.

    :param rate_hz: frames for each simulated second.
    :param n_cycle: frames that are made once and repeated, 0 for ever new ones.
    """
    frames = generate(n_vehicles, n_objects, rate_hz, seed, generation,
                      epoch_s=int(time.time() - WARM_UP_S))
    return CycleSource(frames, n_cycle, 1.0 / rate_hz) if n_cycle else IteratorSource(frames)


def frame_period_s(before: FrameClock, after: FrameClock) -> float:
    """
    Return the simulated time between two frames.

    :param before: clock of the first frame.
    :param after: clock of the second frame.
    :returns: seconds; 0.05 if game_time is missing, does not increase or has a step.
    """
    if before.game_time is None or after.game_time is None:
        return DEFAULT_PERIOD_S
    period_s = after.game_time - before.game_time
    return period_s if 0.0 < period_s <= MAX_GAP_S else DEFAULT_PERIOD_S


def parse_trajectory(text: bytes) -> list[EmulatedFrame]:
    """
    Split the text of a trajectory into frames without decoding them.

    :param text: JSON text: an array of frames, or a single frame.
    :returns: the frames with their text of the file.
    :raises msgspec.DecodeError: when the text is neither.
    """
    if text.lstrip()[:1] == b'{':
        return [EmulatedFrame(msgspec.json.decode(text, type=msgspec.Raw))]
    return [EmulatedFrame(raw) for raw in msgspec.json.decode(text, type=list[msgspec.Raw])]


def frames_of(elements: Iterable[object]) -> list[EmulatedFrame]:
    """
    Return the elements of a trajectory as frames.

    :param elements: plain JSON data.
    """
    return [EmulatedFrame(encode_json(element)) for element in elements]

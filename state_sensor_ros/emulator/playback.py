# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Where frames come from, one after another: a trajectory, endless traffic, or a repeated cycle.

May know: order, stepping and looping. Must not: sockets, filters, real time.
Source of truth: PROTOCOL 6, `replay by index`: the first step shows the first element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import msgspec
import numpy as np

from state_sensor_ros.emulator.samples import Clock, Frame

# Where a frame does not tell when it happened, trajectories are taken to run at 20 Hz.
DEFAULT_PERIOD_S = 0.05
# Traffic must be simulated to be skipped: at most this many frames by one command.
MAX_SKIPPED = 1000


@dataclass(frozen=True, slots=True)
class Shot:
    """
    A frame with the clock to be reported.

    :param frame: what to send.
    :param clock: when.
    :param is_verbatim: the frame goes out as it is, with the sample count that it carries.
    """

    frame: Frame
    clock: Clock
    is_verbatim: bool


class Playback(Protocol):
    """A source of frames that remembers where it is."""

    def advance(self) -> Shot | None:
        """Go on to the next frame; None at the end."""

    def step(self, amount: int) -> Shot | None:
        """Go ``amount`` frames on, or back, as far as there are any."""

    def rewind(self) -> None:
        """Begin anew where that is possible."""


class Trajectory:
    """
    A list of frames, sent as they are.

    :param frames: the elements of the trajectory.
    :param loop: whether the first follows the last; game_time goes back then.
    """

    def __init__(self, frames: Sequence[Frame], loop: bool = False) -> None:
        self._frames = frames
        self._loop = loop
        self._index = -1

    def _shot(self) -> Shot | None:
        if not self._frames:
            return None
        frame = self._frames[self._index]
        return Shot(frame, frame.clock, is_verbatim=True)

    def advance(self) -> Shot | None:
        """
        Go on by one.

        :returns: the frame, or None behind the last one.
        """
        if self._index + 1 >= len(self._frames):
            if not self._loop:
                return None
            self._index = -1
        self._index += 1
        return self._shot()

    def step(self, amount: int) -> Shot | None:
        """
        Go forward or back and stay within the trajectory, or go round it if it loops.

        :param amount: frames; the first step of 1 shows the first frame.
        :returns: the frame, None for an empty trajectory.
        """
        target = self._index + amount
        if self._loop and self._frames:
            self._index = target % len(self._frames)
        else:
            self._index = max(0, min(target, len(self._frames) - 1))
        return self._shot()

    def rewind(self) -> None:
        """Go before the first frame."""
        self._index = -1


class Endless:
    """
    Frames from an iterator; there is no way back.

    :param frames: frames as plain JSON data.
    """

    def __init__(self, frames: Iterator[dict[str, object]]) -> None:
        self._frames = frames
        self._shot: Shot | None = None

    def advance(self) -> Shot | None:
        """
        Take the next frame.

        :returns: the frame, or None when the iterator has ended.
        """
        members = next(self._frames, None)
        if members is None:
            return None
        frame = Frame(members)
        self._shot = Shot(frame, frame.clock, is_verbatim=False)
        return self._shot

    def step(self, amount: int) -> Shot | None:
        """
        Take frames and keep the last.

        :param amount: frames, at most 1000; none and fewer stay where they are.
        :returns: the frame.
        """
        shot = self._shot
        for _ in range(min(max(amount, 0 if shot else 1), MAX_SKIPPED)):
            shot = self.advance() or shot
        return shot

    def rewind(self) -> None:
        """Stay: what has happened cannot be undone."""


class Cycle:
    """
    A few frames written once and sent over and over, under a clock that runs on.

    Cheap at any size; vehicles jump back at each return of the first frame.

    :param frames: frames as plain JSON data; the first ``n_frames`` are used.
    :param n_frames: how many.
    :param period_s: from frame to frame.
    """

    def __init__(self, frames: Iterator[dict[str, object]], n_frames: int,
                 period_s: float) -> None:
        self._frames = [Frame(members) for members in islice(frames, n_frames)]
        first = self._frames[0].clock
        self._start_s, self._epoch_s = first.game_time or 0.0, first.time or 0
        self._period_s = period_s
        self._index = -1
        for frame in self._frames:
            frame.freeze()

    def advance(self) -> Shot | None:
        """
        Take the next frame.

        :returns: the frame under its new clock.
        """
        self._index += 1
        elapsed_s = self._index * self._period_s
        clock = Clock(float(np.float32(self._start_s + elapsed_s)),
                      self._epoch_s + int(elapsed_s), self._index + 1)
        return Shot(self._frames[self._index % len(self._frames)], clock, is_verbatim=False)

    def step(self, amount: int) -> Shot | None:
        """
        Go on by some frames.

        :param amount: frames; less than one goes nowhere.
        :returns: the frame.
        """
        self._index += max(amount, 0 if self._index >= 0 else 1) - 1
        return self.advance()

    def rewind(self) -> None:
        """Stay: the clock only runs forward."""


def period_s(before: Clock, after: Clock) -> float:
    """
    Tell how long to wait between two frames in real time.

    :param before: clock of the one.
    :param after: of the other.
    :returns: seconds; 20 Hz where the clocks do not tell (missing, repeated or back to zero).
    """
    if before.game_time is None or after.game_time is None:
        return DEFAULT_PERIOD_S
    period = after.game_time - before.game_time
    return period if period > 0.0 else DEFAULT_PERIOD_S


def parse_trajectory(text: bytes) -> list[Frame]:
    """
    Split a trajectory into frames without decoding them.

    :param text: JSON text: an array of frames, or a single frame.
    :returns: the frames; their text is that of the file.
    :raises msgspec.DecodeError: when it is neither.
    """
    kind = text.lstrip()[:1]
    if kind == b'{':
        return [Frame(msgspec.json.decode(text, type=msgspec.Raw))]
    return [Frame(raw) for raw in msgspec.json.decode(text, type=list[msgspec.Raw])]

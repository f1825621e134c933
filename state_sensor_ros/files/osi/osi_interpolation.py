# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Objects interpolated between two frames: at a constant rate, and in gaps.

Vectors change along lines, angles the shorter way. Across more than 1 s nothing is interpolated.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
import math

import numpy as np

from state_sensor_ros.bodies import Floats
from state_sensor_ros.errors import counted
from state_sensor_ros.files.osi.osi_objects import ANGLES, OsiFrame, OsiNotes
from state_sensor_ros.frame import Rows
from state_sensor_ros.rotations import wrapped

_MAX_GAP_NS = 1_000_000_000
# Longer than any recording.
_LONGEST_PERIOD_NS = 2.0 ** 63


class Resampler:
    """
    Interpolate frames at a constant rate.

    :param rate_hz: rate, Hz; None for the frames as they are.
    """

    def __init__(self, rate_hz: float | None) -> None:
        self._period_ns = None if rate_hz is None \
            else min(1e9 / rate_hz, _LONGEST_PERIOD_NS)
        self._last: OsiFrame | None = None
        self._begin_ns = self._n_made = 0

    def add(self, frame: OsiFrame) -> Iterator[OsiFrame]:
        """
        Add a frame.

        :param frame: next frame in time.
        :returns: the frames from the last one up to before this one.
        """
        if self._period_ns is None:
            yield frame
            return
        last = self._last
        if last is None or frame.is_restart or frame.stamp_ns - last.stamp_ns > _MAX_GAP_NS:
            yield from self.finish()
            self._begin_ns, self._n_made = frame.stamp_ns, 0
        else:
            while (stamp_ns := self._next_ns()) < frame.stamp_ns:
                self._n_made += 1
                yield _between(last, frame, stamp_ns)
        self._last = frame

    def finish(self) -> Iterator[OsiFrame]:
        """Return the last frame, if its time is a multiple of the period."""
        last, self._last = self._last, None
        if last is not None and self._period_ns is not None \
                and math.isclose(self._next_ns(), last.stamp_ns, abs_tol=1e3):
            yield last

    def _next_ns(self) -> int:
        assert self._period_ns is not None
        return self._begin_ns + round(self._n_made * self._period_ns)


class GapFiller:
    """
    Add objects to frames in which they are absent, in gaps of up to 1 s.

    :param notes: notes of the gaps that are filled.
    """

    def __init__(self, notes: OsiNotes) -> None:
        self._notes = notes
        # Frames of the last second, and the last one of each object.
        self._frames: deque[OsiFrame] = deque()
        self._seen: dict[int, OsiFrame] = {}

    def add(self, frame: OsiFrame) -> Iterator[OsiFrame]:
        """
        Add a frame.

        :param frame: next frame in time.
        :returns: frames that are complete now, in their order.
        """
        if frame.is_restart:
            yield from self.finish()
        last = self._frames[-1] if self._frames else None
        for id_ in frame.ids.tolist():
            seen = self._seen.get(id_)
            if seen is not None and last is not None and seen.stamp_ns < last.stamp_ns \
                    and frame.stamp_ns - seen.stamp_ns <= _MAX_GAP_NS:
                self._fill(id_, seen, frame)
            self._seen[id_] = frame
        self._frames.append(frame)
        while frame.stamp_ns - self._frames[0].stamp_ns > _MAX_GAP_NS:
            first = self._frames.popleft()
            for id_ in first.ids.tolist():
                if id_ in self._seen and self._seen[id_].stamp_ns <= first.stamp_ns:
                    del self._seen[id_]
            yield first

    def finish(self) -> Iterator[OsiFrame]:
        """Return the last frames."""
        frames, self._frames = self._frames, deque()
        self._seen.clear()
        yield from frames

    def _fill(self, id_: int, before: OsiFrame, after: OsiFrame) -> None:
        """Add an object to the frames between two."""
        n_filled = 0
        for i, frame in enumerate(self._frames):
            if frame.stamp_ns > before.stamp_ns:
                self._frames[i] = _with(frame, _row(before, id_), _row(after, id_), before, after)
                n_filled += 1
        begin_s = before.stamp_ns / 1e9
        self._notes.add('filled', f'{self._notes.name_of(id_)} '
                        f'({counted(n_filled, "frame")} after {begin_s:.6g} s)')


def _row(frame: OsiFrame, id_: int) -> int:
    return int(np.flatnonzero(frame.ids == id_)[0])


def _with(frame: OsiFrame, row: int, other: int, before: OsiFrame, after: OsiFrame) -> OsiFrame:
    """Return a frame with one object more, of one row before and another after it."""
    values = _mixed(before.values[row:row + 1], after.values[other:other + 1],
                    _share(before, after, frame.stamp_ns))
    is_host = frame.host is None and before.host == row
    return replace(frame, ids=np.append(frame.ids, before.ids[row]),
                   types=np.append(frame.types, before.types[row]),
                   values=np.concatenate((frame.values, values)),
                   host=len(frame.ids) if is_host else frame.host)


def _share(before: OsiFrame, after: OsiFrame, stamp_ns: int) -> float:
    return (stamp_ns - before.stamp_ns) / (after.stamp_ns - before.stamp_ns)


def _mixed(before: Floats, after: Floats, share: float) -> Floats:
    """
    Interpolate between values.

    :param before: (K, 18) float64, ``values`` of an OsiFrame.
    :param after: (K, 18) float64, likewise.
    :param share: 0 for ``before`` to 1 for ``after``.
    """
    change = after - before
    # The shorter way round.
    change[:, ANGLES] = wrapped(change[:, ANGLES])
    values: Floats = before + share * change
    values[:, ANGLES] = wrapped(values[:, ANGLES])
    return values


def _between(before: OsiFrame, after: OsiFrame, stamp_ns: int) -> OsiFrame:
    """Return the objects that are in both frames, at a time between these."""
    _, rows, others = np.intersect1d(before.ids, after.ids, return_indices=True)
    order = np.argsort(rows)
    rows, others = rows[order], others[order]
    values = _mixed(before.values[rows], after.values[others], _share(before, after, stamp_ns))
    hosts: Rows = np.flatnonzero(rows == (-1 if before.host is None else before.host))
    return OsiFrame(stamp_ns, before.ids[rows], before.types[rows], values,
                    int(hosts[0]) if len(hosts) else None, False)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Times and values of the entities of the viewer, sent for several frames at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import rerun as rr

from state_sensor_ros.frame import Frame, NS_PER_S

GAME_TIME, FRAME = 'game_time', 'frame'
OPAQUE = 255


class Timelines:
    """The times of the frames that were not sent yet."""

    def __init__(self) -> None:
        self._game_times_ns: list[int] = []
        self._numbers: list[int] = []
        # Columns of all frames, kept because most entities need them: to make them again took a
        # quarter of the time of a frame that is sent alone.
        self._columns: list[rr.TimeColumn] = []

    def add(self, game_time_ns: int, number: int) -> None:
        """Append a frame."""
        self._columns = []
        self._game_times_ns.append(game_time_ns)
        self._numbers.append(number)

    def __len__(self) -> int:
        return len(self._numbers)

    def columns(self, rows: Sequence[int] | None = None) -> list[rr.TimeColumn]:
        """Return the times of frames."""
        # rows: indices of frames among those that were not sent yet; None for all.
        if rows is not None:
            return self._columns_of(rows)
        self._columns = self._columns or self._columns_of(slice(None))
        return self._columns

    def _columns_of(self, rows: Sequence[int] | slice) -> list[rr.TimeColumn]:
        return [rr.TimeColumn(GAME_TIME, duration=np.array(
                    self._game_times_ns, np.int64)[rows].astype('timedelta64[ns]')),
                rr.TimeColumn(FRAME, sequence=np.array(self._numbers, np.int64)[rows])]

    def clear(self) -> None:
        """Remove all frames."""
        self._columns = []
        self._game_times_ns.clear()
        self._numbers.clear()


class Instances:
    """The instances of an entity in each frame: numbers and a label for each."""

    # archetype: class of Rerun, such as ``Boxes3D``.

    # The archetypes of Rerun have no common type.
    def __init__(self, entity: str, archetype: Any, *columns: str,  # noqa: ANN401
                 has_labels: bool = True) -> None:
        self._entity, self._archetype, self._columns = entity, archetype, columns
        self._has_labels = has_labels
        # Before any frame has an instance, nothing is sent.
        self._is_known = False
        self._arrays: list[tuple[npt.NDArray[np.float32], ...]] = []
        self._labels: list[Sequence[str]] = []

    def add(self, labels: Sequence[str], *arrays: npt.NDArray[np.generic]) -> None:
        """Append the instances of a frame."""
        self._is_known = self._is_known or len(arrays[0]) > 0
        self._arrays.append(tuple(array.astype(np.float32) for array in arrays))
        self._labels.append(labels)

    def send(self, stream: rr.RecordingStream, timelines: Timelines) -> None:
        """Send the instances of all frames, and remove them."""
        if self._is_known:
            lengths = [len(arrays[0]) for arrays in self._arrays]
            # Of no lines Rerun takes an empty list only.
            columns: dict[str, Any] = {
                name: np.concatenate(arrays) if any(lengths) else [] for name, arrays in zip(
                    self._columns, zip(*self._arrays, strict=True), strict=True)}
            if 'colors' in columns:
                columns['colors'] = _opaque(columns['colors'])
            if self._has_labels:
                columns['labels'] = list(chain.from_iterable(self._labels))
            stream.send_columns(self._entity, timelines.columns(),
                                self._archetype.columns(**columns).partition(lengths), strict=True)
        self._arrays.clear()
        self._labels.clear()


def _opaque(colors: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """Return colors of 24 bits, which float32 represents exactly, as opaque ones of 32 bits."""
    rgb: npt.NDArray[np.uint32] = np.asarray(colors).astype(np.uint32)
    return rgb * np.uint32(256) + np.uint32(OPAQUE)


# Time between the last frame of a run and the first frame of the next.
PAUSE_NS = NS_PER_S
# Stamps of ROS are below this, s.
_MAX_TIME_S = 2.0 ** 31


class RunClock:
    """Game time, continued over restarts: the next run begins a second after the last frame."""

    # offset_ns: offset from the game time of this run to the time of the viewer, ns.

    def __init__(self) -> None:
        self.n_runs = 0
        self.offset_ns = 0
        self._now_ns = 0
        # Game time and identity of the last frame with a time.
        self._last: tuple[float, int | None] = (math.nan, None)

    def advance(self, frame: Frame) -> int:
        """Return the time of a frame, ns."""
        # frame: next frame; without a ``game_time`` that a stamp can have it gets the time of the
        # frame before.
        # False for NaN.
        if not abs(frame.game_time) < _MAX_TIME_S:
            return self._now_ns
        own_ns = round(frame.game_time * NS_PER_S)
        if not self.n_runs or frame.begins_run(*self._last):
            self.offset_ns = self._now_ns + PAUSE_NS - own_ns if self.n_runs else 0
            self.n_runs += 1
        self._last = frame.game_time, frame.identity
        self._now_ns = own_ns + self.offset_ns
        return self._now_ns

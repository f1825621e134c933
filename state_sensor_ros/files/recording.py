# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Interfaces of recordings of any format, read in constant memory or written frame by frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
import math
from typing import Any, Protocol

import numpy as np

from state_sensor_ros import errors, fields, source
from state_sensor_ros.files.output import Output
from state_sensor_ros.frame import Frame

# Time between the frames of a recording without times: 20 Hz, as the simulator records.
PERIOD_S = 0.05


class RecordingReader(source.FrameReader, Protocol):
    """
    Frames that can be read from the beginning any number of times, except from standard input.

    ``name`` of the file; ``format_name`` its format; ``simulator`` that of its topics, a value
    of the parameter ``source``, empty for topics of every simulator; ``total`` the
    :attr:`position` at the end, None if it is unknown, and ``unit`` of both (``B`` or ``frame``);
    ``is_timed`` whether a frame without time gets one that continues at 20 Hz.
    """

    name: str
    format_name: str
    simulator: str
    total: int | None
    unit: str
    is_timed: bool

    @property
    def cut(self) -> errors.TruncatedError | None:
        """Return the error for a missing end, after the last frame; None if there is no fault."""

    @property
    def position(self) -> int:
        """Return the amount of the recording before the end of the last frame."""

    def frames(self, mark: Any = None) -> Iterator[Frame]:  # noqa: ANN401
        """
        Yield all frames, from the first one on; of a truncated trajectory, the whole ones.

        :param mark: what :meth:`mark` has returned, to begin there.
        :raises TrajectoryFormatError: if the recording is damaged, or cut in its first frame.
        """

    def mark(self) -> Any:  # noqa: ANN401
        """Return where the next frame of the last loop begins, None if it is unknown."""


def forwarded(owner: str, name: str) -> Any:  # noqa: ANN401
    """Return a property that is that of another object: ``self.OWNER.NAME``."""
    return property(lambda self: getattr(getattr(self, owner), name),
                    lambda self, value: setattr(getattr(self, owner), name, value))


class FrameFile(ABC):
    """
    Base of recordings: all of ``RecordingReader`` but :meth:`read`.

    It numbers the frames, times those that have no time, and ends at a cut.

    :param name: path of the file.
    :param format_name: its format, such as ``FCD output``.
    :param simulator: name of the simulator that it is of.
    :param total: number of its frames, None where it is unknown.
    """

    unit = 'frame'
    details = is_timed = True

    def __init__(self, name: str, format_name: str, simulator: str,
                 total: int | None = None) -> None:
        self.name, self.format_name = name, format_name
        self.simulator, self.total = simulator, total
        self.cut: errors.TruncatedError | None = None
        self.faults = source.Faults()
        self.position = 0

    @abstractmethod
    def read(self, mark: Any) -> Iterator[Frame]:  # noqa: ANN401
        """
        Yield the frames from the first one on; what cannot be read is added to :attr:`faults`.

        It may be called again, also before the end.

        :param mark: what :meth:`mark` has returned, to begin there; None for the first frame.
        :raises TruncatedError: after the whole frames, if the end is missing.
        :raises TrajectoryFormatError: where the rest cannot be read; OSError means the same.
        """

    def mark(self) -> Any:  # noqa: ANN401, B027
        """Return where the next frame of the last loop begins, None if it is unknown."""

    def frames(self, mark: Any = None) -> Iterator[Frame]:  # noqa: ANN401
        """Yield the frames, the whole ones of a file that was cut; times continue at 20 Hz."""
        self.cut, self.position, game_time = None, 0, -PERIOD_S
        self.faults.index, self.faults.place = 0, ''
        try:
            with errors.reading(self.name):
                frames = self.read(mark)
                while True:
                    # Unusual numbers, NaN afterward, are for no user.
                    with np.errstate(all='ignore'):
                        frame = next(frames, None)
                    if frame is None:
                        return
                    if not math.isnan(frame.game_time):
                        game_time = frame.game_time
                    elif self.is_timed:
                        game_time += PERIOD_S
                        frame = replace(frame, game_time=game_time)
                    self.position += self.unit == 'frame'
                    yield frame
                    self.faults.index += 1
        except errors.TruncatedError as error:
            if not error.n_frames:
                raise
            self.cut = error

    def close(self) -> None:  # noqa: B027
        """Close what is open; closing twice is quiet."""


class Losses:
    """What a format does not carry of the frames that are written."""

    # carried: names of the fields of frames that it carries.

    def __init__(self, name: str, carried: frozenset[str]) -> None:
        self._name, self._known = name, set(carried)
        self._lost: dict[str, None] = {}

    def add(self, frame: Frame) -> None:
        """Take note of the parts of a frame."""
        for field in fields.parts_of(frame, self._known):
            self._known.add(field.name)
            self._lost[field.part] = None

    @property
    def lines(self) -> list[str]:
        """One line, or none if nothing was lost."""
        return [f'{self._name} does not carry: {", ".join(self._lost)}'] if self._lost else []


class FrameWriter(Output):
    """A recording that is being written frame by frame."""

    n_frames: int  # number of frames so far
    losses: Losses  # what the format does not carry of its frames
    checks = False  # whether it checks that the frames are consistent
    # Whether a frame without a ``game_time`` is written with one that continues at 20 Hz.
    is_timed = True

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry, after the last frame."""
        return []

    @property
    def remarks(self) -> list[str]:
        """Return lines about the frames, after the last one."""
        return []

    @abstractmethod
    def write(self, frame: Frame) -> None:
        """
        Append a frame.

        :param frame: SI, REP-103 axes; converted to the units and axes of the format.
        :raises SinkError: if that fails.
        :raises StateError: if the format cannot hold the frame.
        """

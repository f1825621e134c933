# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A loop over the frames of a recording, and the faults that were found in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from state_sensor_ros.errors import DecodeError, StateError, TruncatedError
from state_sensor_ros.files.frame_selection import (
    EVERYTHING,
    RecordingSelection,
    SelectedReader,
    SelectedRecording,
)
from state_sensor_ros.files.recording import RecordingReader, SensorRecording
from state_sensor_ros.frame import Frame
from state_sensor_ros.source import Faults, FrameReader

# A faulty recording may have one fault for each actor of each frame.
MAX_KEPT = 1000
# Kinds of faults, besides those of readers.
CUT, CONNECTION = 'cut', 'connection'


class FrameLoop:
    """
    The selected frames of a recording, one after the other; the next loop begins at the first.

    :param recording: reader of any format; :meth:`close` closes it.
    :param is_timed: whether a frame without a ``game_time`` gets one that continues at 20 Hz, as
        when it is published; otherwise it has NaN.
    :param selection: part of the recording to read.
    :ivar name: path of the recording as given.
    :ivar format_name: description of the format.
    :ivar faults: faults of the last loop, a list of :class:`FrameFault`. It has the first
        thousand; ``faults.counts`` counts all of them by kind.
    :ivar index: number of the last frame in the recording, from 0; frames that cannot be read
        count.
    :ivar place: description of its place in the recording.
    :ivar total: size of the whole recording, None if it is unknown; ``unit`` (``B`` or
        ``frame``) is that of both.
    :ivar sensor_counts: for a dataset, the number of images by name and kind of a camera; None
        for other recordings.
    :ivar ignored: names of the files of a dataset that are not read.
    """

    def __init__(self, recording: RecordingReader, *, is_timed: bool = True,
                 selection: RecordingSelection = EVERYTHING) -> None:
        self.name, self.format_name = recording.name, recording.format_name
        self.simulator = recording.simulator
        self.total, self.unit = recording.total, recording.unit
        self.faults = FaultList()
        self.index, self.place = -1, ''
        self.sensor_counts: Mapping[tuple[str, str], int] | None = None
        self.ignored: Sequence[str] = ()
        if isinstance(recording, SensorRecording):
            self.sensor_counts, self.ignored = recording.sensor_counts, recording.ignored
        self._selection = selection
        self._recording: RecordingReader = recording if selection.has_all \
            else SelectedRecording(recording, selection)
        self._recording.is_timed = self._is_timed = is_timed
        self._n_loops = 0
        self._is_closed = False

    @property
    def missing(self) -> list[str]:
        """Return the selected names of actors that no frame of the last loop had."""
        return sorted(self._recording.selector.names.missing) \
            if isinstance(self._recording, SelectedRecording) else []

    @property
    def read_s(self) -> float:
        """Return the time from the first frame to the last one read, 0 without a selection."""
        return self._recording.selector.elapsed_s \
            if isinstance(self._recording, SelectedRecording) else 0.0

    @property
    def unmatched(self) -> list[str]:
        """Return lines about selected times, names and tags that matched nothing in a loop."""
        return self._recording.selector.unmatched \
            if isinstance(self._recording, SelectedRecording) else []

    def check_actors(self) -> None:
        """Refuse a selection that has left no actor in any frame of the last loop."""
        if isinstance(self._recording, SelectedRecording):
            self._recording.selector.check_actors(self.name)

    @property
    def details(self) -> bool:
        """Return whether boxes, wheels and inputs are used; without, they may be None."""
        return self._recording.details

    @details.setter
    def details(self, details: bool) -> None:
        self._recording.details = details

    @property
    def payload(self) -> bytes:
        """Return the text of the last frame of a trajectory, empty for other recordings."""
        return getattr(self._source(), 'payload', b'')

    @property
    def n_bytes(self) -> int:
        """Return the size of the frames of the last loop, 0 where it is unknown."""
        return getattr(self._source(), 'n_bytes', 0)

    def _source(self) -> FrameReader:
        reader: FrameReader = self._recording
        while isinstance(reader, SelectedReader):
            reader = reader.reader
        return reader

    @property
    def position(self) -> int:
        """Return the part of ``total`` before the end of the last frame."""
        return self._recording.position

    @property
    def cut(self) -> TruncatedError | None:
        """Return what is missing at the end, after a loop over a truncated trajectory."""
        return self._recording.cut

    def __iter__(self) -> Iterator[Frame]:
        """
        Yield all frames; of a truncated trajectory, the whole ones.

        :raises TrajectoryFormatError: if the recording is damaged.
        :raises StateError: if the recording is closed, or another loop over it has begun.
        """
        self._n_loops += 1
        number = self._n_loops
        self.faults.clear()
        self._check_open()
        found = self._recording.faults
        found.take()
        for frame in self._recording.frames():
            self.index, self.place = found.index, found.place or f'frame {found.index}'
            self.faults.take(found)
            yield frame
            if self._is_closed or self._n_loops != number:
                raise StateError(
                    self.name, 'a second loop was begun, or the recording closed, in a loop')
        self.faults.take(found)
        if self.cut is not None:
            self.faults.add(FrameFault(CUT, 'end', self.cut.warning))

    def _check_open(self) -> None:
        if self._is_closed:
            raise StateError(self.name, 'the recording is closed')

    def close(self) -> None:
        """Close the recording; a second call has no effect."""
        self._is_closed = True
        self._recording.close()


@dataclass(frozen=True, slots=True)
class FrameFault:
    """
    An actor, payload or part of a stream that was dropped, or changed.

    :ivar kind: ``dropped`` or ``duplicate`` for an actor that was dropped, ``other_id`` for an
        actor that does not have the id of the source, ``payload`` for a whole payload, ``cut`` for
        the missing end of a recording, ``connection`` for a lost connection,
        ``ignored_member`` for a member that no format has, ``ignored`` for one without effect.
    :ivar place: description of the place in the recording or stream.
    :ivar text: description of what was found and what was expected.
    :ivar error: the error with ``where``, ``found`` and ``expected``; None for ``cut`` and
        ``connection``.
    :ivar index: number of the frame in a recording, from 0.
    """

    kind: str
    place: str
    text: str
    error: DecodeError | None = None
    index: int = 0

    def __str__(self) -> str:
        return f'{self.place}: {self.kind.replace("_", " ")}: {self.text}'


class FaultList(list[FrameFault]):
    """The first thousand faults."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def add(self, fault: FrameFault, n: int = 1) -> None:
        """
        Append a fault that stands for ``n``, or only count it if the list is full.

        The first fault of a kind is always appended.
        """
        if len(self) < MAX_KEPT or fault.kind not in self.counts:
            self.append(fault)
        self.counts[fault.kind] += n

    def clear(self) -> None:
        super().clear()
        self.counts.clear()

    def take(self, faults: Faults) -> None:
        """Add the new faults of a reader."""
        for fault in faults.take():
            self.add(FrameFault(fault.kind, fault.place or f'frame {fault.index}',
                                str(fault.error), fault.error, fault.index), fault.n)

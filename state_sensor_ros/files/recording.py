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
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
import math
import pickle
from typing import Any, BinaryIO, Protocol, runtime_checkable

from state_sensor_ros.errors import reading, TrajectoryFormatError, TruncatedError
from state_sensor_ros.fields import parts_of
from state_sensor_ros.files.whole.output import Output
from state_sensor_ros.frame import EVERYTHING, Frame, Needs
from state_sensor_ros.payloads import FrameDecoder, FrameLike, Packet, packet_of, PayloadDecoder
from state_sensor_ros.texts import counted

# Path of a trajectory on standard input.
STANDARD_INPUT = '-'
# Time between the frames of a recording without times: 20 Hz, as the simulator records.
PERIOD_S = 0.05
# Frames between two checkpoints at first, and the size of all of them above which it doubles.
_CHECKPOINT_PERIOD, _MAX_CHECKPOINT_BYTES = 16, 1 << 26


@dataclass(frozen=True, slots=True)
class RecordedFrame:
    """One frame of a recording."""

    # Its payload, with a ``game_time`` that continues at 20 Hz if the payload has none.
    packet: Packet
    clock_s: float  # the time in the payload, s, NaN for none
    index: int  # from 0
    place: str  # in the file, in words
    position: int  # amount of the recording before the end of the frame
    # By which a :class:`SeekableRecording` returns the payload again.
    byte_range: tuple[int, int] | None = None


class RecordingReader(Protocol):
    """
    Frames that can be read from the beginning any number of times, except from standard input.

    ``name`` of the file; ``format_name`` its format; ``simulator`` that of its topics, a value
    of the parameter ``source``, empty for topics of every simulator; ``decoder`` of its payloads;
    ``total`` :attr:`RecordedFrame.position` at the end, None if it is unknown, and ``unit`` of
    both (``B`` or ``frame``).
    """

    name: str
    format_name: str
    simulator: str
    decoder: PayloadDecoder
    total: int | None
    unit: str

    @property
    def cut(self) -> TruncatedError | None:
        """Return the error for a missing end, after the last frame; None if there is no fault."""

    def new_decoder(self) -> PayloadDecoder:
        """Make another decoder of its payloads, in its initial state."""

    def frames(self) -> Iterator[RecordedFrame]:
        """
        Yield all frames, from the first one on; of a truncated trajectory, the whole ones.

        :raises TrajectoryFormatError: if the recording is damaged, or cut in its first frame.
        """

    def close(self) -> None:
        """Close what is open; closing twice is quiet."""


@runtime_checkable
class SeekableRecording(Protocol):
    """A recording that can return any payload again without reading those before it."""

    def payload_at(self, place: tuple[int, int], /) -> bytes | FrameLike:
        """Return the payload of a frame, or it; this does not affect a loop over the frames."""


@runtime_checkable
class ResumableRecording(Protocol):
    """A seekable recording that reads on from checkpoints."""

    def keep_checkpoints(self) -> None:
        """Keep checkpoints in the loops that begin afterward."""


@runtime_checkable
class SensorRecording(Protocol):
    """A recording with data of sensors beside its frames."""

    # Number of images or clouds of points by name and kind of a sensor.
    sensor_counts: Mapping[tuple[str, str], int]
    ignored: Sequence[str]  # names of the files that are not read


class TimedRecording(ABC):
    """
    Base of recordings: times of frames that have none, and what is read of a file that was cut.

    :param name: path of the file.
    :param format_name: its format, such as ``FCD output``.
    :param simulator: name of the simulator that it is of.
    :param total: number of its frames, None where it is unknown.
    """

    unit = 'frame'

    def __init__(self, name: str, format_name: str, simulator: str,
                 total: int | None = None) -> None:
        self.name, self.format_name = name, format_name
        self.simulator, self.total = simulator, total
        self.cut: TruncatedError | None = None
        self.decoder: PayloadDecoder = self.new_decoder()

    @abstractmethod
    def new_decoder(self) -> PayloadDecoder:
        """Make another decoder of its payloads, in its initial state."""

    @abstractmethod
    def entries(self) -> Iterator[RecordedFrame]:
        """
        Yield the frames from the first one on; the packet of one without time has NaN.

        It may be called again, also before the end.

        :raises TruncatedError: after the whole frames, if the end is missing.
        :raises TrajectoryFormatError: where the rest cannot be read; OSError means the same.
        """

    def frames(self) -> Iterator[RecordedFrame]:
        """Yield the frames, the whole ones of a file that was cut; times continue at 20 Hz."""
        self.cut, game_time = None, -PERIOD_S
        try:
            with reading(self.name):
                for entry in self.entries():
                    if math.isnan(entry.clock_s):
                        game_time += PERIOD_S
                        entry = replace(entry, packet=replace(entry.packet, game_time=game_time))
                    else:
                        game_time = entry.clock_s
                    yield entry
        except TruncatedError as error:
            if not error.n_frames:
                raise
            self.cut = error

    def close(self) -> None:  # noqa: B027
        """Close what is open; closing twice is quiet."""


class FrameFile(TimedRecording):
    """
    Base of recordings whose frames are read as such: all of ``RecordingReader`` but :meth:`read`.

    Its parameters are those of :class:`TimedRecording`.
    """

    @abstractmethod
    def read(self) -> Iterator[FrameLike]:
        """
        Yield the frames from the first one on; in place of one that cannot be read, its error.

        It may be called again, also before the end.

        :raises TruncatedError: after the whole frames, if the end is missing.
        :raises TrajectoryFormatError: where the rest cannot be read.
        """

    def new_decoder(self) -> PayloadDecoder:
        """Return what stands for a decoder: frames are not decoded."""
        return FrameDecoder()

    def entries(self) -> Iterator[RecordedFrame]:
        """Yield the frames."""
        for index, item in enumerate(self.read()):
            packet = packet_of(item)
            yield RecordedFrame(packet, packet.game_time, index, f'frame {index}', index + 1)


class Checkpoints:
    """The states of a reader before some of the frames of a recording, in bounded memory."""

    def __init__(self) -> None:
        self._numbers: list[int] = []  # of the frames, ascending
        self._states: list[bytes] = []
        self._period = _CHECKPOINT_PERIOD

    def add(self, number: int, state: object) -> None:
        """Keep the state before a frame if its turn has come."""
        if number < (self._numbers[-1] if self._numbers else 0) + self._period:
            return
        self._numbers.append(number)
        self._states.append(pickle.dumps(state, pickle.HIGHEST_PROTOCOL))
        while len(self._states) > 1 and sum(map(len, self._states)) > _MAX_CHECKPOINT_BYTES:
            del self._numbers[::2], self._states[::2]
            self._period *= 2

    def before(self, number: int) -> tuple[int, Any]:
        """Return the last checkpoint before a frame, 0 and None for the first frame."""
        i = bisect_left(self._numbers, number) - 1
        return (self._numbers[i], pickle.loads(self._states[i])) if i >= 0 else (0, None)


class ResumableFile(FrameFile):
    """
    Base of recordings whose frames depend on those before them.

    :meth:`read_on` takes a state that it has given to :meth:`checkpoint` before a frame.
    """

    _checkpoints: Checkpoints | None = None
    # For :meth:`payload_at`: a loop, and the number of its next frame.
    _loop: Iterator[FrameLike] = iter(())
    _next = math.inf

    @abstractmethod
    def read_on(self, begin: int, state: Any) -> Iterator[FrameLike]:  # noqa: ANN401
        """
        Yield the frames from one on; only the first of them may lack what is before it.

        :param begin: number of the frame.
        :param state: state before it, None for the first frame of the recording.
        """

    def read(self) -> Iterator[FrameLike]:
        """Yield the frames from the first one on."""
        return self.read_on(0, None)

    def entries(self) -> Iterator[RecordedFrame]:
        """Yield the frames."""
        return (replace(entry, byte_range=(entry.index, 0)) for entry in super().entries())

    def keep_checkpoints(self) -> None:
        """Keep checkpoints in the loops that begin afterward."""
        self._checkpoints = Checkpoints()

    def checkpoint(self, number: int, state: object) -> None:
        """
        Keep a checkpoint before a frame if its turn has come.

        :param number: number of the frame.
        :param state: state that can be pickled.
        """
        if self._checkpoints is not None:
            self._checkpoints.add(number, state)

    def payload_at(self, place: tuple[int, int]) -> FrameLike:
        """Return a frame again, read from the last checkpoint before it."""
        number, _ = place
        begin, state = (0, None) if self._checkpoints is None else self._checkpoints.before(number)
        if not begin <= self._next <= number:
            self._loop, self._next = self.read_on(begin, state), begin
        loop, next_number, self._next = self._loop, int(self._next), math.inf
        for i, item in enumerate(loop, next_number):
            if i == number:
                self._next = i + 1
                return item
        raise TrajectoryFormatError(self.name, 'a shorter file than before', 'the same file')

    def close(self) -> None:
        """Close what is open; closing twice is quiet."""
        self._loop, self._next = iter(()), math.inf


class Losses:
    """What a format does not carry of the frames that are written."""

    # carried: names of the fields of frames that it carries.

    def __init__(self, name: str, carried: frozenset[str]) -> None:
        self._name, self._carried = name, carried
        self._lost: dict[str, None] = {}

    def add(self, frame: Frame) -> None:
        """Take note of the parts of a frame."""
        self._lost.update(dict.fromkeys(
            field.part for field in parts_of(frame) if field.name not in self._carried))

    @property
    def lines(self) -> list[str]:
        """One line, or none if nothing was lost."""
        return [f'{self._name} does not carry: {", ".join(self._lost)}'] if self._lost else []


class FrameWriter(Output):
    """A recording that is being written frame by frame."""

    n_frames: int  # number of frames so far
    losses: Losses  # what the format does not carry of its frames
    n_dropped = 0  # number of sensor messages that it cannot hold
    last_dropped = ''  # description of the last of them
    needs: Needs = EVERYTHING  # parts of a frame that it writes
    # Whether a frame without a ``game_time`` is written with one that continues at 20 Hz.
    is_timed = True

    def name_losses(self, name: str, carried: frozenset[str]) -> None:
        """Set :attr:`losses`; the arguments are those of :class:`Losses`."""
        self.losses = Losses(name, carried)

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry, after the last frame."""
        n_dropped = counted(self.n_dropped, 'message')
        return [f'dropped {n_dropped} of sensors; the last: {self.last_dropped}'] \
            if self.n_dropped else []

    @abstractmethod
    def write(self, frame: Frame) -> None:
        """
        Append a frame.

        :param frame: SI, REP-103 axes; converted to the units and axes of the format.
        :raises SinkError: if that fails.
        :raises StateError: if the format cannot hold the frame.
        """


class PayloadWriter(Protocol):
    """Writer of packets to an open file, as they were received."""

    def write(self, packet: Packet) -> Iterator[tuple[Frame, int]]:
        """Write the selected frames of a packet."""
        # Returns each frame after it was written, and its size, bytes.

    def close(self) -> None:
        """Write the end; the file stays open."""

    def complete(self, file: BinaryIO) -> int:
        """Cut a file in which writing failed after its last whole frame, and write the end."""

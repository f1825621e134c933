# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Interfaces of recordings of any format: undecoded frames in their order, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from state_sensor_ros.errors import TruncatedError
from state_sensor_ros.payloads import Packet, PayloadDecoder

# Path of a trajectory on standard input.
STANDARD_INPUT = '-'
# Time between the frames of a recording without times: 20 Hz, as the simulator records.
PERIOD_S = 0.05


@dataclass(frozen=True, slots=True)
class RecordedFrame:
    """
    One frame of a recording.

    ``packet`` its payload, with a ``game_time`` that continues at 20 Hz if the payload has none;
    ``clock_s`` the time in the payload, s, NaN for none; ``index`` from 0; ``place`` in the file,
    in words; ``position`` amount of the recording before the end of the frame; ``byte_range`` by
    which a :class:`SeekableRecording` returns the payload again.
    """

    packet: Packet
    clock_s: float
    index: int
    place: str
    position: int
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

    def payload_at(self, byte_range: tuple[int, int]) -> bytes:
        """
        Return the payload of a frame; this does not affect a loop over the frames.

        :param byte_range: offset and length of the payload.
        :raises TrajectoryFormatError: if the file has changed or cannot be read.
        """


@runtime_checkable
class SensorRecording(Protocol):
    """
    A recording with data of sensors beside its frames.

    ``sensor_counts`` number of images or clouds of points by name and kind of a sensor;
    ``ignored`` names of the files that are not read.
    """

    sensor_counts: Mapping[tuple[str, str], int]
    ignored: Sequence[str]

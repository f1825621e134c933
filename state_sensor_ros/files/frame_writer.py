# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recording that is being written frame by frame, decoded or as received."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import BinaryIO, Protocol

from state_sensor_ros.errors import counted
from state_sensor_ros.files.whole.output import Output
from state_sensor_ros.frame import EVERYTHING, Frame, Needs
from state_sensor_ros.payloads import Packet


class FrameWriter(Output):
    """
    A recording that is being written frame by frame.

    ``n_frames`` number of frames so far; ``n_left_out`` number of sensor messages that it cannot
    hold, ``last_left_out`` description of the last of them; ``needs`` parts of a frame that it
    writes; ``is_timed`` whether a frame without a ``game_time`` is written with one that continues
    at 20 Hz.
    """

    n_frames: int
    n_left_out = 0
    last_left_out = ''
    needs: Needs = EVERYTHING
    is_timed = True

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry, after the last frame."""
        n_left_out = counted(self.n_left_out, 'message')
        return [f'left out {n_left_out} of sensors; the last: {self.last_left_out}'] \
            if self.n_left_out else []

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
        """
        Write the selected frames of a packet.

        :param packet: packet as received.
        :returns: each frame after it was written, and its size, bytes.
        :raises DecodeError: after the other frames, if one cannot be decoded.
        :raises OSError: if it cannot be written.
        """

    def close(self) -> None:
        """Write the end; the file stays open."""

    def complete(self, file: BinaryIO) -> int:
        """
        Truncate a file in which writing has failed after the last whole frame, and write the end.

        :param file: file, open for reading and writing, at its beginning.
        :returns: the number of whole frames.
        """

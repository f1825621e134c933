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

ACCELERATIONS, LANES, ROADS = 'accelerations', 'lane states', 'names of roads'
LIGHTS, MAP = 'traffic lights', 'the map'
EXTENSION = 'what only this simulator sends'


class Losses:
    """
    What a format does not carry of the frames that are written.

    :param name: name of the format, with its article.
    :param parts: those of :func:`parts_of` that it does not carry; None for all.
    """

    def __init__(self, name: str, parts: frozenset[str] | None = None) -> None:
        self._name, self._parts = name, parts
        self._lost: dict[str, None] = {}

    def add(self, frame: Frame) -> None:
        """Take note of the parts of a frame."""
        self._lost.update(dict.fromkeys(
            part for part in parts_of(frame) if self._parts is None or part in self._parts))

    @property
    def lines(self) -> list[str]:
        """One line, or none if nothing was lost."""
        return [f'{self._name} does not carry: {", ".join(self._lost)}'] if self._lost else []


def parts_of(frame: Frame) -> list[str]:
    """Return the names of the parts of a frame that not every format carries."""
    found = {
        ACCELERATIONS: frame.accelerations is not None,
        LANES: len(frame.lanes.actor) > 0,
        ROADS: bool(frame.lanes.road_names),
        LIGHTS: frame.traffic_lights is not None,
        MAP: bool(frame.map_lines),
        EXTENSION: frame.extension is not None}
    return [part for part, is_there in found.items() if is_there]


class FrameWriter(Output):
    """
    A recording that is being written frame by frame.

    ``n_frames`` number of frames so far; ``n_dropped`` number of sensor messages that it cannot
    hold, ``last_dropped`` description of the last of them; ``needs`` parts of a frame that it
    writes; ``is_timed`` whether a frame without a ``game_time`` is written with one that continues
    at 20 Hz.
    """

    n_frames: int
    n_dropped = 0
    last_dropped = ''
    needs: Needs = EVERYTHING
    is_timed = True

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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The packets of a State sensor as a trajectory, each frame with the bytes received."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from state_sensor_ros.simulators import DecodeError, Frame, Needs, Packet
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.simulators.monodrive.tag_filter import TagFilter
from state_sensor_ros.simulators.monodrive.trajectory import complete_trajectory, TrajectoryWriter
from state_sensor_ros.simulators.recordings import FrameSelector


class TrajectoryPayloads:
    """
    Payloads to a trajectory: a ``PayloadWriter``.

    :param file: open for writing.
    :param selector: selection of the frames that are written.
    """

    def __init__(self, file: BinaryIO, selector: FrameSelector) -> None:
        selection = selector.selection
        self._selector = selector
        self._filter = TagFilter(selection.desired_tags, selection.undesired_tags,
                                 selection.actors)
        self._decoder = Decoder(needs=Needs())
        self._writer = TrajectoryWriter(file)

    def write(self, packet: Packet) -> Iterator[tuple[Frame, int]]:
        """Write the payload, without the actors that are not selected."""
        fault: DecodeError | None = None
        for payload in self._filter.frames(bytes(packet.payload)):
            try:
                decoded = self._decoder.decode(payload, game_time=packet.game_time)
            except DecodeError as error:
                fault = error
                continue
            frame = decoded[0].frame
            self._selector.missing.difference_update(frame.names)
            if not self._selector.keeps(frame.game_time):
                continue
            self._writer.write(payload)
            yield frame, len(payload)
        if fault is not None:
            raise fault

    def close(self) -> None:
        """End the array."""
        self._writer.close()

    def complete(self, file: BinaryIO) -> int:
        """End the array after its last whole frame."""
        return complete_trajectory(file)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recording in a simulator's own format, whose reader yields frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
import math

from state_sensor_ros.errors import TruncatedError
from state_sensor_ros.files.recording import PERIOD_S, RecordedFrame
from state_sensor_ros.payloads import FrameDecoder, FrameLike, packet_of, PayloadDecoder


class FrameFile(ABC):
    """
    Base of recordings whose frames are read as such: all of ``RecordingReader`` but :meth:`read`.

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
    def read(self) -> Iterator[FrameLike]:
        """
        Yield the frames from the first one on; in place of one that cannot be read, its error.

        It may be called again, also before the end.

        :raises TrajectoryFormatError: where the rest cannot be read.
        """

    def new_decoder(self) -> PayloadDecoder:
        """Return what stands for a decoder: frames are not decoded."""
        return FrameDecoder()

    def frames(self) -> Iterator[RecordedFrame]:
        """Yield the frames; a frame without time gets one that continues at 20 Hz."""
        game_time = -PERIOD_S
        for index, item in enumerate(self.read()):
            packet = packet_of(item)
            clock_s = packet.game_time
            game_time = game_time + PERIOD_S if math.isnan(clock_s) else clock_s
            yield RecordedFrame(replace(packet, game_time=game_time), clock_s, index,
                                f'frame {index + 1}', index + 1)

    def close(self) -> None:  # noqa: B027
        """Close what is open; closing twice is quiet."""

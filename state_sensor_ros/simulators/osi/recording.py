# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A trace of ASAM OSI as a recording."""

from __future__ import annotations

from collections.abc import Iterator
import math
from pathlib import Path

from state_sensor_ros.simulators import (
    DecodeError,
    Packet,
    PayloadDecoder,
    ReadOptions,
    RecordedFrame,
    TrajectoryFormatError,
)
from state_sensor_ros.simulators.osi.decoder import OsiDecoder
from state_sensor_ros.simulators.osi.message_files import McapTrace, MessageFile, PlainTrace
from state_sensor_ros.simulators.osi.messages import parse_truth, TIME
from state_sensor_ros.simulators.osi.parameters import OsiParameters
from state_sensor_ros.simulators.recordings import closed_on_failure, TimedRecording

PLAIN = '.osi'


class OsiRecording(TimedRecording):
    """
    A trace; a frame is one message.

    :param name: path of the trace.
    :param file: its messages, closed with the recording.
    :param ego: name or id of the ego if there is no host, empty for none.
    :raises TrajectoryFormatError: if it cannot be read.
    """

    def __init__(self, name: str, file: MessageFile, ego: str = '') -> None:
        self._file, self._ego = file, ego
        self.unit = file.unit
        first = next(file.messages(), None)
        if first is None:
            raise TrajectoryFormatError(name, 'no messages', 'at least one')
        self._first = first.data
        super().__init__(name, f'trace of ASAM OSI, {file.kind.value}', 'osi', file.total)

    def new_decoder(self) -> PayloadDecoder:
        """Make a decoder with what only the first message may have."""
        try:
            return OsiDecoder(self._file.kind, self._ego, self._first)
        except DecodeError as error:
            raise TrajectoryFormatError(f'{self.name}: message 1', error.found,
                                        error.expected) from error

    def entries(self) -> Iterator[RecordedFrame]:
        """Yield a frame for each message."""
        for index, stored in enumerate(self._file.messages()):
            try:
                clock_s = parse_truth(stored.data, self._file.kind, TIME).game_time
            except DecodeError:
                # The decoder reports it.
                clock_s = math.nan
            yield RecordedFrame(Packet(stored.data, clock_s, 0, 0), clock_s, index,
                                f'message {index + 1}', stored.position, stored.byte_range)

    def payload_at(self, byte_range: tuple[int, int]) -> bytes:
        """Return a message of a file that is not MCAP."""
        return self._file.message_at(byte_range)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_trace(path: str, options: ReadOptions) -> OsiRecording:
    """
    Open a trace.

    :raises TrajectoryFormatError: if it cannot be read.
    """
    where = Path(path)
    file: MessageFile
    if where.name.endswith(PLAIN):
        if options.topic:
            raise TrajectoryFormatError(path, f'a trace without channels for {options.topic}',
                                        'an MCAP file, or no topic')
        file = PlainTrace(where, options.limits.n_bytes)
    else:
        file = McapTrace(where, options.topic, options.limits)
    with closed_on_failure(file):
        return OsiRecording(path, file, options.settings.of(OsiParameters).ego)

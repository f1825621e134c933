# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recording of any format with frames as the simulator's JSON, as Replay Mode takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from state_sensor_ros.simulators import (
    decode_packet,
    DecodeError,
    Packet,
    ReadOptions,
    RecordedFrame,
    RecordingReader,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.simulators.monodrive.decoder import conversion_losses, format_payload
from state_sensor_ros.simulators.monodrive.generations.wire import GENERATIONS
from state_sensor_ros.simulators.monodrive.monodrive_simulator import TRAJECTORY
from state_sensor_ros.simulators.monodrive.trajectory_recording import TrajectoryRecording
from state_sensor_ros.simulators.recordings import (
    format_of_name,
    open_any,
    READ_DEFAULTS,
    STANDARD_INPUT,
)

# Names of formats that lack parts of a frame.
_TABLES = frozenset(('parquet', 'csv'))


def check_no_table(path: str) -> None:
    """
    Check that a recording is not a table, which lacks parts of a frame.

    :param path: path of the recording, - for standard input.
    :raises TrajectoryFormatError: if it is one.
    """
    found = format_of_name(path)
    if found is not None and found.name in _TABLES:
        raise TrajectoryFormatError(path, 'a table', 'a trajectory, a bag or another '
                                    'recording with whole frames; '
                                    '`state_sensor convert` makes a trajectory of a .parquet file')


def is_trajectory(path: str) -> bool:
    """
    Return whether a recording can only be a trajectory: it is neither a bag nor a folder.

    :param path: path of the recording, - for standard input.
    """
    return path == STANDARD_INPUT or (not Path(path).is_dir() and format_of_name(path) in (
        None, TRAJECTORY))


class JsonRecording:
    """
    The frames of a bag or a dataset as JSON; those of a trajectory as they are in the file.

    :param path: path of a recording of any format, ``-`` for a trajectory on standard input.
    :param generation: schema of frames of other simulators; those of this one keep theirs.
    :param options: options of the reader of another format.
    :ivar lost: description of what the generation cannot hold of the frames so far.
    :raises TrajectoryFormatError: if it cannot be opened.
    """

    def __init__(self, path: str, generation: str,
                 options: ReadOptions = READ_DEFAULTS) -> None:
        check_no_table(path)
        self._recording: RecordingReader = TrajectoryRecording(path) if is_trajectory(path) \
            else open_any(path, options)
        self.lost: dict[str, None] = {}
        self.name, self.form = self._recording.name, self._recording.form
        self.simulator, self.decoder = self._recording.simulator, self._recording.decoder
        self.total, self.unit = self._recording.total, self._recording.unit
        self.new_decoder = self._recording.new_decoder
        self._generation = generation

    @property
    def cut(self) -> TruncatedError | None:
        """Return what is missing at the end, after the last frame."""
        return self._recording.cut

    def frames(self) -> Iterator[RecordedFrame]:
        """
        Yield all frames.

        :raises TrajectoryFormatError: if the recording is damaged, or a frame of a bag cannot
            be decoded.
        """
        if isinstance(self._recording, TrajectoryRecording):
            yield from self._recording.frames()
            return
        for recorded in self._recording.frames():
            for payload in self._payloads(recorded):
                yield replace(recorded, packet=Packet(
                    payload, recorded.packet.game_time, recorded.packet.time,
                    recorded.packet.sample_count))

    def _payloads(self, recorded: RecordedFrame) -> Iterator[bytes]:
        """Yield the frames of a bag as JSON."""
        try:
            decoded = decode_packet(self.decoder, recorded.packet)
        except DecodeError as error:
            raise TrajectoryFormatError(f'{self.name}: {recorded.place}: {error.where}',
                                        error.found, error.expected) from error
        for frame in (payload.frame for payload in decoded):
            generation = None
            if frame.generation not in GENERATIONS:
                generation = self._generation
                self.lost.update(dict.fromkeys(conversion_losses(frame, generation)))
            yield format_payload(frame, generation)

    def close(self) -> None:
        """Close the recording; a second call has no effect."""
        self._recording.close()

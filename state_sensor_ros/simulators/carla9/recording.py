# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recorder log of CARLA as a recording, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from state_sensor_ros.simulators import (
    DecodeError,
    FrameDecoder,
    FrameLike,
    PayloadDecoder,
    ReadOptions,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.simulators.carla9.actors import WorldActors
from state_sensor_ros.simulators.carla9.decoder import LogDecoder, LogHistory
from state_sensor_ros.simulators.carla9.packets import LogFile, LoggedFrame, MAGIC
from state_sensor_ros.simulators.carla9.parameters import Carla9Parameters
from state_sensor_ros.simulators.recordings import (
    closed_on_failure,
    copy_beginning,
    open_positioned,
    ResumableFile,
)

_VERSION_BYTES = 2


class _LogFrames(FrameDecoder):

    def __init__(self, unknown: set[int]) -> None:
        self._unknown = unknown

    @property
    def unknown_members(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(f'packet {packet}' for packet in self._unknown)


class LogRecording(ResumableFile):

    def __init__(self, path: str, own: Carla9Parameters, max_bytes: int) -> None:
        self._file: BinaryIO = open_positioned(path)
        # Read here: a parameter that was not read yet counts as unused.
        self._ego, self._static = own.ego, own.static
        with closed_on_failure(self._file):
            self._log = LogFile(self._file, path, max_bytes)
        super().__init__(path, f'recorder log of CARLA, {self._log.header.town}', 'carla9')

    def new_decoder(self) -> PayloadDecoder:
        """Return what stands for a decoder, and names unknown packets."""
        return _LogFrames(self._log.unknown)

    def read_on(self, begin: int, state: tuple[tuple[int, int], LogHistory] | None,
                ) -> Iterator[FrameLike]:
        """Yield the frames; the complete ones if the log was cut."""
        # state: place of the frame, and what is before it.
        place, history = state or (None, LogHistory(WorldActors(
            self._ego, with_level=self._static)))
        return LogDecoder(self._log.header, history).frames(self._noted(begin, place, history))

    def _noted(self, begin: int, place: tuple[int, int] | None, history: LogHistory,
               ) -> Iterator[LoggedFrame | DecodeError | TruncatedError]:
        for number, item in enumerate(self._log.frames(place), begin):
            if isinstance(item, LoggedFrame):
                self.checkpoint(number, (item.place, history))
            yield item

    def close(self) -> None:
        super().close()
        self._file.close()


def open_log(path: str, options: ReadOptions) -> LogRecording:
    return LogRecording(path, options.settings.of(Carla9Parameters), options.limits.n_bytes)


def is_log(path: Path) -> bool:
    """Return whether a file begins as a recorder log does."""
    with path.open('rb') as file:
        head = file.read(_VERSION_BYTES + len(MAGIC))[_VERSION_BYTES:]
    return bool(head) and MAGIC.startswith(head)


def copy_whole(cut: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
    """Copy a log up to its last complete frame."""
    # Returns number of its frames; description of the loss, empty for none.
    n_frames, end, lost = 0, 0, ''
    log = LogFile(cut, name, ReadOptions().limits.n_bytes)
    for item in log.frames():
        if isinstance(item, TruncatedError):
            lost = item.lost
            end = item.end
            n_frames = item.n_frames
        elif isinstance(item, LoggedFrame):
            n_frames, end = n_frames + 1, item.end
    if not n_frames:
        raise TrajectoryFormatError(name, 'no complete frame', 'at least one')
    copy_beginning(cut, target, end)
    return n_frames, lost

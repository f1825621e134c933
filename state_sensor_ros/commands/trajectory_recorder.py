# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The recorder of a State sensor: each frame with the bytes received, to a trajectory file."""

from __future__ import annotations

import argparse
import time
from typing import NoReturn

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.live import live_settings
from state_sensor_ros.commands.recorder import Recorder
from state_sensor_ros.errors import (
    counted,
    DecodeError,
    SinkError,
    TrajectoryFormatError,
    TransportError,
)
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.frame import Needs
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.source import Source
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.simulators.monodrive.sensor_port import open_sensor_port
from state_sensor_ros.simulators.monodrive.tag_filter import TagFilter
from state_sensor_ros.simulators.monodrive.trajectory import complete_trajectory, TrajectoryWriter

# Each flush makes a compressed file longer by some bytes.
_FLUSH_S = 1.0


class TrajectoryRecorder(Recorder):
    """
    Frames from the sensor port to a trajectory file.

    :param args: the options of the sub-command.
    :param file: to write.
    """

    def __init__(self, args: argparse.Namespace, file: WholeFile) -> None:
        super().__init__(args.frames)
        self._once: bool = args.once
        self._filter = TagFilter(tuple(args.desired_tags), tuple(args.undesired_tags))
        self._decoder = Decoder(needs=Needs())
        self._settings = live_settings(args)
        self._source = open_sensor_port(self._settings, before_connect=self._before_connect)
        self._file = file
        self._writer = TrajectoryWriter(file.handle)
        self._flush_at_s = 0.0

    @property
    def source(self) -> Source:
        """Return the source of the sensor port."""
        return self._source

    @property
    def where(self) -> str:
        """Return what the source connects to."""
        return f'{self._settings.host}:{self._settings.port}'

    @property
    def _name(self) -> str:
        return self._file.name

    def _receive(self) -> None:
        self._write_packets()

    def _save(self, interruption: Interruption) -> None:
        if self._file.is_direct:
            # A signal may interrupt this: the write blocks where a pipe is not read.
            self._end()
        elif self.n_frames or self._error is not None:
            with interruption.committing():
                try:
                    self._end()
                except SinkError as error:
                    self._rescue(error)
                self._file.commit()
        else:
            self._file.abort()

    def _discard(self) -> str:
        return self._file.discard()

    def _unsaved(self) -> str:
        return f'the frames are in {self._file.part or self._file.name}, without its end'

    def _end(self) -> None:
        """
        Write the end of the file.

        :raises SinkError: where that fails, or writing a frame has failed.
        :raises BrokenPipeError: where the reader of a pipe has closed it.
        """
        try:
            if isinstance(self._error, OSError):
                raise self._error
            self._writer.close()
            self._file.complete()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._file.error(error) from error

    def _rescue(self, error: SinkError) -> NoReturn:
        """
        Keep the frames that were received before writing failed, for example on a full disk.

        :raises SinkError: which names the file with them.
        """
        part = self._file.part
        try:
            self.n_frames = complete_trajectory(self._file.reopen())
            self._file.complete()
        except (OSError, TrajectoryFormatError):
            self._file.keep()
            expected = f'room to end the file; the frames are in {part}, without its end'
        else:
            if not self.n_frames:
                self._file.abort()
                raise error
            expected = f'room for more than the {counted(self.n_frames, "frame")} in it now'
            if self._file.is_taken:
                # A truncated recording must not replace a complete one.
                self._file.keep()
                expected = (f'room for more than the {counted(self.n_frames, "frame")} in {part}; '
                            f'the file that was there stays')
            else:
                self._file.commit()
            self._is_saved = True
        raise SinkError(error.where, error.found, expected) from error

    def _before_connect(self) -> None:
        if self._once and self.health.n_connects:
            self.is_complete = True
            self.stop()
            raise TransportError('record', 'the end of the stream', 'no more')

    def _write(self, packet: Packet) -> None:
        for frame in self._frames(bytes(packet.payload)):
            self._writer.write(frame)
            self.n_frames = self._writer.n_frames
            self.n_bytes += len(frame)
            if self._is_full():
                return
        if self._file.is_direct or time.monotonic() > self._flush_at_s:
            # A pipe may be read during the recording. A compressed file can be read up to the
            # last flush where the program is killed.
            self._file.handle.flush()
            self._flush_at_s = time.monotonic() + _FLUSH_S

    def _frames(self, payload: bytes) -> list[bytes]:
        """Return the frames of a payload that can be decoded; count the others."""
        frames = []
        try:
            for frame in self._filter.frames(payload):
                if self._is_frame(frame):
                    frames.append(frame)
        except DecodeError as error:
            self._skip(error)
        return frames

    def _is_frame(self, payload: bytes) -> bool:
        try:
            decoded = self._decoder.decode(payload)
        except DecodeError as error:
            self._skip(error)
            return False
        for one in decoded:
            self.summary.add(one.frame)
        return True

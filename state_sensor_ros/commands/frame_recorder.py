# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The recorder of a live stream whose recordings are written frame by frame, as CARLA's are."""

from __future__ import annotations

import argparse
from contextlib import suppress

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.live import LiveStream
from state_sensor_ros.commands.recorder import Recorder
from state_sensor_ros.errors import DecodeError, TransportError
from state_sensor_ros.payloads import decode_packet, Packet
from state_sensor_ros.pipeline.source import Source
from state_sensor_ros.simulators.simulator import FrameWriter

# Between two attempts to make the first connection.
_RETRY_S = 0.1


class FrameRecorder(Recorder):
    """
    Decoded frames from a stream to a writer.

    :param args: the options of the sub-command.
    :param stream: of the frames.
    :param writer: of the recording.
    """

    def __init__(self, args: argparse.Namespace, stream: LiveStream,
                 writer: FrameWriter) -> None:
        super().__init__(args.frames)
        self._args, self._stream, self._writer = args, stream, writer

    @property
    def source(self) -> Source:
        """Return the source of the stream."""
        return self._stream.source

    @property
    def where(self) -> str:
        """Return what the source connects to."""
        return self._stream.where

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry."""
        return [*self._stream.notes.values(), *filter(None, (self._writer.note,))]

    @property
    def _name(self) -> str:
        return self._writer.name

    def _receive(self) -> None:
        while not self._has_received() and not self.over.wait(_RETRY_S):
            self._stream = LiveStream(self._args, ends=self._args.once)
        self.is_complete = self.is_complete or not self.over.is_set()

    def _has_received(self) -> bool:
        """Receive until the stream ends; return whether it had a connection."""
        # The end of the only connection, or no connection yet; the health has its text.
        with suppress(TransportError):
            self._write_packets()
        return self.health.n_connects > 0

    def _write(self, packet: Packet) -> None:
        try:
            decoded = decode_packet(self._stream.decoder, packet)
        except DecodeError as error:
            self._skip(error)
            return
        self.n_bytes += len(packet.payload)
        for one in decoded:
            self._writer.write(one.frame)
            self.summary.add(one.frame)
            self.n_frames = self._writer.n_frames
            if self._is_full():
                return

    def _save(self, interruption: Interruption) -> None:
        if self.n_frames:
            with interruption.committing():
                self._writer.commit()
        else:
            self._writer.abort()

    def _discard(self) -> str:
        return self._writer.discard()

    def _unsaved(self) -> str:
        return f'the frames are beside {self._writer.name}, in a folder without its name'

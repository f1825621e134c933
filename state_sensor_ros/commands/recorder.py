# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The recorder of a live stream: a thread that receives, the end, and the frames that are kept."""

from __future__ import annotations

from collections.abc import Callable
import threading

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.live import LiveStream
from state_sensor_ros.commands.packet_writer import PacketWriter
from state_sensor_ros.commands.summary import Summary
from state_sensor_ros.errors import counted, DecodeError, TransportError
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.source import Health

# Pause between two attempts at the only connection, s.
_RETRY_S = 0.1


class Recorder:
    """
    Writes packets from a source; one thread receives them, another one ends the recording.

    :param new_stream: function that opens the stream, again if its only connection failed.
    :param writer: writer of the recording.
    :param max_frames: number of frames after which the recording is complete, None for no limit.
    :ivar n_frames: number of frames written so far.
    :ivar n_skipped: number of payloads without a frame; ``last_skipped`` the error of the last.
    :ivar n_bytes: size of the frames, bytes.
    :ivar summary: summary of the frames received.
    :ivar over: event that is set when no more frames are written.
    :ivar is_complete: whether the end set by the options was reached.
    """

    def __init__(self, new_stream: Callable[[], LiveStream], writer: PacketWriter,
                 max_frames: int | None) -> None:
        self.n_frames = self.n_skipped = self.n_bytes = 0
        self.last_skipped = ''
        self.summary = Summary()
        self.over = threading.Event()
        self.is_complete = False
        self._new_stream, self._stream = new_stream, new_stream()
        self._writer, self._max_frames = writer, max_frames
        # Held while a packet is written.
        self._writing = threading.Lock()
        self._error: Exception | None = None
        self._is_closed = self._is_saved = False

    @property
    def where(self) -> str:
        """Return the address that the source connects to."""
        return self._stream.where

    @property
    def until_s(self) -> float:
        """Return the steady time at which the recording is to end, inf for never."""
        return self._stream.until_s

    @property
    def health(self) -> Health:
        """Return the health of the source."""
        return self._stream.source.health

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry."""
        return [*self._stream.notes.values(), *self._writer.notes]

    def run(self) -> None:
        """Receive and write until :meth:`stop`, or the end set by the options."""
        try:
            while not self._has_received() and not self.over.wait(_RETRY_S):
                failures = self.health.failures
                self._stream = self._new_stream()
                self.health.failures = failures
            self.is_complete = self.is_complete or not self.over.is_set()
        except Exception as error:  # noqa: BLE001
            # save() raises any error of this thread again, in the thread that ends the recording.
            self._error = error
        finally:
            self.over.set()

    def stop(self) -> None:
        """End the recording; may be called from any thread."""
        self.over.set()
        self._stream.source.close()

    def save(self, interruption: Interruption) -> None:
        """
        Complete the recording and give it its name; without a frame, remove it.

        :param interruption: signal handling of the program; it does not end the rename.
        :raises SinkError: if that fails; frames that are written already are kept.
        """
        self.stop()
        with self._writing:
            self._is_closed = True
        try:
            self._writer.save(interruption, self._error)
        finally:
            self._is_saved = self._writer.is_saved
        if self._error is not None:
            raise self._error

    def remains(self) -> str:
        """Describe what remains of the recording after a signal."""
        if not self.n_frames:
            return self._writer.output.discard()
        if not self._is_saved:
            return self._writer.unsaved
        n_frames = counted(self.n_frames, 'frame')
        return f'{self._writer.output.name} has what was received: {n_frames}'

    def _has_received(self) -> bool:
        """
        Receive until the stream ends; return whether it had a connection.

        :raises StateSensorError: if the failures of the stream are final.
        """
        try:
            for packet in self._stream.packets():
                with self._writing:
                    if self._is_closed:
                        break
                    self.n_skipped += self._write(packet)
                if self.is_complete:
                    break
        except TransportError:
            if self.health.failures.are_final:
                raise
            # The only connection has ended, or there is none yet; the health has the reason.
        return self.health.n_connects > 0

    def _write(self, packet: Packet) -> int:
        """Write the frames of a packet; return the number of payloads without a frame, 0 or 1."""
        try:
            for frame, n_bytes in self._writer.write(packet, self._stream.decoder):
                self.summary.add(frame)
                self.n_frames += 1
                self.n_bytes += n_bytes
                if self.n_frames == self._max_frames:
                    self.is_complete = True
                    self.stop()
                    break
        except DecodeError as error:
            self.last_skipped = str(error)
            return 1
        return 0

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What recorders of live streams share: receiving in a thread, the end, and what is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
import threading

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.summary import Summary
from state_sensor_ros.errors import counted, DecodeError
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.source import Health, Source


class Recorder(ABC):
    """
    Frames from a source to a recording; one thread receives, another one ends the recording.

    :param max_frames: after which the recording is complete, None for no limit.
    :ivar n_frames: written so far.
    :ivar n_skipped: payloads that are not frames; ``last_skipped`` is the error of the last one.
    :ivar n_bytes: of the frames.
    :ivar summary: of the frames received.
    :ivar over: set when no more frames are written.
    :ivar is_complete: whether the end set by the options was reached.
    """

    def __init__(self, max_frames: int | None) -> None:
        self.n_frames = self.n_skipped = self.n_bytes = 0
        self.last_skipped = ''
        self.summary = Summary()
        self.over = threading.Event()
        self.is_complete = False
        self._max_frames = max_frames
        # Held while a packet is written.
        self._writing = threading.Lock()
        self._error: Exception | None = None
        self._is_closed = self._is_saved = False

    @property
    @abstractmethod
    def source(self) -> Source:
        """Return the source that packets come from now."""

    @property
    @abstractmethod
    def where(self) -> str:
        """Return what the source connects to."""

    @property
    def health(self) -> Health:
        """Return the health of the source."""
        return self.source.health

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry."""
        return []

    def run(self) -> None:
        """Receive and write until :meth:`stop`, or the end set by the options."""
        try:
            self._receive()
        except Exception as error:  # noqa: BLE001
            # Any error of this thread is raised again by save(), in the thread that ends it.
            self._error = error
        finally:
            self.over.set()

    def stop(self) -> None:
        """End the recording; may be called from any thread."""
        self.over.set()
        self.source.close()

    def save(self, interruption: Interruption) -> None:
        """
        Complete the recording and give it its name; without a frame, remove it.

        :param interruption: of the program; it does not end the rename.
        :raises SinkError: where that fails; frames that are written already are kept.
        """
        self.stop()
        with self._writing:
            self._is_closed = True
        self._save(interruption)
        self._is_saved = True
        if self._error is not None:
            raise self._error

    def remains(self) -> str:
        """Return in words what remains of the recording after a signal."""
        if not self.n_frames:
            return self._discard()
        if not self._is_saved:
            return self._unsaved()
        return f'{self._name} has what was received: {counted(self.n_frames, "frame")}'

    def _write_packets(self) -> None:
        """Write packets until the source ends."""
        for packet in self.source.packets():
            with self._writing:
                if not self._is_closed:
                    self._write(packet)

    def _skip(self, error: DecodeError) -> None:
        """Count a payload that is no frame."""
        self.n_skipped += 1
        self.last_skipped = str(error)

    def _is_full(self) -> bool:
        """End the recording where it has all frames; return whether it has."""
        if self.n_frames != self._max_frames:
            return False
        self.is_complete = True
        self.stop()
        return True

    @property
    @abstractmethod
    def _name(self) -> str:
        """Return the name of the recording."""

    @abstractmethod
    def _receive(self) -> None:
        """Call :meth:`_write_packets` for each connection or stream."""

    @abstractmethod
    def _write(self, packet: Packet) -> None:
        """Write the frames of a packet."""

    @abstractmethod
    def _save(self, interruption: Interruption) -> None:
        """Complete and rename, or remove."""

    @abstractmethod
    def _discard(self) -> str:
        """Remove a recording without frames; return that in words."""

    @abstractmethod
    def _unsaved(self) -> str:
        """Return in words where the frames are that :meth:`save` has not completed."""

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The recorder of a live stream whose recordings are written frame by frame, as CARLA's are."""

from __future__ import annotations

import argparse
import threading

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.live import LiveStream
from state_sensor_ros.commands.summary import Summary
from state_sensor_ros.errors import DecodeError, TransportError
from state_sensor_ros.pipeline.source import Health
from state_sensor_ros.simulators.simulator import FrameWriter

# Between two attempts to make the first connection.
_RETRY_S = 0.1


class FrameRecorder:
    """
    Frames from a source to a writer.

    :param args: the options of the sub-command.
    :param stream: of the frames.
    :param writer: of the recording.
    :ivar summary: of the frames received.
    :ivar over: set when no more frames are written.
    :ivar is_complete: whether the end set by the options was reached.
    """

    def __init__(self, args: argparse.Namespace, stream: LiveStream,
                 writer: FrameWriter) -> None:
        self.n_frames = self.n_skipped = self.n_bytes = 0
        self.last_skipped = ''
        self.summary = Summary()
        self.over = threading.Event()
        self.is_complete = False
        self._args, self._writer = args, writer
        self._max_frames: int | None = args.frames
        self._stream = stream
        # Held while a packet is written.
        self._writing = threading.Lock()
        self._error: Exception | None = None
        self._is_closed = self._is_saved = False

    @property
    def health(self) -> Health:
        """Return the health of the source."""
        return self._stream.source.health

    def run(self) -> None:
        """Receive and write until :meth:`stop`, or the end set by the options."""
        try:
            while not self._has_received() and not self.over.wait(_RETRY_S):
                self._stream = LiveStream(self._args, ends=self._args.once)
            self.is_complete = self.is_complete or not self.over.is_set()
        except Exception as error:  # noqa: BLE001
            self._error = error
        finally:
            self.over.set()

    def _has_received(self) -> bool:
        """Receive until the stream ends; return whether it had a connection."""
        try:
            for packet in self._stream.source.packets():
                with self._writing:
                    if not self._is_closed:
                        self._write(packet.payload)
        except TransportError:
            pass  # the end of the only connection, or no connection yet; the health has its text
        return self.health.n_connects > 0

    def stop(self) -> None:
        """End the recording; may be called from any thread."""
        self.over.set()
        self._stream.source.close()

    def save(self, interruption: Interruption) -> None:
        """
        Give the recording its name; without a frame, remove it.

        :param interruption: of the program; it does not end the rename.
        :raises SinkError: where that fails.
        """
        self.stop()
        with self._writing:
            self._is_closed = True
        if self.n_frames:
            with interruption.committing():
                self._writer.commit()
        else:
            self._writer.abort()
        self._is_saved = True
        if self._error is not None:
            raise self._error

    def remains(self) -> str:
        """Return in words what remains of the recording after a signal."""
        if not self.n_frames:
            return self._writer.discard()
        if not self._is_saved:
            return f'the frames are beside {self._writer.name}, in a folder without its name'
        return f'{self._writer.name} has the {self.n_frames} frames that were received'

    def _write(self, payload: bytes | bytearray) -> None:
        """Write the frames of a packet."""
        try:
            decoded = self._stream.decoder.decode(payload)
        except DecodeError as error:
            self.n_skipped += 1
            self.last_skipped = str(error)
            return
        self.n_bytes += len(payload)
        for one in decoded:
            self._writer.write(one.frame)
            self.summary.add(one.frame)
            self.n_frames = self._writer.n_frames
            if self.n_frames == self._max_frames:
                self.is_complete = True
                self.stop()
                return

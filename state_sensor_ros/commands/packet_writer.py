# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Writers of the packets of a live stream to an output of any format.

A format that can hold packets gets the bytes received, any other the decoded frames, and a bag the
messages that the pipeline of the node makes of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NoReturn, TYPE_CHECKING

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.errors import (
    DecodeError,
    reason_of,
    SinkError,
    TrajectoryFormatError,
    TransportError,
)
from state_sensor_ros.files.formats import Format
from state_sensor_ros.files.frame_selection import FrameSelector, RecordingSelection
from state_sensor_ros.files.recording import FrameWriter
from state_sensor_ros.files.whole.output import Output, sink_error
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.frame import EVERYTHING, Frame
from state_sensor_ros.payloads import decode_packet, Packet, PayloadDecoder, SelectingDecoder
from state_sensor_ros.texts import counted

if TYPE_CHECKING:
    from state_sensor_ros.commands.bag_output import BagOutput


class PacketWriter(ABC):

    def __init__(self, output: Output, selection: RecordingSelection) -> None:
        self.output = output
        self.is_saved = False
        self._selector = FrameSelector(selection)
        self._n_frames = 0

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry."""
        return self._selector.unmatched

    @property
    def unsaved(self) -> str:
        """Describe where the frames are before :meth:`save` has completed them."""
        if isinstance(self.output, WholeFile):
            part = self.output.part or self.output.name
            return f'the frames are in {part}, whose end is missing'
        return f'the frames are in a temporary folder beside {self.output.name}'

    @abstractmethod
    def write(self, packet: Packet, decoder: PayloadDecoder) -> Iterator[tuple[Frame, int]]:
        """Write the selected frames of a packet."""
        # Returns each frame after it was written, and its size, bytes.

    def save(self, interruption: Interruption, error: Exception | None) -> None:
        """Complete the output and give it its name; without a frame, remove it."""
        if not self._n_frames:
            self.output.abort()
            return
        with interruption.committing():
            try:
                if isinstance(error, SinkError):
                    raise error
                self.output.complete()
            except BrokenPipeError:
                self.output.abort()
                raise
            except OSError as failure:
                kept = self.output.salvage()
                raise SinkError(self.output.name, _reason(failure) + (
                    f'; what fitted is in {kept}' if kept else '')) from failure
            self.output.finish()
            self.is_saved = True


class FramesWriter(PacketWriter):
    output: FrameWriter  # output of a format that is written frame by frame

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry."""
        return [*super().notes, *self.output.notes, *self.output.losses.lines]

    def write(self, packet: Packet, decoder: PayloadDecoder) -> Iterator[tuple[Frame, int]]:
        decoder.needs = self.output.needs if self._n_frames else EVERYTHING
        selecting = SelectingDecoder(decoder, self._selector, times=True)
        for decoded in decode_packet(selecting, packet):
            try:
                self.output.losses.add(decoded.frame)
                self.output.write(decoded.frame)
            except BrokenPipeError:
                raise
            except OSError as error:
                raise SinkError(self.output.name, _reason(error)) from error
            self._n_frames += 1
            yield decoded.frame, len(packet.payload)


class MessagesWriter(PacketWriter):
    """Writes frames to a bag through the pipeline of the node."""

    output: BagOutput  # bag that has not begun

    def __init__(self, output: BagOutput, selection: RecordingSelection) -> None:
        super().__init__(output, selection)
        self._n_packets = 0

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry."""
        return [*super().notes, *self.output.warnings.lines()]

    def write(self, packet: Packet, decoder: PayloadDecoder) -> Iterator[tuple[Frame, int]]:
        if not self._n_packets:
            self.output.begin(SelectingDecoder(decoder, self._selector, times=True))
        self._n_packets += 1
        for alone in self.output.split(packet):
            frame = self.output.write(alone, f'packet {self._n_packets}')
            if frame is not None:
                self._n_frames += 1
                yield frame, len(alone.payload)


class PacketsWriter(PacketWriter):
    """Writes packets as they are received to a file of a format that can hold them."""

    output: WholeFile  # format with ``payloads``

    def __init__(self, output: Format, file: WholeFile, selection: RecordingSelection) -> None:
        super().__init__(file, selection)
        self._writer = output.keep(file.handle, self._selector)

    def write(self, packet: Packet, decoder: PayloadDecoder) -> Iterator[tuple[Frame, int]]:
        """Write the payload, without the actors that are not selected."""
        fault: DecodeError | None = None
        try:
            for written in self._writer.write(packet):
                self._n_frames += 1
                yield written
        except DecodeError as error:
            fault = error
        if self.output.is_direct:
            # A pipe may be read during the recording.
            self.output.handle.flush()
        if fault is not None:
            raise fault

    def save(self, interruption: Interruption, error: Exception | None) -> None:
        """Complete the file; if writing has failed, keep the frames before that."""
        if self.output.is_direct:
            # A signal may interrupt this: the write blocks if a pipe is not read.
            self._end(error)
        elif self._n_frames or _is_of_output(error):
            with interruption.committing():
                try:
                    self._end(error)
                except SinkError as failure:
                    self._rescue(failure)
                self.output.commit()
        else:
            self.output.abort()
        self.is_saved = True

    def _end(self, error: Exception | None) -> None:
        try:
            if error is not None and _is_of_output(error):
                raise error
            self._writer.close()
            self.output.complete()
        except BrokenPipeError:
            raise
        except OSError as failure:
            raise sink_error(self.output.name, failure) from failure

    def _rescue(self, error: SinkError) -> NoReturn:
        """Keep the frames that were received before writing failed, for example on a full disk."""
        part = self.output.part
        try:
            self._n_frames = self._writer.complete(self.output.reopen())
            self.output.complete()
        except (OSError, TrajectoryFormatError):
            self.output.keep()
            kept = f'the frames are in {part}, whose end is missing'
        else:
            if not self._n_frames:
                self.output.abort()
                raise error
            kept = f'it has the {counted(self._n_frames, "frame")} that fit'
            if self.output.is_taken:
                # A truncated recording must not replace a complete one.
                self.output.keep()
                kept = (f'the {counted(self._n_frames, "frame")} that fit are in '
                        f'{part}; the existing file stays')
            else:
                self.output.commit()
            self.is_saved = True
        raise SinkError(error.where, f'{error.found}; {kept}') from error


def _is_of_output(error: Exception | None) -> bool:
    return isinstance(error, OSError) and not isinstance(error, TransportError)


def _reason(error: OSError) -> str:
    return error.found if isinstance(error, SinkError) else reason_of(error)

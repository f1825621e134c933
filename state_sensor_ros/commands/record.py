# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
`state_sensor record`: the live stream to a recording of any format.

A trajectory has the bytes as received. One thread receives and writes; the main thread completes
the recording between two packets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
import threading
import time

from state_sensor_ros.commands.bag_output import BagOutput
from state_sensor_ros.commands.format_options import (
    ego_of,
    format_named,
    refuse_compression,
    SELECTION,
    selection_of,
)
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.live import LiveStream, refuse_unused_live
from state_sensor_ros.commands.packet_writer import (
    FramesWriter,
    MessagesWriter,
    PacketsWriter,
    PacketWriter,
)
from state_sensor_ros.commands.printing import bar_type, print_line, waiting_named
from state_sensor_ros.commands.summary import show_result, size_of, Summary
from state_sensor_ros.errors import DecodeError, failed_stream, TransportError
from state_sensor_ros.files.formats import BAG, Format, WriteOptions
from state_sensor_ros.files.frame_selection import RecordingSelection, SelectedNames
from state_sensor_ros.files.whole.output import sink_error
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.payloads import Packet
from state_sensor_ros.simulators.output_names import output_format
from state_sensor_ros.simulators.simulator_list import find_simulator
from state_sensor_ros.source import Health
from state_sensor_ros.texts import counted, size

_REFRESH_S = 0.2
# What is older than this survives a kill, where the format allows it. Each flush makes a
# compressed file longer by some bytes.
_FLUSH_S = 1.0
_BUSY_S = 0.2
# Pause between two attempts at the only connection, s.
_RETRY_S = 0.1


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Record until the end set by the options, or a signal; the frames received are kept.

    :param args: the parsed options.
    :param interruption: signal handling of the program.
    :raises SinkError: if OUT exists or cannot be written.
    :raises TransportError: if no frame was received.
    :raises KeyboardInterrupt: if a signal came before the end set by the options, or a frame.
    """
    interruption.unblock_errors()
    recorder = _recorder(args, interruption)
    interruption.describe(recorder.remains, recorder.stop)
    # A daemon thread: the look-up of a host name cannot be interrupted.
    threading.Thread(target=recorder.run, name='record', daemon=True).start()
    with waiting_named(recorder.stream.where, lambda: recorder.n_frames > 0,
                       lambda: recorder.health.reason, is_quiet=args.quiet):
        _watch(recorder, args)
    _warn(recorder, args.out)
    recorder.save(interruption)
    _conclude(recorder, args, interruption)


def _recorder(args: argparse.Namespace, interruption: Interruption) -> Recorder:
    simulator = find_simulator(args.source)
    folder = next((row for row in simulator.formats if not row.suffixes), BAG)
    if args.to is not None:
        format_named(args.to)
    output = output_format(args.out, to=args.to or '', storage=args.storage or '', folder=folder)
    refuse_unused_live(args, SELECTION | output.writes | {'once', 'to'},
                       f'OUT {args.out} is {output.noun}')

    def new_stream() -> LiveStream:
        return LiveStream(args, ends=args.once, own={'publish_clock': args.clock})

    refuse_compression(args, output)
    stream = new_stream()
    tag, origin = ego_of(args)
    return Recorder(stream, new_stream, _writer(output, args, stream, interruption), args.frames,
                    SelectedNames(RecordingSelection(ego=tag, ego_from=origin)))


def _writer(output: Format, args: argparse.Namespace, stream: LiveStream,
            interruption: Interruption) -> PacketWriter:
    """Begin the recording."""
    # Otherwise packets would not be written as received.
    simulator = stream.simulator
    selection = replace(selection_of(args), ego='', ego_from='')
    options = WriteOptions(args.force, stream.settings, vars(args), stream.where, 'stream')
    if output.storage:
        return MessagesWriter(interruption.made(lambda: BagOutput(
            args.out, args.storage or output.storage, simulator.name, options)), selection)
    if not output.payloads or output not in simulator.formats or args.generation:
        return FramesWriter(interruption.made(lambda: output.create(args.out, options)), selection)
    file = interruption.made(lambda: WholeFile(args.out, force=args.force))
    for part in file.other_parts:
        print_line(f'warning: {args.out}: found {part}, of a program that was killed or still '
                   'writes it; after a kill, `state_sensor repair` recovers it')
    return PacketsWriter(output, file, selection)


def _watch(recorder: Recorder, args: argparse.Namespace) -> None:
    """Wait for the end of the recording, and show its progress."""
    with bar_type()(total=args.frames, unit='frame', disable=args.quiet or None,
                    leave=False) as bar:
        period_s = _FLUSH_S if bar.disable else _REFRESH_S
        flush_at_s = time.monotonic() + _FLUSH_S
        while not recorder.over.wait(min(max(
                recorder.stream.until_s - time.monotonic(), 0.0), period_s)):
            if time.monotonic() >= recorder.stream.until_s:
                recorder.is_complete = True
                return
            if time.monotonic() >= flush_at_s:
                recorder.flush()
                flush_at_s = time.monotonic() + _FLUSH_S
            bar.update(recorder.n_frames - bar.n)
            bar.set_postfix_str(_state(recorder))


def _state(recorder: Recorder) -> str:
    health = recorder.health
    if health.state == 'connected':
        return size(recorder.n_bytes)
    return f'{health.state}: {health.last_error}' if health.last_error else health.state


def _warn(recorder: Recorder, out: str) -> None:
    """Print warnings about what may be missing in the recording."""
    if recorder.n_skipped:
        n_skipped = counted(recorder.n_skipped, 'payload')
        print_line(f'warning: {out}: dropped {n_skipped} without a frame; the last: '
                   f'{recorder.last_skipped}')
    for note in recorder.notes:
        print_line(f'warning: {out}: {note}')
    if recorder.health.n_reconnects:
        print_line(f'warning: {out}: the stream was interrupted '
                   f'{counted(recorder.health.n_reconnects, "time")}')


def _conclude(recorder: Recorder, args: argparse.Namespace,
              interruption: Interruption) -> None:
    """
    Print the result.

    :raises TransportError: if there is no frame, and no signal has ended the recording.
    :raises KeyboardInterrupt: if a signal came before the end set by the options, or a frame.
    """
    if not recorder.n_frames:
        interruption.end_without_frame()
        raise failed_stream(recorder.stream.where, recorder.health.reason,
                            recorder.stream.missing)
    has_end = args.once or (args.frames, args.seconds) != (None, None)
    if interruption.number and has_end and not recorder.is_complete:
        raise KeyboardInterrupt
    show_result(args.out, [*recorder.summary.facts, *size_of(args.out)], is_quiet=args.quiet)


class Recorder:
    """
    Writes packets from a source; one thread receives them, another one ends the recording.

    :param stream: stream to record.
    :param new_stream: function that opens it again if its only connection failed.
    :param writer: writer of the recording.
    :param max_frames: number of frames after which the recording is complete, None for no limit.
    :param names: how the ego is selected.
    :ivar stream: the stream, or the last one that was opened.
    :ivar n_frames: number of frames written so far.
    :ivar n_skipped: number of payloads without a frame; ``last_skipped`` the error of the last.
    :ivar n_bytes: size of the frames, bytes.
    :ivar summary: summary of the frames received.
    :ivar over: event that is set when no more frames are written.
    :ivar is_complete: whether the end set by the options was reached.
    """

    def __init__(self, stream: LiveStream, new_stream: Callable[[], LiveStream],
                 writer: PacketWriter, max_frames: int | None, names: SelectedNames) -> None:
        self.n_frames = self.n_skipped = self.n_bytes = 0
        self.last_skipped = ''
        self.summary = Summary()
        self.over = threading.Event()
        self.is_complete = False
        self.stream, self._new_stream = stream, new_stream
        self._writer, self._max_frames, self._names = writer, max_frames, names
        # Held while a packet is written.
        self._writing = threading.Lock()
        self._error: Exception | None = None
        self._is_closed = self._is_saved = False

    @property
    def health(self) -> Health:
        """Return the health of the source."""
        return self.stream.source.health

    @property
    def notes(self) -> list[str]:
        """Return lines about what the recording does not carry."""
        return [*self.stream.notes.values(), *self._writer.notes,
                *self._names.lines(is_empty=False)]

    def run(self) -> None:
        """Receive and write until :meth:`stop`, or the end set by the options."""
        try:
            while not self._has_received() and not self.over.wait(_RETRY_S):
                failures = self.health.failures
                before, self.stream = self.stream, self._new_stream()
                self.stream.continue_from(before)
                self.health.failures = failures
            self.is_complete = self.is_complete or not self.over.is_set()
        except Exception as error:  # noqa: BLE001
            # save() raises any error of this thread again, in the thread that ends the recording.
            self._error = error
        finally:
            self.over.set()

    def flush(self) -> None:
        """Write the frames so far, as far as the format allows; an error ends the recording."""
        # A writer may wait for the reader of a pipe.
        if not self._writing.acquire(timeout=_BUSY_S):
            return
        try:
            if self.n_frames:
                self._writer.output.flush()
        except OSError as error:
            self._error = sink_error(self._writer.output.name, error)
            self.stop()
        finally:
            self._writing.release()

    def stop(self) -> None:
        """End the recording; may be called from any thread."""
        self.over.set()
        self.stream.source.close()

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
            for packet in self.stream.packets():
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
            for frame, n_bytes in self._writer.write(packet, self.stream.decoder):
                self.summary.add(frame)
                self._names.add(frame)
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

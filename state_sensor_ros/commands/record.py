# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# flake8: noqa: I100
"""
`state_sensor record`: the live stream to a trajectory file, each frame with the bytes received.

The stream of another simulator becomes a recording of its own form: of CARLA, a dataset. A thread
receives and writes; the main thread completes the file between two packets.
"""

from __future__ import annotations

import argparse
import math
import threading
import time
from typing import NoReturn

from tqdm import tqdm

from state_sensor_ros.commands.frame_recorder import FrameRecorder
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.live import (
    add_live_arguments,
    check_options_of_others,
    LiveStream,
    MONODRIVE,
    simulator_of,
)
from state_sensor_ros.commands.options import add_quiet
from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.commands.summary import show_result, size_of, Summary
from state_sensor_ros.errors import (
    ConfigError,
    DecodeError,
    failed_stream,
    SinkError,
    TrajectoryFormatError,
    TransportError,
)
from state_sensor_ros.frame import Needs
from state_sensor_ros.monodrive.decoder import Decoder
from state_sensor_ros.monodrive.sensor_port import open_sensor_port
from state_sensor_ros.monodrive.tag_filter import TagFilter
from state_sensor_ros.monodrive.trajectory import complete_trajectory, TrajectoryWriter
from state_sensor_ros.recordings.files.whole_file import WholeFile
from state_sensor_ros.settings import parse_settings

_EPILOG = (
    'Recording ends with --frames, --seconds or Ctrl-C; where the simulator closes the connection '
    'or is restarted, the recorder connects again (see --once). OUT is created at the end; until '
    'then, and after a crash, the frames received are beside it in .OUT.part.')
_REFRESH_S = 0.2
# Each flush makes a compressed file longer by some bytes.
_FLUSH_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options.

    :param parser: of this sub-command.
    """
    parser.epilog = _EPILOG
    parser.add_argument('out', metavar='OUT', help='trajectory to write, - for standard output; '
                        'of carla, the folder of a dataset, without images')
    add_live_arguments(parser)
    parser.add_argument('--once', action='store_true',
                        help='end when the simulator closes the connection')
    parser.add_argument('--desired-tags', nargs='+', action='extend', default=[], metavar='TAG',
                        help='keep only actors with one of these tags')
    parser.add_argument('--undesired-tags', nargs='+', action='extend', default=[], metavar='TAG',
                        help='leave out actors with one of these tags')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_quiet(parser)


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Record until the end set by the options, or a signal; the frames received are kept.

    :param args: the parsed options.
    :param interruption: of the program.
    :raises SinkError: where OUT exists or cannot be written.
    :raises TransportError: where no frame was received.
    :raises KeyboardInterrupt: where a signal came before the end set by the options.
    """
    recorder = _recorder(args, interruption)
    interruption.stopped_by(recorder.stop, recorder.remains)
    # A daemon: the look-up of a host's name cannot be interrupted.
    threading.Thread(target=recorder.run, name='record', daemon=True).start()
    _watch(recorder, args)
    _warn(recorder, args.out)
    recorder.save(interruption)
    _conclude(recorder, args, interruption)


def _recorder(args: argparse.Namespace, interruption: Interruption) -> Recorder | FrameRecorder:
    simulator = simulator_of(args)
    if args.protocol != MONODRIVE:
        if args.desired_tags or args.undesired_tags:
            raise ConfigError('--desired-tags', 'tags', f'none with --protocol {args.protocol}: a '
                              'recording of it has every actor')
        stream = LiveStream(args, ends=args.once)
        writer = interruption.made(lambda: simulator.new_writer(args.out, force=args.force))
        return FrameRecorder(args, stream, writer)
    check_options_of_others(args)
    file = interruption.made(lambda: WholeFile(args.out, force=args.force))
    for part in file.left_behind:
        print_line(f'warning: {args.out}: found {part}, left by a program that was killed; '
                   '`state_sensor repair` makes a recording of it')
    return Recorder(args, file)


class Recorder:
    """
    Frames from the source to the file.

    :param args: the options of the sub-command.
    :param file: to write.
    :ivar summary: of the frames received.
    :ivar over: set when no more frames are written.
    :ivar is_complete: whether the end set by the options was reached.
    """

    def __init__(self, args: argparse.Namespace, file: WholeFile) -> None:
        self.n_frames = self.n_skipped = self.n_bytes = 0
        self.last_skipped = ''
        self.summary = Summary()
        self.over = threading.Event()
        self.is_complete = False
        self._max_frames: int | None = args.frames
        self._once: bool = args.once
        self._filter = TagFilter(tuple(args.desired_tags), tuple(args.undesired_tags))
        self._decoder = Decoder(needs=Needs())
        self._source = open_sensor_port(
            parse_settings({'host': args.host, 'port': args.port}),
            before_connect=self._before_connect)
        self.health = self._source.health
        self._file = file
        self._writer = TrajectoryWriter(file.handle)
        # Held while a packet is written.
        self._writing = threading.Lock()
        self._error: Exception | None = None
        self._is_closed = self._is_saved = False
        self._flush_at_s = 0.0

    def run(self) -> None:
        """Receive and write until :meth:`stop`, or the end set by the options."""
        try:
            for packet in self._source.packets():
                with self._writing:
                    if not self._is_closed:
                        self._write(bytes(packet.payload))
        except Exception as error:  # noqa: BLE001
            self._error = error
        finally:
            self.over.set()

    def stop(self) -> None:
        """End the recording; may be called from any thread."""
        self.over.set()
        self._source.close()

    def save(self, interruption: Interruption) -> None:
        """
        Write the end of the file and rename it to OUT; without a frame, remove it.

        :param interruption: of the program; it does not end the rename.
        :raises SinkError: where that fails; the frames in the file are kept.
        """
        self.stop()
        with self._writing:
            self._is_closed = True
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
        self._is_saved = True
        if self._error is not None:
            raise self._error

    def remains(self) -> str:
        """Return in words what remains of the recording after a signal."""
        if not self.n_frames:
            return self._file.discard()
        if not self._is_saved:
            return f'the frames are in {self._file.part or self._file.name}, without its end'
        return f'{self._file.name} has the {self.n_frames} frames that were received'

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
            expected = f'room for more than the {self.n_frames} frames in it now'
            if self._file.is_taken:
                # A truncated recording must not replace a complete one.
                self._file.keep()
                expected = (f'room for more than the {self.n_frames} frames that are in {part}; '
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

    def _write(self, payload: bytes) -> None:
        """Write the frames of a packet."""
        for frame in self._frames(payload):
            self._writer.write(frame)
            self.n_frames = self._writer.n_frames
            self.n_bytes += len(frame)
            if self.n_frames == self._max_frames:
                self.is_complete = True
                self.stop()
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

    def _skip(self, error: DecodeError) -> None:
        self.n_skipped += 1
        self.last_skipped = str(error)


def _watch(recorder: Recorder | FrameRecorder, args: argparse.Namespace) -> None:
    """Wait for the end of the recording, and show its progress."""
    end_s = math.inf if args.seconds is None else time.monotonic() + args.seconds
    with tqdm(total=args.frames, unit='frame', disable=args.quiet or None, leave=False) as bar:
        period_s = threading.TIMEOUT_MAX if bar.disable else _REFRESH_S
        while not recorder.over.wait(min(max(end_s - time.monotonic(), 0.0), period_s)):
            if time.monotonic() >= end_s:
                recorder.is_complete = True
                return
            bar.update(recorder.n_frames - bar.n)
            bar.set_postfix_str(_state(recorder))


def _state(recorder: Recorder | FrameRecorder) -> str:
    health = recorder.health
    if health.state == 'connected':
        return tqdm.format_sizeof(recorder.n_bytes, 'B')
    return f'{health.state}: {health.last_error}' if health.last_error else health.state


def _warn(recorder: Recorder | FrameRecorder, out: str) -> None:
    """Print what may be missing in the recording."""
    if recorder.n_skipped:
        print_line(f'{out}: left out {recorder.n_skipped} payloads that are not frames; the last: '
                   f'{recorder.last_skipped}')
    if recorder.health.n_reconnects:
        print_line(f'{out}: the stream was interrupted {recorder.health.n_reconnects} times')


def _conclude(recorder: Recorder | FrameRecorder, args: argparse.Namespace,
              interruption: Interruption) -> None:
    """
    Print the result.

    :raises TransportError: where there is no frame, and no signal has ended the recording.
    :raises KeyboardInterrupt: where a signal came before the end set by the options.
    """
    last_error = recorder.health.last_error
    has_end = args.once or (args.frames, args.seconds) != (None, None)
    if interruption.number and has_end and not recorder.is_complete:
        raise KeyboardInterrupt
    if recorder.n_frames:
        show_result(args.out, [*recorder.summary.facts, *size_of(args.out)], is_quiet=args.quiet)
    elif interruption.number:
        print_line(f'{args.out}: no frame was received, nothing was written')
    else:
        raise failed_stream(f'{args.host}:{args.port}', last_error, 'no frame', 'a stream of them')

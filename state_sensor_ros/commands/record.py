# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
`state_sensor record`: the live stream to a trajectory file, as it comes and as it is.

May know: options, files, progress, interruption. Must not know: sockets, what is in a frame. A
thread receives and writes, and the main thread completes the file, between two packets.
"""

from __future__ import annotations

import argparse
import math
import sys
import threading
import time
from typing import NoReturn

from tqdm import tqdm

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.options import add_stream_arguments, count, seconds
from state_sensor_ros.errors import DecodeError, SinkError, TrajectoryFormatError, TransportError
from state_sensor_ros.frame import Needs
from state_sensor_ros.monodrive.decode import Decoder
from state_sensor_ros.monodrive.sensor_port import open_sensor_port
from state_sensor_ros.monodrive.tag_filter import TagFilter
from state_sensor_ros.monodrive.trajectory import mend, TrajectoryWriter
from state_sensor_ros.recordings.files.whole_file import WholeFile
from state_sensor_ros.settings import parse_settings

NAME = 'record'
HELP = 'write the live stream to a trajectory'
_EPILOG = (
    'Recording goes on until --frames, --seconds or Ctrl-C; where the simulator closes the '
    'connection or is restarted, it is connected to again (see --once). OUT appears at the end; '
    'until then, and after a crash, what has come lies beside it in .OUT.part.')
_REFRESH_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options.

    :param parser: of this sub-command.
    """
    parser.epilog = _EPILOG
    parser.add_argument('out', metavar='OUT', help='trajectory to write, - for standard output')
    add_stream_arguments(parser)
    parser.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    parser.add_argument('--seconds', type=seconds, metavar='S',
                        help='end S seconds after the start of the program')
    parser.add_argument('--once', action='store_true',
                        help='end when the simulator closes the connection')
    parser.add_argument('--desired-tags', nargs='+', action='extend', default=[], metavar='TAG',
                        help='keep only actors with one of these tags')
    parser.add_argument('--undesired-tags', nargs='+', action='extend', default=[], metavar='TAG',
                        help='leave out actors with one of these tags')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Record until the end that the options name, or a signal; what has come is kept.

    :param args: the parsed options.
    :param interruption: of the program.
    :raises SinkError: where OUT exists or cannot be written.
    :raises TransportError: where no frame came.
    :raises KeyboardInterrupt: where a signal came before the end that the options name.
    """
    file = interruption.made(lambda: WholeFile(args.out, force=args.force))
    for part in file.left_behind:
        print(f'warning: {args.out}: found {part}, left by a program that was killed; '
              '`state_sensor repair` makes a recording of it', file=sys.stderr)
    recorder = Recorder(args, file)
    interruption.stopped_by(recorder.stop, recorder.remains)
    # Not waited for at the end: the look-up of a host's name cannot be interrupted.
    threading.Thread(target=recorder.run, name='record', daemon=True).start()
    _watch(recorder, args)
    _warn(recorder, args.out)
    recorder.save(interruption)
    _conclude(recorder, args, interruption)


class Recorder:
    """
    Frames from the source to the file.

    :param args: the options of the sub-command.
    :param file: to write.
    :ivar over: set when no more frames are to come.
    :ivar is_complete: whether all has come that the options ask for.
    """

    def __init__(self, args: argparse.Namespace, file: WholeFile) -> None:
        self.n_frames = self.n_skipped = self.n_bytes = 0
        self.last_skipped = ''
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

    def run(self) -> None:
        """Receive and write until :meth:`stop`, or what the options say."""
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
        """Have no more frames come, from any thread."""
        self.over.set()
        self._source.close()

    def save(self, interruption: Interruption) -> None:
        """
        Write the end of the file and give it its name; without a frame, leave none.

        :raises SinkError: where that fails; the frames that are in the file are kept.
        """
        self.stop()
        with self._writing:
            self._is_closed = True
        if self._file.is_direct:
            # A signal may end this: the reader of a pipe may not go on.
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
        """Say what a signal leaves of the recording."""
        if not self.n_frames:
            return self._file.discard()
        if not self._is_saved:
            return f'what has come is in {self._file.part or self._file.name}, without its end'
        return f'{self._file.name} has the {self.n_frames} frames that have come'

    def _end(self) -> None:
        """
        Write the end of the file, whatever has ended :meth:`run`.

        :raises SinkError: where that fails, or writing has failed before.
        :raises BrokenPipeError: where the reader of a pipe has left.
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
        Keep what was received before writing failed, such as on a full disk.

        :raises SinkError: saying where it is.
        """
        part = self._file.part
        try:
            self.n_frames = mend(self._file.reopen())
            self._file.complete()
        except (OSError, TrajectoryFormatError):
            self._file.keep()
            expected = f'room to end the file; what has come is in {part}, without its end'
        else:
            if not self.n_frames:
                self._file.abort()
                raise error
            expected = f'room for more than the {self.n_frames} frames in it now'
            if self._file.is_taken:
                # A recording that was cut short is no replacement for a whole one.
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
        if self._file.is_direct:
            # A pipe may be read meanwhile.
            self._file.handle.flush()

    def _frames(self, payload: bytes) -> list[bytes]:
        """Return the frames of a payload that a trajectory may have; count the others."""
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
            self._decoder.decode(payload)
        except DecodeError as error:
            self._skip(error)
            return False
        return True

    def _skip(self, error: DecodeError) -> None:
        self.n_skipped += 1
        self.last_skipped = str(error)


def _watch(recorder: Recorder, args: argparse.Namespace) -> None:
    """Wait for the end of the recording, and show how it goes."""
    end_s = math.inf if args.seconds is None else time.monotonic() + args.seconds
    with tqdm(total=args.frames, unit='frame', disable=None, leave=False) as bar:
        period_s = threading.TIMEOUT_MAX if bar.disable else _REFRESH_S
        while not recorder.over.wait(min(max(end_s - time.monotonic(), 0.0), period_s)):
            if time.monotonic() >= end_s:
                recorder.is_complete = True
                return
            bar.update(recorder.n_frames - bar.n)
            bar.set_postfix_str(_state(recorder))


def _state(recorder: Recorder) -> str:
    health = recorder.health
    if health.state == 'connected':
        return tqdm.format_sizeof(recorder.n_bytes, 'B')
    return f'{health.state}: {health.last_error}' if health.last_error else health.state


def _warn(recorder: Recorder, out: str) -> None:
    """Say what may be missing in the recording."""
    if recorder.n_skipped:
        print(f'{out}: left out {recorder.n_skipped} payloads that are no frame; the last: '
              f'{recorder.last_skipped}', file=sys.stderr)
    if recorder.health.n_reconnects:
        print(f'{out}: the stream was interrupted {recorder.health.n_reconnects} times',
              file=sys.stderr)


def _conclude(recorder: Recorder, args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Say what has become of OUT.

    :raises TransportError: where it has no frame, and no signal has ended the recording.
    :raises KeyboardInterrupt: where a signal came before the end that the options name.
    """
    last_error = recorder.health.last_error
    has_end = args.once or (args.frames, args.seconds) != (None, None)
    if interruption.number and has_end and not recorder.is_complete:
        raise KeyboardInterrupt
    if recorder.n_frames:
        if sys.stderr.isatty():
            print(f'{args.out}: {recorder.n_frames} frames, '
                  f'{tqdm.format_sizeof(recorder.n_bytes, "B")}', file=sys.stderr)
    elif interruption.number:
        print(f'{args.out}: no frame has come, nothing was written', file=sys.stderr)
    else:
        raise TransportError(f'{args.host}:{args.port}', 'no frame'
                             + (f' ({last_error})' if last_error else ''), 'a stream of them')

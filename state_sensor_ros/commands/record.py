# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
`state_sensor record`: the live stream to a trajectory file, as it comes and as it is.

May know: options, files, progress, interruption. Must not know: sockets, what is in a frame. A
thread writes, so that an interruption never comes between two halves of a frame.
"""

from __future__ import annotations

import argparse
from concurrent.futures import Future, ThreadPoolExecutor, wait
import sys
import time

from tqdm import tqdm

from state_sensor_ros.commands.options import add_stream_arguments, count, seconds
from state_sensor_ros.decode import Decoder
from state_sensor_ros.errors import DecodeError, SinkError, TrajectoryFormatError, TransportError
from state_sensor_ros.frame import Needs
from state_sensor_ros.sinks.whole_file import WholeFile
from state_sensor_ros.sources.tcp import TcpSource
from state_sensor_ros.tag_filter import TagFilter
from state_sensor_ros.trajectory import mend, TrajectoryWriter

NAME = 'record'
HELP = 'write the live stream to a trajectory'
_EPILOG = (
    'Recording goes on until --frames, --seconds or Ctrl-C; where the simulator closes the '
    'connection or is restarted, it is connected to again (see --once). OUT appears at the end; '
    'until then, and after a crash, what has come lies beside it in .OUT.*.part.')
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


def run(args: argparse.Namespace) -> None:
    """
    Record until told to stop; an interruption is such a telling.

    :param args: the parsed options.
    :raises SinkError: where OUT exists or cannot be written.
    :raises TransportError: where no frame came.
    """
    recorder = Recorder(args)
    recording: Future[None] | None = None
    was_interrupted = False
    with ThreadPoolExecutor(1, thread_name_prefix='record') as executor:
        try:
            recording = executor.submit(recorder.run)
            _watch(recording, recorder, args)
        except KeyboardInterrupt:
            was_interrupted = True
        finally:
            recorder.stop()
    _warn(recorder, args.out)
    if recording is not None:
        recording.result()
    _conclude(recorder, args, was_interrupted)


class Recorder:
    """
    What one thread does: frames from the source to the file.

    :param args: the options of the sub-command.
    :raises SinkError: where OUT exists or cannot be written.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.n_frames = self.n_skipped = self.n_bytes = 0
        self.last_skipped = ''
        self._max_frames: int | None = args.frames
        self._once: bool = args.once
        self._filter = TagFilter(tuple(args.desired_tags), tuple(args.undesired_tags))
        self._decoder = Decoder(needs=Needs())
        self._source = TcpSource(args.host, args.port, before_connect=self._before_connect)
        self.health = self._source.health
        self._file = WholeFile(args.out, force=args.force)

    def run(self) -> None:
        """
        Record until :meth:`stop`, or what the options say.

        :raises SinkError: where OUT cannot be written; what came before is kept.
        """
        writer = TrajectoryWriter(self._file.handle)
        try:
            self._write_frames(writer)
            if self.n_frames or self._file.is_direct:
                writer.close()
                self._file.commit()
            else:
                self._file.abort()
        except (SinkError, BrokenPipeError):
            raise
        except OSError as error:
            self._rescue(error)

    def stop(self) -> None:
        """Have :meth:`run` finish the file soon, from any thread."""
        self._source.close()

    def _before_connect(self) -> None:
        if self._once and self.health.n_connects:
            self.stop()
            raise TransportError('record', 'the end of the stream', 'no more')

    def _write_frames(self, writer: TrajectoryWriter) -> None:
        for packet in self._source.packets():
            for frame in self._frames(bytes(packet.payload)):
                writer.write(frame)
                self.n_frames = writer.n_frames
                self.n_bytes += len(frame)
                if self.n_frames == self._max_frames:
                    self.stop()
                    return
            if self._file.is_direct:
                # Somebody may be reading along.
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

    def _rescue(self, error: OSError) -> None:
        """Keep what was received before writing failed, such as on a full disk."""
        failure = self._file.error(error)
        if self._file.is_direct:
            raise failure from error
        try:
            self.n_frames = mend(self._file.reopen())
            self._file.commit()
        except (OSError, TrajectoryFormatError) as again:
            raise failure from again
        raise SinkError(failure.where, failure.found,
                        f'room for more than the {self.n_frames} frames in it now') from error


def _watch(recording: Future[None], recorder: Recorder, args: argparse.Namespace) -> None:
    """Wait for the end of the recording, and show how it goes."""
    end_s = None if args.seconds is None else time.monotonic() + args.seconds
    with tqdm(total=args.frames, unit='frame', disable=None, leave=False) as bar:
        while not recording.done() and (end_s is None or time.monotonic() < end_s):
            rest_s = None if end_s is None else max(end_s - time.monotonic(), 0.0)
            if bar.disable:
                wait([recording], rest_s)
            else:
                wait([recording], min(_REFRESH_S, _REFRESH_S if rest_s is None else rest_s))
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


def _conclude(recorder: Recorder, args: argparse.Namespace, was_interrupted: bool) -> None:
    """
    Say what has become of OUT.

    :raises TransportError: where nothing has, and nobody has ended that.
    """
    last_error = recorder.health.last_error
    if recorder.n_frames:
        if sys.stderr.isatty():
            print(f'{args.out}: {recorder.n_frames} frames, '
                  f'{tqdm.format_sizeof(recorder.n_bytes, "B")}', file=sys.stderr)
    elif was_interrupted:
        print(f'{args.out}: no frame has come, nothing was written', file=sys.stderr)
    else:
        raise TransportError(f'{args.host}:{args.port}', 'no frame'
                             + (f' ({last_error})' if last_error else ''), 'a stream of them')

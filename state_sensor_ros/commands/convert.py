# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
`state_sensor convert` and `record`: a recording, or a live stream, to a recording of any format.

Both are one loop from a reader to a writer. Bags are written by the same pipeline as the node's
topics. Several recordings are converted by :mod:`state_sensor_ros.commands.batch`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
import math
import threading

from state_sensor_ros import ends, errors
from state_sensor_ros.commands import options, reading
from state_sensor_ros.commands.terminal import print_warnings, show_result, size_of, Summary
from state_sensor_ros.files import Format, output_format, player, WriteOptions
from state_sensor_ros.files.output import refuse_part
from state_sensor_ros.files.recording import FrameWriter, RecordingReader
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.pipeline.checks import Checks, SAMPLED
from state_sensor_ros.settings import Settings
from state_sensor_ros.texts import counted

_CONVERT_EPILOG = """examples:
  state_sensor convert drive.json drive_bag
  state_sensor convert drive_bag ego.parquet --desired-tags ego --rate 10
  state_sensor convert 'days/**/*.json' bags --to mcap"""
_RECORD_EPILOG = """OUT is created at the end; until then, and after a crash, .OUT.part has the
frames.

examples:
  state_sensor record drive_bag --desired-tags vehicle,ego
  state_sensor record town.mcap --frames 500 -p ego_frame:=base_link"""
# What is older than this survives a kill, where the format allows it. Each flush makes a
# compressed file longer by some bytes.
_FLUSH_S = 1.0


def add_convert(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `convert` to ``parser``."""
    parser.epilog = _CONVERT_EPILOG
    options.add_input(parser, 'input', metavar='IN', nargs='+', more='; many with --to')
    parser.add_argument('output', metavar='OUT', help='file or folder to write; its suffix '
                        'determines the format. A name without suffix is the folder of a bag; '
                        '- is standard output; with --to, the folder of many outputs')
    options.add(parser, 'output', 'batch', 'bag', 'selection', 'writing')


def add_record(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `record` to ``parser``."""
    parser.epilog = _RECORD_EPILOG
    parser.add_argument('output', metavar='OUT', help='file or folder; the suffix sets its '
                        'format. Without one it is the folder of a bag; - is standard output')
    parser.add_argument('--once', action='store_true',
                        help='end when the simulator closes the connection')
    options.add(parser, 'output', 'stream', 'actors', 'writing')


def run_convert(args: argparse.Namespace) -> None:
    """Convert one recording, or many; OUT appears when it is complete."""
    if args.to is not None:
        from state_sensor_ros.commands.batch import convert_many
        convert_many(args)
        return
    if len(args.input) > 1 or args.jobs is not None or args.dask:
        raise errors.UsageError('several inputs need --to FORMAT; OUT is then a folder')
    output = output_format(args.output, storage=args.storage or '')
    settings, opened = reading.open_frames(args, args.input[0], has_clock=args.clock)
    with closing(opened) as reader:
        if output.storage and settings.stamp_source == 'ros':
            raise errors.ConfigError(
                'stamp_source', 'ros', 'game_time or utc: a recording is not live')
        _write(args, output, reader, settings)


def run_record(args: argparse.Namespace) -> None:
    """Record until the end set by the options, or a signal; the frames received are kept."""
    output = output_format(args.output, to=args.to or '', storage=args.storage or '')
    if not args.force:
        refuse_part(args.output)
    with closing(reading.LiveRecording(args, ends=args.once, has_clock=args.clock)) as stream:
        _write(args, output, stream, stream.settings)


def _write(args: argparse.Namespace, output: Format, reader: RecordingReader,
           settings: Settings) -> None:
    """Write the selected frames of a recording or a live stream, and print the result."""
    stream = reader if isinstance(reader, reading.LiveRecording) else None
    summary, remarks, failure = Summary(), _Remarks(), None
    target = WriteOptions(args.force, settings, vars(args), reader.name, reader.format_name,
                          None if stream else reader)
    with output.create(args.output, target) as writer:
        # A frame is written as a whole, except to a pipe, whose reader may have stopped.
        held = ends.signals_held if stream or writer.part is not None else nullcontext
        selected = FrameLoop(reader, is_timed=writer.is_timed and stream is None,
                             selection=options.selection_of(args))
        frames = reading.read_frames(selected, 'convert' if stream is None else 'record',
                                     is_quiet=args.quiet)
        try:
            # Closed, the source knows what it has not read.
            with _salvaging(writer, stream), closing(frames), \
                    _flushed(writer, is_live=stream is not None) as lock:
                for frame in frames if stream else player.with_upcoming(frames, settings):
                    if not writer.checks:
                        remarks.add(frame)
                    with held(), lock:
                        writer.losses.add(frame)
                        n_before = writer.n_frames
                        writer.write(frame)
                        if writer.n_frames > n_before:
                            summary.add(frame)
                        if writer.part is None:
                            # The reader of a pipe waits for it.
                            writer.flush()
        except (KeyboardInterrupt, errors.TransportError) as end:
            # The ordinary end of a stream, or its failure: what has come is kept.
            if stream is None or not summary.n_frames:
                raise
            failure = end if isinstance(end, errors.TransportError) else None
        print_warnings(reader.name, [*writer.remarks, *remarks.lines])
        if stream is None:
            selected.reader.check(summary.n_frames)
        with _salvaging(writer, stream):
            writer.finish()
    print_warnings(args.output, [*writer.notes, *writer.losses.lines,
                                 *(() if stream is None else stream.lines)])
    if failure is not None:
        raise failure
    show_result(args.output, [*summary.facts, *size_of(args.output)], is_quiet=args.quiet)


@contextmanager
def _salvaging(writer: FrameWriter, stream: reading.LiveRecording | None) -> Iterator[None]:
    """Keep what can be read of a recorded stream that fails, such as on a full disk."""
    try:
        yield
    except OSError as error:
        if stream is None or isinstance(error, BrokenPipeError) or not (
                isinstance(error, errors.SinkError) or error.filename):
            raise
        kept = writer.salvage()
        raise errors.SinkError(writer.name, (
            error.found if isinstance(error, errors.SinkError) else errors.reason_of(error)) + (
                f'; what fitted is in {kept}' if kept else '')) from error


class _Remarks:
    """What is noticed of frames that are written: inconsistent ones, a clock that goes back."""

    def __init__(self) -> None:
        self._checks, self._complaints = Checks(periods_s=SAMPLED), list[str]()
        self._last_s, self._n_back, self._first = -math.inf, 0, ''

    def add(self, frame: Frame) -> None:
        """Look at a frame."""
        if frame.game_time < self._last_s:
            self._checks.restart()
            self._n_back += 1
            self._first = self._first or f'{self._last_s:.6g} s, then {frame.game_time:.6g}'
        if not math.isnan(frame.game_time):
            self._last_s = frame.game_time
        if frame.game_time >= self._checks.next_s:
            self._checks.add(frame)
            self._complaints += self._checks.new_complaints()

    @property
    def lines(self) -> list[str]:
        """Return one line for each kind."""
        back = (f'the clock goes back {counted(self._n_back, "time")}, first from {self._first} '
                's: another run, or frames that are not in order')
        return [*self._complaints, *([back] if self._n_back else [])]


@contextmanager
def _flushed(writer: FrameWriter, *, is_live: bool) -> Iterator[threading.Lock]:
    """Write what a stream has brought each second, also while it pauses; yield a lock."""
    lock, over = threading.Lock(), threading.Event()

    def flush() -> None:
        while not over.wait(_FLUSH_S):
            # The next write or the end fails as well.
            with lock, suppress(OSError, errors.StateSensorError):
                writer.flush()

    thread = threading.Thread(target=flush, name='flush', daemon=True)
    if is_live:
        thread.start()
    try:
        yield lock
    finally:
        over.set()
        if is_live:
            thread.join()

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor record`: the live stream to a recording of any format, as `convert` writes it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from threading import Event, Lock, Thread

from state_sensor_ros.commands import options
from state_sensor_ros.commands.convert import write_frames, writing
from state_sensor_ros.commands.live import LiveRecording
from state_sensor_ros.commands.reading import read_frames, warn_of_unmatched
from state_sensor_ros.commands.terminal import show_result, size_of, Summary
from state_sensor_ros.errors import reason_of, SinkError, StateSensorError, TransportError
from state_sensor_ros.files import output_format, WriteOptions
from state_sensor_ros.files.output import refuse_part
from state_sensor_ros.files.recording import FrameWriter
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.texts import counted

# What is older than this survives a kill, where the format allows it. Each flush makes a
# compressed file longer by some bytes.
_FLUSH_S = 1.0


_EPILOG = """OUT is created at the end; until then, and after a crash, .OUT.part has the
frames.

examples:
  state_sensor record drive_bag --desired-tags vehicle,ego
  state_sensor record town.mcap --frames 500 -p ego_frame:=base_link"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('out', metavar='OUT', help='file or folder; the suffix sets its format. '
                        'Without one it is the folder of a bag; - is standard output')
    parser.add_argument('--once', action='store_true',
                        help='end when the simulator closes the connection')
    options.add_force(parser)
    options.add_quiet(parser)
    options.add_stream_options(parser)
    options.add_selection(parser, has_times=False)
    options.add_writing_options(parser)


def run(args: argparse.Namespace) -> None:
    """
    Record until the end set by the options, or a signal; the frames received are kept.

    :param args: the parsed options.
    :raises SinkError: if OUT exists or cannot be written.
    :raises TransportError: if no frame was received.
    """
    if args.to is not None:
        options.format_named(args.to)
    output = output_format(args.out, to=args.to or '', storage=args.storage or '')
    if not args.force:
        refuse_part(args.out)
    summary, failures = Summary(), list[TransportError]()
    with closing(LiveRecording(args, ends=args.once, has_clock=args.clock)) as stream:
        target = WriteOptions(args.force, stream.settings, vars(args), stream.name, 'stream')
        with writing(output, args.out, target) as writer:
            recording = FrameLoop(stream, is_timed=False, selection=options.selection_of(args))
            try:
                with _flushed(writer) as lock:
                    lines = write_frames(recording, _up_to(
                        read_frames(recording, 'record', is_quiet=args.quiet), summary,
                        failures), writer, summary, lock)
                writer.finish()
            except BrokenPipeError:
                raise
            except OSError as error:
                if not isinstance(error, SinkError) and error.filename is None:
                    raise
                kept = writer.salvage()
                raise SinkError(args.out, (
                    error.found if isinstance(error, SinkError) else reason_of(error)) + (
                        f'; what fitted is in {kept}' if kept else '')) from error
        n_reconnects = stream.source.health.n_reconnects
    warn_of_unmatched(args.out, [
        *(text for kind, text in stream.notes.items() if kind != 'clocks'), *lines,
        *writer.notes, *writer.losses.lines, *(
            (f'the stream was interrupted {counted(n_reconnects, "time")}',)
            if n_reconnects else ())])
    if failures:
        raise failures[0]
    show_result(args.out, [*summary.facts, *size_of(args.out)], is_quiet=args.quiet)


def _up_to(frames: Iterator[Frame], summary: Summary,
           failures: list[TransportError]) -> Iterator[Frame]:
    """Yield frames up to a failure of the stream, which is kept; without any it is raised."""
    try:
        yield from frames
    except TransportError as error:
        if not summary.n_frames:
            raise
        failures.append(error)


@contextmanager
def _flushed(writer: FrameWriter) -> Iterator[Lock]:
    """Write what is collected each second, also while the stream pauses; yield a lock."""
    lock, over = Lock(), Event()

    def flush() -> None:
        while not over.wait(_FLUSH_S):
            # The next write or the end fails as well.
            with lock, suppress(OSError, StateSensorError):
                writer.flush()

    thread = Thread(target=flush, name='flush', daemon=True)
    thread.start()
    try:
        yield lock
    finally:
        over.set()
        thread.join()

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
`state_sensor convert`: a recording of any format to another format.

Bags are written by the same pipeline as the node's topics.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext

from state_sensor_ros.commands import options, terminal
from state_sensor_ros.commands.reading import read_frames, warn_of_unmatched
from state_sensor_ros.ends import signals_held
from state_sensor_ros.errors import ConfigError, no_frames, TrajectoryFormatError, UsageError
from state_sensor_ros.files import Format, output_format, STANDARD_INPUT, WriteOptions
from state_sensor_ros.files.frame_selection import RecordingSelection, SelectedRecording
from state_sensor_ros.files.look_ahead import is_needed, LookAhead
from state_sensor_ros.files.output import part_of, remove
from state_sensor_ros.files.recording import FrameWriter, RecordingReader
from state_sensor_ros.files.tables.table_recording import gaps_of, TableRecording
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.pipeline.checks import Checks, SAMPLED
from state_sensor_ros.simulators import simulators
from state_sensor_ros.source import DROPPED
from state_sensor_ros.texts import counted

_EPILOG = """examples:
  state_sensor convert drive.json drive_bag
  state_sensor convert drive_bag ego.parquet --desired-tags ego --rate 10
  state_sensor convert 'days/**/*.json' bags --to mcap"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    options.add_input(parser, 'input', metavar='IN', nargs='+', more='; many with --to')
    parser.add_argument('output', metavar='OUT', help='file or folder to write; its suffix '
                        'determines the format. A name without suffix is the folder of a bag; '
                        '- is standard output; with --to, the folder of many outputs')
    options.add_force(parser)
    options.add_quiet(parser)
    options.add_batch_options(parser)
    options.add_bag_options(parser)
    options.add_selection(parser)
    options.add_writing_options(parser)


def run(args: argparse.Namespace) -> None:
    """
    Convert; OUT appears when it is complete.

    :param args: the parsed options.
    :raises StateSensorError: if IN cannot be read or OUT cannot be written.
    """
    if args.to is not None:
        from state_sensor_ros.commands.convert_many import convert_many
        convert_many(args)
        return
    if len(args.input) > 1 or args.jobs is not None or args.dask:
        raise UsageError('many IN, --jobs and --dask need --to FORMAT')
    [args.input] = args.input
    output = output_format(args.output, storage=args.storage or '')
    settings = options.settings_of(args, publish_clock=args.clock)
    with closing(options.open_input(args, args.input, settings)) as recording:
        _warn_of_gaps(recording, output)
        if output.storage and settings.stamp_source == 'ros':
            raise ConfigError('stamp_source', 'ros', 'game_time or utc: a recording is not live')
        selection, summary = options.selection_of(args), terminal.Summary()
        target = WriteOptions(args.force, settings, vars(args), recording.name,
                              recording.format_name, recording)
        with writing(output, args.output, target) as writer:
            selected = FrameLoop(recording, is_timed=writer.is_timed, selection=selection)
            with _with_upcoming(read_frames(selected, 'convert', is_quiet=args.quiet), selection,
                                args, target) as frames:
                complaints = write_frames(selected, frames, writer, summary, nullcontext())
            warn_of_unmatched(recording.name, complaints)
            _check_any(summary, selected, selection)
            selected.selector.check_actors(selected.name)
            writer.complete()
        for note in (*writer.notes, *writer.losses.lines):
            terminal.print_line(f'warning: {args.output}: {note}')
    terminal.show_result(args.output, [*summary.facts, *terminal.size_of(args.output)],
                         is_quiet=args.quiet)


def _warn_of_gaps(table: RecordingReader, output: Format) -> None:
    """Warn of the parts of a bag or a trajectory that a table lacks."""
    if not output.storage and not output.generations:
        return
    if not isinstance(table, TableRecording):
        return
    gaps = gaps_of(table, has_own=table.generation in simulators())
    terminal.print_line(f'warning: {table.name}: a table has no columns for: {"; ".join(gaps)}')


@contextmanager
def writing(output: Format, path: str, target: WriteOptions) -> Iterator[FrameWriter]:
    """Write an output; a signal while its files are made leaves none of them."""
    try:
        writer = output.create(path, target)
    except KeyboardInterrupt:
        remove(part_of(path))
        raise
    with writer:
        yield writer


def write_frames(recording: FrameLoop, frames: Iterable[Frame], writer: FrameWriter,
                 summary: terminal.Summary, lock: AbstractContextManager[object]) -> list[str]:
    """
    Write frames, and return lines about them.

    :param recording: selected frames, whose ``details`` are set to what is written.
    :param frames: the same frames.
    :param writer: that has begun.
    :param summary: to which the frames are added.
    :param lock: taken while the writer is used.
    """
    check, complaints = Checks(periods_s=SAMPLED), list[str]()
    n_back, first_back = 0, ''
    try:
        for frame in frames:
            if frame.game_time < summary.game_time:
                check.restart()
                n_back += 1
                first_back = first_back or (
                    f'{summary.game_time:.6g} s, then {frame.game_time:.6g}')
            if not writer.checks and frame.game_time >= check.next_s:
                check.add(frame)
                complaints += check.new_complaints()
            with signals_held(), lock:
                # The first one has all parts, to name those that the format does not carry.
                writer.losses.add(frame)
                n_before = writer.n_frames
                writer.write(frame)
                if writer.n_frames > n_before:
                    summary.add(frame)
                if writer.part is None:
                    # The reader of a pipe waits for it.
                    writer.flush()
            recording.reader.details = writer.details
    except KeyboardInterrupt:
        # The ordinary end of a stream.
        if recording.format_name != 'stream' or not summary.n_frames:
            raise
    if n_back and not writer.checks:
        complaints.append(f'the clock goes back {counted(n_back, "time")}, first from '
                          f'{first_back} s: another run, or frames that are not in order')
    return [*writer.remarks, *complaints]


def _check_any(summary: terminal.Summary, selected: FrameLoop,
               selection: RecordingSelection) -> None:
    if not summary.n_frames:
        raise no_frames(selected.name, is_part=not selection.has_all_frames,
                        end_s=selected.selector.elapsed_s)
    n_dropped = selected.faults.counts.get(DROPPED, 0)
    if n_dropped and not summary.n_actors:
        first = next(fault for fault in selected.faults if fault.kind == DROPPED)
        raise TrajectoryFormatError(
            selected.name, f'no actor that can be used, {n_dropped} dropped; the first: '
            f'{first.place}: {first.text}', 'at least one actor')


@contextmanager
def _with_upcoming(frames: Iterator[Frame], selection: RecordingSelection,
                   args: argparse.Namespace, target: WriteOptions) -> Iterator[Iterator[Frame]]:
    """Link frames with those that follow, if an output has predicted paths."""
    if not is_needed(target.settings):
        yield frames
        return
    # Standard input is read once only.
    ahead = None if args.input == STANDARD_INPUT else SelectedRecording(
        options.open_input(args, args.input, target.settings), selection)
    look_ahead = LookAhead(ahead, target.settings)
    try:
        yield look_ahead.follow(frames)
    finally:
        look_ahead.close()

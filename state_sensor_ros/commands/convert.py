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
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from state_sensor_ros.commands import bag_output
from state_sensor_ros.commands.convert_many import convert_many
from state_sensor_ros.commands.format_options import (
    open_input,
    refuse_compression,
    refuse_unused,
    SELECTION,
    selection_of,
)
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.parameter_values import settings_of
from state_sensor_ros.commands.printing import print_line, progress_bar
from state_sensor_ros.commands.reading import read_frames, reading, warn_of_unmatched
from state_sensor_ros.commands.summary import show_result, size_of, Summary
from state_sensor_ros.errors import ConfigError, no_frames, TrajectoryFormatError, UsageError
from state_sensor_ros.files.formats import BAG, Format, WriteOptions
from state_sensor_ros.files.frame_selection import (
    FrameSelector,
    RecordingSelection,
    SelectedRecording,
)
from state_sensor_ros.files.look_ahead import is_needed, LookAhead
from state_sensor_ros.files.recording import RecordedFrame, RecordingReader, STANDARD_INPUT
from state_sensor_ros.files.tables.table_recording import gaps_of, TableRecording
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.frame_recording import FaultList, Recording
from state_sensor_ros.payloads import DROPPED
from state_sensor_ros.pipeline.checks import Checks, SAMPLED
from state_sensor_ros.simulators.opening import format_of, formats
from state_sensor_ros.simulators.output_names import output_format
from state_sensor_ros.simulators.simulator_list import find_simulator, simulators
from state_sensor_ros.texts import counted

if TYPE_CHECKING:
    from state_sensor_ros.commands.bag_output import BagOutput


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Convert; OUT appears when it is complete.

    :param args: the parsed options.
    :param interruption: signal handling of the program.
    :raises StateSensorError: if IN cannot be read or OUT cannot be written.
    """
    if args.to is not None:
        convert_many(args, interruption)
        return
    if len(args.input) > 1 or args.jobs is not None or args.dask:
        what = 'more than one IN' if len(args.input) > 1 else \
            '--jobs' if args.jobs is not None else '--dask'
        raise UsageError(f'{what} is for --to FORMAT')
    [args.input] = args.input
    named, read = output_format(args.output, storage=args.storage or ''), format_of(args.input)
    # The format of a folder depends on the recording.
    folders = [] if named.suffixes else [
        row.writes for row in formats() if not row.suffixes]
    refuse_unused(args, SELECTION.union(read.reads, named.writes, *folders),
                  f'IN {args.input} is {read.noun}, OUT {args.output} {named.noun}')
    settings = settings_of(args, own={'publish_clock': args.clock})
    with closing(open_input(args, args.input, settings)) as recording:
        folder = BAG if not read.storage else next(
            (row for row in find_simulator(recording.simulator).formats if not row.suffixes),
            BAG)
        output = output_format(args.output, storage=args.storage or '', folder=folder)
        refuse_unused(args, SELECTION | read.reads | output.writes,
                      f'IN {args.input} is {read.noun}, OUT {args.output} {output.noun}')
        refuse_compression(args, output)
        writing = WriteOptions(args.force, settings, vars(args), recording.name,
                               recording.format_name, recording)
        _warn_of_gaps(recording, output)
        work = _to_bag if output.storage else _to_frames
        summary = work(recording, output, writing, args, interruption)
    show_result(args.output, [*summary.facts, *size_of(args.output)], is_quiet=args.quiet)


def _warn_of_gaps(table: RecordingReader, output: Format) -> None:
    """Warn of the parts of a bag or a trajectory that a table lacks."""
    if not output.storage and 'generation' not in output.writes:
        return
    if not isinstance(table, TableRecording):
        return
    gaps = gaps_of(table, has_own=table.generation in simulators())
    print_line(f'warning: {table.name}: a table has no columns for: {"; ".join(gaps)}')


def _to_bag(recording: RecordingReader, output: Format, options: WriteOptions,
            args: argparse.Namespace, interruption: Interruption) -> Summary:
    """Run the pipeline of the node into a bag."""
    if options.settings.stamp_source == 'ros':
        raise ConfigError('stamp_source', 'ros', 'game_time or utc: a recording is not live')
    selection = selection_of(args)
    selected, summary = SelectedRecording(recording, selection), Summary()

    def new_bag() -> BagOutput:
        return bag_output.BagOutput(
            args.output, args.storage or output.storage, recording.simulator, options)

    with interruption.writing(new_bag) as bag:
        bag.begin(selected.decoder)
        with reading(selected, 'convert', is_quiet=args.quiet) as recorded_frames, \
                _with_upcoming(recorded_frames, selected, selection, args, options) as frames:
            for recorded in frames:
                frame = bag.write(recorded.packet, recorded.place)
                if frame is not None:
                    summary.add(frame)
        if not summary.n_frames:
            # Why frames were dropped.
            bag.warnings.show()
        _check_any(summary.n_frames, summary, bag.warnings.faults, recording, selection,
                   selected.selector.elapsed_s)
        warn_of_unmatched(recording.name, selected.selector.unmatched)
        selected.selector.check_actors(recording.name)
    bag.warnings.show()
    return summary


def _check_any(n_frames: int, summary: Summary, faults: FaultList, recording: RecordingReader,
               selection: RecordingSelection, end_s: float) -> None:
    if not n_frames:
        raise no_frames(recording.name, is_part=not selection.has_all_frames, end_s=end_s)
    n_dropped = faults.counts.get(DROPPED, 0)
    if n_dropped and not summary.n_actors:
        first = next(fault for fault in faults if fault.kind == DROPPED)
        raise TrajectoryFormatError(
            recording.name, f'no actor that can be used, {n_dropped} dropped; the first: '
            f'{first.place}: {first.text}', 'at least one actor')


@contextmanager
def _with_upcoming(frames: Iterator[RecordedFrame], recording: RecordingReader,
                   selection: RecordingSelection, args: argparse.Namespace,
                   options: WriteOptions) -> Iterator[Iterator[RecordedFrame]]:
    """Link frames with those that follow, if an output has predicted paths."""
    if not is_needed(options.settings):
        yield frames
        return
    # Standard input is read once only.
    ahead = None if args.input == STANDARD_INPUT else SelectedRecording(
        open_input(args, args.input, options.settings), selection)
    look_ahead = LookAhead(ahead, recording.new_decoder(), options.settings)
    try:
        yield look_ahead.follow(frames)
    finally:
        look_ahead.close()


def _to_frames(recording: RecordingReader, output: Format, options: WriteOptions,
               args: argparse.Namespace, interruption: Interruption) -> Summary:
    """Write the frames of a recording one by one, and warn of what cannot be written."""
    selection, summary = selection_of(args), Summary()
    with interruption.writing(lambda: output.create(args.output, options)) as writer:
        frames: Iterator[Frame]
        selected: Recording | None = None
        faults = FaultList()
        if not output.suffixes:
            frames = _frames_of_bag(recording, selection, is_quiet=args.quiet)
        else:
            selected = Recording(recording, is_timed=writer.is_timed, selection=selection)
            faults = selected.faults
            frames = read_frames(selected, 'convert', is_quiet=args.quiet)
        check, complaints = Checks(periods_s=SAMPLED), list[str]()
        n_back, first_back = 0, ''
        for frame in frames:
            if frame.game_time < summary.game_time:
                check.restart()
                n_back += 1
                first_back = first_back or f'{summary.game_time:.6g} s, then {frame.game_time:.6g}'
            if frame.game_time >= check.next_s:
                check.add(frame)
                complaints += check.new_complaints()
            # The first one has all parts, to name those that the format does not carry.
            writer.losses.add(frame)
            writer.write(frame)
            summary.add(frame)
            if selected is not None:
                selected.needs = writer.needs
        _check_any(writer.n_frames, summary, faults, recording, selection,
                   0.0 if selected is None else selected.read_s)
        if selected is not None:
            selected.check_actors()
        writer.complete()
    # A dataset holds each run as an episode.
    if n_back and output.suffixes:
        complaints.append(f'the clock goes back {counted(n_back, "time")}, first from '
                          f'{first_back} s: another run, or frames that are not in order')
    warn_of_unmatched(recording.name, complaints)
    for note in (*writer.notes, *writer.losses.lines):
        print_line(f'warning: {args.output}: {note}')
    return summary


def _frames_of_bag(recording: RecordingReader, selection: RecordingSelection, *,
                   is_quiet: bool) -> Iterator[Frame]:
    """Yield the frames of a bag with all that its simulator records."""
    selector = FrameSelector(selection)
    with progress_bar(recording, 'convert', is_quiet=is_quiet) as bar:
        for frame in find_simulator(recording.simulator).frames_to_write(recording):
            if selector.keeps(frame.game_time):
                yield selector.actors_of(frame)
            if bar is not None:
                bar.update()
    if selector.n_frames:
        warn_of_unmatched(recording.name, selector.unmatched)
    selector.check_actors(recording.name)

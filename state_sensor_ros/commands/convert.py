# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
`state_sensor convert`: a recording to a rosbag2 bag, and back to its original form.

Bags are written by the same pipeline as the node's topics.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
import re
import time
from typing import TYPE_CHECKING

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.options import (
    add_bag_limit,
    add_batch_options,
    add_quiet,
    FORMS,
    seconds,
)
from state_sensor_ros.commands.parameter_options import (
    add_any_parameter,
    add_parameters,
    parameters_that_affect,
    settings_of,
)
from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.commands.reading import progress_bar, read_frames, reading
from state_sensor_ros.commands.summary import show_result, size_of, Summary
from state_sensor_ros.commands.warnings import Warnings
from state_sensor_ros.errors import ConfigError, TrajectoryFormatError
from state_sensor_ros.files.bags.bag_form import is_bag, STORAGE_OF_SUFFIX
from state_sensor_ros.files.recording import (
    RecordedFrame,
    Recording,
    STANDARD_INPUT,
    TABLE_SUFFIX,
    TRAJECTORY_SUFFIXES,
)
from state_sensor_ros.files.tables.export_forms import (
    DEFAULT_CLASSES,
    OSI_SUFFIXES,
    TABLE_SUFFIXES,
)
from state_sensor_ros.files.whole.whole_file import STANDARD_OUTPUT
from state_sensor_ros.library.frame_recording import FrameRecording
from state_sensor_ros.parameters import MESSAGES
from state_sensor_ros.rep103 import Units
from state_sensor_ros.settings import parse_settings, Settings
from state_sensor_ros.simulators.monodrive.generations.wire import GENERATIONS
from state_sensor_ros.simulators.opening import open_any
from state_sensor_ros.simulators.simulator_list import (
    default_simulator,
    find_simulator,
    simulators,
)

if TYPE_CHECKING:
    pass

# What the messages of a bag depend on. Stamps by the clock of ROS mean nothing here.
_BAG_PARAMETERS = (
    'desired_tags', 'undesired_tags', 'global_frame', 'frame_prefix', 'parent_frame',
    'global_frame_pose', *parameters_that_affect(MESSAGES), 'ego_tag', 'ego_frame',
    'include_obb', 'debug_drawing', 'labels', 'tf', 'wheel_tf', 'joint_states', 'odometry',
    'frame', 'max_actor_topics', 'twist_frame', 'pose_covariance_diagonal',
    'twist_covariance_diagonal', 'stamp_source', 'outputs', 'autoware_objects',
    'object_classes', 'object_range', 'base_link_xyz', 'default_sizes')
_UNITS = ('obb_extents', 'road_s_unit')
_TOKEN = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options.

    :param parser: of this sub-command.
    """
    parser.add_argument('input', metavar='IN', nargs='+', help='trajectory (- for standard '
                        'input), bag, table or dataset of CARLA; with --to also several, folders '
                        'and globs')
    parser.add_argument('output', metavar='OUT', help='folder of the bag to write, or trajectory '
                        '(NAME.json, also .json.gz and .json.zst, or - for standard output); of '
                        'a bag of CARLA, folder of the dataset; table (NAME.parquet, NAME.csv); '
                        'trace of ASAM OSI (NAME.osi.mcap, NAME.osi); '
                        'with --to, a folder for all')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_quiet(parser)
    parser.add_argument('--to', choices=sorted(FORMS), metavar='FORM', help='convert many: to '
                        f'{", ".join(sorted(FORMS))}')
    add_batch_options(parser)
    parser.add_argument('--generation', choices=sorted(GENERATIONS),
                        help='of the trajectory to write (default: that of each frame)')
    parser.add_argument('--topic', default='', help='of a bag with several ~/frame topics')
    parser.add_argument('--columns', metavar='NAME,...',
                        help='of a table to write (default: all)')
    add_bag_limit(parser)
    trace = parser.add_argument_group('trace of ASAM OSI to write')
    trace.add_argument('--rate', type=seconds, metavar='HZ',
                       help='interpolated frames (default: the frames as they are)')
    trace.add_argument('--gaps', choices=('split', 'fill'), default='split',
                       help='an object that is absent for some frames: split gives it a new id '
                       'when it returns, fill interpolates it for up to 1 s (default: split)')
    trace.add_argument('--default-class', choices=DEFAULT_CLASSES, default='',
                       metavar='CLASS', help='of actors whose tags name none: '
                       f'{", ".join(DEFAULT_CLASSES)} (default: car for vehicles, other for '
                       'objects)')
    bag = parser.add_argument_group('bag to write')
    bag.add_argument('--storage', choices=sorted(STORAGE_OF_SUFFIX.values()), default='mcap',
                     help='form of the file (default: mcap)')
    bag.add_argument('--clock', action='store_true', help='with /clock')
    bag.add_argument('--name', default='state_sensor', metavar='NODE',
                     help='node whose topics they are (default: state_sensor)')
    bag.add_argument('--namespace', default='/', help='its namespace (default: /)')
    add_parameters(parser, _BAG_PARAMETERS + _UNITS)
    add_any_parameter(parser)


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Convert; OUT appears once it is whole.

    :param args: the parsed options.
    :param interruption: of the program.
    :raises StateSensorError: when IN cannot be read or OUT cannot be written.
    """
    if args.to is not None:
        # Here and below: what one form needs is imported for it only.
        from state_sensor_ros.commands.convert_many import convert_many
        convert_many(args, interruption)
        return
    if len(args.input) > 1 or args.jobs is not None or args.dask:
        raise ConfigError('--to', 'none, and several recordings or --jobs or --dask',
                          f'one of {", ".join(sorted(FORMS))}')
    [args.input] = args.input
    settings = settings_of(args, _BAG_PARAMETERS + _UNITS)
    if settings.stamp_source == 'ros':
        raise ConfigError('--stamp-source', 'ros', 'game_time or utc: a recording is not live')
    units = Units(settings.obb_extents, settings.road_s_unit)
    with closing(open_any(args.input, units, args.topic,
                          max_bag_bytes=args.max_bag_bytes)) as recording:
        if args.input.endswith(TABLE_SUFFIX) \
                and not args.output.endswith((*TABLE_SUFFIXES, *OSI_SUFFIXES)):
            _warn_of_gaps(recording, args, settings)
        if _is_trajectory(args.output):
            summary = _to_trajectory(recording, args, units, interruption)
        elif args.output.endswith(TABLE_SUFFIXES):
            summary = _to_table(recording, args, settings, interruption)
        elif args.output.endswith(OSI_SUFFIXES):
            summary = _to_osi(recording, args, settings, interruption)
        elif args.input != STANDARD_INPUT and is_bag(Path(args.input)):
            summary = _to_own_form(recording, args, settings, interruption)
        else:
            summary = _to_bag(recording, args, settings, interruption)
    show_result(args.output, [*summary.facts, *size_of(args.output)], is_quiet=args.quiet)


def _warn_of_gaps(table: Recording, args: argparse.Namespace, settings: Settings) -> None:
    """Name what the bag or the trajectory does not get from a table."""
    from state_sensor_ros.files.tables.table_gaps import gaps_of
    from state_sensor_ros.files.tables.table_recording import TableRecording
    if not isinstance(table, TableRecording):
        return
    gaps = gaps_of(table, settings, has_own=table.generation in simulators())
    texts = [gap.parts for gap in gaps] if _is_trajectory(args.output) else map(str, gaps)
    print_line(f'warning: {table.name}: a table has no columns for: {"; ".join(texts)}')


def _is_trajectory(path: str) -> bool:
    return path == STANDARD_OUTPUT or path.endswith(TRAJECTORY_SUFFIXES)


def _node_name(args: argparse.Namespace) -> str:
    """Return the fully qualified name of the node that the topics of the bag are named after."""
    tokens = [*args.namespace.strip('/').split('/'), args.name] if args.namespace.strip('/') \
        else [args.name]
    for token in tokens:
        if not _TOKEN.fullmatch(token):
            raise ConfigError('--name, --namespace', repr(token),
                              'letters, digits and _, none of them beginning with a digit')
    return '/' + '/'.join(tokens)


def _to_bag(recording: Recording, args: argparse.Namespace, settings: Settings,
            interruption: Interruption) -> Summary:
    """Run the pipeline of the node into a bag."""
    from state_sensor_ros.cdr.definitions import load_definitions
    from state_sensor_ros.files.bags.bag_writer import BagSink
    from state_sensor_ros.pipeline.interfaces import Codec
    from state_sensor_ros.pipeline.pipeline import Pipeline
    from state_sensor_ros.topics.encoder import Encoder
    from state_sensor_ros.topics.static_frame import encode_static_frames
    if args.output.endswith(tuple(STORAGE_OF_SUFFIX)):
        raise ConfigError('OUT', args.output, 'the name of a folder, or NAME.json for a '
                          'trajectory')
    if args.generation:
        raise ConfigError('--generation', args.generation, 'a trajectory to write, not a bag')
    settings = parse_settings({'publish_clock': args.clock}, base=settings)
    definitions = load_definitions()
    warnings = Warnings(recording.name)
    node_name = _node_name(args)
    with interruption.writing(lambda: BagSink(
            args.output, storage=args.storage, overwrite=args.force, node_name=node_name)) as sink:
        own = find_simulator(recording.simulator).topics(
            settings, recording=recording)
        encoder = Encoder(settings, definitions, warnings.add, own.encoders)
        sink.open(encoder.topics)
        static_frames = encode_static_frames(settings, definitions, own.transforms)
        if static_frames is not None:
            sink.latch(*static_frames)
        pipeline = Pipeline(
            settings, lambda settings: Codec(recording.decoder, encoder), sink,
            report=warnings.add)
        summary, snapshot = Summary(), pipeline.snapshot
        with reading(recording, 'convert', is_quiet=args.quiet) as recorded_frames, \
                _with_upcoming(recorded_frames, recording, args, settings) as frames:
            for recorded in frames:
                warnings.place = recorded.place
                pipeline.process(recorded.packet, time.perf_counter_ns())
                if pipeline.snapshot is not None and pipeline.snapshot is not snapshot:
                    snapshot = pipeline.snapshot
                    summary.add(snapshot.frame)
        # With the frames whose clock did not advance.
        summary.n_frames = pipeline.counters.n_published
        if not summary.n_frames:
            raise TrajectoryFormatError(recording.name, 'no frames', 'at least one frame')
    warnings.show()
    return summary


@contextmanager
def _with_upcoming(frames: Iterator[RecordedFrame], recording: Recording,
                   args: argparse.Namespace, settings: Settings) -> Iterator[
                       Iterator[RecordedFrame]]:
    """Link frames with those that follow, where an output has predicted paths."""
    if not settings.outputs:
        yield frames
        return
    from state_sensor_ros.files.look_ahead import is_needed, LookAhead
    if not is_needed(settings):
        yield frames
        return
    # Standard input is read once only.
    ahead = None if args.input == STANDARD_INPUT else open_any(
        args.input, Units(settings.obb_extents, settings.road_s_unit), args.topic,
        max_bag_bytes=args.max_bag_bytes)
    look_ahead = LookAhead(ahead, recording.new_decoder(), settings)
    try:
        yield look_ahead.follow(frames)
    finally:
        look_ahead.close()


def _to_own_form(recording: Recording, args: argparse.Namespace, settings: Settings,
                 interruption: Interruption) -> Summary:
    """Write a bag in the form in which its simulator records."""
    from state_sensor_ros.files.bags.bag_recording import BagRecording
    assert isinstance(recording, BagRecording)
    if find_simulator(recording.simulator) is default_simulator():
        raise ConfigError('OUT', args.output, 'NAME.json or - for a trajectory, or the name of a '
                          'table or trace: a bag becomes a dataset only where it is of CARLA')
    simulator = find_simulator(recording.simulator)
    summary = Summary()
    with interruption.writing(lambda: simulator.new_writer(
            args.output, settings, force=args.force, recording=recording)) as writer, \
            progress_bar(recording, 'convert', is_quiet=args.quiet) as bar:
        for frame in simulator.frames_to_write(recording):
            writer.write(frame)
            summary.add(frame)
            if bar is not None:
                bar.update()
        if not writer.n_frames:
            raise TrajectoryFormatError(recording.name, 'no frame that has a ~/player/status',
                                        'at least one')
    if writer.note:
        print_line(f'warning: {recording.name}: {writer.note}')
    return summary


def _to_table(recording: Recording, args: argparse.Namespace, settings: Settings,
              interruption: Interruption) -> Summary:
    """Write the frames of a recording as rows."""
    from state_sensor_ros.files.tables.table_output import NEEDS, TableOutput
    columns = None if args.columns is None else [
        name.strip() for name in args.columns.split(',')]
    # Half of the time: a table has no column of the other parts.
    recording.decoder.needs = NEEDS
    summary = Summary()
    with interruption.writing(lambda: TableOutput(
            args.output, force=args.force, columns=columns, source=recording.name,
            form=recording.form, settings=settings)) as output:
        for frame in read_frames(FrameRecording(recording), 'convert', is_quiet=args.quiet):
            output.write(frame)
            summary.add(frame)
        if not output.n_frames:
            raise TrajectoryFormatError(recording.name, 'no frames', 'at least one frame')
    return summary


def _to_osi(recording: Recording, args: argparse.Namespace, settings: Settings,
            interruption: Interruption) -> Summary:
    """Write the frames of a recording as a trace of ASAM OSI, and warn of what differs."""
    from state_sensor_ros.files.osi.osi_output import OsiOutput
    summary = Summary()
    with interruption.writing(lambda: OsiOutput(
            args.output, force=args.force, rate_hz=args.rate, fills_gaps=args.gaps == 'fill',
            default_class=args.default_class, settings=settings)) as output:
        for frame in read_frames(FrameRecording(recording), 'convert', is_quiet=args.quiet):
            output.write(frame)
            summary.add(frame)
        if not output.n_frames:
            raise TrajectoryFormatError(recording.name, 'no frames', 'at least one frame')
        output.complete()
        if not output.n_messages:
            raise TrajectoryFormatError(recording.name, 'no objects', 'at least one')
    for line in output.notes.lines():
        print_line(f'warning: {args.output}: {line}')
    return summary


def _to_trajectory(recording: Recording, args: argparse.Namespace, units: Units,
                   interruption: Interruption) -> Summary:
    """Write the frames of a recording as JSON, and warn of what cannot be written."""
    from state_sensor_ros.simulators.monodrive.trajectory_output import TrajectoryOutput
    summary = Summary()
    with interruption.writing(lambda: TrajectoryOutput(
            args.output, force=args.force, generation=args.generation, units=units)) as writer:
        for frame in read_frames(FrameRecording(recording, is_timed=False), 'convert',
                                 is_quiet=args.quiet):
            writer.write(frame)
            summary.add(frame)
        if not writer.n_frames:
            raise TrajectoryFormatError(recording.name, 'no frames', 'at least one frame')
    if writer.lost:
        print_line(f'warning: {args.output}: {args.generation} does not carry: '
                   f'{", ".join(writer.lost)}')
    return summary

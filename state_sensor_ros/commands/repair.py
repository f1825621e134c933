# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
`state_sensor repair`: a complete trajectory or bag from one that a crash or a kill truncated.

PART is never changed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from state_sensor_ros import files
from state_sensor_ros.commands import options, terminal
from state_sensor_ros.errors import ConfigError, TrajectoryFormatError
from state_sensor_ros.files import bag, bag_repair, bag_writer, output
from state_sensor_ros.files import input as inputs
from state_sensor_ros.texts import counted, listed

_EPILOG = """A command of this package that is killed leaves .OUT.part beside OUT: a
truncated trajectory or trace of OSI (.osi), or a folder with a bag.
`ros2 bag record` leaves a bag without metadata.yaml. All complete frames of a
trajectory and all readable messages of a bag are copied; one line reports what
is lost.

examples:
  state_sensor repair .drive.json.part drive.json
  state_sensor repair cut_bag whole_bag"""


def add_repair(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('part', metavar='PART', help='damaged trajectory, recorder log, bag '
                        'folder or storage file of a bag; recognized by its content')
    parser.add_argument('output', metavar='OUT', help='NAME.json (or - for standard output) for a '
                        'trajectory, a folder for a bag, NAME.log for a recorder log')
    options.add(parser, 'output')


def run_repair(args: argparse.Namespace) -> None:
    """Copy the complete frames or messages, and print what is lost."""
    part = Path(args.part)
    inputs.check_regular(part)
    here, there = part.resolve(), Path(args.output).resolve()
    if args.output != output.STANDARD_OUTPUT and (
            here == there or here in there.parents or there in here.parents):
        raise ConfigError('OUT', args.output, 'a path that neither contains PART nor lies in it')
    terminal.show_result(args.output, [_repaired(part, args)], is_quiet=args.quiet)


def _repaired(part: Path, args: argparse.Namespace) -> str:
    """Copy what is whole; return a line about the result."""
    wanted = files.format_of_name(args.output)
    # The content does not say that it is of such a format.
    if wanted is not None and wanted.repair and not wanted.recognized_by \
            and wanted != files.TRAJECTORY:
        return _copied(wanted, args)
    if stored := bag_repair.find_files(part):
        return _repair_bag(stored, args)
    found = files.format_of(args.part)
    if not found.repair:
        found = files.TRAJECTORY
    if found == files.TRAJECTORY:
        if files.output_format(args.output) != found:
            raise ConfigError('OUT', args.output, 'NAME.json or -, because PART is not a bag')
    elif wanted != found:
        raise ConfigError('OUT', args.output, f'the name of {found.noun}, because PART is one')
    return _copied(found, args)


def _copied(file_format: files.Format, args: argparse.Namespace) -> str:
    """Copy the complete frames of a file; return a line about the result."""
    with open(args.part, 'rb') as part, output.WholeFile(
            args.output, force=args.force, read=Path(args.part).resolve()) as file:
        source, compressed = inputs.decompressed(part)
        n_frames, lost = file_format.copy_whole(source, file.handle, args.part)
        if compressed is not None and compressed.fault and not lost:
            lost = 'nothing but the end of the compressed data'
    return f'{counted(n_frames, "frame")}; ' + (f'lost: {lost}' if lost else 'nothing was lost')


def _repair_bag(stored: list[Path], args: argparse.Namespace) -> str:
    """Copy the messages that can be read; return a line about the result."""
    if not files.output_format(args.output).storage:
        raise ConfigError('OUT', args.output, 'a folder, because PART is a bag')
    repair, n_copied = bag_repair.BagRepair(stored), 0
    storage = bag.STORAGE_OF_SUFFIX.get(Path(args.output).suffix) or 'mcap'
    with bag_writer.BagSink(args.output, storage=storage, overwrite=args.force,
                            read=Path(args.part).resolve()) as sink:
        for topic, message in terminal.bar_type()(repair.messages(), unit='message', desc='repair',
                                                  leave=False, disable=args.quiet or None):
            sink.copy(topic, message.log_time, message.data, message.publish_time,
                      message.sequence)
            n_copied += 1
        for topic in repair.topics:
            sink.copy_topic(topic)
        losses = 'nothing was lost'
        if repair.losses or repair.n_lost:
            n_lost = f'{counted(repair.n_lost, "message")}: ' if repair.n_lost else ''
            places = listed(repair.losses, separator='; ', rest='; {} more places')
            losses = f'lost: {n_lost}{places or "not known where"}'
        n_topics = len(repair.topics)
        if not n_copied and (repair.losses or not n_topics):
            raise TrajectoryFormatError(args.part, f'no whole message ({losses})', 'at least one')
    return f'{counted(n_copied, "message")} of {counted(n_topics, "topic")}; {losses}'

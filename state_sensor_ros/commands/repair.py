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
import stat
from typing import cast

from state_sensor_ros import files
from state_sensor_ros.commands.options import add_force, add_quiet
from state_sensor_ros.commands.terminal import bar_type, show_result
from state_sensor_ros.errors import ConfigError, reason_of, TrajectoryFormatError
from state_sensor_ros.files.bag import STORAGE_OF_SUFFIX
from state_sensor_ros.files.bag_repair import BagRepair, find_files
from state_sensor_ros.files.bag_writer import BagSink
from state_sensor_ros.files.input import decompressed, is_compressed_trajectory
from state_sensor_ros.files.output import STANDARD_OUTPUT, WholeFile
from state_sensor_ros.texts import counted, listed

_EPILOG = """A command of this package that is killed leaves .OUT.part beside OUT: a
truncated trajectory, table in CSV or trace of OSI, or a folder with a bag.
`ros2 bag record` leaves a bag without metadata.yaml. All complete frames of a
trajectory and all readable messages of a bag are copied; one line reports what
is lost.

examples:
  state_sensor repair .drive.json.part drive.json
  state_sensor repair .drive.csv.part drive.csv
  state_sensor repair cut_bag whole_bag"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('part', metavar='PART', help='damaged trajectory, recorder log, bag '
                        'folder or storage file of a bag; recognized by its content')
    parser.add_argument('output', metavar='OUT', help='NAME.json (or - for standard output) for a '
                        'trajectory, a folder for a bag, NAME.log for a recorder log')
    add_force(parser)
    add_quiet(parser)


def run(args: argparse.Namespace) -> None:
    """Copy the complete frames or messages, and print what is lost."""
    part = Path(args.part)
    try:
        mode = part.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise TrajectoryFormatError(args.part, 'a special file',
                                        'a file or a folder')
        _check_apart(part, args.output)
        wanted = files.format_of_name(args.output)
        if wanted == files.PARQUET:
            raise TrajectoryFormatError(args.part, 'a table in Parquet, whose rows cannot be '
                                        'located without the end of the file',
                                        'a table in CSV, or another recording')
        # The content does not distinguish these formats.
        is_of_name = wanted is not None and bool(wanted.repair) and not wanted.recognized_by \
            and wanted != files.TRAJECTORY
        stored = [] if is_of_name or is_compressed_trajectory(part) else find_files(part)
        if is_of_name:
            line = _copied(cast(files.Format, wanted), args)
        elif not stored:
            line = _repair_trajectory(args)
        else:
            line = _repair_bag(stored, args)
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.filename is None:
            raise
        raise TrajectoryFormatError(args.part, reason_of(error)) from error
    show_result(args.output, [line], is_quiet=args.quiet)


def _check_apart(part: Path, output: str) -> None:
    """Refuse an output that would replace PART or be written into it."""
    if output == STANDARD_OUTPUT:
        return
    here, there = part.resolve(), Path(output).resolve()
    if here == there or here in there.parents or there in here.parents:
        raise ConfigError('OUT', output, 'a path that neither contains PART nor lies in it')


def _repair_trajectory(args: argparse.Namespace) -> str:
    """Copy the complete frames of a file; return a line about the result."""
    file_format = files.format_of(args.part)
    if not file_format.repair:
        file_format = files.TRAJECTORY
    if file_format == files.TRAJECTORY:
        if files.output_format(args.output) != file_format:
            raise ConfigError('OUT', args.output, 'NAME.json or -, because PART is not a bag')
    elif files.format_of_name(args.output) != file_format:
        raise ConfigError('OUT', args.output, f'NAME{file_format.suffixes[0]}, because PART is '
                          f'{file_format.noun}')
    return _copied(file_format, args)


def _copied(file_format: files.Format, args: argparse.Namespace) -> str:
    """Copy the complete frames of a file; return a line about the result."""
    with open(args.part, 'rb') as part, WholeFile(
            args.output, force=args.force) as file:
        source, compressed = decompressed(part)
        n_frames, lost = file_format.copy_whole(source, file.handle, args.part)
        if compressed is not None and compressed.fault and not lost:
            lost = 'nothing but the end of the compressed data'
    return f'{counted(n_frames, "frame")}; ' + (f'lost: {lost}' if lost else 'nothing was lost')


def _repair_bag(stored: list[Path], args: argparse.Namespace) -> str:
    """Copy the messages that can be read; return a line about the result."""
    if not files.output_format(args.output).storage:
        raise ConfigError('OUT', args.output, 'a folder, because PART is a bag')
    repair = BagRepair(stored)
    storage = STORAGE_OF_SUFFIX.get(Path(args.output).suffix) or 'mcap'
    with BagSink(args.output, storage=storage, overwrite=args.force) as sink:
        n_copied = 0
        for topic, message in bar_type()(repair.messages(), unit='message', desc='repair',
                                         leave=False, disable=args.quiet or None):
            sink.copy(topic, message.log_time, message.data, message.publish_time,
                      message.sequence)
            n_copied += 1
        for topic in repair.topics:
            sink.copy_topic(topic)
        n_topics = len(repair.topics)
        if not n_copied and (repair.losses or not n_topics):
            raise TrajectoryFormatError(args.part, f'no whole message ({_losses(repair)})',
                                        'at least one')
    return f'{counted(n_copied, "message")} of {counted(n_topics, "topic")}; {_losses(repair)}'


def _losses(repair: BagRepair) -> str:
    """Describe what is lost, and the defects of the bag."""
    defects = f' ({"; ".join(repair.defects)})' if repair.defects else ''
    if not repair.losses and not repair.n_lost:
        return f'nothing was lost{defects}'
    losses = listed(repair.losses, separator='; ', rest='; {} more places')
    n_lost = f'{counted(repair.n_lost, "message")}: ' if repair.n_lost else ''
    return f'lost: {n_lost}{losses or "not known where"}{defects}'

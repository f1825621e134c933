# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor convert IN... FOLDER --to FORM`: many recordings into the same layout."""

from __future__ import annotations

import argparse
from contextlib import suppress
import os
from pathlib import Path
import sys

from state_sensor_ros.commands.batch import (
    BatchJob,
    BatchResult,
    plain_options,
    run_jobs,
    show_failures,
)
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.options import BatchForm, FORMS
from state_sensor_ros.commands.printing import listed, print_line
from state_sensor_ros.commands.summary import show_result
from state_sensor_ros.errors import ConfigError, counted, TrajectoryFormatError
from state_sensor_ros.files.bags.bag_form import is_bag
from state_sensor_ros.simulators.search import find_recordings, FoundRecording


def convert_many(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Convert all recordings whose outputs are not there, or older than they are.

    Bags are left out where bags are to be written.

    :param args: the parsed options.
    :param interruption: of the program.
    :raises TrajectoryFormatError: where one failed, after a table of the reasons.
    :raises ConfigError: where there is no recording, or an output would be among the inputs.
    """
    form, folder = FORMS[args.to], Path(args.output)
    if folder.exists() and not folder.is_dir():
        raise ConfigError('OUT', args.output, 'a folder')
    found = find_recordings(args.input)
    bags = [recording.path for recording in found if not form.suffix
            and is_bag(Path(recording.path))]
    if bags:
        print_line(f'warning: {args.output}: left out, because they are bags: {listed(bags)}')
        found = [recording for recording in found if recording.path not in bags]
    jobs = [_job(args, recording, form) for recording in found]
    for job in jobs:
        if os.path.realpath(job.source) == os.path.realpath(job.output):
            raise ConfigError('OUT', f'{job.output}, which is one of IN', 'another folder')
    waiting = [job for job in jobs if args.force or not _is_done(job)]
    failures: list[tuple[BatchJob, BatchResult]] = []
    left = {job.source: job for job in waiting}

    def remains() -> str:
        n_converted = len(waiting) - len(left) - len(failures)
        begun = ', except for those that workers have begun and complete' if args.dask else ''
        return (f'{counted(n_converted, "recording")} converted; not converted: '
                f'{listed([*left])}{begun}; the same command goes on with them')

    interruption.describe(remains)
    try:
        # The largest first: a long one at the end would run alone.
        for job, result in run_jobs(
                sorted(waiting, key=lambda job: _size(Path(job.source)), reverse=True),
                n_processes=args.jobs or os.cpu_count() or 1, dask=args.dask):
            for line in result.warnings:
                print_line(line)
            if result.code:
                failures.append((job, result))
            del left[job.source]
            if sys.stderr.isatty() and not args.quiet:
                sys.stderr.write(f'\r{len(waiting) - len(left)} of {len(waiting)}'
                                 + '\n' * (not left))
    finally:
        if failures:
            show_failures(failures)
    if failures:
        raise TrajectoryFormatError(args.output, f'{len(failures)} of {len(jobs)} recordings that '
                                    'could not be converted', 'all of them')
    facts = [f'{counted(len(waiting), "recording")} converted',
             f'{len(jobs) - len(waiting)} done before',
             *([f'{len(bags)} left out'] if bags else [])]
    show_result(args.output, facts, is_quiet=args.quiet)


def _job(args: argparse.Namespace, recording: FoundRecording, form: BatchForm) -> BatchJob:
    output = os.path.join(args.output, recording.place + form.suffix)
    options = {**plain_options(args), 'input': [recording.path], 'output': output, 'to': None,
               'jobs': None, 'dask': '', 'quiet': True, 'storage': form.storage}
    return BatchJob('convert', options, recording.path, output)


def _is_done(job: BatchJob) -> bool:
    """Return whether the output is there, and newer than the recording."""
    if not os.path.lexists(job.output):
        return False
    return _newest(Path(job.output)) >= _newest(Path(job.source))


def _size(path: Path) -> int:
    """Return the size of a file, or of all in a folder, bytes; 0 where it is unknown."""
    with suppress(OSError):
        if not path.is_dir():
            return path.stat().st_size
        return sum(file.stat().st_size for file in path.rglob('*') if file.is_file())
    return 0


def _newest(path: Path) -> int:
    """Return the time of the last change of a file, or of any in a folder, ns."""
    if not path.is_dir():
        return path.stat().st_mtime_ns
    return max((file.stat().st_mtime_ns for file in path.rglob('*') if file.is_file()), default=0)

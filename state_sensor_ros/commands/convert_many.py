# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor convert IN..."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
import os
from pathlib import Path
import sys
import time

from state_sensor_ros.commands.batch import (
    BatchJob,
    BatchResult,
    plain_options,
    run_jobs,
    show_failures,
)
from state_sensor_ros.commands.format_options import (
    format_named,
    refuse_compression,
    refuse_unused,
    SELECTION,
)
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.commands.summary import n_bytes_of, show_result
from state_sensor_ros.errors import (
    ConfigError,
    reason_of,
    SinkError,
    TrajectoryFormatError,
    UsageError,
)
from state_sensor_ros.files.bags.bag_metadata import is_bag
from state_sensor_ros.files.formats import Format
from state_sensor_ros.files.whole.part import parts_of
from state_sensor_ros.simulators.opening import format_of, format_of_name, formats
from state_sensor_ros.simulators.search import find_recordings, FoundRecording, refuse_same
from state_sensor_ros.texts import counted, listed

# Limit of the wait for an output, which a network file system may delay, s.
_SHARED_S, _POLL_S = 5.0, 0.1


def convert_many(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Convert all recordings whose outputs do not exist or are older.

    Bags are ignored if bags are to be written.
    """
    file_format = format_named(args.to)
    _check_options(args, file_format)
    recordings = find_recordings(args.input, without=args.output)
    bags = [recording.path for recording in recordings if file_format.storage
            and _is_bag(recording.path)]
    if bags:
        print_line(f'warning: {args.output}: ignored, because they are bags: {listed(bags)}')
        recordings = [recording for recording in recordings if recording.path not in bags]
    jobs = [_job(args, recording, output, file_format)
            for recording, output in _outputs_of(recordings, args.output, file_format)]
    for job in jobs:
        if os.path.realpath(job.source) == os.path.realpath(job.output):
            raise ConfigError('OUT', f'{job.output}, which is also an input', 'another folder')
    waiting = [job for job in jobs if args.force or not _is_newer(job.output, job.source)]
    n_old = sum(os.path.lexists(job.output) for job in waiting)
    _warn_of_parts(args.output, waiting)
    if not args.dask:
        _make_folder(args.output)
    failures: list[tuple[BatchJob, BatchResult]] = []
    left = {job.source: job for job in waiting}
    alike = _Warnings()

    def remains() -> str:
        n_converted = len(waiting) - len(left) - len(failures)
        begun = ', except for those that workers have begun and complete' if args.dask else ''
        return (f'{counted(n_converted, "recording")} converted; not converted: '
                f'{listed([*left])}{begun}; the same command continues with them')

    interruption.describe(remains)
    try:
        # The largest first: a long job at the end would run alone.
        waiting.sort(key=lambda job: n_bytes_of(Path(job.source)), reverse=True)
        for job, result in run_jobs(waiting, n_processes=args.jobs, dask=args.dask):
            alike.show(job, result.warnings)
            if not result.code and args.dask and not _is_there(job.output):
                result = BatchResult(1, '', f'{job.output}: not there, although a worker has '
                                     'written it; expected a path that all workers share')
            if result.code:
                failures.append((job, result))
            del left[job.source]
            if sys.stderr.isatty() and not args.quiet:
                sys.stderr.write(f'\r{len(waiting) - len(left)} of {len(waiting)}'
                                 + '\n' * (not left))
    finally:
        alike.count()
        if failures:
            show_failures(failures)
    if failures:
        raise TrajectoryFormatError(
            args.output, f'{len(waiting) - len(failures)} of {len(waiting)} converted'
            + (f', {len(jobs) - len(waiting)} already up to date' if len(jobs) > len(waiting)
               else '') + f'; {len(failures)} failed: '
            + listed(sorted(job.source for job, _ in failures)))
    facts = [f'{counted(len(waiting), "recording")} converted',
             *([f'{n_old} in place of an older output'] if n_old else []),
             f'{len(jobs) - len(waiting)} already up to date',
             *([f'{len(bags)} ignored'] if bags else [])]
    show_result(args.output, facts, is_quiet=args.quiet)


class _Warnings:
    """Warnings of many jobs: each text once, however many files it is about."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()

    def show(self, job: BatchJob, lines: Sequence[str]) -> None:
        for line in lines:
            text = line
            for path, word in ((job.source, 'IN'), (job.output, 'OUT')):
                # Workers of a cluster get absolute paths.
                text = text.replace(os.path.abspath(path), word).replace(path, word)
            self._numbers[text] += 1
            if self._numbers[text] == 1:
                print_line(line)

    def count(self) -> None:
        for text, number in self._numbers.items():
            if number > 1:
                complaint = text.removeprefix('warning: ').removeprefix('OUT: ').removeprefix(
                    'IN: ')
                print_line(f'warning: {number - 1} more: {complaint}')


def _is_bag(path: str) -> bool:
    """Return whether a recording is a bag, not another file with a suffix of bags."""
    return is_bag(Path(path)) and (os.path.isdir(path) or bool(format_of(path).storage))


def _check_options(args: argparse.Namespace, output: Format) -> None:
    """Refuse options that no job uses, except those of readers, and an OUT that is no folder."""
    folder, named = Path(args.output), format_of_name(args.output)
    if folder.exists() and not folder.is_dir():
        raise ConfigError('OUT', args.output, 'a folder')
    if named is not None and not folder.exists():
        raise UsageError(f'OUT {args.output} is the name of {named.noun}; expected a folder for '
                         'the outputs of --to')
    if args.storage and output.storage != args.storage:
        raise UsageError(f'--storage {args.storage}: --to {args.to} writes {output.noun}'
                         + (f' of {output.storage}' if output.storage else ''))
    refuse_unused(args, SELECTION.union(
        output.writes, ('to', 'jobs', 'dask'), *(row.reads for row in formats())),
        f'--to {args.to} writes {output.noun}')
    refuse_compression(args, output)


def _outputs_of(found: Sequence[FoundRecording], folder: str,
                file_format: Format) -> list[tuple[FoundRecording, str]]:
    """
    Return recordings with the paths of their outputs.

    The bag of ``a.json`` beside ``a/b.json`` cannot be the folder ``a``: it is ``a_mcap``.
    """
    # Bags are folders.
    suffix = '' if file_format.storage else file_format.suffixes[0]
    outputs = {recording: os.path.join(folder, recording.place + suffix) for recording in found}
    folders = {str(parent) for output in outputs.values() for parent in Path(output).parents}
    for recording, output in outputs.items():
        if str(Path(output)) in folders:
            outputs[recording] = os.path.join(
                folder, f'{recording.place}_{file_format.name}{suffix}')
    refuse_same((output, recording.path) for recording, output in outputs.items())
    return list(outputs.items())


def _job(args: argparse.Namespace, recording: FoundRecording, output: str,
         file_format: Format) -> BatchJob:
    options = {**plain_options(args), 'input': [recording.path], 'output': output, 'to': None,
               'force': True, 'jobs': None, 'dask': '', 'quiet': True,
               'storage': file_format.storage or None}
    return BatchJob('convert', options, recording.path, output)


def _is_newer(output: str, source: str) -> bool:
    with suppress(OSError):
        return _newest_ns(Path(output)) >= _newest_ns(Path(source))
    return False


def _newest_ns(path: Path) -> int:
    """Return the time of the last change of a file, or of any in a folder, ns."""
    if not path.is_dir():
        return path.stat().st_mtime_ns
    return max((file.stat().st_mtime_ns for file in path.rglob('*') if file.is_file()), default=0)


def _is_there(output: str) -> bool:
    """Return whether an output is there, within the time of a network file system."""
    end_s = time.monotonic() + _SHARED_S
    while not os.path.lexists(output):
        if time.monotonic() > end_s:
            return False
        time.sleep(_POLL_S)
    return True


def _make_folder(path: str) -> None:
    """Make the folder of all outputs, or each of them would fail."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise SinkError(path, f'cannot make this folder: {reason_of(error)}') from error


def _warn_of_parts(folder: str, jobs: Sequence[BatchJob]) -> None:
    """Name the parts beside the outputs."""
    found: list[str] = []
    for job in jobs:
        with suppress(OSError):
            found += [str(part) for part in parts_of(Path(job.output))]
    if found:
        print_line(f'warning: {folder}: killed programs have left {listed(found)}; they can be '
                   'deleted if no other program is writing them')

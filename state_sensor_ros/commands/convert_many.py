# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor convert IN... OUT_FOLDER --to FORMAT`: many recordings to one format."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
import os
from pathlib import Path
import sys

from state_sensor_ros import errors
from state_sensor_ros.commands.batch import Job, job_of, Result, run_jobs
from state_sensor_ros.commands.options import format_named
from state_sensor_ros.commands.terminal import n_bytes_of, print_line, show_result
from state_sensor_ros.files import Format, format_of, format_of_name
from state_sensor_ros.files.bag import is_bag
from state_sensor_ros.files.search import find_recordings, FoundRecording, refuse_same
from state_sensor_ros.texts import counted, listed, one_line


def convert_many(args: argparse.Namespace) -> None:
    """
    Convert all recordings whose outputs do not exist or are older.

    Bags are ignored if bags are to be written.
    """
    file_format = format_named(args.to)
    _check_folder(args, file_format)
    recordings = find_recordings(args.input, without=args.output)
    bags = [recording.path for recording in recordings if file_format.storage
            and _is_bag(recording.path)]
    if bags:
        print_line(f'warning: {args.output}: ignored, because they are bags: {listed(bags)}')
        recordings = [recording for recording in recordings if recording.path not in bags]
    jobs = [job_of('convert', args, recording.path, input=[recording.path],
                   output=output, to=None, force=True, storage=file_format.storage or None)
            for recording, output in _outputs_of(recordings, args.output, file_format)]
    for job in jobs:
        if os.path.realpath(job.source) == os.path.realpath(job.output):
            raise errors.ConfigError('OUT', f'{job.output}, which is also an input',
                                     'another folder')
    waiting = [job for job in jobs if args.force or not _is_newer(job.output, job.source)]
    if not args.dask:
        try:
            os.makedirs(args.output, exist_ok=True)
        except OSError as error:
            raise errors.SinkError(args.output, 'cannot make this folder: '
                                   f'{errors.reason_of(error)}') from error
    # The largest first: a long job at the end would run alone.
    waiting.sort(key=lambda job: n_bytes_of(Path(job.source)), reverse=True)
    failures: list[tuple[Job, Result]] = []
    n_done, shown = 0, set[str]()
    try:
        for job, result in run_jobs(waiting, n_processes=args.jobs, dask=args.dask):
            n_done += 1
            failures += [(job, result)] if result.code else []
            # The same warning about many files is printed once.
            for line in result.warnings:
                text = line.replace(job.source, 'IN').replace(job.output, 'OUT')
                if text not in shown:
                    print_line(line)
                shown.add(text)
            if sys.stderr.isatty() and not args.quiet:
                sys.stderr.write(f'\r{n_done} of {len(waiting)}' + '\n' * (n_done == len(waiting)))
    except KeyboardInterrupt:
        print_line(f'{n_done - len(failures)} of {counted(len(waiting), "recording")} '
                   'converted; the same command continues with the others')
        raise
    finally:
        _show_failures(failures)
    n_old = len(jobs) - len(waiting)
    if failures:
        raise errors.TrajectoryFormatError(
            args.output, f'{len(waiting) - len(failures)} of {len(waiting)} converted'
            + (f', {n_old} already up to date' if n_old else '') + f'; {len(failures)} failed: '
            + listed(sorted(job.source for job, _ in failures)))
    show_result(args.output, [f'{counted(len(waiting), "recording")} converted',
                              f'{n_old} already up to date',
                              *([f'{len(bags)} ignored'] if bags else [])], is_quiet=args.quiet)


def _show_failures(failures: Sequence[tuple[Job, Result]]) -> None:
    """Print a table of what failed, on standard error."""
    rows = [('failed', 'reason'), *sorted(
        (one_line(job.source), result.error.removeprefix(f'{job.source}: '))
        for job, result in failures)]
    width = max(len(name) for name, _ in rows)
    for name, reason in rows if failures else ():
        print_line(f'{name:{width}}  {reason}')


def _is_bag(path: str) -> bool:
    """Return whether a recording is a bag, not another file with a suffix of bags."""
    return is_bag(Path(path)) and (os.path.isdir(path) or bool(format_of(path).storage))


def _check_folder(args: argparse.Namespace, output: Format) -> None:
    """Refuse an OUT that is no folder, and another storage than that of --to."""
    folder, named = Path(args.output), format_of_name(args.output)
    if folder.exists() and not folder.is_dir():
        raise errors.ConfigError('OUT', args.output, 'a folder')
    if named is not None and not folder.exists():
        raise errors.UsageError(f'OUT {args.output} is the name of {named.noun}; expected a '
                                'folder for the outputs of --to')
    if args.storage and output.storage != args.storage:
        raise errors.UsageError(f'--storage {args.storage}: --to {args.to} writes {output.noun}')


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


def _is_newer(output: str, source: str) -> bool:
    with suppress(OSError):
        return _newest_ns(Path(output)) >= _newest_ns(Path(source))
    return False


def _newest_ns(path: Path) -> int:
    """Return the time of the last change of a file, or of any in a folder, ns."""
    if not path.is_dir():
        return path.stat().st_mtime_ns
    return max((file.stat().st_mtime_ns for file in path.rglob('*') if file.is_file()), default=0)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The same command for many recordings: a process for each.

A process that fails or is killed loses its own recording only. When the command is interrupted,
its processes end, and remove what they have not completed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import time
from typing import Any

from state_sensor_ros.commands.batch_outputs import is_newer
from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.errors import one_line, reason_of, TrajectoryFormatError
from state_sensor_ros.files.storage.input_file import check_regular
from state_sensor_ros.files.whole.part import remove_part

_WORKER = 'state_sensor_ros.commands.batch_worker'
_PACKAGES = str(Path(__file__).resolve().parents[2])
# Time for processes to remove their unfinished outputs, before they are killed.
_END_S = 1.0


@dataclass(frozen=True, slots=True)
class BatchJob:
    """
    One run of a command.

    ``command`` name of the sub-command; ``options`` its parsed options, values of JSON; ``source``
    path of the recording; ``output`` path to write, ``''`` for none; ``may_replace`` whether an
    existing output may be replaced; ``part`` path of the part that a killed process of the job
    leaves.
    """

    command: str
    options: Mapping[str, object]
    source: str
    output: str = ''
    may_replace: bool = False
    part: str = ''


@dataclass(frozen=True, slots=True)
class BatchResult:
    """
    The result of a job: exit code, standard output, and the error in one line, ``''`` for none.

    Warnings are in ``warnings``.
    """

    code: int
    text: str
    error: str
    warnings: tuple[str, ...] = ()


def plain_options(args: argparse.Namespace) -> dict[str, object]:
    """
    Return the parsed options that are values of JSON.

    :param args: the parsed options.
    """
    return {name: value for name, value in vars(args).items()
            if value is None or isinstance(value, (str, bool, int, float, list))}


def run_job(job: BatchJob, running: set[subprocess.Popen[str]] | None = None) -> BatchResult:
    """
    Run a job in a process of its own, which ends with this one.

    :param running: set that has the process while it runs.
    """
    options = dict(job.options)
    try:
        check_regular(job.source)
        if job.output:
            options['force'] = job.may_replace
            Path(job.output).parent.mkdir(parents=True, exist_ok=True)
            remove_part(Path(job.part))
            if not job.may_replace and is_newer(job.output, job.source):
                # A cluster runs a job again if its result was lost with a worker.
                return BatchResult(0, '', '')
    except TrajectoryFormatError as error:
        return BatchResult(1, '', str(error))
    except OSError as error:
        return BatchResult(1, '', one_line(
            f'{job.output}: {reason_of(error)}'))
    paths = [_PACKAGES, *filter(None, [os.environ.get('PYTHONPATH')])]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(paths)}
    with subprocess.Popen(
            [sys.executable, '-m', _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors='replace', env=environment) as process:
        if running is not None:
            running.add(process)
        try:
            text, errors = process.communicate(json.dumps(
                [job.command, options, os.getpid()]))
        finally:
            process.kill()
            if running is not None:
                running.discard(process)
    if process.returncode < 0 and job.part:
        with suppress(OSError):
            remove_part(Path(job.part))
    lines = errors.splitlines()
    failures = [line.removeprefix('error: ') for line in lines if line.startswith('error: ')]
    failure = failures[0] if failures else ''
    if process.returncode < 0:
        failure = f'{job.source}: found {_name_of(-process.returncode)}; expected an exit code'
    elif process.returncode and not failure:
        failure = f'exit code {process.returncode}: {lines[-1] if lines else "no message"}'
    return BatchResult(process.returncode, text, one_line(failure), tuple(
        line for line in lines if line.startswith('warning: ')))


def _name_of(number: int) -> str:
    """Describe a process that a signal has ended."""
    with suppress(ValueError):
        return f'a process ended by {signal.Signals(number).name}'
    return f'a process ended by signal {number}'


def records_of(jobs: Sequence[BatchJob], *, n_processes: int | None,
               dask: str) -> list[dict[str, Any]]:
    """
    Run jobs that print JSON and write nothing, here or on a cluster; print their warnings.

    :param jobs: jobs of different recordings.
    :param n_processes: number of processes at a time; None for the number of cores.
    :param dask: address of a scheduler, which runs them instead, ``''`` for none.
    :returns: what each job printed, in the order of the jobs, with ``file``, and ``error``, text
        or None.
    :raises TransportError: if there is no such scheduler.
    """
    records = {}
    for job, result in run_jobs(jobs, n_processes=n_processes, dask=dask):
        for line in result.warnings:
            print_line(line)
        printed = json.loads(result.text) if result.text.strip() else {}
        records[job.source] = {'file': job.source, **printed, 'error': result.error or None}
    return [records[job.source] for job in jobs]


def run_jobs(jobs: Iterable[BatchJob], *, n_processes: int | None, dask: str, path: str = '',
             line: str = '') -> Iterator[tuple[BatchJob, BatchResult]]:
    """
    Run jobs, here or on a cluster, and yield each with its result once it has ended.

    :param jobs: jobs, which are iterated over when they can begin.
    :param n_processes: number of processes at a time; None for the number of cores.
    :param dask: address of a scheduler, which runs them instead, ``''`` for none.
    :param path: file in the folder of the outputs, by which a worker recognises it, ``''`` for
        none.
    :param line: line of that file.
    :raises TransportError: if there is no such scheduler.
    """
    if not dask:
        yield from _run_here(jobs, n_processes or os.cpu_count() or 1)
        return
    from state_sensor_ros.commands.batch_cluster import connected, run_on_cluster
    with connected(dask) as client:
        yield from run_on_cluster(client, dask, jobs, path=path, line=line)


def _run_here(jobs: Iterable[BatchJob],
              n_processes: int) -> Iterator[tuple[BatchJob, BatchResult]]:
    running: set[subprocess.Popen[str]] = set()
    with ThreadPoolExecutor(n_processes, 'batch') as pool:
        futures = {pool.submit(run_job, job, running): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            for future in futures:
                future.cancel()
            _end(running)


def _end(running: set[subprocess.Popen[str]]) -> None:
    """End processes; kill those that do not end in time."""
    processes = list(running)
    for process in processes:
        with suppress(OSError):
            process.terminate()
    end_s = time.monotonic() + _END_S
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, end_s - time.monotonic()))
        with suppress(OSError):
            process.kill()


def show_failures(failures: Sequence[tuple[BatchJob, BatchResult]]) -> None:
    """
    Print a table of what failed, on standard error.

    :param failures: jobs, each with its result.
    """
    width = max(len(one_line(job.source)) for job, _ in failures)
    print_line(f'{"failed":{width}}  reason')
    for job, result in sorted(failures, key=lambda failure: failure[0].source):
        reason = result.error.removeprefix(f'{job.source}: ')
        print_line(f'{one_line(job.source):{width}}  {reason}')

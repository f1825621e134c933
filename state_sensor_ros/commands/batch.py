# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The same command for many recordings: in processes here, or on a Dask cluster.

A process that fails or is killed loses its own recording only.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
import json
import logging
import multiprocessing
import os
from pathlib import Path
import signal
import threading
from typing import Any

from state_sensor_ros.commands.cli import run_command
from state_sensor_ros.commands.terminal import captured, print_line, print_output
from state_sensor_ros.errors import reason_of, TransportError
from state_sensor_ros.texts import one_line

# Options whose values are paths.
_PATHS = ('file', 'input', 'output', 'truth', 'stack')
_TWICE = 'the process ended without a result, twice; it may lack memory'


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a command."""

    command: str  # name of the sub-command
    args: argparse.Namespace  # its parsed options
    source: str  # path of the recording
    output: str = ''  # path to write, '' for none


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a job."""

    code: int  # exit code
    text: str = ''  # standard output
    error: str = ''  # one line, '' for none
    warnings: Sequence[str] = ()


def job_of(command: str, args: argparse.Namespace, source: str, **changed: object) -> Job:
    """Return a job with the options of a batch, except the ``changed`` ones."""
    output = str(changed.get('output', ''))
    values: dict[str, Any] = {**vars(args), 'jobs': None, 'dask': '', 'quiet': True, **changed}
    if args.dask:
        # The current folder of a worker is another one.
        source, output = os.path.abspath(source), output and os.path.abspath(output)
        for name in _PATHS & values.keys():
            values[name] = [*map(os.path.abspath, values[name])] \
                if isinstance(values[name], list) else os.path.abspath(values[name])
    return Job(command, argparse.Namespace(**values), source, output)


def run_job(job: Job) -> Result:
    """Run a job in this process."""
    try:
        Path(job.output).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return Result(1, '', one_line(f'{job.output}: {reason_of(error)}'))
    with captured() as (output, errors):
        code = run_command(job.command, lambda: job.args)
    lines = errors.getvalue().splitlines()
    failures = [line.removeprefix('error: ') for line in lines if line.startswith('error: ')]
    return Result(code, output.getvalue(), failures[0] if failures else '',
                  [line for line in lines if line.startswith('warning: ')])


def run_jobs(jobs: Iterable[Job], *, n_processes: int | None,
             dask: str) -> Iterator[tuple[Job, Result]]:
    """
    Run jobs, here or on a cluster, and yield each with its result once it has ended.

    :param jobs: jobs, in the order in which they begin.
    :param n_processes: number of processes at a time; None for the number of cores.
    :param dask: address of a scheduler, which runs them instead, ``''`` for none.
    :raises TransportError: if there is no such scheduler.
    """
    waiting = deque(jobs)
    if dask:
        with _cluster(dask) as executor:
            yield from _run(executor, waiting, len(waiting))
        return
    while waiting:
        n_at_once = min(n_processes or os.cpu_count() or 1, len(waiting))
        with _processes(n_at_once) as pool:
            suspects = yield from _run(pool, waiting, n_at_once)
        # One of them has ended its process, and with it those of the others: again, each alone.
        for job in suspects:
            with _processes(1) as pool:
                if (yield from _run(pool, deque([job]), 1)):
                    yield job, Result(1, '', f'{job.source}: {_TWICE}')


def _run(executor: futures.Executor, waiting: deque[Job],
         limit: int) -> Generator[tuple[Job, Result], None, list[Job]]:
    """Run jobs, ``limit`` at a time; return those that were running when the executor broke."""
    running: dict[futures.Future[Result], Job] = {}
    while waiting or running:
        while waiting and len(running) < limit:
            try:
                running[executor.submit(run_job, waiting[0])] = waiting[0]
            except futures.BrokenExecutor:
                return [*running.values()]
            waiting.popleft()
        for future in futures.wait(running, return_when=futures.FIRST_COMPLETED).done:
            error = future.exception()
            if isinstance(error, futures.BrokenExecutor):
                return [*running.values()]
            yield running.pop(future), future.result() if error is None else Result(
                1, '', one_line(f'{type(error).__name__}: {error}'))
    return []


@contextmanager
def _processes(n_processes: int) -> Iterator[futures.Executor]:
    """Run jobs in processes, which an interruption of the block terminates."""
    # A fork would have the threads of this process in an unknown state.
    with futures.ProcessPoolExecutor(
            n_processes, multiprocessing.get_context('spawn'), _begin_worker) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _begin_worker() -> None:
    """Prepare a process of the pool: it ends with its parent, which alone gets Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end_worker)
    parent = multiprocessing.parent_process()

    def end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end, name='parent', daemon=True).start()


def _end_worker(_signum: int, _frame: object) -> None:
    """Interrupt the job, which removes its output, and end: a broken pool waits for that."""
    # The job, or the pool's loop, may take the exception for its own: the alarm ends the process.
    signal.alarm(1)
    raise KeyboardInterrupt


@contextmanager
def _cluster(address: str) -> Iterator[futures.Executor]:
    """Run jobs on a Dask cluster, until the end of the block."""
    import distributed
    logging.getLogger('distributed').setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    # A wrong address raises many types, among them TypeError, ImportError and RuntimeError.
    except Exception as error:
        reason = str(error).split('\n')[0] or 'no reply'
        raise TransportError(f'cannot connect to the scheduler {address}', f'{reason}; '
                             'expected an address such as tcp://HOST:8786') from error
    with client:
        if not client.nthreads():
            raise TransportError(address, 'the cluster has no worker; is a `dask worker` of it '
                                 'running?')
        yield client.get_executor(pure=False, retries=3)


def records_of(jobs: Sequence[Job], *, n_processes: int | None, dask: str,
               is_json: bool) -> list[dict[str, Any]]:
    """
    Run jobs that print JSON and write nothing, here or on a cluster; print their warnings.

    :param jobs: jobs of different recordings.
    :param n_processes: number of processes at a time; None for the number of cores.
    :param dask: address of a scheduler, which runs them instead, ``''`` for none.
    :param is_json: whether each record is printed as soon as those before it are.
    :returns: what each job printed, in the order of the jobs, with ``file``, and ``error``, text
        without the file, or None.
    :raises TransportError: if there is no such scheduler.
    """
    records: dict[str, dict[str, Any]] = {}
    waiting = deque(jobs)
    for job, result in run_jobs(jobs, n_processes=n_processes, dask=dask):
        for line in result.warnings:
            print_line(line)
        printed = json.loads(result.text) if result.text.strip() else {}
        error = result.error.removeprefix(f'{job.source}: ')
        records[job.source] = {**printed, 'file': job.source, 'error': error or None}
        while is_json and waiting and waiting[0].source in records:
            print_output(json.dumps(records[waiting.popleft().source], allow_nan=False))
    return [records[job.source] for job in jobs]


def print_records(records: Sequence[Mapping[str, Any]], noun: str, headings: Sequence[str],
                  cells_of: Callable[[Mapping[str, Any]], Iterable[str]], *,
                  width: int) -> None:
    """
    Print a row for each recording: its name, cells, and the error if it has one.

    :param records: records of :func:`records_of`.
    :param noun: heading of the names.
    :param headings: headings of the cells.
    :param cells_of: returns the cells of a record.
    :param width: width of the cells.
    """
    rows = [(noun, headings, ''), *((one_line(record['file']), cells_of(record), one_line(
        record['error'] or '')) for record in records)]
    first = max(len(name) for name, *_ in rows)
    for name, cells, error in rows:
        print_output(f'{name:{first}}' + ''.join(f'  {cell:>{width}}' for cell in cells)
                     + (f'  {error}' if error else ''))

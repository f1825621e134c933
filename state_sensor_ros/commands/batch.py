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
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import asdict, dataclass, field, replace
from io import StringIO
import json
import logging
import multiprocessing
import os
from pathlib import Path
import signal
import subprocess
import sys
import threading
import time
from typing import Any, TYPE_CHECKING, TypeVar

from state_sensor_ros.commands.command_line import run_parsed
from state_sensor_ros.commands.interruption import call_in_daemon
from state_sensor_ros.commands.parameter_values import UNUSED
from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.errors import reason_of, TrajectoryFormatError, TransportError
from state_sensor_ros.files.storage.input_file import check_regular
from state_sensor_ros.files.whole.output import captured_output, print_output
from state_sensor_ros.files.whole.part import parts_of, remove_part
from state_sensor_ros.texts import one_line

if TYPE_CHECKING:
    from distributed import Client

Result = TypeVar('Result')

_MODULE = 'state_sensor_ros.commands.batch'
_PACKAGES = str(Path(__file__).resolve().parents[2])
# How often a Dask cluster repeats a task whose worker was lost.
_RETRIES = 3
# Limits of the wait for a reply of the scheduler, for a first worker, and for another one, s.
_REPLY_S, _WORKER_S, _LOST_S = 10.0, 4.0, 30.0
_CHECK_S, _CLOSE_S = 0.5, 2.0
_LOST = 'the scheduler no longer replies'


@dataclass(frozen=True, slots=True)
class BatchJob:
    """One run of a command."""

    command: str  # name of the sub-command
    options: Mapping[str, object]  # its parsed options, values of JSON
    source: str  # path of the recording
    output: str = ''  # path to write, '' for none


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a job."""

    code: int  # exit code
    text: str  # standard output
    error: str  # one line, '' for none
    warnings: Sequence[str] = field(default_factory=list)


def plain_options(args: argparse.Namespace) -> dict[str, object]:
    """
    Return the parsed options that are values of JSON, for jobs, which note what is read.

    :param args: the parsed options.
    """
    args.unread = {}
    return {name: value for name, value in vars(args).items()
            if value is None or isinstance(value, (str, bool, int, float, list))}


def run_job(job: BatchJob) -> BatchResult:
    """Run a job in the main thread of this process."""
    errors = StringIO()
    try:
        check_regular(job.source)
        if job.output:
            Path(job.output).parent.mkdir(parents=True, exist_ok=True)
    except TrajectoryFormatError as error:
        return BatchResult(1, '', str(error))
    except OSError as error:
        return BatchResult(1, '', one_line(f'{job.output}: {reason_of(error)}'))
    with redirect_stderr(errors), captured_output() as text:
        code = run_parsed(job.command, argparse.Namespace(**job.options))
    lines = errors.getvalue().splitlines()
    failures = [line.removeprefix('error: ') for line in lines if line.startswith('error: ')]
    failure = failures[0] if failures else ''
    if code and not failure:
        failure = f'exit code {code}: {lines[-1] if lines else "no message"}'
    return BatchResult(code, text.getvalue(), one_line(failure), [
        line for line in lines if line.startswith('warning: ')])


def records_of(jobs: Sequence[BatchJob], *, n_processes: int | None, dask: str,
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
        error = result.error
        for place in (job.source, os.path.abspath(job.source)):
            error = error.removeprefix(f'{place}: ')
        records[job.source] = {'file': job.source, **printed, 'error': error or None}
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


def run_jobs(jobs: Iterable[BatchJob], *, n_processes: int | None,
             dask: str) -> Iterator[tuple[BatchJob, BatchResult]]:
    """
    Run jobs, here or on a cluster, and yield each with its result once it has ended.

    At the end, the parameters that no job has used are named.

    :param jobs: jobs, in the order in which they begin.
    :param n_processes: number of processes at a time; None for the number of cores.
    :param dask: address of a scheduler, which runs them instead, ``''`` for none.
    :raises TransportError: if the scheduler or all workers are missing, or stop replying.
    """
    unused: set[str] | None = None
    for job, result in _results(deque(jobs), n_processes, dask):
        found = {name for line in result.warnings if line.startswith(UNUSED)
                 for name in line.removeprefix(UNUSED).split(', ')}
        if not result.code:
            unused = found if unused is None else unused & found
        yield job, replace(result, warnings=[line for line in result.warnings
                                             if not line.startswith(UNUSED)])
    if unused:
        print_line(UNUSED + ', '.join(sorted(unused)))


def _results(waiting: deque[BatchJob], n_processes: int | None,
             dask: str) -> Iterator[tuple[BatchJob, BatchResult]]:
    if dask:
        with _cluster(dask) as (executor, check):
            yield from _run(executor, waiting, len(waiting), run_on_worker, check)
        return
    known = {part for job in waiting for part in _parts_of(job)}
    while waiting:
        with _processes(min(n_processes or os.cpu_count() or 1, len(waiting))) as (executor, n):
            suspects = yield from _run(executor, waiting, n, run_job)
        # One of them has ended its process, and with it those of the others: again, each alone.
        for job in suspects:
            with _processes(1) as (executor, n):
                if (yield from _run(executor, deque([job]), n, run_job)):
                    yield job, BatchResult(1, '', f'{job.source}: the process ended without a '
                                           'result, twice; it may lack memory')
            for part in {*_parts_of(job)} - known:
                remove_part(part)


def _parts_of(job: BatchJob) -> list[Path]:
    """Return the parts beside an output, of programs that were killed or still run."""
    with suppress(OSError):
        return parts_of(Path(job.output)) if job.output else []
    return []


def _run(executor: Executor, waiting: deque[BatchJob], limit: int,
         run: Callable[[BatchJob], BatchResult], check: Callable[[], None] | None = None,
         ) -> Generator[tuple[BatchJob, BatchResult], None, list[BatchJob]]:
    """
    Run jobs with an executor.

    :param waiting: jobs, of which those that have not begun are left if the executor breaks.
    :param limit: number of jobs at a time.
    :param check: called now and then; raises an error if no job can end any more.
    :returns: the jobs that were running when the executor broke.
    """
    running: dict[Future[BatchResult], BatchJob] = {}
    suspects: list[BatchJob] = []
    while not suspects and (waiting or running):
        try:
            while waiting and len(running) < limit:
                job = waiting[0]
                running[executor.submit(run, absolute(job) if check else job)] = job
                waiting.popleft()
        except (BrokenExecutor, OSError) as error:
            # The pipe of a pool that breaks during a submission is closed.
            if isinstance(error, OSError) and str(error) != 'handle is closed':
                raise
        if not running:
            break
        for future in wait(running, _CHECK_S if check else None, FIRST_COMPLETED).done:
            if isinstance(future.exception(), BrokenExecutor):
                suspects = [*running.values()]
                break
            yield running.pop(future), _result_of(future)
        if check:
            check()
    return suspects


def _result_of(future: Future[BatchResult]) -> BatchResult:
    """Return the result of a job that has ended, or the reason why it has none."""
    error = future.exception()
    if error is not None:
        return BatchResult(1, '', one_line(f'{type(error).__name__}: {error}'))
    return future.result()


@contextmanager
def _processes(n_processes: int) -> Iterator[tuple[Executor, int]]:
    """Run jobs in processes, which end with the block."""
    # A fork would have the threads of this process in an unknown state.
    with ProcessPoolExecutor(n_processes, multiprocessing.get_context('spawn'),
                             _begin_worker) as pool:
        try:
            yield pool, n_processes
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # They remove what they have not completed.
            for process in multiprocessing.active_children():
                process.terminate()
            raise
        # All jobs have ended. A process that was killed may have held a lock of the pool, for
        # which the others would wait.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.kill()


def _begin_worker() -> None:
    """Prepare a process of the pool: it ends with its parent, which alone gets Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end, name='parent', daemon=True).start()


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Executor, Callable[[], None]]]:
    """Run jobs on a Dask cluster, until the end of the block."""
    with _connected(address) as client:
        executor: Executor = client.get_executor(pure=False, retries=_RETRIES)
        since_s = time.monotonic()
        limit_s = _WORKER_S

        def check() -> None:
            nonlocal since_s, limit_s
            try:
                n_workers = len(_limited(client.nthreads, _REPLY_S))
            # The exceptions of the library are of many types.
            except Exception as error:
                raise TransportError(address, _LOST) from error
            if client.status != 'running':
                raise TransportError(address, _LOST)
            if n_workers:
                since_s, limit_s = time.monotonic(), _LOST_S
            elif time.monotonic() - since_s > limit_s:
                raise TransportError(address, f'the cluster had no worker for {limit_s:.0f} s; '
                                     'is a `dask worker` of it running?')

        try:
            yield executor, check
        except TransportError:
            raise
        except CancelledError as error:
            # Only a client without its scheduler cancels a job that is waited for.
            raise TransportError(address, _LOST) from error
        except BaseException:
            # Only jobs that have not begun: a worker completes those that have.
            executor.shutdown(wait=False)
            raise


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """
    Connect to a Dask cluster, until the end of the block.

    :param address: address of the scheduler.
    :raises TransportError: if there is none.
    """
    import distributed
    # Each has a level of its own. A lost worker is not reported: another converts its recording.
    for name in ('distributed', 'distributed.client', 'distributed.core', 'tornado.application',
                 'asyncio'):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = _limited(lambda: distributed.Client(
            address, timeout=_REPLY_S, set_as_default=False), 2 * _REPLY_S)
    # A wrong address raises many types, among them TypeError, ImportError and RuntimeError.
    except Exception as error:
        reason = str(error).split('\n')[0] or 'no reply'
        raise TransportError(f'cannot connect to the scheduler {address}', f'{reason}; '
                             'expected an address such as tcp://HOST:8786') from error
    try:
        yield client
    finally:
        with suppress(Exception):
            _limited(lambda: client.close(timeout=_CLOSE_S), 2 * _CLOSE_S)


def _limited(call: Callable[[], Result], seconds: float) -> Result:
    """Return the result of a call; raise an error if it has not ended after ``seconds``."""
    return call_in_daemon(call, 'dask').result(seconds)


def run_on_worker(job: BatchJob) -> BatchResult:
    """Run a job in a process of its own: threads of a worker run several jobs at a time."""
    paths = [_PACKAGES, *filter(None, [os.environ.get('PYTHONPATH')])]
    done = subprocess.run(
        [sys.executable, '-m', _MODULE], input=json.dumps(asdict(job)), text=True, check=False,
        errors='replace', capture_output=True,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(paths)})
    with suppress(ValueError, TypeError):
        return BatchResult(**json.loads(done.stdout))
    return BatchResult(1, '', one_line(f'{job.source}: the process ended with {done.returncode}: '
                                       + ' '.join(done.stderr.splitlines()[-1:])))


def absolute(job: BatchJob) -> BatchJob:
    """
    Return a job whose paths do not depend on the current folder.

    :param job: job, in whose options ``file``, ``input``, ``output``, ``truth`` and ``stack`` are
        paths.
    """
    options = dict(job.options)
    for name in {'file', 'input', 'output', 'truth', 'stack'} & {*options}:
        value = options[name]
        options[name] = [os.path.abspath(path) for path in value] if isinstance(value, list) \
            else os.path.abspath(str(value))
    return replace(job, options=options, source=os.path.abspath(job.source),
                   output=job.output and os.path.abspath(job.output))


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


if __name__ == '__main__':
    json.dump(asdict(run_job(BatchJob(**json.load(sys.stdin)))), sys.stdout)

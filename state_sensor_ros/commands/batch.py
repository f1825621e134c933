# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The same command for many recordings: a process for each, here or on a Dask cluster.

A process that fails or is killed loses its own recording only. When the command is interrupted,
its processes end, and remove what they have not completed. Each worker of a cluster checks that it
has the recording and the folder of outputs of the client; waits for its scheduler are limited.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed, Executor, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
import ctypes
from dataclasses import dataclass, replace
from hashlib import sha256
import json
import logging
import os
from pathlib import Path
import signal
import subprocess
import sys
import time
from typing import Any, TYPE_CHECKING, TypeVar

from state_sensor_ros.commands.batch_outputs import is_newer, n_bytes_of
from state_sensor_ros.commands.interruption import call_in_daemon
from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.errors import one_line, reason_of, TrajectoryFormatError, TransportError
from state_sensor_ros.files.storage.input_file import check_regular
from state_sensor_ros.files.whole.output import print_output
from state_sensor_ros.files.whole.part import remove_part

if TYPE_CHECKING:
    from distributed import Client

Result = TypeVar('Result')

_MODULE = 'state_sensor_ros.commands.batch'
_PACKAGES = str(Path(__file__).resolve().parents[2])
# Time for processes to remove their unfinished outputs, before they are killed.
_END_S = 1.0
# <sys/prctl.h>
_SET_PARENT_DEATH_SIGNAL = 1
# How often a Dask cluster repeats a task whose worker was lost.
_RETRIES = 3
# Limits of the wait for a reply of the scheduler, and for a worker, s.
_REPLY_S, _WORKER_S = 10.0, 30.0
_POLL_S, _CHECK_S, _CLOSE_S = 0.05, 2.0, 2.0
# Compared at the beginning and the end of the largest file of a recording.
_COMPARED_BYTES = 64 * 1024
# Limit of the wait for a line of the list of outputs, which a network file system may delay, s.
_SHARED_S = 5.0


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


@dataclass(frozen=True, slots=True)
class _Shared:
    """What a worker must have: the digest of a recording; a line of a file, ``''`` for none."""

    digest: str
    path: str = ''
    line: str = ''


# Begins a job; raises TransportError if nothing can run jobs any more.
_Runner = tuple[Callable[[BatchJob], Future[BatchResult]], Callable[[], None]]


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
            [sys.executable, '-m', _MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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
        failure = f'{job.source}: the process was ended by {_name_of(-process.returncode)}'
    elif process.returncode and not failure:
        failure = f'exit code {process.returncode}: {lines[-1] if lines else "no message"}'
    return BatchResult(process.returncode, text, one_line(failure), tuple(
        line for line in lines if line.startswith('warning: ')))


def _name_of(number: int) -> str:
    """Return the name of a signal."""
    with suppress(ValueError):
        return signal.Signals(number).name
    return f'signal {number}'


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


def run_jobs(jobs: Iterable[BatchJob], *, n_processes: int | None, dask: str, path: str = '',
             line: str = '') -> Iterator[tuple[BatchJob, BatchResult]]:
    """
    Run jobs, here or on a cluster, and yield each with its result once it has ended.

    :param jobs: jobs, which are iterated over when they can begin.
    :param n_processes: number of processes at a time; None for the number of cores.
    :param dask: address of a scheduler, which runs them instead, ``''`` for none.
    :param path: file in the folder of the outputs, by which a worker recognizes it, ``''`` for
        none.
    :param line: line of that file.
    :raises TransportError: if the scheduler or all workers are missing, or stop replying.
    """
    with _cluster(dask, path and os.path.abspath(path), line) if dask else _processes(
            n_processes or os.cpu_count() or 1) as (submit, check):
        futures = {submit(job): job for job in jobs}
        left = set(futures)
        while left:
            # A cluster is checked now and then; here there is nothing to check.
            with suppress(FutureTimeoutError):
                for future in as_completed(left, _CHECK_S if dask else None):
                    left.discard(future)
                    yield futures[future], _result_of(future, dask)
            check()


def _result_of(future: Future[BatchResult], dask: str) -> BatchResult:
    """Return the result of a job that has ended, or the reason why it has none."""
    if future.cancelled():
        # Only a client without its scheduler cancels a job that is waited for.
        raise _lost(dask)
    error = future.exception()
    if error is not None:
        return BatchResult(1, '', one_line(f'{type(error).__name__}: {error}'))
    return future.result()


@contextmanager
def _processes(n_processes: int) -> Iterator[_Runner]:
    """Run jobs here, until the end of the block."""
    running: set[subprocess.Popen[str]] = set()
    with ThreadPoolExecutor(n_processes, 'batch') as pool:
        try:
            yield lambda job: pool.submit(run_job, job, running), lambda: None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
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


@contextmanager
def _cluster(address: str, path: str, line: str) -> Iterator[_Runner]:
    """Run jobs on a Dask cluster, until the end of the block."""
    with _connected(address) as client:
        executor: Executor = client.get_executor(pure=False, retries=_RETRIES)
        worker_s = time.monotonic()

        def submit(job: BatchJob) -> Future[BatchResult]:
            return executor.submit(_run_shared, absolute(job),
                                   _Shared(_digest(job.source), path, line))

        def check() -> None:
            nonlocal worker_s
            try:
                n_workers = len(_limited(client.nthreads, _REPLY_S))
            # The exceptions of the library are of many types.
            except Exception as error:
                raise _lost(address) from error
            if client.status != 'running':
                raise _lost(address)
            if n_workers:
                worker_s = time.monotonic()
            elif time.monotonic() - worker_s > _WORKER_S:
                raise TransportError(address, f'no worker for {_WORKER_S:.0f} s')

        try:
            yield submit, check
        except TransportError:
            raise
        except BaseException:
            # Only jobs that have not begun: a worker cannot end the process of a job, which
            # completes its output.
            executor.shutdown(wait=False)
            raise


def _lost(address: str) -> TransportError:
    return TransportError(address, 'the scheduler no longer replies')


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


def _run_shared(job: BatchJob, shared: _Shared) -> BatchResult:
    """Run a job on a worker, if the worker has the files of the client."""
    from distributed import get_worker
    worker = get_worker().address
    if _digest(job.source) != shared.digest:
        return BatchResult(1, '', one_line(
            f'{job.source}: found another file, or none, on the worker {worker}; expected a path '
            'that all workers share'))
    if shared.path and not _sees(shared.path, shared.line):
        return BatchResult(1, '', one_line(
            f'{os.path.dirname(shared.path)}: found another folder, or none, on the worker '
            f'{worker}; expected a path that all workers share'))
    return run_job(job)


def _digest(source: str) -> str:
    """Return the sizes of the files of a recording and parts of the largest, as one number."""
    top = Path(source)
    digest = sha256()
    with suppress(OSError):
        files = sorted(path for path in top.rglob('*') if path.is_file()) if top.is_dir() \
            else [top] if top.is_file() else []
        for path in files:
            digest.update(f'{path.relative_to(top)} {path.stat().st_size}\n'.encode(
                errors='surrogateescape'))
        if files:
            with max(files, key=n_bytes_of).open('rb') as file:
                digest.update(file.read(_COMPARED_BYTES))
                file.seek(max(0, file.seek(0, os.SEEK_END) - _COMPARED_BYTES))
                digest.update(file.read(_COMPARED_BYTES))
    return digest.hexdigest()


def _sees(path: str, line: str) -> bool:
    """Return whether a file has a line, within the time of a network file system."""
    end_s = time.monotonic() + _SHARED_S
    while True:
        with suppress(OSError), open(path, encoding='utf-8', errors='replace') as file:
            if f'{line}\n' in file:
                return True
        if time.monotonic() > end_s:
            return False
        time.sleep(_POLL_S)


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
                   output=job.output and os.path.abspath(job.output),
                   part=job.part and os.path.abspath(job.part))


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


def _end_with_parent() -> None:
    """
    Make the system kill this process when its parent ends.

    Otherwise it would still write after its Dask worker was killed, while another attempt writes.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def work() -> int:
    """Run the job that standard input has as JSON; return its exit code."""
    _end_with_parent()
    try:
        command, options, parent = json.load(sys.stdin)
    except ValueError:
        # The parent ended before it had written everything.
        return 1
    if os.getppid() != parent:
        return 1
    from state_sensor_ros.commands.command_line import run_parsed
    return run_parsed(command, argparse.Namespace(**options))


if __name__ == '__main__':
    sys.exit(work())

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The jobs of a batch on a Dask cluster.

Each worker checks that it has the same recording and the same folder of outputs as the client. All
waits for the scheduler are limited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
import logging
import os
from pathlib import Path
import time
from typing import Protocol, TypeVar

from state_sensor_ros.commands.batch import BatchJob, BatchResult, run_job
from state_sensor_ros.commands.batch_outputs import size_of
from state_sensor_ros.commands.daemon_call import call_in_daemon
from state_sensor_ros.errors import one_line, TransportError

Result = TypeVar('Result')

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
class _Shared:
    """What a worker must have: the digest of a recording; a line of a file, ``''`` for none."""

    digest: str
    path: str = ''
    line: str = ''


class _Future(Protocol):
    """The part of :class:`distributed.Future` that is used."""

    status: str

    def result(self, timeout: float) -> BatchResult:
        """Return the result."""

    def exception(self, timeout: float) -> BaseException:
        """Return the exception that the task has raised."""


class Client(Protocol):
    """The part of :class:`distributed.Client` that is used."""

    status: str

    def submit(self, task: Callable[[BatchJob, _Shared], BatchResult], job: BatchJob,
               shared: _Shared, *, pure: bool, retries: int) -> _Future:
        """Run a task on a worker."""

    def cancel(self, futures: Sequence[_Future]) -> None:
        """Cancel tasks that have not begun."""

    def nthreads(self) -> Mapping[str, int]:
        """Return the number of threads by worker."""

    def close(self, timeout: float) -> None:
        """End the connection."""


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


def run_on_cluster(client: Client, address: str, jobs: Iterable[BatchJob], *, path: str = '',
                   line: str = '') -> Iterator[tuple[BatchJob, BatchResult]]:
    """
    Run jobs on a Dask cluster, and yield each with its result once it has ended.

    :param client: client of the cluster, from :func:`connected`.
    :param address: address of the scheduler.
    :param path: file in the folder of the outputs, ``''`` for none.
    :param line: line of that file, by which a worker recognises the folder.
    :raises TransportError: if the scheduler or all workers are missing, or stop replying.
    """
    path = path and os.path.abspath(path)
    futures = {client.submit(
        _run_shared, absolute(job), _Shared(_digest(job.source), path, line), pure=False,
        retries=_RETRIES): job for job in jobs}
    try:
        yield from _results(client, address, futures)
    except TransportError:
        raise
    except BaseException:
        # Only jobs that have not begun: a worker cannot end the process of a job, which completes
        # its output.
        client.cancel(list(futures))
        raise


def _results(client: Client, address: str,
             futures: dict[_Future, BatchJob]) -> Iterator[tuple[BatchJob, BatchResult]]:
    """Yield the results of futures; check the cluster while there are none."""
    left, checked_s = dict(futures), time.monotonic()
    worker_s = checked_s
    while left:
        ended = [future for future in left if future.status in ('finished', 'error')]
        for future in ended:
            # The worker with the result may be lost: the job then runs again.
            with suppress(TimeoutError):
                yield left[future], _result_of(future)
                del left[future]
        now_s = time.monotonic()
        if now_s - checked_s > _CHECK_S:
            if _n_workers(client, address, left):
                worker_s = time.monotonic()
            elif now_s - worker_s > _WORKER_S:
                raise TransportError(address, f'no worker for {_WORKER_S:.0f} s')
            checked_s = time.monotonic()
        if not ended:
            time.sleep(_POLL_S)


def _result_of(future: _Future) -> BatchResult:
    """Return the result of a job, or the reason why it has none; raise TimeoutError."""
    if future.status == 'error':
        error = future.exception(timeout=_REPLY_S)
        return BatchResult(1, '', one_line(f'{type(error).__name__}: {error}'))
    return future.result(timeout=_REPLY_S)


def _n_workers(client: Client, address: str, left: dict[_Future, BatchJob]) -> int:
    """Return the number of workers; raise TransportError if the scheduler is gone."""
    try:
        n_workers = len(_limited(client.nthreads, _REPLY_S))
    # The exceptions of the library are of many types.
    except Exception as error:
        raise _lost(address) from error
    if client.status != 'running' or any(future.status == 'cancelled' for future in left):
        raise _lost(address)
    return n_workers


def _lost(address: str) -> TransportError:
    return TransportError(address, 'the scheduler no longer replies')


@contextmanager
def connected(address: str) -> Iterator[Client]:
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
        raise TransportError(f'cannot connect to the scheduler {address}', f'{reason}; the '
                             'address of one is such as tcp://HOST:8786') from error
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
    if shared.path and not _awaited(lambda: _has_line(shared.path, shared.line)):
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
            with max(files, key=size_of).open('rb') as file:
                digest.update(file.read(_COMPARED_BYTES))
                file.seek(max(0, file.seek(0, os.SEEK_END) - _COMPARED_BYTES))
                digest.update(file.read(_COMPARED_BYTES))
    return digest.hexdigest()


def _has_line(path: str, line: str) -> bool:
    with suppress(OSError), open(path, encoding='utf-8', errors='replace') as file:
        return f'{line}\n' in file
    return False


def _awaited(is_true: Callable[[], bool]) -> bool:
    """Return whether a function returns True within the time of a network file system."""
    end_s = time.monotonic() + _SHARED_S
    while not is_true():
        if time.monotonic() > end_s:
            return False
        time.sleep(_POLL_S)
    return True

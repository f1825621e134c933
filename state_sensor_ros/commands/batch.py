# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The same command for many recordings, in processes here or on a Dask cluster; `convert --to`.

A process that fails or is killed loses its own recording only.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from dataclasses import dataclass
import json
import logging
import multiprocessing
import os
from pathlib import Path
import signal
import sys
import threading
import traceback
from types import FrameType
from typing import Any, TYPE_CHECKING

from state_sensor_ros import ends, errors, texts
from state_sensor_ros.commands import cli, terminal
from state_sensor_ros.files import Format, format_of, format_of_name, formats, search
from state_sensor_ros.files.bag import is_bag
from state_sensor_ros.files.output import WholeFile

if TYPE_CHECKING:
    import pyarrow as pa

# Options whose values are paths.
_PATHS = ('file', 'input', 'output', 'truth', 'stack')
# Time for an interrupted job to remove its output, s.
_CLEAN_S = 1.0
_TWICE = 'the process ended without a result, twice; it may lack memory'


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a command."""

    command: str  # name of the sub-command
    args: argparse.Namespace  # its parsed options
    source: str  # path of the recording


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a job."""

    code: int  # exit code
    text: str = ''  # standard output
    error: str = ''  # one line, '' for none
    warnings: Sequence[str] = ()


def job_of(command: str, args: argparse.Namespace, source: str, **changed: object) -> Job:
    """Return a job with the options of a batch, except the ``changed`` ones."""
    values: dict[str, Any] = {**vars(args), 'jobs': None, 'dask': '', 'quiet': True, **changed}
    if args.dask:
        # The current folder of a worker is another one.
        source = os.path.abspath(source)
        values |= {name: [*map(os.path.abspath, value)] if isinstance(value, list)
                   else os.path.abspath(value) for name, value in values.items() if name in _PATHS}
    return Job(command, argparse.Namespace(**values), source)


class _Ending:
    is_begun = False


def run_job(job: Job) -> Result:
    """Run a job in this process."""
    if _Ending.is_begun:
        # Until the alarm, which a job would not survive.
        signal.pause()
    if job.command == 'convert':
        try:
            Path(job.args.output).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return Result(1, '', texts.one_line(f'{job.args.output}: {errors.reason_of(error)}'))
    with terminal.captured() as (output, printed):
        code = cli.run_command(job.command, lambda: job.args)
    lines = printed.getvalue().splitlines()
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
                1, '', texts.one_line(f'{type(error).__name__}: {error}'))
    return []


@contextmanager
def _processes(n_processes: int) -> Iterator[futures.Executor]:
    """Run jobs in processes, which an interruption of the block terminates."""
    # A fork would have the threads of this process in an unknown state.
    with futures.ProcessPoolExecutor(
            n_processes, multiprocessing.get_context('spawn'), _begin_worker) as pool:
        try:
            yield pool
        finally:
            # The pool, which waits for them, has no end if it broke while it started one.
            for process in multiprocessing.active_children():
                process.terminate()


def _begin_worker() -> None:
    """Prepare a process of the pool: it ends with its parent, which alone gets Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ends.interrupt_blocking_calls()
    # After it: its alarm would replace the one of the handler.
    signal.signal(signal.SIGTERM, _end_worker)
    parent = multiprocessing.parent_process()

    def end() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end, name='parent', daemon=True).start()


def _end_worker(_signum: int, frame: FrameType | None) -> None:
    """Interrupt the job, which removes its output; the process ends soon, whatever it awaits."""
    # A second signal, such as the parent's after that of a service manager, would end the removal.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _Ending.is_begun = True
    # By the system: no thread can begin while a lock of `threading` is held, as in its shutdown.
    signal.setitimer(signal.ITIMER_REAL, _CLEAN_S)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # The pool's loop goes on to its own end: it would block the pool with half of a result.
    if any(each.f_code is run_job.__code__ for each, _ in traceback.walk_stack(frame)):
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
        raise errors.TransportError(f'cannot connect to the scheduler {address}', f'{reason}; '
                                    'expected an address such as tcp://HOST:8786') from error
    with client:
        if not client.nthreads():
            raise errors.TransportError(address, 'the cluster has no worker; is a `dask worker` '
                                        'of it running?')
        yield client.get_executor(pure=False, retries=3)


def records_of(args: argparse.Namespace, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """
    Run jobs that print JSON and write nothing; print their warnings.

    With --json, each record is printed as soon as those before it are.

    :returns: what each job printed, in the order of the jobs, with ``file``, and ``error``, text
        without the file, or None.
    """
    records: dict[str, dict[str, Any]] = {}
    waiting = deque(jobs)
    for job, result in run_jobs(jobs, n_processes=args.jobs, dask=args.dask):
        for line in result.warnings:
            terminal.print_line(line)
        printed = json.loads(result.text) if result.text.strip() else {}
        error = result.error.removeprefix(f'{job.source}: ')
        records[job.source] = {**printed, 'file': job.source, 'error': error or None}
        while args.json and waiting and waiting[0].source in records:
            terminal.print_output(json.dumps(records[waiting.popleft().source], allow_nan=False))
    return [records[job.source] for job in jobs]


def write_table(args: argparse.Namespace, table_of: Callable[[], pa.Table]) -> None:
    """Write an Arrow table to the file of --parquet."""
    from pyarrow import parquet
    with WholeFile(args.parquet, force=args.force) as file:
        table = table_of()
        parquet.write_table(table, file.handle, write_page_checksum=True)
    terminal.show_result(
        args.parquet, [texts.counted(table.num_rows, 'row'), *terminal.size_of(args.parquet)],
        is_quiet=args.quiet or args.json)


def refuse_failures(command: str, records: Sequence[dict[str, Any]]) -> None:
    """Print the errors in records of a command, and raise one if there are any."""
    failed = [record for record in records if record['error'] is not None]
    for record in failed:
        terminal.print_line(f'error: {record["file"]}: {record["error"]}')
    if failed:
        raise errors.TrajectoryFormatError(
            command, f'{len(failed)} of {len(records)} recordings failed')


def convert_many(args: argparse.Namespace) -> None:
    """Convert all recordings whose outputs do not exist or are older, but no bag to a bag."""
    file_format = next(row for row in formats() if row.name == args.to)
    _check_folder(args, file_format)
    # Another file may have the suffix of a bag, too.
    recordings = search.find_recordings(args.input, without=args.output)
    bags = [found.path for found in recordings if file_format.storage and is_bag(Path(found.path))
            and (os.path.isdir(found.path) or format_of(found.path).storage)]
    if bags:
        terminal.print_line(
            f'warning: {args.output}: ignored, because they are bags: {texts.listed(bags)}')
    outputs = _outputs_of({found.path: found.place for found in recordings
                           if found.path not in bags}, args.output, file_format)
    jobs = [job_of('convert', args, path, input=[path], output=output, to=None, force=True,
                   storage=file_format.storage or None) for path, output in outputs.items()
            if args.force or not _is_newer(Path(output), Path(path))]
    # The largest first: a long job at the end would run alone.
    jobs.sort(key=lambda job: terminal.n_bytes_of(Path(job.source)), reverse=True)
    failures, n_done, shown = dict[str, str](), 0, set[str]()
    try:
        for job, result in run_jobs(jobs, n_processes=args.jobs, dask=args.dask):
            n_done += 1
            if result.code:
                failures[job.source] = result.error.removeprefix(f'{job.source}: ')
            # The same warning about many files is printed once.
            for line in result.warnings:
                text = line.replace(job.source, 'IN').replace(job.args.output, 'OUT')
                if text not in shown:
                    terminal.print_line(line)
                shown.add(text)
            if sys.stderr.isatty() and not args.quiet:
                sys.stderr.write(f'\r{n_done} of {len(jobs)}' + '\n' * (n_done == len(jobs)))
    except KeyboardInterrupt:
        terminal.print_line(f'{n_done - len(failures)} of {texts.counted(len(jobs), "recording")} '
                            'converted; the same command continues with the others')
        raise
    finally:
        width = max(map(len, ('failed', *map(texts.one_line, failures))))
        for name, reason in (('failed', 'reason'), *sorted(failures.items())) if failures else ():
            terminal.print_line(f'{texts.one_line(name):{width}}  {reason}')
    n_old = len(outputs) - len(jobs)
    if failures:
        raise errors.TrajectoryFormatError(
            args.output, f'{len(jobs) - len(failures)} of {len(jobs)} converted'
            + (f', {n_old} already up to date' if n_old else '') + f'; {len(failures)} failed: '
            + texts.listed(sorted(failures)))
    terminal.show_result(args.output, [
        f'{texts.counted(len(jobs), "recording")} converted', f'{n_old} already up to date',
        *([f'{len(bags)} ignored'] if bags else [])], is_quiet=args.quiet)


def _check_folder(args: argparse.Namespace, output: Format) -> None:
    """Refuse an OUT that is not a folder, or a storage that --to does not write."""
    folder, named = Path(args.output), format_of_name(args.output)
    if named is not None and not folder.exists():
        raise errors.UsageError(f'OUT {args.output} is the name of {named.noun}; expected a '
                                'folder for the outputs of --to')
    if args.storage and output.storage != args.storage:
        raise errors.UsageError(f'--storage {args.storage}: --to {args.to} writes {output.noun}')
    if folder.exists() and not folder.is_dir():
        raise errors.ConfigError('OUT', args.output, 'a folder')


def _outputs_of(places: dict[str, str], folder: str, file_format: Format) -> dict[str, str]:
    """Return the path of the output of each recording; ``places``: that in the folder by path."""
    # Bags are folders: that of ``a.json`` beside ``a/b.json`` cannot be ``a``.
    suffix = '' if file_format.storage else file_format.suffixes[0]
    outputs = {path: os.path.join(folder, place + suffix) for path, place in places.items()}
    folders = {str(parent) for output in outputs.values() for parent in Path(output).parents}
    for path, output in outputs.items():
        if str(Path(output)) in folders or os.path.realpath(path) == os.path.realpath(output):
            raise errors.ConfigError(
                'OUT', f'{output}, which is also an input or the folder of others',
                'another folder, or other names')
    return outputs


def _is_newer(output: Path, source: Path) -> bool:
    """Return whether the last change of a file, or of any in a folder, is that of the output."""
    def changed_ns(path: Path) -> int:
        files = path.rglob('*') if path.is_dir() else [path]
        return max((file.stat().st_mtime_ns for file in files if not file.is_dir()), default=0)

    with suppress(OSError):
        return changed_ns(output) >= changed_ns(source)
    return False

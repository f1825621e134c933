# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Batches on a Dask cluster: paths, and schedulers that are wrong, silent or lost."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

from budgets import AWAIT_S, one_of
from ports import free_port
from process_state import children
import pytest
from test_batch import await_that, ENVIRONMENT, running, tree

from state_sensor_ros.commands import batch
from state_sensor_ros.commands.batch import BatchJob
from state_sensor_ros.commands.command_line import main

# Of the test that ends a worker: enough that one waits for each worker then.
N_JOBS = 4


@pytest.fixture(autouse=True)
def distributed():
    """Return the library; without it these tests are skipped."""
    return pytest.importorskip('distributed')


@pytest.fixture
def scheduler(distributed, tmp_path):
    """Run a Dask scheduler; return its process, its address and a function that adds a worker."""
    port = free_port()
    address = f'tcp://127.0.0.1:{port}'
    with contextlib.ExitStack() as stack:
        def start(*words, cwd=tmp_path):
            process = stack.enter_context(subprocess.Popen(
                [sys.executable, '-m', *map(str, words)], env=ENVIRONMENT, cwd=cwd,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            stack.callback(process.kill)
            return process

        def add_worker(cwd):
            cwd.mkdir(exist_ok=True)
            process = start(
                'distributed.cli.dask_worker', address, '--host', '127.0.0.1', '--no-nanny',
                '--no-dashboard', '--nthreads', '1', '--local-directory', cwd / 'worker',
                '--death-timeout', int(AWAIT_S), cwd=cwd)
            with distributed.Client(address, timeout=AWAIT_S, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=AWAIT_S)
            return process

        process = start('distributed.cli.dask_scheduler', '--host', '127.0.0.1', '--port', port,
                        '--no-dashboard')
        # Returns when the scheduler replies.
        distributed.Client(address, timeout=AWAIT_S, set_as_default=False).close()
        yield SimpleNamespace(process=process, address=address, add_worker=add_worker)


def wait_less(monkeypatch):
    """Wait for less; for replies of a scheduler that runs as long as ever."""
    monkeypatch.setattr(batch, '_WORKER_S', 2.0)
    monkeypatch.setattr(batch, '_CHECK_S', 0.5)


@pytest.fixture
def short_waits(monkeypatch):
    wait_less(monkeypatch)


def synth(path, seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    assert main(['synth', str(path), '--frames', '3', '--seed', str(seed), '--quiet']) == 0


def error_of(capsys, *words):
    """Return the last line of the errors of a command that fails."""
    assert main([*map(str, words)]) == 1
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.thorough
def test_relative_paths_are_those_of_the_client(scheduler, tmp_path, monkeypatch, capsys):
    """Also, before there is one: a scheduler without workers is one line."""
    here, there = tmp_path / 'here', tmp_path / 'there'
    synth(here / 'drives' / 'a.json', 1)
    synth(there / 'drives' / 'a.json', 2)
    monkeypatch.chdir(here)
    with monkeypatch.context() as patched:
        wait_less(patched)
        assert error_of(capsys, 'convert', 'drives', 'out', '--to', 'json', '--dask',
                        scheduler.address) == (
                            f'error: {scheduler.address}: the cluster had no worker for 2 s; '
                            'is a `dask worker` of it running?')
    scheduler.add_worker(there)
    capsys.readouterr()
    assert main(['convert', 'drives', 'out', '--to', 'json', '--dask', scheduler.address]) == 0
    assert main(['convert', 'drives', 'local', '--to', 'json']) == 0
    assert (here / 'out' / 'a.json').read_bytes() == (here / 'local' / 'a.json').read_bytes()
    assert not (there / 'out').exists()
    # Once more: what is there is skipped, also with a worker that runs elsewhere.
    assert main(['convert', 'drives', 'out', '--to', 'json', '--dask', scheduler.address]) == 0
    assert '0 recordings converted, 1 already up to date' in capsys.readouterr().out
    assert main(['inspect', 'drives', '--json', '--dask', scheduler.address]) == 0
    synth(here / 'drives' / 'b.json', 1)
    assert main(['convert', 'drives', 'out', '--to', 'csv', '--dask', scheduler.address]) == 0
    assert 'warning: 1 more: a table does not carry' in capsys.readouterr().err


@pytest.mark.thorough
def test_a_cluster_loses_a_worker_and_no_recording(distributed, scheduler, tmp_path):
    """Also: `inspect` on the worker that is left, and an interruption."""
    drives, out, cut, here = (tmp_path / name for name in ('drives', 'out', 'cut', 'here'))
    for i in range(N_JOBS):
        synth(drives / f'{i}.json', i)
    assert main(['convert', str(drives), str(here), '--to', 'json']) == 0
    expected = {f'{i}.json': (here / f'{i}.json').read_bytes() for i in range(N_JOBS)}
    assert tree(here) == [*expected]
    address = scheduler.address
    workers = [scheduler.add_worker(tmp_path / name) for name in ('one', 'two')]
    with distributed.Client(address, timeout=AWAIT_S) as client:
        client.wait_for_workers(2, timeout=AWAIT_S)
    with running('convert', drives, out, '--to', 'json', '--dask', address) as process:
        await_that(lambda: list(out.glob('*.json')), process)
        workers[0].send_signal(signal.SIGKILL)
        printed, errors = process.communicate(timeout=4 * AWAIT_S)
    assert (process.returncode, errors) == (0, ''), errors
    assert printed.startswith(f'{out}: {N_JOBS} recordings converted')
    assert {name: (out / name).read_bytes() for name in tree(out)} == expected

    with running('inspect', drives, '--json', '--dask', address) as process:
        printed, errors = process.communicate(timeout=4 * AWAIT_S)
    assert (process.returncode, errors) == (0, ''), errors
    assert [(record['file'], record['frames']) for record in map(
        json.loads, printed.splitlines())] == [(str(drives / name), 3) for name in expected]

    with running('convert', drives, cut, '--to', 'json', '--dask', address) as process:
        await_that(lambda: list(cut.glob('*.json')), process)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=AWAIT_S)
    assert (process.returncode, printed) == (130, '')
    [line] = errors.splitlines()
    assert re.fullmatch(
        r'interrupted: \d recordings? converted; not converted: .+, except for those that '
        'workers have begun and complete; the same command continues with them', line)
    with distributed.Client(address, timeout=AWAIT_S) as client:
        await_that(lambda: not client.run_on_scheduler(
            lambda dask_scheduler: len(dask_scheduler.tasks)), workers[1])
    # What it has begun goes on in a process of its own.
    await_that(lambda: not [*children(workers[1].pid, b'commands.batch')], workers[1])
    done = tree(cut)
    assert {*done} < {*expected}
    assert all((cut / name).read_bytes() == expected[name] for name in done)


def test_a_job_on_a_worker_ends_with_its_error(tmp_path):
    os.mkfifo(tmp_path / 'a.json')
    result = batch.run_on_worker(BatchJob('inspect', {}, str(tmp_path / 'a.json')))
    assert result == batch.BatchResult(
        1, '', f'{tmp_path / "a.json"}: found a pipe; expected a file', [])


@pytest.mark.parametrize('address', one_of([
    'tls://127.0.0.1:1', 'tcp://', 'x', 'ucx://x', 'inproc://x', 'http://127.0.0.1:1', '\n://'],
    n_always=3))
def test_an_address_that_is_none_is_one_line(address, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(batch, '_REPLY_S', 1.5)
    synth(tmp_path / 'a.json')
    line = error_of(capsys, 'inspect', tmp_path, '--dask', address)
    assert line.startswith('error: ')
    assert line.endswith('; expected an address such as tcp://HOST:8786')


def test_a_scheduler_that_is_not_there_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(batch, '_REPLY_S', 1.0)
    synth(tmp_path / 'a.json')
    address = f'tcp://127.0.0.1:{free_port()}'
    line = error_of(capsys, 'convert', tmp_path, tmp_path / 'out', '--to', 'json', '--dask',
                    address)
    assert line.startswith(f'error: cannot connect to the scheduler {address}: ')


@pytest.mark.thorough
@pytest.mark.parametrize('number', [signal.SIGSTOP, signal.SIGKILL])
def test_a_scheduler_that_is_lost_is_one_line(
        number, scheduler, short_waits, tmp_path, capsys, monkeypatch):
    drives, out = tmp_path / 'drives', tmp_path / 'out'
    synth(drives / '0.json')
    for i in range(1, 40):
        shutil.copy(drives / '0.json', drives / f'{i}.json')
    scheduler.add_worker(tmp_path)

    def lose():
        end_s = time.monotonic() + AWAIT_S
        while time.monotonic() < end_s and not list(out.glob('*.json')):
            time.sleep(0.01)
        scheduler.process.send_signal(number)
        monkeypatch.setattr(batch, '_REPLY_S', 1.5)

    thread = threading.Thread(target=lose)
    thread.start()
    line = error_of(capsys, 'convert', drives, out, '--to', 'json', '--dask', scheduler.address)
    thread.join()
    assert line == f'error: {scheduler.address}: the scheduler no longer replies'

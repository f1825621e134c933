# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Forks of a server start, run and end as new processes do."""

import json
import os
import signal
import subprocess
import sys
import time

from budgets import AWAIT_S
from fork_server import ForkServer
import pytest

HEAD = 'import atexit, json, os, signal, sys, threading, time\n'
STATE = HEAD + """
print(json.dumps({
    'arguments': sys.argv, 'path': sys.path, 'folder': os.getcwd(), 'name': __name__,
    'main': vars(sys.modules['__main__'])['__name__'], 'environment': dict(os.environ),
    'native environment': sorted(os.popen('env -0').read().split(chr(0))),
    'signals': [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    'blocked': len(signal.pthread_sigmask(signal.SIG_BLOCK, ())), 'group': os.getpgrp(),
    'session': os.getsid(0), 'descriptors': sorted(os.listdir('/proc/self/fd'))[:3],
    'streams': [(stream.encoding, stream.errors, stream.line_buffering, stream.seekable(),
                 stream.isatty(), stream.fileno(), stream is original)
                for stream, original in ((sys.stdin, sys.__stdin__), (sys.stdout, sys.__stdout__),
                                         (sys.stderr, sys.__stderr__))],
    'threads': [thread.name for thread in threading.enumerate()],
    'n_threads': len(os.listdir('/proc/self/task'))}))
"""
ENDS = {
    'ends': 'print(1)',
    'exits': 'print(1)\nsys.exit(3)',
    'exits with a text': 'print(1)\nsys.exit("wrong")',
    'leaves': 'print(1, flush=True)\nos._exit(4)',
    'raises': 'print(1)\nraise ValueError("wrong")',
    'is killed': 'print(1)\nos.kill(os.getpid(), signal.SIGKILL)',
    'is terminated': 'os.kill(os.getpid(), signal.SIGTERM)',
    'is interrupted': 'os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)',
    'has a function called at its end': 'atexit.register(print, "after")\nprint(1)',
    'awaits its threads': 'threading.Timer(0.1, lambda: print(2)).start()\nprint(1)',
    'cannot print': 'os.close(1)\nprint(1)',
    'reads': 'print(sys.stdin.read(), sys.argv)'}


@pytest.fixture(scope='module')
def server():
    return ForkServer('nothing')


@pytest.fixture
def both(server, tmp_path):
    """Return a function that starts a script as a fork, then as a new process."""
    path = tmp_path / 'program.py'

    def start(program, *words, **options):
        path.write_text(program)
        yield server.start([str(path), *words], **options)
        yield subprocess.Popen([sys.executable, str(path), *words], **options)

    return start


PIPES = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE,
         'text': True}


def ended(process, given=''):
    with process:
        output, errors = process.communicate(given, timeout=AWAIT_S)
    return process.returncode, output, errors


@pytest.mark.parametrize('options', [
    {}, {'cwd': '/'}, {'env': {**os.environ, 'ONE': 'ä', 'HOME': '/nowhere'}},
    {'stdin': subprocess.DEVNULL}, {'stderr': subprocess.STDOUT}], ids=' '.join)
def test_fork_server_starts_as_a_process_starts(both, options):
    states = []
    for process in both(STATE, '-x', 'ä ö', **{**PIPES, 'env': os.environ, **options}):
        with process:
            output, _ = process.communicate(timeout=AWAIT_S)
        states.append(json.loads(output))
    fork, new = states
    assert fork == new


@pytest.mark.parametrize('end', ENDS)
def test_fork_server_program_ends_as_a_process_ends(both, end):
    (code, output, errors), new = (ended(process, 'given') for process in both(
        HEAD + ENDS[end], 'word', **PIPES))
    assert (code, output) == new[:2]
    # Its stack is that of the server, too.
    assert errors.splitlines()[-1:] == new[2].splitlines()[-1:]
    assert ('program.py' in errors) == ('program.py' in new[2])


def test_fork_server_does_not_collect_output(both):
    for process in both('print(1, flush=True)\ninput()\nprint(2)', **PIPES):
        assert process.stdout.readline() == '1\n'
        assert process.poll() is None
        assert ended(process, '\n') == (0, '2\n', '')


def test_fork_server_shows_processor_time_and_signals(both):
    for process in both('while True: pass', **PIPES):
        with process:
            before_s = os.times().children_user
            deadline_s = time.monotonic() + AWAIT_S
            while _cpu_s(process) < 0.1:
                assert time.monotonic() < deadline_s
            process.terminate()
            assert process.wait(AWAIT_S) == -signal.SIGTERM
            assert os.times().children_user - before_s > 0.05


def test_fork_server_programs_run_at_the_same_time(server, tmp_path):
    path = tmp_path / 'program.py'
    path.write_text('print(input())')
    processes = [server.start([path], **PIPES) for _ in range(3)]
    assert len({process.pid for process in processes}) == 3
    assert [ended(process, f'{i}\n') for i, process in enumerate(processes)] == [
        (0, f'{i}\n', '') for i in range(3)]


def _cpu_s(process):
    with open(f'/proc/{process.pid}/schedstat') as times:
        return int(times.read().split()[0]) / 1e9

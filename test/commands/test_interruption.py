# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""SIGINT, SIGTERM and SIGHUP at any moment: all of the work is done, or nothing is left of it."""

import fcntl
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

from budgets import AWAIT_S, each_once, one_of, spread
from paths import CARLA, DATA, SAMPLE
from process_state import wait_until_asleep
from programs import ENVIRONMENT, lines_of, run_cut_short, run_python
from programs import start as start_program
import pytest
from scripted_simulator import frame, serving
from stopwatch import Stopwatch

from state_sensor_ros.commands.command_line import main
from state_sensor_ros.texts import counted

LIMIT_S = 2.0
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
NOTHING = 'interrupted: nothing was written'


@pytest.fixture
def start(tmp_path):
    """Return a function that starts the program in a folder of its own."""
    processes = []

    def run(*words, **options):
        processes.append(start_program(*words, cwd=tmp_path, text=False,
                                       **{'stdout': None, **options}))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def ended(process, *numbers):
    """Send signals; return the exit code and what was printed, within the time limit."""
    watch = Stopwatch(process)
    for number in numbers:
        process.send_signal(number)
    code = watch.wait()
    assert watch.seconds < LIMIT_S
    return code, process.stderr.read().decode()


def n_unread(pipe):
    (number,) = struct.unpack('i', fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return number


def names(folder):
    return sorted(path.name for path in folder.iterdir())


READERS = [('inspect', '-'), ('convert', '-', 'out.json'), ('convert', '-', 'bag'),
           ('render', '-', 'out.png'), ('render', '-', 'out.html'), ('replay', '-')]


@pytest.mark.parametrize(('words', 'number'), [*zip(READERS, 2 * SIGNALS, strict=True)])
def test_interrupted_while_it_reads_leaves_nothing(tmp_path, start, words, number):
    process = start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b'[')
    process.stdin.flush()
    while n_unread(process.stdin):
        assert process.poll() is None
        threading.Event().wait(0.01)
    to = f' to {words[2]}' if len(words) > 2 else ''
    assert ended(process, number) == (128 + number, f'{NOTHING}{to}\n')
    assert process.stdout.read() == b''
    assert names(tmp_path) == []


@pytest.mark.parametrize('words', [
    ('inspect', 'fifo.json'), ('convert', 'fifo.json', 'out.json'),
    ('convert', 'fifo.json', 'bag'), ('render', 'fifo.json', 'out.png'), ('replay', 'fifo.json'),
    ('simulate', 'fifo.json', '--port', '0'), ('convert', str(SAMPLE), 'fifo.json'),
    ('synth', 'fifo.json')], ids=' '.join)
def test_interrupted_while_it_opens_a_pipe_ends(tmp_path, start, words):
    os.mkfifo(tmp_path / 'fifo.json')
    process = start(*words)
    wait_until_asleep(process)
    code, errors = ended(process, signal.SIGTERM)
    if words[0] == 'simulate':
        assert (code, errors) == (0, '')
    else:
        assert code == 143
        assert errors.startswith(NOTHING)
        assert errors.count('\n') == 1
    assert names(tmp_path) == ['fifo.json']


@pytest.mark.parametrize('words', [
    ('convert', str(SAMPLE), '-'), ('synth', '-', '--frames', '100000')], ids=' '.join)
def test_interrupted_while_its_output_is_not_read_ends(tmp_path, start, words):
    process = start(*words, stdout=subprocess.PIPE)
    wait_until_asleep(process)
    assert ended(process, signal.SIGTERM) == (
        143, 'interrupted: what was written to - is not complete\n')


def test_interrupted_by_several_signals_is_interrupted_by_the_first(tmp_path, start):
    process = start('synth', 'out.json', '--frames', '1000000')
    while not any(path.stat().st_size for path in tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.005)
    code, errors = ended(process, signal.SIGINT, *20 * [signal.SIGTERM, signal.SIGINT])
    assert code in (130, 143)
    assert errors == f'{NOTHING} to out.json\n'
    assert names(tmp_path) == []


@pytest.mark.parametrize('handler', one_of(['except KeyboardInterrupt', 'finally']))
def test_interrupted_in_a_library_that_does_not_end_leaves_nothing(tmp_path, start, handler):
    program = f"""
import sys, time
from state_sensor_ros.commands.command_line import main
from state_sensor_ros.commands import synth

def stuck(*_):
    while True:
        try:
            print('stuck', file=sys.__stdout__, flush=True)
            time.sleep(60)
        {handler}:
            time.sleep(60)

synth.encode_json = stuck
sys.exit(main())
"""
    with subprocess.Popen([sys.executable, '-c', program, 'synth', 'out.json'], cwd=tmp_path,
                          env=ENVIRONMENT, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b'stuck\n'
        assert names(tmp_path) == ['.out.json.part']
        assert ended(process, signal.SIGTERM) == (143, f'{NOTHING} to out.json\n')
    assert names(tmp_path) == []


def test_progress_needs_no_lock_between_processes(tmp_path):
    # From Python 3.14 on, such a lock starts a process.
    program = """
import sys
from state_sensor_ros.commands.command_line import main
assert main(['synth', 'out.json', '--frames', '3']) == 0
assert 'tqdm' in sys.modules
assert 'multiprocessing.synchronize' not in sys.modules
"""
    done = run_python('-c', program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


LOADING = """
import os, signal, sys, time

module, number = sys.argv.pop(), sys.argv.pop()
sys.argv += ['in.json', 'out.json'] if sys.argv[1] == 'convert' else []

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), signal.Signals[number])
            time.sleep(60)

sys.meta_path.insert(0, Finder())
from state_sensor_ros.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(('command', 'at_import'), each_once(['simulate', 'convert'], [
    ('state_sensor_ros.commands.command_line', signal.SIGINT), ('argparse', signal.SIGTERM),
    ('state_sensor_ros.commands.interruption', signal.SIGINT),
    ('state_sensor_ros.commands.{}', signal.SIGTERM), ('numpy', signal.SIGINT)]))
def test_interrupted_by_a_signal_at_an_import_has_the_usual_exit_code(command, at_import):
    module, number = at_import
    done = run_python('-c', LOADING, command, number.name, module.format(command))
    assert (done.returncode, done.stdout, done.stderr) == (
        (0, '', '') if command == 'simulate' else (128 + number, '', f'{NOTHING}\n'))


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    """Make what the programs read: a trajectory, bags, a compressed one."""
    folder = tmp_path_factory.mktemp('sources')
    (folder / 'in.json').write_text(json.dumps(json.loads(SAMPLE.read_text())[:3]))
    dataset = folder / 'dataset' / 'episode_00000'
    dataset.mkdir(parents=True)
    for number in range(2):
        shutil.copy(CARLA / dataset.name
                    / f'measurements_{number:05d}.json', dataset)
    assert main(['convert', str(folder / 'dataset'), str(folder / 'carla')]) == 0
    shutil.copytree(DATA / 'rosbag2_record_sqlite3', folder / 'compressed')
    return folder


WORDS = {
    'trajectory': ('convert', 'SOURCES/in.json', 'out.json'),
    'mcap': ('convert', 'SOURCES/in.json', 'out'),
    'sqlite': ('convert', 'SOURCES/in.json', 'out', '--storage', 'sqlite3'),
    'dataset': ('convert', 'SOURCES/carla', 'out'),
    'compressed': ('convert', 'SOURCES/compressed', 'out.json'),
    'synthetic': ('synth', 'out.json', '--frames', '3'),
    'picture': ('render', 'SOURCES/in.json', 'out.png'),
    'animation': ('render', 'SOURCES/in.json', 'out.html'),
    'report': ('inspect', 'SOURCES/in.json')}


class Trial:
    """Runs of a program in a folder, with an old output in it or without."""

    def __init__(self, sources, name, folder, has_old):
        self._words = [word.replace('SOURCES', str(sources)) for word in WORDS[name]]
        self._out = folder / self._words[-1] if name not in ('synthetic', 'report') \
            else folder / 'out.json'
        if name == 'sqlite':
            self._out = folder / 'out'
        self.name, self._folder, self._has_old = name, folder, has_old
        (folder / 'tmp').mkdir()
        self._run()
        self._whole, self._report = self._contents(), self._ended.output
        if has_old:
            self._words.append('--force')
        self._run()
        assert (self._ended.code, self._ended.errors) == (0, '')
        self.n_calls = self._ended.n_calls

    def _run(self, **options):
        if not self._has_old:
            shutil.rmtree(self._out, ignore_errors=True)
            self._out.unlink(missing_ok=True)
        begin_s = time.monotonic()
        self._ended = run_cut_short(*self._words, folder=self._folder, **options)
        assert time.monotonic() - begin_s < AWAIT_S

    def _contents(self):
        if self._out.is_dir():
            return {path.relative_to(self._out): path.read_bytes() if path.is_file() else None
                    for path in self._out.rglob('*')}
        return self._out.read_bytes() if self._out.exists() else None

    def is_interrupted(self, **options):
        """Run with a signal; return whether that ended it. All is there, or nothing."""
        self._run(**options)
        number = options['number']
        old = self._out.stat().st_ino if self._out.exists() else None
        assert names(self._folder / 'tmp') == []
        assert {*names(self._folder)} <= {'tmp', self._out.name}
        if self._ended.code == 0:
            assert self._ended.errors == ''
            assert self._ended.output == self._report
            assert self.name == 'report' or self._contents() is not None
            assert self.name in ('picture', 'animation') or self._contents() == self._whole
            return False
        if self._ended.code == -number:
            # Before the program receives signals, they end it as they end any program.
            assert self._has_old == (old is not None)
            return True
        assert self._ended.code == 128 + number
        to = '' if self.name == 'report' else f' to {self._out.name}'
        assert self._ended.errors in (f'{NOTHING}{to}\n', f'{NOTHING}\n')
        assert self._has_old or old is None
        if self._has_old:
            assert self._contents() == self._whole or self.name in ('picture', 'animation')
        return True


@pytest.fixture
def trial(sources, tmp_path):
    # Of the outputs that replace an old one, files and folders are enough.
    return lambda name: Trial(sources, name, tmp_path,
                              has_old=name in ('trajectory', 'mcap', 'dataset'))


# Pictures are written as trajectories are; a report is written without such calls.
@pytest.mark.parametrize('name', one_of([
    'trajectory', 'mcap', 'dataset', 'sqlite', 'compressed', 'synthetic'], n_always=2))
def test_interrupted_at_every_call_does_all_or_nothing(trial, name):
    trial = trial(name)
    found = [trial.is_interrupted(at_call=at_call, number=SIGNALS[at_call % 3])
             for at_call in spread(range(trial.n_calls + 1), 6)]
    assert found[0]
    # Just before the commit, the commit may happen first.
    assert not found[-1]


@pytest.mark.parametrize('name', one_of(WORDS, n_always=2))
def test_interrupted_at_any_moment_does_all_or_nothing(trial, name):
    trial = trial(name)
    at_event, n_interrupted = 1, 0
    while trial.is_interrupted(at_event=at_event, number=SIGNALS[n_interrupted % 3]):
        at_event += 2 * at_event + 7
        n_interrupted += 1
    assert n_interrupted > 5


@pytest.mark.parametrize('words', one_of([('--once',), ('--frames', '60')]))
def test_record_interrupted_at_any_moment_keeps_what_has_come(tmp_path, words):
    out, at_event, n_kept = tmp_path / 'out.json', 1, []
    with serving([frame(i / 20) for i in range(60)]) as port:
        while True:
            ended = run_cut_short('record', out.name, '--port', port, *words, folder=tmp_path,
                                  at_event=at_event, number=signal.SIGTERM)
            elements = json.loads(out.read_text()) if out.exists() else []
            assert [element['game_time'] for element in elements] == [
                i / 20 for i in range(len(elements))]
            if ended.code == 0:
                assert (len(elements), lines_of(ended.errors)) == (60, [])
                break
            assert ended.code in (143, -signal.SIGTERM)
            assert names(tmp_path) == (['out.json'] if elements else [])
            lines = [line for line in ended.errors.splitlines() if 'interrupted: ' in line]
            n_frames = counted(len(elements), 'frame')
            kept = f'interrupted: out.json has what was received: {n_frames}'
            assert lines in ([kept] if elements else [], [f'{NOTHING} to out.json'], [NOTHING])
            out.unlink(missing_ok=True)
            at_event += at_event // 2 + 7
            n_kept.append(len(elements))
    assert len(n_kept) > 5

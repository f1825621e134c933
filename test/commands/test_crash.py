# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Programs killed or without room at every write: the old or the new is there, whole."""

from collections.abc import Callable
from dataclasses import dataclass
import itertools
import json
from pathlib import Path
import re
import shutil
import signal

from budgets import first_of, spread, tries
from programs import run_cut_short
import pytest
from rosbags.rosbag2 import Reader
from scripted_simulator import frame, serving

from state_sensor_ros.commands.cli import main

N_RECORDED = 60
N_LIMITS = tries(3)
KILLED = -signal.SIGKILL, -signal.SIGXFSZ


def bag_contents(path):
    """Return what the library of other authors finds in a bag; its files are all there is."""
    with Reader(path) as reader:
        found = [(one.topic, at_ns, bytes(data)) for one, at_ns, data in reader.messages()]
        assert len(found) == reader.message_count
    assert len(list(path.iterdir())) == 2
    return found


def json_contents(path):
    return json.loads(path.read_bytes())


@dataclass(frozen=True)
class Case:
    """A program, what it writes to ``out``, and how that is read."""

    words: tuple[str, ...]
    old_words: tuple[str, ...]
    read: Callable[[Path], object]


@pytest.fixture(scope='module')
def cases(tmp_path_factory):
    """Make what the programs read; return them by name."""
    folder = tmp_path_factory.mktemp('sources')
    for name, words in (('new.json', ('--frames', '4')), ('old.json', ('--frames', '3'))):
        assert main(['synth', str(folder / name), '--vehicles', '3', '--objects', '2', *words]) \
            == 0

    def converted(name, read, *words):
        return Case(*(('convert', str(folder / f'{age}{name}'), 'out', *words)
                      for age in ('new', 'old')), read)

    with serving([frame(i / 20) for i in range(N_RECORDED)]) as port:
        yield {
            'json': Case(*(('convert', str(folder / f'{age}.json'), 'out.json')
                           for age in ('new', 'old')), json_contents),
            'mcap': converted('.json', bag_contents),
            'sqlite': converted('.json', bag_contents, '--storage', 'sqlite3'),
            'record': Case(('record', 'out.json', '--once', '-q', '--port', str(port)),
                           ('convert', str(folder / 'old.json'), 'out.json'), json_contents)}


NAMES = ['json', 'mcap', 'sqlite', 'record']
# A file, a folder, and what is kept as it comes; the others are written as one of these.
CASES = [(True, 'json'), (False, 'mcap'), (True, 'record')]
CASES += [case for case in itertools.product([True, False], NAMES) if case not in CASES]
each_state_and_case = pytest.mark.parametrize(
    ('trial', 'name'), first_of(CASES, n_always=3), indirect=['trial'])


def copy(source, target):
    return (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


class Trial:
    """Runs of one program in one folder, each in the state before it."""

    def __init__(self, case, folder, has_old):
        self.case, self.folder, self._has_old = case, folder, has_old
        self.out = folder / case.words[2 if case.words[0] == 'convert' else 1]
        kept = folder.with_name(f'{folder.name}_kept')
        kept.mkdir()
        self.kept = kept / self.out.name
        assert run_cut_short(*case.old_words, folder=kept).code == 0
        self.old = case.read(self.kept)
        self.restore()
        ended = self.run()
        assert (ended.code, ended.errors) == (0, '')
        self.new, self.n_calls = case.read(self.out), ended.n_calls
        self.n_bytes = max(path.stat().st_size for path in (self.out, *self.out.rglob('*')))
        assert [path.name for path in folder.iterdir()] == [self.out.name]
        assert self.new != self.old

    def restore(self):
        """Have the output as it was, and no other file."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        if self._has_old:
            copy(self.kept, self.out)

    def run(self, **options):
        # A record does not overwrite what another one has left.
        force = ('--force',) if self._has_old or self.case.words[0] == 'record' else ()
        return run_cut_short(*self.case.words, *force, folder=self.folder, **options)

    def found(self):
        """Return which one is there, whole."""
        if not self.out.exists():
            if not self._has_old:
                return 'none'
            # Of a folder, between the two renames.
            [moved] = self.folder.glob(f'.{self.out.name}*.part/*.old')
            assert self.case.read(moved) == self.old
            return 'old'
        contents = self.case.read(self.out)
        if contents == self.new:
            return 'new'
        assert self._has_old or self.case.words[0] == 'record'
        if contents == self.old:
            return 'old'
        # A recording that did not fit, under a name that was free.
        assert not self._has_old
        assert contents
        assert contents == self.new[:len(contents)]
        return 'part'

    def beside(self):
        return sorted(path.name for path in self.folder.iterdir() if path != self.out)


@pytest.fixture
def trial(cases, request, tmp_path):
    return lambda name: Trial(cases[name], tmp_path / 'work', has_old=request.param)


def limits(trial):
    """Return sizes of files, from none to all."""
    step = trial.n_bytes / N_LIMITS
    return sorted({*(int(i * step) for i in range(N_LIMITS)), 1, trial.n_bytes - 1,
                   trial.n_bytes})


@each_state_and_case
def test_killed_at_every_call_leaves_the_old_or_the_new(trial, name):
    trial = trial(name)
    found = []
    for at_call in spread(range(trial.n_calls + 1), 4):
        trial.restore()
        ended = trial.run(at_call=at_call, number=signal.SIGKILL)
        found.append(trial.found())
        assert ended.code in KILLED or (ended.code, found[-1]) == (0, 'new'), at_call
    # First the old one, then the new one.
    assert set(found) == {trial.found(), found[0]} == {'new', found[0]}
    assert found == sorted(found, key=lambda which: which == 'new')


@each_state_and_case
def test_without_room_for_a_write_the_old_one_stays(trial, name):
    trial = trial(name)
    check_full(trial, [(limit, {'limit': limit}) for limit in limits(trial)])


def check_full(trial, runs):
    found = []
    for what, options in runs:
        trial.restore()
        ended = trial.run(**options)
        found.append(trial.found())
        if ended.code == 0:
            assert (found[-1], trial.beside(), ended.errors) == ('new', [], ''), what
            continue
        assert ended.code == 1, what
        # Only the end of the last line may be missing in a recording.
        assert found[-1] != 'new' or trial.case.words[0] == 'record', what
        assert ended.errors.startswith(f'error: {trial.out.name}: '), what
        assert re.search('file too large|disk I/O error', ended.errors), what
        assert ended.errors.count('\n') == 1, what
        for name in trial.beside():
            # Only a recording leaves a file, and prints its name.
            assert trial.case.words[0] == 'record'
            assert name in ended.errors, what
    assert found[0] in ('none', 'old')
    assert found[-1] == 'new'

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Files are synced to the disk before they get their names."""

import json
import os
from pathlib import Path

from budgets import each_once
from paths import SAMPLE
import pytest
from scripted_simulator import frame, serving

from state_sensor_ros.commands.cli import main

RENAMED = 'renamed'


class Journal:
    """Notes in order: each path that is synced, with the size of a file, and each rename."""

    def __init__(self, monkeypatch):
        self.events = []
        self._fsync = os.fsync
        monkeypatch.setattr(os, 'fsync', self._sync)
        for owner, name in ((os, 'rename'), (os, 'replace')):
            monkeypatch.setattr(owner, name, self._renaming(getattr(owner, name)))

    def _sync(self, descriptor):
        path = Path(os.readlink(f'/proc/self/fd/{descriptor}'))
        self.events.append((path, os.fstat(descriptor).st_size if path.is_file() else 0))
        self._fsync(descriptor)

    def _renaming(self, function):
        def call(old, new, *flags):
            self.events.append((RENAMED, Path(old), Path(new)))
            return function(old, new, *flags)

        return call


@pytest.fixture(scope='module')
def sources(tmp_path_factory):
    """Make a trajectory."""
    folder = tmp_path_factory.mktemp('sources')
    frames = json.loads(SAMPLE.read_text())[:3]
    (folder / 'in.json').write_text(json.dumps(frames))
    return folder


@pytest.fixture
def port():
    with serving([frame(0.0), frame(1.0)]) as served:
        yield served


WORDS = {
    'record': ('record', 'OUT.json', '--frames', '2', '--port', 'PORT'),
    'trajectory': ('convert', 'in.json', 'OUT.json'),
    'synthetic': ('synth', 'OUT.json', '--frames', '2'),
    'picture': ('render', 'in.json', 'OUT.svg'), 'animation': ('render', 'in.json', 'OUT.html')}


@pytest.mark.parametrize(('name', 'is_forced'), each_once(list(WORDS), [False, True]))
def test_file_is_synced_before_it_gets_its_name(
        name, is_forced, sources, tmp_path, port, monkeypatch):
    words = [str(sources / word) if (sources / word).exists() else word.replace(
        'OUT', str(tmp_path / 'out')).replace('PORT', str(port)) for word in WORDS[name]]
    if is_forced and name in ('record', 'synthetic'):
        (tmp_path / 'out.json').write_text('old')
    elif is_forced:
        assert main(words) == 0
    journal = Journal(monkeypatch)
    assert main([*words, *(['--force'] if is_forced else [])]) == 0
    [out] = tmp_path.iterdir()
    [(i, old)] = [(i, event[1]) for i, event in enumerate(journal.events)
                  if event[0] == RENAMED and event[2] == out]
    synced = dict(event for event in journal.events[:i] if event[0] != RENAMED)
    assert synced[old] == out.stat().st_size

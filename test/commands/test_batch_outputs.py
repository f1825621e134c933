# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What a batch may replace and remove, and folders that are hard to search."""

import json
import os
import shutil
import subprocess

from budgets import AWAIT_S, is_large, one_of
from programs import run_cut_short, start
import pytest

from state_sensor_ros.commands.command_line import main


@pytest.fixture
def drives(tmp_path):
    """Make a folder with one small recording."""
    folder = tmp_path / 'drives'
    folder.mkdir()
    assert main(['synth', str(folder / 'a.json'), '--frames', '2', '--vehicles', '1',
                 '--quiet']) == 0
    return folder


def convert(*words):
    """Return the exit code of a batch of trajectories."""
    return main(['convert', *map(str, words), '--to', 'json', '--jobs', '1', '--quiet'])


def written(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob('*')
                  if not path.is_dir())


def test_a_batch_names_the_parts_that_killed_programs_left(drives, tmp_path, capsys):
    out = tmp_path / 'out'
    out.mkdir()
    recorded = out / '.a.json.part'
    recorded.write_text('[ what a killed record has left')
    assert convert(drives, out) == 0
    assert capsys.readouterr().err == (
        f'warning: {out}: killed programs have left {recorded}; they can be deleted if no other '
        'program is writing them\n')
    assert written(out) == ['.a.json.part', 'a.json']


def test_a_batch_replaces_no_folder_with_files_of_another_kind(drives, tmp_path, capsys):
    out = tmp_path / 'out'
    (out / 'a').mkdir(parents=True)
    (out / 'a' / 'notes.txt').write_text('of the user')
    os.utime(out / 'a' / 'notes.txt', (1, 1))
    assert main(['convert', str(drives), str(out), '--to', 'mcap', '--jobs', '1']) == 1
    assert 'notes.txt in it, which is not part of a bag' in capsys.readouterr().err
    assert written(out) == ['a/notes.txt']


def test_a_glob_writes_only_into_the_output(drives, tmp_path, capsys):
    (drives / 'day1').mkdir()
    out = tmp_path / 'deep' / 'out'
    assert convert(drives / '*' / '..' / '..' / 'drives' / 'a.json', out) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith('; expected wildcards only after the last ..')
    assert not out.parent.exists()
    # Before the wildcards it is a folder like any other.
    assert convert(drives / 'day1' / '..' / '*.json', out) == 0
    assert written(tmp_path / 'deep') == ['out/a.json']


@pytest.mark.parametrize('pattern', one_of(['', '**/*.json', '**', '*'], n_always=2))
def test_links_in_circles_end(pattern, drives, tmp_path):
    (drives / 'day1').mkdir()
    shutil.copy(drives / 'a.json', drives / 'day1' / 'b.json')
    for name in ('x', 'y'):
        (drives / name).symlink_to('.')
        (drives / 'day1' / name).symlink_to('..')
    (drives / 'day2').symlink_to('day1')
    # A search that enters each of these by each way has 2 ** 30 of them.
    for i in range(30):
        (drives / f'.{i}').mkdir()
        for name in ('x', 'y'):
            (drives / f'.{i}' / name).symlink_to(f'../.{i + 1}')
    (drives / 'chain').symlink_to('.0')
    out = tmp_path / 'out'
    assert convert(drives / pattern, out) == 0
    assert written(out) == ['a.json', 'day1/b.json']


def test_what_cannot_be_read_does_not_stop_the_rest(drives, tmp_path, capsys):
    (drives / 'dead.json').symlink_to('nowhere')
    (drives / 'loop.mcap').symlink_to('loop.mcap')
    os.mkfifo(drives / 'pipe.json')
    os.mkfifo(drives / 'pipe2.mcap')
    out = tmp_path / 'out'
    assert convert(drives, drives / 'dead.json', out, '--force') == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ['failed', *(
        str(drives / name) for name in ('dead.json', 'loop.mcap', 'pipe.json', 'pipe2.mcap'))]
    assert [line.split(maxsplit=1)[1] for line in lines[1:-1]] == [
        'no such file or directory', 'too many levels of symbolic links',
        'found a pipe; expected a file', 'found a pipe; expected a file']
    assert written(out) == ['a.json']
    assert main(['inspect', str(drives), '--jobs', '1']) == 1
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 6


def test_a_recording_beside_a_folder_of_its_name(drives, tmp_path):
    (drives / 'a').mkdir()
    shutil.copy(drives / 'a.json', drives / 'a' / 'b.json')
    out = tmp_path / 'out'
    words = ['convert', str(drives), str(out), '--to', 'mcap', '--jobs', '1', '--quiet']
    assert main(words) == 0
    assert (out / 'a_mcap' / 'metadata.yaml').is_file()
    assert (out / 'a' / 'b' / 'metadata.yaml').is_file()
    before = (out / 'a_mcap').stat().st_mtime_ns
    assert main(words) == 0
    assert (out / 'a_mcap').stat().st_mtime_ns == before
    shutil.copy(drives / 'a.json', drives / 'a_mcap.json')
    assert main(words) == 1


@pytest.mark.parametrize('file_format', ['mcap', 'sqlite3'])
def test_names_of_bags_may_have_dots(file_format, drives, tmp_path):
    (drives / 'a.json').rename(drives / 'a.fcd.json')
    assert main(['convert', str(drives), str(tmp_path / 'out'), '--to', file_format, '-q']) == 0
    assert (tmp_path / 'out' / 'a.fcd' / 'metadata.yaml').is_file()


def test_an_output_that_cannot_be_made_is_one_line(drives, capsys):
    for name in ('b', 'c'):
        shutil.copy(drives / 'a.json', drives / f'{name}.json')
    assert convert(drives, drives / 'a.json' / 'out') == 1
    assert capsys.readouterr().err == (f'error: {drives}/a.json/out: cannot make this folder: '
                                       'not a directory\n')


def test_a_recording_is_listed_once_by_its_own_name(drives, capsys):
    (drives / '0.json').symlink_to('a.json')
    assert main(['inspect', str(drives), '--json', '--jobs', '1', '--quiet']) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line)['file'] == str(drives / 'a.json')


def test_outputs_in_the_folder_of_the_inputs_are_not_inputs(drives):
    for _ in range(2):
        assert convert(drives, drives / 'out') == 0
        assert written(drives) == ['a.json', 'out/a.json']


@pytest.mark.thorough
def test_a_folder_of_great_depth_is_searched(drives, tmp_path):
    depth = 1200
    path = os.open(drives, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir('d', dir_fd=path)
        path, parent = os.open('d', os.O_RDONLY, dir_fd=path), path
        os.close(parent)
    os.close(path)
    try:
        assert convert(drives, tmp_path / 'out') == 0
    finally:
        # Python's removal is recursive.
        subprocess.run(['rm', '-r', str(drives / 'd')], check=True)
    assert written(tmp_path / 'out') == ['a.json']


@pytest.mark.parametrize('file_format', ['json', pytest.param('mcap', marks=pytest.mark.thorough)])
def test_two_batches_at_once_share_a_folder(file_format, drives, tmp_path):
    """Each output is whole, that of the last one."""
    names = 'abcdef' if is_large() else 'ab'
    for name in names[1:]:
        shutil.copy(drives / 'a.json', drives / f'{name}.json')
    words = ('convert', drives, tmp_path / 'out', '--to', file_format, '--jobs', '2')
    processes = [start(*words), start(*words)]
    for process in processes:
        with process:
            _, errors = process.communicate(timeout=4 * AWAIT_S)
        assert (process.returncode, errors) == (0, '')
    alone = tmp_path / 'alone'
    assert main([*map(str, (*words[:2], alone, *words[3:])), '-q']) == 0
    assert written(tmp_path / 'out') == [
        name.replace(str(alone), str(tmp_path / 'out')) for name in written(alone)]
    again = start(*words)
    with again:
        assert again.communicate(timeout=AWAIT_S)[0].endswith(
            f': 0 recordings converted, {len(names)} already up to date\n')


def test_a_batch_on_a_full_disk_leaves_no_output(drives, tmp_path):
    words = ('convert', 'drives', 'out', '--to', 'json', '--jobs', '1')
    ended = run_cut_short(*words, folder=tmp_path, limit=1000)
    assert (ended.code, ended.output) == (1, '')
    assert ended.errors.splitlines()[1:] == [
        'drives/a.json  out/a.json: file too large',
        'error: out: 0 of 1 converted; 1 failed: drives/a.json']
    assert written(tmp_path / 'out') == []
    ended = run_cut_short(*words, folder=tmp_path)
    assert ended.output == 'out: 1 recording converted, 0 already up to date\n'

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Folders that get their name once they are complete, and replace only folders of their kind."""

from contextlib import nullcontext
import json
import os
import shutil

from paths import DATA, SAMPLE
import pytest

from state_sensor_ros.commands.cli import main
from state_sensor_ros.errors import SinkError
from state_sensor_ros.files.output import WholeFolder


def contents(folder):
    """Return each file below a folder with its bytes, and each folder with None."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
            for path in folder.rglob('*')}


def own(folder):
    return {'a', 'b', 'c'}.__contains__


def folder_of(path, *, force=True):
    return WholeFolder(path, noun='thing', own=own, force=force)


def write(folder, text):
    """Write a new thing; return it."""
    whole = folder.inside / 'whole'
    whole.mkdir(parents=True)
    for name in ('a', 'c'):
        (whole / name).write_text(text)
    folder.whole = whole
    return whole


def made(path, text='old', **options):
    folder = folder_of(path, **options)
    write(folder, text)
    folder.complete()
    commit(folder)
    return folder


OLD, NEW = ({'a': text, 'c': text} for text in (b'old', b'new'))


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'out'


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def begun(path, **options):
    """Return a folder with a new thing in it, and that thing."""
    folder = folder_of(path, **options)
    return folder, write(folder, 'new')


def commit(folder, match=None):
    """Commit and end; ``match`` the error of it."""
    with nullcontext() if match is None else pytest.raises(SinkError, match=match):
        folder.finish()
    folder.abort()


def test_whole_folder_replaces_one_of_its_kind(path):
    made(path, force=False)
    assert contents(path) == OLD
    (path / 'b').write_text('more')
    made(path, 'new')
    assert contents(path) == NEW
    assert names(path.parent) == ['out']


def test_whole_folder_refuses_an_existing_name(path):
    path.mkdir()
    with pytest.raises(SinkError, match=r'a folder of that name exists; --force'):
        folder_of(path, force=False)
    with pytest.raises(SinkError, match='found an empty folder; expected nothing but a thing'):
        folder_of(path)
    path.rmdir()
    path.write_text('text')
    with pytest.raises(SinkError, match='found something that is no thing'):
        folder_of(path)
    assert names(path.parent) == ['out']


def add_file(path):
    (path / 'precious').write_text('text')


@pytest.mark.parametrize('add', [
    add_file, lambda path: (path / 'precious').mkdir(),
    lambda path: (path / 'precious').symlink_to('a'),
    # A folder and a pipe with the name of a file.
    lambda path: (path / 'b').mkdir(), lambda path: os.mkfifo(path / 'b')])
def test_whole_folder_refuses_one_with_another_entry(path, add):
    made(path)
    add(path)
    before = contents(path)
    with pytest.raises(SinkError, match=r'out: found (precious|b) in it, which is not'):
        folder_of(path)
    assert contents(path) == before
    assert names(path.parent) == ['out']


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """Return a bag of a few frames, and the trajectory that it was made from."""
    folder = tmp_path_factory.mktemp('bag')
    trajectory = folder / 'in.json'
    trajectory.write_text(json.dumps(json.loads(SAMPLE.read_text())[:3]))
    assert main(['convert', str(trajectory), str(folder / 'bag')]) == 0
    return folder / 'bag', trajectory


@pytest.fixture
def refused(refusal):
    """Return a function that converts with --force in vain, and returns why. OUT is unchanged."""
    def cause(source, out):
        before, beside = contents(out), names(out.parent)
        error = refusal('convert', source, out, '--force')
        assert (contents(out), names(out.parent)) == (before, beside)
        assert error.startswith(f'error: {out}: found ')
        return error.removeprefix(f'error: {out}: found ')
    return cause


@pytest.mark.parametrize('is_named', [False, True])
def test_convert_replaces_no_bag_with_other_files(bag, tmp_path, refused, is_named):
    """Not even if its metadata.yaml names them."""
    out = tmp_path / 'out'
    shutil.copytree(bag[0], out)
    if is_named:
        metadata = out / 'metadata.yaml'
        metadata.write_text(metadata.read_text().replace('bag_0.mcap', 'thesis.tex'))
        (out / 'bag_0.mcap').unlink()
    (out / 'thesis.tex').write_text('years of work')
    assert refused(bag[1], out).startswith('thesis.tex in it, which is not part of a bag')


@pytest.mark.parametrize('name', ['rosbag2_record_mcap', 'rosbag2_record_sqlite3'])
def test_convert_replaces_a_bag_of_rosbag2(bag, tmp_path, name):
    out = tmp_path / 'out'
    shutil.copytree(DATA / name, out)
    assert main(['convert', str(bag[1]), str(out), '--force']) == 0
    assert names(out) == ['metadata.yaml', 'out_0.mcap']
    assert names(tmp_path) == ['out']

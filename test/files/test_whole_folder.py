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
import errno
import json
import os
import shutil
import subprocess

from paths import CARLA, DATA, SAMPLE
import pytest

from state_sensor_ros.commands.cli import main
from state_sensor_ros.errors import SinkError
from state_sensor_ros.files.whole.whole_folder import WholeFolder


def contents(folder):
    """Return each file below a folder with its bytes, and each folder with None."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
            for path in folder.rglob('*')}


def own(folder):
    return {'a', 'b', 'deep/', 'deep/c'}.__contains__


def folder_of(path, *, force=True):
    return WholeFolder(path, noun='thing', own=own, force=force)


def write(folder, text):
    """Write a new thing; return it."""
    whole = folder.inside / 'whole'
    (whole / 'deep').mkdir(parents=True)
    for name in ('a', 'deep/c'):
        (whole / name).write_text(text)
    folder.whole = whole
    return whole


def made(path, text='old', **options):
    folder = folder_of(path, **options)
    write(folder, text)
    folder.complete()
    commit(folder)
    return folder


OLD, NEW = ({'a': text, 'deep': None, 'deep/c': text} for text in (b'old', b'new'))


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
        folder.commit()
    folder.abort()


def test_whole_folder_replaces_one_of_its_kind(path):
    assert made(path, force=False).remains == ''
    assert contents(path) == OLD
    (path / 'b').write_text('more')
    assert made(path, 'new').remains == ''
    assert contents(path) == NEW
    assert names(path.parent) == ['out']


def test_whole_folder_refuses_an_existing_name(path):
    path.mkdir()
    with pytest.raises(SinkError, match=r'a folder of that name exists; --force'):
        folder_of(path, force=False)
    with pytest.raises(SinkError, match='found an empty folder; expected a thing to overwrite'):
        folder_of(path)
    path.rmdir()
    path.write_text('text')
    with pytest.raises(SinkError, match='found something that is not a thing'):
        folder_of(path)
    assert names(path.parent) == ['out']


def add_file(path):
    (path / 'precious').write_text('text')


@pytest.mark.parametrize('add', [
    add_file, lambda path: (path / 'deep' / 'precious').write_text('text'),
    lambda path: (path / 'precious').mkdir(), lambda path: (path / 'precious').symlink_to('a'),
    # A folder and a pipe with the name of a file.
    lambda path: (path / 'b').mkdir(), lambda path: os.mkfifo(path / 'b')])
def test_whole_folder_refuses_one_with_another_entry(path, add):
    made(path)
    add(path)
    before = contents(path)
    with pytest.raises(SinkError, match=r'out: found (deep/)?(precious|b) in it, which is not'):
        folder_of(path)
    assert contents(path) == before
    assert names(path.parent) == ['out']


def test_whole_folder_keeps_both_where_an_entry_was_added_meanwhile(path):
    made(path)
    folder, whole = begun(path)
    add_file(path)
    commit(folder, r'precious in it.*; what was written is in .*/whole$')
    assert contents(path) == {**OLD, 'precious': b'text'}
    assert contents(whole) == NEW


def test_whole_folder_replaces_the_one_of_another_writer(path):
    folder, _ = begun(path, force=False)
    made(path, force=False)
    commit(folder)
    assert contents(path) == NEW
    assert names(path.parent) == ['out']


def test_whole_folder_keeps_both_where_another_kind_has_the_name_meanwhile(path):
    folder, whole = begun(path, force=False)
    # An empty folder, which rename() of the C library would replace.
    path.mkdir()
    commit(folder, 'an empty folder; expected a thing to overwrite; what was written')
    assert contents(path) == {}
    assert contents(whole) == NEW


def failing_from(monkeypatch, owner, name, n_calls):
    """Let a function fail from its n-th call on."""
    function, calls = getattr(owner, name), []

    def call(*args, **options):
        calls.append(args)
        if len(calls) > n_calls:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        return function(*args, **options)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize('name', ['rename', 'replace'])
def test_whole_folder_is_kept_where_a_rename_fails(path, monkeypatch, name):
    made(path)
    folder, whole = begun(path)
    with monkeypatch.context() as patch:
        failing_from(patch, os, name, 0)
        commit(folder, r'not permitted; what was written is in ')
    assert contents(path) == OLD
    assert contents(whole) == NEW


def test_whole_folder_replaces_the_target_of_a_link(path):
    made(path.with_name('target'))
    path.symlink_to('target')
    made(path, 'new')
    assert path.is_symlink()
    assert contents(path.with_name('target')) == NEW
    assert names(path.parent) == ['out', 'target']


def test_whole_folder_creates_the_target_of_a_dangling_link(path):
    path.symlink_to('target')
    made(path, 'new', force=False)
    assert path.is_symlink()
    assert contents(path.with_name('target')) == NEW
    path.with_name('astray').symlink_to('nowhere/target')
    with pytest.raises(SinkError, match='no such file or directory'):
        folder_of(path.with_name('astray'))


@pytest.fixture
def mount(tmp_path):
    """Return a function that mounts a file system; skip where that is not permitted."""
    mounted = []

    def run(target, *words):
        if subprocess.run(['mount', *words, target], capture_output=True,
                          check=False).returncode:
            pytest.skip('mounting is not permitted')
        mounted.append(target)

    yield run
    for target in mounted:
        subprocess.run(['umount', target], check=True)


def test_whole_folder_refuses_a_mount_point(path, mount):
    path.mkdir()
    mount(path, '-t', 'tmpfs', 'tmpfs')
    (path / 'a').write_text('old')
    with pytest.raises(SinkError, match='found a mount point; expected a folder that can be ren'):
        folder_of(path)
    assert names(path) == ['a']


def test_whole_folder_keeps_both_on_an_undetected_mount_point(path, mount):
    made(path)
    made(path.with_name('bound'))
    mount(path, '--bind', path.with_name('bound'))
    folder, whole = begun(path)
    commit(folder, r'busy; what was written is in ')
    assert contents(path) == OLD
    assert contents(whole) == NEW


def test_whole_folder_with_a_file_that_cannot_be_deleted_is_replaced(path, mount):
    made(path)
    path.with_name('bound').write_text('mounted')
    folder, whole = begun(path)
    mount(path / 'a', '--bind', path.with_name('bound'))
    commit(folder)
    assert contents(path) == NEW
    left = whole.with_name('out.old')
    assert folder.remains.endswith(f'in {left}: device or resource busy')
    # The fixture unmounts it at this path.
    shutil.rmtree(path)
    left.rename(path)


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


@pytest.mark.parametrize('metadata', [
    'name: my project\n', '', '{', '- 1', 'rosbag2_bagfile_information: 3', '\x00',
    'rosbag2_bagfile_information: {relative_file_paths: 3}', '[' * 100_000,
    '!!python/object:os.system {}', 'a: &a [*a]'])
def test_convert_replaces_no_other_folder_with_a_metadata_yaml(bag, tmp_path, refused,
                                                               metadata):
    out = tmp_path / 'out'
    out.mkdir()
    (out / 'metadata.yaml').write_text(metadata)
    (out / 'thesis.mcap').write_text('years of work')
    assert refused(bag[1], out).startswith('metadata.yaml in it, which is not part of a')


@pytest.mark.parametrize('name', ['rosbag2_record_mcap', 'rosbag2_record_sqlite3'])
def test_convert_replaces_a_bag_of_rosbag2(bag, tmp_path, name):
    out = tmp_path / 'out'
    shutil.copytree(DATA / name, out)
    assert main(['convert', str(bag[1]), str(out), '--force']) == 0
    assert names(out) == ['metadata.yaml', 'out_0.mcap']
    assert names(tmp_path) == ['out']


@pytest.fixture(scope='module')
def carla_bag(tmp_path_factory):
    bag = tmp_path_factory.mktemp('carla') / 'bag'
    assert main(['convert', str(CARLA), str(bag)]) == 0
    return bag


def test_convert_replaces_no_dataset_with_images(carla_bag, tmp_path, refused):
    out = tmp_path / 'out'
    shutil.copytree(CARLA, out)
    found = refused(carla_bag, out)
    assert 'is not part of a dataset that this program writes' in found
    # Without the other files it is replaced.
    for path in out.rglob('*'):
        if path.is_file() and not path.name.startswith('measurements_'):
            assert refused(carla_bag, out)
            path.unlink()
    assert main(['convert', str(carla_bag), str(out), '--force']) == 0
    assert names(tmp_path) == ['out']
    new = tmp_path / 'new'
    assert main(['convert', str(carla_bag), str(new)]) == 0
    assert {path.relative_to(out) for path in out.rglob('*')} == {
        path.relative_to(new) for path in new.rglob('*')}


def test_convert_reports_the_rest_of_the_old_bag(bag, tmp_path, capsys, monkeypatch):
    out = tmp_path / 'out'
    shutil.copytree(bag[0], out)
    failing_from(monkeypatch, os, 'unlink', 0)
    assert main(['convert', str(bag[1]), str(out), '--force']) == 0
    left = tmp_path / '.out.part' / 'out.old'
    assert capsys.readouterr().err == (
        f'warning: {out}: what is left of the old one is in {left}: operation not permitted\n')
    assert names(out) == ['metadata.yaml', 'out_0.mcap']
    assert names(left) == ['bag_0.mcap', 'metadata.yaml']

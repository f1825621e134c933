# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Folders that get their name once they are complete, and replace only folders of their kind."""

import json
import os
import shutil

from paths import DATA, SAMPLE
import pytest

from state_sensor_ros.commands.cli import main


def contents(folder):
    """Return each file below a folder with its bytes, and each folder with None."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
            for path in folder.rglob('*')}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


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


@pytest.mark.parametrize(('make', 'found'), [
    (lambda out: out.write_text('text'), 'something that is no bag'),
    (lambda out: (out.mkdir(), (out / 'a').write_text('text')), 'a in it'),
    (lambda out: (out / 'b.mcap').mkdir(parents=True), 'b.mcap in it')])
def test_convert_replaces_nothing_but_a_bag(bag, tmp_path, refused, make, found):
    make(tmp_path / 'out')
    assert refused(bag[1], tmp_path / 'out').startswith(found)


@pytest.mark.parametrize('add', [
    lambda path: (path / 'precious').mkdir(),
    lambda path: (path / 'precious').symlink_to('bag_0.mcap'),
    lambda path: os.mkfifo(path / 'precious')])
def test_convert_replaces_no_bag_with_another_entry(bag, tmp_path, refused, add):
    out = tmp_path / 'out'
    shutil.copytree(bag[0], out)
    add(out)
    assert refused(bag[1], out).startswith('precious in it, which is not part of a bag')


def test_convert_replaces_a_bag_only_with_force(bag, tmp_path, refusal):
    out = tmp_path / 'out'
    shutil.copytree(bag[0], out)
    before = contents(out)
    assert 'a folder of that name exists; --force' in refusal('convert', bag[1], out)
    assert contents(out) == before


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

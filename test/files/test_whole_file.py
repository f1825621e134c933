# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Files that get their name once they are complete."""

import os
import threading

from budgets import AWAIT_S
import pytest

from state_sensor_ros.errors import SinkError
from state_sensor_ros.files.output import part_of, remove_parts, WholeFile


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_whole_file_appears_at_the_end(tmp_path):
    path = tmp_path / 'out.json'
    file = WholeFile(str(path))
    file.handle.write(b'text')
    file.handle.flush()
    (name,) = names(tmp_path)
    assert name == '.out.json.part'
    file.finish()
    file.abort()
    assert names(tmp_path) == ['out.json']
    assert path.read_bytes() == b'text'


def test_whole_file_does_not_overwrite(tmp_path):
    path = tmp_path / 'out.json'
    path.write_bytes(b'old')
    with pytest.raises(SinkError, match=r'out\.json: a file of that name exists; --force'):
        WholeFile(str(path))
    file = WholeFile(str(path), force=True)
    file.handle.write(b'new')
    assert path.read_bytes() == b'old'
    file.finish()
    assert path.read_bytes() == b'new'


def test_whole_file_replaces_the_target_of_a_link(tmp_path):
    (tmp_path / 'target').write_bytes(b'old')
    (tmp_path / 'link').symlink_to('target')
    file = WholeFile(str(tmp_path / 'link'), force=True)
    file.handle.write(b'new')
    file.finish()
    assert (tmp_path / 'link').is_symlink()
    assert (tmp_path / 'target').read_bytes() == b'new'


def test_whole_file_writes_into_a_pipe(tmp_path):
    path = tmp_path / 'pipe'
    os.mkfifo(path)
    read = []
    thread = threading.Thread(target=lambda: read.append(path.read_bytes()))
    thread.start()
    file = WholeFile(str(path))
    file.handle.write(b'text')
    file.finish()
    thread.join(AWAIT_S)
    assert read == [b'text']


def test_whole_file_is_written_to_standard_output(capfdbinary):
    file = WholeFile('-')
    assert file.part is None
    file.handle.write(b'text')
    file.finish()
    file.abort()
    assert capfdbinary.readouterr().out == b'text'


@pytest.mark.parametrize('name', ['none/out.json', '.', 'x' * 300])
def test_whole_file_that_cannot_be_created_is_one_error(tmp_path, name):
    with pytest.raises(SinkError, match=r'no such|is a folder|not a directory|too long|null'):
        WholeFile(str(tmp_path / name))


@pytest.mark.parametrize(('raised', 'expected'), [
    (OSError(28, 'No space left on device'), SinkError), (BrokenPipeError(), BrokenPipeError),
    (KeyboardInterrupt(), KeyboardInterrupt), (ValueError(), ValueError)])
def test_whole_file_of_a_with_that_fails_is_removed(tmp_path, raised, expected):
    def write():
        with WholeFile(str(tmp_path / 'out.json')) as file:
            file.handle.write(b'text')
            raise raised

    with pytest.raises(expected) as caught:
        write()
    assert caught.type is expected
    assert names(tmp_path) == []
    file = WholeFile(str(tmp_path / 'out.json'))
    for _ in range(2):
        file.abort()
    assert names(tmp_path) == []


def test_whole_file_is_synced_before_it_gets_its_name(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, 'fsync', lambda file: synced.append(
        (os.listdir(tmp_path), os.fstat(file).st_size)))
    with WholeFile(str(tmp_path / 'a')) as file:
        file.handle.write(b'text')
    assert synced == [(['.a.part'], 4)]
    assert os.listdir(tmp_path) == ['a']


def test_part_is_removed_if_a_signal_ends_the_program_before_the_with(tmp_path):
    finished, begun = (WholeFile(str(tmp_path / name)) for name in ('finished', 'begun'))
    finished.finish()
    assert part_of(begun.path).exists()
    remove_parts()
    assert [path.name for path in tmp_path.iterdir()] == ['finished']

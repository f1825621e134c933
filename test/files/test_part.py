# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The part of an output: one writer at a time, and parts of killed programs are kept."""

import os
import subprocess
import sys

import pytest

from state_sensor_ros.errors import SinkError
from state_sensor_ros.files.whole import part as part_module
from state_sensor_ros.files.whole.part import Part

# Creates a part in another process, writes into it and waits until it is killed.
WRITER = """
import sys
from pathlib import Path
from state_sensor_ros.files.whole.part import Part
part = Part(Path(sys.argv[1]), 'out', is_folder=False)
part.path.write_text('text')
print(part.path.name, flush=True)
sys.stdin.read()
"""


def make(output, *, is_folder=False):
    return Part(output, 'out', is_folder=is_folder)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def output(tmp_path):
    return tmp_path / 'out [1].json'


@pytest.fixture
def writing(output):
    """Return a function that starts another program, a writer of the output."""
    processes = []

    def start():
        process = subprocess.Popen([sys.executable, '-c', WRITER, str(output)], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        processes.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize('is_folder', [False, True])
def test_part_is_beside_its_output_until_it_is_discarded(output, is_folder):
    part = make(output, is_folder=is_folder)
    assert names(output.parent) == ['.out [1].json.part']
    assert part.path.is_dir() == is_folder
    if is_folder:
        (part.path / 'deep').mkdir()
        (part.path / 'deep' / 'file').write_text('text')
    part.discard()
    part.discard()
    part.release()
    part.release()
    assert names(output.parent) == []


@pytest.mark.parametrize('is_folder', [False, True])
def test_part_of_an_output_that_is_being_written_is_refused(output, is_folder):
    part = make(output, is_folder=is_folder)
    for other in (False, True):
        with pytest.raises(SinkError, match=r'another program is writing it, in .*\.part'):
            make(output, is_folder=other)
    assert names(output.parent) == ['.out [1].json.part']
    part.discard()
    part.release()
    make(output)


def test_part_of_another_process_is_refused_until_it_is_killed(output, writing):
    process, name = writing()
    assert name == '.out [1].json.part'
    with pytest.raises(SinkError, match='another program'):
        make(output)
    process.kill()
    process.wait()
    part = make(output)
    assert part.path.name == '.out [1].json.2.part'
    assert [path.name for path in part.left_behind] == [name]
    assert part.left_behind[0].read_text() == 'text'
    # A part is refused by its lock, whatever its number.
    part.left_behind[0].unlink()
    with pytest.raises(SinkError, match=r'in .*\.2\.part'):
        make(output)
    assert names(output.parent) == ['.out [1].json.2.part']


def test_part_reuses_an_empty_one_of_its_kind_and_keeps_others(output):
    (output.parent / '.out [1].json.part').mkdir()
    (output.parent / '.out [1].json.3.part').touch()
    (output.parent / '.out [1].json.4.part').touch()
    (output.parent / '.out [1].json.x.part').touch()
    part = make(output)
    assert part.path.name == '.out [1].json.3.part'
    assert [path.name for path in part.left_behind] == [
        '.out [1].json.part', '.out [1].json.4.part']
    folder = make(output.with_name('other'), is_folder=True)
    assert folder.left_behind == []


def test_part_is_not_written_through_a_link(output):
    (output.parent / 'precious').touch()
    (output.parent / '.out [1].json.part').symlink_to('precious')
    with pytest.raises(OSError, match='symbolic link'):
        make(output)


def test_part_does_not_discard_a_file_that_took_its_name(output):
    part = make(output)
    part.path.unlink()
    part.path.write_text('of another program')
    part.discard()
    assert part.path.read_text() == 'of another program'
    part.release()
    make(output).discard()
    assert part.path.read_text() == 'of another program'


def test_part_is_kept_on_request(output):
    part = make(output)
    part.path.write_text('text')
    part.keep()
    part.discard()
    assert part.path.read_text() == 'text'


def test_part_on_a_file_system_without_locks_is_created(output, monkeypatch):
    def refuse(*_):
        raise OSError(95, os.strerror(95))

    monkeypatch.setattr(part_module.fcntl, 'flock', refuse)
    part = make(output)
    part.discard()
    assert names(output.parent) == []

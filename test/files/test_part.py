# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The part of an output: a neighbor for each writer, which no other writer touches."""

import os
import resource

import pytest

from state_sensor_ros.files.whole.part import Part
from state_sensor_ros.files.whole.whole_folder import WholeFolder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def output(tmp_path):
    return tmp_path / 'out [1].json'


@pytest.mark.parametrize('is_folder', [False, True])
def test_part_is_beside_its_output_until_it_is_discarded(output, is_folder):
    parts = [Part(output, is_folder=is_folder), Part(output, is_folder=not is_folder)]
    assert names(output.parent) == ['.out [1].json.2.part', '.out [1].json.part']
    for part, is_one in zip(parts, (is_folder, not is_folder), strict=True):
        assert part.path.is_dir() == is_one
        if is_one:
            (part.path / 'deep').mkdir()
            (part.path / 'deep' / 'file').write_text('text')
        part.discard()
        part.discard()
    assert names(output.parent) == []


def test_part_of_another_program_is_kept_and_known(output):
    other = Part(output, is_folder=False)
    other.path.write_text('text')
    for name in ('.out [1].json.x.part', '.out [1].json.2.part.gone', 'out [1].json.part'):
        output.with_name(name).touch()
    part = Part(output, is_folder=False)
    assert part.path.name == '.out [1].json.2.part'
    assert part.others == [other.path]
    assert other.path.read_text() == 'text'


def test_part_is_discarded_once(output):
    """Another program may have made one of that name since."""
    part = Part(output, is_folder=False)
    part.discard()
    other = Part(output, is_folder=False)
    part.discard()
    assert other.path.exists()


def test_part_is_not_written_through_a_link(output):
    (output.parent / 'precious').touch()
    (output.parent / '.out [1].json.part').symlink_to('precious')
    assert Part(output, is_folder=False).path.name == '.out [1].json.2.part'


@pytest.mark.parametrize('is_whole', [False, True])
def test_part_is_removed_with_one_descriptor(output, is_whole):
    """As many as are left where a program has failed for lack of them, or just not."""
    folder = WholeFolder(output, noun='thing', own=None, force=False, is_file=True)
    for place in ('a', 'a/b', 'a/b/c'):
        (folder.inside / place).mkdir()
        (folder.inside / place / 'file').write_text('text')
    folder.whole = folder.inside / 'a' / 'file'
    limits, last = resource.getrlimit(resource.RLIMIT_NOFILE), os.dup(0)
    os.close(last)
    folder.complete()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, limits[1]))
        (folder.commit if is_whole else folder.discard)()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert names(output.parent) == [output.name] * is_whole
    assert not folder.remains

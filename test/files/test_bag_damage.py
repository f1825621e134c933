# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Damaged bags: reading yields the frames that were written, or an error, never other frames."""

from contextlib import closing
import itertools
import json
import random
import shutil
import sqlite3

from budgets import tries
from mcap.writer import CompressionType, IndexType, Writer
from mcap_layout import CHUNK, FOOTER, offsets, records, rewritten
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames
from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files import bag_writer

PAGE_BYTES = 4096
VARIANTS = {
    'zstd': {'compression': CompressionType.ZSTD, 'chunk_size': 20_000},
    'lz4': {'compression': CompressionType.LZ4, 'chunk_size': 20_000},
    'no chunks': {'use_chunking': False},
    'no statistics': {'compression': CompressionType.NONE, 'use_statistics': False},
    'no summary': {'use_statistics': False, 'repeat_channels': False, 'repeat_schemas': False,
                   'index_types': IndexType.NONE, 'use_summary_offsets': False}}


@pytest.fixture(scope='module')
def bags(tmp_path_factory):
    """Write the same frames to a bag of each kind, MCAP of many chunks."""
    folder = tmp_path_factory.mktemp('damage')
    (folder / 'drive.json').write_text(json.dumps(list(
        itertools.islice(TrafficFrames(3, 2, 20.0, 3, 'v2'), 40))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bag_writer, '_CHUNK_BYTES', 16 * 1024)
        for storage in ('mcap', 'sqlite3'):
            assert main(['convert', str(folder / 'drive.json'), str(folder / storage),
                         '--storage', storage]) == 0
    return folder


@pytest.fixture
def mcap(bags, tmp_path):
    """Return a bag that may be damaged, and its storage file."""
    shutil.copytree(bags / 'mcap', tmp_path / 'mcap')
    return tmp_path / 'mcap', tmp_path / 'mcap' / 'mcap_0.mcap'


def frames_of(path):
    with sensor.open_recording(path) as recording:
        frames = [(frame.game_time, frame.names, frame.kinematics.tobytes(),
                   frame.boxes.rows.tobytes(), frame.wheels.speed.tobytes(),
                   frame.inputs.tobytes()) for frame in recording]
        assert recording.faults == []
    return frames


def outcome(path, expected):
    """Return the error of a bag, None where it is read as it was written."""
    try:
        found = frames_of(path)
    except TrajectoryFormatError as error:
        return error
    assert found == expected
    return None


def test_a_zeroed_page_never_yields_other_frames(mcap):
    path, file = mcap
    expected, data = frames_of(path), file.read_bytes()
    assert len(offsets(data, CHUNK)) > 5
    errors = []
    for begin in range(0, len(data), PAGE_BYTES):
        page = data[begin:begin + PAGE_BYTES]
        file.write_bytes(data[:begin] + bytes(len(page)) + data[begin + len(page):])
        errors.append(outcome(path, expected))
    assert all('`state_sensor repair`' in str(error) for error in errors if error)
    # No other CRC covers the indexes of messages, which are not used.
    assert sum(error is not None for error in errors) > 0.9 * len(errors)


def test_a_changed_byte_never_yields_other_frames(mcap):
    path, file = mcap
    expected, data, chance = frames_of(path), file.read_bytes(), random.Random(1)
    [footer] = offsets(data, FOOTER)
    # Anywhere, in the summary, and at the beginning of records.
    places = {chance.randrange(len(data)) for _ in range(tries(25))}
    places |= {chance.randrange(footer - 3000, footer) for _ in range(tries(10))}
    for _, at, length in chance.sample(list(records(data)), 30):
        places.add(at + chance.randrange(min(9 + length, 60)))
    places |= set(range(len(data) - 37, len(data)))
    for place in sorted(places):
        changed = bytearray(data)
        changed[place] ^= 1 << chance.randrange(8)
        file.write_bytes(changed)
        error = outcome(file, expected)
        assert error is not None or place < footer - 3000, place


def test_a_changed_byte_of_metadata_never_yields_other_frames(mcap):
    path, _ = mcap
    file, chance = path / 'metadata.yaml', random.Random(2)
    expected, data = frames_of(path), file.read_bytes()
    for _ in range(tries(60)):
        changed = bytearray(data)
        changed[chance.randrange(len(data))] = chance.choice(b' \n#:-\0{[&*\'"x9\xff')
        file.write_bytes(changed)
        outcome(path, expected)


@pytest.mark.parametrize('variant', VARIANTS)
def test_bags_of_other_writers_are_read(mcap, tmp_path, variant):
    path, file = mcap
    other = rewritten(file, tmp_path / 'other.mcap', **VARIANTS[variant])
    expected = frames_of(path)
    assert frames_of(other) == expected
    if 'chunk_size' not in VARIANTS[variant]:
        return
    data, chance = other.read_bytes(), random.Random(4)
    for _ in range(tries(20)):
        begin = chance.randrange(len(data))
        n_bytes = chance.choice((1, 1, 4, 512))
        other.write_bytes(data[:begin] + chance.randbytes(len(data[begin:begin + n_bytes]))
                          + data[begin + n_bytes:])
        outcome(other, expected)


def test_chunks_that_overlap_are_read_in_the_order_of_time(mcap, tmp_path):
    path, file = mcap
    expected, chance = frames_of(path), random.Random(5)
    reader = pytest.importorskip('mcap.reader')
    with file.open('rb') as opened, (tmp_path / 'mixed.mcap').open('wb') as out:
        found = [(schema, message.data) for schema, _, message in reader.make_reader(
            opened).iter_messages(['/state_sensor/frame'])]
        writer = Writer(out, chunk_size=20_000)
        writer.start('ros2')
        schema = found[0][0]
        channel = writer.register_channel('/x/frame', 'cdr', writer.register_schema(
            schema.name, schema.encoding, schema.data))
        order = sorted(range(len(found)), key=lambda i: i + chance.randrange(-9, 9))
        assert order != sorted(order)
        for i in order:
            writer.add_message(channel, i, found[i][1], i)
        writer.finish()
    assert len(offsets((tmp_path / 'mixed.mcap').read_bytes(), CHUNK)) > 3
    assert frames_of(tmp_path / 'mixed.mcap') == expected
    with sensor.open_recording(tmp_path / 'mixed.mcap') as recording:
        assert [recording[i].game_time for i in (30, 2, 39)] == [
            expected[i][0] for i in (30, 2, 39)]


def test_a_folder_without_metadata_is_read(mcap, refusal):
    path, file = mcap
    expected = frames_of(path)
    (path / 'metadata.yaml').unlink()
    assert frames_of(path) == expected
    # As a killed recorder leaves it.
    file.write_bytes(file.read_bytes()[:-100])
    assert '`state_sensor repair`' in refusal('inspect', path)


def test_sqlite_is_read_again_or_an_error(bags, tmp_path):
    shutil.copytree(bags / 'sqlite3', tmp_path / 'bag #1%')
    path = tmp_path / 'bag #1%'
    file, expected = path / 'sqlite3_0.db3', frames_of(bags / 'mcap')
    assert frames_of(path) == expected
    with sensor.open_recording(path) as recording:
        assert [recording[i].game_time for i in (30, 2)] == [expected[i][0] for i in (30, 2)]
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE messages SET data = 'text'")
    assert outcome(path, None) is not None
    file.write_bytes(file.read_bytes()[:20_000])
    assert outcome(path, None) is not None
    (path / 'sqlite3_0.db3-wal').write_bytes(b'x')
    assert 'messages are still in sqlite3_0.db3-wal' in str(outcome(path, None))

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
import zlib

from budgets import tries
from mcap_layout import CHUNK, FOOTER, mcap_writer, offsets, records, rewritten, without_crcs
from paths import DATA
import pytest

from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import generate
from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files.player import FileSource
from state_sensor_ros.files.storage import mcap_writer as storage_writer
from state_sensor_ros.simulators.opening import open_any

PAGE_BYTES = 4096
MESSAGE_INDEX, CHUNK_INDEX, STATISTICS = 0x07, 0x08, 0x0B


@pytest.fixture(scope='module')
def trajectory(tmp_path_factory):
    path = tmp_path_factory.mktemp('damage') / 'drive.json'
    frames = itertools.islice(generate(3, 2, 20.0, 3, 'v2'), 40)
    path.write_text(json.dumps(list(frames)))
    return path


@pytest.fixture(scope='module')
def bags(trajectory):
    """Write the same frames to a bag of each kind, MCAP of many chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage_writer, '_CHUNK_BYTES', 16 * 1024)
        for storage in ('mcap', 'sqlite3'):
            assert main(['convert', str(trajectory), str(trajectory.parent / storage),
                         '--storage', storage]) == 0
    return trajectory.parent


@pytest.fixture
def mcap(bags, tmp_path):
    """Return a bag that may be damaged, and its storage file."""
    shutil.copytree(bags / 'mcap', tmp_path / 'mcap')
    return tmp_path / 'mcap', tmp_path / 'mcap' / 'mcap_0.mcap'


def frames_of(path):
    with closing(open_any(str(path))) as recording:
        return [payload for _, payload in recording.payloads()]


def read(path):
    """Return the frames of a bag, None with an error."""
    try:
        return frames_of(path), None
    except TrajectoryFormatError as error:
        return None, error


def outcome(path, expected):
    """Return the error of a bag, None where it is read as it was written."""
    found, error = read(path)
    assert found is None or found == expected
    return error


def test_a_zeroed_page_never_yields_other_frames(mcap):
    path, file = mcap
    expected, data = frames_of(path), file.read_bytes()
    assert len(offsets(data, CHUNK)) > 5
    n_errors = 0
    for begin in range(0, len(data), PAGE_BYTES):
        page = data[begin:begin + PAGE_BYTES]
        file.write_bytes(data[:begin] + bytes(len(page)) + data[begin + len(page):])
        for bag in (path, file):
            error = outcome(bag, expected)
            n_errors += error is not None
            assert error is None or '`state_sensor repair`' in str(error)
    # CRCs cover the whole file.
    assert n_errors == 2 * len(range(0, len(data), PAGE_BYTES))


def test_a_changed_byte_never_yields_other_frames(mcap):
    path, file = mcap
    expected, data, chance = frames_of(path), file.read_bytes(), random.Random(1)
    # In the middle of chunks, and at each byte of the other records.
    places = {chance.randrange(len(data)) for _ in range(tries(25))}
    for _, at, length in chance.sample(list(records(data)), 30):
        places.add(at + chance.randrange(min(9 + length, 60)))
    places |= set(range(len(data) - 37, len(data)))
    for place in sorted(places):
        changed = bytearray(data)
        changed[place] ^= 1 << chance.randrange(8)
        file.write_bytes(changed)
        assert outcome(file, expected) is not None, place
    file.write_bytes(data)
    assert outcome(path, expected) is None


def test_a_changed_byte_of_metadata_never_yields_other_frames(mcap):
    path, _ = mcap
    file, chance = path / 'metadata.yaml', random.Random(2)
    expected, data = frames_of(path), file.read_bytes()
    for _ in range(tries(100)):
        place = chance.randrange(len(data))
        changed = bytearray(data)
        changed[place] = chance.choice(b' \n#:-\0{[&*\'"x9\xff')
        file.write_bytes(changed)
        outcome(path, expected)


@pytest.mark.parametrize('opcode', [MESSAGE_INDEX, CHUNK_INDEX, STATISTICS])
def test_an_index_without_a_crc_is_not_trusted(mcap, opcode):
    path, file = mcap
    expected, chance = frames_of(path), random.Random(3)
    data = without_crcs(file.read_bytes())
    file.write_bytes(data)
    assert outcome(path, expected) is None
    found = [(at, length) for one, at, length in records(data) if one == opcode]
    for _ in range(tries(25)):
        at, length = chance.choice(found)
        changed = bytearray(data)
        changed[at + 9 + chance.randrange(length)] ^= 1 << chance.randrange(8)
        file.write_bytes(changed)
        outcome(path, expected)


def test_a_missing_record_without_a_crc_is_an_error(mcap):
    path, file = mcap
    data = without_crcs(file.read_bytes())
    at = offsets(data, CHUNK)[3]
    # Records of an unknown opcode are skipped.
    file.write_bytes(data[:at] + b'\x90' + data[at + 1:])
    with pytest.raises(TrajectoryFormatError, match=r'messages, but .* in the summary'):
        frames_of(path)


def test_a_wrong_crc_is_named_with_its_chunk(mcap, capsys):
    path, file = mcap
    data = bytearray(file.read_bytes())
    at = offsets(data, CHUNK)[4]
    data[at + 1000] ^= 1
    file.write_bytes(data)
    assert main(['convert', str(path), '-']) == 1
    line = capsys.readouterr().err
    assert line.startswith(f'error: {file}: chunk at byte {at}: found a damaged bag (the CRC-32 ')
    assert '`state_sensor repair`' in line
    source = FileSource(open_any(str(path)), rate=0.0)
    with pytest.raises(TrajectoryFormatError, match=f'chunk at byte {at}: '):
        list(source.frames())
    assert f'chunk at byte {at}' in source.health.last_error


@pytest.mark.parametrize(('opcode', 'expected'), [(0x0F, 'the CRC-32'), (FOOTER, 'the CRC-32')])
def test_a_wrong_crc_of_data_and_summary_is_named(mcap, opcode, expected):
    path, file = mcap
    data = bytearray(file.read_bytes())
    [at] = offsets(data, opcode)
    data[at + {0x0F: 9, FOOTER: 25}[opcode]] ^= 1
    if opcode == 0x0F:
        # The last record of the data section contains its CRC, which no other CRC covers.
        assert zlib.crc32(data[:at])
    file.write_bytes(data)
    with pytest.raises(TrajectoryFormatError, match=f'{expected} .* in place of'):
        frames_of(path)


def variants():
    compression = mcap_writer().CompressionType
    return {
        'zstd': {'compression': compression.ZSTD, 'chunk_size': 20_000},
        'lz4': {'compression': compression.LZ4, 'chunk_size': 20_000},
        'no chunks': {'use_chunking': False, 'enable_data_crcs': True},
        'no statistics': {'compression': compression.NONE, 'use_statistics': False},
        'no summary': {'compression': compression.ZSTD, 'use_statistics': False,
                       'repeat_channels': False, 'repeat_schemas': False,
                       'index_types': mcap_writer().IndexType.NONE,
                       'use_summary_offsets': False}}


@pytest.mark.parametrize('variant', ['zstd', 'lz4', 'no chunks', 'no statistics', 'no summary'])
def test_bags_of_other_writers_are_read(mcap, tmp_path, variant):
    path, file = mcap
    other = rewritten(file, tmp_path / 'other.mcap', **variants()[variant])
    assert frames_of(other) == frames_of(path)


@pytest.mark.parametrize('variant', ['zstd', 'lz4', 'no chunks'])
def test_bags_of_other_writers_with_crcs_never_yield_other_frames(mcap, tmp_path, variant):
    path, file = mcap
    other = rewritten(file, tmp_path / 'other.mcap', **variants()[variant])
    expected, data, chance = frames_of(path), other.read_bytes(), random.Random(4)
    n_errors = 0
    n_tries = tries(40)
    for _ in range(n_tries):
        begin = chance.randrange(len(data))
        n_bytes = chance.choice((1, 1, 4, 512))
        other.write_bytes(data[:begin] + chance.randbytes(len(data[begin:begin + n_bytes]))
                          + data[begin + n_bytes:])
        n_errors += outcome(other, expected) is not None
    assert n_errors > 0.8 * n_tries


def test_chunks_that_overlap_are_read_in_the_order_of_time(mcap, tmp_path):
    writer_module = mcap_writer()
    path, file = mcap
    frames, chance = frames_of(path), random.Random(5)
    definition = next(bag_topics(file))
    with (tmp_path / 'mixed.mcap').open('wb') as out:
        writer = writer_module.Writer(out, chunk_size=20_000)
        writer.start('ros2')
        number = writer.register_schema(*definition)
        channel = writer.register_channel('/x/frame', 'cdr', number)
        order = sorted(range(len(frames)), key=lambda i: i + chance.randrange(-9, 9))
        assert order != sorted(order)
        for i in order:
            writer.add_message(channel, i, frames[i], i)
        writer.finish()
    assert len(offsets((tmp_path / 'mixed.mcap').read_bytes(), CHUNK)) > 3
    assert frames_of(tmp_path / 'mixed.mcap') == frames


def bag_topics(file):
    reader_module = pytest.importorskip('mcap.reader')
    with file.open('rb') as opened_file:
        summary = reader_module.make_reader(opened_file).get_summary()
    for schema in summary.schemas.values():
        if schema.name.endswith('StateFrame'):
            yield schema.name, schema.encoding, schema.data


@pytest.mark.thorough
def test_a_zeroed_page_of_sqlite_is_an_error_or_a_hole_in_a_message(bags, tmp_path):
    shutil.copytree(bags / 'sqlite3', tmp_path / 'bag')
    file = tmp_path / 'bag' / 'sqlite3_0.db3'
    expected, data = frames_of(tmp_path / 'bag'), file.read_bytes()
    n_errors = n_other = 0
    for begin in range(0, len(data), PAGE_BYTES):
        file.write_bytes(data[:begin] + bytes(PAGE_BYTES) + data[begin + PAGE_BYTES:])
        found, error = read(tmp_path / 'bag')
        if found is None:
            n_errors += 1
            # Nothing can be found without the first page; the advice is true of every other.
            can = main(['repair', str(tmp_path / 'bag'), str(tmp_path / 'out'), '--force',
                        '-q']) == 0
            assert begin or not can
            assert ('`state_sensor repair`' if can else 'no repair') in str(error) \
                or 'no topic' in str(error)
        else:
            assert len(found) == len(expected)
            n_other += found != expected
    # SQLite has no checksums: zeros in a message of several pages are not detected.
    assert n_errors > 3 * n_other


def test_sqlite_with_a_message_of_an_unknown_topic_is_an_error(bags, tmp_path):
    shutil.copytree(bags / 'sqlite3', tmp_path / 'bag')
    with closing(sqlite3.connect(tmp_path / 'bag' / 'sqlite3_0.db3')) as database, database:
        database.execute("INSERT INTO messages (topic_id, timestamp, data) VALUES (999, 1, x'00')")
    with pytest.raises(TrajectoryFormatError, match=r'1 message of an unknown topic.*repair'):
        frames_of(tmp_path / 'bag')


def test_sqlite_whose_index_lacks_rows_is_an_error(bags, tmp_path):
    shutil.copytree(bags / 'sqlite3', tmp_path / 'bag')
    database = sqlite3.connect(tmp_path / 'bag' / 'sqlite3_0.db3')
    database.executescript(
        'PRAGMA writable_schema = ON;'
        "UPDATE sqlite_master SET sql = 'CREATE INDEX timestamp_idx ON messages (timestamp) "
        "WHERE id > 20' WHERE name = 'timestamp_idx';")
    database.execute('PRAGMA writable_schema = OFF')
    database.close()
    database = sqlite3.connect(tmp_path / 'bag' / 'sqlite3_0.db3')
    database.execute('REINDEX timestamp_idx')
    database.execute('PRAGMA writable_schema = ON')
    database.execute("UPDATE sqlite_master SET sql = 'CREATE INDEX timestamp_idx ON messages "
                     "(timestamp)' WHERE name = 'timestamp_idx'")
    database.commit()
    database.close()
    with pytest.raises(TrajectoryFormatError, match='messages in the index of their times'):
        frames_of(tmp_path / 'bag')


@pytest.mark.parametrize('name', ['rosbag2_record_mcap', 'rosbag2_record_sqlite3'])
def test_fuzzed_bags_yield_frames_or_one_error(tmp_path, name):
    for seed in range(tries(20)):
        chance = random.Random(seed)
        path = tmp_path / str(seed)
        shutil.copytree(DATA / name, path)
        file = chance.choice(sorted(path.iterdir()))
        data = bytearray(file.read_bytes())
        for _ in range(chance.randint(1, 4)):
            begin = chance.randrange(len(data))
            n_bytes = chance.choice((1, 4, 64))
            data[begin:begin + n_bytes] = chance.choice((
                b'', bytes(n_bytes), b'\xff' * n_bytes, chance.randbytes(n_bytes)))
        file.write_bytes(data)
        _, error = read(path)
        assert error is None or str(error).startswith(str(path))
        shutil.rmtree(path)


def test_mcap_is_repaired_where_the_error_says_so(mcap, tmp_path, capsys):
    _, file = mcap
    data = file.read_bytes()
    n_possible = 0
    lengths = [8, 45, *(offset + n for offset in offsets(data, CHUNK)[:3] for n in (0, 9, 300))]
    for n_bytes in lengths:
        cut = tmp_path / 'cut.mcap'
        cut.write_bytes(data[:n_bytes])
        assert main(['inspect', str(cut)]) == 1
        advice = capsys.readouterr().err
        can = main(['repair', str(cut), str(tmp_path / 'out.mcap'), '--force', '-q']) == 0
        assert ('`state_sensor repair`' in advice) == can != ('no repair is possible' in advice)
        n_possible += can
        capsys.readouterr()
    assert 0 < n_possible < len(lengths)

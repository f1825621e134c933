# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Small bags that would take gigabytes are refused before memory or disk is used."""

from contextlib import closing
import os
import shutil
import sqlite3
import struct

from budgets import each_once, first_of
import lz4.frame
from paths import SAMPLE
from programs import run_cut_short
import pytest

from state_sensor_ros.commands.cli import main
from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files.bags.bag_topics import definition
from state_sensor_ros.files.storage import mcap_reader
from state_sensor_ros.files.storage.input_file import zstd
from state_sensor_ros.settings import parse_settings
from state_sensor_ros.simulators.opening import Input, open_any

STATE_FRAME = 'state_sensor_ros/msg/StateFrame'
MAGIC = b'\x89MCAP0\r\n'
# More than the default of --max-bag-bytes and the memory of the processes below.
HUGE = 2**30 + 2**24


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack('<I', len(value)) + value


def record(opcode, content):
    return struct.pack('<BQ', opcode, len(content)) + content


def schema(number=1, name=STATE_FRAME, data=None):
    return record(0x03, struct.pack('<H', number) + text(name) + text('ros2msg')
                  + text(definition(STATE_FRAME) if data is None else data))


def channel(number=1, topic='/x/frame', schema_number=1):
    return record(0x04, struct.pack('<HH', number, schema_number) + text(topic) + text('cdr')
                  + struct.pack('<I', 0))


def message(data, log_ns=1, number=1):
    return record(0x05, struct.pack('<HIQQ', number, 0, log_ns, log_ns) + data)


def chunk(data, compression, size, times=(0, 2**62)):
    return record(0x06, struct.pack('<QQQI', *times, size, 0) + text(compression)
                  + struct.pack('<Q', len(data)) + data)


def mcap(*records):
    return b''.join((MAGIC, record(0x01, text('ros2') + text('')), *records,
                     record(0x0F, bytes(4)), record(0x02, bytes(20)), MAGIC))


def zeros_as_zstd(n_bytes):
    """Compress zeros as a stream, which declares no size."""
    compressor = zstd.ZstdCompressor(level=1)
    piece = bytes(2**24)
    return b''.join([compressor.compress(piece) for _ in range(n_bytes // 2**24)]
                    + [compressor.flush()])


def zeros_as_lz4(n_bytes):
    with lz4.frame.LZ4FrameCompressor() as compressor:
        piece = bytes(2**24)
        return b''.join([compressor.begin()] + [
            compressor.compress(piece) for _ in range(n_bytes // 2**24)] + [compressor.flush()])


@pytest.fixture(scope='module')
def bombs():
    """Return zeros by compression, which makes them much smaller."""
    return {'zstd': zeros_as_zstd(HUGE), 'lz4': zeros_as_lz4(HUGE)}


def run(path, command, *words):
    """Read a bag in a process that may take 768 MiB; return it after its end."""
    (path.parent / 'tmp').mkdir()
    # A signal ends a program that writes a larger file.
    done = run_cut_short(command, path, *words, folder=path.parent, memory=3 * 2**28, limit=2**26,
                         is_killed=True)
    assert list((path.parent / 'tmp').iterdir()) == []
    return done


def refusal(path, *words):
    """Return the error of a bag that has to be refused."""
    done = run(path, 'inspect', *words)
    assert done.code == 1, done
    [line] = done.errors.splitlines()
    assert line.startswith(f'error: {path}')
    return line


@pytest.mark.parametrize(('compression', 'size'), each_once(['lz4', 'zstd'], [HUGE, 1000, 2**26]))
def test_chunk_that_grows_is_refused(tmp_path, bombs, compression, size):
    path = tmp_path / 'bomb.mcap'
    path.write_bytes(mcap(schema(), channel(), chunk(bombs[compression], compression, size)))
    assert path.stat().st_size < 5_000_000
    line = refusal(path)
    assert 'chunk at byte' in line
    assert ('--max-bag-bytes' in line) == (size == HUGE)


@pytest.mark.thorough
def test_chunks_that_overlap_are_bounded_together(tmp_path):
    path = tmp_path / 'bomb.mcap'
    filled = chunk(zstd.compress(message(bytes(60_000_000))), 'zstd', 60_000_031)
    path.write_bytes(mcap(schema(), channel(), *[filled] * 12))
    line = refusal(path)
    assert 'chunks that overlap in time' in line
    assert '--max-bag-bytes' in line


def test_record_that_is_huge_is_refused(tmp_path):
    path = tmp_path / 'bomb.mcap'
    with path.open('wb') as file:
        file.write(mcap(schema(), channel())[:-50])
        begin = file.tell()
        file.write(struct.pack('<BQ', 0x05, HUGE) + struct.pack('<HIQQ', 1, 0, 1, 1))
        # A hole of a sparse file occupies no disk space.
        file.truncate(begin + 9 + HUGE)
        file.seek(0, os.SEEK_END)
        file.write(record(0x0F, bytes(4)) + record(0x02, bytes(20)) + MAGIC)
    assert '--max-bag-bytes' in refusal(path)


def test_definitions_are_bounded_together(tmp_path):
    path = tmp_path / 'bomb.mcap'
    schemas = [schema(i, f'x/msg/T{i}', '#' * 30_000_000) for i in range(2, 5)]
    path.write_bytes(mcap(schema(), *[
        chunk(zstd.compress(one), 'zstd', len(one)) for one in schemas]))
    line = refusal(path)
    assert 'definitions of more than 67108864 bytes' in line


def test_topics_share_their_definition(tmp_path):
    path = tmp_path / 'many.mcap'
    large = schema(2, 'x/msg/Large', '#' * 10_000_000)
    topics = b''.join(channel(i, f'/x/{i}', 2) for i in range(2, 20_000))
    path.write_bytes(mcap(schema(), channel(), large, topics))
    assert 'found no frames' in refusal(path)


def test_chunks_are_limited_in_number(tmp_path, monkeypatch):
    monkeypatch.setattr(mcap_reader, '_MAX_CHUNKS', 100)
    path = tmp_path / 'many.mcap'
    path.write_bytes(mcap(schema(), channel(), *[chunk(b'', '', 0)] * 101))
    with pytest.raises(TrajectoryFormatError, match='found more than 100 chunks'), \
            closing(open_any(str(path))):
        pass


def bag_of(path, *, storage='mcap', mode='', files=()):
    """Write metadata.yaml."""
    path.mkdir(exist_ok=True)
    names = ''.join(f'\n    - {name}' for name in files)
    (path / 'metadata.yaml').write_text(f"""rosbag2_bagfile_information:
  version: 9
  storage_identifier: {storage}
  relative_file_paths:{names}
  message_count: 1
  compression_format: zstd
  compression_mode: {mode}
  topics_with_message_count:
    - topic_metadata:
        name: /x/frame
        type: {STATE_FRAME}
        serialization_format: cdr
      message_count: 1
""")
    return path


@pytest.mark.parametrize('declared', [True, False])
@pytest.mark.parametrize('name', ['b.mcap.zstd', 'b.db3.zstd'])
def test_file_that_grows_is_refused(tmp_path, bombs, name, declared):
    path = bag_of(tmp_path / 'bag', mode='FILE', files=[name],
                  storage='mcap' if 'mcap' in name else 'sqlite3')
    data = bombs['zstd']
    if declared:
        compressor = zstd.ZstdCompressor()
        compressor.set_pledged_input_size(HUGE)
        data = compressor.compress(bytes(2**20), compressor.FLUSH_BLOCK)
        assert zstd.get_frame_info(data).decompressed_size == HUGE
    (path / name).write_bytes(data)
    # Data without a declared size is written up to the limit, here a small one.
    words = () if declared else ('--max-bag-bytes', '1000000')
    line = refusal(path, *words)
    assert 'a compressed file of more than' in line
    assert '--max-bag-bytes' in line


def test_message_that_grows_is_refused(tmp_path, bombs):
    path = bag_of(tmp_path / 'bag', mode='MESSAGE', files=['b.mcap'])
    (path / 'b.mcap').write_bytes(mcap(schema(), channel(), message(bombs['zstd'])))
    line = refusal(path)
    assert 'a message of more than 67108864 bytes' in line
    assert '--max-bag-bytes' in line


@pytest.mark.parametrize(('column', 'expected'), first_of(n_always=3, cases=[
    ('data BLOB AS (zeroblob(900000000))', 'computed columns'),
    # Each message is below the limit; all of them never end.
    ('data BLOB AS (zeroblob(60000000))', 'computed columns'),
    ('data BLOB, more BLOB AS (zeroblob(60000000)) VIRTUAL', 'computed columns'),
    (f"data BLOB DEFAULT x'{'00' * 100_000}'", 'computed columns')]))
def test_sqlite_that_computes_its_messages_is_refused(tmp_path, column, expected):
    path = bag_of(tmp_path / 'bag', storage='sqlite3', files=['b.db3'])
    database = sqlite3.connect(path / 'b.db3')
    database.executescript(f"""
        CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT,
                            serialization_format TEXT, offered_qos_profiles TEXT);
        CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER,
                              {column});
        INSERT INTO topics VALUES (1, '/x/frame', 'state_sensor_ros/msg/StateFrame', 'cdr', '');
        INSERT INTO messages (topic_id, timestamp)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
        SELECT 1, i FROM n;""")
    database.close()
    assert expected in refusal(path)


def test_repair_omits_messages_that_grow(tmp_path, bombs):
    path = tmp_path / 'bomb.mcap'
    filled = message(bytes(100))
    path.write_bytes(mcap(
        schema(), channel(), filled, chunk(bombs['zstd'], 'zstd', HUGE),
        chunk(bombs['lz4'], 'lz4', 1000), message(bombs['zstd']), filled))
    done = run(path, 'repair', str(tmp_path / 'out'))
    assert done.code == 0, done
    assert done.output.startswith(f'{tmp_path / "out"}: 2 messages of 1 topic; lost: ')
    assert '--max-bag-bytes' in done.output


def test_repair_of_a_file_that_grows_is_refused(tmp_path, bombs):
    path = bag_of(tmp_path / 'bag', mode='FILE', files=['b.mcap.zstd'])
    (path / 'b.mcap.zstd').write_bytes(bombs['zstd'])
    done = run(path, 'repair', str(tmp_path / 'out'), '--max-bag-bytes', '1000000')
    assert done.code == 1
    assert '--max-bag-bytes' in done.errors
    assert not (tmp_path / 'out').exists()


ALIASES = 'a: &a [x, x, x, x, x, x, x, x]\n' + ''.join(
    f'{chr(98 + i)}: &{chr(98 + i)} [{", ".join([f"*{chr(97 + i)}"] * 8)}]\n' for i in range(12))


@pytest.mark.parametrize(('metadata', 'expected'), [
    (b'# ' + b'x' * 9_000_000, 'metadata of more than 8388608 bytes'),
    (ALIASES.encode(), 'an alias'), (b'[' * 100_000, 'nested too deep'),
    (b'rosbag2_bagfile_information: {version: 9, version: 9}', 'a key that is repeated'),
    (b'\xff', "can't decode"), (b'a: b\n--- \nc: d', '2 documents')])
def test_metadata_is_bounded(tmp_path, metadata, expected):
    path = bag_of(tmp_path / 'bag')
    (path / 'metadata.yaml').write_bytes(metadata)
    assert expected in refusal(path)


def test_limit_can_be_raised_and_lowered(tmp_path, capsys, refusal):
    assert main(['convert', str(SAMPLE), str(tmp_path / 'bag')]) == 0
    for path, expected in (('bag', 'more than 12500 bytes'),
                           ('bag/bag_0.mcap', 'more than 100000')):
        assert expected in refusal('inspect', tmp_path / path, '--max-bag-bytes', '100000')
    large = tmp_path / 'large.mcap'
    large.write_bytes(mcap(schema(), channel(), message(bytes(70_000_000))))
    for command in (['inspect', str(large)], ['convert', str(large), '-']):
        assert '67108864 bytes' in refusal(*command)
        main([*command, '--max-bag-bytes', '80000000'])
        assert 'more than' not in capsys.readouterr().err


def test_limit_of_the_node_is_raised_by_that_of_packets(tmp_path):
    path = tmp_path / 'large.mcap'
    path.write_bytes(mcap(schema(), channel(), message(bytes(70_000_000))))

    def packets(max_frame_bytes):
        return list(Input(parse_settings({
            'source': 'file', 'trajectory_file': str(path), 'rate': 0.0,
            'max_frame_bytes': max_frame_bytes}), lambda *_: None).open_source().frames())

    for max_frame_bytes in (1024, 67108864):
        with pytest.raises(TrajectoryFormatError, match='in the node max_frame_bytes'):
            packets(max_frame_bytes)
    assert len(packets(80_000_000)) == 1


def test_definition_that_is_slow_to_parse_is_refused(tmp_path):
    path = tmp_path / 'slow.mcap'
    path.write_bytes(mcap(schema(data='\n' * 10_000_000), channel(), message(bytes(100))))
    assert 'a definition of more than 65536 bytes' in refusal(path)


@pytest.fixture(autouse=True)
def _without_leftovers(tmp_path):
    yield
    shutil.rmtree(tmp_path, ignore_errors=True)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor repair`: all that is whole of what was cut, and one line on what is lost."""

import itertools
import json
import os
import random
import re
import shutil
import struct
import time

from budgets import AWAIT_S, is_large, one_of, tries
from mcap_layout import CHUNK, DATA_END, offsets, records, rewritten, without_crcs
from paths import DATA
from programs import start
import pytest
from rosbags.rosbag2 import Reader
from scripted_simulator import frame, ScriptedSimulator

import state_sensor_ros as sensor  # noqa: I100
from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames
from state_sensor_ros.files import bag_writer
from state_sensor_ros.files.input import zstd
from state_sensor_ros.texts import counted

N_FRAMES = 40


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    """Write a trajectory, and bags of it with many chunks."""
    folder = tmp_path_factory.mktemp('repair')
    frames = [json.dumps(frame).encode() for frame in itertools.islice(
        TrafficFrames(3, 2, 20.0, 3, 'v2'), N_FRAMES)]
    (folder / 'drive.json').write_bytes(b'[\n' + b',\n'.join(frames) + b'\n]\n')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bag_writer, '_CHUNK_BYTES', 16 * 1024)
        for storage in ('mcap', 'sqlite3'):
            assert main(['convert', str(folder / 'drive.json'), str(folder / storage),
                         '--storage', storage,
                         *(['--compression', 'none'] if storage == 'mcap' else [])]) == 0
    return folder


@pytest.fixture
def repair(tmp_path, capsys):
    """Repair a part; return exit code and the line printed. The part must not change."""
    def run(part, out, *words):
        before = contents_of(part)
        code = main(['repair', str(part), str(tmp_path / out), *words])
        printed = capsys.readouterr()
        assert contents_of(part) == before
        [line] = (printed.out if code == 0 else printed.err).splitlines()
        assert (printed.err if code == 0 else printed.out) == ''
        assert line.startswith(f'{tmp_path / out}: ' if code == 0 else 'error: ')
        return code, line.removeprefix(f'{tmp_path / out}: ')
    return run


@pytest.fixture
def repaired(repair, tmp_path):
    """Repair a part with success, into a new folder by default; return the line printed."""
    def run(part, out='out', *words):
        if out == 'out':
            shutil.rmtree(tmp_path / out, ignore_errors=True)
        code, line = repair(part, out, *words)
        assert code == 0
        return line
    return run


def contents_of(path):
    files = [path] if path.is_file() else sorted(path.rglob('*'))
    return {file: file.read_bytes() for file in files if file.is_file()}


def described(path):
    """Return topics and messages of a bag as rosbags reads them."""
    with Reader(path) as reader:
        topics = {(one.topic, one.msgtype, one.msgdef, one.digest,
                   one.ext.serialization_format, tuple(one.ext.offered_qos_profiles))
                  for one in reader.connections}
        messages = [(one.topic, at_ns, bytes(data)) for one, at_ns, data in reader.messages()]
    return topics, messages


def is_part_of(found, whole):
    """Return whether the messages found are among those of the whole bag, in their order."""
    remaining = iter(whole)
    return all(message in remaining for message in found)


# Trajectories

def test_repair_of_a_trajectory_cut_anywhere(source, tmp_path, repaired):
    text = (source / 'drive.json').read_bytes()
    frames = json.loads(text)
    # A hidden name, as that of a recorder that was killed.
    part = tmp_path / '.drive.json.k3x9.part'
    chance = random.Random(1)
    for _ in range(20):
        n_bytes = chance.randrange(text.index(b',\n{'), len(text) - 3)
        part.write_bytes(text[:n_bytes])
        n_frames = text[:n_bytes].count(b'}\n') + text[:n_bytes].count(b'},\n')
        line = repaired(part, 'out.json', '--force')
        assert re.fullmatch(
            rf'{n_frames} frames?; lost: (\d+ bytes of frame {n_frames}, begun at line '
            rf'{n_frames + 2} column 1|nothing but the end of the array)', line)
        out = (tmp_path / 'out.json').read_bytes()
        assert json.loads(out) == frames[:n_frames]
        assert out == text[:len(out) - 3] + b'\n]\n'


def test_repair_of_a_whole_trajectory_copies_it(source, tmp_path, repair):
    assert repair(source / 'drive.json', 'out.json') == (
        0, f'{N_FRAMES} frames; nothing was lost')
    assert (tmp_path / 'out.json').read_bytes() == (source / 'drive.json').read_bytes()


def test_repair_finds_frames_behind_a_damaged_page(source, tmp_path, repaired):
    text = bytearray((source / 'drive.json').read_bytes())
    frames = json.loads(text)
    begin = len(text) // 2
    text[begin:begin + 4096] = bytes(4096)
    lost = {text[:at].count(b'\n') - 1 for at in (begin, begin + 4096)}
    (tmp_path / 'bad.json').write_bytes(text)
    line = repaired(tmp_path / 'bad.json', 'out.json')
    kept = json.loads((tmp_path / 'out.json').read_bytes())
    assert len(lost) <= N_FRAMES - len(kept) <= len(lost) + 2
    assert is_part_of(kept, frames)
    assert kept[-1] == frames[-1]
    assert re.match(rf'{len(kept)} frames; lost: \d+ bytes at line \d+ column \d+', line)


@pytest.mark.parametrize('text', [b'', b'[{"frame": [', b'\x89MCAP0\r\n' * 2,
                                  b'SQLite format 3\0'])
def test_repair_of_nothing_is_an_error(tmp_path, repair, text):
    (tmp_path / 'part').write_bytes(text)
    for out in ('out.json', 'out'):
        code, line = repair(tmp_path / 'part', out)
        assert code == 1
        assert line.startswith((f'error: {tmp_path / "part"}', 'error: OUT: '))
        assert [entry.name for entry in tmp_path.iterdir()] == ['part']


def test_repair_writes_to_standard_output(source, tmp_path, capsys):
    (tmp_path / 'cut').write_bytes((source / 'drive.json').read_bytes()[:-5])
    assert main(['repair', str(tmp_path / 'cut'), '-']) == 0
    printed = capsys.readouterr()
    assert len(json.loads(printed.out)) == N_FRAMES - 1
    assert printed.err.startswith(f'standard output: {N_FRAMES - 1} frames; lost: ')


@pytest.mark.parametrize(('part', 'out', 'expected'), [
    ('nothere', 'out.json', 'no such file'), ('drive.json', 'out', 'expected NAME.json or -'),
    ('mcap', 'out.json', 'expected a folder'),
    ('drive.json', 'drive.json', 'expected a path that neither contains PART nor lies in it'),
    ('mcap/mcap_0.mcap', 'mcap', 'expected a path that neither contains PART nor lies in it'),
    ('fifo', 'out.json', 'found a pipe, a socket or a device'),
    ('empty', 'out', 'no storage file of a bag'),
    ('.', '../two', 'storage files of bags in 2 folders')])
def test_repair_refuses_what_it_must_not_do(source, tmp_path, part, out, expected, refusal):
    shutil.copytree(source, tmp_path / 'here')
    os.mkfifo(tmp_path / 'here' / 'fifo')
    (tmp_path / 'here' / 'empty').mkdir()
    where = tmp_path / 'here'
    assert expected in refusal('repair', where / part, where / out, '--force')
    assert {entry.name for entry in where.iterdir()} == {
        'drive.json', 'mcap', 'sqlite3', 'fifo', 'empty'}
    assert contents_of(where / 'mcap').keys() == {where / 'mcap' / name for name in (
        'mcap_0.mcap', 'metadata.yaml')}


# Bags that are whole but for their ends

@pytest.mark.parametrize('variant', ['folder', 'file', 'without metadata', 'temporary folder'])
def test_repair_of_a_bag_keeps_everything(source, tmp_path, repaired, variant):
    whole = source / 'mcap'
    [file] = [one for one in whole.iterdir() if one.suffix != '.yaml']
    part = {'folder': whole, 'file': file}.get(variant)
    if part is None:
        inner = tmp_path / ('.bag.x7w2/bag' if variant == 'temporary folder' else 'bag')
        inner.mkdir(parents=True)
        shutil.copy(file, inner / f'bag{file.suffix}')
        part = tmp_path / '.bag.x7w2' if variant == 'temporary folder' else inner
    line = repaired(part)
    topics, messages = described(whole)
    assert line == (f'{counted(len(messages), "message")} of {counted(len(topics), "topic")}; '
                    'nothing was lost')
    assert (tmp_path / 'out' / f'out_0{file.suffix}').is_file()
    # A single file does not have the hashes of MCAP's types; they are computed.
    assert described(tmp_path / 'out') == (topics, messages)


def test_repair_of_what_rosbag2_recorded_keeps_everything(tmp_path, repaired):
    name = 'rosbag2_record_mcap'
    assert repaired(DATA / name).endswith('nothing was lost')
    assert described(tmp_path / 'out')[1] == described(DATA / name)[1]
    assert comparable(described(tmp_path / 'out')[0]) == comparable(described(DATA / name)[0])


def comparable(topics):
    """Leave out hashes, which not all of these files have."""
    return {(name, type_name, definition, form, profiles)
            for name, type_name, definition, _, form, profiles in topics}


# Cut and damaged MCAP

@pytest.fixture
def mcap(source, tmp_path):
    """Return the bytes of a bag, and where to put damaged ones."""
    return (source / 'mcap' / 'mcap_0.mcap').read_bytes(), tmp_path / 'part'


def recovered(path):
    topics, messages = described(path)
    reader_module = pytest.importorskip('mcap.reader', reason='needs the package mcap')
    [file] = path.glob('*.mcap')
    with file.open('rb') as opened:
        found = [(channel.topic, message.log_time, message.data)
                 for _, channel, message in reader_module.make_reader(
                     opened, validate_crcs=True).iter_messages()]
    assert sorted(found) == sorted(messages)
    return topics, messages


def test_repair_of_mcap_cut_anywhere(source, mcap, tmp_path, repair):
    data, part = mcap
    topics, _ = described(source / 'mcap')
    chance = random.Random(3)
    begin = offsets(data, CHUNK)[0]
    [data_end] = [at + 9 + size for opcode, at, size in records(data) if opcode == DATA_END]
    cuts = [chance.randrange(begin + 6000, len(data)) for _ in range(tries(4))]
    cuts += [begin + 3000, len(data) - 1, len(data) - 8, len(data) - 37]
    cuts += [at + i for at in offsets(data, CHUNK)[1:3] for i in (0, 1, 9, 40)]
    for n_bytes in cuts:
        part.write_bytes(data[:n_bytes])
        shutil.rmtree(tmp_path / 'out', ignore_errors=True)
        code, line = repair(part, 'out')
        expected = messages_before(data, n_bytes)
        if not expected:
            assert code == 1
            continue
        found_topics, found = recovered(tmp_path / 'out')
        assert code == 0
        assert sorted(found) == sorted(expected)
        assert found_topics <= topics
        assert re.match(rf'{len(found)} messages? of ', line)
        # Before the end of the data, more may have followed.
        assert ('nothing was lost' in line) == (n_bytes >= data_end)


def messages_before(data, n_bytes):
    """Return what is whole before an offset, by an independent reading of the layout."""
    names, found = {}, []
    for opcode, at, length in records(data):
        if opcode != CHUNK or at >= n_bytes:
            continue
        place, end = at + 9 + 40, min(at + 9 + length, n_bytes)
        while place + 9 <= end:
            inner, size = struct.unpack_from('<BQ', data, place)
            if place + 9 + size > end:
                break
            if inner == 0x04:
                [number, _, n_name] = struct.unpack_from('<HHI', data, place + 9)
                names[number] = data[place + 17:place + 17 + n_name].decode()
            elif inner == 0x05:
                number, _, log_ns, _ = struct.unpack_from('<HIQQ', data, place + 9)
                found.append((names[number], log_ns, data[place + 31:place + 9 + size]))
            place += 9 + size
    return found


@pytest.mark.parametrize('compression', one_of(['ZSTD', 'LZ4']))
def test_repair_of_compressed_mcap_cut_anywhere(source, tmp_path, repaired, compression):
    writer_module = pytest.importorskip('mcap.writer', reason='needs the package mcap')
    file = rewritten(source / 'mcap' / 'mcap_0.mcap', tmp_path / 'other.mcap',
                     chunk_size=60_000, compression=writer_module.CompressionType[compression])
    data, whole = file.read_bytes(), described(file)[1]
    chunks, chance = offsets(data, CHUNK), random.Random(4)
    for n_bytes in [chance.randrange(chunks[2], len(data)) for _ in range(tries(4))]:
        (tmp_path / 'part').write_bytes(data[:n_bytes])
        line = repaired(tmp_path / 'part')
        found = described(tmp_path / 'out')[1]
        assert is_part_of(found, whole)
        # Of the last chunk, which is not whole, some messages may be lost.
        assert len(found) > len(whole) * (sum(at < n_bytes for at in chunks) - 2) / len(chunks)
        assert 'lost: ' in line or len(found) == len(whole)


def test_repair_leaves_out_a_chunk_with_a_wrong_crc(source, mcap, tmp_path, repaired):
    data, part = mcap
    at = offsets(data, CHUNK)[5]
    damaged = bytearray(data)
    damaged[at + 5000] ^= 1
    part.write_bytes(damaged)
    line = repaired(part)
    whole, found = described(source / 'mcap')[1], recovered(tmp_path / 'out')[1]
    lost = [message for message in whole if message not in found]
    assert re.fullmatch(
        rf'\d+ messages? of \d+ topics?; lost: {len(lost)} messages: the record at byte {at} '
        r'\(crc validation failed in Chunk, .*\)', line)
    # Nothing else is lost, and nothing of this chunk is there.
    before = [one for one in messages_before(data, at + 9 + struct.unpack_from(
        '<Q', data, at + 1)[0]) if one not in messages_before(data, at)]
    assert sorted(lost) == sorted(before)


@pytest.mark.parametrize('with_crcs', one_of([True, False]))
def test_repair_goes_on_behind_zeroed_pages(source, mcap, tmp_path, repaired, with_crcs):
    data, part = mcap
    whole = described(source / 'mcap')[1]
    data = data if with_crcs else without_crcs(data)
    n_found = []
    for begin in (0, *range(8192, len(data), 24_576 * (1 if is_large() else 3))):
        part.write_bytes(data[:begin] + bytes(4096) + data[begin + 4096:])
        line = repaired(part)
        found = described(tmp_path / 'out')[1]
        assert len(found) > len(whole) * 0.7
        if with_crcs:
            assert is_part_of(found, whole)
        # The first page may have definitions alone, which are there again.
        assert ('lost: ' in line) == (len(found) < len(whole)) or not begin, line
        n_found.append(len(found))
    assert min(n_found) < len(whole)


def test_repair_of_a_compressed_file_that_was_cut(source, tmp_path, repaired):
    bag = tmp_path / 'bag'
    bag.mkdir()
    data = (source / 'mcap' / 'mcap_0.mcap').read_bytes()
    out = zstd.ZstdCompressor()
    # Blocks of zstd end here and there.
    packed = b''.join([out.compress(data[at:at + 9000], out.FLUSH_BLOCK)
                       for at in range(0, len(data), 9000)] + [out.flush()])
    (bag / 'bag_0.mcap.zstd').write_bytes(packed[:len(packed) * 2 // 3])
    assert 'the rest of a stream of zstd that is cut' in repaired(bag)
    found = described(tmp_path / 'out')[1]
    assert is_part_of(found, described(source / 'mcap')[1])
    assert len(found) > 100


def test_repair_joins_the_files_of_a_bag(source, tmp_path, repaired):
    bag = tmp_path / 'bag'
    bag.mkdir()
    for number in (0, 1, 10):
        shutil.copy(source / 'mcap' / 'mcap_0.mcap', bag / f'bag_{number}.mcap')
    data = (bag / 'bag_10.mcap').read_bytes()
    (bag / 'bag_10.mcap').write_bytes(data[:len(data) // 2])
    line = repaired(bag)
    topics, whole = described(source / 'mcap')
    found_topics, found = described(tmp_path / 'out')
    assert found_topics == topics
    assert 2 * len(whole) < len(found) < 3 * len(whole)
    assert 'lost: bag_10.mcap: ' in line


def test_repair_of_anything_ends_in_a_bag_or_one_error(tmp_path, capsys):
    for seed in range(tries(12)):
        chance = random.Random(seed)
        part = tmp_path / f'part{seed}'
        shutil.copytree(DATA / 'rosbag2_record_mcap', part)
        file = chance.choice(sorted(part.iterdir()))
        data = bytearray(file.read_bytes())
        for _ in range(chance.randint(1, 6)):
            begin, n_bytes = chance.randrange(len(data)), chance.choice((1, 8, 600))
            data[begin:begin + n_bytes] = chance.choice((
                b'', bytes(n_bytes), b'\xff' * n_bytes, chance.randbytes(n_bytes)))
        file.write_bytes(data[:chance.choice((len(data), chance.randrange(len(data))))])
        out = tmp_path / f'out{seed}'
        code = main(['repair', str(part), str(out)])
        printed = capsys.readouterr()
        [line] = (printed.err if code else printed.out).splitlines()
        assert out.exists() == (code == 0)
        if code == 0:
            n_messages = len(described(out)[1])
            assert re.match(rf'{re.escape(str(out))}: {n_messages} messages? of ', line)


@pytest.mark.parametrize('name', one_of([
    'out.json', 'out.json.gz', 'bag', 'out.osi', 'out.json.zst'], n_always=4))
def test_repair_of_a_record_that_is_killed_loses_little(name, tmp_path):
    """What came more than a second before the last frame is there."""
    with ScriptedSimulator() as peer:
        process = start('record', name, '--port', peer.port, '-q', cwd=tmp_path)
        part, end_s = tmp_path / f'.{name}.part', time.monotonic() + AWAIT_S
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        times = itertools.count()
        while n_repaired(part, tmp_path / f'again_{name}') < 6:
            assert time.monotonic() < end_s
            assert process.poll() is None
            for _ in range(10):
                peer.emit(frame(next(times) / 20))
                time.sleep(0.02)
        process.kill()
        process.communicate()
    # As the help says: its part is not that of OUT.
    assert n_repaired(part, tmp_path / name) > 5
    assert n_repaired(part, tmp_path / name) > 5


def n_repaired(part, out):
    """Return how many frames can be repaired now, or -1."""
    if not part.exists() or main(['repair', str(part), str(out), '--force', '-q']):
        return -1
    with sensor.open_recording(out) as recording:
        return len(list(recording))

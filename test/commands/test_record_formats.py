# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor record` of a live stream to bags, tables and traces: end, kill, full disk."""

from contextlib import closing, suppress
import csv
import gzip
from itertools import count, islice
import json
import shutil
import signal
import sqlite3
import struct
import threading
import zlib

from budgets import AWAIT_S, each_once, one_of
from mock_simulator import served
from programs import run_cut_short, start
import pytest
from scripted_simulator import frame, InBackground, ScriptedSimulator

from state_sensor_ros.commands.command_line import main
from state_sensor_ros.commands.summary import Summary
from state_sensor_ros.emulator.traffic.frame_generator import generate

TOPIC = '/state_sensor/frame'
OUTS = ('out.parquet', 'out.csv', 'out.csv.gz', 'out.osi', 'out.osi.mcap', 'out.mcap', 'out.db3',
        'bag')
FRAMES = [json.loads(frame(i / 10)) for i in range(400)]


@pytest.fixture(autouse=True, params=OUTS)
def out(request, tmp_path):
    """Return the path of an output in an empty folder."""
    if request.param.endswith(('.parquet', '.csv', '.gz')):
        pytest.importorskip('pyarrow')
    if '.osi' in request.param:
        pytest.importorskip('osi3')
    if 'mcap' in request.param or request.param == 'bag':
        pytest.importorskip('mcap')
    (tmp_path / 'work').mkdir()
    return tmp_path / 'work' / request.param


@pytest.fixture
def peer():
    with ScriptedSimulator() as scripted:
        yield scripted


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def n_rows(lines):
    return sum(1 for _ in csv.reader(lines)) - 1


def n_frames(path):
    """Return the number of frames in a file or a bag, by a reader that is not this package's."""
    from mcap.reader import make_reader
    if path.suffix == '.parquet':
        from pyarrow import parquet
        return parquet.read_table(path).num_rows
    if path.suffix in ('.csv', '.gz'):
        with (gzip.open if path.suffix == '.gz' else open)(path, 'rt') as lines:
            return n_rows(lines)
    if path.suffix == '.osi':
        return n_messages(path.read_bytes())
    if path.suffix == '.db3':
        with closing(sqlite3.connect(path)) as database:
            return database.execute('SELECT COUNT(*) FROM messages JOIN topics ON topic_id = '
                                    'topics.id WHERE name = ?', (TOPIC,)).fetchone()[0]
    file = path if path.suffix == '.mcap' else path / f'{path.name}_0.mcap'
    with file.open('rb') as stream:
        return sum(1 for _, channel, _ in make_reader(stream).iter_messages()
                   if channel.topic in (TOPIC, 'ground_truth'))


def n_messages(data):
    """Return the number of whole messages that are delimited by their lengths."""
    at = n_whole = 0
    while at + 4 <= len(data):
        at += 4 + struct.unpack_from('<I', data, at)[0]
        n_whole += at <= len(data)
    return n_whole


def record(port, out, *words):
    return main(['record', str(out), '--port', str(port), *words])


def test_recorded_format_is_whole_at_the_end_of_the_stream(out, capsys):
    with served(FRAMES[:50], rate='max') as simulator:
        assert record(simulator.port, out, '--once') == 0
    assert capsys.readouterr().out.startswith(f'{out}: 50 frames, ')
    assert n_frames(out) == 50
    assert names(out.parent) == [out.name]


@pytest.mark.parametrize(('words', 'number'), each_once(
    [(), ('--frames', '1000000')], [signal.SIGINT, signal.SIGTERM]))
def test_recorded_format_keeps_what_has_come_when_interrupted(peer, out, capsys, monkeypatch,
                                                              number, words):
    taken = threading.Semaphore(0)
    add = Summary.add
    monkeypatch.setattr(Summary, 'add', lambda self, each: add(self, each) or taken.release())

    def work():
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        for i in range(30):
            peer.emit(frame(i / 10))
        for _ in range(30):
            assert taken.acquire(timeout=AWAIT_S)
        signal.pthread_kill(threading.main_thread().ident, number)

    with InBackground(work):
        assert record(peer.port, out, *words) == 0
    assert '30 frames' in capsys.readouterr().out
    assert n_frames(out) == 30
    assert names(out.parent) == [out.name]


@pytest.mark.parametrize('out', one_of(
    ['bag', 'out.mcap', 'out.csv', *(name for name in OUTS if name not in (
        'bag', 'out.mcap', 'out.csv'))], n_always=3), indirect=True)
def test_recorded_format_has_no_name_when_killed(peer, out):
    """A later recording of that name begins beside what is left, and leaves it."""
    with start('record', out.name, '--port', str(peer.port), cwd=out.parent) as process:
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        for i in count():
            peer.emit(frame(i / 10))
            if any(path.is_dir() or i > 100 for path in out.parent.iterdir()):
                break
        process.kill()
    left = names(out.parent)
    assert left == [f'.{out.name}.part']
    peer.wait_for(lambda p: 'sensor closed' in p.events)
    peer.events.clear()

    def work():
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        peer.emit(frame(1.0))
        peer.emit(frame(2.0))

    with InBackground(work):
        assert record(peer.port, out, '--frames', '2') == 0
    assert n_frames(out) == 2
    assert set(names(out.parent)) <= {out.name, *left}


@pytest.mark.parametrize('out', one_of([
    'out.parquet', 'out.csv', 'out.osi', 'out.osi.mcap', 'out.db3', 'bag', 'out.csv.gz',
    'out.mcap'], n_always=3), indirect=True)
def test_recorded_format_on_a_full_disk_is_one_line(out):
    """What can be read without its end is kept and named; what was there stays."""
    # SQLite writes when 2 MB have come.
    frames = list(islice(generate(40, 0, 10.0, 1, 'v2'), 150)) if out.suffix == '.db3' else FRAMES
    with served(frames, rate='max') as simulator:
        assert record(simulator.port, out, '--once', '-q') == 0
    has_old = out.suffix in ('', '.csv', '.db3')
    size = max(path.stat().st_size for path in (out, *out.rglob('*')))
    if not has_old and out.is_dir():
        shutil.rmtree(out)
    elif not has_old:
        out.unlink()
    with served(frames, rate='max') as simulator:
        ended = run_cut_short('record', out.name, '--once', '-q', '--port', simulator.port,
                              *(['--force'] if has_old else []), folder=out.parent,
                              limit=int(0.98 * size))
    assert (ended.code, ended.output) == (1, '')
    line = ended.errors.splitlines()[-1]
    reason = 'disk I/O error' if out.suffix == '.db3' else 'file too large'
    assert line.startswith(f'error: {out.name}: {reason}')
    assert all(text.startswith('warning: ') for text in ended.errors.splitlines()[:-1])
    assert out.exists() == has_old
    if has_old:
        assert n_frames(out) == len(frames)
    if out.suffix == '.parquet':
        assert set(names(out.parent)) <= {out.name}
        return
    part = out.with_name(f'.{out.name}.part')
    assert set(names(out.parent)) - {out.name} == {part.name}
    assert f'; what fitted is in {part}' in line
    assert n_kept(out, part, line) > 0


def n_kept(out, part, line):
    """Return the number of frames in what was kept, up to its cut."""
    from mcap.exceptions import McapError
    from mcap.records import Message
    from mcap.stream_reader import StreamReader
    if out.suffix == '.csv':
        return n_rows(part.read_text().splitlines()[:-1])
    if out.suffix == '.gz':
        text = zlib.decompressobj(wbits=31).decompress(part.read_bytes())
        return n_rows(text.decode().splitlines()[:-1])
    if out.suffix == '.osi':
        return n_messages(part.read_bytes())
    if out.name == 'out.osi.mcap':
        n_whole = 0
        with part.open('rb') as stream, suppress(McapError):
            for record_ in StreamReader(stream).records:
                n_whole += isinstance(record_, Message)
        return n_whole
    kept, _, hint = line.partition(' is in ')[2].partition('; ')
    assert hint == '`state_sensor repair` makes a bag of it'
    whole = out.with_name(f'whole{out.suffix}')
    assert main(['repair', kept, str(whole), '-q']) == 0
    return n_frames(whole)

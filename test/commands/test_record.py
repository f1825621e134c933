# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""`state_sensor record` against simulators that follow the protocol or violate it."""

from contextlib import suppress
import errno
import fcntl
import io
from itertools import count
import json
import os
import re
import signal
import socket
import struct
import termios
import threading
import time

from budgets import AWAIT_S, each_once
from held_clock import begin_with_the_first_failure
from mock_simulator import served
from ports import free_port
from programs import start
import pytest
from scripted_simulator import frame, InBackground, interrupting, ScriptedSimulator

from state_sensor_ros.commands.command_line import main
from state_sensor_ros.simulators.monodrive.trajectory import TrajectoryOutput

ODD = (b'{"frame": [{"name": "Ego 0", "position": [1.50, -0.0, 1e2], "orientation": [0,0,0,1],'
       b'\n "tags": ["ego"]}], "extra": null, "game_time": 0.30000001192092896}')


def times_in(path):
    return [element['game_time'] for element in json.loads(path.read_text())]


@pytest.fixture
def peer():
    with ScriptedSimulator() as scripted:
        yield scripted


@pytest.fixture
def out(tmp_path):
    return tmp_path / 'out.json'


def record(peer, out, *words):
    return main(['record', str(out), '--port', str(peer.port), *words])


def sending(peer, *payloads):
    """Send ``payloads`` to each client."""
    def work():
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        for payload in payloads:
            peer.emit(payload)

    return InBackground(work)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_record_writes_the_frames_and_names_unknown_members_once(peer, out, capsys):
    with sending(peer, ODD, frame(1.0), ODD):
        assert record(peer, out, '--frames', '3') == 0
    first, _, last = json.loads(out.read_text())
    assert first == last
    assert first['game_time'] == 0.30000001192092896
    assert first['frame'][0]['position'] == [1.5, 0, 100]
    assert names(out.parent) == ['out.json']
    output, errors = capsys.readouterr()
    assert output == f'{out}: 3 frames, 0.7 s, 2 actors, {out.stat().st_size} B\n'
    [line] = [line for line in errors.splitlines() if 'extra' in line]
    assert 'ignored member' in line


def test_record_does_not_overwrite(peer, out, capsys):
    out.write_text('old')
    assert record(peer, out, '--frames', '1') == 1
    assert capsys.readouterr().err \
        == f'error: {out}: a file of that name exists; --force replaces it\n'
    with sending(peer, frame()):
        assert record(peer, out, '--frames', '1', '--force') == 0
    assert len(json.loads(out.read_text())) == 1


def test_record_leaves_out_what_is_no_frame(peer, out, capsys):
    bad = [b'{', b'', b'"hello"', b'{"a": 1}', b'\xff\xfe']
    with sending(peer, frame(1.0), *bad, frame(2.0)):
        assert record(peer, out, '--frames', '2') == 0
    assert [element['game_time'] for element in json.loads(out.read_text())] == [1.0, 2.0]
    [line] = [line for line in capsys.readouterr().err.splitlines() if 'payload' in line]
    assert line.startswith(f'warning: 127.0.0.1:{peer.port}: payload dropped: packet 2: ')
    assert line.endswith(' (and 4 more of this kind)')


def test_record_takes_arrays_apart_and_stops_exactly(peer, out):
    with sending(peer, b'[' + b', '.join(frame(float(i)) for i in range(5)) + b']'):
        assert record(peer, out, '--frames', '3') == 0
    assert [element['game_time'] for element in json.loads(out.read_text())] == [0.0, 1.0, 2.0]


def test_record_makes_json_of_what_nearly_is(peer, out):
    with sending(peer, ODD.replace(b'1.50', b'NaN'), frame().replace(b'"', b"'")):
        assert record(peer, out, '--frames', '2') == 0
    first, second = json.loads(out.read_text())
    assert first['frame'][0]['position'] == [None, 0, 100]
    assert second['frame'][0]['name'] == json.loads(frame())['frame'][0]['name']


def test_record_filters_by_tags(peer, out):
    actors = [{'name': name, 'position': [0.5, 0, 0], 'orientation': [0, 0, 0, 1], 'tags': tags}
              for name, tags in (('a', ['Vehicle', 'ego']), ('b', ['vehicle', 'static']),
                                 ('c', ['cone']))]
    payload = json.dumps({'frame': actors, 'game_time': 1.0}).encode()
    with sending(peer, payload):
        assert record(peer, out, '--frames', '1', '--desired-tags', 'vehicle', 'sign',
                      '--undesired-tags', 'STATIC') == 0
    [recorded] = json.loads(out.read_text())
    assert [actor['name'] for actor in recorded['frame']] == ['a']


def test_record_ends_in_time_counted_from_the_first_frame(peer, out):
    with sending(peer, frame(1.0), frame(2.0)):
        begin_s = time.monotonic()
        assert record(peer, out, '--seconds', '0.5') == 0
        assert time.monotonic() >= begin_s + 0.5
    assert times_in(out) == [1.0, 2.0]


@pytest.mark.parametrize('is_explicit', [False, True])
def test_record_takes_the_port_of_the_configuration_of_the_simulator(peer, out, tmp_path,
                                                                     is_explicit):
    path = tmp_path / 'sensors.json'
    port = free_port() if is_explicit else peer.port
    path.write_text(f'[{{"type": "State", "listen_port": {port}}}]')
    words = ['--port', str(peer.port)] if is_explicit else []
    with sending(peer, ODD):
        assert main(['record', str(out), '-p', f'config_file:={path}', '--frames', '1',
                     '--seconds', '30', *words]) == 0
    assert times_in(out) == [0.30000001192092896]


@pytest.mark.parametrize('words', [('record', 'out.json'), ('inspect', '--live'), ('view',)],
                         ids=' '.join)
def test_command_refuses_a_configuration_that_it_cannot_read(words, tmp_path, capsys):
    path = tmp_path / 'sensors.json'
    assert main([*words, '-p', f'config_file:={path}', '--seconds', '1']) == 1
    assert capsys.readouterr().err == f'error: {path}: no such file or directory\n'


def test_record_of_nothing_fails_and_writes_nothing(peer, out, capsys):
    assert record(peer, out, '--seconds', '0.1') == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f'error: 127.0.0.1:{peer.port}: no frame received in 0.1 s (check that the port is that '
        'of ')
    assert names(out.parent) == []


@pytest.mark.parametrize('words', [('record', 'out.json'), ('inspect', '--live')], ids=' '.join)
def test_command_names_the_reason_where_no_frame_was_received(words, tmp_path, monkeypatch,
                                                              capsys):
    begin_with_the_first_failure(monkeypatch)
    monkeypatch.chdir(tmp_path)
    port = free_port()
    assert main([*words, '--port', str(port), '--seconds', '0.2']) == 1
    assert capsys.readouterr().err == (
        f'error: cannot connect to 127.0.0.1:{port}: connection refused; is the simulator '
        'running?\n')


@pytest.mark.parametrize('words', [('record', 'out.json'), ('inspect', '--live')], ids=' '.join)
def test_command_that_waits_names_for_what_and_since_when(words, tmp_path):
    port = free_port()
    with start(*words, '--port', port, '--seconds', '600', cwd=tmp_path) as process:
        line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=AWAIT_S)
    assert re.fullmatch(rf'waiting for a frame from 127\.0\.0\.1:{port} since \d\d:\d\d:\d\d: '
                        r'connection refused; is the simulator running\?\n', line)
    assert 'waiting' not in rest


def test_record_goes_on_after_a_lost_connection(peer, out, capsys):
    def work():
        for i in range(3):
            peer.wait_for(lambda p, n=i + 1: p.events.count('sensor opened') == n)
            peer.emit(frame(float(i)))
            peer.drop_sensor()

    with InBackground(work):
        assert record(peer, out, '--frames', '3') == 0
    assert [element['game_time'] for element in json.loads(out.read_text())] == [0.0, 1.0, 2.0]
    assert f'warning: {out}: the stream was interrupted 2 times\n' in capsys.readouterr().err


@pytest.mark.parametrize('words', [
    ('record', 'out.json'), ('record', 'out.json', '--once'), ('record', 'out.mcap'),
    ('inspect', '--live'), ('view', '--save', 'out.rrd')], ids=' '.join)
def test_command_ends_if_the_port_is_of_another_server(words, tmp_path):
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]

        def answer():
            with suppress(OSError):
                while True:
                    with server.accept()[0] as client:
                        client.sendall(b'HTTP/1.1 400 Bad Request' + bytes(40))

        with InBackground(answer):
            with start(*words, '--port', port, '--seconds', '600', cwd=tmp_path) as process:
                _, text = process.communicate(timeout=AWAIT_S)
            server.shutdown(socket.SHUT_RDWR)
    line = text.splitlines()[-1]
    assert process.returncode == 1
    assert line.startswith(f"error: 127.0.0.1:{port}: found text ('HTTP/1.1 400'")
    assert names(tmp_path) == []


def test_record_once_ends_with_the_stream(out):
    frames = [json.loads(frame(i / 10)) for i in range(20)]
    with served(frames, rate='max') as simulator:
        assert record(simulator, out, '--once') == 0
    assert [element['game_time'] for element in json.loads(out.read_text())] \
        == [element['game_time'] for element in frames]


def test_record_writes_to_standard_output(peer, capfdbinary):
    with sending(peer, frame(1.0)):
        assert record(peer, '-', '--frames', '1') == 0
    [recorded] = json.loads(capfdbinary.readouterr().out)
    assert recorded['game_time'] == 1.0


@pytest.mark.parametrize(('words', 'number'), each_once(
    [(), ('--frames', '1000000'), ('--seconds', '1000'), ('--once',)],
    [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_record_interrupted_keeps_what_has_come(peer, out, number, words, capsys, monkeypatch):
    # Seen from outside, what is in a buffer is not there yet; this notes what was taken in.
    taken = []
    write = TrajectoryOutput.write
    monkeypatch.setattr(TrajectoryOutput, 'write',
                        lambda self, payload: taken.append(payload) or write(self, payload))

    def work():
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        for i in count():
            if len(taken) >= 50:
                break
            peer.emit(frame(float(i)))
        signal.pthread_kill(threading.main_thread().ident, number)

    with InBackground(work):
        assert record(peer, out, *words) == 0
    assert capsys.readouterr().out.startswith(f'{out}: {len(taken)} frames, ')
    assert names(out.parent) == ['out.json']
    assert times_in(out) == [float(i) for i in range(len(taken))]
    assert len(taken) >= 50


@pytest.mark.parametrize('words', [(), ('--frames', '9'), ('--force',)])
def test_record_interrupted_before_anything_came(peer, out, words, capsys):
    if words == ('--force',):
        out.write_text('old')
    before = names(out.parent)
    with interrupting(signal.SIGTERM, peer, lambda p: 'sensor opened' in p.events):
        assert record(peer, out, *words) == 143
    assert capsys.readouterr().err == (
        'interrupted: no frame was received, nothing was written\n')
    assert names(out.parent) == before
    assert not before or out.read_text() == 'old'


def test_record_shows_progress_on_a_terminal(peer, out):
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 200, 0, 0))
    with start('record', str(out), '--port', str(peer.port), '--frames', '10',
               stderr=slave) as process:
        os.close(slave)
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        shown = b''
        for i in range(9):
            peer.emit(frame(float(i)))
        while b'9/10' not in shown:
            shown += os.read(master, 1000)
        peer.emit(frame(9.0))
        output, _ = process.communicate(timeout=AWAIT_S)
        shown += os.read(master, 10_000)
        os.close(master)
    assert process.returncode == 0
    assert b'frame/s' in shown
    assert output.startswith(f'{out}: 10 frames, 9 s, ')


class FullDisk(io.FileIO):
    """A file that takes so many bytes and no more."""

    ROOM = 100_000

    def write(self, data):
        room = self.ROOM - self.tell()
        if room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data[:room])


@pytest.mark.parametrize('force', [(), ('--force',)])
def test_record_without_room_for_a_frame_leaves_what_was_there(peer, out, monkeypatch, capsys,
                                                               force):
    monkeypatch.setattr(FullDisk, 'ROOM', 50)
    monkeypatch.setattr(os, 'fdopen', lambda fd, mode: io.BufferedWriter(FullDisk(fd, mode)))
    if force:
        out.write_text('old')
    with sending(peer, *(frame(float(i)) for i in range(100))):
        assert record(peer, out, *force) == 1
    assert names(out.parent) == (['out.json'] if force else [])
    assert not force or out.read_text() == 'old'
    assert capsys.readouterr().err == (
        f'error: {out}: no space left on device\n')


@pytest.mark.parametrize(('words', 'suffix'), [
    (['--to', 'sqlite3'], '.db3'), (['--to', 'mcap'], '.mcap'), (['--storage', 'sqlite3'], '.db3'),
    (['--to', 'sqlite3', '--storage', 'sqlite3'], '.db3')], ids=lambda words: str(words))
def test_storage_of_a_bag_is_that_of_the_options(tmp_path, words, suffix):
    """``--to sqlite3`` wrote MCAP."""
    frames = [json.loads(frame(i / 10)) for i in range(3)]
    with served(frames, rate='max') as simulator:
        assert main(['record', str(tmp_path / 'bag'), '--port', str(simulator.port), '--frames',
                     '2', '-q', *words]) == 0
    assert [path.suffix for path in sorted((tmp_path / 'bag').iterdir())] == sorted(
        [suffix, '.yaml'])

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""`state_sensor record` of a live stream: what is written, its ends, signals and failures."""

from contextlib import suppress
import json
import os
import re
import signal
import socket
from threading import Event

from budgets import AWAIT_S
from mock_simulator import served
import osi_traces
from ports import free_port, free_udp_port
from process_state import wait_until_asleep
from programs import lines_of, start
import pytest
from scripted_simulator import frame, InBackground, interrupting, ScriptedSimulator
from stopwatch import until

import state_sensor_ros as sensor
from state_sensor_ros.commands import convert
from state_sensor_ros.commands.cli import main
from state_sensor_ros.files.output import part_of

OUTS = 'out.json', 'bag', 'out.mcap', 'out.db3', 'out.parquet', 'out.osi', 'out.osi.mcap'
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


def times_of(path):
    """Return the times of the frames of a recording, rounded as the widest format holds them."""
    with sensor.open_recording(path) as recording:
        return [round(frame.game_time, 3) for frame in recording]


@pytest.mark.parametrize('name', OUTS)
def test_record_writes_every_format(peer, tmp_path, name, capsys):
    pytest.importorskip({'.parquet': 'pyarrow', '.osi': 'osi3'}.get(
        f'.{name.split(".")[1]}' if '.' in name else '', 'mcap'))
    out = tmp_path / name
    with sending(peer, *(frame(i / 10) for i in range(5))):
        assert record(peer, out, '--frames', '4') == 0
    assert times_of(out) == [0.0, 0.1, 0.2, 0.3]
    assert names(tmp_path) == [name]
    assert capsys.readouterr().out.startswith(f'{out}: 4 frames, 0.3 s, ')


def test_record_leaves_out_what_is_no_frame(peer, out, capsys):
    bad = [b'{', b'', b'"hello"', b'{"a": 1}', b'\xff\xfe']
    with sending(peer, frame(1.0), *bad, frame(2.0)):
        assert record(peer, out, '--frames', '2') == 0
    assert times_of(out) == [1.0, 2.0]
    [line] = [line for line in capsys.readouterr().err.splitlines() if 'dropped' in line]
    assert line.startswith(f'warning: 127.0.0.1:{peer.port}: payload dropped: ')
    assert line.endswith(' (and 4 more of this kind)')


def test_record_ends_in_time(peer, out, hold_end):
    hold_end(lambda recording: recording.position)
    with sending(peer, frame(1.0), frame(2.0)):
        assert record(peer, out, '--seconds', '0.5') == 0
    assert times_of(out)[0] == 1.0


@pytest.mark.parametrize(('words', 'number', 'name'), [
    ((), signal.SIGINT, 'out.json'), (('--frames', '1000000'), signal.SIGTERM, 'out.mcap'),
    (('--seconds', '1000'), signal.SIGHUP, 'out.db3'), (('--once',), signal.SIGTERM, 'bag')])
def test_record_interrupted_keeps_what_has_come(peer, tmp_path, number, words, name, capsys,
                                                monkeypatch):
    class Interrupting(convert.Summary):
        def add(self, frame):
            super().add(frame)
            if self.n_frames == 30:
                signal.raise_signal(number)

    monkeypatch.setattr(convert, 'Summary', Interrupting)
    out = tmp_path / name
    with sending(peer, *(frame(i / 10) for i in range(31))):
        assert record(peer, out, *words) == 0
    assert times_of(out) == [round(i / 10, 3) for i in range(30)]
    output, errors = capsys.readouterr()
    assert output.startswith(f'{out}: 30 frames, ')
    assert 'interrupted: ' not in errors
    assert names(tmp_path) == [name]


@pytest.mark.parametrize(('source', 'unit'), [('osi', 'messages'), ('monodrive', 'MB')])
def test_what_has_arrived_and_is_not_recorded_is_said(peer, out, capsys, monkeypatch, source,
                                                      unit):
    port, has_begun = peer.port if source == 'monodrive' else free_udp_port(), Event()

    def send():
        if source == 'monodrive':
            peer.emit(frame(2.0) + b' ' * 100_000)
            return
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, \
                suppress(ConnectionRefusedError):
            for datagram in osi_traces.datagrams(osi_traces.large_drive(1)[0]):
                sender.sendto(datagram, ('127.0.0.1', port))

    def begin():
        while not has_begun.wait(0.01):
            send()

    class Ending(convert.Summary):
        def add(self, frame):
            super().add(frame)
            has_begun.set()
            for _ in range(9):
                send()
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(convert, 'Summary', Ending)
    with InBackground(begin):
        assert main(['record', str(out), '--source', source, '--port', str(port)]) == 0
    assert re.search(rf'[\d.]+ {unit} had arrived before the end and were not read\n',
                     capsys.readouterr().err)


def test_record_does_not_overwrite(peer, out, capsys):
    out.write_text('old')
    assert record(peer, out, '--frames', '1') == 1
    assert capsys.readouterr().err \
        == f'error: {out}: a file of that name exists; --force replaces it\n'
    with sending(peer, frame()):
        assert record(peer, out, '--frames', '1', '--force') == 0
    assert len(json.loads(out.read_text())) == 1


@pytest.mark.parametrize('is_explicit', [False, True])
def test_record_takes_the_port_of_the_configuration_of_the_simulator(peer, out, tmp_path,
                                                                     is_explicit):
    path = tmp_path / 'sensors.json'
    port = free_port() if is_explicit else peer.port
    path.write_text(f'[{{"type": "State", "listen_port": {port}}}]')
    words = ['--port', str(peer.port)] if is_explicit else []
    with sending(peer, frame(0.5)):
        assert main(['record', str(out), '-p', f'config_file:={path}', '--frames', '1',
                     '--seconds', '30', *words]) == 0
    assert times_of(out) == [0.5]


def test_record_of_nothing_fails_and_writes_nothing(peer, out, capsys, hold_end):
    hold_end(lambda recording: recording.source.health.reason)
    assert record(peer, out, '--seconds', '0.1') == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f'error: 127.0.0.1:{peer.port}: no frame received in 0.1 s (check that the port is that '
        'of ')
    assert names(out.parent) == []


@pytest.mark.parametrize('words', [('record', 'out.json'), ('inspect', '--live')], ids=' '.join)
def test_command_names_the_reason_where_no_frame_was_received(words, tmp_path, monkeypatch,
                                                              capsys, hold_end):
    monkeypatch.chdir(tmp_path)
    hold_end(lambda recording: recording.source.health.reason)
    port = free_port()
    assert main([*words, '--port', str(port), '--seconds', '0.1']) == 1
    assert capsys.readouterr().err == (
        f'error: cannot connect to 127.0.0.1:{port}: connection refused; is the simulator '
        'running?\n')


def test_command_that_waits_names_for_what_and_since_when(tmp_path):
    port = free_port()
    with start('record', 'out.json', '--port', port, '--seconds', '600', cwd=tmp_path) as process:
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
    assert times_of(out) == [0.0, 1.0, 2.0]
    assert capsys.readouterr().err == f'warning: {out}: the stream was interrupted 2 times\n'


def test_command_ends_if_the_port_is_of_another_server(tmp_path):
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]

        def answer():
            with suppress(OSError):
                while True:
                    with server.accept()[0] as client:
                        client.sendall(b'HTTP/1.1 400 Bad Request' + bytes(40))

        with InBackground(answer):
            with start('record', 'out.json', '--port', port, cwd=tmp_path) as process:
                _, text = process.communicate(timeout=AWAIT_S)
            server.shutdown(socket.SHUT_RDWR)
    line = text.splitlines()[-1]
    assert process.returncode == 1
    assert line.startswith(f"error: 127.0.0.1:{port}: found text ('HTTP/1.1 400'")
    assert names(tmp_path) == []


def test_record_interrupted_before_anything_came_leaves_the_old_one(peer, out, capsys):
    out.write_text('old')
    with interrupting(signal.SIGTERM, peer, lambda p: 'sensor opened' in p.events):
        assert record(peer, out, '--force') == 143
    assert capsys.readouterr().err == 'interrupted: the work is not done\n'
    assert (names(out.parent), out.read_text()) == ([out.name], 'old')


def test_frames_are_on_the_disk_while_the_stream_pauses(peer, out, tmp_path):
    part = part_of(out)

    def work():
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        peer.emit(frame(1.0))
        until(lambda: part.exists() and b'}' in part.read_bytes())
        peer.emit(frame(2.0))

    with InBackground(work):
        assert record(peer, out, '--frames', '2') == 0
    assert times_of(out) == [1.0, 2.0]


def test_record_ends_while_it_opens_a_pipe(peer, tmp_path):
    pipe = tmp_path / 'pipe'
    os.mkfifo(pipe)
    with start('record', str(pipe), '--port', str(peer.port)) as process:
        wait_until_asleep(process)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=AWAIT_S)
    assert (process.returncode, lines_of(errors)) == (
        143, ['interrupted: the work is not done'])


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

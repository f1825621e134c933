# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""`state_sensor simulate` and `state_sensor synth` as a user runs them."""

import contextlib
import json
import os
import re
import signal
import struct
import time

from budgets import AWAIT_S, first_of, one_of
from paths import SAMPLE
from ports import free_port
from programs import start
import pytest
from simulator_peer import Controller, Reader
from stopwatch import Stopwatch, until

from state_sensor_ros.commands.cli import main


@pytest.fixture
def finish(capsys):
    """Run a command that ends by itself; returns exit code, output and errors."""
    before = signal.getsignal(signal.SIGTERM)

    def run(*words):
        try:
            code = main(words)
        except SystemExit as leave:
            code = leave.code
        output, errors = capsys.readouterr()
        return code, output, errors
    yield run
    signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def simulating(*words):
    """Run `simulate`; yield the process, its sensor port and its control port."""
    with start('simulate', '--port', '0', *words) as process:
        try:
            ports = []
            while not ports or not ports[-1].startswith('listening'):
                line = process.stdout.readline()
                assert line, process.stderr.read()
                ports.append(line)
            assert all(re.fullmatch(r'(control|listening) on 127\.0\.0\.1:\d+\n', line)
                       for line in ports)
            numbers = [int(line.rpartition(':')[2]) for line in ports]
            yield process, numbers[-1], numbers[0] if len(numbers) > 1 else None
        finally:
            process.kill()


def test_simulate_serves_synthetic_traffic_and_ends_after_its_frames():
    with simulating('--rate', 'max', '--frames', '30', '--vehicles', '5', '--objects', '3') as (
            process, port, control_port):
        assert control_port is None
        with Reader(port) as reader:
            frames = reader.frames_until_end()
        assert process.wait(AWAIT_S) == 0
        assert process.stdout.read() == process.stderr.read() == ''
    assert len(frames) == 30
    assert len(frames[0]['frame']['vehicles']) == 5
    assert len(frames[0]['frame']['objects']) == 3
    # The time of live traffic is that of this machine.
    assert -60.0 < frames[0]['time'] - time.time() <= 0.0


@pytest.mark.parametrize('generation', one_of(['v1', 'v2']))
def test_simulate_serves_what_synth_has_written(finish, tmp_path, generation):
    path = tmp_path / 'traffic.json'
    assert finish('synth', str(path), '--frames', '8', '--vehicles', '3', '--objects', '2',
                  '--generation', generation, '--quiet') == (0, '', '')
    with simulating(str(path), '--rate', 'max', '--header', '12') as (process, port, _):
        with Reader(port, 12) as reader:
            frames = reader.frames_until_end()
        assert process.wait(AWAIT_S) == 0
    assert frames == json.loads(path.read_text(encoding='utf-8'))
    assert len(frames) == 8


def test_simulate_loops_and_executes_commands():
    port = free_port()
    with simulating(str(SAMPLE), '--on-sample', '--loop', '--control-port',
                    str(port)) as (process, sensor_port, control):
        assert control == port
        with Controller(port) as controller, Reader(sensor_port) as reader:
            controller.request('REPLAY_StepSimulationCommand_ID', {'amount': -1})
            last = reader.frame()
            controller.request('REPLAY_StepSimulationCommand_ID', {'amount': 1})
            first = reader.frame()
        process.send_signal(signal.SIGTERM)
        assert process.wait(AWAIT_S) == 0
    sample = json.loads(SAMPLE.read_text(encoding='utf-8'))
    # One step back from before the first frame is the last but one.
    assert last['frame'] == sample[-2]['frame']
    assert first['frame'] == sample[-1]['frame']


@pytest.mark.parametrize(('number', 'client'), first_of([
    (signal.SIGINT, 'half'), (signal.SIGTERM, 'sampling'), (signal.SIGHUP, 'unread'),
    (signal.SIGINT, 'reading'), (signal.SIGTERM, 'nobody'), (signal.SIGINT, 'sampling'),
    (signal.SIGHUP, 'reading')], n_always=5))
def test_a_signal_ends_simulate_within_two_seconds_whatever_a_client_does(number, client):
    is_streaming = client in ('reading', 'nobody')
    with simulating('--vehicles', '50', *(
            ('--rate', 'max') if is_streaming else ('--on-sample', '--control-port', str(
                free_port())))) as (process, port, control):
        with contextlib.ExitStack() as stack:
            if not is_streaming:
                controller = stack.enter_context(Controller(control))
            if client == 'reading':
                # The reader reads one packet and stops, so the server blocks in a send.
                stack.enter_context(Reader(port)).packet()
            elif client == 'half':
                controller.connection.sendall(b'mono\0\0\1\0{"type":')
            elif client == 'unread':
                flood(controller.connection, 'GetVersion')
            elif client == 'sampling':
                # A reader that reads nothing: the simulator is stuck in a send.
                stack.enter_context(Reader(port))
                flood(controller.connection, 'SampleSensorsCommand_ID')
            watch = Stopwatch(process)
            process.send_signal(number)
            assert watch.wait() == 0
            assert watch.seconds < 2.0
        assert process.stderr.read() == ''


def flood(connection, command):
    """Send requests until no more are taken, or enough."""
    # It is in the reply, too: few of these fill what nobody reads.
    body = json.dumps({'type': command, 'reference': 10 ** 4000, 'message': {}}).encode()
    requests = 10 * (struct.pack('!II', 0x6D6F6E6F, len(body) + 8) + body)
    connection.settimeout(0.3)
    with contextlib.suppress(TimeoutError):
        for _ in range(1000):
            connection.sendall(requests)


@pytest.mark.parametrize(('text', 'frames'), [
    (b'\xef\xbb\xbf[{"frame":[],"a":NaN},{"b":-Infinity}]',
     [{'frame': [], 'a': None}, {'b': None}]),
    (b' {"frame": []}\n', [{'frame': []}])], ids=['byte order mark, NaN', 'one frame'])
def test_simulate_serves_unusual_files(tmp_path, text, frames):
    path = tmp_path / 'a.json'
    path.write_bytes(text)
    with simulating(str(path), '--rate', 'max') as (_, port, _), Reader(port) as reader:
        assert reader.frames_until_end() == frames


def test_simulate_names_a_port_in_use(finish):
    with simulating() as (_, port, _):
        for words in (('--port', str(port)), ('--port', '0', '--control-port', str(port))):
            assert finish('simulate', *words) == (
                1, '', f'error: cannot listen on 127.0.0.1:{port}: the port is in use\n')


@pytest.mark.parametrize(('words', 'error'), [
    (('simulate', '--bind', 'no..name', '--port', '0'), 'cannot listen on no..name:0: .*'),
    (('simulate', '--bind', '192.0.2.1', '--port', '0'),
     'cannot listen on 192.0.2.1:0: cannot assign .*'),
    (('simulate', '/no/such/file'), '/no/such/file: no such file or directory'),
    (('synth', '/no/such/folder/x.json', '--frames', '1'),
     '/no/such/folder/x.json: no such folder /no/such/folder; make it: mkdir -p /no/such/folder')])
def test_addresses_and_paths_that_cannot_be_are_named(finish, words, error):
    code, output, errors = finish(*words)
    assert (code, output) == (1, '')
    assert re.fullmatch(f'error: {error}\n', errors)


def test_simulate_sends_on_request_with_a_control_port_only(finish):
    code, output, errors = finish('simulate', '--on-sample')
    assert (code, output) == (2, '')
    assert errors.startswith('error: state_sensor simulate: --on-sample: found no --control-port')


@pytest.mark.parametrize('command', ['simulate', 'replay'])
@pytest.mark.parametrize('name', ['drive.parquet', 'drive.csv'])
def test_a_table_is_no_recording_to_send(finish, tmp_path, command, name):
    (tmp_path / name).write_text('x')
    code, _, errors = finish(command, str(tmp_path / name))
    assert code == 1
    assert errors.startswith(f'error: {tmp_path / name}: found a table; expected a trajectory, ')


@pytest.mark.parametrize('words', [
    ('simulate', '--port', '70000'), ('simulate', '--port', 'x'), ('simulate', '--rate', 'slow'),
    ('simulate', '--rate', '-1'), ('simulate', '--rate', 'inf'), ('simulate', '--header', '20'),
    ('simulate', '--frames', '0'), ('simulate', '--vehicles', '0'),
    ('simulate', '--generation', 'v3'),
    ('synth',), ('synth', 'x', '--rate', '0'), ('synth', 'x', '--frames', '1.5'),
    ('synth', 'x', '--seed', '-1'), ('synth', 'x', '--objects', '²')])
def test_wrong_usage_has_exit_code_2(finish, words):
    code, output, errors = finish(*words)
    assert (code, output) == (2, '')
    assert errors.startswith('error: ')


def test_synth_is_deterministic_and_writes_to_standard_output(finish, tmp_path):
    path = tmp_path / 'traffic.json'
    options = ('--frames', '20', '--vehicles', '4', '--objects', '3', '--seed', '9')
    size = '20 frames, 0.95 s, 7 actors'
    code, output, errors = finish('synth', str(path), *options)
    assert (code, errors) == (0, '')
    assert output.startswith(f'{path}: {size}, ')
    code, output, errors = finish('synth', '-', *options)
    assert (code, errors) == (0, f'standard output: {size}\n')
    assert output == path.read_text(encoding='utf-8')
    assert len(json.loads(output)) == 20
    assert os.listdir(tmp_path) == ['traffic.json']


@pytest.mark.parametrize('number', one_of([signal.SIGINT, signal.SIGTERM]))
def test_a_signal_leaves_nothing_of_synth(tmp_path, number):
    path = tmp_path / 'traffic.json'
    with start('synth', str(path), '--frames', '1000000', '--vehicles', '5') as process:
        until(lambda: any(path.stat().st_size > 500_000 for path in tmp_path.iterdir()),
              'a file that grows')
        assert not path.exists()
        watch = Stopwatch(process)
        process.send_signal(number)
        assert watch.wait() == 128 + number
        assert watch.seconds < 2.0
        assert process.stderr.read() == 'interrupted: the work is not done\n'
    assert os.listdir(tmp_path) == []

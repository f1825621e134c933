# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""`state_sensor replay` with simulators that follow the protocol and others that do not."""

from contextlib import contextmanager
from itertools import count, islice, pairwise
import json
import os
import signal
import termios
import time

from budgets import AWAIT_S, each_once
from mock_simulator import served
from programs import start
import pytest
from real_recordings import each_recording
from scripted_simulator import (
    complete,
    frame,
    HANG_UP,
    interrupting,
    NEVER,
    OLD_MAGIC,
    reply,
    ScriptedSimulator,
)
from stopwatch import until

from state_sensor_ros.commands.cli import main
from state_sensor_ros.simulators.monodrive.replay import ReplayClient, targets

TRAJECTORY = 'REPLAY_ConfigureTrajectoryCommand_ID'
SENSORS = 'REPLAY_ConfigureSensorsCommand_ID'
STEP = 'REPLAY_StepSimulationCommand_ID'
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

CLIENT = 'state_sensor_ros.simulators.monodrive.replay'
SESSION = 'state_sensor_ros.simulators.monodrive.control'


@pytest.fixture
def peer():
    with ScriptedSimulator(payloads=(frame(i / 20) for i in count())) as scripted:
        yield scripted


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a trajectory of frames or of any bytes."""
    def written(*frames, text=None):
        path = tmp_path / 'in.json'
        path.write_bytes(b'[\n' + b',\n'.join(frames) + b'\n]\n' if text is None else text)
        return path

    return written


@pytest.fixture
def five(write):
    return write(*(frame(i / 10) for i in range(5)))


def options_for(peer):
    return ('--port', str(peer.port), '--control-port', str(peer.control_port))


def replay(peer, path, *words):
    return main(['replay', str(path), *options_for(peer), *words])


def amounts(peer):
    return [message['amount'] for message in peer.messages(STEP)]


@pytest.mark.parametrize(('options', 'indices'), [
    ({}, [0, 1, 2, 3, 4]),
    ({'start': 3}, [3, 4]),
    ({'step': 2}, [0, 2, 4]),
    ({'step': 9}, [0]),
    ({'step': 2, 'loop': True}, [0, 2, 4, 0, 2, 4, 0, 2, 4, 0]),
    ({'step': 3, 'start': 2, 'loop': True}, [2, 0, 3, 0, 3, 0, 3, 0, 3, 0]),
    ({'start': 3, 'step': -2}, [3, 1]),
    ({'start': 3, 'step': -2, 'loop': True}, [3, 1, 4, 2, 0, 4, 2, 0, 4, 2]),
    ({'n_frames': 1, 'loop': True}, [0]),
])
def test_targets_are_the_indices(options, indices):
    assert list(islice(targets(**{'n_frames': 5} | options), 10)) == indices


def test_replay_configures_and_steps(peer, five, capsys):
    assert replay(peer, five, '--rate', '0') == 0
    assert peer.types() == [TRAJECTORY, SENSORS] + [STEP] * 5
    assert peer.messages(TRAJECTORY) == [json.loads(five.read_text())]
    assert amounts(peer) == [1] * 5
    (sensor,) = peer.messages(SENSORS)
    assert (sensor['type'], sensor['listen_port']) == ('State', peer.port)
    # All tags of the trajectory, not only vehicles.
    assert sensor['desired_tags'] == ['vehicle', 'ego']
    assert sensor['enable_streaming'] is True
    assert 'ros' not in sensor
    assert peer.most_outstanding == 1
    assert capsys.readouterr() == (
        f'127.0.0.1:{peer.control_port}: replayed, at frame 5 of 5\n', '')


@pytest.mark.parametrize(('words', 'expected'), [
    (('--start', '3'), [4, 1]), (('--backwards',), [5, -1, -1, -1, -1]),
    (('--step', '2', '--backwards'), [5, -2, -2])])
def test_replay_steps_as_the_options_select(peer, five, words, expected):
    assert replay(peer, five, '--rate', '0', *words) == 0
    assert amounts(peer) == expected


@pytest.mark.parametrize('answer', [
    complete, reply, lambda request: reply(request, magic=OLD_MAGIC),
    lambda request: reply(request, magic=OLD_MAGIC, extra=0)])
def test_replay_accepts_replies_of_all_kinds(peer, five, answer):
    peer.answer = answer
    assert replay(peer, five, '--rate', '0') == 0
    assert amounts(peer) == [1] * 5


@pytest.mark.parametrize(('rate', 'least_s'), [('1', 0.35), ('4', 0.08)])
def test_replay_keeps_the_pace_of_the_recording(peer, five, rate, least_s):
    begin_s = time.monotonic()
    assert replay(peer, five, '--rate', rate) == 0
    assert time.monotonic() - begin_s > least_s


def test_replay_configures_the_simulator_with_an_option(peer, five, tmp_path, capsys):
    config = tmp_path / 'simulator.json'
    config.write_text('{"map": "Straightaway5k", "simulation_mode": 1}')
    assert replay(peer, five, '--rate', '0', '--simulator', str(config)) == 0
    assert peer.types()[:2] == ['SimulatorConfig_ID', TRAJECTORY]
    assert peer.requests[0]['message'] == json.loads(config.read_text())
    config.write_text('[]')
    assert replay(peer, five, '--simulator', str(config)) == 1
    assert capsys.readouterr().err.startswith(f'error: {config}: found no object; expected an ob')


def test_replay_refuses_what_replay_mode_would(peer, write, capsys):
    path = write(frame(), frame().replace(b', "ego"', b''))
    assert replay(peer, path) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f'error: {path}: line 3 column 1: frame 1: found no actor tagged ego')
    assert not peer.events


def test_replay_refuses_a_start_beyond_the_end(peer, five, capsys):
    assert replay(peer, five, '--start', '5') == 1
    assert capsys.readouterr().err \
        == f'error: --start: found 5; expected at most 4, the last frame of {five}\n'


def test_replay_prints_the_message_of_a_refusal(peer, five, capsys):
    peer.answer = lambda request: (reply(request, 'no ego', success=False)
                                   if request['type'] == STEP else complete(request))
    assert replay(peer, five, '--rate', '0') == 1
    assert capsys.readouterr().err == (f"error: 127.0.0.1:{peer.control_port}: found 'no ego' in "
                                       f'reply to {STEP}; expected success\n')


@pytest.mark.parametrize(('answer', 'text'), [
    (lambda request: HANG_UP, 'the connection was closed instead of a reply'),
    (lambda request: NEVER, f'no reply to {TRAJECTORY} in 0.1 s'),
    (lambda request: b'HTTP/1.1 400', 'found magic 0x48545450'),
])
def test_replay_prints_that_there_was_no_reply(peer, five, capsys, monkeypatch, answer,
                                               text):
    if answer(None) is NEVER:
        monkeypatch.setattr(f'{SESSION}.LOADING_TIMEOUT_S', 0.1)
    peer.answer = answer
    assert replay(peer, five) == 1
    line = capsys.readouterr().err
    assert text in line
    assert line.count('\n') == 1


@each_recording
def test_replay_plays_recordings_in_the_mock_server(path, monkeypatch):
    seen = []
    monkeypatch.setattr(ReplayClient, '_read', _reading_into(seen))
    with served(None, control_port=0, on_sample=True) as simulator:
        assert replay(simulator, path, '--rate', '0', '--step', '7') == 0
    elements = json.loads(path.read_bytes())[::7]
    assert seen == [element['game_time'] for element in elements]


def _reading_into(seen):
    def read(self):
        for found in self._source.frames():
            seen.append(found.game_time)
            self._note_arrival()

    return read


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_replay_interrupted_waits_for_the_outstanding_reply(peer, five, number, capsys):
    with interrupting(number, peer, lambda p: len(p.requests) >= 12):
        assert replay(peer, five, '--loop', '--rate', '20', '-q') == 0
    assert capsys.readouterr() == ('', '')
    peer.wait_for(lambda p: len(p.events) == 4)
    assert peer.n_outstanding == 0
    positions = [0]
    for amount in amounts(peer):
        positions.append(positions[-1] + amount)
    assert len(positions) > 10
    assert all((after - before) in (1, -4) for before, after in pairwise(positions))


@pytest.mark.parametrize('number', SIGNALS)
def test_replay_interrupted_before_its_end_prints_the_frame(peer, five, number, capsys):
    with interrupting(number, peer, lambda p: p.messages(STEP)):
        # The second frame is due in ten seconds.
        assert replay(peer, five, '--rate', '0.01') == 0
    where = f'127.0.0.1:{peer.control_port}'
    assert capsys.readouterr() == (f'{where}: replayed, at frame 1 of 5\n', '')
    peer.wait_for(lambda p: len(p.events) == 4)
    assert peer.n_outstanding == 0


@contextmanager
def running(*words):
    """Run a program; kill it if the test fails before its end."""
    with start(*words) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(('silent_at', 'number'), each_once(
    ['SimulatorConfig_ID', TRAJECTORY, SENSORS, STEP, 'packet'], SIGNALS))
def test_replay_ends_in_time_while_the_simulator_is_silent(peer, five, tmp_path, number,
                                                           silent_at):
    config = tmp_path / 'simulator.json'
    config.write_text('{}')
    if silent_at == 'packet':
        peer.payloads = None
    peer.answer = lambda request: NEVER if request['type'] == silent_at else complete(request)
    with running('replay', str(five), *options_for(peer), '--loop', '-q', '--simulator',
                 str(config)) as process:
        peer.wait_for(lambda p: (STEP if silent_at == 'packet' else silent_at) in p.types())
        _check_end(process, number)


def _check_end(process, number):
    process.send_signal(number)
    output, errors = process.communicate(timeout=AWAIT_S)
    assert (process.returncode, output) == (0, '')
    assert 'Traceback' not in errors


def test_replay_reacts_to_the_keys_of_a_terminal(peer, five):
    master, slave = os.openpty()
    before = termios.tcgetattr(slave)
    with start('replay', str(five), *options_for(peer), '--loop', '--rate', '20',
               '-q', stdin=slave) as process:
        peer.wait_for_requests(4)
        _wait_for_keys(master)
        os.write(master, b' ')
        _wait_for_last_step(peer)
        os.write(master, b'x ')
        peer.wait_for_requests(len(peer.requests) + 3)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=AWAIT_S)
    assert (process.returncode, *output) == (0, '', '')
    assert termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)


def _wait_for_keys(terminal):
    """Wait until a program reads single keys; those before are discarded."""
    until(lambda: not termios.tcgetattr(terminal)[3] & termios.ICANON)


def _wait_for_last_step(peer):
    """Wait until no more steps are requested; return their number."""
    n_requests, quiet_since_s = 0, time.monotonic()
    while time.monotonic() - quiet_since_s < 0.3:
        if len(peer.requests) != n_requests:
            n_requests, quiet_since_s = len(peer.requests), time.monotonic()
        time.sleep(0.01)
    return len(amounts(peer))

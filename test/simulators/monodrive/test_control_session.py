# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""A control connection with peers that reply correctly, wrongly, late or not at all."""

from functools import partial
import threading
import time

from budgets import AWAIT_S
import pytest
from scripted_simulator import complete, HANG_UP, NEVER, reply, ScriptedSimulator

from state_sensor_ros.connections.connection import SILENCE_S
from state_sensor_ros.errors import RefusalError, TransportError
from state_sensor_ros.simulators.monodrive import control
from state_sensor_ros.simulators.monodrive.control import ControlSession


@pytest.fixture
def peer():
    with ScriptedSimulator() as scripted:
        yield scripted


@pytest.fixture
def connect():
    """Return a function that connects to a peer."""
    sessions = []

    def connected(port, **options):
        sessions.append(ControlSession('127.0.0.1', port, **options))
        sessions[-1].connect()
        return sessions[-1]

    yield connected
    for session in sessions:
        session.close()


def test_session_sends_requests_and_counts_them(peer, connect):
    session = connect(peer.control_port)
    assert session.request('GetVersion', {}) == 'complete'
    assert session.request('SampleSensorsCommand_ID', None) == 'complete'
    assert peer.requests == [{'type': 'GetVersion', 'reference': 1, 'message': {}},
                             {'type': 'SampleSensorsCommand_ID', 'reference': 2, 'message': None}]


@pytest.mark.parametrize('members', [{'success': False}, {}])
def test_session_continues_after_a_refusal(peer, connect, members):
    peer.answer = partial(reply, message='invalid map specified', **members)
    session = connect(peer.control_port)
    with pytest.raises(RefusalError, match="found 'invalid map specified' in reply to X"):
        session.request('X', {})
    peer.answer = complete
    assert session.request('X', {}) == 'complete'


def test_session_closes_after_a_time_out(peer, connect, monkeypatch):
    monkeypatch.setattr(control, 'REPLY_TIMEOUT_S', 0.05)
    peer.answer = lambda request: NEVER
    session = connect(peer.control_port)
    with pytest.raises(TransportError, match=r'no reply to X in 0\.05 s'):
        session.request('X', {})
    peer.wait_for(lambda p: 'control closed' in p.events)
    with pytest.raises(TransportError, match='no connection'):
        session.request('X', {})


def test_session_reports_a_silence_once_and_accepts_a_late_reply(peer, connect):
    lines, reported = [], threading.Event()

    def on_silence(text):
        lines.append(text)
        reported.set()

    def answer(request):
        assert reported.wait(AWAIT_S)
        return complete(request)

    peer.answer = answer
    session = connect(peer.control_port, on_silence=on_silence)
    begin_s = time.monotonic()
    assert session.request('X', {}) == 'complete'
    assert time.monotonic() - begin_s >= SILENCE_S
    (line,) = lines
    assert line == (f'127.0.0.1:{peer.control_port}: no reply to X for 1 s; waiting up to '
                    '25 s')
    reported.clear()
    session.request('SimulatorConfig_ID', {})
    assert len(lines) == 2
    assert lines[1].endswith('waiting up to 60 s')


def answered(data, error):
    return pytest.param(lambda request: data, error)


@pytest.mark.parametrize(('answer', 'error'), [
    answered(HANG_UP, 'closed instead of a reply to X'),
    answered(b'GET / HTTP/1.1\r\n', 'found magic 0x47455420'),
    answered(b'mono\0\0\0\7', 'found reply length 7'),
    answered(b'mono\xff\xff\xff\xff', 'found reply length 4294967295; expected 9 to'),
    *(answered(b'mono\0\0\0' + bytes([8 + len(body)]) + body, 'expected an object')
      for body in (b'[]', b'"complete"', b'null', b'17')),
    pytest.param(lambda request: reply(request | {'reference': 99}), 'a reply to request 99'),
    pytest.param(lambda request: reply(request)[:-1] + b' ' * 9,
                 'found a reply that is not JSON'),
])
def test_session_closes_after_an_invalid_reply(peer, connect, answer, error):
    peer.answer = answer
    session = connect(peer.control_port)
    with pytest.raises(TransportError, match=error) as caught:
        session.request('X', {})
    assert not isinstance(caught.value, RefusalError)
    with pytest.raises(TransportError, match='no connection'):
        session.request('X', {})


def test_session_sends_a_request_larger_than_any_buffer(peer, connect):
    session = connect(peer.control_port)
    body = 'x' * 5_000_000
    assert session.request('REPLAY_ConfigureTrajectoryCommand_ID', [body]) == 'complete'
    assert peer.requests[0]['message'] == [body]


def test_session_closed_from_another_thread_ends_at_once(peer, connect):
    peer.answer = lambda request: NEVER
    session = connect(peer.control_port)
    errors = []

    def request():
        try:
            session.request('X', {})
        except TransportError as error:
            errors.append(str(error))

    thread = threading.Thread(target=request)
    thread.start()
    peer.wait_for_requests(1)
    session.close()
    thread.join(AWAIT_S)
    # Not that of the time-out of the reply.
    assert len(errors) == 1
    # The thread may have been before its read.
    assert 'ended on request' in errors[0]
    session.close()

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The requests of the control client, their order and repetition, and its states."""

from dataclasses import replace
from itertools import count
import math
import socket
import threading
import time

from budgets import AWAIT_S
import pytest
from scripted_simulator import complete, frame, HANG_UP, NEVER, OLD_MAGIC, reply, ScriptedSimulator
from stopwatch import until

from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.emulator.monodrive import MonodriveOptions, MonodriveServer
from state_sensor_ros.errors import RefusalError, StateError, TransportError
from state_sensor_ros.settings import parse_settings
from state_sensor_ros.simulators.monodrive import control
from state_sensor_ros.simulators.monodrive.control import ClientState, ControlClient
from state_sensor_ros.simulators.monodrive.simulator import ConfiguredSource
from state_sensor_ros.source import EntityEdit, SET

CONFIGURE = 'REPLAY_ConfigureSensorsCommand_ID'
RECONFIGURE = 'REPLAY_ReConfigureSensorCommand_ID'
SAMPLE = 'SampleSensorsCommand_ID'
CONFIGURED = {'type': CONFIGURE, 'reference': 1}
EGO = {'name': 'ego', 'position': [0, 0, 0], 'orientation': [0, 0, 0, 1],
       'tags': ['ego', 'vehicle']}


def settings_for(peer, **values):
    return parse_settings({
        'port': peer.port, 'control_port': peer.control_port, 'desired_tags': ['vehicle'],
        'reconnect_min': 0.001, 'reconnect_max': 0.02} | values)


class Collected(list):
    """A list with a wait for its changes."""

    def __init__(self):
        super().__init__()
        self._changed = threading.Condition()

    def append(self, item):
        with self._changed:
            super().append(item)
            self._changed.notify_all()

    def wait_for(self, predicate):
        with self._changed:
            assert self._changed.wait_for(lambda: predicate(self), AWAIT_S), self


class Reports(Collected):
    """What a control client reports."""

    def __call__(self, kind, text):
        self.append((kind, text))

    def wait_for_text(self, text):
        self.wait_for(lambda reports: any(text in report[1] for report in reports))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(control, '_RETRY_S', 0.02)


@pytest.fixture
def reports():
    return Reports()


@pytest.fixture
def peer():
    with ScriptedSimulator(payloads=(frame(i / 20) for i in count())) as scripted:
        yield scripted


@pytest.fixture
def new_client(reports):
    """Return a function that makes a control client."""
    made = []

    def made_client(settings):
        made.append(ControlClient(settings, reports))
        return made[-1]

    yield made_client
    for one in made:
        one.close()


@pytest.fixture
def connected(peer, new_client):
    """Provide a client with a sensor whose port is connected, and its settings."""
    settings = settings_for(peer)
    client = new_client(settings)
    client.configure()
    client.connected()
    return client, settings


@pytest.fixture
def run(reports):
    """Return a function that runs a source and returns it with the list of its packets."""
    running = []

    def started(settings):
        source = ConfiguredSource(settings, reports)
        packets = Collected()

        def collect():
            for found in source.frames():
                packets.append(found)

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        running.append((source, thread))
        return source, packets

    yield started
    for source, thread in running:
        source.close()
        thread.join(AWAIT_S)
        assert not thread.is_alive()


def test_control_client_states(peer, new_client, reports):
    client = new_client(settings_for(peer, sample_rate=1000.0))
    assert client.state is ClientState.UNCONFIGURED
    during = Collected()

    def answer(request):
        during.append(client.state)
        return complete(request)

    peer.answer = answer
    client.configure()
    assert during == [ClientState.UNCONFIGURED]
    client.connected()
    assert client.state is ClientState.CONNECTED
    peer.wait_for_requests(2)
    peer.drop_control()
    client.packet_arrived()
    during.wait_for(lambda states: len(states) > 2)
    assert peer.types()[:3] == [CONFIGURE, SAMPLE, RECONFIGURE]
    assert during[1:3] == [ClientState.CONNECTED, ClientState.RECOVERING]
    peer.answer = lambda request: reply(request, 'failed')
    with pytest.raises(RefusalError):
        client.configure()
    assert client.state is ClientState.UNCONFIGURED
    client.close()
    client.connected()
    assert client.state is ClientState.CLOSED


def test_control_client_configures_the_sensor(peer, new_client):
    new_client(settings_for(peer, undesired_tags=['static'], debug_drawing=True)).configure()
    assert peer.types() == [CONFIGURE]
    sensor = peer.requests[0]['message']
    assert {key: sensor[key] for key in (
        'type', 'listen_port', 'desired_tags', 'undesired_tags', 'include_obb', 'debug_drawing',
        'enable_streaming', 'wait_for_fresh_frame')} == {
        'type': 'State', 'listen_port': peer.port, 'desired_tags': ['vehicle'],
        'undesired_tags': ['static'], 'include_obb': True, 'debug_drawing': True,
        'enable_streaming': True, 'wait_for_fresh_frame': True}
    assert 'ros' not in sensor


def test_control_client_configures_again_after_each_failure(peer, new_client, monkeypatch):
    client = new_client(settings_for(peer))
    for answer, kind, text in (
            (lambda request: HANG_UP, TransportError, 'closed instead of a reply'),
            (lambda request: NEVER, TransportError, 'no reply to REPLAY_ConfigureSensors'),
            (lambda request: reply(request, 'failed'), RefusalError,
             "found 'failed' in reply to REPLAY_Conf")):
        peer.answer = answer
        monkeypatch.setattr(control, 'REPLY_TIMEOUT_S',
                            0.1 if answer(CONFIGURED) == NEVER else AWAIT_S)
        with pytest.raises(kind, match=text):
            client.configure()
    peer.answer = complete
    monkeypatch.setattr(control, 'REPLY_TIMEOUT_S', AWAIT_S)
    client.configure()
    assert peer.types() == [CONFIGURE] * 4


def test_control_client_reconfigures_what_has_changed(peer, connected):
    client, settings = connected
    client.reconfigure(parse_settings({'labels': False}, settings))
    client.reconfigure(parse_settings({'desired_tags': ['cone'], 'include_obb': False},
                                      settings))
    peer.wait_for_requests(2)
    assert peer.types() == [CONFIGURE, RECONFIGURE]
    sensor = peer.requests[1]['message']
    assert (sensor['type'], sensor['listen_port']) == ('State', peer.port)
    assert (sensor['desired_tags'], sensor['include_obb']) == (['cone'], False)


@pytest.mark.parametrize(('refused', 'types', 'text'), [
    ((), [CONFIGURE, RECONFIGURE], ''),
    # A sensor that does not exist is configured.
    ((RECONFIGURE,), [CONFIGURE, RECONFIGURE, CONFIGURE], ''),
    ((RECONFIGURE, CONFIGURE), [CONFIGURE, RECONFIGURE, CONFIGURE],
     "found 'failed' in reply to REPLAY_Conf")])
def test_control_client_whose_control_port_was_lost_stays_connected(
        peer, connected, reports, refused, types, text):
    client, settings = connected
    peer.drop_control()
    peer.answer = lambda request: (
        reply(request, 'failed', success=False) if request['type'] in refused
        else complete(request))
    client.reconfigure(parse_settings({'desired_tags': ['cone']}, settings))
    peer.wait_for_requests(len(types))
    reports.wait_for_text(text)
    assert peer.types() == types
    assert peer.messages(types[-1])[-1]['desired_tags'] == ['cone']
    until(lambda: client.state is ClientState.CONNECTED)
    assert 'control' in {kind for kind, _ in reports}


def test_commands_go_on_by_the_spare_connection_until_another_one_has_answered(peer, new_client):
    client = new_client(settings_for(peer, control_input='vehicle_control'))
    client.configure()
    client.connected()
    commands = control.MonodriveCommands(client)
    drive = EgoCommand(throttle=0.5, brake=0.0, steer=0.0, steering_angle=0.0)
    until(commands.write(drive))
    spare, n_opened = client.sessions[1], peer.events.count('control opened')
    # New connections are accepted and not served.
    peer.answer = lambda request: NEVER if request['type'] == RECONFIGURE else complete(request)
    peer._controls[0].shutdown(socket.SHUT_RDWR)
    # The write that finds the end of its connection is never proven.
    until(lambda: RECONFIGURE in peer.types(), step=lambda: (
        commands.write(drive), time.sleep(0.05)))
    for _ in range(10):
        until(commands.write(drive))
    assert client.sessions[1] is spare
    # The peer may take the spare one later than the client has opened it.
    assert peer.events.count('control opened') > n_opened
    # Every command was throttle, and none of them is lost.
    assert {each['forward_amount'] for each in peer.messages(control.CONTROL_EGO)} == {0.5}


def test_control_client_waits_for_the_packet_of_each_sample(peer, new_client, reports,
                                                            monkeypatch):
    monkeypatch.setattr(control, '_PACKET_TIMEOUT_S', 0.05)
    client = new_client(settings_for(peer, sample_rate=1000.0))
    client.configure()
    client.connected()
    # No packet arrives: that is reported, and the sensor is configured before the next sample.
    peer.wait_for_requests(4)
    assert peer.types()[:4] == [CONFIGURE, SAMPLE, RECONFIGURE, SAMPLE]
    reports.wait_for_text('no packet in 0.05 s after SampleSensorsCommand_ID')


@pytest.mark.parametrize('answer', [
    complete, reply, lambda request: reply(request, magic=OLD_MAGIC, extra=0)])
def test_control_client_has_one_request_outstanding_with_any_simulator(peer, run, answer):
    peer.answer = answer
    source, _ = run(settings_for(peer, sample_rate=1000.0))
    peer.wait_for_requests(30)
    assert peer.most_outstanding == 1
    assert set(peer.types()) == {CONFIGURE, SAMPLE}
    assert source.health.n_packets >= 28


def test_configured_source_continues_after_a_restart_of_the_simulator(peer, run):
    source, _ = run(settings_for(peer, sample_rate=1000.0))
    peer.wait_for_requests(5)
    for _ in range(3):
        n_before = len(peer.events)
        peer.drop_sensor()
        peer.drop_control()
        peer.wait_for(lambda p, n=n_before: 'sensor opened' in p.events[n:])
        n_requests = len(peer.requests)
        peer.wait_for_requests(n_requests + 5)
    assert source.health.n_connects >= 4
    assert peer.types().count(CONFIGURE) >= 4


def test_configured_source_names_a_silent_control_port_at_the_first_configuration(peer, run,
                                                                                  reports):
    released = threading.Event()

    def late(request):
        assert released.wait(AWAIT_S)
        return complete(request)

    peer.answer = late
    source, _ = run(settings_for(peer))
    until(lambda: source.health.last_error)
    assert source.health.state == 'connecting'
    assert source.health.last_error == (
        f'127.0.0.1:{peer.control_port}: no reply to {CONFIGURE} for 1 s; waiting '
        'up to 25 s')
    released.set()
    peer.wait_for(lambda p: 'sensor opened' in p.events)
    assert peer.types() == [CONFIGURE]
    assert not reports


@pytest.mark.parametrize('answer', [complete, lambda request: NEVER])
def test_configured_source_closed_at_any_time_ends_at_once(peer, run, answer, monkeypatch):
    """It waits for the reply, or for the time of the next sample, longer than the test."""
    monkeypatch.setattr(control, 'REPLY_TIMEOUT_S', 10 * AWAIT_S)
    peer.answer = answer
    source, _ = run(settings_for(peer, sample_rate=0.1 / AWAIT_S))
    peer.wait_for_requests(1)
    source.close()
    peer.wait_for(lambda p: not p._controls and not p._readers)


def test_configured_source_changes_an_actor_and_marks_the_frames_that_may_show_it(peer, run):
    source, frames = run(settings_for(peer))
    peer.wait_for(lambda peer: 'sensor opened' in peer.events)
    edit = EntityEdit(SET, 'EgoVehicle_0', (7.0, 2.0, math.nan, 0.0, 0.0, 0.0, 1.0),
                      (3.0, 0.0, 0.0, 0.0, 0.0, 0.5))

    def emitted(*times, position=b'[100.0, 0, 0]'):
        n_before = len(frames)
        for each in times:
            peer.emit(frame(each).replace(b'[100.0, 0, 0]', position))
        frames.wait_for(lambda frames: len(frames) == n_before + len(times))
        return [each.is_behind_gap for each in frames[n_before:]]

    emitted(1.0)
    for text in ('no such actor', 'not yet'):
        peer.answer = lambda request, text=text: reply(request, text)
        with pytest.raises(RefusalError, match=f"'{text}' in reply to UpdateStateCommand_ID"):
            source.edit(edit)
    peer.answer = complete
    with pytest.raises(StateError, match="no actor 'none'"):
        source.edit(replace(edit, name='none'))
    assert emitted(1.1) == [False]
    assert source.edit(edit) == 1.1
    [actor] = peer.messages('UpdateStateCommand_ID')[-1]['frame']
    assert actor == {
        'name': 'EgoVehicle_0', 'tags': ['vehicle', 'ego'], 'position': [700.0, -200.0, 0.0],
        'orientation': [0.0, 0.0, 0.0, 1.0], 'velocity': [300.0, 0.0, 0.0],
        'angular_velocity': [0.0, 0.0, -0.5]}
    # One that was on its way, the first one that shows it, and one after that.
    assert emitted(1.15) == [True]
    assert emitted(1.2, 1.25, position=b'[700.0, -200.0, 0]') == [True, False]
    # One that is never shown is not expected for ever.
    source.edit(edit)
    assert emitted(2.2, 2.3, 2.4) == [True, True, False]


def test_configured_source_samples_the_mock_server(run, reports):
    frames = [{'frame': [EGO, EGO | {'name': 'cone', 'tags': ['cone']}], 'game_time': i / 20,
               'time': 1} for i in range(50)]
    options = MonodriveOptions(control_port=0, on_sample=True)
    with MonodriveServer(frames, options) as simulator:
        source, packets = run(settings_for(simulator, sample_rate=200.0))
        packets.wait_for(lambda ps: len(ps) >= 10)
        source.close()
    assert not reports

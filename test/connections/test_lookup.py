# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Host names with a slow look-up, and invalid ones."""

import signal
import socket
import subprocess
import threading

from budgets import AWAIT_S, first_of
from paths import SAMPLE
from programs import ENVIRONMENT, PIPES, STATE_SENSOR
import pytest
from slow_names import HOST, SlowNames
from source_errors import error_of
from stopwatch import Stopwatch

from state_sensor_ros.connections import connection
from state_sensor_ros.connections.live_source import TcpSource
from state_sensor_ros.errors import TransportError
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.stream import CarlaSource
from state_sensor_ros.simulators.monodrive.control import ControlSession
from state_sensor_ros.simulators.monodrive.wire import PacketFramer

END_S = 2.0
NO_NAMES = ['no..name', 'x' * 70 + '.invalid', '\udcff']


@pytest.mark.parametrize('host', NO_NAMES)
@pytest.mark.parametrize('make', [
    lambda host: TcpSource(host, 8700, PacketFramer, list, Settings(reconnect_min=0.01)),
    lambda host: CarlaSource(Settings(source='carla', host=host, control_port=2000,
                                      reconnect_min=0.01))])
def test_lookup_of_an_invalid_name_fails_the_connect(host, make):
    source = make(host)
    assert ': not a valid host name: ' in error_of(source, source.frames())


def test_lookup_finds_one_address_of_this_machine_by_each_name():
    names = ['127.0.0.1:1', 'localhost:1', '127.0.0.2:1', '192.0.2.1:1', 'a/scene.sumocfg']
    assert [connection.resolved(name) for name in names] == 3 * ['localhost:1'] + names[3:]


@pytest.mark.parametrize('connect', [
    lambda session: session.connect(), lambda source: list(source.frames())])
def test_lookup_that_does_not_return_is_ended_by_a_close(monkeypatch, connect):
    released, began = threading.Event(), threading.Event()

    def wait(*args, **kwargs):
        if kwargs.get('flags'):
            raise socket.gaierror
        began.set()
        released.wait(AWAIT_S)
        raise socket.gaierror

    monkeypatch.setattr(connection.socket, 'getaddrinfo', wait)
    made = ControlSession(HOST, 1) if 'session' in connect.__code__.co_varnames \
        else TcpSource(HOST, 1, PacketFramer, list)
    errors = []

    def work():
        try:
            connect(made)
        except TransportError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert began.wait(AWAIT_S)
    made.close()
    thread.join(AWAIT_S)
    assert not thread.is_alive()
    assert all('ended on request' in error for error in errors)
    released.set()


@pytest.mark.parametrize(('number', 'words'), first_of([
    (signal.SIGINT, ('record', 'out.json')), (signal.SIGTERM, ('replay', str(SAMPLE), '--loop')),
    (signal.SIGHUP, ('record', 'out.json'))]))
def test_lookup_that_does_not_return_does_not_hold_up_the_end(tmp_path, words, number):
    names = SlowNames(tmp_path)
    with subprocess.Popen(
            [*STATE_SENSOR, *words, '--host', HOST], cwd=tmp_path, **PIPES,
            env={**ENVIRONMENT, **names.environment}) as process:
        names.wait()
        watch = Stopwatch(process)
        process.send_signal(number)
        watch.wait()
        assert watch.seconds < END_S
        assert 'Traceback' not in process.stderr.read()

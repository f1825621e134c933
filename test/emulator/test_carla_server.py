# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The CARLA server, read by code of this file and by the package's own source."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import re
import socket
import struct
import threading
import time

from budgets import AWAIT_S
import carla_wire as wire
from programs import start_mock
import pytest
from source_errors import error_of
from stopwatch import Stopwatch

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.frames import SERVER
from state_sensor_ros.simulators.carla.stream import CarlaSource


def read_frame(connection):
    messages = []
    while message := wire.read_message(connection):
        messages.append(message)
    return messages


def send(connection, body):
    connection.sendall(struct.pack('<I', len(body)) + body)


@contextmanager
def connected(port) -> Iterator[socket.socket]:
    """Connect; the ports of an episode refuse for a while after SERVER['EpisodeReady']."""
    until = time.monotonic() + AWAIT_S
    while True:
        try:
            connection = socket.create_connection(('127.0.0.1', port), AWAIT_S)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < until
            time.sleep(0.005)
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


@contextmanager
def source_of(settings):
    source = CarlaSource(settings)
    try:
        yield source, source.frames()
    finally:
        source.close()


@pytest.mark.parametrize(('answers', 'error'), [
    # With or without a reset: what the source sent is not read.
    ([], '(the server closed the connection instead of replying to the|connection reset)'),
    ([b''], 'found 0 start spots'), ([b'\xff\xff'], 'found no message of the world port'),
    ([wire.sub(1, wire.transform()), b''], 'found the reply that the episode is not ready'),
    ([wire.sub(1, wire.transform()), b'\x01'], 'found no message of the world port')])
def test_carla_source_reports_invalid_replies_of_a_world_port(answers, error):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        def answer():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                # The source closes a connection whose reply is invalid.
                with connection, suppress(EOFError, OSError):
                    for body in answers:
                        wire.read_message(connection)
                        send(connection, body)
        threading.Thread(target=answer, daemon=True).start()
        settings = Settings(source='carla', port=1, control_port=listener.getsockname()[1],
                            desired_tags=('x',), reconnect_min=0.01, reconnect_max=0.01)
        with source_of(settings) as (source, packets):
            found = error_of(source, packets)
        assert re.search(f'127.0.0.1:{settings.control_port}: {error}', found)
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(('answers', 'request_name'), [
    ([], 'RequestNewEpisode'), ([wire.sub(1, wire.transform())], 'EpisodeStart')])
def test_carla_source_names_a_silent_world_port(answers, request_name):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        connections = []

        def answer():
            connection, _ = listener.accept()
            connections.append(connection)
            for body in answers:
                wire.read_message(connection)
                send(connection, body)
        threading.Thread(target=answer, daemon=True).start()
        settings = Settings(source='carla', port=1, control_port=listener.getsockname()[1],
                            desired_tags=('x',))
        with source_of(settings) as (source, packets):
            reader = threading.Thread(target=lambda: list(packets), daemon=True)
            reader.start()
            watch = Stopwatch()
            # A reply that is late on a busy machine is named, too.
            while request_name not in source.health.last_error:
                assert watch.seconds < 3.0
                reader.join(0.01)
            assert source.health.state == 'connecting'
            assert source.health.last_error == (
                f'127.0.0.1:{settings.control_port}: no answer to {request_name} for 1 s; '
                'waiting up to 60 s')
            source.close()
            reader.join(AWAIT_S)
            assert not reader.is_alive()
        for connection in connections:
            connection.close()


def test_carla_source_refuses_a_missing_settings_file(tmp_path):
    settings = Settings(source='carla', control_port=2000, config_file=str(tmp_path / 'none'))
    with pytest.raises(ConfigError, match='none: no such file'):
        CarlaSource(settings)


def test_mock_program_serves_episodes():
    words = ['carla', '--port', '0', '--rate', 'max', '--vehicles', '2',
             '--objects', '0', '--frames', '4', '--episode', '2']
    with start_mock(*words) as process:
        lines = [process.stdout.readline() for _ in range(3)]
        assert [line.split(' on ')[0] for line in lines] == ['world', 'control', 'listening']
        with connected(int(lines[2].rsplit(':', 1)[1])) as reader:
            messages = [SERVER['Measurements'].FromString(read_frame(reader)[0]) for _ in range(4)]
            assert reader.recv(1) == b''
        assert process.wait(AWAIT_S) == 0
    assert [message.game_timestamp for message in messages] == [0, 100, 0, 100]

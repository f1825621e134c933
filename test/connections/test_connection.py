# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Connections: of one host, of a source that receives packets, and their losses."""

from itertools import count
import socket
import struct
import threading

from budgets import AWAIT_S
from ports import free_port
import pytest

from state_sensor_ros.connections import connection as connection_module
from state_sensor_ros.connections.connection import Connection
from state_sensor_ros.connections.live_source import LiveSource, TcpSource
from state_sensor_ros.errors import TransportError, UnreachableError
from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.monodrive.wire import PacketFramer


@pytest.fixture
def listener():
    with socket.create_server(('127.0.0.1', 0)) as listening:
        yield listening


@pytest.fixture
def connection(listener):
    made = Connection(*listener.getsockname())
    yield made
    made.close()


def address_info(*ports):
    return [(socket.AF_INET, socket.SOCK_STREAM, 0, '', ('127.0.0.1', port)) for port in ports]


def test_connection_tries_each_address_of_the_host(listener, monkeypatch):
    addresses = address_info(free_port(), listener.getsockname()[1])
    monkeypatch.setattr(connection_module, 'look_up', lambda *_: addresses)
    prepared = []
    connection = Connection('host', 1)
    connection.connect(prepared.append)
    assert connection.open_socket.getpeername() == listener.getsockname()
    assert prepared[1] is connection.open_socket
    assert prepared[0].fileno() == -1
    connection.close()


def test_connection_to_itself_is_refused(listener, connection, monkeypatch):
    monkeypatch.setattr(socket.socket, 'getsockname', socket.socket.getpeername)
    with pytest.raises(ConnectionRefusedError, match='connected to itself'):
        connection.connect()


def test_connection_shut_down_wakes_the_reading_thread(listener, connection):
    connection.connect()
    opened = connection.open_socket
    opened.settimeout(AWAIT_S)
    received = []
    thread = threading.Thread(target=lambda: received.append(opened.recv(1)))
    thread.start()
    connection.shut_down()
    thread.join(AWAIT_S)
    assert received == [b'']
    with pytest.raises(ConnectionAbortedError, match='ended on request'):
        assert connection.open_socket
    connection.close()
    with pytest.raises(ConnectionAbortedError, match='ended on request'):
        connection.connect()


PACKET = struct.pack('>IIfI', 100_000, 0, 0.0, 1) + bytes(100_000 - 16)


def test_source_closed_releases_a_blocked_simulator():
    is_held, errors = threading.Event(), []

    def flood():
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(0.3)
            try:
                while True:
                    connection.sendall(PACKET)
            except TimeoutError:
                is_held.set()
            connection.settimeout(AWAIT_S)
            try:
                while True:
                    connection.send(PACKET)
            except OSError as error:
                errors.append(error)

    with socket.create_server(('127.0.0.1', 0)) as listener:
        simulator = threading.Thread(target=flood, daemon=True)
        simulator.start()
        source = TcpSource(*listener.getsockname(), lambda where: PacketFramer(len(PACKET), where),
                           lambda packet: [packet])
        packets = source.frames()
        next(packets)
        assert is_held.wait(AWAIT_S)
        source.close()
        assert list(packets) == []
        simulator.join(2 * AWAIT_S)
    assert [type(error) for error in errors] in ([ConnectionResetError], [BrokenPipeError])


def test_source_yields_each_packet_of_one_segment():
    payloads = [b'{}', b'', b'[1]' * 40_000, b'{"a": 1}', b'x' * 3]
    data = b''.join(struct.pack('>IIfI', len(payload) + 16, 0, 0.0, i + 1) + payload
                    for i, payload in enumerate(payloads))
    with socket.create_server(('127.0.0.1', 0)) as listener:
        source = TcpSource(*listener.getsockname(), lambda where: PacketFramer(1 << 20, where),
                           lambda packet: [packet],
                           reconnect=False)
        packets = source.frames()
        simulator = threading.Thread(target=lambda: listener.accept()[0].sendall(data))
        simulator.start()
        found = [next(packets) for _ in payloads]
        assert (source.health.n_packets, source.health.n_bytes) == (len(payloads), len(data))
        source.close()
        assert list(packets) == []
        simulator.join(AWAIT_S)
    assert [bytes(packet.payload) for packet in found] == payloads
    assert [packet.sample_count for packet in found] == [1, 2, 3, 4, 5]


QUICK = Settings(reconnect_min=0.01, reconnect_max=0.01)


class Broken(LiveSource):

    def receive(self):
        self.connected()
        raise ConnectionResetError(104, 'Connection reset by peer')
        yield


def test_error_of_the_system_names_the_address():
    source = Broken(address='10.0.0.1:8790', reconnect=False)
    with pytest.raises(TransportError, match=r'10\.0\.0\.1:8790: connection reset by peer$'):
        list(source.frames())
    assert (source.health.n_connects, source.health.n_losses) == (1, 1)


class Failing(LiveSource):
    """Each connection yields and raises what the script says for it."""

    def __init__(self, script):
        super().__init__(QUICK)
        self._script = script
        self.health.failures.limit = 3

    def receive(self):
        items, error = next(self._script)
        self.connected()
        yield from items
        raise error


def frames_until(game_time):
    return [build_frame('toy', time, ['a'], [[0, 0, 0]]) for time in (0.0, game_time)]


@pytest.mark.parametrize(('script', 'n_connects'), [
    # For good: one reason and nothing new, be there no frame, or the same run again.
    ((([], TransportError('a', 'b')) for _ in count()), 3),
    (((frames_until(2.0), TransportError('a', 'b')) for _ in count()), 3),
    # Each of these makes a new count begin.
    ((([], TransportError('a', f'b{min(i, 5)}')) for i in count()), 8),
    ((([], (UnreachableError if i < 5 else TransportError)('a', 'b')) for i in count()), 8),
    (((frames_until(min(i, 4.0) + 1), TransportError('a', 'b')) for i in count()), 7)])
def test_source_that_fails_for_good_ends_a_command_and_no_node(script, n_connects):
    source = Failing(script)
    with pytest.raises(TransportError):
        list(source.frames())
    assert source.health.n_connects == n_connects
    node = Failing(([], TransportError('a', 'b')) for _ in count())
    node.health.failures.limit = None
    node.health.on_error = lambda: node.health.n_connects == 9 and node.close()
    assert list(node.frames()) == []
    assert node.health.n_connects == 9

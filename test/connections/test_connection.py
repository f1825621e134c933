# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""One connection: the addresses that it tries, and its end from another thread."""

import socket
import threading

import pytest

from state_sensor_ros.connections import connection as connection_module
from state_sensor_ros.connections.connection import Connection

AWAIT_S = 10.0


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
    with socket.create_server(('127.0.0.1', 0)) as closed:
        closed_port = closed.getsockname()[1]
    addresses = address_info(closed_port, listener.getsockname()[1])
    monkeypatch.setattr(connection_module, 'look_up', lambda *_: addresses)
    prepared = []
    connection = Connection('host', 1)
    connection.connect(prepared.append)
    assert connection.open_socket.getpeername() == listener.getsockname()
    assert prepared[1] is connection.open_socket
    assert prepared[0].fileno() == -1
    connection.close()


def test_connection_raises_the_error_of_the_last_address(monkeypatch):
    with socket.create_server(('127.0.0.1', 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setattr(connection_module, 'look_up', lambda *_: address_info(port, port))
    connection = Connection('host', 1)
    with pytest.raises(ConnectionRefusedError):
        connection.connect()
    with pytest.raises(OSError, match='no connection'):
        assert connection.open_socket
    assert not connection.is_alive()


def test_connection_to_itself_is_refused(listener, connection, monkeypatch):
    monkeypatch.setattr(socket.socket, 'getsockname', socket.socket.getpeername)
    with pytest.raises(ConnectionRefusedError, match='connected to itself'):
        connection.connect()


def test_connection_connects_again_after_a_close(listener, connection):
    for _ in range(2):
        connection.connect()
        peer, _ = listener.accept()
        assert connection.is_alive()
        peer.close()
        assert connection.open_socket.recv(1) == b''
        assert not connection.is_alive()
        connection.close()
        connection.close()


def test_connection_shut_down_wakes_the_reading_thread(listener, connection):
    connection.connect()
    connection.open_socket.settimeout(AWAIT_S)
    received = []
    thread = threading.Thread(target=lambda: received.append(connection.open_socket.recv(1)))
    thread.start()
    connection.shut_down()
    thread.join(AWAIT_S)
    assert received in ([b''], [])
    with pytest.raises(ConnectionAbortedError, match='ended on request'):
        assert connection.open_socket
    connection.close()
    with pytest.raises(ConnectionAbortedError, match='ended on request'):
        connection.connect()


def test_connection_shut_down_while_connecting_is_not_connected(connection):
    with pytest.raises(ConnectionAbortedError, match='ended on request'):
        connection.connect(lambda _: connection.shut_down())
    connection.close()

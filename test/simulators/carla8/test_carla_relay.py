# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The relay between a client of CARLA and its server: what passes, and what the node gets."""

from contextlib import contextmanager, suppress
import random
import socket
import struct
import threading
import time

from budgets import AWAIT_S, tries
from carla_client import CarlaClient, frame_number
from carla_late_server import LateServer
from carla_server.town_server import CarlaOptions, CarlaServer
from ports import free_port, free_ports
import pytest
from relay_rig import echo_server, relayed
from stopwatch import until

from state_sensor_ros.errors import TransportError
from state_sensor_ros.simulators import schema_of
from state_sensor_ros.simulators.carla.relay import CarlaRelay

RATE_HZ = 200.0
IMAGE_BYTES = 64 * 48 * 4


@pytest.mark.parametrize('mode', [False, True], ids=['asynchronous', 'synchronous'])
def test_relay_client_drives_and_the_node_reads(mode):
    with LateServer(free_ports(3), (0.0, 0.3), seed=3) as server, \
            relayed(server.world_port) as (node, port), CarlaClient(port, mode, 2) as client:
        frames = []
        for _ in range(20):
            frames.append(client.frame())
            client.command(throttle=0.25)
        until(lambda: len(node.frames) >= 20, 'frames for the node')
        assert node.numbers()[:20] == [frame_number(frame[0]) for frame in frames]
        assert server.n_loads == 1
        assert server.episodes[0].spot == 2
        # The control port may open after all of these frames.
        until(lambda: server.episodes[0].commands, 'a command')
        assert set(server.episodes[0].commands) == {0.25}
        assert (node.relay.health.state, node.relay.health.n_connects) == ('connected', 1)
        assert node.reports == []


@pytest.mark.parametrize(('client_pause_s', 'node_pause_s'), [(0.0, 0.05), (0.02, 0.0)])
def test_relay_under_load(client_pause_s, node_pause_s):
    n_frames = 40 if client_pause_s else 200
    with LateServer(free_ports(3), rate=RATE_HZ, image_bytes=IMAGE_BYTES, keeps_bytes=True) as \
            server, relayed(server.world_port, node_pause_s) as (node, port), \
            CarlaClient(port) as client:
        frames = []
        for _ in range(n_frames):
            frames.append(client.frame())
            time.sleep(client_pause_s)
        until(lambda: len(node.frames) >= 5, 'frames for the node')
        assert server.episodes[0].sent.startswith(client.received)
        assert [len(frame) for frame in frames] == [2] * n_frames
        numbers = node.numbers()
        assert numbers == sorted(set(numbers))


def test_relay_slow_node_gets_the_newest_frames():
    with LateServer(free_ports(3), rate=RATE_HZ, image_bytes=2 ** 20) as server, \
            relayed(server.world_port) as (node, port), CarlaClient(port) as client:
        client.frame()
        until(lambda: node.frames, 'a frame for the node')
        node.pause_s = 0.5
        for _ in range(100):
            number = frame_number(client.frame()[0])
        node.pause_s = 0.0
        until(lambda: node.numbers()[-1] >= number, 'the newest frame')
        numbers = node.numbers()
        assert numbers == sorted(set(numbers))
        assert len(numbers) < number
        assert any('dropped' in text for text in node.reports)


@pytest.mark.parametrize('seed', range(tries(3)))
def test_relay_cut_at_any_moment(seed):
    """One side closes in the middle of the stream: the other is closed, and a new client works."""
    chance = random.Random(seed)
    with LateServer(free_ports(3), (0.0, 0.05), rate=RATE_HZ, image_bytes=IMAGE_BYTES,
                    keeps_bytes=True) as server, relayed(server.world_port) as (node, port):
        for _ in range(3):
            with CarlaClient(port) as client:
                for _ in range(chance.randrange(1, 20)):
                    client.frame()
                time.sleep(chance.uniform(0.0, 0.01))
                episode = server.episodes[-1]
                if chance.random() < 0.5:
                    server.cut()
                    assert client.is_cut()
                assert episode.sent.startswith(client.received)
            until(lambda: server.n_loads > len(server.episodes), 'a server that noticed')
        until(lambda: node.relay.health.state == 'waiting', 'a relay without a client')
        # A client that is there before the end of the last one is noticed is none of its own; one
        # that has to begin anew may be two.
        assert 1 <= node.relay.health.n_connects <= len(server.episodes)
        assert node.relay.faults.n_lost == 0


@pytest.mark.parametrize('server', ['late', 'mock server'])
def test_relay_episodes_are_no_lost_connections(server):
    """Nor other connections; only the end of the client is one."""
    with (LateServer(free_ports(3), rate=RATE_HZ) if server == 'late' else
          CarlaServer(CarlaOptions(rate=RATE_HZ))) as found, \
            relayed(found.world_port) as (node, port):
        health, states = node.relay.health, set()
        with CarlaClient(port) as client:
            for i in range(tries(12)):
                if i:
                    client.next_episode()
                    states.add(health.state)
                client.frame()
                until(lambda i=i: node.frames and health.state == 'connected'
                      and not health.silence, f'the frames of episode {i}')
                assert (health.n_connects, health.n_losses, health.n_reconnects) == (1, 0, 0)
        assert states == {'connected'}
        until(lambda: health.state == 'waiting', 'the end of the client')
        assert (health.n_losses, health.loss) == (1, 'the client closed the connection')
        assert health.n_cut_packets == 0
        with CarlaClient(port) as client:
            client.frame()
            until(lambda: health.n_connects == 2, 'the connection of the next client')
            assert health.n_losses == 1


def test_relay_names_a_client_between_two_episodes():
    with LateServer(free_ports(3)) as server, relayed(server.world_port) as (node, port), \
            CarlaClient(port) as client:
        client.frame()
        client.measurements.close()
        until(lambda: node.relay.health.silence == (
            'the client of the relay has ended its episode and not begun another'), 'a silence')
        assert node.relay.health.state == 'connected'


def test_relay_measurements_that_the_server_ends_are_a_loss():
    """The client still has its connection to the world port."""
    with LateServer(free_ports(3)) as server, relayed(server.world_port) as (node, port), \
            CarlaClient(port) as client:
        client.frame()
        server.drop(1)
        # The state is set after the count.
        health = node.relay.health
        until(lambda: health.n_losses and health.state == 'waiting', 'a loss')
        assert health.loss.startswith('the server closed the connection')
        client.next_episode()
        client.frame()
        until(lambda: node.relay.health.state == 'connected', 'another episode')
        assert node.relay.health.n_reconnects == 1


def test_relay_client_leaves_while_the_server_is_silent():
    with socket.create_server(('127.0.0.1', free_port())) as server:
        world_port = server.getsockname()[1]
        with relayed(world_port) as (_, port):
            client = socket.create_connection(('127.0.0.1', port), AWAIT_S)
            connection, _ = server.accept()
            connection.settimeout(AWAIT_S)
            client.close()
            assert connection.recv(1) == b''
            connection.close()


def test_relay_names_a_silent_server():
    with socket.create_server(('127.0.0.1', free_port())) as server:
        measurements_port = server.getsockname()[1]
        with relayed(measurements_port - 1) as (node, port), \
                socket.create_connection(('127.0.0.1', port + 1), AWAIT_S):
            until(lambda: node.relay.health.state == 'connected', 'a connection')
            assert node.relay.health.silence.startswith(
                f'127.0.0.1:{measurements_port} accepted the connection and is silent; expected')


def test_relay_names_a_client_that_sends_nothing():
    with echo_server() as world_port, relayed(world_port) as (node, port):
        no_client = node.relay.health.last_error
        with socket.create_connection(('127.0.0.1', port), AWAIT_S):
            until(lambda: node.relay.health.last_error == (
                f'a client of the relay is connected to 127.0.0.1:{world_port}, and not to '
                f'127.0.0.1:{world_port + 1}'), 'the client')
            assert node.relay.health.state == 'waiting'
        until(lambda: node.relay.health.last_error == no_client, 'the end of the client')
        assert node.reports == []


@pytest.mark.parametrize('bind', ['192.0.2.1', 'no..name'])
def test_relay_names_an_address_that_is_not_of_this_machine(bind):
    port = free_ports(3)
    relay = CarlaRelay(schema_of().parse({
        'source': 'carla', 'port': 2001, 'carla.relay_port': port, 'carla.relay_bind': bind}),
        lambda kind, text: None, reconnect=False)
    with pytest.raises(TransportError, match='; relay_bind must be an address of this machine'
                       ) as refusal:
        list(relay.frames())
    assert str(refusal.value).startswith(f'{bind}:{port}: ')


def test_relay_tries_again_while_a_server_refuses(monkeypatch):
    """For a while: the server may be loading its level."""
    monkeypatch.setattr('state_sensor_ros.simulators.carla.relay.LATE_PORT_S', AWAIT_S)
    world_port = free_ports(3)
    with relayed(world_port) as (node, port), \
            socket.create_connection(('127.0.0.1', port), 0.3) as client:
        until(lambda: node.relay.health.last_error == (
            f'cannot connect to 127.0.0.1:{world_port}: connection refused; is the '
            'server running?'), 'the refusal, while it is tried again')
        with pytest.raises(TimeoutError):
            client.recv(1)


def test_relay_names_a_server_that_refuses(monkeypatch):
    monkeypatch.setattr('state_sensor_ros.simulators.carla.relay.LATE_PORT_S', 0.5)
    world_port = free_ports(3)
    with relayed(world_port) as (node, port):
        with socket.create_connection(('127.0.0.1', port), AWAIT_S) as client:
            assert client.recv(1) == b''
        text = (f'cannot connect to 127.0.0.1:{world_port}: connection refused; is the simulator '
                'running?')
        until(lambda: node.reports == [text], 'a report')
        assert node.relay.health.last_error == text


def test_relay_waits_for_its_ports():
    with LateServer(free_ports(3)) as server:
        port = free_ports(3)
        taken = socket.create_server(('127.0.0.1', port))
        with relayed(server.world_port, **{'carla.relay_port': port}) as (node, _):
            assert node.relay.health.last_error == (
                f'127.0.0.1:{port}: the port of the relay is in use')
            taken.close()
            until(lambda: node.relay.health.last_error.startswith('no client'), 'open ports')
            with CarlaClient(port) as client:
                assert client.frame()


def test_relay_forwards_frames_that_are_too_long():
    with LateServer(free_ports(3), image_bytes=8192) as server, \
            relayed(server.world_port, max_frame_bytes=4096) as (node, port), \
            CarlaClient(port) as client:
        for _ in range(3):
            assert len(client.frame()) == 2
        until(lambda: 'a frame of at most max_frame_bytes, 4096' in node.relay.health.last_error,
              'a protocol error')
        assert node.relay.health.n_protocol_errors == 1
        assert node.frames == []


def read_to_end(connection):
    data = bytearray()
    with suppress(ConnectionError):
        while part := connection.recv(2 ** 14):
            data += part
    return bytes(data)


@contextmanager
def serving(number, serve):
    """Serve one connection of a port by ``serve``; yield the first port of three."""
    first = free_ports(3)
    with socket.create_server(('127.0.0.1', first + number)) as listener:
        def work():
            connection, _ = listener.accept()
            with connection, suppress(ConnectionError):
                serve(connection)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield first
        thread.join(AWAIT_S)
        assert not thread.is_alive()


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    connection.close()


@pytest.mark.parametrize('number', range(3))
def test_relay_delivers_both_directions_to_their_ends(number):
    """The client ends its side in order, and the server answers then."""
    data, requests = random.Random(number).randbytes(3_000_000), []

    def serve(connection):
        requests.append(read_to_end(connection))
        connection.sendall(data)
    with serving(number, serve) as first, relayed(first) as (_, port), \
            socket.create_connection(('127.0.0.1', port + number), AWAIT_S) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        assert read_to_end(client) == data
        assert requests == [data]


@pytest.mark.parametrize('number', range(3))
def test_relay_passes_on_a_client_that_is_killed(number):
    ended = threading.Event()

    def serve(connection):
        with suppress(ConnectionError):
            while True:
                connection.sendall(bytes(1000))
        ended.set()
    with serving(number, serve) as first, relayed(first) as (_, port):
        client = socket.create_connection(('127.0.0.1', port + number), AWAIT_S)
        assert client.recv(1000)
        reset(client)
        assert ended.wait(AWAIT_S)


def test_relay_passes_on_a_server_that_is_killed():
    def serve(connection):
        connection.sendall(connection.recv(1))
        reset(connection)
    with serving(2, serve) as first, relayed(first) as (_, port), \
            socket.create_connection(('127.0.0.1', port + 2), AWAIT_S) as client:
        client.sendall(b'x')
        assert client.recv(1) == b'x'
        assert read_to_end(client) == b''

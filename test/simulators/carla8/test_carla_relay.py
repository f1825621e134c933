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

from contextlib import contextmanager
import random
import signal
import socket
import subprocess
import time

from budgets import AWAIT_S, first_of, tries
from carla_client import CarlaClient, frame_number
from carla_late_server import LateServer
from carla_server.town_server import CarlaOptions, CarlaServer
from ports import free_port, free_ports
from programs import start_script
import pytest
from relay_rig import echo_server, listens, process_of_relay, relayed
from stopwatch import Stopwatch, until

from state_sensor_ros.errors import TransportError
from state_sensor_ros.simulators.carla.frame_payload import split_frame
from state_sensor_ros.simulators.carla.source import open_relay
from state_sensor_ros.simulators.simulator_list import schema_of

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
        until(lambda: len(node.payloads) >= 20, 'frames for the node')
        assert [[bytes(each) for each in split_frame(payload)[0]]
                for payload in node.payloads[:20]] == frames
        assert server.n_loads == 1
        assert server.episodes[0].spot == 2
        # The control port may open after all of these frames.
        until(lambda: server.episodes[0].commands, 'a command')
        assert set(server.episodes[0].commands) == {0.25}
        assert (node.relay.health.state, node.relay.health.n_connects) == ('connected', 1)
        assert node.reports == []


def test_relay_forwards_a_byte_at_once():
    with echo_server() as first, relayed(first) as (_, port), \
            socket.create_connection(('127.0.0.1', port), AWAIT_S) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times, process = [], process_of_relay()
        for _ in range(50):
            watch = Stopwatch(process)
            client.sendall(b'x')
            assert client.recv(1) == b'x'
            times.append(watch.seconds)
    # Nagle's algorithm with a delayed acknowledgment would take 40 ms.
    assert sorted(times)[25] < 0.02


@pytest.mark.parametrize(('client_pause_s', 'node_pause_s'), first_of([
    (0.0, 0.05), (0.02, 0.0), (0.0, 0.0), (0.02, 0.05)], n_always=2))
def test_relay_under_load(client_pause_s, node_pause_s):
    n_frames = 40 if client_pause_s else 200
    with LateServer(free_ports(3), rate=RATE_HZ, image_bytes=IMAGE_BYTES, keeps_bytes=True) as \
            server, relayed(server.world_port, node_pause_s) as (node, port), \
            CarlaClient(port) as client:
        watch = Stopwatch(process_of_relay())
        frames = []
        for _ in range(n_frames):
            frames.append(client.frame())
            time.sleep(client_pause_s)
        elapsed_s = watch.seconds
        until(lambda: len(node.payloads) >= 5, 'frames for the node')
        assert server.episodes[0].sent.startswith(client.received)
        assert [len(frame) for frame in frames] == [2] * n_frames
        if not client_pause_s:
            # With the pauses of the node in the way it would take 10 s.
            assert elapsed_s < 7.0
        numbers = node.numbers()
        assert numbers == sorted(set(numbers))
        # Further ones may come meanwhile.
        payloads, sent = node.payloads[:20], bytes(server.episodes[0].sent)
        assert all(payload in sent for payload in payloads)


def test_relay_slow_node_gets_the_newest_frames():
    with LateServer(free_ports(3), rate=RATE_HZ, image_bytes=2 ** 20) as server, \
            relayed(server.world_port) as (node, port), CarlaClient(port) as client:
        client.frame()
        until(lambda: node.payloads, 'a frame for the node')
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
        assert all(len(split_frame(payload)[0]) == 2 for payload in node.payloads)
        assert all(any(payload in bytes(episode.sent) for episode in server.episodes)
                   for payload in node.payloads[:10])


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
                until(lambda i=i: node.payloads and health.state == 'connected'
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


@pytest.mark.parametrize('bind', ['192.0.2.1', 'no-such-host.invalid', 'no..name'])
def test_relay_names_an_address_that_is_not_of_this_machine(bind):
    port = free_ports(3)
    relay = open_relay(schema_of().parse({
        'source': 'carla', 'port': 2001, 'relay_port': port, 'relay_bind': bind}),
        lambda kind, text: None, reconnect=False)
    with pytest.raises(TransportError, match='; relay_bind must be an address of this machine'
                       ) as refusal:
        list(relay.frames())
    assert str(refusal.value).startswith(f'{bind}:{port}: ')


def test_relay_tries_again_while_a_server_refuses(monkeypatch):
    """For a while: the server may be loading its level."""
    monkeypatch.setattr('state_sensor_ros.connections.relay._LATE_PORT_S', AWAIT_S)
    world_port = free_ports(3)
    with relayed(world_port) as (node, port), \
            socket.create_connection(('127.0.0.1', port), 0.3) as client:
        until(lambda: node.relay.health.last_error == (
            f'cannot connect to 127.0.0.1:{world_port}: connection refused; is the '
            'server running?'), 'the refusal, while it is tried again')
        with pytest.raises(TimeoutError):
            client.recv(1)


def test_relay_names_a_server_that_refuses(monkeypatch):
    monkeypatch.setattr('state_sensor_ros.connections.relay._LATE_PORT_S', 0.5)
    world_port = free_ports(3)
    with relayed(world_port) as (node, port):
        with socket.create_connection(('127.0.0.1', port), AWAIT_S) as client:
            assert client.recv(1) == b''
        text = (f'cannot connect to 127.0.0.1:{world_port} for 0.5 s: connection refused; is the '
                'server running?')
        until(lambda: node.reports == [text], 'a report')
        assert node.relay.health.last_error == text


@pytest.mark.parametrize(('host', 'reason'), [
    ('no..name', 'not a valid host name: no..name'), ('no-such-host.invalid', 'name')])
def test_relay_names_a_host_that_is_not_known(host, reason):
    with relayed(free_ports(3), host=host) as (node, port):
        with socket.create_connection(('127.0.0.1', port), AWAIT_S) as client:
            assert client.recv(1) == b''
        until(lambda: node.reports, 'a report')
        [text] = node.reports
        assert f': {reason}' in text
        assert 'unknown error' not in text


def test_relay_waits_for_its_ports():
    with LateServer(free_ports(3)) as server:
        port = free_ports(3)
        taken = socket.create_server(('127.0.0.1', port))
        with relayed(server.world_port, relay_port=port) as (node, _):
            assert node.relay.health.last_error == (
                f'127.0.0.1:{port}: the port of the relay is in use')
            taken.close()
            until(lambda: node.relay.health.last_error.startswith('no client'), 'open ports')
            with CarlaClient(port) as client:
                assert client.frame()


def test_relay_skips_a_frame_that_is_too_long():
    with LateServer(free_ports(3), image_bytes=8192) as server, \
            relayed(server.world_port, max_frame_bytes=4096) as (node, port), \
            CarlaClient(port) as client:
        for _ in range(3):
            assert len(client.frame()) == 2
        until(lambda: 'expected at most max_frame_bytes, 4096' in node.relay.health.last_error,
              'a protocol error')
        assert node.relay.health.n_protocol_errors > 0
        assert node.payloads == []


NODE = """
import sys
from state_sensor_ros.simulators.carla.source import open_relay
from state_sensor_ros.simulators.simulator_list import schema_of
relay = open_relay(schema_of().parse({'source': 'carla', 'port': int(sys.argv[1]) + 1,
                                     'relay_port': int(sys.argv[2])}), lambda kind, text: None)
for packet in relay.frames():
    print(len(packet.payload), flush=True)
"""


@contextmanager
def node_process(folder, world_port):
    port = free_ports(3)
    script = folder / 'node.py'
    script.write_text(NODE)
    process = start_script([str(script), str(world_port), str(port)], stdout=subprocess.PIPE)
    try:
        # The last of the three to be opened.
        until(lambda: listens(port + 2), 'a relay that listens')
        yield process, port
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_relay_forwards_while_the_node_is_stopped(tmp_path):
    with echo_server() as world_port, node_process(tmp_path, world_port) as (process, port), \
            socket.create_connection(('127.0.0.1', port + 1), AWAIT_S) as client:
        client.sendall(bytes(4))
        assert client.recv(4)
        process.send_signal(signal.SIGSTOP)
        for _ in range(50):
            client.sendall(b'\x08\0\0\0' + 8 * b'x' + bytes(4))
            assert client.recv(16, socket.MSG_WAITALL)


def test_relay_ends_with_the_node(tmp_path):
    with echo_server() as world_port, node_process(tmp_path, world_port) as (process, port), \
            socket.create_connection(('127.0.0.1', port + 1), AWAIT_S) as client:
        client.sendall(bytes(4))
        assert process.stdout.readline() == b'4\n'
        client.recv(4)
        process.kill()
        assert client.recv(1) == b''
        until(lambda: not listens(port), 'closed ports')

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
from itertools import pairwise
import random
import socket
import threading
import time

from budgets import AWAIT_S, tries
from carla_client import CarlaClient, frame_number
from carla_late_server import LateServer
from ports import free_port, free_ports
import pytest
from stopwatch import until

from state_sensor_ros.errors import TransportError
from state_sensor_ros.simulators import schema_of
from state_sensor_ros.simulators.carla.relay import CarlaRelay
from state_sensor_ros.source import SourceState

RATE_HZ = 200.0
IMAGE_BYTES = 64 * 48 * 4


class Node:
    """Reads the frames of a relay in a thread, with a pause after each."""

    def __init__(self, world_port, **changes):
        self.port = changes.get('carla.relay_port') or free_ports(3)
        self.frames, self.reports, self.pause_s = [], [], 0.0
        self.relay = CarlaRelay(schema_of().parse({
            'source': 'carla', 'port': world_port + 1, 'carla.relay_port': self.port,
            'reconnect_min': 0.01, 'reconnect_max': 0.05, **changes}),
            lambda kind, text: self.reports.append(text))
        self.health = self.relay.health
        self.thread = threading.Thread(target=self._read, daemon=True)

    def _read(self):
        for frame in self.relay.frames():
            self.frames.append(frame)
            time.sleep(self.pause_s)

    def numbers(self):
        return [frame.sample_count for frame in self.frames]


@contextmanager
def relayed(world_port, **changes):
    """Run a relay to a server; yield what reads its frames."""
    node = Node(world_port, **changes)
    node.thread.start()
    until(lambda: node.health.last_error, 'a relay that listens, or cannot')
    try:
        yield node
    finally:
        node.relay.close()
        node.thread.join(AWAIT_S)
        assert not node.thread.is_alive()
        assert node.health.state is SourceState.CLOSED


@pytest.mark.parametrize('mode', [False, True], ids=['asynchronous', 'synchronous'])
def test_relay_client_drives_and_the_node_reads(mode):
    with LateServer(free_ports(3), (0.0, 0.3), seed=3) as server, \
            relayed(server.world_port) as node, CarlaClient(node.port, mode, 2) as client:
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
        assert (node.health.state, node.health.n_connects) == ('connected', 1)
        assert node.reports == []


def test_relay_slow_node_gets_the_newest_frames():
    with LateServer(free_ports(3), rate=RATE_HZ, image_bytes=2 ** 20) as server, \
            relayed(server.world_port) as node, CarlaClient(node.port) as client:
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
                    keeps_bytes=True) as server, relayed(server.world_port) as node:
        for _ in range(3):
            with CarlaClient(node.port) as client:
                for _ in range(chance.randrange(1, 20)):
                    client.frame()
                time.sleep(chance.uniform(0.0, 0.01))
                episode = server.episodes[-1]
                if chance.random() < 0.5:
                    server.cut()
                    assert client.is_cut()
                assert episode.sent.startswith(client.received)
            until(lambda: server.n_loads > len(server.episodes), 'a server that noticed')
        until(lambda: node.health.state == 'waiting', 'a relay without a client')
        # A client that is there before the end of the last one is noticed is none of its own; one
        # that has to begin anew may be two.
        assert 1 <= node.health.n_connects <= len(server.episodes)
        assert node.relay.faults.n_lost == 0


def test_relay_episodes_are_no_lost_connections():
    """Nor other connections; only the end of the client is one."""
    with LateServer(free_ports(3), rate=RATE_HZ) as server, relayed(server.world_port) as node:
        health, states = node.health, set()
        with CarlaClient(node.port) as client:
            for i in range(tries(12)):
                if i:
                    client.next_episode()
                    states.add(health.state)
                client.frame()
                until(lambda i=i: node.frames and health.state == 'connected'
                      and not health.silence, f'the frames of episode {i}')
                assert (health.n_connects, health.n_losses, health.n_reconnects) == (1, 0, 0)
            client.measurements.close()
            until(lambda: health.silence == (
                'the client of the relay has ended its episode and not begun another'),
                'a silence')
        assert states == {'connected'}
        # No restart of the simulator: the client has asked for it.
        assert {now.is_behind_gap for last, now in pairwise([*node.frames])
                if now.begins_run(last.game_time, last.identity)} == {True}
        until(lambda: health.state == 'waiting', 'the end of the client')
        assert (health.n_losses, health.loss) == (1, 'the client closed the connection')
        assert health.n_cut_packets == 0
        with CarlaClient(node.port) as client:
            client.frame()
            until(lambda: health.n_connects == 2, 'the connection of the next client')
            assert health.n_losses == 1


def test_relay_measurements_that_the_server_ends_are_a_loss():
    """The client still has its connection to the world port."""
    with LateServer(free_ports(3)) as server, relayed(server.world_port) as node, \
            CarlaClient(node.port) as client:
        client.frame()
        server.drop(1)
        # The state is set after the count.
        until(lambda: node.health.n_losses and node.health.state == 'waiting', 'a loss')
        assert node.health.loss.startswith('the server closed the connection')
        client.next_episode()
        client.frame()
        until(lambda: node.health.state == 'connected', 'another episode')
        assert node.health.n_reconnects == 1


def test_relay_names_a_silent_server():
    with socket.create_server(('127.0.0.1', free_port())) as server:
        measurements_port = server.getsockname()[1]
        with relayed(measurements_port - 1) as node, \
                socket.create_connection(('127.0.0.1', node.port + 1), AWAIT_S):
            until(lambda: node.health.state == 'connected', 'a connection')
            assert node.health.silence.startswith(
                f'127.0.0.1:{measurements_port} accepted the connection and is silent; expected')


@pytest.mark.parametrize('bind', ['192.0.2.1', 'no..name'])
def test_relay_names_an_address_that_is_not_of_this_machine(bind):
    with pytest.raises(TransportError, match='at an address of this machine') as refusal:
        Node(2000, **{'carla.relay_bind': bind, 'reconnect_max': 0.05}).relay.receive().__next__()
    assert str(refusal.value).startswith(f'{bind}:')


def test_relay_names_a_server_that_refuses_for_a_while(monkeypatch):
    """The server may be loading its level; then the client is turned away."""
    monkeypatch.setattr('state_sensor_ros.simulators.carla.relay.LATE_PORT_S', 1.0)
    world_port = free_ports(3)
    text = f'cannot connect to 127.0.0.1:{world_port}: connection refused; is the server running?'
    with relayed(world_port) as node, \
            socket.create_connection(('127.0.0.1', node.port), AWAIT_S) as client:
        assert client.recv(1) == b''
        until(lambda: node.reports == [text], 'a report')
        assert node.health.last_error == text


def test_relay_forwards_frames_that_are_too_long():
    with LateServer(free_ports(3), image_bytes=8192) as server, \
            relayed(server.world_port, max_frame_bytes=4096) as node, \
            CarlaClient(node.port) as client:
        for _ in range(3):
            assert len(client.frame()) == 2
        until(lambda: 'a frame of at most max_frame_bytes, 4096' in node.health.last_error,
              'a protocol error')
        assert node.health.n_protocol_errors == 1
        assert node.frames == []

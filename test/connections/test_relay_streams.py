# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The ends of relayed connections, and what a relay does at its limits."""

from contextlib import contextmanager, ExitStack, suppress
import fcntl
import os
from pathlib import Path
import random
import resource
import signal
import socket
import struct
import termios
import threading
import time

from budgets import AWAIT_S, each_once, one_of, tries
from ports import free_ports
from process_state import cpu_s, wait_until_asleep
import pytest
from relay_rig import echo_server, process_of_relay, relayed
from simulator_peer import receive_exactly as exactly
from stopwatch import Stopwatch, until

from state_sensor_ros.connections import relay_process
from state_sensor_ros.connections.relay_copies import FRAME, HEAD, MESSAGE, NodeLink
from state_sensor_ros.connections.relay_process import MAX_CONNECTIONS
from state_sensor_ros.errors import TransportError
from state_sensor_ros.simulators.carla.source import open_relay
from state_sensor_ros.simulators.simulator_list import schema_of

N_BYTES = 3_000_000
RESET = struct.pack('ii', 1, 0)


@contextmanager
def serving(number, serve):
    """Serve one connection of a port by ``serve``; yield the first port of three."""
    first = free_ports(3)
    with socket.create_server(('127.0.0.1', first + number)) as listener:
        listener.settimeout(AWAIT_S)

        def work():
            connection, _ = listener.accept()
            connection.settimeout(AWAIT_S)
            with connection, suppress(ConnectionError):
                serve(connection)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield first
        thread.join(AWAIT_S)
        assert not thread.is_alive()


def connect(port, receive_buffer=0):
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(AWAIT_S)
    client.connect(('127.0.0.1', port))
    return client


def read_to_end(connection, pause_s=0.0, size=2 ** 16):
    data = bytearray()
    while part := connection.recv(size):
        data += part
        time.sleep(pause_s)
    return bytes(data)


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


class Talker:
    """Sends 64 bytes each millisecond until it is stopped, and the end of its direction."""

    def __init__(self, connection):
        self.n_sent, self.error = 0, None
        self._connection, self._stopping = connection, threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self):
        try:
            while not self._stopping.wait(0.001):
                self._connection.sendall(bytes(64))
                self.n_sent += 64
            self._connection.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.error = error

    def stop(self):
        self._stopping.set()
        self._thread.join(AWAIT_S)
        assert not self._thread.is_alive()


@pytest.mark.parametrize('number', one_of(range(3), n_always=2))
@pytest.mark.parametrize('seed', range(tries(1)))
def test_relay_delivers_the_end_of_a_stream(number, seed):
    """The server ends its side in order and reads on; the client sends, and reads slowly."""
    data = random.Random(seed).randbytes(N_BYTES)
    received = []

    def serve(connection):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received.append(len(read_to_end(connection)))
    with serving(number, serve) as first, relayed(first) as (_, port), \
            connect(port + number, 2 ** 14) as client:
        talker = Talker(client)
        assert read_to_end(client, 0.002) == data
        talker.stop()
        until(lambda: received, 'the end of the stream of the client')
        assert received == [talker.n_sent]


@pytest.mark.parametrize('number', one_of(range(3)))
def test_relay_delivers_the_answer_after_the_client_ended_its_side(number):
    data = random.Random(number).randbytes(N_BYTES)
    requests = []

    def serve(connection):
        requests.append(read_to_end(connection))
        time.sleep(0.05)
        connection.sendall(data)
    with serving(number, serve) as first, relayed(first) as (_, port), \
            connect(port + number) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        assert read_to_end(client, 0.001) == data
        assert requests == [data]


def test_relay_delivers_what_a_server_sent_that_has_gone():
    """Its last bytes are on their way to a slow client when the client's reset the connection."""
    data = random.Random(1).randbytes(N_BYTES)
    is_closed = threading.Event()

    def serve(connection):
        connection.sendall(data)
        # All of it is acknowledged; what comes now finds no server.
        until(lambda: not unsent(connection), 'the relay to have it')
        connection.close()
        is_closed.set()
    with serving(1, serve) as first, relayed(first) as (_, port), \
            connect(port + 1, 2 ** 14) as client:
        head = exactly(client, 1000)
        rest = bytearray()
        while not is_closed.is_set():
            rest += client.recv(2 ** 16)
        for _ in range(10):
            client.sendall(bytes(64))
            time.sleep(0.002)
        rest += read_to_end(client, 0.002)
        assert head + rest == data


def test_relay_gives_up_a_server_that_takes_nothing_after_its_client_has_gone():
    is_free = threading.Event()

    def n_sockets():
        return str([path.resolve() for path in Path(f'/proc/{process}/fd').iterdir()]).count(
            'socket:')
    with serving(1, lambda _: is_free.wait(AWAIT_S)) as first, relayed(first) as (_, port):
        process = process_of_relay()
        n_before = n_sockets()
        client = connect(port + 1)
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.sendall(bytes(2 ** 26))
        watch = Stopwatch(process)
        reset(client)
        until(lambda: n_sockets() == n_before, 'the relay to end the connection')
        assert watch.seconds < 20.0
        is_free.set()


def unsent(connection):
    return struct.unpack('i', fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]


def test_relay_ends_a_client_that_only_sends_when_the_server_has_gone():
    with serving(2, reset) as first, relayed(first) as (_, port), connect(port + 2) as client:
        talker = Talker(client)
        until(lambda: talker.error is not None, 'an error of the client')
        assert isinstance(talker.error, ConnectionError)


@pytest.mark.parametrize(('side', 'number'), each_once(['client', 'server'], range(3)))
def test_relay_passes_on_a_reset(side, number):
    """The other side gets what was sent before, then the end or the reset."""
    ended = threading.Event()

    def serve(connection):
        if side == 'server':
            connection.sendall(bytes(1000))
            connection.recv(1)
            reset(connection)
            return
        with suppress(ConnectionError):
            while True:
                connection.sendall(bytes(1000))
        ended.set()
    with serving(number, serve) as first, relayed(first) as (_, port):
        client = connect(port + number)
        assert exactly(client, 1000) == bytes(1000)
        if side == 'client':
            reset(client)
            assert ended.wait(AWAIT_S)
            return
        with client:
            client.sendall(b'x')
            with suppress(ConnectionResetError):
                assert client.recv(1) == b''


def test_relay_waits_without_work_for_a_server_that_does_not_read():
    """Its client is reset meanwhile: what it sent stays for the server."""
    read = threading.Event()
    received = []

    def serve(connection):
        assert read.wait(AWAIT_S)
        with suppress(ConnectionError):
            while part := connection.recv(2 ** 16):
                received.append(len(part))
    with serving(2, serve) as first, relayed(first) as (_, port):
        client = connect(port + 2)
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.sendall(bytes(2 ** 26))
        process = process_of_relay()
        # It has taken in what it can.
        wait_until_asleep(process)
        reset(client)
        before = cpu_s(process)
        time.sleep(1.0)
        assert cpu_s(process) - before < 0.3
        read.set()
        until(lambda: sum(received) > 2 ** 18, 'what the client sent')


def test_relay_process_that_is_killed_is_started_again():
    with echo_server() as first, relayed(first) as (node, port):
        with connect(port + 1) as client:
            client.sendall(bytes(4))
            assert exactly(client, 4) == bytes(4)
            until(lambda: node.payloads, 'a frame')
            os.kill(process_of_relay(), signal.SIGKILL)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b''
        health = node.relay.health
        until(lambda: health.loss == 'the process of the relay ended', 'the end of the process')
        until(lambda: health.last_error.startswith('no client'), 'another process')
        with connect(port + 1) as client:
            client.sendall(bytes(4))
            until(lambda: len(node.payloads) == 2, 'a frame of the next client')
            # Before the end of this client, which is a loss as well.
            assert (health.n_connects, health.n_losses) == (2, 1)


def test_relay_of_one_client_ends_with_its_process():
    port = free_ports(3)
    with echo_server() as first:
        relay = open_relay(schema_of().parse({'source': 'carla', 'port': first + 1,
                                              'relay_port': port}), lambda kind, text: None,
                           reconnect=False)
        packets, answered = relay.frames(), threading.Event()

        def talk():
            until(lambda: relay.health.last_error.startswith('no client'), 'a relay that listens')
            with connect(port + 1) as client:
                client.sendall(bytes(4))
                exactly(client, 4)
                answered.set()
                with suppress(ConnectionResetError):
                    client.recv(1)
        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        assert next(packets).payload == bytes(4)
        assert answered.wait(AWAIT_S)
        os.kill(process_of_relay(), signal.SIGKILL)
        with pytest.raises(TransportError, match='relay: its process has ended'):
            next(packets)
        thread.join(AWAIT_S)


def test_relay_port_stays_open_where_a_thread_cannot_start():
    with echo_server() as first, relayed(first) as (node, port), connect(port) as other:
        # The stack of its thread is in use, and cannot be that of the next one.
        other.sendall(b'x')
        assert other.recv(1) == b'x'
        process = process_of_relay()
        pages = int(Path(f'/proc/{process}/statm').read_text().split()[0])
        limits = resource.prlimit(process, resource.RLIMIT_AS)
        # Enough for a few objects, too little for the stack of a thread.
        resource.prlimit(process, resource.RLIMIT_AS,
                         (pages * resource.getpagesize() + 2 ** 20, limits[1]))
        for _ in range(3):
            with connect(port) as client, suppress(ConnectionResetError):
                assert client.recv(1) == b''
        until(lambda: len(node.reports) == 3, 'three reports')
        assert node.reports[0] == (f'127.0.0.1:{port}: a client of the relay is rejected: '
                                   "can't start new thread")
        resource.prlimit(process, resource.RLIMIT_AS, limits)
        with connect(port) as client:
            client.sendall(b'x')
            assert client.recv(1) == b'x'
        assert process_of_relay() == process


def test_relay_turns_away_more_clients_than_it_can_serve():
    with echo_server() as first, relayed(first) as (node, port), ExitStack() as stack:
        clients = [stack.enter_context(connect(port + i % 3)) for i in range(MAX_CONNECTIONS)]
        for client in clients:
            client.sendall(b'x')
            assert client.recv(1) == b'x'
        with connect(port + 1) as further, suppress(ConnectionResetError):
            assert further.recv(1) == b''
        until(lambda: node.reports, 'a report')
        assert node.reports[0].startswith(
            f'127.0.0.1:{port + 1}: a client of the relay is rejected: more than '
            f'{MAX_CONNECTIONS} connections')
        clients[0].close()

        def serves_another():
            with connect(port) as client, suppress(ConnectionResetError):
                client.sendall(b'x')
                return client.recv(1) == b'x'
            return False
        until(serves_another, 'a free place')


def test_relay_probes_silent_connections():
    """The kernel finds a peer that has vanished: timer 2 is that of the keep-alive probes."""
    with echo_server() as first, relayed(first) as (_, port), connect(port) as client:
        client.sendall(b'x')
        assert client.recv(1) == b'x'
        own = f'{port:04X}', f'{client.getsockname()[1]:04X}'
        server = f'{first:04X}'

        def timers():
            for line in Path('/proc/net/tcp').read_text().splitlines()[1:]:
                fields = line.split()
                here, there = (each.rpartition(':')[2] for each in fields[1:3])
                if fields[3] == '01' and ((here, there) == own or there == server):
                    yield fields[5].partition(':')[0]
        # While a byte is not acknowledged, the timer is another one.
        until(lambda: [*timers()] == ['02', '02'], 'the probes of both connections')


def test_relay_gives_up_a_client_that_takes_no_byte(monkeypatch):
    """It neither reads nor resets; a peer that vanished while data waits is the same."""
    monkeypatch.setattr(relay_process, '_UNREAD_MS', 500)
    ended = threading.Event()

    def flood(connection):
        with suppress(ConnectionError):
            while True:
                connection.sendall(bytes(2 ** 16))
        ended.set()
    listener, (ours, theirs) = socket.create_server(('127.0.0.1', 0)), socket.socketpair()
    port = listener.getsockname()[1]
    with ours, serving(0, flood) as first:
        relay = relay_process.RelayProcess({
            'link': theirs.detach(), 'listeners': [listener.detach()], 'host': '127.0.0.1',
            'ports': [first], 'copied': 0, 'described': 1, 'max_frame_bytes': 2 ** 20,
            'patience_s': AWAIT_S})
        thread = threading.Thread(target=relay.run)
        thread.start()
        with connect(port, 2 ** 12) as client:
            assert ended.wait(AWAIT_S)
            assert client.fileno() >= 0
        ours.close()
        thread.join(AWAIT_S)
        assert not thread.is_alive()


def resident_bytes(process):
    return int(Path(f'/proc/{process}/statm').read_text().split()[1]) * resource.getpagesize()


def test_relay_memory_is_limited_in_all():
    """Unfinished frames of many connections share the memory of one."""
    most = 2 ** 23
    unfinished = struct.pack('<I', most - 64) + bytes(most - 2 ** 16)
    with echo_server() as first, relayed(first, max_frame_bytes=most) as (node, port), \
            ExitStack() as stack:
        for i in range(12):
            client = stack.enter_context(connect(port + 1))
            threading.Thread(target=client.sendall, args=(unfinished,), daemon=True).start()
            assert len(exactly(client, len(unfinished))) == len(unfinished)
            if not i:
                first_client, before = client, resident_bytes(process_of_relay())
        # Without a limit, 90 MB more.
        assert resident_bytes(process_of_relay()) - before < 3 * most
        # A frame that was given up is counted; further ones of that connection are copied.
        rest = bytes(most - 60 - len(unfinished)) + bytes(4)
        first_client.sendall(rest + bytes(4))
        until(lambda: node.payloads, 'the next frame')
        assert node.payloads == [bytes(4)]
        assert any('1 frame dropped so far' in text for text in node.reports)


def test_node_link_is_limited(monkeypatch):
    """A node that does not read costs the newest frames and messages of a limited size."""
    monkeypatch.setattr('state_sensor_ros.connections.relay_copies._MANY_EVENTS', 2 ** 10)
    ours, theirs = socket.socketpair()
    link = NodeLink(theirs)
    for i in range(100):
        link.put_frame(bytes([i]) * 2 ** 20)
        link.put_message(bytes([i]) * 2 ** 20)
    assert link.has_room_for_events
    for _ in range(2 ** 10):
        link.put_event(event='left', port=0)
    assert not link.has_room_for_events
    threading.Thread(target=link.run, daemon=True).start()
    found = {FRAME: [], MESSAGE: []}
    n_events = 0
    with ours, theirs:
        ours.settimeout(AWAIT_S)
        while n_events < 2 ** 10 + 1:
            kind, length = HEAD.unpack(exactly(ours, HEAD.size))
            body = exactly(ours, length)
            if kind in found:
                found[kind].append(body[0])
            else:
                n_events += 1
    assert found == {FRAME: list(range(84, 100)), MESSAGE: list(range(92, 100))}

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Faults of a CARLA server over real sockets: the node continues, publishes again, counts."""

from contextlib import suppress
import random
import socket
import struct

from carla_client import CarlaClient
from carla_late_server import LateServer
import carla_wire as wire
from ports import free_ports
import pytest
from rig import Bench, END_S, Managed, NodeProcess, statuses

MAX_FRAME_BYTES = 100_000


def framed(number, body=None):
    """Frame a measurement of a player that drives along x, or any other body."""
    if body is None:
        body = wire.measurements(
            number, 100 * number, 0,
            wire.player(wire.transform((1.0 * number, 0.0, 0.0)), speed=10.0),
            wire.traffic_light(7, wire.transform((50.0, 5.0, 0.0)), 2))
    return struct.pack('<I', len(body)) + body + bytes(4)


class CarlaBench(Bench):
    """A node that is connected to a scripted CARLA server."""

    def __init__(self, *args, **parameters):
        super().__init__(*args, source='carla', max_frame_bytes=MAX_FRAME_BYTES, **parameters)

    def send(self, n=1):
        for _ in range(n):
            self.simulator.send(framed(self.n_sent))
            self.n_sent += 1


@pytest.fixture
def bench(domain, listener, simulator):
    rig = CarlaBench(domain, listener, simulator)
    with rig.node:
        rig.connect()
        yield rig


def test_carla_faults_of_the_connection(bench):
    for leave in (bench.simulator.reset, bench.simulator.hang_up):
        leave()
        bench.connect(warm=False)
        bench.publishes_again()
        assert bench.counted('reconnects')['last error']
    for n_cut, kept in enumerate((1, 3, 40, -4), 1):
        bench.simulator.send(framed(bench.n_sent)[:kept])
        bench.simulator.hang_up()
        bench.connect(warm=False)
        bench.publishes_again()
        assert bench.counted('cut packets', n_cut)['cut packets'] == str(n_cut), kept
    for n_errors, data in enumerate((
            struct.pack('<I', 2 ** 32 - 1), struct.pack('<I', MAX_FRAME_BYTES + 1),
            struct.pack('>I', 200) + bytes(200), b'HTTP/1.1 400 Bad Request\r\n\r\n',
            bytes(range(1, 256)) * 500), 1):
        # The node closes the connection with unread data, and connects again.
        with suppress(ConnectionError):
            bench.simulator.send(data)
            assert bench.simulator.connection.recv(1) == b''
        bench.simulator.hang_up()
        bench.connect(warm=False)
        bench.publishes_again()
        assert bench.counted('protocol errors', n_errors)['protocol errors'] == str(n_errors), data
    n_reconnects = statuses(bench.diagnostics)[-1]['reconnects']
    bench.simulator.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    before = len(bench.frames)
    for byte in framed(bench.n_sent):
        bench.simulator.send(bytes([byte]))
    bench.simulator.send(framed(bench.n_sent + 1) + framed(bench.n_sent + 2))
    bench.n_sent += 3
    bench.listener.until(lambda: len(bench.frames) >= before + 3)
    bench.listener.until(lambda: statuses(bench.diagnostics)[-1]['level'] == 3, what='STALE')
    bench.publishes_again()
    assert statuses(bench.diagnostics)[-1]['reconnects'] == n_reconnects
    # A server that begins again is a restart.
    bench.simulator.hang_up()
    bench.n_sent = 0
    bench.connect(warm=False)
    bench.publishes_again()
    bench.counted('simulator restarts')
    bench.finish()


# A file of a dataset in CARLA's own conversion, with an image that no camera takes.
DATASET_FILE = b'{"playerMeasurements": {"transform": {}, "forwardSpeed": 1.0}, "steer": 0}'
IMAGE = b'central/unknown\0\x89PNG\r\n\x1a\n'


def joined(*messages):
    """Frame some messages together."""
    return b''.join(struct.pack('<I', len(each)) + each for each in messages) + bytes(4)


NO_MEASUREMENTS = {
    'empty': bytes(4), 'bytes': framed(0, b'\xff' * 50), 'text': framed(0, b'{"frame": []}'),
    'dataset': joined(b'dataset\n' + DATASET_FILE, IMAGE),
    'dataset-file': joined(b'dataset\n' + DATASET_FILE), 'dataset-mark': joined(b'dataset\n'),
    'file': joined(DATASET_FILE, IMAGE), 'parts': joined(b'frame\0' + bytes(40)),
    'images': joined(IMAGE, IMAGE), 'random': joined(random.Random(1).randbytes(5000)),
    'nested-groups': joined(b'\x0b' * 50_000), 'empty-player': joined(wire.sub(3, b''), b''),
    'nested-unknown': joined(wire.sub(7, wire.sub(7, wire.sub(7, b'')))),
    'huge-length': joined(b'\x1a\xff\xff\xff\xff\x0f'),
    'long-number': joined(b'\x28' + b'\xff' * 30)}


def test_carla_faults_of_the_content(bench):
    for topic in ('image', 'depth', 'segmentation'):
        bench.listener.subscribe(f'/state_sensor/camera/central/{topic}', 'sensor_msgs/Image')
    for n_skipped, (name, data) in enumerate(NO_MEASUREMENTS.items(), 1):
        bench.simulator.send(data)
        bench.publishes_again()
        values = bench.counted('frames skipped', n_skipped)
        assert (values['frames skipped'], values['reconnects']) == (str(n_skipped), '0'), name
    # Images after a measurement are dropped.
    before = len(bench.frames)
    measurement = framed(bench.n_sent)[4:-4]
    bench.n_sent += 1
    bench.simulator.send(joined(measurement, IMAGE, b'dataset\n' + DATASET_FILE))
    bench.listener.until(lambda: len(bench.frames) > before)
    bench.publishes_again()
    # Thousands of agents without a class.
    before = len(bench.frames)
    bench.simulator.send(framed(0, wire.measurements(
        1, 10 ** 6, 0, *[wire.sub(4, b'')] * 40_000)))
    bench.listener.until(lambda: len(bench.frames) > before)
    bench.counted('actors dropped', 40_000)
    bench.finish()
    assert 'expected' in bench.node.log


def test_carla_fault_port_that_accepts_and_is_silent_is_named(domain, listener, simulator):
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    with NodeProcess(domain, source='carla', port=simulator.port, stale_after=0.5) as node:
        simulator.accept()
        words = f'127.0.0.1:{simulator.port} accepted the connection and is silent; expected'
        listener.until(lambda: [values for values in statuses(diagnostics)
                                if values['level'] == 3 and words in values['message']],
                       what='the silent port by name')
        simulator.send(framed(1))
        listener.until(lambda: [values for values in statuses(diagnostics)
                                if values['frames received'] == '1' and values['level'] == 3],
                       what='a silence after a frame')
        assert words not in statuses(diagnostics)[-1]['message']
        assert node.end()[0] == 0


def test_carla_fault_world_port_refuses(domain, listener, simulator):
    port = simulator.port
    simulator.close()
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    with NodeProcess(domain, source='carla', port=1, control_port=port) as node:
        listener.until(lambda: [values for values in statuses(diagnostics) if values['level'] == 2
                                and f'cannot connect to 127.0.0.1:{port}: ' in values['message']],
                       what='an error that names the world port')
        code, seconds = node.end()
        assert (code, 'Traceback' in node.log) == (0, False)
        assert seconds < END_S


def test_carla_fault_world_port_is_silent(domain, listener, simulator):
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    port = simulator.port
    with NodeProcess(domain, source='carla', port=1, control_port=port) as node:
        simulator.accept()
        listener.matched('/diagnostics')
        line = f'127.0.0.1:{port}: no answer to RequestNewEpisode for 1 s; waiting'
        listener.until(lambda: [values for values in statuses(diagnostics) if values['level'] == 2
                                and values['message'].startswith(f'not connected: {line}')],
                       what='the silent port by name')
        listener.until(lambda: line in node.log, what='the line of the log')
        assert node.log.count(line) == 1
        code, seconds = node.end()
        assert (code, 'Traceback' in node.log) == (0, False)
        assert seconds < END_S


def test_carla_faults_of_a_relay_are_named(domain, listener):
    """A port in use, no server, a client that sends nothing, deactivation, another node."""
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    world_port, port = free_ports(3), free_ports(3)

    def node_with_relay():
        return NodeProcess(domain, source='carla', port=world_port + 1, relay_port=port,
                           reconnect_min=0.05, reconnect_max=0.1)

    def reports(words):
        diagnostics.clear()
        listener.until(lambda: [values for values in statuses(diagnostics)
                                if words in values['message']], what=words)

    def drive():
        with CarlaClient(port, is_synchronous=True) as client:
            n_before = len(odometry)

            def step():
                client.frame()
                client.command(throttle=1.0)
                listener.spin(0.0)
                return len(odometry) > n_before + 2
            listener.until(step, what='odometry')

    with socket.create_server(('127.0.0.1', port)) as taken, node_with_relay() as node:
        listener.matched('/diagnostics')
        managed = Managed(listener)
        in_use = f'127.0.0.1:{port}: the port of the relay is in use'
        reports(in_use)
        taken.close()
        no_client = f'no client is connected to the relay, 127.0.0.1:{port} to {port + 2}'
        reports(no_client)
        with socket.create_connection(('127.0.0.1', port)):
            refused = (f'cannot connect to 127.0.0.1:{world_port}: connection refused; is the '
                       'server running?')
            reports(refused)
        reports(no_client)
        with LateServer(world_port):
            with socket.create_connection(('127.0.0.1', port)):
                silent = (f'a client of the relay is connected to 127.0.0.1:{world_port}, and not '
                          f'to 127.0.0.1:{world_port + 1}')
                reports(silent)
            drive()
            assert managed.request('deactivate')
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(('127.0.0.1', port))
            assert managed.request('activate')
            reports(no_client)
            drive()
            assert node.end()[0] == 0
            for words in (in_use, no_client, refused, silent):
                assert words in node.log, words
            with node_with_relay() as other:
                listener.until(lambda: 'no client is connected' in other.log, what='open ports')
                drive()
                assert other.end()[0] == 0

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Faults of a CARLA server over real sockets: the node lives, publishes again, counts."""

from contextlib import suppress
import socket
import struct

import carla_wire as wire
import pytest
from rig import Bench, END_S, NodeProcess, statuses

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
    """A node that listens to a scripted CARLA server."""

    def __init__(self, *args):
        super().__init__(*args, source='carla', max_frame_bytes=MAX_FRAME_BYTES)

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


@pytest.mark.parametrize('leave', ['hang_up', 'reset'])
def test_carla_fault_closed_between_frames(bench, leave):
    getattr(bench.simulator, leave)()
    bench.connect(warm=False)
    bench.publishes_again()
    assert bench.counted('reconnects')['last error']
    bench.finish()


@pytest.mark.parametrize('kept', [1, 3, 40, -4])
def test_carla_fault_closed_inside_a_frame(bench, kept):
    bench.simulator.send(framed(bench.n_sent)[:kept])
    bench.simulator.hang_up()
    bench.connect(warm=False)
    bench.publishes_again()
    bench.counted('cut packets')
    bench.finish()


@pytest.mark.parametrize('data', [
    struct.pack('<I', 2 ** 32 - 1), struct.pack('<I', MAX_FRAME_BYTES + 1),
    struct.pack('>I', 200) + bytes(200), b'HTTP/1.1 400 Bad Request\r\n\r\n',
    bytes(range(1, 256)) * 500], ids=['4GB', 'just-over', 'big-endian', 'text', 'bytes'])
def test_carla_fault_impossible_length(bench, data):
    # The node hangs up on us, with what it has not read, and connects again.
    with suppress(ConnectionError):
        bench.simulator.send(data)
        assert bench.simulator.connection.recv(1) == b''
    bench.simulator.hang_up()
    bench.connect(warm=False)
    bench.publishes_again()
    bench.counted('protocol errors')
    bench.finish()


@pytest.mark.parametrize('data', [bytes(4), framed(0, b'\xff' * 50), framed(0, b'{"frame": []}')],
                         ids=['empty', 'bytes', 'text'])
def test_carla_fault_message_is_no_measurement(bench, data):
    bench.simulator.send(data)
    bench.publishes_again()
    assert bench.counted('frames skipped')['reconnects'] == '0'
    bench.finish()
    assert 'expected' in bench.node.log


def test_carla_fault_one_byte_at_a_time_and_two_in_one_segment(bench):
    bench.simulator.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    before = len(bench.frames)
    for byte in framed(bench.n_sent):
        bench.simulator.send(bytes([byte]))
    bench.simulator.send(framed(bench.n_sent + 1) + framed(bench.n_sent + 2))
    bench.listener.until(lambda: len(bench.frames) >= before + 3)
    bench.finish()


def test_carla_fault_silence_is_stale(bench):
    bench.listener.until(lambda: [values for values in statuses(bench.diagnostics)
                                  if values['level'] == 3], what='a STALE report')
    bench.publishes_again()
    assert bench.counted('frames received', 2)['reconnects'] == '0'
    bench.finish()


def test_carla_fault_restart_is_a_restart(bench):
    bench.send(3)
    bench.simulator.hang_up()
    bench.n_sent = 0
    bench.connect(warm=False)
    bench.publishes_again()
    bench.counted('simulator restarts')
    bench.finish()


def test_carla_fault_world_port_refuses(domain, listener, simulator):
    port = simulator.port
    simulator.close()
    diagnostics = listener.hear('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    with NodeProcess(domain, source='carla', port=1, control_port=port) as node:
        listener.until(lambda: [values for values in statuses(diagnostics) if values['level'] == 2
                                and f':{port}: found' in values['message']],
                       what='an error that names the world port')
        code, seconds = node.end()
        assert (code, 'Traceback' in node.log) == (0, False)
        assert seconds < END_S

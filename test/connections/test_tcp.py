# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The sensor port as a source: its effect on the simulator."""

import socket
import struct
import threading

from budgets import AWAIT_S

from state_sensor_ros.connections.tcp import TcpSource
from state_sensor_ros.simulators.monodrive.source import PacketFramer

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
        source = TcpSource(*listener.getsockname(), lambda where: PacketFramer(len(PACKET), where))
        packets = source.packets()
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
                           reconnect=False)
        packets = source.packets()
        simulator = threading.Thread(target=lambda: listener.accept()[0].sendall(data))
        simulator.start()
        found = [next(packets) for _ in payloads]
        assert (source.health.n_packets, source.health.n_bytes) == (len(payloads), len(data))
        source.close()
        assert list(packets) == []
        simulator.join(AWAIT_S)
    assert [bytes(packet.payload) for packet in found] == payloads
    assert [packet.sample_count for packet in found] == [1, 2, 3, 4, 5]


def test_source_that_is_closed_yields_nothing_that_was_read_ahead():
    packet = struct.pack('>IIfI', 18, 0, 0.0, 1) + b'{}'
    with socket.create_server(('127.0.0.1', 0)) as listener:
        source = TcpSource(*listener.getsockname(), lambda where: PacketFramer(100, where))
        packets = source.packets()
        simulator = threading.Thread(target=lambda: listener.accept()[0].sendall(9 * packet))
        simulator.start()
        next(packets)
        source.close()
        assert list(packets) == []
        simulator.join(AWAIT_S)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""A relay as a node has one, and the servers behind it, for tests."""

from contextlib import contextmanager, suppress
import socket
import threading
import time

from budgets import AWAIT_S
from ports import free_ports
from stopwatch import until

from state_sensor_ros.simulators import schema_of
from state_sensor_ros.simulators.carla.relay import CarlaRelay
from state_sensor_ros.source import SourceState


class Node:
    """Reads the frames of a relay in a thread, with a pause after each."""

    def __init__(self, relay, pause_s=0.0):
        self.frames = []
        self.pause_s = pause_s
        self.relay = relay
        self.reports = []
        self.thread = threading.Thread(target=self._read, daemon=True)

    def _read(self):
        for frame in self.relay.frames():
            self.frames.append(frame)
            time.sleep(self.pause_s)

    def numbers(self):
        return [frame.sample_count for frame in self.frames]


@contextmanager
def relayed(world_port, pause_s=0.0, **changes):
    """Run a relay to a server; yield what reads its frames and the relay's first port."""
    relay_port = free_ports(3)
    reports = []
    relay = CarlaRelay(schema_of().parse({
        'source': 'carla', 'port': world_port + 1, 'carla.relay_port': relay_port,
        'reconnect_min': 0.01, 'reconnect_max': 0.05, **changes}),
        lambda kind, text: reports.append(text))
    node = Node(relay, pause_s)
    node.reports = reports
    node.thread.start()
    until(lambda: relay.health.last_error.startswith('no client is connected')
          or 'in use' in relay.health.last_error, 'a relay that listens')
    try:
        yield node, relay_port
    finally:
        relay.close()
        node.thread.join(AWAIT_S)
        assert not node.thread.is_alive()
        assert relay.health.state is SourceState.CLOSED


@contextmanager
def echo_server(n_ports=3):
    """Serve ports that send every byte back; yield the first port."""
    first = free_ports(n_ports)
    listeners = [socket.create_server(('127.0.0.1', first + i)) for i in range(n_ports)]

    def echo(connection):
        with connection, suppress(OSError):
            while data := connection.recv(2 ** 16):
                connection.sendall(data)

    def accept(listener):
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=echo, args=(connection,), daemon=True).start()
    for listener in listeners:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
    try:
        yield first
    finally:
        for listener in listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def listens(port):
    with suppress(OSError), socket.create_connection(('127.0.0.1', port), AWAIT_S):
        return True
    return False

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A client of CARLA 0.8 as a user's program is one, for tests; shares nothing with the package."""

import socket
import struct
import time

from budgets import AWAIT_S
import carla_wire as wire

INI = '[CARLA/Server]\nSynchronousMode={}\nSendNonPlayerAgentsInfo=true\n'


class CarlaClient:
    """One episode over three ports; use it in a ``with`` block."""

    def __init__(self, world_port, is_synchronous=False, spot=0, ini=INI):
        self.world_port = world_port
        self._ini, self._spot = ini.format(str(is_synchronous).lower()), spot
        self.received = bytearray()

    def __enter__(self):
        until = time.monotonic() + AWAIT_S
        while True:
            try:
                self.world = self._connect(0)
            except ConnectionRefusedError:
                pass  # not begun yet
            else:
                try:
                    self.begin()
                    return self
                except (EOFError, ConnectionError):
                    # A server that has not noticed the end of the client before resets the
                    # connection; the examples of CARLA begin anew as well.
                    self.world.close()
            assert time.monotonic() < until
            time.sleep(0.05)

    def __exit__(self, *unused):
        for connection in (self.control, self.measurements, self.world):
            connection.close()

    def begin(self):
        """Request an episode and connect to its ports."""
        self._send(self.world, wire.sub(1, self._ini.encode()))
        self.scene = self._message(self.world)
        self._send(self.world, wire.integer(1, self._spot))
        assert self._message(self.world) == wire.integer(1, 1)
        self.measurements = self._connect(1)
        self.control = self._connect(2)

    def next_episode(self):
        """Request another episode, as ``load_settings`` of the official client does."""
        self.measurements.close()
        self.control.close()
        self.begin()

    def _connect(self, number):
        return socket.create_connection(('127.0.0.1', self.world_port + number), AWAIT_S)

    def frame(self):
        """Return the messages of the next frame."""
        messages = []
        while message := self._message(self.measurements, keep=True):
            messages.append(message)
        return messages

    def command(self, **values):
        self._send(self.control, wire.control(**values))

    def is_cut(self):
        """Read to the end; return whether the peer has closed the measurements connection."""
        try:
            while self.frame():
                pass
        except (EOFError, ConnectionError):
            return True
        return False

    @staticmethod
    def _send(connection, body):
        connection.sendall(wire.framed(body))

    def _message(self, connection, keep=False):
        (length,) = struct.unpack('<I', self._exactly(connection, 4, keep))
        return self._exactly(connection, length, keep)

    def _exactly(self, connection, size, keep):
        parts = []
        while size:
            part = connection.recv(min(size, 2 ** 16))
            if not part:
                raise EOFError
            if keep:
                self.received += part
            parts.append(part)
            size -= len(part)
        return b''.join(parts)


def drive(world_port, n_frames, n_episodes=1):
    """Drive for some frames of each synchronous episode."""
    with CarlaClient(world_port, is_synchronous=True) as client:
        for i in range(n_episodes):
            if i:
                client.next_episode()
            for _ in range(n_frames):
                client.frame()
                client.command(throttle=0.5)


def frame_number(message):
    """Return the number of a frame of :mod:`carla_late_server`: the last field, a varint."""
    at = len(message) - 1
    while message[at - 1] & 0x80:
        at -= 1
    number = 0
    for byte in reversed(message[at:]):
        number = number << 7 | byte & 0x7f
    return number

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A reader and a controller of a State-sensor simulator, small enough to check by reading.

Written from the protocol, without the package's code.
"""

import json
import socket
import struct

from budgets import AWAIT_S


def receive_exactly(connection, size):
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError(f'{len(data)} of {size} bytes, then the end')
        data += part
    return bytes(data)


class Reader:
    """Reads the packets of one sensor port."""

    def __init__(self, port, header_size=16, host='127.0.0.1'):
        self.connection = socket.create_connection((host, port), AWAIT_S)
        self.header_size = header_size

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.connection.close()

    def packet(self):
        """Return length, time, game_time, sample_count (None in the old header) and payload."""
        header = receive_exactly(self.connection, self.header_size)
        length, time, = struct.unpack('!II', header[:8])
        game_time, = struct.unpack('!f', header[8:12])
        sample_count = struct.unpack('!I', header[12:])[0] if self.header_size == 16 else None
        return length, time, game_time, sample_count, receive_exactly(
            self.connection, length - self.header_size)

    def frame(self):
        return json.loads(self.packet()[4])

    def frames_until_end(self):
        """Return all frames; an end inside a packet is an error."""
        frames = []
        while self.connection.recv(1, socket.MSG_PEEK):
            frames.append(self.frame())
        return frames

    def has_nothing(self, timeout_s=0.2):
        """Return whether no packet arrives in this time."""
        self.connection.settimeout(timeout_s)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.connection.settimeout(AWAIT_S)


class Controller:
    """Sends requests to a control port and reads the replies."""

    def __init__(self, port, host='127.0.0.1'):
        self.connection = socket.create_connection((host, port), AWAIT_S)
        self.magic = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.connection.close()

    def send(self, body, magic=0x6D6F6E6F, extra_length=8):
        self.connection.sendall(struct.pack('!II', magic, len(body) + extra_length) + body)

    def receive(self):
        self.magic, length = struct.unpack('!II', receive_exactly(self.connection, 8))
        return json.loads(receive_exactly(self.connection, length - 8))

    def request(self, command, message=None, reference=1):
        self.send(json.dumps(
            {'type': command, 'reference': reference, 'message': message}).encode())
        reply = self.receive()
        assert reply['type'] == command
        assert reply['reference'] == reference
        return reply

    def is_hung_up(self):
        try:
            return not self.connection.recv(1)
        except ConnectionResetError:
            return True

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The bytes of sensor packets, and of requests and replies of the control port."""

from __future__ import annotations

from collections.abc import Sequence
import json
import math
import socket
import struct

from state_sensor_ros.emulator.threaded_server import receive
from state_sensor_ros.errors import FramingError

SENSOR_HEADERS = {16: struct.Struct('>IIfI'), 12: struct.Struct('>IIf')}
CONTROL_HEADER = struct.Struct('>II')
REQUEST_MAGIC = 0x6D6F6E6F
# Releases before 1.11 reply with the four bytes reversed.
REPLY_MAGICS = {'new': 0x6D6F6E6F, 'old': 0x6F6E6F6D}
# Longer requests are refused; a trajectory of one hour has a few hundred megabytes of text.
MAX_REQUEST_BYTES = 512 * 2**20
LARGEST_COPY_BYTES = 2**16
LARGEST_FLOAT32 = 3.4028234e38


def sensor_header(payload_size: int, header_size: int, time_s: int, game_time_s: float,
                  sample_count: int) -> bytes:
    """
    Return the header of a sensor packet.

    :param header_size: 16, or 12 for simulators older than June 2020.
    :param time_s: Unix time, s; sent modulo 2**32.
    :param game_time_s: simulated time, s; sent as 0 if a float32 cannot represent it.
    :param sample_count: number of the sample; sent modulo 2**32.
    """
    if not math.isfinite(game_time_s) or abs(game_time_s) > LARGEST_FLOAT32:
        game_time_s = 0.0
    fields = (header_size + payload_size, time_s & 0xFFFFFFFF, game_time_s,
              sample_count & 0xFFFFFFFF)
    header = SENSOR_HEADERS[header_size]
    return header.pack(*(fields if header_size == 16 else fields[:3]))


def send_parts(connection: socket.socket, parts: Sequence[bytes]) -> None:
    """Send the parts of one packet; large ones are sent one by one, which saves their copy."""
    if sum(map(len, parts)) <= LARGEST_COPY_BYTES:
        parts = (b''.join(parts),)
    for part in parts:
        connection.sendall(part)


def reply_bytes(reply: dict[str, object], magic: int) -> bytes:
    """Return a message of the control port."""
    body = json.dumps(reply, separators=(',', ':')).encode('ascii')
    return CONTROL_HEADER.pack(magic, CONTROL_HEADER.size + len(body)) + body


def read_request(connection: socket.socket) -> bytes | None:
    """Read one message of a control connection."""
    # Returns the JSON text, or None if the peer has closed between two messages.
    head = receive(connection, CONTROL_HEADER.size, 'control header', may_end=True)
    if not head:
        return None
    magic, length = CONTROL_HEADER.unpack(head)
    if magic != REQUEST_MAGIC:
        raise FramingError('control header', f'magic {magic:#010x}', f'{REQUEST_MAGIC:#010x}')
    size = length - CONTROL_HEADER.size
    if not 0 <= size <= MAX_REQUEST_BYTES:
        raise FramingError('control header', f'length {length}',
                           f'8 to {MAX_REQUEST_BYTES + CONTROL_HEADER.size}')
    return receive(connection, size, 'control body')

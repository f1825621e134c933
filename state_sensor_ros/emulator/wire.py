# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Bytes of the simulator's side: headers of sensor packets, messages of the control port.

May know: byte layouts, blocking sockets, JSON text. Must not: what frames or commands mean.
Source of truth: PROTOCOL 1.2, 1.3 and 2.1 to 2.4, written without a look at the receiver's code.
"""

from __future__ import annotations

from collections.abc import Sequence
import json
import math
import socket
import struct

import msgspec

from state_sensor_ros.errors import FramingError

SENSOR_HEADERS = {16: struct.Struct('>IIfI'), 12: struct.Struct('>IIf')}
CONTROL_HEADER = struct.Struct('>II')
REQUEST_MAGIC = 0x6D6F6E6F
# Before release 1.11 the simulator answered with the four bytes reversed.
REPLY_MAGICS = {'new': 0x6D6F6E6F, 'old': 0x6F6E6F6D}
# A trajectory of an hour is a few hundred megabytes of text; more is a broken length.
MAX_REQUEST_BYTES = 512 * 2**20
CHUNK_BYTES = 2**16
LARGEST_FLOAT32 = 3.4028234e38


def sensor_header(payload_size: int, header_size: int, time_s: int, game_time_s: float,
                  sample_count: int) -> bytes:
    """
    Write the header of a sensor packet.

    :param payload_size: bytes of JSON text that follow.
    :param header_size: 16, or 12 for simulators older than June 2020 (no sample count).
    :param time_s: Unix time.
    :param game_time_s: simulated time.
    :param sample_count: as it says.
    :returns: the header; its length field counts itself too.
    """
    if not math.isfinite(game_time_s) or abs(game_time_s) > LARGEST_FLOAT32:
        game_time_s = 0.0
    fields = (header_size + payload_size, time_s & 0xFFFFFFFF, game_time_s,
              sample_count & 0xFFFFFFFF)
    header = SENSOR_HEADERS[header_size]
    return header.pack(*(fields if header_size == 16 else fields[:3]))


def send_parts(connection: socket.socket, parts: Sequence[bytes]) -> None:
    """
    Send pieces of one packet; large ones are not copied together first.

    :param connection: a blocking socket.
    :param parts: the pieces.
    """
    if sum(map(len, parts)) <= CHUNK_BYTES:
        parts = (b''.join(parts),)
    for part in parts:
        connection.sendall(part)


def encode_json(value: object) -> bytes:
    """
    Write compact JSON; not-a-number becomes `null`, as in the simulator's C++ library.

    :param value: plain JSON data.
    :returns: UTF-8 text.
    """
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError, msgspec.MsgspecError):
        # Integers beyond 64 bits and lone surrogates are JSON all the same.
        return json.dumps(value, separators=(',', ':')).encode('ascii')


def reply_bytes(reply: dict[str, object], magic: int) -> bytes:
    """
    Frame a reply of the control port.

    :param reply: the envelope.
    :param magic: one of :data:`REPLY_MAGICS`.
    :returns: header and body; the length counts the 8 bytes of the header.
    """
    body = json.dumps(reply, separators=(',', ':')).encode('ascii')
    return CONTROL_HEADER.pack(magic, CONTROL_HEADER.size + len(body)) + body


def _read(connection: socket.socket, size: int) -> bytes:
    """Read up to ``size`` bytes; fewer only at the end of the stream."""
    parts = []
    while size:
        part = connection.recv(min(size, CHUNK_BYTES))
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b''.join(parts)


def read_request(connection: socket.socket) -> bytes | None:
    """
    Read one message from a control connection.

    :param connection: a blocking socket.
    :returns: the body, or None when the peer has closed between two messages.
    :raises FramingError: when the bytes cannot be a message; the stream is lost then.
    """
    head = _read(connection, CONTROL_HEADER.size)
    if not head:
        return None
    if len(head) < CONTROL_HEADER.size:
        raise FramingError('control header', f'{len(head)} bytes, then the end', '8 bytes')
    magic, length = CONTROL_HEADER.unpack(head)
    if magic != REQUEST_MAGIC:
        raise FramingError('control header', f'magic {magic:#010x}', f'{REQUEST_MAGIC:#010x}')
    size = length - CONTROL_HEADER.size
    if not 0 <= size <= MAX_REQUEST_BYTES:
        raise FramingError('control header', f'length {length}',
                           f'8 to {MAX_REQUEST_BYTES + CONTROL_HEADER.size}')
    body = _read(connection, size)
    if len(body) < size:
        raise FramingError('control body', f'{len(body)} bytes, then the end', f'{size} bytes')
    return body

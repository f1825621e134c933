# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The bytes of the sensor port and of the control port, without sockets and in bounded memory.

Two headers of packets, big-endian (doc/protocol/sensor.md#header); the length includes them::

     0              4              8              12             16
     +--------------+--------------+--------------+--------------+----------
     | length       | time         | game_time    | sample_count | payload   new, 16 bytes
     +--------------+--------------+--------------+--------------+----------
     | uint32       | uint32 s     | float32 s    | uint32       | JSON
     +--------------+--------------+--------------+--------------+----------
     | length       | time         | game_time    | payload …                old, 12 bytes
     +--------------+--------------+--------------+-------------------------

The first packet with a payload decides: byte 12 is ``{`` or ``[`` with the old header. As the
first byte of a sample count they would mean more than 1.5e9 samples.

Requests and replies of the control port (doc/protocol/control.md)::

     0              4              8
     +--------------+--------------+----------------------------------------------
     | magic uint32 | length uint32| {"type": …, "reference": …, "message": …} …
     +--------------+--------------+----------------------------------------------
     6d 6f 6e 6f    00 00 00 2e    46 bytes in all, 38 of JSON

Some simulators do not count the header in the length of a reply: the JSON then ends 8 bytes later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
import re
import struct
from typing import NamedTuple

import msgspec

from state_sensor_ros import errors
from state_sensor_ros.connections.framing import Framer
from state_sensor_ros.simulators.json_text import NOT_TYPED

_OLD_HEADER, _WORD = struct.Struct('>IIf'), struct.Struct('>I')
OLD_HEADER_BYTES = _OLD_HEADER.size
NEW_HEADER_BYTES = OLD_HEADER_BYTES + _WORD.size

_HEADER = struct.Struct('>II')
# 'mono'; simulators before release 1.11 reply with the bytes reversed.
REQUEST_MAGIC, OLD_REPLY_MAGIC = 0x6D6F6E6F, 0x6F6E6F6D
MAX_REFERENCE = 2 ** 63 - 1
# Known replies take less than a kilobyte.
MAX_REPLY_BYTES = 16 * 1024 * 1024
# Texts of failures, for replies without `success`.
_FAILURE = re.compile(r'\b(fail(s|ed|ure)?|errors?|invalid|unable|can ?not|could not|'
                      r'no (\w+ )*(ego|actors?|vehicles?|trajectory)|not (found|registered))\b',
                      re.IGNORECASE)


class Packet(NamedTuple):
    """One payload and what stands in its header."""

    payload: bytearray
    game_time: float  # s
    time: int  # s since 1970
    sample_count: int  # 0 in an old header


class PacketFramer(Framer[Packet]):
    """Divides the bytes of one connection into packets; a longer one is an error."""

    def __init__(self, max_frame_bytes: int, where: str = 'stream') -> None:
        super().__init__(_packets(max_frame_bytes, where), where)


def _packets(max_frame_bytes: int, where: str) -> Iterator[memoryview | Packet]:
    """Yield the memory for the parts of each packet, and then the packet."""
    known_bytes = offset = 0  # size of the header, once detected; place in the stream
    while True:
        header = bytearray(NEW_HEADER_BYTES)
        # Before the detection 12 bytes are read first: a packet with the old header may end there.
        n_read = least = known_bytes or OLD_HEADER_BYTES
        yield memoryview(header)[:least]
        length, time, game_time = _OLD_HEADER.unpack_from(header)
        if not least <= length <= max_frame_bytes:
            raise errors.bad_length(
                where, b'' if offset else bytes(header[:least]),
                f'packet length {length} at byte {offset}',
                f'at least {least}, its own header' if length < least
                else f'at most max_frame_bytes, {max_frame_bytes}')
        header_bytes = known_bytes
        if not header_bytes:
            header_bytes = OLD_HEADER_BYTES
            if length >= NEW_HEADER_BYTES:
                n_read = NEW_HEADER_BYTES
                yield memoryview(header)[OLD_HEADER_BYTES:]
                if header[OLD_HEADER_BYTES] not in b'{[':
                    header_bytes = NEW_HEADER_BYTES
            # A packet without payload does not show which header the connection has.
            if length > max(header_bytes, NEW_HEADER_BYTES - 1):
                known_bytes = header_bytes
        payload = bytearray(length - header_bytes)
        # Its first bytes may have been read as those of a new header.
        payload[:n_read - header_bytes] = header[header_bytes:n_read]
        if length > n_read:
            yield memoryview(payload)[n_read - header_bytes:]
        is_new = header_bytes == NEW_HEADER_BYTES
        yield Packet(payload, game_time, time,
                     _WORD.unpack_from(header, OLD_HEADER_BYTES)[0] if is_new else 0)
        offset += length


def encode_request(command: str, message: object, reference: int) -> bytes:
    """
    Encode one request.

    :param message: its body, plain data or ``msgspec.Raw`` JSON, which is sent unchanged.
    :param reference: 1 to :data:`MAX_REFERENCE`, repeated by the reply.
    """
    body = msgspec.json.encode({'type': command, 'reference': reference, 'message': message})
    length = _HEADER.size + len(body)
    if length >= 1 << 32:
        raise errors.FramingError(command, f'{length} bytes', f'at most {(1 << 32) - 1}')
    return _HEADER.pack(REQUEST_MAGIC, length) + body


@dataclass(frozen=True, slots=True)
class Reply:
    reference: int | None  # None if the reply has none
    message: object
    success: bool  # as sent, else derived from the text

    def check(self, where: str, command: str) -> None:
        """Raise RefusalError unless the reply reports success."""
        if not self.success:
            raise errors.RefusalError(where, f'{repr(self.message)[:200]} in reply to {command}',
                                      'success')


class Missing(NamedTuple):
    """What a reply that has not arrived as a whole lacks."""

    n_bytes: int  # that can be received next, at least 1
    # The error if they do not come: the JSON does not end where the length says.
    fault: errors.TransportError | None = None


def parse_reply(data: bytes | bytearray, where: str) -> Reply | Missing:
    """Return the reply in ``data``, the bytes from its beginning on; ``where`` is for errors."""
    if len(data) < _HEADER.size:
        return Missing(_HEADER.size - len(data))
    magic, length = _HEADER.unpack_from(data)
    if magic not in (REQUEST_MAGIC, OLD_REPLY_MAGIC):
        raise errors.TransportError(where, f'magic {magic:#010x}',
                                    f'{REQUEST_MAGIC:#010x} or {OLD_REPLY_MAGIC:#010x}')
    # An envelope is never empty.
    if not _HEADER.size < length <= MAX_REPLY_BYTES:
        raise errors.TransportError(where, f'reply length {length}',
                                    f'{_HEADER.size + 1} to {MAX_REPLY_BYTES}')
    if len(data) < length:
        return Missing(length - len(data))
    try:
        value = msgspec.json.decode(data[_HEADER.size:])
    except NOT_TYPED as error:
        fault = errors.TransportError(where, f'a reply that is not JSON ({error})', 'an object')
        if (n_bytes := length + _HEADER.size - len(data)) > 0:
            return Missing(n_bytes, fault)
        raise fault from None
    if not isinstance(value, dict):
        raise errors.TransportError(where, f'a reply of {value!r}', 'an object')
    reference, message, success = map(value.get, ('reference', 'message', 'success'))
    if isinstance(reference, float) and reference.is_integer():
        reference = int(reference)  # of a peer without integers
    if reference is not None and type(reference) is not int:
        raise errors.TransportError(f'{where}: reference', repr(reference), 'an integer')
    if not isinstance(success, bool):
        success = not (isinstance(message, str) and _FAILURE.search(message))
    return Reply(reference, message, success)

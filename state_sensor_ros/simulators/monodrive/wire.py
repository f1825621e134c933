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

from dataclasses import dataclass
import re
import struct
from typing import NamedTuple

import msgspec

from state_sensor_ros import errors
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


class PacketFramer:
    """
    Divides the bytes of one connection into packets.

    The caller writes the next bytes to :meth:`buffer`, so that a payload is received without a
    copy, and passes their number to :meth:`advance`.

    :param max_frame_bytes: a longer packet is an error.
    :param where: named in errors, such as ``host:port``.
    """

    def __init__(self, max_frame_bytes: int, where: str = 'stream') -> None:
        self._max, self._where = max_frame_bytes, where
        self._header_bytes = 0  # 0: not detected yet
        self._offset = 0  # of the current packet in the stream
        self._header = bytearray(NEW_HEADER_BYTES)
        self._begin()

    def _begin(self) -> None:
        self._payload: bytearray | None = None
        self._length = self._filled = 0
        # Before the detection 12 bytes are read first: a packet with the old header may end there.
        self._view = memoryview(self._header)[:self._header_bytes or OLD_HEADER_BYTES]

    def buffer(self) -> memoryview:
        """Return the memory for the next bytes, never empty."""
        return self._view

    def advance(self, n_bytes: int) -> Packet | None:
        """Process bytes that were written to :meth:`buffer`; return the packet they complete."""
        self._filled += n_bytes
        self._view = self._view[n_bytes:]
        if not len(self._view) and self._payload is None:
            self._begin_payload()
        if len(self._view) or self._payload is None:
            return None
        _, time, game_time = _OLD_HEADER.unpack_from(self._header)
        sample_count = 0
        if self._length - len(self._payload) == NEW_HEADER_BYTES:
            (sample_count,) = _WORD.unpack_from(self._header, OLD_HEADER_BYTES)
        packet = Packet(self._payload, game_time, time, sample_count)
        self._offset += self._length
        self._begin()
        return packet

    def end(self) -> None:
        """Process the end of the stream; an end within a packet is an error."""
        if self._filled:
            raise errors.TransportError(
                self._where, f'the end of the stream {self._filled} bytes into a packet',
                f'{self._length} bytes' if self._length else f'{OLD_HEADER_BYTES} bytes or more')

    def _begin_payload(self) -> None:
        """Check the length, detect the header and allocate the payload."""
        (self._length,) = _WORD.unpack_from(self._header)
        header_bytes = self._header_bytes
        least = header_bytes or OLD_HEADER_BYTES
        if not least <= self._length <= self._max:
            raise errors.bad_length(
                self._where, b'' if self._offset else bytes(self._header[:self._filled]),
                f'packet length {self._length} at byte {self._offset}',
                f'at least {least}, its own header' if self._length < least
                else f'at most max_frame_bytes, {self._max}')
        if not header_bytes:
            if self._length >= NEW_HEADER_BYTES > self._filled:
                self._view = memoryview(self._header)[OLD_HEADER_BYTES:]
                return
            is_old = self._length < NEW_HEADER_BYTES or self._header[OLD_HEADER_BYTES] in b'{['
            header_bytes = OLD_HEADER_BYTES if is_old else NEW_HEADER_BYTES
            if self._length > NEW_HEADER_BYTES or (
                    is_old and self._length == NEW_HEADER_BYTES):
                # A packet without payload does not show which header the connection has.
                self._header_bytes = header_bytes
        # The first bytes of the payload may have been read as those of a new header.
        received = self._header[header_bytes:max(self._filled, header_bytes)]
        self._payload = bytearray(self._length - header_bytes)
        self._payload[:len(received)] = received
        self._view = memoryview(self._payload)[len(received):]


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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Bytes of a sensor connection to whole packets, with either header and a bounded buffer.

May know: lengths, limits, the end of a stream. Must not know: sockets, JSON. Source: PROTOCOL 1.2
to 1.4. The caller asks where the next bytes belong, puts some there and says how many.
"""

from __future__ import annotations

import struct

from state_sensor_ros.errors import FramingError, TransportError
from state_sensor_ros.payloads import Packet

# uint32 length (header included), uint32 wall time s, float32 game time s[, uint32 sample count],
# network byte order; the older generation has no sample count (PROTOCOL 1.2, 1.3).
_OLD_HEADER = struct.Struct('>IIf')
_SAMPLE_COUNT = struct.Struct('>I')
OLD_HEADER_BYTES = _OLD_HEADER.size
NEW_HEADER_BYTES = OLD_HEADER_BYTES + _SAMPLE_COUNT.size
# A sample count would have to exceed 1.5e9 to look like the first byte of a JSON text.
_JSON_OPENERS = b'{['


class PacketFramer:
    """
    Cut one connection's bytes into packets without touching a socket.

    :param max_frame_bytes: longest packet believed, header included.
    :param where: named in errors, such as ``host:port``.
    """

    def __init__(self, max_frame_bytes: int, where: str = 'stream') -> None:
        self._max = max_frame_bytes
        self._where = where
        self._header_bytes = 0  # 0: not detected yet
        self._offset = 0  # of the current packet in the stream
        self._header = bytearray(NEW_HEADER_BYTES)
        self._begin()

    def _begin(self) -> None:
        self._payload: bytearray | None = None
        self._length = 0
        self._filled = 0
        # Undetected, 12 bytes are read first: a packet of the older kind may end there.
        self._want(memoryview(self._header)[:self._header_bytes or OLD_HEADER_BYTES])

    def _want(self, view: memoryview) -> None:
        self._view = view

    def buffer(self) -> memoryview:
        """Return where the next bytes belong; never empty."""
        return self._view

    def advance(self, n_bytes: int) -> Packet | None:
        """
        Take note of ``n_bytes`` put at the start of :meth:`buffer`.

        :returns: the packet that they complete, if they do.
        :raises FramingError: when a length cannot be; nothing after it can be trusted.
        """
        self._filled += n_bytes
        self._view = self._view[n_bytes:]
        if len(self._view):
            return None
        if self._payload is None:
            self._header_complete()
            if len(self._view):
                return None
        return self._packet()

    def end(self) -> None:
        """
        Take note of the end of the stream.

        :raises TransportError: when it ends inside a packet.
        """
        if self._filled:
            raise TransportError(
                self._where, f'the end of the stream {self._filled} bytes into a packet',
                f'{self._length} bytes' if self._length else f'{OLD_HEADER_BYTES} bytes or more')

    def _header_complete(self) -> None:
        """Check the length, detect the header, and make room for what follows."""
        (self._length,) = _SAMPLE_COUNT.unpack_from(self._header)
        self._check_length(self._header_bytes or OLD_HEADER_BYTES)
        header_bytes = self._header_bytes
        if not header_bytes:
            if self._length < NEW_HEADER_BYTES:
                header_bytes = OLD_HEADER_BYTES
            elif self._filled < NEW_HEADER_BYTES:
                self._want(memoryview(self._header)[OLD_HEADER_BYTES:])
                return
            else:
                header_bytes = self._detect()
        self._allocate(header_bytes)

    def _detect(self) -> int:
        if self._header[OLD_HEADER_BYTES] in _JSON_OPENERS:
            self._header_bytes = OLD_HEADER_BYTES
        elif self._length > NEW_HEADER_BYTES:
            self._header_bytes = NEW_HEADER_BYTES
        # A packet of a header alone decides nothing about the ones to come.
        return self._header_bytes or NEW_HEADER_BYTES

    def _check_length(self, least: int) -> None:
        if self._length < least:
            raise FramingError(self._where, f'packet length {self._length} at byte {self._offset}',
                               f'at least {least}, its own header')
        if self._length > self._max:
            raise FramingError(self._where, f'packet length {self._length} at byte {self._offset}',
                               f'at most max_frame_bytes, {self._max}')

    def _allocate(self, header_bytes: int) -> None:
        already = self._header[header_bytes:max(self._filled, header_bytes)]
        self._payload = bytearray(self._length - header_bytes)
        self._payload[:len(already)] = already
        self._want(memoryview(self._payload)[len(already):])

    def _packet(self) -> Packet:
        assert self._payload is not None
        _, time, game_time = _OLD_HEADER.unpack_from(self._header)
        sample_count = 0
        if self._length - len(self._payload) == NEW_HEADER_BYTES:
            (sample_count,) = _SAMPLE_COUNT.unpack_from(self._header, OLD_HEADER_BYTES)
        packet = Packet(self._payload, game_time, time, sample_count)
        self._offset += self._length
        self._begin()
        return packet

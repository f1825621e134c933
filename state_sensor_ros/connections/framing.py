# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The bytes of a connection to packets, without sockets: a protocol is a generator of memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from state_sensor_ros.errors import TransportError

Packet = TypeVar('Packet')


class Framer(Generic[Packet]):
    """
    Divides the bytes of one connection into packets.

    The caller writes the next bytes to :meth:`buffer`, so that a payload is received without a
    copy, and passes their number to :meth:`advance`.

    :param parts: yields the memory for the next bytes, never empty, each time they are needed, and
        a packet when it is complete; raises FramingError if the length of a packet is impossible.
    :param where: named in errors, such as ``host:port``.
    :ivar n_bytes: bytes so far of the packet that is not complete.
    """

    def __init__(self, parts: Iterator[memoryview | Packet], where: str) -> None:
        self._parts, self._where = parts, where
        self.n_bytes, self._view = 0, memoryview(b'')
        self._advance_to_memory()

    def buffer(self) -> memoryview:
        """Return the memory for the next bytes, never empty."""
        return self._view

    def advance(self, n_bytes: int) -> Packet | None:
        """Process bytes that were written to :meth:`buffer`; return the packet they complete."""
        self.n_bytes += n_bytes
        self._view = self._view[n_bytes:]
        return None if len(self._view) else self._advance_to_memory()

    def _advance_to_memory(self) -> Packet | None:
        packet: Packet | None = None
        while not isinstance(part := next(self._parts), memoryview):
            packet, self.n_bytes = part, 0
        self._view = part
        return packet

    def fed(self, data: memoryview) -> Iterator[Packet]:
        """Process bytes of any number; yield the packets that they complete."""
        while len(data):
            n_bytes = min(len(self._view), len(data))
            self._view[:n_bytes] = data[:n_bytes]
            if (packet := self.advance(n_bytes)) is not None:
                yield packet
            data = data[n_bytes:]

    def end(self) -> None:
        """Process the end of the stream; an end within a packet is a TransportError."""
        if self.n_bytes:
            raise TransportError(self._where, f'the end of the stream {self.n_bytes} bytes into a '
                                 'packet', 'all of it')

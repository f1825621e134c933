# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The connections of clients, for calls and for streams: none blocks, and each is bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
import socket

from state_sensor_ros.emulator.carla9_server.client_bytes import Request, RequestCutter
from state_sensor_ros.emulator.threaded_server import CHUNK_BYTES, close_connection

# Bytes that wait for a client to read them. More replies are not made before it has; of a stream,
# the oldest snapshots are dropped.
MAX_WAITING = 2**23
_STREAM_BYTES = 4


class Peer:
    """
    A connection that does not block.

    :param connection: socket, which becomes non-blocking.
    :ivar is_known: whether it has sent anything that has a meaning.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.is_known = False
        self._waiting: deque[memoryview] = deque()
        self.n_waiting = 0

    @property
    def is_writing(self) -> bool:
        """Whether bytes wait to be sent."""
        return bool(self._waiting)

    @property
    def is_reading(self) -> bool:
        """Whether it may send more."""
        return self.n_waiting <= MAX_WAITING

    def send(self, data: bytes) -> None:
        """
        Send now what fits, the rest when the client reads.

        :param data: a whole message.
        :raises OSError: if the connection is lost.
        """
        self._waiting.append(memoryview(data))
        self.n_waiting += len(data)
        self.write()

    def write(self) -> None:
        """Send what fits; raise OSError if the connection is lost."""
        while self._waiting:
            try:
                n_sent = self.connection.send(self._waiting[0])
            except BlockingIOError:
                return
            self.n_waiting -= n_sent
            self._waiting[0] = self._waiting[0][n_sent:]
            if not self._waiting[0]:
                self._waiting.popleft()

    def receive(self) -> bytes:
        """
        Return what has arrived.

        :raises OSError: if the connection is lost or at its end.
        """
        try:
            received = self.connection.recv(CHUNK_BYTES)
        except BlockingIOError:
            return b''
        if not received:
            raise ConnectionResetError('the client has closed the connection')
        return received

    def read(self) -> None:
        """
        Read what has arrived.

        :raises OSError: if the connection is lost or at its end.
        :raises RequestError: if it is of no use.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection."""
        self._waiting.clear()
        close_connection(self.connection)


class Caller(Peer):
    """
    A client that calls.

    :param connection: its socket.
    :param answer: returns the reply to a request.
    """

    def __init__(self, connection: socket.socket, answer: Callable[[Request], bytes]) -> None:
        super().__init__(connection)
        self._cutter = RequestCutter()
        self._answer = answer
        self._is_replying = False

    def read(self) -> None:
        """Answer the requests that have arrived."""
        self._cutter.feed(self.receive())
        self._reply()

    def write(self) -> None:
        """Send what fits; answer what has arrived in the meantime."""
        super().write()
        if not self.is_writing and not self._is_replying:
            self._reply()

    def _reply(self) -> None:
        """Answer until too many bytes wait for the client to read them."""
        self._is_replying = True
        for request in self._cutter.requests():
            self.is_known = True
            self.send(self._answer(request))
            if not self.is_reading:
                break
        self._is_replying = False


class Subscriber(Peer):
    """
    A client of a stream, which it names by its number first.

    :param connection: its socket.
    :param on_stream: called with the number.
    :ivar stream: the number, None before.
    """

    def __init__(self, connection: socket.socket, on_stream: Callable[[int], None]) -> None:
        super().__init__(connection)
        self._number = b''
        self._on_stream = on_stream
        self.stream: int | None = None

    def read(self) -> None:
        """Read the number; what follows it is dropped."""
        received = self.receive()
        if self.stream is None:
            self._number += received[:_STREAM_BYTES - len(self._number)]
            if len(self._number) == _STREAM_BYTES:
                self.stream = int.from_bytes(self._number, 'little')
                self.is_known = True
                self._on_stream(self.stream)

    def offer(self, data: bytes, *, in_order: bool) -> None:
        """
        Send a snapshot, or have it wait.

        :param data: the message.
        :param in_order: whether it waits behind others; otherwise it takes their place.
        :raises OSError: if the connection is lost.
        """
        # The first one that waits may have been sent in part.
        while len(self._waiting) > 1 and (
                not in_order or self.n_waiting + len(data) > MAX_WAITING):
            dropped = self._waiting[1]
            del self._waiting[1]
            self.n_waiting -= len(dropped)
        self.send(data)

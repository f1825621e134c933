# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames of one TCP port, with reconnects and keep-alive (doc/protocol/sensor.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
import math
import socket
import time
from typing import Any, Protocol, TypeVar

from state_sensor_ros.connections.connection import Connection, keep_alive
from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.errors import reason_of, TransportError
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import DEFAULTS, Settings

# The kernel buffers this much while a frame is decoded: a few frames of a thousand actors.
_RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024
# While at most _HEADER_BYTES of a header are missing, this much is read at once: a shorter packet
# then needs one system call and one wake-up of the thread.
_AHEAD_BYTES = 64 * 1024
_HEADER_BYTES = 16
Packet = TypeVar('Packet', covariant=True)
# Keep-alive probes begin after a silence of stale_after; the connection fails when none of them
# is acknowledged.
_KEEPALIVE_PROBES = 2
_KEEPALIVE_INTERVAL_S = 1


class Framer(Protocol[Packet]):
    """Divides the bytes of one connection into packets."""

    def buffer(self) -> memoryview:
        """Return the memory for the next bytes, never empty."""

    def advance(self, n_bytes: int) -> Packet | None:
        """
        Process bytes that were written to :meth:`buffer`.

        :param n_bytes: their number, from the start of the buffer.
        :returns: the packet that they complete, if any.
        :raises FramingError: if the length of a packet is impossible.
        """

    def end(self) -> None:
        """
        Process the end of the stream.

        :raises TransportError: if it is inside a packet.
        """


class TcpSource(LiveSource):
    """
    Frames of one TCP port, until :meth:`close`.

    :param host: host of the simulator.
    :param port: its sensor port.
    :param new_framer: makes the framer of a new connection from ``host:port``, which its errors
        name.
    :param decode: returns the frames of a packet, or raises DecodeError.
    :param settings: ``reconnect_min`` and ``reconnect_max`` are used, and ``stale_after``: after
        that silence the peer is probed by TCP keep-alive.
    :param reconnect: as in :class:`LiveSource`.
    :param before_connect: called before each connect, for example to configure the simulator;
        its :class:`TransportError` counts as a failed connect.
    :param after_connect: called after each connect, for example to start the sampling.
    :param patience_s: time for which a connect that is refused, or closed before its first byte,
        is tried again before it counts as failed, s: for a port that opens a little after
        ``before_connect``.
    """

    def __init__(self, host: str, port: int, new_framer: Callable[[str], Framer[Any]],
                 decode: Callable[[Any], Iterable[Frame]], settings: Settings = DEFAULTS, *,
                 reconnect: bool = True,
                 before_connect: Callable[[], None] | None = None,
                 after_connect: Callable[[], None] | None = None,
                 patience_s: float = 0.0) -> None:
        self._where = f'{host}:{port}'
        super().__init__(settings, self._where, reconnect=reconnect)
        self._new_framer, self._decode = new_framer, decode
        self._before_connect, self._after_connect = before_connect, after_connect
        self._patience_s = patience_s
        self._connection = Connection(host, port)
        self._drop_reason = ''

    def receive(self) -> Iterator[Frame]:
        """
        Connect, and yield the frames of the connection.

        :raises StateSensorError: if it fails.
        """
        if self._before_connect is not None:
            self._before_connect()
        late_s = 0.0
        while True:
            self._drop_reason = ''
            self._connection.open(self._patience_s, self._set_options)
            self._connection.open_socket.settimeout(None)
            if not late_s:
                late_s, n_bytes = time.monotonic() + self._patience_s, self.health.n_bytes
                self.connected()
            if self._after_connect is not None:
                self._after_connect()
            failure: TransportError | None = None
            try:
                yield from self._receive()
            except TransportError as error:
                failure = error
            if self.health.n_bytes > n_bytes or time.monotonic() >= late_s \
                    or self._drop_reason or self.is_closing:
                break
            # It was closed at its start: connect again.
            self._connection.close()
            self._closing.wait(self.settings.reconnect_min)
        if failure is not None:
            raise failure

    def disconnect(self) -> None:
        """Close the connection."""
        self._connection.close()

    def interrupt(self) -> None:
        """Wake a thread that waits in a system call."""
        self._connection.shut_down()

    def end_reason(self) -> str:
        """Return why the connection ended: :meth:`drop`, or the peer."""
        return self._drop_reason or 'the peer closed the connection'

    def drop(self, why: str) -> None:
        """
        End the current connection, from any thread; the next one is made as after a loss.

        :param why: reason, one line.
        """
        self._drop_reason = why
        self._connection.interrupt()

    def _set_options(self, unconnected: socket.socket) -> None:
        """Set the receive buffer, which must precede the connect, and the keep-alive probes."""
        unconnected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        keep_alive(unconnected, max(1, math.ceil(self.settings.stale_after)),
                   _KEEPALIVE_INTERVAL_S, _KEEPALIVE_PROBES)

    def _receive(self) -> Iterator[Frame]:
        """Yield the frames of one connection until the peer closes it between two packets."""
        connected, framer = self._connection.open_socket, self._new_framer(self._where)
        receive_into, acknowledge = connected.recv_into, _acknowledgment(connected)
        ahead = memoryview(bytearray(_AHEAD_BYTES))
        # Stop reading on close: unread data makes the kernel send RST, which frees a blocked
        # peer; otherwise it waits for another minute.
        while not self.is_closing:
            room = framer.buffer()
            reads_ahead = len(room) <= _HEADER_BYTES
            try:
                # One call for the rest of a payload: each return to Python may wait for the
                # interpreter lock, which another thread holds while it decodes (measured: 5 ms).
                n_bytes = receive_into(ahead) if reads_ahead \
                    else receive_into(room, 0, socket.MSG_WAITALL)
            except OSError as error:
                raise TransportError(self._where, reason_of(error)) from error
            if not n_bytes:
                self._end(framer)
                return
            self.health.n_bytes += n_bytes
            acknowledge()
            for packet in fed(framer, ahead[:n_bytes]) if reads_ahead \
                    else (framer.advance(n_bytes),):
                if packet is not None and not self.is_closing:
                    yield from self.decoded(partial(self._decode, packet))

    def _end(self, framer: Framer[Any]) -> None:
        if self.is_closing:
            return
        try:
            framer.end()
        except TransportError:
            self.health.n_cut_packets += 1
            raise


def fed(framer: Framer[Packet], data: memoryview) -> Iterator[Packet]:
    """Pass bytes of any number to ``framer``; yield the packets that they complete."""
    while len(data):
        room = framer.buffer()
        n_bytes = min(len(room), len(data))
        room[:n_bytes] = data[:n_bytes]
        if (packet := framer.advance(n_bytes)) is not None:
            yield packet
        data = data[n_bytes:]


def _acknowledgment(connected: socket.socket) -> Callable[[], object]:
    """
    Return a function that has the kernel acknowledge at once the bytes received last.

    A peer with Nagle's algorithm holds a frame back until the previous one is acknowledged, and
    the kernel delays an acknowledgment without data by up to 40 ms.
    """
    if not hasattr(socket, 'TCP_QUICKACK'):  # Linux only
        return lambda: None
    return partial(connected.setsockopt, socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

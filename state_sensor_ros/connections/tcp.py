# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The sensor port of a running simulator, connected to again and again.

May know: sockets, back-off, keep-alive. Must not know: what a payload means. Source: PROTOCOL 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
import math
import socket
import threading
from typing import Protocol

from state_sensor_ros.connections.lookup import look_up
from state_sensor_ros.errors import FramingError, StateSensorError, told, TransportError
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.source import Health
from state_sensor_ros.settings import Settings

# The kernel holds this much while a frame is decoded: a few frames of a thousand actors.
_RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024
# Probes after a silence of stale_after; a peer that vanished is found within this many seconds.
_KEEPALIVE_PROBES = 2
_KEEPALIVE_INTERVAL_S = 1
# Longer than a connect to a reachable host takes, short enough not to hold up the next try.
_CONNECT_TIMEOUT_S = 5.0


class Framer(Protocol):
    """Cuts the bytes of one connection into packets."""

    def buffer(self) -> memoryview:
        """Return where the next bytes belong."""

    def advance(self, n_bytes: int) -> Packet | None:
        """Take note of bytes put there; return the packet that they complete."""

    def end(self) -> None:
        """Take note of the end of the stream."""


class TcpSource:
    """
    Packets of one TCP port, for as long as anybody wants them.

    :param host: of the simulator.
    :param port: its sensor port.
    :param new_framer: makes what cuts the bytes of a new connection into packets, of
        ``host:port`` for its errors.
    :param reconnect_min: first wait before connecting again, s; doubled up to ``reconnect_max``.
    :param stale_after: silence after which the peer is probed by TCP keep-alive, s.
    :param before_connect: called before each connect, for example to configure the simulator;
        its :class:`TransportError` counts as a failed connect.
    :param after_connect: called once connected, for example to ask for samples from then on.
    """

    def __init__(self, host: str, port: int, new_framer: Callable[[str], Framer], *,
                 reconnect_min: float = 0.1, reconnect_max: float = 2.0, stale_after: float = 2.0,
                 before_connect: Callable[[], None] | None = None,
                 after_connect: Callable[[], None] | None = None) -> None:
        self.health = Health()
        self._address = (host, port)
        self._where = f'{host}:{port}'
        self._reconnect_min, self._reconnect_max = reconnect_min, reconnect_max
        self._stale_after = stale_after
        self._new_framer = new_framer
        self._before_connect, self._after_connect = before_connect, after_connect
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def packets(self) -> Iterator[Packet]:
        """Yield packets; connect, wait and connect again until closed."""
        delay = self._reconnect_min
        while not self._closing.is_set():
            try:
                self.health.state = 'connecting'
                self._connect()
                for packet in self._receive():
                    delay = self._reconnect_min
                    yield packet
                self._failed('the peer closed the connection')
            except FramingError as error:
                self.health.n_protocol_errors += 1
                self._failed(str(error))
            except (StateSensorError, OSError) as error:
                self._failed(str(error))
            finally:
                self._disconnect()
            self._closing.wait(delay)
            delay = min(2 * delay, self._reconnect_max)
        self.health.state = 'closed'

    def reconfigure(self, settings: Settings) -> None:
        """Nothing of a plain connection depends on dynamic parameters."""

    def close(self) -> None:
        """End the stream soon: a thread that waits in a system call is woken."""
        self._closing.set()
        with self._lock:
            _shut_down(self._socket)

    def _failed(self, why: str) -> None:
        if not self._closing.is_set():
            self.health.state = 'waiting'
            self.health.last_error = why

    def _connect(self) -> None:
        if self._before_connect is not None:
            self._before_connect()
        try:
            error: OSError | None = None
            # localhost is ::1 and 127.0.0.1: a simulator may listen on either.
            for family, kind, protocol, _, address in look_up(*self._address,
                                                              self._closing.is_set):
                error = self._connect_to(socket.socket(family, kind, protocol), address)
                if error is None:
                    break
                self._disconnect()
            if error is not None:
                raise error
        except OSError as found:
            raise TransportError(self._where, told(found),
                                 'a simulator that listens there') from found
        self.health.n_connects += 1
        self.health.state = 'connected'
        if self._after_connect is not None:
            self._after_connect()

    def _connect_to(self, connection: socket.socket,
                    address: tuple[object, ...]) -> OSError | None:
        """Connect to one address; return why that failed."""
        with self._lock:
            self._socket = connection
        try:
            # Before connecting: the window is negotiated then.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
            self._probe_when_silent(connection)
            connection.settimeout(_CONNECT_TIMEOUT_S)
            connection.connect(address)
            if connection.getsockname() == address:
                # Linux may connect a socket to itself when nobody listens on an ephemeral port.
                raise ConnectionRefusedError('connected to itself')
            if self._closing.is_set():
                # close() may have come before there was a connection to shut down.
                raise ConnectionAbortedError('a request to end')
            connection.settimeout(None)
        except OSError as error:
            return error
        return None

    def _probe_when_silent(self, connection: socket.socket) -> None:
        """Have the kernel find a peer that vanished without a word (half-open connection)."""
        idle_s = max(1, math.ceil(self._stale_after))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (('TCP_KEEPIDLE', idle_s), ('TCP_KEEPINTVL', _KEEPALIVE_INTERVAL_S),
                              ('TCP_KEEPCNT', _KEEPALIVE_PROBES)):
            if hasattr(socket, option):  # not on every operating system
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def _receive(self) -> Iterator[Packet]:
        """Yield the packets of one connection until the peer closes it between two."""
        assert self._socket is not None
        receive_into, framer = self._socket.recv_into, self._new_framer(self._where)
        # Not to the last byte once closed: what is left unread tells a peer that we held back
        # that nobody reads any more; else it waits for another minute.
        while not self._closing.is_set():
            # One call for a whole payload: each return to Python may wait for the interpreter
            # lock, which the publishing thread holds while it decodes (measured: 5 ms a time).
            try:
                n_bytes = receive_into(framer.buffer(), 0, socket.MSG_WAITALL)
            except OSError as error:
                raise TransportError(self._where, told(error), 'more packets') from error
            if not n_bytes:
                self._end(framer)
                return
            self.health.n_bytes += n_bytes
            self._acknowledge()
            packet = framer.advance(n_bytes)
            if packet is not None:
                self.health.n_packets += 1
                yield packet

    def _acknowledge(self) -> None:
        """
        Have the kernel acknowledge at once what was received; it forgets that wish each time.

        A peer that leaves Nagle's algorithm on holds a frame back until the one before is
        acknowledged, which a kernel that waits for more to say delays by up to 40 ms.
        """
        if hasattr(socket, 'TCP_QUICKACK'):  # Linux only
            assert self._socket is not None
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _end(self, framer: Framer) -> None:
        if self._closing.is_set():
            return
        try:
            framer.end()
        except TransportError:
            self.health.n_cut_packets += 1
            raise

    def _disconnect(self) -> None:
        with self._lock:
            connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()


def _shut_down(connection: socket.socket | None) -> None:
    if connection is not None:
        # Not connected yet, or already closed by the peer: then nothing waits in it.
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

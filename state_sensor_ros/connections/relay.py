# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Forwards the TCP connections of a client to a server, and what the server sends to a third party.

Each connection has a thread for each direction. A direction ends by itself::

    source ends in order    the target is shut down for writing
    source is reset         the target is shut down
    target is gone          the source is shut down for reading

Both sockets are closed when both directions are over.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
import errno
import socket
import threading
import time
from typing import Protocol, TypeAlias

from state_sensor_ros.connections.connection import addresses_of, Connection
from state_sensor_ros.errors import reason_of, TransportError, UnreachableError

# Time between two attempts to connect, or to accept while there is no free file descriptor.
_RETRY_S = 0.05
_BACKLOG = 16
_CHUNK_BYTES = 2 ** 18
# Longest wait for the threads of connections that were shut down.
_END_S = 1.0
# Finds peers that vanish without closing: seconds, seconds, number; ms for what is unread.
_KEEPALIVE = (('TCP_KEEPIDLE', 30), ('TCP_KEEPINTVL', 10), ('TCP_KEEPCNT', 3),
              ('TCP_USER_TIMEOUT', 60_000))

Copy: TypeAlias = Callable[[memoryview], bool]


class RelayObserver(Protocol):
    """Is told what happens to the port of each number, by the threads of its connections."""

    def note_waiting(self, number: int) -> None:
        """Note that the server refuses a connection, which is tried again."""

    def note_left(self, number: int) -> None:
        """Note that a client has not waited for the server."""

    def note_refused(self, number: int, error: str) -> None:
        """Note that a client was turned away, and why."""

    def note_connected(self, number: int) -> Copy | None:
        """Return what takes a copy of what the server sends, until it returns False."""

    def note_closed(self, number: int, by: str) -> None:
        """Note the end by the ``client`` or the ``server``, before the other one notices."""


class PortRelay:
    """
    Listens on consecutive ports until :meth:`close`.

    :param observer: see :class:`RelayObserver`.
    :param server: host and first port of the server.
    :param own: address and first port to listen on.
    :param n_ports: number of ports.
    :param patience_s: time for which a refused connect is tried again, s.
    :raises TransportError: if a port cannot be opened.
    """

    def __init__(self, observer: RelayObserver, server: tuple[str, int], own: tuple[str, int],
                 n_ports: int, patience_s: float) -> None:
        self._observer, self._server, self._patience_s = observer, server, patience_s
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        bind, first = own
        try:
            for port in range(first, first + n_ports):
                self._open.add(listener := _listening(bind, port))
                self._begin(self._accept, port - first, listener)
        except TransportError:
            self.close()
            raise

    def _begin(self, work: Callable[..., None], *args: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=args, daemon=True, name='relay')
        with self._lock:
            self._threads = [*(each for each in self._threads if each.is_alive()), thread]
        thread.start()
        return thread

    def _accept(self, number: int, listener: socket.socket) -> None:
        while not self._closing.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                self._closing.wait(_RETRY_S)
                continue
            self._begin(self._serve, number, client)

    def _serve(self, number: int, client: socket.socket) -> None:
        host, first = self._server
        connection = Connection(host, first + number)
        with client:
            try:
                if self._connect(number, client, connection):
                    self._exchange(number, client, connection.open_socket)
                else:
                    self._observer.note_left(number)
            except UnreachableError as error:
                self._observer.note_refused(number, str(error))
            except OSError:
                return  # the client has closed its connection already
            finally:
                connection.close()

    def _connect(self, number: int, client: socket.socket, connection: Connection) -> bool:
        """Connect to the server; return False if the client leaves before, or at the end."""
        until_s = time.monotonic() + self._patience_s
        while True:
            try:
                connection.open()
                return True
            except UnreachableError:
                if time.monotonic() >= until_s:
                    raise
            self._observer.note_waiting(number)
            if _has_ended(client) or self._closing.wait(_RETRY_S):
                return False

    def _exchange(self, number: int, client: socket.socket, server: socket.socket) -> None:
        """Forward both directions until they are over."""
        for side in (client, server):
            side.settimeout(None)
            _set_options(side)
        with self._lock:
            self._open |= {client, server}
            if self._closing.is_set():
                return
        copy = self._observer.note_connected(number)
        ended = threading.Lock()

        def note_end(by: str) -> None:
            if ended.acquire(blocking=False):
                # The server may have ended it because the client did.
                self._observer.note_closed(number, 'client' if _has_ended(client) else by)

        up = self._begin(_forward, client, server, None,
                         lambda is_source: note_end('client' if is_source else 'server'))
        _forward(server, client, copy,
                 lambda is_source: note_end('server' if is_source else 'client'))
        up.join()
        with self._lock:
            self._open -= {client, server}

    def close(self) -> None:
        """Close all ports and connections."""
        self._closing.set()
        with self._lock:
            open_sockets, threads = list(self._open), self._threads
        for each in open_sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(_END_S)
        for each in open_sockets:
            each.close()


def _forward(source: socket.socket, target: socket.socket, copy: Copy | None,
             on_end: Callable[[bool], None]) -> None:
    """Forward a direction; ``on_end`` is called with whether its source has ended it."""
    chunk = memoryview(bytearray(_CHUNK_BYTES))
    while True:
        try:
            n_bytes = source.recv_into(chunk)
        except OSError:
            n_bytes = -1
        if n_bytes <= 0:
            on_end(True)
            with suppress(OSError):
                target.shutdown(socket.SHUT_RDWR if n_bytes else socket.SHUT_WR)
            return
        # First, as a client that has its last frame may leave, which ends the stream.
        if copy is not None and not copy(chunk[:n_bytes]):
            copy = None
        try:
            target.sendall(chunk[:n_bytes])
        except OSError:
            on_end(False)
            # The other direction goes on until its source ends.
            with suppress(OSError):
                source.shutdown(socket.SHUT_RD)
            return


def _has_ended(peer: socket.socket) -> bool:
    """Return whether a peer has closed its connection and nothing of it is unread."""
    try:
        return not peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _set_options(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        if hasattr(socket, option):  # not on every operating system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _listening(bind: str, port: int) -> socket.socket:
    where = f'{bind}:{port}'
    try:
        family, _, _, _, address = addresses_of(bind, port, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno in (None, errno.EADDRNOTAVAIL):
            raise TransportError(where, f'{reason_of(error)}; relay_bind must be an address of '
                                 'this machine') from error
        raise TransportError(where, 'the port of the relay is in use' if error.errno ==
                             errno.EADDRINUSE else reason_of(error)) from error
    return listener

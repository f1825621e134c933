# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The process of a relay: forwards TCP connections, and copies what the node reads of them.

    client  <--->  listener k  | this process |  port k of the server  <--->  server
                                     | frames, messages and events, one way
                                     v
                                   node

It is a process of its own, so that the interpreter lock of the node delays no byte. Besides its
neighbor it imports only the standard library, so that it starts in a few milliseconds.
Each connection of a client gets a connection to the server, and a thread. The bytes that wait for
the node are limited, and so are the connections: further ones are closed.

The process ends when the node closes its end, or ends in any way.

Each direction between two connected sockets ends by itself::

    source ends in order    what waits is sent, then the target is shut down for writing
    target is gone          what the source still sends is read and discarded
    source is reset         both

Both sockets are closed when both directions are over, or when one peer is gone and the other one
has everything that was sent to it. Closing a socket earlier, or with unread bytes, resets its
connection, and the end of the other direction is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
import fcntl
import json
import os
import select
import socket
import struct
import sys
import termios
import threading
import time
from typing import Any

from state_sensor_ros.connections.relay_copies import (
    CopyMemory,
    Cutter,
    FrameCutter,
    MAX_MESSAGE_BYTES,
    MessageCutter,
    NodeLink,
)

_RETRY_S = 0.05
_CONNECT_TIMEOUT_S = 5.0
# Enough for many clients: each has three connections, also while they end.
MAX_CONNECTIONS = 64
# Small buffers: what waits in them is old when a slow client reads it.
_SOCKET_BUFFER_BYTES = 2 ** 19
# A peer that vanished without closing is found within a minute; a short interruption of the
# network does not end the connection of the world port, which is silent during an episode.
_KEEPALIVE = (('TCP_KEEPIDLE', 30), ('TCP_KEEPINTVL', 10), ('TCP_KEEPCNT', 3))
# While data waits there are no such probes: a peer that has vanished, or reads nothing.
_UNREAD_MS = 60_000
_CHUNK_BYTES = 2 ** 18
# Time for a peer that remains to read the end, once it has acknowledged what was sent to it.
_LINGER_S = 1.0
# A peer that remains and takes no byte for this long is given up, so that its port is free.
_STALL_S = 5.0
_CHECK_MS = 50


class ClientConnection:
    """One connection of a client, and its connection to the server."""

    # number: number of the port, from 0.
    # cutter: receives a copy of what the server sends, None for no copy.
    # patience_s: time for which a refused connect is tried again, s.

    def __init__(self, client: socket.socket, address: tuple[str, int], number: int,
                 link: NodeLink, cutter: Cutter | None,
                 patience_s: float) -> None:
        self._client, self._address, self._number = client, address, number
        self._patience_s = patience_s
        self._link, self._cutter = link, cutter

    def run(self) -> None:
        """Connect to the server and forward until both directions are over."""
        with self._client:
            try:
                server = self._connect()
            except OSError as failure:
                # The number of a failed look-up is not one of the system's.
                self._link.put_event(event='refused', port=self._number,
                                     error=failure.strerror or str(failure))
                return
            if server is None:
                self._link.put_event(event='left', port=self._number)
                return
            self._link.put_event(event='connected', port=self._number)
            with server:
                exchange = Exchange(self._client, server, self._cutter, self._put_closed)
                try:
                    while exchange.advance():
                        pass
                finally:
                    exchange.end()

    def _put_closed(self, by: str) -> None:
        n_cut = 0 if self._cutter is None else self._cutter.n_bytes
        self._link.put_event(event='closed', port=self._number, by=by, n=n_cut)

    def _connect(self) -> socket.socket | None:
        """Connect to the server; a refused connect is tried again while the client stays."""
        until_s = time.monotonic() + self._patience_s
        is_reported = False
        while True:
            try:
                return _connected(self._address)
            except ConnectionRefusedError:
                if time.monotonic() >= until_s:
                    raise
            if not is_reported:
                is_reported = True
                self._link.put_event(event='waiting', port=self._number)
            if has_ended(self._client):
                return None
            time.sleep(_RETRY_S)


def _connected(address: tuple[str, int]) -> socket.socket:
    """Connect to the first address that accepts, with a receive buffer set before."""
    failure = OSError('no address')
    try:
        places = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f'not a valid host name: {address[0]} ({error})') from error
    for family, kind, protocol, _, place in places:
        server = socket.socket(family, kind, protocol)
        try:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER_BYTES)
            _set_options(server)
            server.settimeout(_CONNECT_TIMEOUT_S)
            server.connect(place)
            if server.getsockname() == server.getpeername():
                raise ConnectionRefusedError('connected to itself')
            return server
        except OSError as error:
            server.close()
            failure = error
    raise failure


def _set_options(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (*_KEEPALIVE, ('TCP_USER_TIMEOUT', _UNREAD_MS)):
        if hasattr(socket, option):  # not on every operating system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class RelayProcess:
    """Accepts clients until the node closes its end."""

    # options: ``link`` and ``listeners``, open file descriptors; ``host`` and ``ports`` of the
    # server, one for each listener; ``copied``, number of the port whose frames the node gets;
    # ``described``, number of the port whose messages from the server it gets;
    # ``max_frame_bytes``; ``patience_s`` how long a refused connect is tried again.

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._node = socket.socket(fileno=options['link'])
        self._link = NodeLink(self._node)
        self._memory = CopyMemory(options['max_frame_bytes'] + MAX_MESSAGE_BYTES)
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._listeners = [socket.socket(fileno=descriptor) for descriptor in options['listeners']]

    def run(self) -> None:
        """Accept clients; return when the node has closed its end."""
        # Before the first event: without this thread the node would receive nothing.
        threading.Thread(target=self._link.run, daemon=True).start()
        poll = select.poll()
        poll.register(self._node, select.POLLIN)
        numbers = {}
        for number, listener in enumerate(self._listeners):
            listener.setblocking(False)
            poll.register(listener, select.POLLIN)
            numbers[listener.fileno()] = number
        while True:
            for descriptor, _ in poll.poll():
                if descriptor not in numbers:
                    return  # the node writes nothing: it has closed its end
                self._accept(numbers[descriptor])

    def _accept(self, number: int) -> None:
        """Accept a client, and forward its connection in a thread of its own."""
        try:
            client, _ = self._listeners[number].accept()
        except BlockingIOError:
            return  # the client has closed its connection already
        except OSError:
            time.sleep(_RETRY_S)  # no free file descriptor
            return
        if not self._link.has_room_for_events or not self._places.acquire(blocking=False):
            self._turn_away(client, number, f'more than {MAX_CONNECTIONS} connections')
            return
        try:
            threading.Thread(target=self._serve, args=(client, number), daemon=True).start()
        except RuntimeError as error:
            self._places.release()
            self._turn_away(client, number, str(error))

    def _turn_away(self, client: socket.socket, number: int, reason: str) -> None:
        client.close()
        if self._link.has_room_for_events:
            self._link.put_event(event='turned away', port=number, error=reason)

    def _serve(self, client: socket.socket, number: int) -> None:
        options, link = self._options, self._link
        try:
            with suppress(OSError):  # the client has closed its connection already
                client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
                _set_options(client)
            cutter: Cutter | None = None
            if number == options['copied']:
                cutter = FrameCutter(link, self._memory, options['max_frame_bytes'])
            elif number == options['described']:
                cutter = MessageCutter(link, self._memory)
            ClientConnection(client, (options['host'], options['ports'][number]), number, link,
                             cutter, options['patience_s']).run()
            if cutter is not None:
                cutter.end()
        finally:
            self._places.release()


def main() -> None:
    """Run the process with the options of its command line, as JSON."""
    with suppress(RuntimeError):  # no thread for the link: the node starts another process
        RelayProcess(json.loads(sys.argv[1])).run()
    # Do not wait for the threads of connections that are still open.
    os._exit(0)


class Direction:
    """The bytes from one socket to another one; at most one chunk waits."""

    # copier: receives a copy of what the target has got, None for no copy.
    # on_end: called when the direction is over or lost, before the target can notice.

    def __init__(self, source: socket.socket, target: socket.socket, copier: Cutter | None,
                 on_end: Callable[[], None]) -> None:
        self.source, self.target = source, target
        self._copier, self._on_end = copier, on_end
        self._buffer = memoryview(bytearray(_CHUNK_BYTES))
        self._n_filled = self._n_sent = self.n_moved = 0
        self.is_over = self.is_lost = self.is_reset = False

    @property
    def is_waiting(self) -> bool:
        """Whether received bytes are not sent yet."""
        return self._n_sent < self._n_filled

    @property
    def reads(self) -> bool:
        """Whether the next bytes can be received."""
        return not self.is_over and not self.is_waiting

    def lose(self) -> None:
        """Note that the target is gone."""
        self.is_lost = True
        self._n_sent = self._n_filled = 0
        self._on_end()

    def move(self) -> bool:
        """Receive a chunk or send what waits; return whether anything was done."""
        if self.is_waiting:
            return self._send()
        return self.reads and self._receive()

    def _receive(self) -> bool:
        try:
            n_bytes = self.source.recv_into(self._buffer)
        except BlockingIOError:
            return False
        except OSError:
            self.is_reset, n_bytes = True, 0
        if not n_bytes:
            self.is_over = True
            self._on_end()
            with suppress(OSError):
                self.target.shutdown(socket.SHUT_WR)
        elif not self.is_lost:
            self._n_filled, self._n_sent = n_bytes, 0
            self._send()
        return True

    def _send(self) -> bool:
        try:
            n_bytes = self.target.send(self._buffer[self._n_sent:self._n_filled])
        except BlockingIOError:
            return False
        except OSError:
            self.lose()
            return True
        self._n_sent += n_bytes
        self.n_moved += n_bytes
        # After the target has its bytes: copying delays only the next ones.
        if self._copier is not None and not self.is_waiting:
            self._copier.feed(self._buffer[:self._n_filled])
        return True


class Exchange:
    """Both directions between a client and a server."""

    # copier: receives a copy of what the client has got, None for no copy.
    # on_end: called once with the side that has ended first, `client` or `server`, before the
    # other side can notice; if it is the server, only when the client has all of its bytes.

    def __init__(self, client: socket.socket, server: socket.socket, copier: Cutter | None,
                 on_end: Callable[[str], None]) -> None:
        self._client, self._server = client, server
        self._on_end, self._has_ended = on_end, False
        for side in (client, server):
            side.setblocking(False)
        self._up = Direction(client, server, None, self._note_end)
        self._down = Direction(server, client, copier, self._note_end)
        self._progress: tuple[int, int] = (0, 0)
        self._progress_s = time.monotonic()

    def advance(self) -> bool:
        """Wait until bytes can be moved, and move them; return False at the end."""
        up, down = self._up, self._down
        if (up.is_lost or down.is_lost) and self._is_delivered():
            return False
        # The client first: a server ends a connection after its client has ended it.
        has_moved = up.move()
        has_moved = down.move() or has_moved
        for way, back in ((up, down), (down, up)):
            if way.is_reset and not back.is_lost:
                back.lose()
        if (up.is_over and down.is_over) or (up.is_lost and down.is_lost):
            return False
        if not has_moved:
            self._wait()
        return True

    def end(self) -> None:
        """Note that both sockets are closed next, even if no side has ended in order."""
        if not self._has_ended:
            self._has_ended = True
            self._on_end('server')

    def _note_end(self) -> None:
        if self._has_ended:
            return
        if self._up.is_over or self._down.is_lost:
            by = 'client'
        elif self._down.is_over:
            # The server may have ended it because the client did.
            by = 'client' if has_ended(self._client) else 'server'
        else:
            return  # the last bytes of the server are not sent to the client yet
        self._has_ended = True
        self._on_end(by)

    def _wait(self) -> None:
        up, down = self._up, self._down
        poll = select.poll()
        idle = []
        for side, inward, outward in ((self._client, up, down), (self._server, down, up)):
            mask = inward.reads * select.POLLIN | outward.is_waiting * select.POLLOUT
            if mask:
                poll.register(side, mask)
            elif not outward.is_over and not outward.is_lost:
                # Without an event to wait for, poll() still reports that the peer is gone.
                poll.register(side, 0)
                idle.append((side.fileno(), outward))
        ready = dict(poll.poll(_CHECK_MS if up.is_lost or down.is_lost else None))
        for descriptor, outward in idle:
            if descriptor in ready:
                outward.lose()

    def _is_delivered(self) -> bool:
        """Return whether the peer that remains has, or will not take, what was sent to it."""
        remaining = self._down if self._up.is_lost else self._up
        now_s = time.monotonic()
        n_unsent = _n_unacknowledged(remaining.target)
        progress = (remaining.n_moved, n_unsent)
        if progress != self._progress:
            self._progress, self._progress_s = progress, now_s
        elapsed_s = now_s - self._progress_s
        if remaining.is_over and not n_unsent:
            return not remaining.n_moved or elapsed_s >= _LINGER_S
        return elapsed_s >= _STALL_S


def has_ended(peer: socket.socket) -> bool:
    """Return whether a peer has closed its connection and nothing of it is unread."""
    try:
        return not peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _n_unacknowledged(connected: socket.socket) -> int:
    """Return the number of bytes sent that the machine of the peer does not have."""
    try:
        (n_bytes,) = struct.unpack('i', fcntl.ioctl(connected, termios.TIOCOUTQ, bytes(4)))
    except OSError:
        return 0
    return int(n_bytes)

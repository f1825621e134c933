# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
One TCP connection of a client, and the addresses and ports that it needs.

Closing a socket that another thread reads would free its number for a new file. Other threads
therefore only shut it down, which wakes the reading thread; that one closes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
import errno
import math
import os
import socket
import struct
import threading
import time
from typing import Any, TypeAlias, TypeVar

from state_sensor_ros.errors import cannot_connect, reason_of, TransportError
from state_sensor_ros.source import ignore

# Longer than a connect to a reachable host takes, short enough not to delay the next attempt.
CONNECT_TIMEOUT_S = 5.0
# Between two attempts to connect to a port that is about to open.
_RETRY_PERIOD_S = 0.05
_DISCARDED_BYTES = 4096
_ENDED = 'ended on request'
# A reply of a simulator that is not busy takes milliseconds.
SILENCE_S = 1.0
# A time-out of 0 would make the socket non-blocking.
_SHORTEST_S = 1e-3

OnSilence = Callable[[str], None]
_Result = TypeVar('_Result')
# Time between two checks whether the wait was canceled.
_PERIOD_S = 0.05

# Family, kind, protocol, canonical name, address.
Addresses: TypeAlias = Sequence[
    tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]]
# Room for all parts of a message, which a program sends faster than they are read.
_RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024
_MAX_DATAGRAM_BYTES = 65536
# Linux: a note of each datagram, with the number of those that were dropped before it.
_SO_RXQ_OVFL = 40
_DROPS = struct.Struct('=I')
_REPLY_S = 1.0


class Connection:
    """
    A TCP connection to one port; may connect again after :meth:`close`.

    :param host: name or address.
    :param port: TCP port.
    :ivar unsent: rest of a message of :meth:`send_at_once`, to be sent before anything else.
    """

    def __init__(self, host: str, port: int) -> None:
        self.unsent = b''
        self.where = f'{host}:{port}'
        self._address = (host, port)
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._shut_down = threading.Event()

    @property
    def is_shut_down(self) -> bool:
        """Whether :meth:`shut_down` was called."""
        return self._shut_down.is_set()

    @property
    def open_socket(self) -> socket.socket:
        """
        Return the connected socket, for the thread that uses the connection.

        :raises OSError: if it is not connected or was shut down.
        """
        connected = self._socket
        self._check_open()
        if connected is None:
            raise ConnectionError('no connection')
        return connected

    def connect(self, before_connect: Callable[[socket.socket], None] | None = None) -> None:
        """
        Try the addresses of the host one by one: ``localhost`` may be ::1 and 127.0.0.1.

        The connected socket keeps :data:`CONNECT_TIMEOUT_S` as its time-out.

        :param before_connect: called with each new socket, to set its options.
        :raises OSError: if no address accepts, with the error of the last one;
            ``ConnectionAbortedError`` if the connection was shut down.
        """
        failure = OSError('no address')
        for family, kind, protocol, _, address in look_up(*self._address,
                                                          self._shut_down.is_set):
            candidate = socket.socket(family, kind, protocol)
            with self._lock:
                self._socket = candidate
            try:
                # After the assignment: either this check or shut_down() finds the other.
                self._check_open()
                if before_connect is not None:
                    before_connect(candidate)
                self.unsent = b''
                candidate.settimeout(CONNECT_TIMEOUT_S)
                candidate.connect(address)
                # On Linux a socket that was shut down before connects without an error.
                self._check_open()
                if candidate.getsockname() != address:
                    return
                # With no listener on an ephemeral port, Linux may connect a socket to itself.
                failure = ConnectionRefusedError('connected to itself')
            except OSError as error:
                failure = error
            self.close()
        raise failure

    def open(self, patience_s: float = 0.0,  # noqa: A003
             before_connect: Callable[[socket.socket], None] | None = None, *,
             remedy: str = 'is the simulator running?') -> None:
        """
        Connect to a port that may open a little later: a refused connect is tried again.

        :param patience_s: time for which a refused connect is tried again, s; 0 tries once.
        :param before_connect: as in :meth:`connect`.
        :param remedy: what to check if the connection is refused.
        :raises UnreachableError: if it cannot be made.
        :raises TransportError: if the connection was shut down.
        """
        until_s = time.monotonic() + patience_s
        while True:
            try:
                self.connect(before_connect)
                return
            except OSError as error:
                if self.is_shut_down:
                    raise self.failed(error) from error
                if not isinstance(error, ConnectionRefusedError) or time.monotonic() >= until_s:
                    raise cannot_connect(self.where, error, remedy) from error
            self._shut_down.wait(_RETRY_PERIOD_S)

    def failed(self, error: OSError) -> TransportError:
        """
        Return the error of this package for a failed call.

        :param error: that of the system.
        """
        return TransportError(self.where, _ENDED if self.is_shut_down else reason_of(error))

    def send_at_once(self, data: bytes) -> None:
        """
        Send a short message from any thread, whole or not at all, without waiting for the peer.

        A part that the send buffer does not take is sent before the next message of any thread:
        see :attr:`unsent`. It needs no descriptor, and no time-out is waited for.

        :raises BlockingIOError: if the send buffer is full: nothing of the message is sent.
        :raises OSError: if it is not connected or was shut down.
        """
        with self._lock:
            # Of a socket with a time-out, the interpreter would wait in spite of MSG_DONTWAIT; its
            # descriptor does not block.
            number = self.open_socket.fileno()
            if self.unsent:
                self.unsent = self.unsent[os.write(number, self.unsent):]
                if self.unsent:
                    raise BlockingIOError(errno.EAGAIN, 'the peer does not read')
            self.unsent = data[os.write(number, data):]

    def has_data(self) -> bool:
        """Return whether bytes, or the end, can be read now; for the thread that reads."""
        connected = self.open_socket
        connected.settimeout(0.0)
        try:
            connected.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        return True

    def n_unread(self) -> int:
        """Return the bytes that have arrived and were not read; for the thread that reads."""
        with suppress(OSError):
            if self._socket is not None:
                return len(self._socket.recv(_RECEIVE_BUFFER_BYTES,
                                             socket.MSG_PEEK | socket.MSG_DONTWAIT))
        return 0

    def watch(self, on_end: Callable[[], None]) -> None:
        """
        Report the end of the connection while no other call waits for it.

        :param on_end: called once, from another thread, when the peer closes the connection;
            what the peer sends is not kept.
        :raises OSError: if it is not connected or was shut down.
        """
        connected = self.open_socket
        watched = connected.dup()

        def work() -> None:
            with watched, suppress(OSError):
                is_open = True
                while is_open:
                    with suppress(TimeoutError):
                        is_open = bool(watched.recv(_DISCARDED_BYTES))
            if connected is self._socket and not self.is_shut_down:
                on_end()

        threading.Thread(target=work, daemon=True, name='watch').start()

    def is_alive(self) -> bool:
        """Return whether the peer keeps the connection open and has sent nothing unread."""
        try:
            return not self.has_data()
        except OSError:
            return False

    def shut_down(self) -> None:
        """End all waits on the connection, from any thread, and refuse to connect from now on."""
        self._shut_down.set()
        self.interrupt()

    def interrupt(self) -> None:
        """End all waits on the connection, from any thread; it may connect again."""
        with self._lock:
            if self._socket is not None:
                # It may not be connected yet, or the peer has closed it: then no call waits.
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket, in the thread that uses it; a second call has no effect."""
        with self._lock:
            connected, self._socket = self._socket, None
        if connected is not None:
            # The socket of a watch is open as well, and waits.
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)
            connected.close()

    def _check_open(self) -> None:
        if self._shut_down.is_set():
            raise ConnectionAbortedError(_ENDED)


class Wait:
    """
    Wait for a peer; the time-out counts from the construction.

    :param where: peer as errors name it, such as ``host:port``.
    :param missing: what the peer is to send or take, such as ``reply to X``.
    :param timeout_s: longest wait.
    :param on_silence: called with one line after :data:`SILENCE_S`, at most once.
    :param error: type of the error after the time-out.
    """

    def __init__(self, where: str, missing: str, timeout_s: float,
                 on_silence: OnSilence = ignore, *,
                 error: type[TransportError] = TransportError) -> None:
        self._where, self.missing, self._timeout_s = where, missing, timeout_s
        self._on_silence, self._error = on_silence, error
        began_s = time.monotonic()
        self._until_s, self._silent_s = began_s + timeout_s, began_s + SILENCE_S

    def receive(self, connection: socket.socket, n_bytes: int) -> bytes:
        """
        Receive bytes that are there or arrive in time.

        :param n_bytes: the most to receive.
        :returns: 1 to ``n_bytes`` bytes; none at the end of the stream.
        :raises TransportError: if no byte arrives in time.
        :raises OSError: if the connection fails.
        """
        return self._attempt(connection, lambda: connection.recv(n_bytes))

    def send(self, connection: socket.socket, data: memoryview) -> int:
        """
        Send a part of the data.

        :param data: at least one byte.
        :returns: the number of bytes sent.
        :raises TransportError: if the peer accepts no byte in time.
        :raises OSError: if the connection fails.
        """
        return self._attempt(connection, lambda: connection.send(data))

    def _attempt(self, connection: socket.socket, call: Callable[[], _Result]) -> _Result:
        """Return the result of ``call``, repeated until it does not time out."""
        while True:
            left_s = min(self._until_s, self._silent_s) - time.monotonic()
            connection.settimeout(max(left_s, _SHORTEST_S))
            try:
                return call()
            except TimeoutError:
                if time.monotonic() >= self._until_s:
                    raise self._error(
                        self._where, f'no {self.missing} in {self._timeout_s:g} s') from None
                if time.monotonic() >= self._silent_s:
                    self._silent_s = math.inf
                    self._on_silence(f'{self._where}: no {self.missing} for {SILENCE_S:g} s; '
                                     f'waiting up to {self._timeout_s:g} s')


def look_up(host: str, port: int, is_closed: Callable[[], bool]) -> Addresses:
    """Return the addresses of ``host``."""
    # is_closed: returns whether the addresses are no longer needed; called every 50 ms.
    # Returns at least one address, in the order in which they are to be tried.
    try:
        return addresses_of(host, port, flags=socket.AI_NUMERICHOST)
    except OSError:
        pass
    found: Future[Addresses] = Future()

    def resolve() -> None:
        try:
            found.set_result(addresses_of(host, port))
        except Exception as error:  # noqa: BLE001
            # Without a result the caller would wait for good.
            found.set_exception(error)

    threading.Thread(target=resolve, daemon=True, name='look up').start()
    while not is_closed():
        if wait([found], _PERIOD_S).done:
            return found.result()
    raise ConnectionAbortedError(_ENDED)


def addresses_of(host: str, port: int, kind: socket.SocketKind = socket.SOCK_STREAM,
                 flags: int = 0) -> Addresses:
    """Return the addresses of a host; the wait for the resolver cannot be canceled."""
    # flags: as for ``getaddrinfo``.
    try:
        return socket.getaddrinfo(host, port, type=kind, flags=flags)
    except UnicodeError as error:
        # A label of the name is empty or longer than 63 characters.
        raise OSError(f'not a valid host name: {host} ({error})') from error
    except socket.gaierror as error:
        raise OSError(
            f'the host name {host} cannot be looked up: {reason_of(error)}') from error


def resolved(address: str) -> str:
    """
    Return an address with the number of its host, the same one for each of this machine.

    :param address: ``host:port``; another text is returned as it is.
    :raises OSError: if the host is not found, which may take long.
    """
    host, _, port = address.rpartition(':')
    if not host or not port.isdecimal():
        return address
    found = sorted(addresses_of(host, int(port), socket.SOCK_DGRAM))
    for family, kind, _, _, place in found:
        with suppress(OSError), socket.socket(family, kind) as probe:
            # Only an address of this machine can be bound.
            probe.bind((place[0], 0))
            return f'localhost:{port}'
    return f'{found[0][4][0]}:{port}'


def keep_alive(connection: socket.socket, idle_s: int, interval_s: int, n_probes: int) -> None:
    """Have the kernel find a peer that vanishes without closing (half-open connection)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (('TCP_KEEPIDLE', idle_s), ('TCP_KEEPINTVL', interval_s),
                          ('TCP_KEEPCNT', n_probes)):
        if hasattr(socket, option):  # not on every operating system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class DatagramPort:
    """
    A UDP port; it is open until :meth:`close`.

    :param host: address of this machine at which datagrams are received.
    :param port: 1 to 65535.
    :ivar n_dropped: datagrams that the system dropped before the last one that was received, if
        it counts them, as Linux does.
    :raises TransportError: if it cannot be opened.
    """

    def __init__(self, host: str, port: int) -> None:
        self.n_dropped = 0
        try:
            family, *_, address = addresses_of(
                host, port, socket.SOCK_DGRAM, socket.AI_PASSIVE)[0]
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
            for option, value in ((socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES), (_SO_RXQ_OVFL, 1)):
                with suppress(OSError):
                    self._socket.setsockopt(socket.SOL_SOCKET, option, value)
            try:
                self._socket.bind(address)
            except OSError:
                self._socket.close()
                raise
        except OSError as error:
            raise TransportError(f'UDP {host}:{port}', reason_of(error),
                                 'a free port at an address of this machine') from error

    def receive(self, timeout_s: float) -> bytes | None:
        """
        Return the next datagram.

        :param timeout_s: longest wait.
        :returns: None if none arrives in time, or after :meth:`interrupt`.
        """
        self._socket.settimeout(timeout_s)
        try:
            data, notes, _, _ = self._socket.recvmsg(
                _MAX_DATAGRAM_BYTES, socket.CMSG_SPACE(_DROPS.size))
        except (BlockingIOError, TimeoutError):
            return None
        for level, kind, note in notes:
            if (level, kind) == (socket.SOL_SOCKET, _SO_RXQ_OVFL):
                [self.n_dropped] = _DROPS.unpack(note[:_DROPS.size])
        return data or None

    def waiting(self) -> Iterator[bytes]:
        """Yield the datagrams that have arrived, no more than the system keeps."""
        n_bytes = 0
        while n_bytes < _RECEIVE_BUFFER_BYTES and (data := self.receive(0.0)) is not None:
            n_bytes += len(data)
            yield data

    def interrupt(self) -> None:
        """End a wait, and every later one; may be called from any thread."""
        # It is not connected, which is an error, and the wait ends nevertheless.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the port, from the thread that receives; a second call has no effect."""
        self._socket.close()


def free_port(host: str) -> int:
    """Return a port that no program listens on; another program may take it before it is used."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
    return port


def is_listening(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _REPLY_S):
            return True
    except OSError:
        return False

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Addresses of host names, a UDP port at one, and the TCP ports of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
import select
import socket
import threading
from typing import Any, TypeAlias

from state_sensor_ros.errors import reason_of, TransportError

# Time between two checks whether the wait was cancelled.
_PERIOD_S = 0.05

# Family, kind, protocol, canonical name, address.
Addresses: TypeAlias = Sequence[
    tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]]
# Room for all parts of a message, which a program sends faster than they are read.
_RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024
_MAX_DATAGRAM_BYTES = 65536
_REPLY_S = 1.0


def look_up(host: str, port: int, is_closed: Callable[[], bool]) -> Addresses:
    """
    Return the addresses of ``host``.

    :param host: name, or address in digits, which needs no resolver and no thread.
    :param port: TCP port, part of each address.
    :param is_closed: returns whether the addresses are no longer needed; called every 50 ms.
    :returns: at least one address, in the order in which they are to be tried.
    :raises OSError: if the host has no address, its name is not valid, or ``is_closed`` returns
        true before the addresses are found.
    """
    try:
        return addresses_of(host, port, flags=socket.AI_NUMERICHOST)
    except OSError:
        pass
    results: SimpleQueue[Addresses | OSError] = SimpleQueue()
    threading.Thread(target=_resolve, args=(host, port, results), daemon=True,
                     name='look up').start()
    while not is_closed():
        try:
            result = results.get(timeout=_PERIOD_S)
        except Empty:
            continue
        if isinstance(result, OSError):
            raise result
        return result
    raise ConnectionAbortedError('ended on request')


def addresses_of(host: str, port: int, kind: socket.SocketKind = socket.SOCK_STREAM,
                 flags: int = 0) -> Addresses:
    """
    Return the addresses of a host; the wait for the resolver cannot be cancelled.

    :param host: name or address.
    :param port: port, part of each address.
    :param kind: kind of the socket.
    :param flags: as for ``getaddrinfo``.
    :raises OSError: if the host has no address, or its name is not valid.
    """
    try:
        return socket.getaddrinfo(host, port, type=kind, flags=flags)
    except UnicodeError as error:
        # A label of the name is empty or longer than 63 characters.
        raise OSError(f'not a valid host name: {host} ({error})') from error


def _resolve(host: str, port: int, results: SimpleQueue[Addresses | OSError]) -> None:
    try:
        results.put(addresses_of(host, port))
    except socket.gaierror as error:
        is_unknown = error.errno in (socket.EAI_NONAME, getattr(socket, 'EAI_NODATA', None))
        results.put(OSError(f'host name {host} is not known' if is_unknown else
                            f'the host name {host} cannot be looked up: {reason_of(error)}'))
    except OSError as error:
        results.put(error)


class DatagramPort:
    """
    A UDP port; it is open until :meth:`close`.

    :param host: address of this machine at which datagrams are received.
    :param port: 1 to 65535.
    :raises TransportError: if it cannot be opened.
    """

    def __init__(self, host: str, port: int) -> None:
        where = f'UDP {host}:{port}'
        try:
            family, *_, address = addresses_of(
                host, port, socket.SOCK_DGRAM, socket.AI_PASSIVE)[0]
            self._socket = socket.socket(family, socket.SOCK_DGRAM)
        except OSError as error:
            raise TransportError(where, reason_of(error), 'an address of this machine') from error
        try:
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                        _RECEIVE_BUFFER_BYTES)
            self._socket.bind(address)
        except OSError as error:
            self._socket.close()
            raise TransportError(where, reason_of(error),
                                 'a free port at an address of this machine') from error
        self._socket.setblocking(False)
        # A byte written to one end wakes a thread that waits at the other.
        self._waker, self._wakened = socket.socketpair()
        self._lock = threading.Lock()
        self._is_closed = False

    def receive(self, timeout_s: float) -> bytes | None:
        """
        Return the next datagram.

        :param timeout_s: longest wait.
        :returns: None if none arrives in time, or after :meth:`interrupt`.
        """
        ready, _, _ = select.select((self._socket, self._wakened), (), (), timeout_s)
        if self._wakened in ready or self._socket not in ready:
            return None
        try:
            return self._socket.recv(_MAX_DATAGRAM_BYTES)
        except BlockingIOError:
            # The kernel has dropped it: its checksum was wrong.
            return None

    def interrupt(self) -> None:
        """End a wait, and every later one; may be called from any thread."""
        with self._lock:
            if not self._is_closed:
                self._waker.send(b'\0')

    def close(self) -> None:
        """Close the port, from the thread that receives; a second call has no effect."""
        with self._lock:
            self._is_closed = True
            for end in (self._socket, self._waker, self._wakened):
                end.close()


def free_port(host: str) -> int:
    """
    Return a port that no program listens on; another program may take it before it is used.

    :param host: address of this machine.
    """
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
    return port


def is_listening(host: str, port: int) -> bool:
    """
    Return whether a connection can be made.

    :param host: address of this machine.
    :param port: port that a program may listen on.
    """
    try:
        with socket.create_connection((host, port), _REPLY_S):
            return True
    except OSError:
        return False

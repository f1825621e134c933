# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A UDP port from which one thread receives, and which any thread may close."""

from __future__ import annotations

from contextlib import suppress
import select
import socket
import threading

from state_sensor_ros.connections.lookup import addresses_of
from state_sensor_ros.errors import reason_of, TransportError

# Room for all parts of a message, which a program sends faster than they are read.
_RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024
_MAX_DATAGRAM_BYTES = 65536


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

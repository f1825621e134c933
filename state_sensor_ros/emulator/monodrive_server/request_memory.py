# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The memory for incomplete requests of all control connections together."""

from __future__ import annotations

from contextlib import suppress
import socket
import threading

# Four requests of the greatest size.
MAX_WAITING_BYTES = 2 ** 26


class RequestMemory:
    """
    Counts the bytes of requests that are being received.

    Where they are too many, the connection that has most of them is ended.

    :param max_bytes: of all connections.
    """

    def __init__(self, max_bytes: int = MAX_WAITING_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held: dict[socket.socket, int] = {}
        self._lock = threading.Lock()

    def hold(self, connection: socket.socket, n_bytes: int) -> None:
        """
        Note how much of a request has been received.

        :param connection: that it is received from.
        :param n_bytes: so far.
        """
        with self._lock:
            self._held[connection] = n_bytes
            while sum(self._held.values()) > self._max_bytes:
                greatest = max(self._held, key=self._held.__getitem__)
                del self._held[greatest]
                # Its thread, which waits for more, finds the end of the stream and closes it.
                with suppress(OSError):
                    greatest.shutdown(socket.SHUT_RDWR)

    def release(self, connection: socket.socket) -> None:
        """Note that no request of a connection is being received."""
        with self._lock:
            self._held.pop(connection, None)

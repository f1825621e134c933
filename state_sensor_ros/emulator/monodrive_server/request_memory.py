# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A limit on the memory for incomplete requests of all control connections together."""

from __future__ import annotations

from contextlib import suppress
import socket
import threading

# Three requests of 16 MiB beside the longest one, which may be a trajectory of an hour.
MAX_OTHER_BYTES = 3 * 2 ** 24


class RequestMemory:
    """
    Counts the bytes of requests that are being received.

    If all of them but the longest one have too many, the longest of these others is ended.
    """

    def __init__(self) -> None:
        self._held: dict[socket.socket, int] = {}
        self._lock = threading.Lock()

    def hold(self, connection: socket.socket, n_bytes: int) -> None:
        """
        Note how much of a request has been received.

        :param connection: connection from which it is received.
        :param n_bytes: number of bytes so far.
        """
        with self._lock:
            self._held[connection] = n_bytes
            *others, _ = sorted(self._held, key=self._held.__getitem__)
            while sum(self._held[other] for other in others) > MAX_OTHER_BYTES:
                ended = others.pop()
                del self._held[ended]
                # Its thread, which waits for more, finds the end of the stream and closes it.
                with suppress(OSError):
                    ended.shutdown(socket.SHUT_RDWR)

    def release(self, connection: socket.socket) -> None:
        """Note that no request of a connection is being received."""
        with self._lock:
            self._held.pop(connection, None)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A wait for a peer with a time-out, and with one report after a second of silence.

With a time-out of 25 s::

    0 s            1 s                          25 s
    +--------------+----------------------------+
    wait           on_silence(text), once       TransportError
"""

from __future__ import annotations

from collections.abc import Callable
import socket
import time
from typing import TypeVar

from state_sensor_ros.errors import TransportError
from state_sensor_ros.payloads import ignore

# A reply of a simulator that is not busy takes milliseconds.
SILENCE_S = 1.0
# A time-out of 0 would make the socket non-blocking.
_SHORTEST_S = 1e-3

OnSilence = Callable[[str], None]
_Result = TypeVar('_Result')


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
        self._is_reported = False
        self._began_s = time.monotonic()

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
            connection.settimeout(self._left_s())
            try:
                return call()
            except TimeoutError:
                self._timed_out()

    def _left_s(self) -> float:
        """Return the time until the report or, after it, until the time-out, s."""
        limit_s = self._timeout_s if self._is_reported else min(SILENCE_S, self._timeout_s)
        return max(self._began_s + limit_s - time.monotonic(), _SHORTEST_S)

    def _timed_out(self) -> None:
        elapsed_s = time.monotonic() - self._began_s
        if elapsed_s >= self._timeout_s:
            raise self._error(self._where, f'no {self.missing} in {self._timeout_s:g} s')
        if elapsed_s >= SILENCE_S and not self._is_reported:
            self._is_reported = True
            self._on_silence(f'{self._where}: no {self.missing} for {SILENCE_S:g} s; '
                             f'waiting up to {self._timeout_s:g} s')

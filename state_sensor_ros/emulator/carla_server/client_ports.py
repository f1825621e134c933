# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Three consecutive ports that stay bound, and each accept one client while they are open."""

from __future__ import annotations

from contextlib import ExitStack, suppress
import socket
import time

from state_sensor_ros.emulator.threaded_server import (
    BACKLOG,
    listen,
    reserve,
    shut_down_connection,
)
from state_sensor_ros.errors import TransportError

# Three consecutive ports are nearly always free: so many failures have another cause.
MAX_TRIES = 50
# Between two tries to bind a port that was open a moment ago.
RESERVE_PAUSE_S = 0.05


class ClientPort:
    """
    A port that stays bound, and accepts one client while it is open.

    A port that is bound and does not listen refuses connections. Only the accepting thread opens
    and closes it, by :meth:`apply`.

    :param listener: listening socket.
    :ivar client: its connection, None before it connects and after it is lost.
    :ivar holder: the connection for which the port accepts no other one, lost or not.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.number: int = listener.getsockname()[1]
        self._address: str = listener.getsockname()[0]
        self._is_open = True
        self.is_wanted_open = True
        self.client: socket.socket | None = None
        self.holder: socket.socket | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the port is open or closed as ``is_wanted_open`` requires."""
        return self._is_open is self.is_wanted_open

    @property
    def accepts(self) -> bool:
        """Whether a client may be accepted."""
        return self._is_open and self.is_wanted_open and self.holder is None

    def apply(self) -> None:
        """Open or close the port as required; connections in the backlog are reset."""
        if self._is_open and not self.is_wanted_open:
            self.listener.close()
            self.listener = _reserve_again(self._address, self.number)
        elif self.is_wanted_open and not self._is_open:
            self.listener.listen(BACKLOG)
        self._is_open = self.is_wanted_open

    def drop_client(self) -> None:
        """End the connection of the client, if there is one; its thread reads what has arrived."""
        client, self.client = self.client, None
        if client is not None:
            shut_down_connection(client)


def _reserve_again(address: str, number: int) -> socket.socket:
    """Bind a port that was open a moment ago."""
    for _ in range(MAX_TRIES):
        with suppress(TransportError):
            return reserve(address, number)
        time.sleep(RESERVE_PAUSE_S)
    return reserve(address, number)


def three_ports(bind: str, port: int) -> list[ClientPort]:
    """
    Open the port below ``port``, it and the one above it.

    :param bind: address of all ports.
    :param port: the one in the middle, 0 picks one.
    :raises TransportError: if the three ports cannot be opened.
    """
    if port:
        return _ports_around(bind, port)
    for _ in range(MAX_TRIES):
        with listen(bind, 0) as free:
            candidate = free.getsockname()[1]
        with suppress(TransportError):
            return _ports_around(bind, candidate)
    raise TransportError(bind, f'no three free ports in a row in {MAX_TRIES} tries; '
                         'give the middle one of three as --port')


def _ports_around(bind: str, port: int) -> list[ClientPort]:
    with ExitStack() as stack:
        listeners = [stack.enter_context(listen(bind, number))
                     for number in (port - 1, port, port + 1)]
        stack.pop_all()
    return [ClientPort(listener) for listener in listeners]

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Addresses of a host name, looked up in a thread so that the caller's wait can be cancelled.

The system's resolver may block for minutes and cannot be interrupted. If the wait is cancelled
meanwhile, its thread, a daemon, is left to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
import socket
import threading
from typing import Any, TypeAlias

from state_sensor_ros.errors import reason_of

# Time between two checks whether the wait was cancelled.
_PERIOD_S = 0.05

# Family, kind, protocol, canonical name, address.
Addresses: TypeAlias = Sequence[
    tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]]


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
        raise OSError(f'no host can have the name {host} ({error})') from error


def _resolve(host: str, port: int, results: SimpleQueue[Addresses | OSError]) -> None:
    try:
        results.put(addresses_of(host, port))
    except socket.gaierror as error:
        is_unknown = error.errno in (socket.EAI_NONAME, getattr(socket, 'EAI_NODATA', None))
        results.put(OSError(f'host name {host} is not known' if is_unknown else
                            f'the host name {host} cannot be looked up: {reason_of(error)}'))
    except OSError as error:
        results.put(error)

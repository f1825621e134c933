# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The addresses of a host, looked up so that the wait for them can be ended.

May know: the resolver, threads. Must not know: what is connected to. The resolver itself may wait
for minutes, and no call interrupts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
import socket
import threading
from typing import Any, TypeAlias

# How often a wait looks at whether it is still wanted.
_PERIOD_S = 0.05

# Family, kind, protocol, canonical name, address.
Addresses: TypeAlias = Sequence[
    tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]]


def look_up(host: str, port: int, is_closed: Callable[[], bool]) -> Addresses:
    """
    Return the addresses of ``host`` in the order in which they are to be tried.

    :param is_closed: tells whether the addresses are no longer needed.
    :raises OSError: when there are none, or when ``is_closed`` becomes true before they are found.
    """
    try:
        # A number needs no resolver.
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        pass
    results: SimpleQueue[Addresses | OSError] = SimpleQueue()
    threading.Thread(target=_resolve, args=(host, port, results), daemon=True,
                     name='look up').start()
    while not is_closed():
        try:
            found = results.get(timeout=_PERIOD_S)
        except Empty:
            continue
        if isinstance(found, OSError):
            raise found
        return found
    raise ConnectionAbortedError('a request to end')


def _resolve(host: str, port: int, results: SimpleQueue[Addresses | OSError]) -> None:
    try:
        results.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except OSError as error:
        results.put(error)
    except UnicodeError as error:
        # A part of the name that is empty or longer than 63 characters.
        results.put(OSError(f'no host name ({error})'))

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The base of the mock servers: listening sockets, threads, and the pace of the frames."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
import errno
from functools import cache
import os
import selectors
import socket
import sys
import threading
from typing import Literal, TypeVar

from state_sensor_ros.errors import FramingError, TransportError
from state_sensor_ros.source import Schedule
from state_sensor_ros.texts import counted

JOIN_S = 5.0
# Pause of the accepting thread: without free file descriptors a listener stays readable, and the
# thread would spin.
ACCEPT_PAUSE_S = 0.005
# After this time the set of listeners is read again.
ACCEPT_S = 0.05
BACKLOG = 64
# Of each port; further ones are closed.
MAX_CONNECTIONS = 256
# Poll needs no file descriptor of its own; Windows does not have it.
_Selector = getattr(selectors, 'PollSelector', selectors.SelectSelector)
CHUNK_BYTES = 2**16

Self = TypeVar('Self', bound='ThreadedServer')
# `real`: by simulated time; `max`: as fast as the readers read; a number: frames per second.
Rate = float | Literal['real', 'max']


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What all mock servers have in common."""

    port: int = 0  # port of the frames, 0 picks a free one
    bind: str = '127.0.0.1'  # address of all ports
    # `real` (by simulated time), `max` (as fast as the readers) or frames per second.
    rate: Rate = 'real'
    n_frames: int | None = None  # number of frames to send, None for no limit


class Pacer(Schedule):
    """Waits between frames so that the average rate is kept."""

    def __init__(self, rate: Rate, stop: threading.Event) -> None:
        super().__init__(0.0 if rate == 'max' else 1.0)
        self._stop, self._step_s = stop, None if isinstance(rate, str) else 1.0 / rate

    def wait(self, period_s: float) -> None:
        """Wait until the next frame is due."""
        # period_s: simulated time since the previous frame, s.
        while left_s := self.time_left(self._step_s or period_s):
            if self._stop.wait(left_s):
                return


class ThreadedServer(ABC):
    """
    A server that runs between ``start`` and ``close``, or in a ``with`` block.

    Subclasses open their ports before they call this constructor.
    """

    def __init__(self) -> None:
        self.n_sent = 0
        self._sessions: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._acceptor: threading.Thread | None = None
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._finished = threading.Event()

    def __enter__(self: Self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _listeners(self) -> Iterable[socket.socket]:
        """Return the listening sockets; the set may change."""

    @abstractmethod
    def _accept(self, listener: socket.socket) -> None:
        """Accept the connections that wait on a listener, if they still do."""

    @abstractmethod
    def _play(self) -> None:
        """Send frames until closing or until the last one, then set ``_finished``."""

    @abstractmethod
    def _close_ports(self) -> None:
        """Close the listeners and the connections that receive frames."""

    def start(self) -> None:
        """Start the threads; connections made before are accepted, too."""
        self._begin(self._play)
        self._acceptor = self._begin(self._accept_all)

    def close(self) -> None:
        """Close all connections and end all threads; a second call has no effect."""
        self._closing.set()
        self._wake()
        # First no more connections are accepted, then threads blocked in a send are released.
        if self._acceptor is not None:
            self._acceptor.join(JOIN_S)
        self._close_ports()
        for session in tuple(self._sessions):
            close_connection(session)
        for thread in self._threads:
            thread.join(JOIN_S)
        self._finished.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the last frame is sent."""
        return self._finished.wait(timeout_s)

    def _begin(self, work: Callable[..., None], *args: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=args, name=work.__name__, daemon=True)
        self._threads = [*(other for other in self._threads if other.is_alive()), thread]
        thread.start()
        return thread

    def _wake(self) -> None:
        """Make the sending thread look whether something has changed."""
        with self._changed:
            self._changed.notify_all()

    def _accept_all(self) -> None:
        while not self._closing.wait(ACCEPT_PAUSE_S):
            with _Selector() as selector:
                for listener in self._listeners():
                    selector.register(listener, selectors.EVENT_READ)
                ready = [key.fileobj for key, _ in selector.select(ACCEPT_S)]
            for listener in self._listeners():
                if listener in ready:
                    self._accept(listener)
            self._wake()

    def _begin_session(self, listener: socket.socket,
                       serve: Callable[[socket.socket], None]) -> None:
        """Accept a connection and run ``serve`` on it in a thread of its own."""
        if (session := accept_connection(listener, len(self._sessions))) is None:
            return
        self._sessions.add(session)
        self._begin(self._run_session, session, serve)

    def _run_session(self, session: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        try:
            serve(session)
        except (FramingError, OSError, RecursionError, OverflowError, UnicodeError):
            return  # no valid message, a lost connection, or JSON that is not written again
        finally:
            self._sessions.discard(session)
            close_connection(session)


def listen(bind: str, port: int) -> socket.socket:
    """Open a listening socket, non-blocking; ``port``: 0 picks a free one."""
    try:
        listener = socket.create_server(
            (bind, port), family=socket.AF_INET6 if ':' in bind else socket.AF_INET,
            backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        number = getattr(error, 'errno', None)
        reason = ('the port is in use' if number == errno.EADDRINUSE
                  else os.strerror(number).lower() if number and number > 0 else str(error))
        raise TransportError(f'cannot listen on {bind}:{port}', reason) from error
    listener.setblocking(False)
    return listener


@cache
def _warn_once(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f'warning: {text}\n')


def accept_connection(listener: socket.socket, n_open: int = 0) -> socket.socket | None:
    """Accept one connection to a port that has some, unless these are as many as it may have."""
    # Returns a blocking socket; None if no connection waits or no file descriptor is free.
    try:
        connection, _ = listener.accept()
    except OSError:
        return None
    if n_open >= MAX_CONNECTIONS:
        _warn_once(f'a port has {counted(MAX_CONNECTIONS, "connection")}: further ones are closed')
        connection.close()
        return None
    connection.setblocking(True)
    return connection


def receive(connection: socket.socket, size: int, what: str, *, may_end: bool = False) -> bytes:
    """Receive bytes of a message; with ``may_end`` none if the peer has closed before them."""
    data = bytearray()
    while len(data) < size and (part := connection.recv(min(size - len(data), CHUNK_BYTES))):
        data += part
    if len(data) < size and (data or not may_end):
        raise FramingError(what, f'{counted(len(data), "byte")}, then the end',
                           counted(size, 'byte'))
    return bytes(data)


def close_connection(connection: socket.socket) -> None:
    """Close a connection; the peer still receives what was sent, blocked calls on it return."""
    shut_down_connection(connection)
    connection.close()


def shut_down_connection(connection: socket.socket) -> None:
    """End a connection for both sides; its thread still reads what has arrived, and closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The health of a relay, from the events of its process.

State (``health.state``)::

    state       event                                                  next state
    ----------  -----------------------------------------------------  ----------
    WAITING     a client and the server are connected                   CONNECTED
    CONNECTED   the client closes the copied connection and keeps the   CONNECTED
                described one: an episode ends
                the server closes the copied connection, the client     WAITING
                has left, the process ended
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
import errno
from functools import partial
import json
import os
from pathlib import Path
import socket
import subprocess
import sys
import threading
from typing import Any

from state_sensor_ros.connections.connection import addresses_of
from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.connections.relay_copies import FRAME, HEAD, MESSAGE
from state_sensor_ros.errors import reason_of, TransportError
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import Health, Report, SourceState
from state_sensor_ros.texts import counted

_BACKLOG = 16
# The server opens its ports a little after it has announced them.
_LATE_PORT_S = 10.0
# The process imports only the standard library and this package: searching the other installed
# packages would take longer than its start.
_PROGRAM = ('import sys; sys.path.append(sys.argv[2]); '
            'from state_sensor_ros.connections.relay_process import main; main()')
# Otherwise glibc would keep the memory of a large frame for the thread that freed it.
_ENVIRONMENT = {'MALLOC_MMAP_THRESHOLD_': str(2 ** 20), 'MALLOC_ARENA_MAX': '1'}
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]
# The process ends at once when its link is closed.
_END_S = 1.0


class RelayHealth:
    """Counts the connections of clients."""

    # servers: ``host:port`` of each port of the server.
    # own: ``host:port`` of each port of the relay.
    # silence: likely reason if the server sends nothing, for diagnostics.

    def __init__(self, health: Health, report: Report, servers: Sequence[str],
                 own: Sequence[str], *, copied: int, described: int, max_frame_bytes: int,
                 silence: str) -> None:
        self.health = health
        self._report, self._servers, self._own = report, servers, own
        self._copied, self._described = copied, described
        self._max_frame_bytes, self._silence = max_frame_bytes, silence
        self._n_copied = self._n_described = 0

    @property
    def has_left(self) -> bool:
        """Whether a client has had frames, and none is connected any more."""
        return bool(self.health.n_connects) and not self._n_copied and not self._n_described

    def begin(self) -> None:
        """Note that the process has begun."""
        self._n_copied = self._n_described = 0
        self.health.fail(self._no_client())

    def note_frame(self, n_bytes: int) -> None:
        """Note a frame of the copied port; the last one may come after the end of its episode."""
        if self._n_copied:
            self.health.silence = ''
        self.health.n_bytes += n_bytes

    def note(self, event: dict[str, Any]) -> None:
        kind, where = event['event'], self._servers[event.get('port', self._copied)]
        if kind == 'dropped':
            self._report('relay', f'{where}: {counted(event["n"], "frame")} dropped so far: '
                         'the server sends faster than this machine reads')
        elif kind == 'too long':
            self.health.n_protocol_errors += 1
            self.health.last_error = (f'{where}: found a frame of {event["n"]} bytes; expected at '
                                      f'most max_frame_bytes, {self._max_frame_bytes}')
        elif kind == 'refused':
            self._warn(f'cannot connect to {where} for {_LATE_PORT_S:g} s: '
                       f'{event["error"].lower()}; is the server running?')
        elif kind == 'turned away':
            self._warn(f'{self._own[event["port"]]}: a client of the relay is rejected: '
                       f'{event["error"]}')
        elif event['port'] == self._copied:
            if kind in ('connected', 'closed'):
                self._count_copied(event)
        elif event['port'] == self._described:
            self._count_described(event)

    def _warn(self, text: str) -> None:
        self.health.last_error = text
        self._report('relay', text)

    def _count_copied(self, event: dict[str, Any]) -> None:
        health = self.health
        if event['event'] == 'connected':
            self._n_copied += 1
            # The next episode of a client does not count as another connection.
            health.n_connects += health.state is not SourceState.CONNECTED
            health.silence = self._silence
            health.state = SourceState.CONNECTED
            return
        self._n_copied -= 1
        is_cut = event['by'] == 'server' and event['n'] > 0
        health.n_cut_packets += is_cut
        why = _closed(event) + (f' {event["n"]} bytes into a frame' if is_cut else '')
        if self._n_copied:
            health.last_error = why
        elif event['by'] == 'client' and self._n_described:
            health.silence = 'the client of the relay has ended its episode and not begun another'
        else:
            health.fail(why)

    def _count_described(self, event: dict[str, Any]) -> None:
        health, kind = self.health, event['event']
        self._n_described += (kind == 'connected') - (kind == 'closed')
        if self._n_copied:
            return
        if health.state is SourceState.CONNECTED:
            if kind == 'closed' and not self._n_described:
                health.fail(_closed(event))
        elif kind == 'waiting':
            health.last_error = (f'cannot connect to {self._servers[self._described]}: '
                                 'connection refused; is the server running?')
        elif kind == 'connected':
            health.last_error = ('a client of the relay is connected to '
                                 f'{self._servers[self._described]}, and not to '
                                 f'{self._servers[self._copied]}')
        else:
            health.last_error = self._no_client()

    def _no_client(self) -> str:
        first, *_, last = self._own
        return f'no client is connected to the relay, {first} to {last.rpartition(":")[2]}'


def _closed(event: dict[str, Any]) -> str:
    return f'the {event["by"]} closed the connection'


class Relay(LiveSource):
    """
    Packets of one port of a server, while its client connects through this relay.

    Its ports stay open while its process is started again, as far as a client may wait.

    :param settings: ``host`` of the server, ``max_frame_bytes``, the longest packet, longer
        frames are only forwarded, and the waits before the process is started again.
    :param first_port: first port of the server; the others follow it.
    :param bind: address of the relay's own ports.
    :param relay_port: the first of them.
    :param report: called with a kind, for throttling, and a line about what is lost.
    :param n_ports: number of ports.
    :param copied: number of the port whose frames are the packets, from 0.
    :param described: number of the port whose messages describe the frames.
    :param description_of: returns what is appended to the frames after such a message, None for
        a message that changes nothing.
    :param decode: returns the frames of such a packet, or raises DecodeError.
    :param reconnect: whether to relay further clients when the first one has left; otherwise the
        packets end then, and a port that cannot be opened is an error, as is the end of the
        process.
    :param silence: likely reason if the server sends nothing, for diagnostics.
    """

    def __init__(self, settings: Settings, first_port: int, bind: str, relay_port: int,
                 report: Report, *, n_ports: int, copied: int, described: int,
                 description_of: Callable[[bytes], bytes | None],
                 decode: Callable[[bytes], Iterable[Frame]], silence: str,
                 reconnect: bool = True) -> None:
        super().__init__(settings, 'relay', reconnect=reconnect)
        self.health.state = SourceState.WAITING
        self._ports = range(first_port, first_port + n_ports)
        self._bind, self._own_ports = bind, range(relay_port, relay_port + n_ports)
        self._clients = RelayHealth(
            self.health, report, [f'{settings.host}:{port}' for port in self._ports],
            [f'{bind}:{port}' for port in self._own_ports], copied=copied, described=described,
            max_frame_bytes=settings.max_frame_bytes, silence=silence)
        self._copied, self._described = copied, described
        self._description_of, self._description = description_of, b''
        self._decode = decode
        self._listeners: list[socket.socket] = []
        self._process: subprocess.Popen[bytes] | None = None
        # Guards the link, which another thread shuts down.
        self._lock = threading.Lock()
        self._link: socket.socket | None = None

    def frames(self) -> Iterator[Frame]:
        """Yield frames; open the ports and the process again until closed."""
        try:
            yield from super().frames()
        finally:
            self._close_ports()

    def receive(self) -> Iterator[Frame]:
        """
        Open the ports, start the process and yield frames until it ends.

        :raises TransportError: if a port cannot be opened or the process cannot be started; if
            the process ends, unless it is to be started again.
        """
        if not self._listeners:
            self._open_ports()
        ours, theirs = socket.socketpair()
        with self._lock:
            self._link = ours
        with theirs:
            if self.is_closing:
                return
            self._process = self._start(theirs)
        self._clients.begin()
        while (received := _read(ours)) is not None:
            kind, body = received
            if kind == FRAME:
                self._clients.note_frame(len(body))
                body += self._description
                yield from self.decoded(partial(self._decode, bytes(body)))
            elif kind == MESSAGE:
                self._describe(bytes(body))
            else:
                self._clients.note(json.loads(body))
                if self._clients.has_left and not self._reconnect:
                    self.close()
        if not self._reconnect:
            raise TransportError('relay', 'its process has ended')

    def end_reason(self) -> str:
        """Return why :meth:`receive` ended without an error."""
        return 'the process of the relay ended'

    def disconnect(self) -> None:
        """End the process."""
        with self._lock:
            link, self._link = self._link, None
        if link is not None:
            link.close()
        process, self._process = self._process, None
        if process is not None:
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def interrupt(self) -> None:
        """End all connections soon, from any thread."""
        with self._lock:
            if self._link is not None:
                self._link.shutdown(socket.SHUT_RDWR)

    def _open_ports(self) -> None:
        """
        Open the ports of the relay.

        :raises TransportError: if one cannot be opened.
        """
        for port in self._own_ports:
            try:
                self._listeners.append(_listening(self._bind, port))
            except OSError as error:
                self._close_ports()
                raise self._cannot_listen(port, error) from error

    def _close_ports(self) -> None:
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.close()

    def _cannot_listen(self, port: int, error: OSError) -> TransportError:
        where = f'{self._bind}:{port}'
        if isinstance(error, socket.gaierror) or error.errno in (None, errno.EADDRNOTAVAIL):
            return TransportError(where, f'{reason_of(error)}; relay_bind must be an address of '
                                  'this machine')
        if error.errno == errno.EADDRINUSE:
            return TransportError(where, 'the port of the relay is in use')
        return TransportError(where, reason_of(error))

    def _start(self, link: socket.socket) -> subprocess.Popen[bytes]:
        """
        Start the process.

        :raises TransportError: if the system cannot.
        """
        descriptors = [listener.fileno() for listener in self._listeners]
        options = json.dumps({
            'link': link.fileno(), 'listeners': descriptors, 'host': self.settings.host,
            'ports': list(self._ports), 'copied': self._copied, 'described': self._described,
            'max_frame_bytes': self.settings.max_frame_bytes, 'patience_s': _LATE_PORT_S})
        try:
            # A session of its own: a signal to the group of the node does not cut a client off
            # before the node has ended.
            return subprocess.Popen(
                [sys.executable, '-I', '-S', '-c', _PROGRAM, options, str(_PACKAGE_PARENT)],
                stdin=subprocess.DEVNULL, env={**os.environ, **_ENVIRONMENT},
                pass_fds=[*descriptors, link.fileno()], start_new_session=True)
        except OSError as error:
            raise TransportError('cannot start the relay', reason_of(error)) from error

    def _describe(self, message: bytes) -> None:
        description = self._description_of(message)
        if description is not None:
            self._description = description


def _listening(bind: str, port: int) -> socket.socket:
    family, _, _, _, address = addresses_of(bind, port, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _read(link: socket.socket) -> tuple[int, bytearray] | None:
    """Return the next kind and body, None if the process has ended."""
    head = _receive(link, HEAD.size)
    if head is None:
        return None
    kind, length = HEAD.unpack(head)
    body = _receive(link, length)
    return None if body is None else (kind, body)


def _receive(link: socket.socket, n_bytes: int) -> bytearray | None:
    data = bytearray(n_bytes)
    view = memoryview(data)
    while len(view):
        try:
            n = link.recv_into(view, 0, socket.MSG_WAITALL)
        except OSError:
            return None
        if not n:
            return None
        view = view[n:]
    return data

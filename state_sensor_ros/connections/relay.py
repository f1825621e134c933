# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A relay between a client and a server with several ports, as a source of the frames that pass.

The forwarding is done by a process of its own, :mod:`relay_process`, which this module starts,
reads and starts again. The listening sockets stay open here meanwhile.

State of the source (``health.state``)::

    state       event                                              next state
    ----------  -------------------------------------------------  ----------
    WAITING     a client and the server are connected               CONNECTED
    CONNECTED   the last such pair has closed, the process ended    WAITING
    any         close()                                             CLOSED
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, ExitStack, suppress
import errno
import json
import math
from pathlib import Path
import socket
import subprocess
import sys
import threading
from typing import Any

from state_sensor_ros.connections import relay_process
from state_sensor_ros.connections.relay_process import FRAME, HEAD, MESSAGE
from state_sensor_ros.errors import counted, reason_of, TransportError
from state_sensor_ros.payloads import Packet, Report
from state_sensor_ros.pipeline.source import Health, SourceState
from state_sensor_ros.settings import Settings

_BACKLOG = 16
# The server opens its ports a little after it has announced them.
_LATE_PORT_S = 10.0
# The process ends at once when its link is closed.
_END_S = 1.0


class Relay:
    """
    Packets of one port of a server, while its client connects through this relay.

    :param host: of the server.
    :param first_port: of the server; the others follow it.
    :param bind: address of the relay's own ports.
    :param relay_port: the first of them.
    :param report: called with a kind, for throttling, and a line about what is lost.
    :param n_ports: number of ports.
    :param copied: number of the port whose frames are the packets, from 0.
    :param described: number of the port whose messages describe the frames.
    :param description_of: returns what is appended to the frames after such a message, None for
        a message that changes nothing.
    :param max_frame_bytes: longer frames are forwarded, but are no packets.
    :param reconnect_min: first wait before the ports are opened again, s; doubled up to
        ``reconnect_max``.
    :param reconnect: whether to relay further clients when the first one has left; otherwise the
        packets end then, and a port that cannot be opened is an error.
    :param silence: what it suggests that the server sends nothing, for diagnostics.
    """

    def __init__(self, host: str, first_port: int, bind: str, relay_port: int, report: Report, *,
                 n_ports: int, copied: int, described: int,
                 description_of: Callable[[bytes], bytes | None], max_frame_bytes: int,
                 reconnect_min: float, reconnect_max: float, silence: str,
                 reconnect: bool = True) -> None:
        self.health = Health(state=SourceState.WAITING)
        self._host, self._ports = host, range(first_port, first_port + n_ports)
        self._bind, self._own_ports = bind, range(relay_port, relay_port + n_ports)
        self._described, self._description_of = described, description_of
        self._description = b''
        self._report, self._copied, self._max_frame_bytes = report, copied, max_frame_bytes
        self._reconnect_min, self._reconnect_max = reconnect_min, reconnect_max
        self._silence, self._reconnect = silence, reconnect
        self._n_open = 0
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._link: socket.socket | None = None

    def packets(self) -> Iterator[Packet]:
        """
        Yield packets; open the ports and the process again until closed.

        :raises TransportError: where a port cannot be opened, unless it is to be tried again.
        """
        delay_s = self._reconnect_min
        while not self._closing.is_set():
            try:
                with self._listeners() as listeners:
                    while not self._closing.is_set():
                        for packet in self._packets_of_a_process(listeners):
                            delay_s = self._reconnect_min
                            yield packet
                        self._wait('the process of the relay ended', delay_s)
                        delay_s = min(2 * delay_s, self._reconnect_max)
            except TransportError as error:
                if not self._reconnect:
                    self.health.state = SourceState.CLOSED
                    raise
                self._wait(str(error), delay_s)
                delay_s = min(2 * delay_s, self._reconnect_max)
        self.health.state = SourceState.CLOSED

    def reconfigure(self, settings: Settings) -> None:
        """Ignore ``settings``: no dynamic parameter in them affects the relay."""

    def close(self) -> None:
        """End :meth:`packets` and all connections soon, from any thread."""
        self._closing.set()
        with self._lock:
            if self._link is not None:
                with suppress(OSError):
                    self._link.shutdown(socket.SHUT_RDWR)

    def _wait(self, why: str, delay_s: float) -> None:
        if not self._closing.is_set():
            self.health.fail(why)
            self._closing.wait(delay_s)

    @contextmanager
    def _listeners(self) -> Iterator[list[socket.socket]]:
        """
        Open the ports of the relay.

        :raises TransportError: where one cannot be opened.
        """
        with ExitStack() as stack:
            listeners = []
            for port in self._own_ports:
                try:
                    listeners.append(stack.enter_context(_listening(self._bind, port)))
                except OSError as error:
                    raise self._cannot_listen(port, error) from error
            yield listeners

    def _cannot_listen(self, port: int, error: OSError) -> TransportError:
        where = f'{self._bind}:{port}'
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            return TransportError(where, reason_of(error),
                                  'an address of this machine as relay_bind')
        found = 'a port in use' if error.errno == errno.EADDRINUSE else reason_of(error)
        return TransportError(where, found, 'a free port for the relay')

    def _packets_of_a_process(self, listeners: list[socket.socket]) -> Iterator[Packet]:
        """Start the process; yield packets until it ends, and end it."""
        ours, theirs = socket.socketpair()
        with ours:
            with self._lock:
                self._link = ours
            if self._closing.is_set():
                theirs.close()
                return
            with theirs:
                process = self._start(listeners, theirs)
            self._n_open = 0
            self.health.fail(self._no_client())
            try:
                while (received := _read(ours)) is not None:
                    kind, body = received
                    if kind == FRAME:
                        self.health.silence = ''
                        self.health.n_packets += 1
                        self.health.n_bytes += len(body)
                        body += self._description
                        yield Packet(body, math.nan, 0, 0)
                    elif kind == MESSAGE:
                        self._describe(bytes(body))
                    else:
                        self._note(json.loads(body))
            finally:
                with self._lock:
                    self._link = None
                ours.close()
                _end(process)

    def _start(self, listeners: list[socket.socket],
               link: socket.socket) -> subprocess.Popen[bytes]:
        """
        Start the process.

        :raises TransportError: where the system cannot.
        """
        descriptors = [listener.fileno() for listener in listeners]
        options = json.dumps({
            'link': link.fileno(), 'listeners': descriptors, 'host': self._host,
            'ports': list(self._ports), 'copied': self._copied, 'described': self._described,
            'max_frame_bytes': self._max_frame_bytes, 'patience_s': _LATE_PORT_S})
        try:
            # A session of its own: a signal to the group of the node does not cut a client off
            # before the node has ended.
            return subprocess.Popen(
                [sys.executable, '-I', str(Path(relay_process.__file__)), options],
                stdin=subprocess.DEVNULL, pass_fds=[*descriptors, link.fileno()],
                start_new_session=True)
        except OSError as error:
            raise TransportError('relay', reason_of(error), 'a process of its own') from error

    def _describe(self, message: bytes) -> None:
        description = self._description_of(message)
        if description is not None:
            self._description = description

    def _note(self, event: dict[str, Any]) -> None:
        """Note an event of the process in the health."""
        health, kind = self.health, event['event']
        if kind == 'dropped':
            self._report('relay', f'{self._where(self._copied)}: found '
                         f'{counted(event["n"], "frame")} too many so far, which are dropped; '
                         'expected a node that reads as fast as the server sends')
        elif kind == 'too long':
            health.n_protocol_errors += 1
            health.last_error = (f'{self._where(self._copied)}: found a frame of {event["n"]} '
                                 f'bytes; expected at most max_frame_bytes, '
                                 f'{self._max_frame_bytes}')
        elif kind == 'refused':
            text = (f'{self._where(event["port"])}: found {event["error"].lower()} for '
                    f'{_LATE_PORT_S:g} s; expected the port of the server for the client of the '
                    'relay')
            health.last_error = text
            self._report('relay', text)
        elif event['port'] == self._copied:
            if kind in ('connected', 'closed'):
                self._count(event)
        elif event['port'] == self._described and not self._n_open:
            self._note_client(kind)

    def _note_client(self, kind: str) -> None:
        """Note how far a client is that has no connection to the copied port."""
        where = self._where(self._described)
        if kind == 'waiting':
            self.health.last_error = (f'{where}: found connection refused; expected the port of '
                                      'the server for the client of the relay')
        elif kind == 'connected':
            self.health.last_error = (f'a client of the relay is connected to {where}, and not '
                                      f'to {self._where(self._copied)}')
        else:
            self.health.last_error = self._no_client()

    def _no_client(self) -> str:
        first, *_, last = self._own_ports
        return f'no client is connected to the relay, {self._bind}:{first} to {last}'

    def _count(self, event: dict[str, Any]) -> None:
        """Note that a pair of connections of the copied port has begun or ended."""
        health = self.health
        if event['event'] == 'connected':
            self._n_open += 1
            health.n_connects += 1
            health.silence = self._silence
            health.state = SourceState.CONNECTED
            return
        self._n_open -= 1
        health.n_cut_packets += event['n'] > 0
        why = f'the {event["by"]} closed the connection' \
            + (f' {event["n"]} bytes into a frame' if event['n'] else '')
        if self._n_open:
            health.last_error = why
        else:
            health.fail(why)
            if not self._reconnect:
                self.close()

    def _where(self, number: int) -> str:
        return f'{self._host}:{self._ports[number]}'


def _listening(bind: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM,
                                                  flags=socket.AI_PASSIVE)[0]
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
    """Return the next kind and body, None where the process has ended."""
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


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process whose link is closed."""
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

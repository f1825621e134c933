# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A relay between the client of an episode and its server, which reads the measurements that pass.

Each port of a server accepts one connection (doc/protocol/carla.md#ports), so the client connects
here. Each port serves one client after another, with a thread for each direction; the end of one
side is the end of both::

    client  <--->  listener k  | up, down |  port k of the server  <--->  server
                                    | down of port 1: measurements
                                    v
                                  source

State (``health.state``)::

    state       event                                                    next state
    ----------  -------------------------------------------------------  ----------
    WAITING     a client and the server are connected on port 1          CONNECTED
    CONNECTED   the client ends port 1 and keeps port 0: its episode     CONNECTED
                ends
                the server ends port 1, or the client has left           WAITING
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
import socket
import threading
from typing import Final

from state_sensor_ros.connections.connection import addresses_of, Connection, keep_alive
from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.errors import FramingError, reason_of, TransportError, UnreachableError
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla import CarlaParameters
from state_sensor_ros.simulators.carla.frames import FrameMaker
from state_sensor_ros.simulators.carla.stream import (
    LATE_PORT_S,
    MeasurementFramer,
    parsed,
    silence_of_a_port,
)
from state_sensor_ros.source import Report, SourceState
from state_sensor_ros.texts import counted

N_PORTS: Final = 3
_WORLD, _MEASUREMENTS = 0, 1
# Measurements that wait for the node; the oldest of more are dropped.
_MAX_WAITING: Final = 64
# Pause between attempts to accept while no file descriptor is free.
_RETRY_S: Final = 0.05
_CHUNK_BYTES: Final = 2 ** 18
# Longest wait for the threads of connections that were shut down.
_END_S: Final = 1.0
# Silence before a peer is probed, between two probes, s; their number.
_KEEP_ALIVE: Final = (30, 10, 3)


class CarlaRelay(LiveSource):
    """
    Frames that pass between a client of ``carla.relay_port`` and the server.

    :param settings: ``port`` is the server's measurements port, between the two others.
    :param report: called with a kind, for throttling, and a line about what is lost.
    :param reconnect: whether to relay further clients when the first one has left.
    """

    def __init__(self, settings: Settings, report: Report, *, reconnect: bool = True) -> None:
        super().__init__(settings, 'relay', reconnect=reconnect)
        self.health.state = SourceState.WAITING
        self._own, self._report = settings.of(CarlaParameters), report
        self._maker = FrameMaker(self.faults)
        # Measurements, each with whether it begins an episode of the client.
        self._waiting: SimpleQueue[tuple[bytes, bool] | None] = SimpleQueue()
        self._begins = False
        self._n_dropped = 0
        # Guards what the threads of the ports note.
        self._lock = threading.Lock()
        self._open: set[int] = set()
        self._framer = MeasurementFramer(settings.max_frame_bytes)

    def receive(self) -> Iterator[Frame]:
        """
        Open the ports, and yield the frames that pass.

        :raises TransportError: if a port cannot be opened.
        """
        ended = threading.Event()
        with ExitStack() as stack:
            listeners = [stack.enter_context(_listening(
                self._own.relay_bind, self._own.relay_port + i)) for i in range(N_PORTS)]
            self.health.fail(self._no_client)
            for number, listener in enumerate(listeners):
                server = Connection(
                    self.settings.host, self.settings.port - _MEASUREMENTS + number)
                port = threading.Thread(target=self._serve, daemon=True, name='relay',
                                        args=(number, listener, server, ended))
                port.start()
                # Called in the reverse order.
                stack.callback(port.join, _END_S)
                stack.callback(server.shut_down)
                stack.callback(_shut_down, listener)
            stack.callback(ended.set)
            while not self.is_closing and (item := self._waiting.get()) is not None:
                yield from self.decoded(partial(self._frames_of, *item))

    def _frames_of(self, payload: bytes, begins: bool) -> Iterator[Frame]:
        self._maker.details = self.details
        yield replace(self._maker.frame(parsed(payload)), is_behind_gap=begins)

    def end_reason(self) -> str:
        """Return why :meth:`receive` ended without an error."""
        return 'the client of the relay has left'

    def interrupt(self) -> None:
        """End :meth:`receive` soon, from any thread."""
        self._waiting.put(None)

    @property
    def _no_client(self) -> str:
        own = self._own
        return (f'no client is connected to the relay, {own.relay_bind}:{own.relay_port} to '
                f'{own.relay_port + N_PORTS - 1}')

    # In the threads of the ports.

    def _note_connected(self, number: int) -> None:
        """Note a client and the server on a port."""
        health = self.health
        with self._lock:
            self._open.add(number)
            if number == _MEASUREMENTS:
                # A client that begins its next episode has neither restarted nor connected again.
                self._begins = True
                health.n_connects += health.state is not SourceState.CONNECTED
                health.silence = silence_of_a_port(self.settings.host, self.settings.port)
                health.state = SourceState.CONNECTED
                self._framer = MeasurementFramer(
                    self.settings.max_frame_bytes, f'{self.settings.host}:{self.settings.port}')

    def _copy(self, data: memoryview) -> bool:
        """Read bytes of the measurements port; return whether the stream can be read on."""
        self.health.n_bytes += len(data)
        try:
            for payload in self._framer.fed(data):
                self.health.silence = ''
                self._put(payload)
        except FramingError as error:
            self.health.n_protocol_errors += 1
            self.health.last_error = str(error)
            return False
        return True

    def _put(self, payload: bytes) -> None:
        if self._waiting.qsize() >= _MAX_WAITING:
            with suppress(Empty):
                self._begins |= (self._waiting.get_nowait() or (b'', False))[1]
                self._n_dropped += 1
                self._report('relay', f'{self.settings.host}:{self.settings.port}: '
                             f'{counted(self._n_dropped, "frame")} dropped so far: the server '
                             'sends faster than this machine reads')
        self._waiting.put((payload, self._begins))
        self._begins = False

    def _note_closed(self, number: int, by: str) -> None:
        """Note that ``by``, the client or the server, has ended a connection; once for each."""
        health, why = self.health, f'the {by} closed the connection'
        with self._lock:
            if number not in self._open:
                return
            self._open.remove(number)
            if number == _MEASUREMENTS:
                if by == 'server' and self._framer.n_bytes:
                    health.n_cut_packets += 1
                    why += f' {self._framer.n_bytes} bytes into a frame'
                if by == 'client' and _WORLD in self._open:
                    health.silence = ('the client of the relay has ended its episode and not '
                                      'begun another')
                else:
                    health.fail(why)
            elif number == _WORLD and _MEASUREMENTS not in self._open:
                health.fail(why if health.state is SourceState.CONNECTED else self._no_client)
            has_left = health.n_connects and not self._open & {_WORLD, _MEASUREMENTS}
        if has_left and not self._reconnect:
            self.interrupt()

    def _serve(self, number: int, listener: socket.socket, server: Connection,
               ended: threading.Event) -> None:
        """Serve one client after another on one port."""
        while not ended.is_set():
            try:
                client, _ = listener.accept()
            except OSError:
                ended.wait(_RETRY_S)
                continue
            if self.health.state is not SourceState.CONNECTED:
                self.health.last_error = ('a client is connected to the relay, and its episode '
                                          'has not begun')
            with client:
                try:
                    # The server may be loading its level.
                    server.open(LATE_PORT_S, remedy='is the server running?')
                    self._exchange(number, client, server.open_socket)
                except UnreachableError as error:
                    self.health.last_error = str(error)
                    self._report('relay', str(error))
                except OSError:
                    pass  # ended by the node, or by the client
                finally:
                    server.close()

    def _exchange(self, number: int, client: socket.socket, server: socket.socket) -> None:
        """Forward both directions until one side ends."""
        for side in (client, server):
            side.settimeout(None)
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            keep_alive(side, *_KEEP_ALIVE)
        self._note_connected(number)
        up = threading.Thread(target=self._forward, args=(number, client, server, client),
                              daemon=True)
        up.start()
        self._forward(number, server, client, client,
                      self._copy if number == _MEASUREMENTS else None)
        up.join()

    def _forward(self, number: int, source: socket.socket, target: socket.socket,
                 client: socket.socket,
                 copy: Callable[[memoryview], bool] | None = None) -> None:
        chunk = memoryview(bytearray(_CHUNK_BYTES))
        with suppress(OSError):
            while n_bytes := source.recv_into(chunk):
                # First, as a client that has its last frame may leave, which ends the stream.
                if copy is not None and not copy(chunk[:n_bytes]):
                    copy = None
                target.sendall(chunk[:n_bytes])
        # Before the other side notices; the server may have ended it because the client did.
        self._note_closed(number, 'client' if _has_ended(client) else 'server')
        _shut_down(source)
        _shut_down(target)


def _shut_down(side: socket.socket) -> None:
    with suppress(OSError):
        side.shutdown(socket.SHUT_RDWR)


def _has_ended(peer: socket.socket) -> bool:
    """Return whether a peer has closed its connection and nothing of it is unread."""
    try:
        return not peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _listening(bind: str, port: int) -> socket.socket:
    try:
        family, *_, address = addresses_of(bind, port, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise TransportError(
            f'{bind}:{port}', reason_of(error).partition(' (')[0],
            'a free port (carla.relay_port and the next two) at an address of this machine '
            '(carla.relay_bind)') from error

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
here. Every connection of it gets one to the server, and a thread for each direction::

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
from contextlib import closing
from functools import partial
from queue import Empty, Full, Queue
import threading
from typing import Final

from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.connections.relay import PortRelay
from state_sensor_ros.errors import FramingError
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.frames import FrameMaker
from state_sensor_ros.simulators.carla.parameters import CarlaParameters
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
        self._servers = [f'{settings.host}:{settings.port - 1 + i}' for i in range(N_PORTS)]
        self._maker = FrameMaker(self.faults)
        self._waiting: Queue[bytes | None] = Queue(_MAX_WAITING)
        self._lock = threading.Lock()
        self._n_open = [0] * N_PORTS
        self._n_dropped = 0
        self._framer = MeasurementFramer(settings.max_frame_bytes)

    def receive(self) -> Iterator[Frame]:
        """
        Open the ports, and yield the frames that pass.

        :raises TransportError: if a port cannot be opened.
        """
        settings, own = self.settings, self._own
        relay = PortRelay(self, (settings.host, settings.port - 1),
                          (own.relay_bind, own.relay_port), N_PORTS, LATE_PORT_S)
        with closing(relay):
            self.health.fail(self._no_client)
            while not self.is_closing and (payload := self._waiting.get()) is not None:
                yield from self.decoded(partial(self._frames_of, payload))

    def _frames_of(self, payload: bytes) -> Iterator[Frame]:
        self._maker.details = self.details
        yield self._maker.frame(parsed(payload))

    def end_reason(self) -> str:
        """Return why :meth:`receive` ended without an error."""
        return 'the client of the relay has left'

    def interrupt(self) -> None:
        """End :meth:`receive` soon, from any thread."""
        self._put(None)

    def _put(self, payload: bytes | None) -> None:
        while True:
            try:
                self._waiting.put_nowait(payload)
                return
            except Full:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        try:
            self._waiting.get_nowait()
        except Empty:
            return
        self._n_dropped += 1
        self._report('relay', f'{self._servers[_MEASUREMENTS]}: '
                     f'{counted(self._n_dropped, "frame")} dropped so far: the server sends '
                     'faster than this machine reads')

    @property
    def _no_client(self) -> str:
        own = self._own
        return (f'no client is connected to the relay, {own.relay_bind}:{own.relay_port} to '
                f'{own.relay_port + N_PORTS - 1}')

    def note_waiting(self, number: int) -> None:
        """Note that a port of the server refuses a client, who waits."""
        if self.health.state is not SourceState.CONNECTED:
            self.health.last_error = (f'cannot connect to {self._servers[number]}: connection '
                                      'refused; is the server running?')

    def note_left(self, number: int) -> None:
        """Note that a client has not waited for the server."""
        if self.health.state is not SourceState.CONNECTED:
            self.health.last_error = self._no_client

    def note_refused(self, number: int, error: str) -> None:
        """Note that a client was turned away."""
        self.health.last_error = error
        self._report('relay', error)

    def note_connected(self, number: int) -> Callable[[memoryview], bool] | None:
        """Note a client and the server on a port; return what copies the measurements."""
        health = self.health
        with self._lock:
            self._n_open[number] += 1
            if number == _MEASUREMENTS:
                # The next episode of a client does not count as another connection.
                health.n_connects += health.state is not SourceState.CONNECTED
                health.silence = silence_of_a_port(self.settings.host, self.settings.port)
                health.state = SourceState.CONNECTED
                self._framer = MeasurementFramer(self.settings.max_frame_bytes,
                                                 self._servers[_MEASUREMENTS])
                return partial(self._copy, self._framer)
            if number == _WORLD and health.state is not SourceState.CONNECTED:
                health.last_error = (
                    f'a client of the relay is connected to {self._servers[_WORLD]}, and not to '
                    f'{self._servers[_MEASUREMENTS]}')
        return None

    def _copy(self, framer: MeasurementFramer, data: memoryview) -> bool:
        """Cut bytes of the measurements port; return whether the stream can be read on."""
        self.health.n_bytes += len(data)
        try:
            for payload in framer.fed(data):
                self.health.silence = ''
                self._put(payload)
        except FramingError as error:
            self.health.n_protocol_errors += 1
            self.health.last_error = str(error)
            return False
        return True

    def note_closed(self, number: int, by: str) -> None:
        """Note that ``by``, the client or the server, has ended a connection."""
        health, why = self.health, f'the {by} closed the connection'
        with self._lock:
            self._n_open[number] -= 1
            n_world, n_measurements, _ = self._n_open
            if number == _MEASUREMENTS:
                if by == 'server' and self._framer.n_bytes:
                    health.n_cut_packets += 1
                    why += f' {self._framer.n_bytes} bytes into a frame'
                if n_measurements:
                    health.last_error = why
                elif by == 'client' and n_world:
                    health.silence = ('the client of the relay has ended its episode and not '
                                      'begun another')
                else:
                    health.fail(why)
            elif number == _WORLD and not n_world and not n_measurements:
                health.fail(why if health.state is SourceState.CONNECTED else self._no_client)
            has_left = bool(health.n_connects) and not n_world and not n_measurements
        if has_left and not self._reconnect:
            self._put(None)

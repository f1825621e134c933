# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The CARLA 0.8 server: its episodes on three ports (world, measurements, control).

Each port serves one client; further ones wait in the backlog. An episode begins on the world port:

    client                      server
    RequestNewEpisode    ->     closes the measurements and control port with their connections
                         <-     SceneDescription
    EpisodeStart         ->
                         <-     EpisodeReady
                                opens both ports a little later

A real server sends nothing before the first request. This one begins a first episode without one,
in which the autopilot drives and a lost connection of the measurements port can be made again.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
import logging
import math
import socket
import time

from carla_server.episode_settings import (
    EpisodeSettings,
    MAP_NAME,
    parse_settings,
)
from carla_server.message_bytes import (
    frame_message,
    measurements_bytes,
    read_message,
    scene_bytes,
)
from carla_server.town import N_START_SPOTS, Town
from state_sensor_ros.emulator.bicycle import DrivenVehicle, Pedals, USUAL_VEHICLE
from state_sensor_ros.emulator.threaded_server import (
    BACKLOG,
    listen,
    Pacer,
    reserve,
    ServerOptions,
    shut_down_connection,
    ThreadedServer,
)
from state_sensor_ros.errors import FramingError, TransportError
from state_sensor_ros.simulators.carla.frames import SERVER

DEFAULT_EPISODE = EpisodeSettings()
# The real server opens its ports some milliseconds after EpisodeReady. This one waits so long that
# a client that tries only once is always refused.
LATE_PORT_S = 0.05
LOG = logging.getLogger('state_sensor.simulate')
# Three consecutive ports are nearly always free: so many failures have another cause.
MAX_TRIES = 50
# Between two tries to bind a port that was open a moment ago.
RESERVE_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CarlaOptions(ServerOptions):
    """The world port is one below ``port``, the control port one above."""

    period_s: float = 0.1  # simulated time between frames, s
    # Settings of the first episode, and defaults of those that clients request.
    episode: EpisodeSettings = DEFAULT_EPISODE
    episode_frames: int | None = None  # begin a new episode after so many frames, None for never
    map_name: str = MAP_NAME  # name of the map that is sent to clients
    vehicle: DrivenVehicle = USUAL_VEHICLE  # what the pedals of the player do


class CarlaServer(ThreadedServer):
    """A server of the CARLA 0.8 protocol."""

    def __init__(self, options: CarlaOptions | None = None):
        self._options = options = options or CarlaOptions()
        self._ports = three_ports(options.bind, options.port)
        self.world_port, self.port, self.control_port = (port.number for port in self._ports)
        self._frame_number = 0
        self._settings = options.episode
        self._is_requested = False
        self._town = self._new_town(0)
        self._pending: bytes | None = None
        self._is_sending = False
        self._control: Pedals | None = None
        self._n_commands = 0
        super().__init__()

    def addresses(self):
        """Return a name and the number of the world, control and measurements port."""
        return [('world', self.world_port), ('control', self.control_port),
                ('listening', self.port)]

    def disconnect(self):
        """Close the connection of the measurements port."""
        with self._changed:
            self._ports[1].drop_client()
            self._changed.notify_all()

    def _new_town(self, start: int):
        settings = self._settings
        return Town(settings.n_vehicles, settings.n_pedestrians, seed=settings.seed, start=start,
                    vehicle=self._options.vehicle)

    def _listeners(self):
        with self._changed:
            for port in self._ports:
                port.apply()
            self._changed.notify_all()
            return [port.listener for port in self._ports if port.accepts]

    def _accept(self, listener: socket.socket):
        serve = dict(zip((port.listener for port in self._ports), (
            self._serve_world, self._serve_measurements, self._serve_control), strict=True))
        self._begin_session(listener, serve[listener])

    def _close_ports(self):
        with self._changed:
            for port in self._ports:
                port.listener.close()
                port.drop_client()

    def _set_open(self, *, is_open: bool):
        """Open or close the measurements and the control port, for one client each."""
        with self._changed:
            for port in self._ports[1:]:
                port.is_wanted_open = is_open
                if not is_open:
                    port.drop_client()
                    port.holder = None
            self._pending = None
            self._changed.notify_all()
            self._wake()
            self._changed.wait_for(lambda: self._closing.is_set() or all(
                port.is_settled for port in self._ports))

    def _take(self, number: int, session: socket.socket):
        """Note the client of a port; return False if it has one, or was closed meanwhile."""
        port = self._ports[number]
        with self._changed:
            if not port.accepts:
                return False
            port.client = port.holder = session
            return True

    def _leave(self, number: int, session: socket.socket, *, is_over: bool):
        """Note the end of a connection; only with ``is_over`` can another client connect."""
        port = self._ports[number]
        with self._changed:
            if port.holder is session:
                port.client, port.holder = None, None if is_over else session
            self._changed.notify_all()
        self._wake()

    def _serve_world(self, session: socket.socket):
        """Begin episodes as the client requests."""
        if not self._take(0, session):
            return
        try:
            while (request := read_message(session, SERVER['RequestNewEpisode'])) is not None:
                self._begin_episode(session, request.ini_file)
        finally:
            if self._is_requested and not self._closing.is_set():
                self._set_open(is_open=False)
            self._leave(0, session, is_over=True)

    def _begin_episode(self, session: socket.socket, ini: str):
        """Exchange the messages that begin an episode; then open its ports."""
        self._is_requested = True
        self._set_open(is_open=False)
        try:
            settings = parse_settings(ini, self._options.episode)
        except FramingError as error:
            LOG.warning('refused an episode: %s', error)
            raise
        session.sendall(frame_message(scene_bytes(self._options.map_name)))
        if (start := read_message(session, SERVER['EpisodeStart'])) is None:
            return
        spot = start.player_start_spot_index
        if spot >= N_START_SPOTS:
            LOG.warning('EpisodeStart: no start spot %d, only 0 to %d; it begins at 0', spot,
                        N_START_SPOTS - 1)
            spot = 0
        with self._changed:
            self._settings = settings
            self._town = self._new_town(spot)
            # It stands on a slope until the first command.
            self._control = Pedals(hand_brake=True)
        session.sendall(frame_message(SERVER['EpisodeReady'](ready=True).SerializeToString()))
        self._closing.wait(LATE_PORT_S)
        self._set_open(is_open=True)

    def _serve_measurements(self, session: socket.socket):
        if not self._take(1, session):
            return
        port = self._ports[1]
        with self._changed:
            self._changed.notify_all()
        try:
            while (data := self._next_data(port, session)) is not None:
                session.sendall(data)
                with self._changed:
                    self._is_sending = False
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._is_sending = False
            self._leave(1, session, is_over=not self._is_requested)

    def _next_data(self, port: ClientPort, session: socket.socket):
        """Wait for a frame; return None if the connection is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending is not None or port.client is not session
                                   or self._closing.is_set())
            if port.client is not session or self._closing.is_set():
                return None
            data, self._pending = self._pending, None
            self._is_sending = True
            return data

    def _serve_control(self, session: socket.socket):
        """Read control commands of the player; the latest one applies."""
        if not self._take(2, session):
            return
        try:
            while (control := read_message(session, SERVER['Control'])) is not None:
                with self._changed:
                    self._control = Pedals(
                        _finite(control.steer), _finite(control.throttle), _finite(control.brake),
                        control.hand_brake, control.reverse)
                    self._n_commands += 1
                    self._changed.notify_all()
        finally:
            with self._changed:
                if not self._is_requested:
                    self._control = None
            self._leave(2, session, is_over=not self._is_requested)

    def _play(self):
        options, port = self._options, self._ports[1]
        pacer = Pacer(options.rate, self._closing)
        while not self._closing.is_set() and self.n_sent != options.n_frames:
            with self._changed:
                if port.client is None:
                    self._changed.wait_for(lambda: port.client or self._closing.is_set())
                    # Frames that were due meanwhile, sent at once, would replace each other.
                    pacer.restart()
                n_commands = self._n_commands
            pacer.wait(options.period_s)
            if self._closing.is_set():
                return
            self._step(self._make_frame(), n_commands)
        with self._changed:
            self._changed.wait_for(
                lambda: port.client is None or self._closing.is_set()
                or (self._pending is None and not self._is_sending))
        self.disconnect()
        self._finished.set()

    def _make_frame(self):
        """
        Make a frame for the client; return the town that it shows.

        A frame that still waits is replaced, as on the real server, unless the client sets the
        pace: in synchronous mode and at the rate ``max``.
        """
        with self._changed:
            town, settings = self._town, self._settings
            measurement = measurements_bytes(town, self._frame_number, time.monotonic_ns()
                                             // 1_000_000, sends_agents=settings.sends_agents)
        data = frame_message(measurement) + frame_message(b'')
        with self._changed:
            if settings.is_synchronous or self._options.rate == 'max':
                self._changed.wait_for(
                    lambda: self._pending is None or self._ports[1].client is None
                    or self._town is not town or self._closing.is_set())
            if self._town is town and self._ports[1].client is not None:
                self._pending = data
                self._changed.notify_all()
        self.n_sent += 1
        self._frame_number += 1
        return town

    def _step(self, town: Town, n_commands: int):
        """Advance the town; in synchronous mode, wait for a control command first."""
        with self._changed:
            if self._settings.is_synchronous:
                self._changed.wait_for(
                    lambda: self._n_commands > n_commands or self._closing.is_set()
                    or self._town is not town or self._ports[1].client is None)
            if self._town is not town:
                return  # a new episode has begun
            limit = self._options.episode_frames
            if limit is not None and round(town.time_s / self._options.period_s) >= limit - 1:
                self._town = self._new_town(0)
            else:
                town.advance(self._options.period_s, self._control)


def _finite(value: float):
    return value if math.isfinite(value) else 0.0


class ClientPort:
    """
    A port that stays bound, and accepts one client while it is open.

    A port that is bound and does not listen refuses connections. Only the accepting thread opens
    and closes it, by :meth:`apply`.

    :ivar client: its connection, None before it connects and after it is lost.
    """

    def __init__(self, listener: socket.socket):
        self.listener = listener
        self.number: int = listener.getsockname()[1]
        self._address: str = listener.getsockname()[0]
        self._is_open = True
        self.is_wanted_open = True
        self.client: socket.socket | None = None
        self.holder: socket.socket | None = None

    @property
    def is_settled(self):
        """Whether the port is open or closed as ``is_wanted_open`` requires."""
        return self._is_open is self.is_wanted_open

    @property
    def accepts(self):
        return self._is_open and self.is_wanted_open and self.holder is None

    def apply(self):
        """Open or close the port as required; connections in the backlog are reset."""
        if self._is_open and not self.is_wanted_open:
            self.listener.close()
            self.listener = _reserve_again(self._address, self.number)
        elif self.is_wanted_open and not self._is_open:
            self.listener.listen(BACKLOG)
        self._is_open = self.is_wanted_open

    def drop_client(self):
        """End the connection of the client, if there is one; its thread reads what has arrived."""
        client, self.client = self.client, None
        if client is not None:
            shut_down_connection(client)


def _reserve_again(address: str, number: int):
    """Bind a port that was open a moment ago."""
    for _ in range(MAX_TRIES):
        with suppress(TransportError):
            return reserve(address, number)
        time.sleep(RESERVE_PAUSE_S)
    return reserve(address, number)


def three_ports(bind: str, port: int):
    """Open the port below ``port``, it and the one above it."""
    # port: the one in the middle, 0 picks one.
    if port:
        return _ports_around(bind, port)
    for _ in range(MAX_TRIES):
        with listen(bind, 0) as free:
            candidate = free.getsockname()[1]
        with suppress(TransportError):
            return _ports_around(bind, candidate)
    raise TransportError(bind, f'no three free ports in a row in {MAX_TRIES} tries; '
                         'give the middle one of three as --port')


def _ports_around(bind: str, port: int):
    with ExitStack() as stack:
        listeners = [stack.enter_context(listen(bind, number))
                     for number in (port - 1, port, port + 1)]
        stack.pop_all()
    return [ClientPort(listener) for listener in listeners]

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The CARLA 0.8 server: three consecutive ports (world, measurements, control) and its episodes.

A real server sends measurements only after a request on the world port; this one begins a first
episode without a request. An episode begins on the world port:

    client                      server
    RequestNewEpisode    ->
                         <-     SceneDescription
    EpisodeStart         ->     closes all connections of the measurements port
                         <-     EpisodeReady
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
import socket
import time

from state_sensor_ros.carla.schema import (
    Control,
    EpisodeReady,
    EpisodeStart,
    RequestNewEpisode,
)
from state_sensor_ros.emulator.carla_server.message_bytes import (
    EpisodeSettings,
    frame_message,
    image_bytes,
    measurements_bytes,
    parse_settings,
    read_message,
    scene_bytes,
)
from state_sensor_ros.emulator.carla_server.town import Town, VehicleControl
from state_sensor_ros.emulator.threaded_server import (
    accept_connection,
    close_connection,
    listen,
    Pacer,
    Rate,
    ThreadedServer,
)
from state_sensor_ros.errors import TransportError

DEFAULT_EPISODE = EpisodeSettings()
# Three consecutive ports are nearly always free; after this many tries there is another cause.
MAX_TRIES = 50


@dataclass(frozen=True, slots=True)
class CarlaOptions:
    """
    The options of a CARLA server.

    :param port: measurements port, 0 picks one; the world port is one below, the control port
        one above.
    :param bind: address of all ports.
    :param rate: `real` (by game time), `max` (as fast as the readers) or frames per second.
    :param period_s: simulated time between frames, s.
    :param n_frames: number of frames to send, None for no limit.
    :param episode: settings of the first episode, and defaults of those that clients request.
    :param episode_frames: begin a new episode after so many frames, None for never.
    """

    port: int = 0
    bind: str = '127.0.0.1'
    rate: Rate = 'real'
    period_s: float = 0.1
    n_frames: int | None = None
    episode: EpisodeSettings = DEFAULT_EPISODE
    episode_frames: int | None = None


class CarlaServer(ThreadedServer):
    """
    A server of the CARLA 0.8 protocol.

    :param options: the options, None for the defaults.
    :raises TransportError: when the three ports cannot be opened.
    """

    def __init__(self, options: CarlaOptions | None = None) -> None:
        self._options = options = options or CarlaOptions()
        self._ports = _three_listeners(options.bind, options.port)
        self.world_port, self.port, self.control_port = (
            listener.getsockname()[1] for listener in self._ports)
        self._frame_number = 0
        self._settings = options.episode
        self._town = self._new_town(0)
        self._readers: list[socket.socket] = []
        self._control: VehicleControl | None = None
        self._n_commands = 0
        super().__init__()

    def addresses(self) -> list[tuple[str, int]]:
        """Return a name and the number of the world, control and measurements port."""
        return [('world', self.world_port), ('control', self.control_port),
                ('listening', self.port)]

    def disconnect(self) -> None:
        """Close the connections of all readers and keep listening."""
        with self._changed:
            readers, self._readers = self._readers, []
        for reader in readers:
            close_connection(reader)

    def _new_town(self, start: int) -> Town:
        settings = self._settings
        return Town(settings.n_vehicles, settings.n_pedestrians, seed=settings.seed, start=start)

    def _listeners(self) -> Iterable[socket.socket]:
        return self._ports

    def _accept(self, listener: socket.socket) -> None:
        world, measurements, _ = self._ports
        if listener is not measurements:
            self._begin_session(
                listener, self._serve_world if listener is world else self._serve_control)
        elif (reader := accept_connection(listener)) is not None:
            with self._changed:
                self._readers.append(reader)

    def _close_ports(self) -> None:
        for listener in self._ports:
            listener.close()
        self.disconnect()

    def _serve_world(self, session: socket.socket) -> None:
        """Begin episodes as the client requests."""
        while (request := read_message(session, RequestNewEpisode)) is not None:
            settings = parse_settings(request.ini_file, self._options.episode)
            session.sendall(frame_message(scene_bytes(settings)))
            if (start := read_message(session, EpisodeStart)) is None:
                return
            with self._changed:
                self._settings = settings
                self._town = self._new_town(start.player_start_spot_index)
                self._control = None
            self.disconnect()
            session.sendall(frame_message(EpisodeReady(ready=True).SerializeToString()))

    def _serve_control(self, session: socket.socket) -> None:
        """Read control commands of the player; the latest one applies."""
        try:
            while (control := read_message(session, Control)) is not None:
                with self._changed:
                    self._control = VehicleControl(control.steer, control.throttle, control.brake,
                                                   control.hand_brake, control.reverse)
                    self._n_commands += 1
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._control = None
                self._changed.notify_all()

    def _play(self) -> None:
        options = self._options
        pacer = Pacer(options.rate, self._closing)
        while not self._closing.is_set() and self.n_sent != options.n_frames:
            with self._changed:
                self._changed.wait_for(lambda: self._readers or self._closing.is_set())
                n_commands = self._n_commands
            pacer.wait(options.period_s)
            if self._closing.is_set():
                return
            self._step(self._send_frame(), n_commands)
        self.disconnect()
        self._finished.set()

    def _send_frame(self) -> Town:
        """Send a frame to all readers; return the town that it shows."""
        with self._changed:
            town, settings, readers = self._town, self._settings, tuple(self._readers)
            measurement = measurements_bytes(town, self._frame_number, time.monotonic_ns()
                                             // 1_000_000, sends_agents=settings.sends_agents)
        images = (image_bytes(i, width, height, self._frame_number)
                  for i, (_, width, height) in enumerate(settings.cameras, 1))
        data = b''.join(map(frame_message, (measurement, *images, b'')))
        for reader in readers:
            try:
                reader.sendall(data)
            except OSError:
                with self._changed:
                    if reader in self._readers:
                        self._readers.remove(reader)
                close_connection(reader)
        self.n_sent += 1
        self._frame_number += 1
        return town

    def _step(self, town: Town, n_commands: int) -> None:
        """Advance the town; in synchronous mode, wait for a control command first."""
        with self._changed:
            if self._settings.is_synchronous:
                self._changed.wait_for(
                    lambda: self._n_commands > n_commands or self._closing.is_set()
                    or self._town is not town or not self._readers)
            if self._town is not town:
                return  # a new episode has begun
            limit = self._options.episode_frames
            if limit is not None and round(town.time_s / self._options.period_s) >= limit - 1:
                self._town = self._new_town(0)
            else:
                town.advance(self._options.period_s, self._control)


def _three_listeners(bind: str, port: int) -> tuple[socket.socket, socket.socket, socket.socket]:
    """Listen on the port below ``port``, on it and on the one above it."""
    if port:
        return _listeners_around(bind, port)
    for _ in range(MAX_TRIES):
        with listen(bind, 0) as free:
            candidate = free.getsockname()[1]
        with suppress(TransportError):
            return _listeners_around(bind, candidate)
    raise TransportError(bind, f'no three consecutive free ports in {MAX_TRIES} tries',
                         'three of them')


def _listeners_around(bind: str, port: int) -> tuple[socket.socket, socket.socket, socket.socket]:
    with ExitStack() as stack:
        world, measurements, control = (
            stack.enter_context(listen(bind, number)) for number in (port - 1, port, port + 1))
        stack.pop_all()
    return world, measurements, control

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A stand-in for a CARLA 0.8 server: its three ports, episodes, free and synchronous running.

May know: everything in this folder. Must not: the receiving side, printing, signals. Source of
truth: PROTOCOL 7.1. The real server measures only after its client has asked for an episode on the
world port; this one begins a first episode for whoever just reads.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
import selectors
import socket
import time

from google.protobuf.message import DecodeError as ProtobufError

from state_sensor_ros.carla.schema import (
    Control,
    EpisodeReady,
    EpisodeStart,
    RequestNewEpisode,
    SceneDescription,
)
from state_sensor_ros.emulator.carla_wire import (
    EpisodeSettings,
    fill_transform,
    frame_message,
    image_bytes,
    measurements_bytes,
    parse_settings,
    read_message,
)
from state_sensor_ros.emulator.options import Pacer, Rate
from state_sensor_ros.emulator.sensors import hang_up, listen
from state_sensor_ros.emulator.serving import ACCEPT_PAUSE_S, JOIN_S, Serving
from state_sensor_ros.emulator.town import Mover, Pedals, RADIUS_M, Town
from state_sensor_ros.errors import FramingError, TransportError

MAP_NAME = 'StandIn01'
DEFAULT_EPISODE = EpisodeSettings()
N_START_SPOTS = 8
_CAMERA = 1
# Three ports in a row are free nearly always; this many misses are something else.
_MAX_TRIES = 50


@dataclass(frozen=True, slots=True)
class CarlaOptions:
    """
    How the stand-in serves.

    ``port`` of the measurements, 0 picks one; the world port lies before it, the control port
    behind it. ``rate`` as in Options; ``period_s`` simulated time between frames; ``n_frames``
    end after so many, None for no limit; ``episode`` what an episode has unless its client says
    otherwise; ``episode_frames`` begin a new one after so many, None for never.
    """

    port: int = 0
    bind: str = '127.0.0.1'
    rate: Rate = 'real'
    period_s: float = 0.1
    n_frames: int | None = None
    episode: EpisodeSettings = DEFAULT_EPISODE
    episode_frames: int | None = None


class CarlaServer(Serving):
    """
    A CARLA server.

    :param options: how to serve, None for the defaults.
    :raises TransportError: when the three ports cannot be had.
    """

    def __init__(self, options: CarlaOptions | None = None) -> None:
        super().__init__()
        self._options = options = options or CarlaOptions()
        self._listeners = _three_listeners(options.bind, options.port)
        self.world_port, self.port, self.control_port = (
            listener.getsockname()[1] for listener in self._listeners)
        self._frame_number = 0
        self._settings = options.episode
        self._town = self._new_town(0)
        self._readers: list[socket.socket] = []
        self._pedals: Pedals | None = None
        self._n_commands = 0

    @property
    def n_readers(self) -> int:
        """Return how many connections there are to the measurements port."""
        return len(self._readers)

    def start(self) -> None:
        """Begin to serve."""
        self._begin(self._accept)
        self._begin(self._play)

    def close(self) -> None:
        """End all connections and threads; closing twice is harmless."""
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads[:1]:
            thread.join(JOIN_S)
        for connection in (*self._listeners, *self._readers, *tuple(self._sessions)):
            hang_up(connection)
        for thread in self._threads:
            thread.join(JOIN_S)
        self._finished.set()

    def disconnect(self) -> None:
        """Hang up on all readers; they may come back."""
        with self._changed:
            readers, self._readers = self._readers, []
        for reader in readers:
            hang_up(reader)

    def _new_town(self, start: int) -> Town:
        settings = self._settings
        return Town(settings.n_vehicles, settings.n_pedestrians, seed=settings.seed, start=start)

    def _accept(self) -> None:
        """Take in connections to the three ports until closing."""
        world, measurements, _ = self._listeners
        with selectors.DefaultSelector() as selector:
            for listener in self._listeners:
                selector.register(listener, selectors.EVENT_READ)
            while not self._closing.wait(ACCEPT_PAUSE_S):
                for key, _ in selector.select(0.1):
                    try:
                        connection, _ = key.fileobj.accept()  # type: ignore[union-attr]
                    except OSError:
                        continue  # gone again, or no more to be had: theirs to try again
                    connection.setblocking(True)
                    if key.fileobj is measurements:
                        self._take_reader(connection)
                    else:
                        self._sessions.add(connection)
                        self._begin(self._serve_world if key.fileobj is world
                                    else self._serve_control, connection)

    def _take_reader(self, connection: socket.socket) -> None:
        with self._changed:
            self._readers.append(connection)
            self._changed.notify_all()

    def _serve_world(self, session: socket.socket) -> None:
        """Answer a client: settings, scene, start, ready; then again for the next episode."""
        try:
            while (body := read_message(session)) is not None:
                request = RequestNewEpisode.FromString(body)
                settings = parse_settings(request.ini_file, self._options.episode)
                session.sendall(frame_message(_scene(settings)))
                if (body := read_message(session)) is None:
                    return
                start = EpisodeStart.FromString(body).player_start_spot_index
                self._begin_episode(settings, start)
                session.sendall(frame_message(EpisodeReady(ready=True).SerializeToString()))
        except (FramingError, ProtobufError, OSError):
            return  # out of step or gone: the connection ends here
        finally:
            self._sessions.discard(session)
            hang_up(session)

    def _begin_episode(self, settings: EpisodeSettings, start: int) -> None:
        """Begin anew; as on the real server, readers have to come back for it."""
        with self._changed:
            self._settings = settings
            self._town = self._new_town(start)
            self._pedals = None
        self.disconnect()

    def _serve_control(self, session: socket.socket) -> None:
        """Take commands for the player; the latest one counts."""
        try:
            while (body := read_message(session)) is not None:
                control = Control.FromString(body)
                with self._changed:
                    self._pedals = Pedals(control.steer, control.throttle, control.brake,
                                          control.hand_brake, control.reverse)
                    self._n_commands += 1
                    self._changed.notify_all()
        except (FramingError, ProtobufError, OSError):
            return  # out of step or gone: the connection ends here
        finally:
            with self._changed:
                self._pedals = None
                self._changed.notify_all()
            self._sessions.discard(session)
            hang_up(session)

    def _play(self) -> None:
        """Let time pass while somebody reads."""
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
        """Send what is measured now; return the town that it was measured in."""
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
                hang_up(reader)
        self.n_sent += 1
        self._frame_number += 1
        return town

    def _step(self, town: Town, n_commands: int) -> None:
        """Advance the town, in synchronous mode once the client has sent its command."""
        with self._changed:
            if self._settings.is_synchronous:
                self._changed.wait_for(
                    lambda: self._n_commands > n_commands or self._closing.is_set()
                    or self._town is not town or not self._readers)
            if self._town is not town:
                return
            limit = self._options.episode_frames
            if limit is not None and round(town.time_s / self._options.period_s) >= limit - 1:
                self._town = self._new_town(0)
            else:
                town.advance(self._options.period_s, self._pedals)


def _scene(settings: EpisodeSettings) -> bytes:
    """Describe where the player may start, and its cameras."""
    scene = SceneDescription(map_name=MAP_NAME)
    for i in range(N_START_SPOTS):
        spot = Mover(0, Town.start_angle(i), 0.0, RADIUS_M, (0.0, 0.0, 0.0))
        fill_transform(scene.player_start_spots.add(), spot.pose())
    for i, (name, _, _) in enumerate(settings.cameras, 1):
        scene.sensors.add(id=i, type=_CAMERA, name=name)
    data: bytes = scene.SerializeToString()
    return data


def _three_listeners(bind: str, port: int) -> tuple[socket.socket, socket.socket, socket.socket]:
    """Listen on the port before ``port``, on it, and on the one behind it."""
    if port:
        return _listeners_around(bind, port)
    for _ in range(_MAX_TRIES):
        with listen(bind, 0) as free:
            candidate = free.getsockname()[1]
        with suppress(TransportError):
            return _listeners_around(bind, candidate)
    raise TransportError(bind, 'no three free ports in a row', 'some')


def _listeners_around(bind: str, port: int) -> tuple[socket.socket, socket.socket, socket.socket]:
    opened: list[socket.socket] = []
    try:
        for number in (port - 1, port, port + 1):
            opened.append(listen(bind, number))
    except TransportError:
        for listener in opened:
            listener.close()
        raise
    world, measurements, control = opened
    return world, measurements, control

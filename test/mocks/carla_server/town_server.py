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
    RequestNewEpisode    ->     ends the connections of the measurements and the control port
                         <-     SceneDescription
    EpisodeStart         ->
                         <-     EpisodeReady
                                serves both ports a little later

A real server sends nothing before the first request. This one begins a first episode without one,
in which the autopilot drives.
"""

import configparser
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
import math
import time

from google.protobuf.message import DecodeError as ProtobufError

from carla_server.town import N_START_SPOTS, RADIUS_M, RingActor, Town  # noqa: I100
from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.threaded_server import (
    accept_connection,
    listen,
    Pacer,
    receive,
    ServerOptions,
    shut_down_connection,
    ThreadedServer,
)
from state_sensor_ros.errors import FramingError, TransportError
from state_sensor_ros.simulators.carla.frames import SERVER

# CARLA's own scripts open the image of the map by its name, and fail without one.
MAP_NAME = 'Town01'
# Longer messages are refused; the settings of a client have a few kilobytes.
MAX_MESSAGE_BYTES = 2**20
# The real server opens its ports some milliseconds after EpisodeReady.
LATE_PORT_S = 0.05
# Three consecutive ports are nearly always free: so many failures have another cause.
MAX_TRIES = 50
WORLD, MEASUREMENTS, CONTROL = range(3)


@dataclass(frozen=True)
class EpisodeSettings:
    is_synchronous: bool = False
    sends_agents: bool = True
    n_vehicles: int = 12
    n_pedestrians: int = 6
    seed: int = 1


def parse_settings(text, defaults):
    """Parse a CarlaSettings.ini; unknown keys are ignored, ``defaults`` has the missing ones."""
    parser, server, level = configparser.ConfigParser(
        interpolation=None, strict=False), 'CARLA/Server', 'CARLA/LevelSettings'
    try:
        parser.read_string(text)
        return EpisodeSettings(
            parser.getboolean(server, 'SynchronousMode', fallback=defaults.is_synchronous),
            parser.getboolean(server, 'SendNonPlayerAgentsInfo', fallback=False),
            parser.getint(level, 'NumberOfVehicles', fallback=defaults.n_vehicles),
            parser.getint(level, 'NumberOfPedestrians', fallback=defaults.n_pedestrians),
            parser.getint(level, 'SeedVehicles', fallback=defaults.seed))
    except (configparser.Error, ValueError) as error:
        raise FramingError('RequestNewEpisode', str(error), 'a CarlaSettings.ini') from error


@dataclass(frozen=True, kw_only=True)
class CarlaOptions(ServerOptions):
    """The world port is one below ``port``, the control port one above."""

    period_s: float = 0.1  # simulated time between frames, s
    # Settings of the first episode, and defaults of those that clients request.
    episode: EpisodeSettings = EpisodeSettings()
    episode_frames: int | None = None  # begin a new episode after so many frames, None for never
    map_name: str = MAP_NAME  # name of the map that is sent to clients


class CarlaServer(ThreadedServer):
    """A server of the CARLA 0.8 protocol."""

    def __init__(self, options=None):
        self._options = options = options or CarlaOptions()
        self._ports = three_ports(options.bind, options.port)
        self.world_port, self.port, self.control_port = (
            port.getsockname()[1] for port in self._ports)
        self._clients = [None] * 3
        # Whether a client has requested an episode, and whether the ports of one are served.
        self._is_requested, self._is_open = False, True
        self._frame_number = self._n_commands = 0
        self._settings = options.episode
        self._town = self._new_town(0)
        self._pending, self._is_sending, self._control = None, False, None
        super().__init__()

    def addresses(self):
        """Return a name and the number of the world, control and measurements port."""
        return [('world', self.world_port), ('control', self.control_port),
                ('listening', self.port)]

    def disconnect(self):
        """Close the connection of the measurements port."""
        self._drop(MEASUREMENTS)

    def _new_town(self, start):
        settings = self._settings
        return Town(settings.n_vehicles, settings.n_pedestrians, seed=settings.seed, start=start)

    def _listeners(self):
        with self._changed:
            return [port for number, port in enumerate(self._ports)
                    if self._clients[number] is None and (number == WORLD or self._is_open)]

    def _accept(self, listener):
        number = self._ports.index(listener)
        if (session := accept_connection(listener)) is not None:
            with self._changed:
                self._clients[number] = session
                self._changed.notify_all()
            self._sessions.add(session)
            self._begin(self._run_session, session, partial(self._serve, number))

    def _close_ports(self):
        for number, port in enumerate(self._ports):
            port.close()
            self._drop(number)

    def _drop(self, *numbers):
        """End the connections of ports; their threads read what has arrived."""
        with self._changed:
            for number in numbers:
                client, self._clients[number] = self._clients[number], None
                if client is not None:
                    shut_down_connection(client)
            self._changed.notify_all()

    def _serve(self, number, session):
        try:
            (self._serve_world, self._serve_measurements, self._serve_control)[number](session)
        finally:
            with self._changed:
                if self._clients[number] is session:
                    self._clients[number] = None
                if number == WORLD and self._is_requested:
                    self._end_episode()
                self._changed.notify_all()
            self._wake()

    def _end_episode(self):
        self._is_open, self._pending = False, None
        self._drop(MEASUREMENTS, CONTROL)

    def _serve_world(self, session):
        """Begin episodes as the client requests."""
        while (request := read_message(session, 'RequestNewEpisode')) is not None:
            with self._changed:
                self._is_requested = True
                self._end_episode()
            settings = parse_settings(request.ini_file, self._options.episode)
            session.sendall(frame_message(scene_bytes(self._options.map_name)))
            if (start := read_message(session, 'EpisodeStart')) is None:
                return
            with self._changed:
                self._settings = settings
                self._town = self._new_town(start.player_start_spot_index)
                # It stands on a slope until the first command.
                self._control = Pedals(hand_brake=True)
            session.sendall(frame_message(SERVER['EpisodeReady'](ready=True).SerializeToString()))
            self._closing.wait(LATE_PORT_S)
            self._is_open = True
            self._wake()

    def _serve_measurements(self, session):
        while (data := self._next_data(session)) is not None:
            try:
                session.sendall(data)
            finally:
                with self._changed:
                    self._is_sending = False
                    self._changed.notify_all()

    def _next_data(self, session):
        """Wait for a frame; return None if the connection is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending is not None or self._closing.is_set()
                                   or self._clients[MEASUREMENTS] is not session)
            if self._clients[MEASUREMENTS] is not session or self._closing.is_set():
                return None
            data, self._pending = self._pending, None
            self._is_sending = True
            return data

    def _serve_control(self, session):
        """Read control commands of the player; the latest one applies."""
        try:
            while (control := read_message(session, 'Control')) is not None:
                with self._changed:
                    self._control = Pedals(
                        *(value if math.isfinite(value) else 0.0 for value in (
                            control.steer, control.throttle, control.brake)),
                        control.hand_brake, control.reverse)
                    self._n_commands += 1
                    self._changed.notify_all()
        finally:
            if not self._is_requested:
                self._control = None

    def _wait_for(self, is_done, town=None):
        """Wait, but not beyond the client of the measurements, the town, or the end."""
        self._changed.wait_for(
            lambda: is_done() or self._clients[MEASUREMENTS] is None or self._closing.is_set()
            or town not in (None, self._town))

    def _play(self):
        options = self._options
        pacer = Pacer(options.rate, self._closing)
        while not self._closing.is_set() and self.n_sent != options.n_frames:
            with self._changed:
                if self._clients[MEASUREMENTS] is None:
                    self._changed.wait_for(
                        lambda: self._clients[MEASUREMENTS] or self._closing.is_set())
                    # Frames that were due meanwhile, sent at once, would replace each other.
                    pacer.restart()
                n_commands = self._n_commands
            pacer.wait(options.period_s)
            if self._closing.is_set():
                return
            self._step(self._make_frame(), n_commands)
        with self._changed:
            self._wait_for(lambda: self._pending is None and not self._is_sending)
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
            data = frame_message(measurements_bytes(
                town, self._frame_number, time.monotonic_ns() // 1_000_000,
                sends_agents=settings.sends_agents)) + frame_message(b'')
            if settings.is_synchronous or self._options.rate == 'max':
                self._wait_for(lambda: self._pending is None, town)
            if self._town is town and self._clients[MEASUREMENTS] is not None:
                self._pending = data
                self._changed.notify_all()
        self.n_sent += 1
        self._frame_number += 1
        return town

    def _step(self, town, n_commands):
        """Advance the town; in synchronous mode, wait for a control command first."""
        with self._changed:
            if self._settings.is_synchronous:
                self._wait_for(lambda: self._n_commands > n_commands, town)
            if self._town is not town:
                return  # a new episode has begun
            limit = self._options.episode_frames
            if limit is not None and round(town.time_s / self._options.period_s) >= limit - 1:
                self._town = self._new_town(0)
            else:
                town.advance(self._options.period_s, self._control)


def three_ports(bind, port):
    """Listen below ``port``, on it and above it; 0 picks one."""
    for _ in range(1 if port else MAX_TRIES):
        middle = port
        if not port:
            with listen(bind, 0) as free:
                middle = free.getsockname()[1]
        with suppress(TransportError) if not port else ExitStack(), ExitStack() as stack:
            listeners = [stack.enter_context(listen(bind, middle + i)) for i in (-1, 0, 1)]
            stack.pop_all()
            return listeners
    raise TransportError(bind, f'no three free ports in a row in {MAX_TRIES} tries; '
                         'give the middle one of three as --port')


# Messages.


def fill_transform(transform, xyz, roll_pitch_yaw):
    """Set the members of a Transform as the simulator does; angles in degrees."""
    location, direction, rotation = transform.location, transform.orientation, transform.rotation
    location.x, location.y, location.z = xyz
    # The member is present even if all of it is zero.
    rotation.SetInParent()
    rotation.roll, rotation.pitch, rotation.yaw = roll_pitch_yaw
    pitch, yaw = math.radians(rotation.pitch), math.radians(rotation.yaw)
    direction.x, direction.y, direction.z = (
        math.cos(pitch) * math.cos(yaw), math.cos(pitch) * math.sin(yaw), math.sin(pitch))


def frame_message(body):
    """Put the length before a message."""
    return len(body).to_bytes(4, 'little') + body


def read_message(connection, name):
    """Read one message: the message, or None if the peer has closed between two messages."""
    head = receive(connection, 4, 'message length', may_end=True)
    if not head:
        return None
    size = int.from_bytes(head, 'little')
    if size > MAX_MESSAGE_BYTES:
        raise FramingError('message', f'{size} bytes', f'at most {MAX_MESSAGE_BYTES}')
    try:
        return SERVER[name].FromString(receive(connection, size, 'message'))
    except ProtobufError as error:
        raise FramingError('message', str(error), f'a {name}') from error


def scene_bytes(map_name):
    """Return the SceneDescription of an episode: map and start spots."""
    scene = SERVER['SceneDescription'](map_name=map_name)
    for i in range(N_START_SPOTS):
        spot = RingActor(0, Town.start_angle(i), 0.0, RADIUS_M, (0.0, 0.0, 0.0))
        fill_transform(scene.player_start_spots.add(), *spot.pose())
    return scene.SerializeToString()


def measurements_bytes(town, frame_number, platform_ms, *, sends_agents):
    """Return the Measurements of a town at its current time."""
    # platform_ms: clock of the machine, ms; sent modulo 2**32.
    message = SERVER['Measurements'](
        frame_number=frame_number, game_timestamp=round(1000.0 * town.time_s) % 2**32,
        platform_timestamp=platform_ms % 2**32)
    player, autopilot = message.player_measurements, town.autopilot()
    _fill_actor(player, town.player)
    player.acceleration.x, player.acceleration.y, player.acceleration.z = town.acceleration
    player.autopilot_control.MergeFrom(SERVER['Control'](
        steer=autopilot.steer, throttle=autopilot.throttle, brake=autopilot.brake,
        hand_brake=autopilot.hand_brake, reverse=autopilot.reverse))
    if not sends_agents:
        return message.SerializeToString()
    for kind, actors in (('vehicle', town.vehicles), ('pedestrian', town.pedestrians)):
        for actor in actors:
            _fill_actor(getattr(message.non_player_agents.add(id=actor.id), kind), actor)
    for i, (id_, pose) in enumerate(town.lights):
        light = message.non_player_agents.add(id=id_).traffic_light
        fill_transform(light.transform, *pose)
        light.state = town.light_state(i)
    for id_, pose, limit in town.signs:
        sign = message.non_player_agents.add(id=id_).speed_limit_sign
        fill_transform(sign.transform, *pose)
        sign.speed_limit = limit
    return message.SerializeToString()


def _fill_actor(body, actor):
    fill_transform(body.transform, *actor.pose())
    body.forward_speed = actor.speed
    extent = body.bounding_box.extent
    extent.x, extent.y, extent.z = actor.half_sizes
    # The origin of the actor is on the ground, and the center of its box above it.
    fill_transform(body.bounding_box.transform, (0.0, 0.0, actor.half_sizes[2]), (0.0, 0.0, 0.0))

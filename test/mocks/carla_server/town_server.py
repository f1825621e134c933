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

from dataclasses import dataclass
from functools import partial
import math
import re
import time

import carla_wire as wire
from ports import free_ports

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
from state_sensor_ros.simulators.carla.frames import SERVER

# CARLA's own scripts open the image of the map by its name, and fail without one.
MAP_NAME = 'Town01'
# The real server opens its ports some milliseconds after EpisodeReady.
LATE_PORT_S = 0.05
WORLD, MEASUREMENTS, CONTROL = range(3)


@dataclass(frozen=True, kw_only=True)
class CarlaOptions(ServerOptions):
    """The world port is one below ``port``, the control port one above."""

    period_s: float = 0.1  # simulated time between frames, s
    n_vehicles: int = 12
    n_pedestrians: int = 6
    seed: int = 1


class CarlaServer(ThreadedServer):
    """A server of the CARLA 0.8 protocol."""

    def __init__(self, options=None):
        self._options = options = options or CarlaOptions()
        middle = options.port or free_ports(3) + 1
        self._ports = [listen(options.bind, middle + i) for i in (-1, 0, 1)]
        self.world_port, self.port, self.control_port = (
            port.getsockname()[1] for port in self._ports)
        self._clients = [None] * 3
        # Whether a client has requested an episode, and whether the ports of one are served.
        self._is_requested, self._is_open = False, True
        self._frame_number, self._sends_agents = 0, True
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
        options = self._options
        return Town(options.n_vehicles, options.n_pedestrians, seed=options.seed, start=start)

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
            session.sendall(wire.framed(scene_bytes()))
            if (start := read_message(session, 'EpisodeStart')) is None:
                return
            with self._changed:
                self._sends_agents = bool(re.search(
                    '(?i)SendNonPlayerAgentsInfo *= *true', request.ini_file))
                self._town = self._new_town(start.player_start_spot_index)
                # It stands on a slope until the first command.
                self._control = Pedals(hand_brake=True)
            session.sendall(wire.framed(wire.integer(1, True)))
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
            pacer.wait(options.period_s)
            if self._closing.is_set():
                return
            town = self._make_frame()
            with self._changed:
                # Otherwise a new episode has begun.
                if self._town is town:
                    town.advance(options.period_s, self._control)
        with self._changed:
            self._wait_for(lambda: self._pending is None and not self._is_sending)
        self.disconnect()
        self._finished.set()

    def _make_frame(self):
        """
        Make a frame for the client; return the town that it shows.

        A frame that still waits is replaced, as on the real server, except at the rate ``max``.
        """
        with self._changed:
            town = self._town
            data = wire.join_messages([measurements_bytes(
                town, self._frame_number, time.monotonic_ns() // 1_000_000 % 2**32,
                sends_agents=self._sends_agents)])
            if self._options.rate == 'max':
                self._wait_for(lambda: self._pending is None, town)
            if self._town is town and self._clients[MEASUREMENTS] is not None:
                self._pending = data
                self._changed.notify_all()
        self.n_sent += 1
        self._frame_number += 1
        return town


# Messages.


def read_message(connection, name):
    """Read one message: the message, or None if the peer has closed between two messages."""
    head = receive(connection, 4, 'message length', may_end=True)
    if not head:
        return None
    return SERVER[name].FromString(receive(connection, int.from_bytes(head, 'little'), 'message'))


def pose_bytes(pose):
    return wire.transform(pose.xyz, *pose.roll_pitch_yaw)


def box_bytes(actor):
    """Return the box: the origin of the actor is on the ground, and the center above it."""
    return wire.box(actor.half_sizes, (0.0, 0.0, actor.half_sizes[2]))


def scene_bytes():
    """Return the SceneDescription of an episode: map and start spots."""
    spots = (RingActor(0, Town.start_angle(i), 0.0, RADIUS_M, (0.0, 0.0, 0.0))
             for i in range(N_START_SPOTS))
    return b''.join(wire.sub(1, pose_bytes(spot.pose())) for spot in spots) \
        + wire.sub(3, MAP_NAME.encode())


def measurements_bytes(town, frame_number, platform_ms, *, sends_agents):
    """Return the Measurements of a town at its current time."""
    player, autopilot = town.player, town.autopilot()
    parts = [wire.player(
        pose_bytes(player.pose()), bounding_box=box_bytes(player), acceleration=town.acceleration,
        speed=player.speed, autopilot=wire.control(
            autopilot.steer, autopilot.throttle, autopilot.brake))]
    if sends_agents:
        for kind, actors in ((wire.vehicle, town.vehicles), (wire.pedestrian, town.pedestrians)):
            parts += [kind(actor.id, pose_bytes(actor.pose()), actor.speed, box_bytes(actor))
                      for actor in actors]
        parts += [wire.traffic_light(id_, pose_bytes(pose), town.light_state(i))
                  for i, (id_, pose) in enumerate(town.lights)]
        parts += [wire.speed_limit_sign(id_, pose_bytes(pose), limit)
                  for id_, pose, limit in town.signs]
    return wire.measurements(frame_number, round(1000.0 * town.time_s), platform_ms, *parts)

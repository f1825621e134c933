# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Commands to CARLA's player: the client of an episode requests it and answers its frames.

Sequence of the ports: doc/protocol/carla.md#ports.
"""

from __future__ import annotations

from collections.abc import Callable
import math
import re
import struct
import threading
import time

from google.protobuf.message import DecodeError as ProtobufError

from state_sensor_ros.simulators import (
    counted,
    DecodeError,
    EgoCommand,
    reason_of,
    Settings,
    TransportError,
)
from state_sensor_ros.simulators.carla.carla_schema import (
    Control,
    EpisodeReady,
    EpisodeStart,
    Measurements,
    RequestNewEpisode,
    SceneDescription,
)
from state_sensor_ros.simulators.carla.frame_payload import sensors_of_reply, split_frame
from state_sensor_ros.simulators.carla.parameters import CarlaParameters
from state_sensor_ros.simulators.carla.sensors import read_ini
from state_sensor_ros.simulators.connections import Connection, OnSilence, Wait

# Settings of an episode unless config_file names a CarlaSettings.ini.
DEFAULT_INI = """\
[CARLA/Server]
SynchronousMode=false
SendNonPlayerAgentsInfo=true
"""
# The control port follows the world port and the measurements port.
CONTROL_AFTER_WORLD = 2
EXPECTED_SERVER = 'a CARLA 0.8 server (source carla9 is for CARLA 0.9)'

# The server loads a level before it is ready.
_READY_TIMEOUT_S = 60.0
# Measurements and control port open while EpisodeReady is on its way.
LATE_PORT_S = 10.0
# Time without a frame after which a command is sent without one, s: frames come at 10 Hz or more.
_STALL_S = 0.2
# For the frame that is answered with the last brake; frames come at 10 Hz or more.
_LAST_ANSWER_S = 0.25
# A scene has a few hundred start spots of less than a hundred bytes.
_MAX_REPLY_BYTES = 4 * 1024 * 1024
_LENGTH = struct.Struct('<I')
_SYNCHRONOUS = re.compile(r'(?im)^\s*SynchronousMode\s*=\s*(true|1|yes|on)\s*$')


class EpisodeClient:
    """
    The client of an episode, on the world port and the control port.

    It answers each frame with the newest command.

    :ivar scene: protobuf SceneDescription with the sensors of the episode, and nothing else.
    """

    def __init__(self, settings: Settings, on_silence: OnSilence,
                 on_lost_control: Callable[[str], None]) -> None:
        self._on_silence, self._on_lost_control = on_silence, on_lost_control
        self.scene = b''
        self._start_spot = settings.of(CarlaParameters).start_spot
        self._ini = read_ini(settings.config_file) if settings.config_file else DEFAULT_INI
        self._world = Connection(settings.host, settings.control_port)
        self._control = Connection(settings.host, settings.control_port + CONTROL_AFTER_WORLD)
        self._has_control = False
        # Of a stack, and the one that answered the last frame; None before the first one.
        self._command: EgoCommand | None = None
        self._answered: EgoCommand | None = None
        self._answering = threading.Condition()
        self._answered_s = -math.inf
        # Whether the last answer has thrust, and what was sent ahead of the frame that a
        # synchronous server answers with: more than one would delay all later ones.
        self._has_thrust = False
        self._ahead: EgoCommand | None = None
        self._is_synchronous = bool(_SYNCHRONOUS.search(self._ini))

    def begin_episode(self) -> None:
        """Request an episode and wait until it is ready."""
        self._has_control, self._ahead = False, None
        self._control.close()
        try:
            # The server loads the level at each request, and at the end of each connection of
            # the world port: a new connection for each episode would make it load twice.
            if not self._world.is_alive():
                self._world.close()
                _connect(self._world)
            self._request_episode()
        except OSError as error:
            self._world.close()
            if isinstance(error, TransportError):
                raise
            raise self._world.failed(error) from error

    def _request_episode(self) -> None:
        request = RequestNewEpisode(ini_file=self._ini).SerializeToString()
        start = EpisodeStart(player_start_spot_index=self._start_spot).SerializeToString()
        where = self._world.where
        try:
            reply = self._exchange(request, 'RequestNewEpisode')
            scene = SceneDescription.FromString(reply)
            if self._start_spot >= len(scene.player_start_spots):
                raise TransportError(where, counted(len(scene.player_start_spots), 'start spot'),
                                     f'more than carla.start_spot, {self._start_spot}')
            ready = EpisodeReady.FromString(self._exchange(start, 'EpisodeStart'))
        except ProtobufError as error:
            raise TransportError(where, f'no message of the world port ({error})',
                                 EXPECTED_SERVER) from error
        self.scene = sensors_of_reply(reply) or b''
        if not ready.ready:
            raise TransportError(where, 'the reply that the episode is not ready',
                                 'a server that can load its level')

    def take_control(self) -> None:
        """
        Connect to the control port, unless it is connected in this episode.

        The server accepts it after the measurements port.
        """
        if self._has_control:
            return
        _connect(self._control, LATE_PORT_S)
        self._has_control = True
        self._control.watch(lambda: self._lose_control('the end of the connection'))

    def _lose_control(self, found: str) -> None:
        if self._has_control:
            self._has_control = False
            self._on_lost_control(f'{self._control.where}: found {found}; expected the control '
                                  'port of the episode')

    def send(self, command: EgoCommand) -> None:
        """
        Answer the frames with a command, in place of the autopilot; from any thread.

        It is sent at once if no frame comes that it could answer, or if it ends the thrust.
        """
        self._command = command
        if not self._has_control:
            raise TransportError(self._control.where, 'no episode', EXPECTED_SERVER)
        is_stalled = time.monotonic() - self._answered_s > _STALL_S
        if self._ahead != command and (is_stalled or (
                self._has_thrust and not command.throttle)):
            if not self._send(_serialized(command)):
                raise TransportError(self._control.where, 'the server does not read commands')
            self._has_thrust = False
            self._ahead = command if self._is_synchronous else None

    def close(self) -> None:
        """Wait until a frame is answered with the last command, which stays the answer."""
        command = self._command
        if command is None or not self._has_control or self._answered is command:
            return
        # At once: the server may be stopped, and then reads it when it continues.
        self._send(_serialized(command))
        with self._answering:
            self._answering.wait_for(lambda: self._answered is command, _LAST_ANSWER_S)

    def answer(self, payload: bytes) -> None:
        """Send the stack's command, or what the autopilot proposes in ``packet``."""
        command = self._command
        if self._ahead is not None:
            # A server that waits for one command a step already has it.
            self._ahead = None
            return
        try:
            answer = _proposal(payload) if command is None else _serialized(command)
        except (ProtobufError, DecodeError):
            return  # the pipeline reports a damaged frame
        if self._send(answer):
            with self._answering:
                self._answered, self._answered_s = command, time.monotonic()
                self._has_thrust = command is not None and command.throttle > 0.0
                self._answering.notify_all()

    def _send(self, command: bytes) -> bool:
        """Return whether the control port has taken a command; if it fails, the episode ends."""
        try:
            self._control.send_at_once(_LENGTH.pack(len(command)) + command)
        except BlockingIOError:
            return False
        except OSError as error:
            self._lose_control(reason_of(error))
            return False
        return True

    def shut_down(self) -> None:
        """End all waits for the server, from any thread; later connections fail."""
        self._world.shut_down()
        self._control.shut_down()

    def _exchange(self, request: bytes, name: str) -> bytes:
        """Send a message of the world port and return the body of its reply."""
        world, where = self._world.open_socket, self._world.where
        world.settimeout(_READY_TIMEOUT_S)
        world.sendall(_LENGTH.pack(len(request)) + request)
        wait = Wait(where, f'answer to {name}', _READY_TIMEOUT_S, self._on_silence)
        (length,) = _LENGTH.unpack(self._receive(_LENGTH.size, wait))
        if length > _MAX_REPLY_BYTES:
            raise TransportError(where, f'a message of {length} bytes',
                                 f'at most {_MAX_REPLY_BYTES}')
        return self._receive(length, wait)

    def _receive(self, n_bytes: int, wait: Wait) -> bytes:
        data = bytearray()
        while len(data) < n_bytes:
            part = wait.receive(self._world.open_socket, n_bytes - len(data))
            if not part:
                raise TransportError(self._world.where, 'the server closed the connection '
                                     'instead of replying to the episode request; for CARLA '
                                     '0.9, use source carla9')
            data += part
        return bytes(data)


def _serialized(command: EgoCommand) -> bytes:
    """Return what is sent now, protobuf Control; CARLA's wheel counts to the right."""
    now = command.now()
    control: bytes = Control(
        steer=-now.steer, throttle=now.throttle, brake=now.brake,
        hand_brake=now.hand_brake, reverse=now.reverse).SerializeToString()
    return control


def _proposal(payload: bytes) -> bytes:
    """Return the autopilot's command in a frame, protobuf Control."""
    measurement = Measurements.FromString(split_frame(payload)[0][0])
    proposal: bytes = measurement.player_measurements.autopilot_control.SerializeToString()
    return proposal


def _connect(connection: Connection, patience_s: float = 0.0) -> None:
    """Connect; ``patience_s``: how long a refused connect is tried again, s."""
    connection.open(patience_s, remedy='is the CARLA server running?')
    connection.open_socket.settimeout(_READY_TIMEOUT_S)

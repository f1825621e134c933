# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A server of CARLA 0.8: its stream of measurements, and the client of an episode.

Of the measurements port, for each frame::

    length 1 | measurement | length 2 | image | ... | 0     lengths: uint32, little-endian

A length does not count itself; a length of 0 ends the frame. Images are not used. A server sends
measurements during an episode that a client requested on the world port. With that port,
``settings.control_port``, this source is the client. With ``carla.relay_port`` another program is,
which connects through the relay. With neither, the measurements port must be free. Sequence of the
ports: doc/protocol/carla.md#ports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import re
import struct
import threading
from typing import Final

from google.protobuf.message import DecodeError as ProtobufError

from state_sensor_ros.connections.connection import Connection, OnSilence, Wait
from state_sensor_ros.connections.framing import Framer
from state_sensor_ros.connections.live_source import TcpSource
from state_sensor_ros.control.ego_commands import EgoCommand, Proof
from state_sensor_ros.errors import bad_length, ConfigError, DecodeError, reason_of, TransportError
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla import CarlaParameters
from state_sensor_ros.simulators.carla.frames import FrameMaker, Message, SERVER
from state_sensor_ros.small_files import read_limited
from state_sensor_ros.texts import counted

LENGTH: Final = struct.Struct('<I')
# Settings of an episode unless config_file names a CarlaSettings.ini.
DEFAULT_INI: Final = """\
[CARLA/Server]
SynchronousMode=false
SendNonPlayerAgentsInfo=true
"""
CONTROL_AFTER_WORLD: Final = 2
_SYNCHRONOUS: Final = re.compile(r'(?im)^\s*SynchronousMode\s*=\s*(true|1|yes|on)\s*$')
_SERVER: Final = 'a CARLA 0.8 server (source carla9 is for CARLA 0.9)'
# A server loads its level before it replies; longest reply with a few hundred start spots.
_READY_TIMEOUT_S: Final = 60.0
_MAX_REPLY_BYTES: Final = 4 * 1024 * 1024
# Both ports open while the reply is on its way; the official client tries for ten seconds.
LATE_PORT_S: Final = 10.0
_MAX_INI_BYTES: Final = 1_000_000
_LAST_ANSWER_S: Final = 0.25


class MeasurementFramer(Framer[bytes]):
    """
    Cut one connection's bytes into measurements.

    :param max_frame_bytes: longest frame with its images.
    :param where: name of the stream in errors, such as ``host:port``.
    """

    def __init__(self, max_frame_bytes: int, where: str = 'stream') -> None:
        super().__init__(_measurements(max_frame_bytes, where), where)


def _measurements(max_frame_bytes: int, where: str) -> Iterator[memoryview | bytes]:
    """Yield the memory for the parts of each frame, and then its first message."""
    offset = 0  # of the current frame in the stream
    while True:
        n_bytes, measurement = 0, bytearray()
        while True:
            head = bytearray(LENGTH.size)
            yield memoryview(head)
            (length,) = LENGTH.unpack(head)
            n_bytes += LENGTH.size
            if not length:
                break
            if n_bytes + length + LENGTH.size > max_frame_bytes:
                raise bad_length(
                    where, b'' if offset else bytes(head),
                    f'message length {length} at byte {offset + n_bytes}',
                    f'a frame of at most max_frame_bytes, {max_frame_bytes}')
            message = bytearray(length)
            yield memoryview(message)
            # Others are images.
            measurement = message if n_bytes == LENGTH.size else measurement
            n_bytes += length
        yield bytes(measurement)
        offset += n_bytes


def parsed(payload: bytes) -> Message:
    """Return the Measurements of a payload."""
    if not payload:
        raise DecodeError('payload', 'nothing', 'a measurement')
    try:
        return SERVER['Measurements'].FromString(payload)
    except ProtobufError as error:
        raise DecodeError('payload', f'{counted(len(payload), "byte")} ({error})',
                          'a protobuf Measurements') from error


class CarlaSource(TcpSource):
    """
    Frames of ``settings.port``; with ``settings.control_port``, of episodes that it requests.

    In such an episode each frame is answered with a command: that of a stack, or before the first
    of these what the simulator's autopilot proposes, so that the player moves and a server in
    synchronous mode continues.
    """

    def __init__(self, settings: Settings, *, reconnect: bool = True) -> None:
        client = EpisodeClient(settings, self._note_silence, self.drop) \
            if settings.control_port else None
        self.client = client
        super().__init__(
            settings.host, settings.port,
            lambda where: MeasurementFramer(settings.max_frame_bytes, where), self._frames_of,
            settings, reconnect=reconnect,
            before_connect=None if client is None else client.begin_episode,
            after_connect=self._note_connect,
            patience_s=0.0 if client is None else LATE_PORT_S)
        self._maker = FrameMaker(self.faults)

    def _frames_of(self, payload: bytes) -> Iterator[Frame]:
        self.health.silence = ''
        measurement = parsed(payload)
        if self.client is not None:
            self.client.answer(measurement)
        self._maker.details = self.details
        yield self._maker.frame(measurement)

    def _note_connect(self) -> None:
        self.health.silence = silence_of_a_port(self.settings.host, self.settings.port)
        if self.client is not None:
            self.client.take_control()

    def _note_silence(self, text: str) -> None:
        """Keep the line about a world port that does not reply."""
        self.health.last_error = text

    def interrupt(self) -> None:
        """End all waits, from any thread."""
        super().interrupt()
        if self.client is not None:
            self.client.shut_down()


def silence_of_a_port(host: str, port: int) -> str:
    """Return the warning about a measurements port that accepts a connection and sends nothing."""
    return (f'{host}:{port} accepted the connection and is silent; expected measurements: a port '
            'of CARLA 0.8 serves one client, so end the other one, or let it connect through '
            'carla.relay_port; for CARLA 0.9, use source carla9')


class EpisodeClient:
    """
    The client of an episode on the world and the control port: answers frames with commands.

    :param on_silence: called with one line if the world port does not reply.
    :param on_lost_control: called with one line if the control port fails: without commands a
        server in synchronous mode sends no frame.
    """

    def __init__(self, settings: Settings, on_silence: OnSilence,
                 on_lost_control: Callable[[str], None]) -> None:
        self._on_silence, self._on_lost_control = on_silence, on_lost_control
        self._start_spot = settings.of(CarlaParameters).start_spot
        self._ini = _settings_of(settings.config_file) if settings.config_file else DEFAULT_INI
        self._is_synchronous = bool(_SYNCHRONOUS.search(self._ini))
        self._world = Connection(settings.host, settings.control_port)
        self._control = Connection(settings.host, settings.control_port + CONTROL_AFTER_WORLD)
        self._has_control = False
        # Guards the following; notified at each measurement.
        self._answering = threading.Condition()
        # Of a stack, the newest one, and the last one that was sent; None before the first one.
        self._command: EgoCommand | None = None
        self._written: EgoCommand | None = None
        # Whether a frame waits for its answer; number of commands that were sent before the frames
        # that they answer.
        self._is_owed, self._n_ahead = False, 0
        # Number of the measurements so far.
        self._n_measured = 0

    def begin_episode(self) -> None:
        """Request an episode and wait until it is ready."""
        self._has_control = self._is_owed = False
        self._written, self._n_ahead = None, 0
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
        where = self._world.where
        scene = self._exchange(SERVER['RequestNewEpisode'](ini_file=self._ini), 'SceneDescription')
        if self._start_spot >= len(scene.player_start_spots):
            raise TransportError(where, counted(len(scene.player_start_spots), 'start spot'),
                                 f'more than carla.start_spot, {self._start_spot}')
        if not self._exchange(SERVER['EpisodeStart'](player_start_spot_index=self._start_spot),
                              'EpisodeReady').ready:
            raise TransportError(where, 'the reply that the episode is not ready',
                                 'a server that can load its level')

    def _exchange(self, message: Message, reply: str) -> Message:
        """Send a message of the world port and return its reply, of this type."""
        world, request = self._world.open_socket, message.SerializeToString()
        world.settimeout(_READY_TIMEOUT_S)
        world.sendall(LENGTH.pack(len(request)) + request)
        wait = Wait(self._world.where, f'answer to {message.DESCRIPTOR.name}', _READY_TIMEOUT_S,
                    self._on_silence)
        (length,) = LENGTH.unpack(self._receive(LENGTH.size, wait))
        if length > _MAX_REPLY_BYTES:
            raise TransportError(self._world.where, f'a message of {length} bytes',
                                 f'at most {_MAX_REPLY_BYTES}')
        try:
            return SERVER[reply].FromString(self._receive(length, wait))
        except ProtobufError as error:
            raise TransportError(self._world.where, f'no message of the world port ({error})',
                                 _SERVER) from error

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

    def take_control(self) -> None:
        """Connect to the control port, unless it is; it accepts after the measurements port."""
        if not self._has_control:
            _connect(self._control, LATE_PORT_S)
            self._has_control = True
            self._control.watch(lambda: self._lose_control('the end of the connection'))

    def _lose_control(self, found: str) -> None:
        if self._has_control:
            self._has_control = False
            self._on_lost_control(f'{self._control.where}: found {found}; expected the control '
                                  'port of the episode')

    def write(self, command: EgoCommand) -> Proof:
        """
        Answer the frames with a command, in place of the autopilot; from any thread.

        A server in synchronous mode takes one command a frame: another one would delay all later
        ones. In asynchronous mode one with less throttle, more brake or another angle is sent at
        once, in place of the answer to the next frame.

        CARLA 0.8 shows no pedals: the proof is the frame after the one that was answered.
        """
        with self._answering:
            self._command, n_shown = command, self._n_measured + 2
            if not self._has_control:
                raise TransportError(self._control.where, 'no episode', _SERVER)
            if (self._is_owed or self._goes_ahead(command)) and not self._write(command):
                raise TransportError(self._control.where, 'the server does not read commands')
        return lambda: self._has_control and self._n_measured >= n_shown

    def brake(self) -> None:
        """Do nothing: commands go through the control port only."""

    def _goes_ahead(self, command: EgoCommand) -> bool:
        """Return whether a command is sent before the frame that it answers."""
        return not self._is_synchronous and (not self._n_ahead or command.brake >= 1.0) \
            and command.is_urgent(self._written)

    def _write(self, command: EgoCommand) -> bool:
        """Return whether the control port has taken a command."""
        if not self._send(_message_of(command)):
            return False
        self._written = command
        self._n_ahead += not self._is_owed
        self._is_owed = False
        return True

    def close(self) -> None:
        """Wait for a frame after the last command, which stays the answer."""
        with self._answering:
            command, n_answered = self._command, self._n_measured + 1
            if command is None or not self._has_control:
                return
            if self._written is not command:
                # At once: the server may be stopped, and then reads it when it continues.
                self._write(command)
            self._answering.wait_for(lambda: self._n_measured >= n_answered, _LAST_ANSWER_S)

    def answer(self, measurement: Message) -> None:
        """Send the stack's command, or what the autopilot proposes in ``measurement``."""
        with self._answering:
            command, is_ahead = self._command, self._n_ahead > 0
            self._n_measured += 1
            self._answering.notify_all()
            self._n_ahead, self._is_owed = self._n_ahead - is_ahead, not is_ahead
            if command is None:
                self._is_owed = not self._send(measurement.player_measurements.autopilot_control)
            elif self._is_owed or self._goes_ahead(command):
                self._write(command)

    def _send(self, control: Message) -> bool:
        """Return whether the control port has taken a command; if it fails, the episode ends."""
        data = control.SerializeToString()
        try:
            self._control.send_at_once(LENGTH.pack(len(data)) + data)
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


def _message_of(command: EgoCommand) -> Message:
    """Return what is sent now; CARLA's wheel counts to the right."""
    now = command.now()
    return SERVER['Control'](steer=-now.steer, throttle=now.throttle, brake=now.brake,
                             hand_brake=now.hand_brake, reverse=now.reverse)


def _settings_of(path: str) -> str:
    """Return the text of a CarlaSettings.ini, which the server reads."""
    try:
        # Editors of Windows write a BOM, which the server does not read.
        return read_limited(path, _MAX_INI_BYTES, 'a CarlaSettings.ini').decode('utf-8-sig')
    except UnicodeDecodeError as error:
        raise ConfigError('config_file', f'{path} ({error})', 'a CarlaSettings.ini') from error


def _connect(connection: Connection, patience_s: float = 0.0) -> None:
    """Connect; ``patience_s``: how long a refused connect is tried again, s."""
    connection.open(patience_s, remedy='is the CARLA server running?')
    connection.open_socket.settimeout(_READY_TIMEOUT_S)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A CARLA 0.8 server: its measurements, and an episode of our own where its world port is given.

May know: sockets, the order of connections and messages (PROTOCOL 7.1). Must not know: what a
measurement means, but for the command that it proposes. Measurements follow an episode that a
client asked for on the world port; without that port somebody else is that client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
import socket
import struct
import threading

from google.protobuf.message import DecodeError as ProtobufError

from state_sensor_ros.carla.framing import MeasurementFramer, split_messages
from state_sensor_ros.carla.schema import (
    EpisodeReady,
    EpisodeStart,
    Measurements,
    RequestNewEpisode,
    SceneDescription,
)
from state_sensor_ros.connections.lookup import look_up
from state_sensor_ros.connections.tcp import TcpSource
from state_sensor_ros.connections.wait import OnSilence, Wait
from state_sensor_ros.errors import ConfigError, DecodeError, told, TransportError
from state_sensor_ros.payloads import Packet
from state_sensor_ros.settings import Settings

# What is asked for unless config_file names the client's own CarlaSettings.ini (seed 004).
DEFAULT_INI = """\
[CARLA/Server]
SynchronousMode=false
SendNonPlayerAgentsInfo=true
"""
# From the world port: measurements are on the next one, commands on the one after.
CONTROL_AFTER_WORLD = 2

_CONNECT_TIMEOUT_S = 5.0
# The server loads a level before it is ready.
_READY_TIMEOUT_S = 60.0
# A scene has a few hundred start spots of less than a hundred bytes.
_MAX_REPLY_BYTES = 4 * 1024 * 1024
_LENGTH = struct.Struct('<I')


class CarlaSource:
    """
    Packets of ``settings.port``; with ``settings.control_port``, of episodes that we ask for.

    Then each frame is answered with the command that the simulator's autopilot proposes, so that
    the player drives, and a server in synchronous mode goes on.

    :param report: called with a kind, for throttling, and a line about a lost control port.
    :raises ConfigError: when ``config_file`` cannot be read.
    """

    def __init__(self, settings: Settings, report: Callable[[str, str], None]) -> None:
        client = _Client(settings, report, self._note_silence) if settings.control_port else None
        self._client = client
        self._tcp = TcpSource(
            settings.host, settings.port,
            lambda where: MeasurementFramer(settings.max_frame_bytes, where),
            reconnect_min=settings.reconnect_min, reconnect_max=settings.reconnect_max,
            stale_after=settings.stale_after,
            before_connect=None if client is None else client.begin_episode,
            after_connect=None if client is None else client.take_control)
        self.health = self._tcp.health

    def packets(self) -> Iterator[Packet]:
        """Yield packets; connect, wait and connect again until closed."""
        for packet in self._tcp.packets():
            if self._client is not None:
                self._client.answer(packet)
            yield packet

    def reconfigure(self, settings: Settings) -> None:
        """Nothing of an episode depends on dynamic parameters."""

    def _note_silence(self, text: str) -> None:
        """Take note that the world port has not answered for a while."""
        self.health.last_error = text

    def close(self) -> None:
        """End :meth:`packets` soon, from any thread; closing twice is quiet."""
        self._tcp.close()
        if self._client is not None:
            self._client.close()


class _Client:
    """
    The world and the control port, as the client of an episode uses them.

    :param report: called with a kind, for throttling, and a line about a lost control port.
    :param on_silence: called with one line when an answer has not come for a second.
    """

    def __init__(self, settings: Settings, report: Callable[[str, str], None],
                 on_silence: OnSilence) -> None:
        self._report, self._on_silence = report, on_silence
        self._host, self._world_port = settings.host, settings.control_port
        self._ini = _read_ini(settings.config_file) if settings.config_file else DEFAULT_INI
        self._lock = threading.Lock()
        self._connections: dict[int, socket.socket] = {}
        self._is_closed = False

    def begin_episode(self) -> None:
        """
        Ask for an episode and wait until it is ready.

        :raises TransportError: where the server does not answer as it should.
        """
        self._give_up()
        world = self._connected(self._world_port)
        where = f'{self._host}:{self._world_port}'
        request = RequestNewEpisode(ini_file=self._ini).SerializeToString()
        try:
            scene = SceneDescription.FromString(self._asked(world, request, 'RequestNewEpisode'))
            if not scene.player_start_spots:
                raise TransportError(where, 'no start spots', 'a scene')
            # The first spot has the index 0, so that the message of it is empty.
            ready = EpisodeReady.FromString(
                self._asked(world, EpisodeStart().SerializeToString(), 'EpisodeStart'))
        except ProtobufError as error:
            raise TransportError(where, f'no message of the world port ({error})',
                                 'a CARLA 0.8 server') from error
        except OSError as error:
            raise self._failed(error, where) from error
        if not ready.ready:
            raise TransportError(where, 'an episode that is not ready', 'one that is')

    def take_control(self) -> None:
        """Connect to the control port, which the server expects after the measurements port."""
        self._connected(self._world_port + CONTROL_AFTER_WORLD)

    def answer(self, packet: Packet) -> None:
        """Send the command that the autopilot proposes in ``packet``."""
        control = self._connections.get(self._world_port + CONTROL_AFTER_WORLD)
        if control is None:
            return
        try:
            measurement = Measurements.FromString(split_messages(packet.payload)[0])
        except (ProtobufError, DecodeError):
            return  # the pipeline says what is wrong with it
        command = measurement.player_measurements.autopilot_control.SerializeToString()
        try:
            control.sendall(_LENGTH.pack(len(command)) + command)
        except OSError as error:
            self._report('control', str(self._failed(
                error, f'{self._host}:{self._world_port + CONTROL_AFTER_WORLD}')))
            self._give_up()

    def close(self) -> None:
        """End whatever waits for the server, from any thread; for good."""
        self._is_closed = True
        self._give_up()

    def _asked(self, world: socket.socket, request: bytes, name: str) -> bytes:
        """Send a message of the world port and return the body of its answer."""
        where = f'{self._host}:{self._world_port}'
        world.settimeout(_READY_TIMEOUT_S)
        world.sendall(_LENGTH.pack(len(request)) + request)
        wait = Wait(where, f'answer to {name}', _READY_TIMEOUT_S, self._on_silence)
        (length,) = _LENGTH.unpack(_received(world, _LENGTH.size, where, wait))
        if length > _MAX_REPLY_BYTES:
            raise TransportError(where, f'a message of {length} bytes',
                                 f'at most {_MAX_REPLY_BYTES}')
        return _received(world, length, where, wait)

    def _connected(self, port: int) -> socket.socket:
        try:
            connection = self._connect(port)
        except OSError as error:
            raise self._failed(error, f'{self._host}:{port}') from error
        connection.settimeout(_READY_TIMEOUT_S)
        return connection

    def _connect(self, port: int) -> socket.socket:
        """Try each address of the host, as `localhost` may have two."""
        failure = OSError('no address')
        for family, kind, protocol, _, address in look_up(self._host, port,
                                                          lambda: self._is_closed):
            connection = socket.socket(family, kind, protocol)
            with self._lock:
                self._connections[port] = connection
            connection.settimeout(_CONNECT_TIMEOUT_S)
            try:
                # Looked at after close() can see the socket: one of the two sees the other.
                self._check_open()
                connection.connect(address)
                # To a socket that was shut down before, Linux says that it is connected.
                self._check_open()
            except OSError as error:
                failure = error
                with self._lock:
                    self._connections.pop(port, None)
                connection.close()
            else:
                return connection
        raise failure

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionAbortedError('a request to end')

    def _failed(self, error: OSError, where: str) -> TransportError:
        if isinstance(error, TransportError):
            return error
        found = 'a request to end' if self._is_closed else told(error)
        return TransportError(where, found, 'a CARLA 0.8 server')

    def _give_up(self) -> None:
        with self._lock:
            connections = list(self._connections.values())
            self._connections.clear()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def _read_ini(path: str) -> str:
    try:
        return Path(path).read_text('utf-8')
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError('config_file', f'{path} ({error})', 'a readable CarlaSettings.ini'
                          ) from error


def _received(connection: socket.socket, n_bytes: int, where: str, wait: Wait) -> bytes:
    data = bytearray()
    while len(data) < n_bytes:
        part = wait.receive(connection, n_bytes - len(data))
        if not part:
            raise TransportError(where, 'the end of the connection', 'an answer')
        data += part
    return bytes(data)

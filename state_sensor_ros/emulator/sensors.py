# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Sensor ports: who is connected to each, and what each lets through.

May know: listening sockets, packets. Must not: commands, where frames come from.
Source of truth: PROTOCOL 1.1, 1.5 and 3.
"""

from __future__ import annotations

from collections.abc import Iterable
import errno
import os
import socket
import threading

from state_sensor_ros.emulator.playback import Shot
from state_sensor_ros.emulator.samples import Clock
from state_sensor_ros.emulator.selection import Selection
from state_sensor_ros.emulator.wire import send_parts, sensor_header
from state_sensor_ros.errors import TransportError

BACKLOG = 64


def listen(bind: str, port: int) -> socket.socket:
    """
    Open a listening socket that never blocks in accept.

    :param bind: address.
    :param port: 0 picks a free one.
    :returns: the socket.
    :raises TransportError: when the port cannot be had.
    """
    try:
        return _listening(bind, port)
    except (OSError, OverflowError) as error:
        number = getattr(error, 'errno', None)
        reason = ('a port in use' if number == errno.EADDRINUSE
                  else os.strerror(number) if number and number > 0 else str(error))
        raise TransportError(f'{bind}:{port}', reason, 'a free port of this machine') from error


def _listening(bind: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM,
                                                  flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def hang_up(connection: socket.socket) -> None:
    """
    Close a connection; what was sent still arrives, and who waits on it wakes up.

    :param connection: the socket, open or not.
    """
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        if error.errno not in (errno.ENOTCONN, errno.EBADF):
            raise
    finally:
        connection.close()


class SensorPort:
    """
    One State sensor and its readers.

    :param bind: address to listen on.
    :param port: 0 picks a free one.
    :raises TransportError: when the port cannot be had.
    """

    def __init__(self, bind: str, port: int) -> None:
        self.listener = listen(bind, port)
        self.port: int = self.listener.getsockname()[1]
        self.selection: Selection | None = None
        self.is_streaming = True
        self.sample_count = 0
        self._readers: list[socket.socket] = []
        self._is_closed = False
        self._lock = threading.Lock()

    def accept_pending(self) -> int:
        """
        Take in everybody who has connected, so that nobody misses a sample asked for later.

        :returns: the number of readers.
        """
        with self._lock:
            while not self._is_closed:
                try:
                    reader, _ = self.listener.accept()
                except OSError:
                    # Nobody else is waiting, or no more connections can be had just now.
                    break
                reader.setblocking(True)
                reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._readers.append(reader)
            return len(self._readers)

    def emit(self, shot: Shot, header_size: int) -> None:
        """
        Send one packet to each reader; a slow one holds the simulator back.

        :param shot: the frame and its clock.
        :param header_size: 16 or 12.
        """
        if not self.is_streaming:
            return
        self.accept_pending()
        clock, count = shot.clock, shot.clock.sample_count
        if shot.is_verbatim:
            self.sample_count = self.sample_count + 1 if count is None else count
            parts: tuple[bytes, ...] = (shot.frame.text(self.selection),)
        else:
            self.sample_count += 1
            own_count = None if count is None else self.sample_count
            parts = shot.frame.text_at(Clock(clock.game_time, clock.time, own_count),
                                       self.selection)
        header = sensor_header(sum(map(len, parts)), header_size, clock.time or 0,
                               clock.game_time or 0.0, self.sample_count)
        for reader in tuple(self._readers):
            self._send(reader, (header, *parts))

    def _send(self, reader: socket.socket, parts: tuple[bytes, ...]) -> None:
        try:
            send_parts(reader, parts)
        except OSError:
            # The reader has gone away: that is its right, and its end of the stream.
            self._forget(reader)

    def _forget(self, reader: socket.socket) -> None:
        with self._lock:
            if reader in self._readers:
                self._readers.remove(reader)
                hang_up(reader)

    def disconnect(self) -> None:
        """Hang up on all readers and go on listening."""
        with self._lock:
            readers, self._readers = self._readers, []
        for reader in readers:
            hang_up(reader)

    def close(self) -> None:
        """Stop listening and hang up."""
        with self._lock:
            self._is_closed = True
            self.listener.close()
        self.disconnect()


class SensorBank:
    """
    All State sensors of the simulator, keyed by port.

    :param bind: address for all of them.
    :param port: of the first sensor, 0 picks a free one.
    :param header_size: 16 or 12 bytes before each payload.
    """

    def __init__(self, bind: str, port: int, header_size: int) -> None:
        self._bind = bind
        self._header_size = header_size
        self.first = SensorPort(bind, port)
        self._sensors = {self.first.port: self.first}

    def ports(self) -> tuple[int, ...]:
        """
        List the sensors.

        :returns: their ports.
        """
        return tuple(self._sensors)

    def all(self) -> tuple[SensorPort, ...]:
        """
        List the sensors.

        :returns: the sensors, the first one first.
        """
        return tuple(self._sensors.values())

    def configure(self, port: int, selection: Selection, is_streaming: bool) -> None:
        """
        Build a sensor, or rebuild the one on this port; its readers stay connected.

        :param port: where it listens.
        :param selection: its filter.
        :param is_streaming: whether it sends at all.
        :raises TransportError: when a new port cannot be had.
        """
        sensor = self._sensors.get(port)
        if sensor is None:
            sensor = SensorPort(self._bind, port)
            self._sensors = {**self._sensors, port: sensor}
        sensor.selection, sensor.is_streaming = selection, is_streaming

    def emit(self, shot: Shot, ports: Iterable[int] | None = None) -> None:
        """
        Send a frame.

        :param shot: the frame and its clock.
        :param ports: the sensors that send it, None for all.
        """
        for port in self.ports() if ports is None else ports:
            self._sensors[port].emit(shot, self._header_size)

    def reset_counts(self) -> None:
        """Begin to count samples anew."""
        for sensor in self.all():
            sensor.sample_count = 0

    def n_readers(self) -> int:
        """
        Count who is connected, those not yet taken in included.

        :returns: connections on all ports.
        """
        return sum(sensor.accept_pending() for sensor in self.all())

    def disconnect(self) -> None:
        """Hang up on all readers and go on listening."""
        for sensor in self.all():
            sensor.disconnect()

    def close(self) -> None:
        """Close every port."""
        for sensor in self.all():
            sensor.close()

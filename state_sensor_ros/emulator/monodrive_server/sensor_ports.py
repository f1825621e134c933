# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The ports: bytes of packets, requests and replies, and the readers of each sensor port."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import json
import math
import socket
import struct
import threading

from state_sensor_ros.emulator.monodrive_server.frame_source import (
    FrameClock,
    LARGEST_FLOAT32,
    SensorFilter,
    TimedFrame,
)
from state_sensor_ros.emulator.threaded_server import (
    accept_connection,
    close_connection,
    listen,
    receive,
)
from state_sensor_ros.errors import FramingError

SENSOR_HEADERS = {16: struct.Struct('>IIfI'), 12: struct.Struct('>IIf')}
CONTROL_HEADER = struct.Struct('>II')
REQUEST_MAGIC = 0x6D6F6E6F
# Releases before 1.11 reply with the four bytes reversed.
REPLY_MAGICS = {'new': 0x6D6F6E6F, 'old': 0x6F6E6F6D}
# Longer requests are refused; a trajectory of one hour has a few hundred megabytes of text.
MAX_REQUEST_BYTES = 512 * 2**20
LARGEST_COPY_BYTES = 2**16


def sensor_header(payload_size: int, header_size: int, time_s: int, game_time_s: float,
                  sample_count: int) -> bytes:
    """
    Return the header of a sensor packet.

    :param header_size: 16, or 12 for simulators older than June 2020.
    :param time_s: Unix time, s; sent modulo 2**32.
    :param game_time_s: simulated time, s; sent as 0 if a float32 cannot represent it.
    :param sample_count: number of the sample; sent modulo 2**32.
    """
    if not math.isfinite(game_time_s) or abs(game_time_s) > LARGEST_FLOAT32:
        game_time_s = 0.0
    fields = (header_size + payload_size, time_s & 0xFFFFFFFF, game_time_s,
              sample_count & 0xFFFFFFFF)
    header = SENSOR_HEADERS[header_size]
    return header.pack(*(fields if header_size == 16 else fields[:3]))


def send_parts(connection: socket.socket, parts: Sequence[bytes]) -> None:
    """Send the parts of one packet; large ones are sent one by one, which saves their copy."""
    if sum(map(len, parts)) <= LARGEST_COPY_BYTES:
        parts = (b''.join(parts),)
    for part in parts:
        connection.sendall(part)


def reply_bytes(reply: dict[str, object], magic: int) -> bytes:
    """Return a message of the control port."""
    body = json.dumps(reply, separators=(',', ':')).encode('ascii')
    return CONTROL_HEADER.pack(magic, CONTROL_HEADER.size + len(body)) + body


def read_request(connection: socket.socket) -> bytes | None:
    """Read one message of a control connection."""
    # Returns the JSON text, or None if the peer has closed between two messages.
    head = receive(connection, CONTROL_HEADER.size, 'control header', may_end=True)
    if not head:
        return None
    magic, length = CONTROL_HEADER.unpack(head)
    if magic != REQUEST_MAGIC:
        raise FramingError('control header', f'magic {magic:#010x}', f'{REQUEST_MAGIC:#010x}')
    size = length - CONTROL_HEADER.size
    if not 0 <= size <= MAX_REQUEST_BYTES:
        raise FramingError('control header', f'length {length}',
                           f'8 to {MAX_REQUEST_BYTES + CONTROL_HEADER.size}')
    return receive(connection, size, 'control body')


class SensorPort:
    """One State sensor and its readers; ``port``: 0 picks a free one."""

    def __init__(self, bind: str, port: int) -> None:
        self.listener = listen(bind, port)
        self.port: int = self.listener.getsockname()[1]
        self.sensor_filter: SensorFilter | None = None
        self.is_streaming = True
        self.sample_count = 0
        self._readers: list[socket.socket] = []
        self._is_closed = False
        self._lock = threading.Lock()

    def accept_readers(self) -> int:
        """Accept all connections that wait, so that they receive the next frame."""
        with self._lock:
            while not self._is_closed and (reader := accept_connection(self.listener)):
                reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._readers.append(reader)
            return len(self._readers)

    def send_frame(self, frame: TimedFrame, header_size: int) -> None:
        """Send one packet to each reader; the slowest reader blocks the simulator."""
        if not self.is_streaming:
            return
        self.accept_readers()
        clock, count = frame.clock, frame.clock.sample_count
        if frame.is_verbatim:
            self.sample_count = self.sample_count + 1 if count is None else count
            parts: tuple[bytes, ...] = (frame.frame.text(self.sensor_filter),)
        else:
            self.sample_count += 1
            own_count = None if count is None else self.sample_count
            parts = frame.frame.text_at(FrameClock(clock.game_time, clock.time, own_count),
                                        self.sensor_filter)
        header = sensor_header(sum(map(len, parts)), header_size, clock.time or 0,
                               clock.game_time or 0.0, self.sample_count)
        for reader in tuple(self._readers):
            try:
                send_parts(reader, (header, *parts))
            except OSError:
                self._remove(reader)

    def _remove(self, reader: socket.socket) -> None:
        with self._lock:
            if reader in self._readers:
                self._readers.remove(reader)
                close_connection(reader)

    def disconnect(self) -> None:
        """Close the connections of all readers and keep listening."""
        with self._lock:
            readers, self._readers = self._readers, []
        for reader in readers:
            close_connection(reader)

    def close(self) -> None:
        """Stop listening and close the connections of all readers."""
        with self._lock:
            self._is_closed = True
            self.listener.close()
        self.disconnect()


class SensorSuite:
    """All State sensors of the simulator."""

    # port: port of the first sensor, 0 picks a free one.
    # header_size: 16 or 12 bytes before each payload.

    def __init__(self, bind: str, port: int, header_size: int) -> None:
        self._bind = bind
        self._header_size = header_size
        first = SensorPort(bind, port)
        self.sensors = {first.port: first}

    def configure(self, port: int, sensor_filter: SensorFilter, is_streaming: bool) -> None:
        """Add a sensor, or change the one on this port; its readers stay connected."""
        sensor = self.sensors.get(port)
        if sensor is None:
            sensor = SensorPort(self._bind, port)
            # A new dict: other threads iterate over the old one.
            self.sensors = {**self.sensors, port: sensor}
        sensor.sensor_filter, sensor.is_streaming = sensor_filter, is_streaming

    def send_frame(self, frame: TimedFrame, ports: Iterable[int] | None = None) -> None:
        for port in self.sensors if ports is None else ports:
            self.sensors[port].send_frame(frame, self._header_size)

    def reset_counts(self) -> None:
        """Set the sample count of all sensors to 0."""
        for sensor in self.sensors.values():
            sensor.sample_count = 0

    def accept_readers(self) -> int:
        """Accept all connections that wait on any port."""
        return sum(sensor.accept_readers() for sensor in self.sensors.values())

    def disconnect(self) -> None:
        """Close the connections of all readers and keep listening."""
        for sensor in self.sensors.values():
            sensor.disconnect()

    def close(self) -> None:
        """Close all ports and connections."""
        for sensor in self.sensors.values():
            sensor.close()

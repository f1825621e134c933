# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The sensor ports: the readers of each, and the packets that they receive."""

from __future__ import annotations

from collections.abc import Iterable
import socket
import threading

from state_sensor_ros.emulator.monodrive_server.frame_source import (
    FrameClock,
    SensorFilter,
    TimedFrame,
)
from state_sensor_ros.emulator.monodrive_server.packet_bytes import send_parts, sensor_header
from state_sensor_ros.emulator.threaded_server import accept_connection, close_connection, listen


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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The mock server of monoDrive: its sensor ports, its control port and its clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
import json
import socket
import struct
import threading

from state_sensor_ros.emulator import monodrive_commands as commands
from state_sensor_ros.emulator import monodrive_frames as frames
from state_sensor_ros.emulator import threaded_server
from state_sensor_ros.errors import FramingError

SENSOR_HEADERS = {16: struct.Struct('>IIfI'), 12: struct.Struct('>IIf')}
CONTROL_HEADER = struct.Struct('>II')
CONTROL_MAGIC = 0x6D6F6E6F
# Longer requests are refused; a trajectory of one hour has a few hundred megabytes of text.
MAX_REQUEST_BYTES = 512 * 2**20


class SensorPort:
    """One State sensor and its readers; ``port``: 0 picks a free one."""

    def __init__(self, bind: str, port: int) -> None:
        self.listener = threaded_server.listen(bind, port)
        self.port: int = self.listener.getsockname()[1]
        self.sensor_filter: frames.SensorFilter | None = None
        self.is_streaming = True
        self.sample_count = 0
        self._readers: list[socket.socket] = []
        self._lock = threading.Lock()

    def accept_readers(self) -> int:
        """Accept all connections that wait, so that they receive the next frame."""
        with self._lock:
            while reader := threaded_server.accept_connection(self.listener, len(self._readers)):
                reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._readers.append(reader)
            return len(self._readers)

    def send_frame(self, frame: frames.EmulatedFrame, header_size: int) -> None:
        """Send one packet to each reader; the slowest reader blocks the simulator."""
        if not self.is_streaming:
            return
        self.accept_readers()
        clock, count = frame.clock, frame.clock.sample_count
        self.sample_count = int(count) if frame.is_verbatim and count is not None \
            else self.sample_count + 1
        text = frame.text(self.sensor_filter,
                          None if frame.is_verbatim or count is None else self.sample_count)
        numbers = (header_size + len(text), int(clock.time or 0) & 0xFFFFFFFF,
                   clock.game_time or 0.0, self.sample_count & 0xFFFFFFFF)
        packet = SENSOR_HEADERS[header_size].pack(*numbers[:header_size // 4]) + text
        for reader in tuple(self._readers):
            try:
                reader.sendall(packet)
            except OSError:
                self.disconnect(reader)

    def disconnect(self, *lost: socket.socket) -> None:
        """Close the connections of these readers, or of all, and keep listening."""
        with self._lock:
            for reader in set(lost or self._readers).intersection(self._readers):
                self._readers.remove(reader)
                threaded_server.close_connection(reader)

    def close(self) -> None:
        """Stop listening and close the connections of all readers."""
        with self._lock:
            self.listener.close()
        self.disconnect()


@dataclass(frozen=True, slots=True, kw_only=True)
class MonodriveOptions(threaded_server.ServerOptions):
    control_port: int | None = None  # None for none, 0 picks a free one
    header_size: int = 16  # 16, or 12 for the older generation
    on_sample: bool = False  # send frames by sample and step commands instead of at the rate


class MonodriveServer(threaded_server.ThreadedServer):
    """
    A server of the monoDrive protocol.

    Each frame is sent whole to one reader after the other, so the slowest reader limits the rate.
    Without a reader, the time stands still.

    :param source: the source of frames, the frames of a trajectory as plain data, or None if
        clients place all frames.
    """

    def __init__(self, source: frames.FrameSource | Sequence[dict[str, object]] | None = None,
                 options: MonodriveOptions | None = None) -> None:
        self._options = options = options or MonodriveOptions()
        driver: commands.ClockDriver = 'client' if source is None \
            else 'sample' if options.on_sample else 'timer'
        if isinstance(source, Sequence | None):
            source = frames.TrajectorySource(list(map(frames.EmulatedFrame, source or ())))
        self._simulation = commands.Simulation(source, driver, self)
        first = SensorPort(options.bind, options.port)
        self.port, self.sensors = first.port, {first.port: first}
        self._control: socket.socket | None = None
        if options.control_port is not None:
            try:
                self._control = threaded_server.listen(options.bind, options.control_port)
            except OSError:
                first.close()
                raise
        self.control_port: int = self._control.getsockname()[1] if self._control else 0
        self._send_lock = threading.Lock()
        super().__init__()

    def addresses(self) -> list[tuple[str, int]]:
        """Return a name and the number of the control port, if any, and of the sensor port."""
        control = [('control', self.control_port)] if self.control_port else []
        return [*control, ('listening', self.port)]

    def configure(self, port: int, sensor_filter: frames.SensorFilter, is_streaming: bool) -> None:
        """Add a sensor, or change the one on this port; its readers stay connected."""
        if port not in self.sensors:
            # A new dict: other threads iterate over the old one.
            self.sensors = {**self.sensors, port: SensorPort(self._options.bind, port)}
        sensor = self.sensors[port]
        sensor.sensor_filter, sensor.is_streaming = sensor_filter, is_streaming

    def disconnect(self) -> None:
        """Close the connections of all readers and keep listening."""
        for sensor in self.sensors.values():
            sensor.disconnect()

    def accept_readers(self) -> int:
        """Accept all connections that wait on any sensor port; return how many there are."""
        return sum(sensor.accept_readers() for sensor in self.sensors.values())

    def _listeners(self) -> Iterable[socket.socket]:
        if self._control is not None:
            yield self._control
        yield from [sensor.listener for sensor in self.sensors.values()]

    def _accept(self, listener: socket.socket) -> None:
        if listener is self._control:
            self._begin_session(listener, self._serve)
        else:
            self.accept_readers()

    def _close_ports(self) -> None:
        for sensor in self.sensors.values():
            sensor.close()
        if self._control is not None:
            self._control.close()

    def _serve(self, session: socket.socket) -> None:
        """Reply to the requests of one control connection, in order."""
        while (body := read_request(session)) is not None:
            request, result = self._simulation.execute(body)
            reply = json.dumps({
                'message': result.message, 'reference': request.reference, 'type': request.type,
                'success': result.success}, separators=(',', ':')).encode()
            session.sendall(
                CONTROL_HEADER.pack(CONTROL_MAGIC, CONTROL_HEADER.size + len(reply)) + reply)
            # The command may have opened a port or started the timer.
            self._wake()
            # After the reply: the frame must not block a client that reads the reply first.
            if result.frame is not None:
                self._send(result.frame, result.ports, is_sample=True)

    def _send(self, frame: frames.EmulatedFrame, ports: tuple[int, ...] | None = None, *,
              is_sample: bool = False) -> None:
        with self._send_lock:
            if self._finished.is_set() or self._closing.is_set():
                return
            if is_sample:
                frame = self._simulation.newest(frame)
            for port in self.sensors if ports is None else ports:
                self.sensors[port].send_frame(frame, self._options.header_size)
            self.n_sent += 1
            if self.n_sent == self._options.n_frames:
                self._finish()

    def _finish(self) -> None:
        """Close the connections of all readers: the last frame is sent."""
        self.disconnect()
        self._finished.set()

    def _may_play(self) -> bool:
        return self._closing.is_set() or (
            self._simulation.is_free_running and self.accept_readers() > 0)

    def _play(self) -> None:
        pacer = threaded_server.Pacer(self._options.rate, self._closing)
        before = frames.FrameClock()
        while not (self._closing.is_set() or self._finished.is_set()):
            with self._changed:
                self._changed.wait_for(self._may_play)
            if self._closing.is_set():
                break
            frame = self._simulation.advance()
            if frame is None:
                if self._simulation.is_free_running:
                    with self._send_lock:
                        self._finish()
                continue
            pacer.wait(before.period_s(frame.clock))
            before = frame.clock
            if self._simulation.is_free_running and not self._closing.is_set():
                self._send(frame)


def read_request(connection: socket.socket) -> bytes | None:
    """Read the JSON text of one request, None if the peer has closed between two of them."""
    head = threaded_server.receive(connection, CONTROL_HEADER.size, 'control header', may_end=True)
    if not head:
        return None
    magic, length = CONTROL_HEADER.unpack(head)
    size = length - CONTROL_HEADER.size
    if magic != CONTROL_MAGIC or not 0 <= size <= MAX_REQUEST_BYTES:
        raise FramingError('control header', f'magic {magic:#010x}, length {length}',
                           f'{CONTROL_MAGIC:#010x}, 8 to {MAX_REQUEST_BYTES + 8}')
    return threaded_server.receive(connection, size, 'control body')

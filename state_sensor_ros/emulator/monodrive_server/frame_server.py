# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The monoDrive server: its sensor ports, its control port and its clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
import socket
import threading

from state_sensor_ros.emulator.monodrive_server.command_table import (
    CommandResult,
    CommandTable,
    Envelope,
    parse_envelope,
    RejectedError,
    SimulationState,
)
from state_sensor_ros.emulator.monodrive_server.frame_source import (
    EmulatedFrame,
    frame_period_s,
    FrameClock,
    FrameSource,
    TimedFrame,
    TrajectorySource,
)
from state_sensor_ros.emulator.monodrive_server.sensor_ports import (
    read_request,
    reply_bytes,
    REPLY_MAGICS,
    SensorSuite,
)
from state_sensor_ros.emulator.threaded_server import (
    listen,
    Pacer,
    ServerOptions,
    ThreadedServer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonodriveOptions(ServerOptions):
    control_port: int | None = None  # None for none, 0 picks a free one
    header_size: int = 16  # 16, or 12 for the older generation
    on_sample: bool = False  # send frames by sample and step commands instead of at the rate
    reply_magic: str = 'new'  # `new` or `old`
    with_success: bool = True  # whether replies have the member `success`


class MonodriveServer(ThreadedServer):
    """
    A server of the monoDrive protocol.

    Each frame is sent whole to one reader after the other, so the slowest reader limits the rate.
    Without a reader, the time stands still.

    :param source: the source of frames, the frames of a trajectory as plain data, or None if
        clients place all frames.
    """

    def __init__(self, source: FrameSource | Sequence[dict[str, object]] | None = None,
                 options: MonodriveOptions | None = None) -> None:
        if isinstance(source, Sequence):
            source = TrajectorySource([EmulatedFrame(members) for members in source])
        self._options = options = options or MonodriveOptions()
        self._state = SimulationState(source, not options.on_sample)
        self._suite = SensorSuite(options.bind, options.port, options.header_size)
        self._control: socket.socket | None = None
        if options.control_port is not None:
            try:
                self._control = listen(options.bind, options.control_port)
            except OSError:
                self._suite.close()
                raise
        self.port = next(iter(self._suite.sensors))
        self.control_port: int = self._control.getsockname()[1] if self._control else 0
        self._commands = CommandTable(self._state, self._suite)
        self._send_lock = threading.Lock()
        super().__init__()

    def addresses(self) -> list[tuple[str, int]]:
        """Return a name and the number of the control port, if any, and of the sensor port."""
        control = [('control', self.control_port)] if self.control_port else []
        return [*control, ('listening', self.port)]

    def _listeners(self) -> Iterable[socket.socket]:
        if self._control is not None:
            yield self._control
        yield from [sensor.listener for sensor in self._suite.sensors.values()]

    def _accept(self, listener: socket.socket) -> None:
        if listener is self._control:
            self._begin_session(listener, self._serve)
        else:
            self._suite.accept_readers()

    def _close_ports(self) -> None:
        self._suite.close()
        if self._control is not None:
            self._control.close()

    def _serve(self, session: socket.socket) -> None:
        """Reply to the requests of one control connection, in order."""
        while (body := read_request(session)) is not None:
            request = Envelope('')
            try:
                request = parse_envelope(body)
                result = self._commands.execute(request.type, request.message)
            except RejectedError as error:
                result = CommandResult(str(error), success=False)
            reply = {'message': result.message, 'reference': request.reference,
                     'type': request.type}
            if self._options.with_success:
                reply['success'] = result.success
            session.sendall(reply_bytes(reply, REPLY_MAGICS[self._options.reply_magic]))
            # The command may have opened a port or started the timer.
            self._wake()
            # After the reply: the frame must not block a client that reads the reply first.
            if result.frame is not None:
                self._send(result.frame, result.ports, is_sample=True)

    def _send(self, frame: TimedFrame, ports: tuple[int, ...] | None = None, *,
              is_sample: bool = False) -> None:
        with self._send_lock:
            if self._finished.is_set() or self._closing.is_set():
                return
            if is_sample:
                frame = self._state.newest(frame)
            self._suite.send_frame(frame, ports)
            self.n_sent += 1
            if self.n_sent == self._options.n_frames:
                self._finish()

    def _finish(self) -> None:
        """Close the connections of all readers: the last frame is sent."""
        self._suite.disconnect()
        self._finished.set()

    def _may_play(self) -> bool:
        return self._closing.is_set() or (
            self._state.is_free_running and self._suite.accept_readers() > 0)

    def _play(self) -> None:
        pacer = Pacer(self._options.rate, self._closing)
        before = FrameClock()
        while not (self._closing.is_set() or self._finished.is_set()):
            with self._changed:
                self._changed.wait_for(self._may_play)
            if self._closing.is_set():
                break
            frame = self._state.advance()
            if frame is None and not self._state.is_free_running:
                continue
            if frame is None:
                with self._send_lock:
                    self._finish()
                break
            pacer.wait(frame_period_s(before, frame.clock))
            before = frame.clock
            if self._state.is_free_running and not self._closing.is_set():
                self._send(frame)

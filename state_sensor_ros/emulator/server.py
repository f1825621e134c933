# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The stand-in simulator itself: sensor ports, control port, clock and threads.

May know: everything in this folder. Must not: the receiving side, printing, signals.
Source of truth: INTERFACE 2 (`simulate`), PROTOCOL 1 and 2.
"""

from __future__ import annotations

from collections.abc import Sequence
import selectors
import socket
import threading

from state_sensor_ros.emulator.commands import Answer, Commands
from state_sensor_ros.emulator.options import Options, Pacer
from state_sensor_ros.emulator.playback import period_s, Playback, Shot, Trajectory
from state_sensor_ros.emulator.requests import envelope, RefusedError
from state_sensor_ros.emulator.samples import Clock, Frame
from state_sensor_ros.emulator.sensors import hang_up, listen, SensorBank
from state_sensor_ros.emulator.serving import ACCEPT_PAUSE_S, JOIN_S, Serving
from state_sensor_ros.emulator.wire import read_request, reply_bytes, REPLY_MAGICS
from state_sensor_ros.emulator.world import World
from state_sensor_ros.errors import FramingError


class Simulator(Serving):
    """
    A State-sensor simulator.

    Frames go to all readers in turn, and each is sent whole: the slowest reader sets the pace.
    While nobody is connected, time stands still.

    :param source: what to play: a playback, the frames of a trajectory as plain data, or None
        where frames are only pushed or placed by commands.
    :param options: how to serve, None for the defaults.
    :raises TransportError: when a port cannot be had.
    """

    def __init__(self, source: Playback | Sequence[dict[str, object]] | None = None,
                 options: Options | None = None) -> None:
        super().__init__()
        if isinstance(source, Sequence):
            source = Trajectory([Frame(members) for members in source])
        self._options = options = options or Options()
        self._world = World(source, not options.on_sample)
        self._sensors = SensorBank(options.bind, options.port, options.header_size)
        self._control: socket.socket | None = None
        if options.control_port is not None:
            try:
                self._control = listen(options.bind, options.control_port)
            except OSError:
                self._sensors.close()
                raise
        self.port = self._sensors.first.port
        self.control_port: int = self._control.getsockname()[1] if self._control else 0
        self._commands = Commands(self._world, self._sensors)
        self._acceptor: threading.Thread | None = None
        self._emit_lock = threading.Lock()
        self._wake_out, self._wake_in = socket.socketpair()
        self._wake_in.setblocking(False)

    @property
    def n_readers(self) -> int:
        """Return how many connections there are to the sensor ports."""
        return self._sensors.n_readers()

    def start(self) -> None:
        """Begin to serve; whoever has connected before is taken in too."""
        self._begin(self._play)
        self._acceptor = self._begin(self._accept)

    def close(self) -> None:
        """End all connections and threads; closing twice is harmless."""
        self._closing.set()
        self._wake()
        with self._changed:
            self._changed.notify_all()
        # Nobody new comes in from here on; then those who are stuck in a send are freed.
        if self._acceptor is not None:
            self._acceptor.join(JOIN_S)
        self._sensors.close()
        if self._control is not None:
            self._control.close()
        for session in tuple(self._sessions):
            hang_up(session)
        for thread in self._threads:
            thread.join(JOIN_S)
        self._wake_in.close()
        self._wake_out.close()
        self._finished.set()

    def push(self, members: dict[str, object]) -> None:
        """
        Send one frame now, as it is but for the sensors' filters.

        :param members: the frame as plain data.
        """
        frame = Frame(members)
        self._emit(Shot(frame, frame.clock, is_verbatim=True))

    def disconnect(self) -> None:
        """Hang up on all sensor readers; they may come back."""
        self._sensors.disconnect()

    def _wake(self) -> None:
        """Have the accepting thread look at the listeners again."""
        try:
            self._wake_in.send(b'.')
        except OSError:
            # It has been woken and has not looked yet, or it has gone.
            return

    def _accept(self) -> None:
        """Take in readers and control connections until closing."""
        while not self._closing.is_set():
            with selectors.DefaultSelector() as selector:
                selector.register(self._wake_out, selectors.EVENT_READ)
                for sensor in self._sensors.all():
                    selector.register(sensor.listener, selectors.EVENT_READ)
                if self._control is not None:
                    selector.register(self._control, selectors.EVENT_READ)
                ready = {key.fileobj for key, _ in selector.select()}
            if self._wake_out in ready:
                self._wake_out.recv(4096)
            if self._control in ready:
                self._welcome()
            self._sensors.n_readers()
            with self._changed:
                self._changed.notify_all()
            self._closing.wait(ACCEPT_PAUSE_S)

    def _welcome(self) -> None:
        """Begin a control session."""
        assert self._control is not None
        try:
            session, _ = self._control.accept()
        except OSError:
            # Nobody there any more, or no more connections to be had: theirs to try again.
            return
        session.setblocking(True)
        self._sessions.add(session)
        self._begin(self._serve, session)

    def _serve(self, session: socket.socket) -> None:
        """Answer the requests of one control connection, in order."""
        try:
            while (body := read_request(session)) is not None:
                self._answer(session, body)
        except (FramingError, OSError, RecursionError):
            # Out of step, gone, or nested deeper than any frame: the connection ends here.
            return
        finally:
            self._sessions.discard(session)
            hang_up(session)

    def _answer(self, session: socket.socket, body: bytes) -> None:
        command: object = ''
        reference: object = 0
        try:
            command, reference, message = envelope(body)
            answer = self._commands.answer(command, message)
        except RefusedError as error:
            answer = Answer(str(error), success=False)
        reply = {'message': answer.message, 'reference': reference, 'type': command}
        if self._options.with_success:
            reply['success'] = answer.success
        session.sendall(reply_bytes(reply, REPLY_MAGICS[self._options.reply_magic]))
        # The reply goes first: a client that reads it before the data must not block us.
        self._wake()
        if answer.sampling is not None:
            self._emit(answer.sampling.shot, answer.sampling.ports)

    def _emit(self, shot: Shot, ports: tuple[int, ...] | None = None) -> None:
        with self._emit_lock:
            if self._finished.is_set() or self._closing.is_set():
                return
            self._sensors.emit(shot, ports)
            self.n_sent += 1
            if self.n_sent == self._options.n_frames:
                self._finish()

    def _finish(self) -> None:
        """All is sent: the connections end, and whoever waits for that is told."""
        self._sensors.disconnect()
        self._finished.set()

    def _may_play(self) -> bool:
        return self._closing.is_set() or (self._world.is_free_running and self.n_readers > 0)

    def _play(self) -> None:
        """Let time pass while somebody looks and nobody else drives the clock."""
        pacer = Pacer(self._options.rate, self._closing)
        before = Clock()
        while not (self._closing.is_set() or self._finished.is_set()):
            with self._changed:
                self._changed.wait_for(self._may_play)
            if self._closing.is_set():
                break
            shot = self._world.advance()
            if shot is None and not self._world.is_free_running:
                continue
            if shot is None:
                with self._emit_lock:
                    self._finish()
                break
            pacer.wait(period_s(before, shot.clock))
            before = shot.clock
            if self._world.is_free_running and not self._closing.is_set():
                self._emit(shot)

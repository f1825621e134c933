# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The server: a thread that answers calls, makes the steps of the world, and sends its snapshots.

In asynchronous mode the world goes on while a client reads its stream; in synchronous mode, a step
for each call ``tick_cue``. As on the real server, calls are answered between steps.
Connections of clients, for calls and for streams, do not block, and each is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
import selectors
import socket
import time

from state_sensor_ros.emulator.carla9_server.call_dispatcher import Dispatcher
from state_sensor_ros.emulator.carla9_server.calls import Calls, VERSION, WORLD_STREAM
from state_sensor_ros.emulator.carla9_server.client_bytes import (
    Request,
    RequestCutter,
    RequestError,
)
from state_sensor_ros.emulator.carla9_server.emulated_world import EmulatedWorld
from state_sensor_ros.emulator.carla9_server.world_bodies import MovingScene
from state_sensor_ros.emulator.threaded_server import (
    accept_connection,
    ACCEPT_PAUSE_S,
    CHUNK_BYTES,
    close_connection,
    listen,
    MAX_LAG_S,
    MAX_SESSIONS,
    Rate,
    ThreadedServer,
)

# A client connects to its stream in a thread of its own: a step that it asks for right after it
# was given the stream's token waits this long for it, s. A step of a real server takes longer.
TOKEN_S = 0.25


@dataclass(frozen=True, slots=True)
class WorldOptions:
    port: int = 0  # port of calls, 0 picks one; the streams have the one after it, or pick one
    bind: str = '127.0.0.1'  # address of both
    # `real` (by simulated time), `max` or steps per second, in asynchronous mode.
    rate: Rate = 'real'
    period_s: float = 0.05  # simulated time of a step, unless a client sets another, s
    n_frames: int | None = None  # number of steps after which the server ends, None for no limit
    version: str = VERSION  # reply to clients that ask for the version


class WorldServer(ThreadedServer):
    """A mock server of CARLA 0.9 between ``start`` and ``close``, or in a ``with`` block."""

    def __init__(self, scene: MovingScene, options: WorldOptions | None = None) -> None:
        self._options = options = options or WorldOptions()
        self.world = EmulatedWorld(scene, options.period_s)
        self._calls_port = listen(options.bind, options.port)
        try:
            self._stream_port = listen(options.bind, options.port and options.port + 1)
        except BaseException:
            self._calls_port.close()
            raise
        self.port: int = self._calls_port.getsockname()[1]
        self.stream_port: int = self._stream_port.getsockname()[1]
        self._dispatcher = Dispatcher(Calls(self.world, self.stream_port, options.version))
        self.unknown = self._dispatcher.unknown
        # In the order in which they came.
        self._peers: dict[Peer, int] = {}
        self._selector = selectors.DefaultSelector()
        self._due_s = 0.0
        self._episode = 0
        self._n_tokens, self._token_until_s = 0, 0.0
        self._n_steps = 0
        self._failure: Exception | None = None
        super().__init__()

    def addresses(self) -> list[tuple[str, int]]:
        return [('streams', self.stream_port), ('listening', self.port)]

    def _listeners(self) -> tuple[socket.socket, ...]:
        return self._calls_port, self._stream_port

    def start(self) -> None:
        """Start the only thread; connections that were made before are accepted, too."""
        for listener in (*self._listeners(), self._wake_out):
            self._selector.register(listener, selectors.EVENT_READ)
        self._acceptor = self._begin(self._play)

    def _close_ports(self) -> None:
        self._drop_all()
        for listener in self._listeners():
            listener.close()
        self._selector.close()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the last snapshot is sent."""
        is_over = super().wait(timeout_s)
        if self._failure is not None:
            raise self._failure
        return is_over

    def _play(self) -> None:
        try:
            self._serve_all()
        except Exception as error:  # noqa: BLE001
            # Of a recording that cannot be read on, or a defect: the program ends with it.
            self._failure = error
            self._drop_all()
            self._finished.set()

    def _serve_all(self) -> None:
        while not self._closing.is_set():
            for key, events in self._selector.select(self._pause_s()):
                if key.fileobj in self._listeners():
                    self._accept(key.fileobj)
                elif isinstance(key.data, Peer) and key.data in self._peers:
                    self._serve(key.data, events)
            self._send_new_episode()
            if self._is_due():
                self._step()
            if self._is_at_end() and not any(peer.is_writing for peer in self._peers):
                self._finished.set()

    def _accept(self, listener: socket.socket) -> None:
        if (connection := accept_connection(listener)) is None:
            self._closing.wait(ACCEPT_PAUSE_S)  # no free file descriptor: it stays readable
            return
        if len(self._peers) >= MAX_SESSIONS:
            # One that has sent nothing makes room.
            idle = next((peer for peer in self._peers if not peer.is_known), None)
            if idle is None:
                connection.close()
                return
            self._drop(idle)
        try:
            peer = Caller(connection, self._answer) if listener is self._calls_port \
                else Subscriber(connection, self._on_stream)
        except OSError:
            connection.close()  # it was lost before it was accepted
            return
        self._peers[peer] = selectors.EVENT_READ
        self._selector.register(connection, selectors.EVENT_READ, peer)

    def _serve(self, peer: Peer, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                peer.read()
            if events & selectors.EVENT_WRITE:
                peer.write()
        except (OSError, RequestError):
            self._drop(peer)
            return
        self._watch(peer)

    def _watch(self, peer: Peer) -> None:
        events = (selectors.EVENT_READ * peer.is_reading
                  | selectors.EVENT_WRITE * peer.is_writing)
        if events != self._peers[peer]:
            self._peers[peer] = events
            self._selector.modify(peer.connection, events, peer)

    def _drop(self, peer: Peer) -> None:
        if self._peers.pop(peer, None) is not None:
            self._selector.unregister(peer.connection)
            peer.close()

    def _drop_all(self) -> None:
        for peer in tuple(self._peers):
            self._drop(peer)

    def _answer(self, request: Request) -> bytes:
        reply = self._dispatcher.answer(request)
        if self.world.n_tokens != self._n_tokens:
            self._n_tokens = self.world.n_tokens
            self._token_until_s = time.monotonic() + TOKEN_S
        return reply

    def _on_stream(self, stream: int) -> None:
        self._token_until_s = 0.0

    def _subscribers(self) -> list[Subscriber]:
        return [peer for peer in self._peers
                if isinstance(peer, Subscriber) and peer.stream == WORLD_STREAM]

    def _is_at_end(self) -> bool:
        return self.world.is_over or self._n_steps == self._options.n_frames

    def _pause_s(self) -> float | None:
        """Return how long to wait for clients, s, None for as long as they do nothing."""
        now_s = time.monotonic()
        if self._is_at_end():
            return None
        if self.world.settings.is_synchronous:
            return max(self._token_until_s - now_s, 0.0) if self.world.n_cues else None
        if not self._subscribers():
            return None
        return 0.0 if self._options.rate == 'max' else max(self._due_s - now_s, 0.0)

    def _is_due(self) -> bool:
        if self._is_at_end():
            return False
        now_s = time.monotonic()
        if self.world.settings.is_synchronous:
            return self.world.n_cues > 0 and now_s >= self._token_until_s
        if not (subscribers := self._subscribers()):
            return False
        if self._options.rate == 'max':
            return not all(peer.is_writing for peer in subscribers)
        if now_s < self._due_s:
            return False
        rate = self._options.rate
        step_s = self.world.delta_s if isinstance(rate, str) else 1.0 / rate
        # After a pause the schedule begins anew.
        self._due_s = (self._due_s if self._due_s > now_s - MAX_LAG_S else now_s) + step_s
        return True

    def _step(self) -> None:
        self.world.n_cues = max(self.world.n_cues - 1, 0)
        self.world.step()
        if not self.world.is_over:
            self._n_steps += 1
            self._send()

    def _send_new_episode(self) -> None:
        """Send the first snapshot of an episode at once: clients of the one before wait for it."""
        if self._episode != self.world.episode:
            self._episode = self.world.episode
            if self._subscribers():
                self.world.frame += 1
                self._send()

    def _send(self) -> None:
        data = self.world.snapshot()
        for peer in self._subscribers():
            try:
                peer.offer(data, in_order=self.world.settings.is_synchronous)
            except OSError:
                self._drop(peer)
                continue
            self._watch(peer)


# Bytes that wait for a client to read them. More replies are not made before it has; of a stream,
# the oldest snapshots are dropped.
MAX_WAITING = 2**23
_STREAM_BYTES = 4


class Peer:
    """A connection that does not block."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection = connection
        self.is_known = False
        self._waiting: deque[memoryview] = deque()
        self.n_waiting = 0

    @property
    def is_writing(self) -> bool:
        """Whether bytes wait to be sent."""
        return bool(self._waiting)

    @property
    def is_reading(self) -> bool:
        """Whether the stream may send more data."""
        return self.n_waiting <= MAX_WAITING

    def send(self, data: bytes) -> None:
        """Send now what fits, the rest when the client reads."""
        self._waiting.append(memoryview(data))
        self.n_waiting += len(data)
        self.write()

    def write(self) -> None:
        """Send what fits; raise OSError if the connection is lost."""
        while self._waiting:
            try:
                n_sent = self.connection.send(self._waiting[0])
            except BlockingIOError:
                return
            self.n_waiting -= n_sent
            self._waiting[0] = self._waiting[0][n_sent:]
            if not self._waiting[0]:
                self._waiting.popleft()

    def receive(self) -> bytes:
        try:
            received = self.connection.recv(CHUNK_BYTES)
        except BlockingIOError:
            return b''
        if not received:
            raise ConnectionResetError('the client has closed the connection')
        return received

    def read(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._waiting.clear()
        close_connection(self.connection)


class Caller(Peer):

    def __init__(self, connection: socket.socket, answer: Callable[[Request], bytes]) -> None:
        super().__init__(connection)
        self._cutter = RequestCutter()
        self._answer = answer
        self._is_replying = False

    def read(self) -> None:
        """Answer the requests that have arrived."""
        self._cutter.feed(self.receive())
        self._reply()

    def write(self) -> None:
        """Send what fits; answer what has arrived in the meantime."""
        super().write()
        if not self.is_writing and not self._is_replying:
            self._reply()

    def _reply(self) -> None:
        """Answer until too many bytes wait for the client to read them."""
        self._is_replying = True
        for request in self._cutter.requests():
            self.is_known = True
            self.send(self._answer(request))
            if not self.is_reading:
                break
        self._is_replying = False


class Subscriber(Peer):
    """A client of a stream, which it names by its number first."""

    def __init__(self, connection: socket.socket, on_stream: Callable[[int], None]) -> None:
        super().__init__(connection)
        self._number = b''
        self._on_stream = on_stream
        self.stream: int | None = None

    def read(self) -> None:
        """Read the number; what follows it is dropped."""
        received = self.receive()
        if self.stream is None:
            self._number += received[:_STREAM_BYTES - len(self._number)]
            if len(self._number) == _STREAM_BYTES:
                self.stream = int.from_bytes(self._number, 'little')
                self.is_known = True
                self._on_stream(self.stream)

    def offer(self, data: bytes, *, in_order: bool) -> None:
        """Send a snapshot, or have it wait."""
        # in_order: whether it waits behind others; otherwise it takes their place.
        # The first one that waits may have been sent in part.
        while len(self._waiting) > 1 and (
                not in_order or self.n_waiting + len(data) > MAX_WAITING):
            dropped = self._waiting[1]
            del self._waiting[1]
            self.n_waiting -= len(dropped)
        self.send(data)

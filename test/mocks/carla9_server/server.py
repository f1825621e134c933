# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The server: a thread for each connection of a client, for calls and for streams, and one for steps.

In asynchronous mode the world goes on while a client reads its stream; in synchronous mode, a step
for each call ``tick_cue``. As on the real server, calls are answered between steps.

Requests and replies are those of rpclib: MessagePack without a length in front.

    request   [0, number, name, arguments]       arguments[0] is [whether no reply is read]
    reply     [1, number, error or nil, result]

A result is a variant in an array: [[1, value]], or [[0, [text]]] of a call that failed; a call
without a value gives [[false]] or [[true, [text]]]. A client that gets an ``error`` raises it.
"""

from collections import deque
from dataclasses import dataclass
import re
import socket
import struct
import threading
import time

import msgspec

from carla9_server.calls import CallError, Calls, VERSION, WORLD_STREAM  # noqa: I100
from carla9_server.world import EmulatedWorld
from state_sensor_ros.emulator.threaded_server import (
    CHUNK_BYTES,
    close_connection,
    listen,
    receive,
    ServerOptions,
    ThreadedServer,
)
from state_sensor_ros.errors import FramingError

# A client connects to its stream in a thread of its own: a step that it asks for right after it
# was given the stream's token waits this long for it, s. A step of a real server takes longer.
TOKEN_S = 0.25
# After a longer delay, late steps are not made in a burst.
MAX_LAG_S = 1.0
# Snapshots that wait for a client; of a slow one the oldest are dropped.
MAX_WAITING = 100
# Errors of msgspec for a request whose end has not arrived, and for what follows a request.
_CUT, _MORE = 'Input data was truncated', re.compile(r'trailing characters \(byte (\d+)\)')
_REPLY = 1


@dataclass(frozen=True, kw_only=True)
class WorldOptions(ServerOptions):
    """``port`` is that of calls; streams have the next one. ``rate`` of asynchronous mode."""

    period_s: float = 0.05  # simulated time of a step, unless a client sets another, s
    version: str = VERSION  # reply to clients that ask for the version


class Stream:
    """The snapshots that wait for a client."""

    def __init__(self):
        self.waiting, self.is_sending = deque(maxlen=MAX_WAITING), False

    @property
    def is_busy(self):
        return self.is_sending or bool(self.waiting)


class WorldServer(ThreadedServer):
    """A mock server of CARLA 0.9 between ``start`` and ``close``, or in a ``with`` block."""

    def __init__(self, scene, options=None):
        self._options = options = options or WorldOptions()
        self.world = EmulatedWorld(scene, options.period_s)
        self.world.sleeps = options.version.startswith('0.10')
        self._calls_port = listen(options.bind, options.port)
        try:
            self._stream_port = listen(options.bind, options.port and options.port + 1)
        except BaseException:
            self._calls_port.close()
            raise
        self.port = self._calls_port.getsockname()[1]
        self.stream_port = self._stream_port.getsockname()[1]
        self._calls = Calls(self.world, self.stream_port, options.version)
        self._streams = []
        self._due_s = self._token_until_s = 0.0
        self._episode = self._n_tokens = self._n_steps = 0
        self._failure = None
        super().__init__()

    def addresses(self):
        return [('streams', self.stream_port), ('listening', self.port)]

    def _listeners(self):
        return self._calls_port, self._stream_port

    def _accept(self, listener):
        self._begin_session(listener, self._serve_calls if listener is self._calls_port
                            else self._serve_stream)

    def _close_ports(self):
        for listener in self._listeners():
            listener.close()

    def wait(self, timeout_s=None):
        """Wait until the last snapshot is sent."""
        is_over = super().wait(timeout_s)
        if self._failure is not None:
            raise self._failure
        return is_over

    def _serve_calls(self, session):
        session.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = bytearray()
        while received := session.recv(CHUNK_BYTES):
            data += received
            for request in _requests(data):
                with self._changed:
                    # Before the step that the call asks for.
                    session.sendall(self._reply(*request))
                    if self.world.n_tokens != self._n_tokens:
                        self._n_tokens = self.world.n_tokens
                        self._token_until_s = time.monotonic() + TOKEN_S
                    self._changed.notify_all()

    def _reply(self, kind, number, name, arguments):
        error = result = None
        call = None if name.startswith('_') else getattr(self._calls, name, None)
        if call is None:
            error = f'rpclib: server could not find function {name!r}'
        else:
            try:
                value = call(*arguments[1:])
                result = [[False]] if value is None else [[1, value]]
            except CallError as failure:
                result = [[call.__name__ in Calls.WITHOUT_VALUE or 0, [str(failure)]]]
            except (TypeError, ValueError, LookupError) as failure:
                error = f'rpclib: {name}: {failure}'
        return msgspec.msgpack.encode((_REPLY, number, error, result))

    def _serve_stream(self, session):
        """Send the snapshots; the client names its stream by its number first."""
        session.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        [number] = struct.unpack('<I', receive(session, 4, 'stream'))
        stream = Stream()
        with self._changed:
            self._token_until_s = 0.0
            if number == WORLD_STREAM:
                self._streams.append(stream)
            self._changed.notify_all()
        try:
            while (data := self._next_snapshot(stream)) is not None:
                session.sendall(data)
        finally:
            with self._changed:
                if stream in self._streams:
                    self._streams.remove(stream)
                self._changed.notify_all()

    def _next_snapshot(self, stream):
        """Wait for the next snapshot; return None if the server ends."""
        with self._changed:
            stream.is_sending = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: stream.waiting or self._closing.is_set())
            if self._closing.is_set():
                return None
            stream.is_sending = True
            return stream.waiting.popleft()

    def _play(self):
        try:
            while True:
                with self._changed:
                    # With the lock: close() cannot notify between this and the wait.
                    if self._closing.is_set():
                        return
                    self._send_new_episode()
                    left_s = self._left_s()
                    if left_s == 0.0:
                        self._step()
                        continue
                    if self._is_at_end() and not any(stream.is_busy for stream in self._streams):
                        self._finished.set()
                    self._changed.wait(left_s)
        except Exception as error:  # noqa: BLE001
            # Of a recording that cannot be read on, or a defect: the program ends with it.
            self._failure = error
            for session in tuple(self._sessions):
                close_connection(session)
            self._finished.set()

    def _is_at_end(self):
        return self.world.is_over or self._n_steps == self._options.n_frames

    def _left_s(self):
        """Return the time until the next step, s, None until clients do something."""
        if self._is_at_end():
            return None
        if self.world.settings.is_synchronous:
            return max(self._token_until_s - time.monotonic(), 0.0) if self.world.n_cues else None
        if not self._streams:
            return None
        if self._options.rate == 'max':
            return None if all(stream.is_busy for stream in self._streams) else 0.0
        return min(max(self._due_s - time.monotonic(), 0.0), threading.TIMEOUT_MAX)

    def _step(self):
        now_s, rate = time.monotonic(), self._options.rate
        step_s = self.world.delta_s if isinstance(rate, str) else 1.0 / rate
        # After a pause the schedule begins anew.
        self._due_s = (self._due_s if self._due_s > now_s - MAX_LAG_S else now_s) + step_s
        self.world.n_cues = max(self.world.n_cues - 1, 0)
        self.world.step()
        if not self.world.is_over:
            self._n_steps += 1
            self._send()

    def _send_new_episode(self):
        """Send the first snapshot of an episode at once: clients of the one before wait for it."""
        if self._episode != self.world.episode:
            self._episode = self.world.episode
            if self._streams:
                self.world.frame += 1
                self._send()

    def _send(self):
        data = self.world.snapshot()
        for stream in self._streams:
            stream.waiting.append(data)
        self._changed.notify_all()


def _requests(data):
    """Cut complete requests off the begin of a stream of bytes."""
    while data:
        try:
            request, end = msgspec.msgpack.decode(data), len(data)
        except ValueError as error:
            if str(error) == _CUT:
                return
            if (more := _MORE.search(str(error))) is None:
                raise FramingError('request', str(error), 'a request of rpclib') from error
            end = int(more[1])
            request = msgspec.msgpack.decode(memoryview(data)[:end])
        del data[:end]
        yield request

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A CARLA 0.8 server whose ports open late, for tests; shares nothing with the package.

* The measurements and control port open some time after EpisodeReady, and refuse until then.
* At random an open port closes again: a connection is reset at once, further ones are refused,
  and it opens later. The world port resets connections at random, too.
* Each port serves one connection; a second one waits in the backlog and receives nothing.
* In synchronous mode the server waits for a command after each frame; else it sends the newest
  frame to a slow client and drops the others.
* A lost world connection ends the episode, and the level is loaded again.
"""

from contextlib import suppress
import random
import re
import socket
import struct
import threading
import time

from budgets import AWAIT_S
import carla_wire as wire

STEP_S = 0.1
N_SPOTS = 4


def _reset(connection):
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class Episode:
    """What happened in one episode; ``commands`` are the throttles of the client."""

    def __init__(self, spot, is_synchronous):
        self.spot, self.is_synchronous = spot, is_synchronous
        self.commands, self.n_frames, self.n_sent, self.distance = [], 0, 0, 0.0
        self.sent = bytearray()
        self.is_over = False


class LateServer:
    """
    Three consecutive ports from ``world_port`` on.

    ``late_s``: bounds of the random time until a port opens; ``refuses``: probabilities that the
    world, measurements and control port close again, drawn anew each time; ``n_refused`` how
    often they did; ``rate`` frames per second; ``image_bytes`` size of one image in each frame;
    ``keeps_bytes`` whether ``Episode.sent`` has what was sent on the measurements port.
    """

    def __init__(self, world_port, late_s=(0.0, 0.0), rate=50.0, image_bytes=0, seed=0,
                 keeps_bytes=False, refuses=()):
        self.world_port = world_port
        self.n_loads = 0
        self.n_refused = 0
        # Of the world, measurements and control port.
        self._refuses = refuses or (0.0, 0.0, 0.0)
        self.episodes = []
        self._late_s, self._rate, self._image_bytes = late_s, rate, image_bytes
        self._keeps_bytes = keeps_bytes
        self._chance = random.Random(seed)
        self._frame_number = 0
        self._open = []
        self._changed = threading.Condition(threading.RLock())
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        with self._changed:
            assert self._changed.wait_for(lambda: self._open, AWAIT_S)
        return self

    def __exit__(self, *unused):
        self._is_closed = True
        self._close_all()
        self._thread.join(AWAIT_S)

    def drop(self, number):
        """Close the connection of one port, 1 measurements or 2 control."""
        with self._changed:
            for each in self._open:
                with suppress(OSError):
                    if each.getsockname()[1] == self.world_port + number and each.getpeername():
                        _reset(each)

    def cut(self):
        """Close every connection, as a server that crashes; then begin again."""
        self._close_all()

    def _close_all(self):
        with self._changed:
            for each in self._open:
                _reset(each)
            self._open = []
            self._changed.notify_all()

    def _keep(self, item):
        with self._changed:
            self._open.append(item)
        return item

    def _listen(self, port):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        while True:
            try:
                listener.bind(('127.0.0.1', port))
                break
            except OSError:
                if self._is_closed:
                    raise
                time.sleep(0.01)  # the port of the episode before is still being closed
        listener.listen(8)
        self._keep(listener)
        with self._changed:
            self._changed.notify_all()
        return listener

    def _serve(self):
        while not self._is_closed:
            self.n_loads += 1
            with suppress(OSError, EOFError):
                world = self._accepted(0, lambda: None)
                request = wire.read_message(world)
                while not self._is_closed:
                    request = self._episode(world, request)
                    self.n_loads += 1
            self._close_all()

    def _episode(self, world, request):
        """Serve one episode; return the request of the next one."""
        text = request.decode('utf-8', 'replace')
        is_synchronous = bool(re.search(r'SynchronousMode *= *true', text, re.IGNORECASE))
        spots = b''.join(wire.sub(1, wire.transform((100.0 * i, 0.0, 0.0)))
                         for i in range(N_SPOTS))
        world.sendall(wire.framed(spots + wire.sub(3, b'LateTown')))
        start = wire.read_message(world)
        episode = Episode(start[1] if start else 0, is_synchronous)
        self.episodes.append(episode)
        world.sendall(wire.framed(wire.integer(1, 1)))
        threads = [threading.Thread(target=work, args=(episode,), daemon=True)
                   for work in (self._send_frames, self._read_commands)]
        for thread in threads:
            thread.start()
        try:
            return wire.read_message(world)
        finally:
            with self._changed:
                episode.is_over = True
                ports = [each for each in self._open if each is not world
                         and (each.fileno() < 0 or each.getsockname()[1] != self.world_port)]
                self._open = [each for each in self._open if each not in ports]
                for each in ports:
                    _reset(each)
                self._changed.notify_all()
            for thread in threads:
                thread.join(AWAIT_S)

    def _late_port(self, episode, number):
        """Open a port after a while and return its only connection that stays."""
        def wait():
            self._changed.wait_for(lambda: episode.is_over,
                                   self._chance.uniform(*self._late_s))
            if episode.is_over:
                raise EOFError
        return self._accepted(number, wait)

    def _accepted(self, number, wait):
        """Open a port after each ``wait`` until it does not close again at random."""
        while True:
            with self._changed:
                wait()
                listener = self._listen(self.world_port + number)
                closes = self._chance.random() < self._refuses[number]
            connection, _ = listener.accept()
            self._keep(connection)
            if not closes:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            with self._changed:
                self.n_refused += 1
                for each in (connection, listener):
                    with suppress(ValueError):
                        self._open.remove(each)
                    _reset(each)

    def _read_commands(self, episode):
        with suppress(OSError, EOFError):
            control = self._late_port(episode, 2)
            while True:
                body = wire.read_message(control)
                throttle = struct.unpack('<f', body[body.index(b'\x15') + 1:][:4])[0] \
                    if b'\x15' in body else 0.0
                with self._changed:
                    episode.commands.append(throttle)
                    self._changed.notify_all()

    def _send_frames(self, episode):
        with suppress(OSError, EOFError):
            measurements = self._late_port(episode, 1)
            game_ms, n_used = 0, 0
            due = time.monotonic()
            while not self._is_closed:
                self._frame_number += 1
                body = wire.measurements(
                    self._frame_number, game_ms, 1,
                    wire.player(wire.transform((100.0 * episode.spot + episode.distance, 0., 0.)),
                                speed=1.0, autopilot=wire.control(throttle=0.5)))
                image = struct.pack('<IQIIIf', 1, self._frame_number, self._image_bytes // 4, 1, 1,
                                    90.0) + self._frame_number.to_bytes(8, 'little') \
                    * (self._image_bytes // 8)
                data = wire.framed(*([body, image] if self._image_bytes else [body]), b'')
                episode.n_frames += 1
                self._send(episode, measurements, data)
                if episode.is_synchronous:
                    with self._changed:
                        self._changed.wait_for(lambda used=n_used: measurements.fileno() < 0
                                               or len(episode.commands) > used)
                with self._changed:
                    n_new, n_used = len(episode.commands) - n_used, len(episode.commands)
                    if n_new:
                        episode.distance += STEP_S * episode.commands[-1]
                game_ms += int(1000 * STEP_S)
                due = max(due + 1 / self._rate, time.monotonic() - 1.0)
                time.sleep(max(due - time.monotonic(), 0.0))

    def _send(self, episode, measurements, data):
        """Send a frame; one that does not fit is dropped in asynchronous mode."""
        n_sent = 0
        n_before = len(episode.sent)
        if self._keeps_bytes:
            episode.sent += data
        if not episode.is_synchronous:
            try:
                n_sent = measurements.send(data, socket.MSG_DONTWAIT)
            except BlockingIOError:
                del episode.sent[n_before:]
                return
        if n_sent < len(data):
            measurements.sendall(data[n_sent:])
        episode.n_sent += 1

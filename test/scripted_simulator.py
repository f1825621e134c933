# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A peer on loopback with scripted replies, valid or not."""

from contextlib import contextmanager, suppress
from itertools import count
import json
import select
import signal
import socket
import struct
import threading

from budgets import AWAIT_S
from ports import free_port

NEW_MAGIC, OLD_MAGIC = 0x6D6F6E6F, 0x6F6E6F6D
NEVER = None
HANG_UP = b''


def frame(game_time=0.0, name='EgoVehicle_0', tags=('vehicle', 'ego')):
    """Return a v1 frame of one actor."""
    return json.dumps({'frame': [{'name': name, 'orientation': [0, 0, 0, 1],
                                  'position': [100.0, 0, 0], 'tags': list(tags)}],
                       'game_time': game_time, 'time': 1600000000}).encode()


def packed(payload, sample_count=1):
    """Return a packet, with the payload's own time in its header where it has one."""
    game_time = 0.0
    with suppress(ValueError, AttributeError):
        game_time = json.loads(payload).get('game_time', 0.0)
    return struct.pack('>IIfI', 16 + len(payload), 1600000000, game_time, sample_count) + payload


def reply(request, message='complete', magic=NEW_MAGIC, extra=8, **members):
    """Lay out a reply; ``extra`` is what the length counts besides the body."""
    body = json.dumps({'type': request['type'], 'reference': request['reference'],
                       'message': message} | members).encode()
    return struct.pack('>II', magic, len(body) + extra) + body


def complete(request):
    """Return the reply of a simulator to a request that succeeds."""
    return reply(request, success=True)


class ScriptedSimulator:
    """
    A control port and a sensor port.

    ``answer`` gets each request and returns the bytes to send back, NEVER or HANG_UP. With
    ``payloads``, each of the commands in ``EMITTING`` sends the next one to all readers.
    """

    EMITTING = ('SampleSensorsCommand_ID', 'REPLAY_StepSimulationCommand_ID')

    def __init__(self, answer=complete, payloads=None):
        self.answer = answer
        self.payloads = payloads
        self.requests, self.events = [], []
        self.n_outstanding = self.most_outstanding = 0
        self._changed = threading.Condition()
        self._controls, self._readers = [], []
        self._listeners = [socket.create_server(('127.0.0.1', free_port())) for _ in range(2)]
        self.control_port, self.port = (s.getsockname()[1] for s in self._listeners)
        self._threads = []
        for listener, welcome in zip(self._listeners, (self._welcome_client, self._welcome_reader),
                                     strict=True):
            listener.setblocking(False)
            self._start(self._accept, listener, welcome)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def _start(self, work, *args):
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener, welcome):
        while listener.fileno() >= 0:
            with suppress(OSError, ValueError):
                select.select([listener], [], [])
                self._take(listener, welcome)

    def _take(self, listener, welcome):
        """Accept waiting connections; a reader accepted before an emit() gets its packet."""
        with self._changed, suppress(BlockingIOError):
            while True:
                connection, _ = listener.accept()
                connection.setblocking(True)
                welcome(connection)

    def _welcome_client(self, connection):
        self._controls.append(connection)
        self._note('control opened')
        self._start(self._control, connection)

    def _welcome_reader(self, connection):
        self._readers.append(connection)
        self._note('sensor opened')
        self._start(self._sensor, connection)

    def _note(self, event):
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def _sensor(self, connection):
        with suppress(OSError):
            while connection.recv(1):
                pass
        with self._changed:
            self._readers.remove(connection)
        self._note('sensor closed')
        connection.close()

    def _control(self, connection):
        stream = connection.makefile('rb')
        with suppress(OSError, ValueError):
            while len(head := stream.read(8)) == 8:
                request = json.loads(stream.read(struct.unpack('>II', head)[1] - 8))
                if not self._serve(connection, request):
                    break
        with self._changed:
            self._controls.remove(connection)
        self._note('control closed')
        stream.close()
        connection.close()

    def _serve(self, connection, request):
        with self._changed:
            self.requests.append(request)
            self.n_outstanding += 1
            self.most_outstanding = max(self.most_outstanding, self.n_outstanding)
            self._changed.notify_all()
        data = self.answer(request)
        with self._changed:
            self.n_outstanding -= 1
        if data == HANG_UP:
            return False
        if data is not NEVER:
            connection.sendall(data)
            if self.payloads is not None and request['type'] in self.EMITTING:
                self.emit(next(self.payloads))
        return True

    def emit(self, payload, sample_count=1):
        """Send a packet to all readers."""
        packet = packed(payload, sample_count)
        self._take(self._listeners[1], self._welcome_reader)
        with self._changed:
            readers = list(self._readers)
        for reader in readers:
            # One that has left meanwhile misses it; its own thread may even have closed it here.
            with suppress(OSError):
                reader.sendall(packet)

    def wait_for(self, predicate, timeout_s=AWAIT_S):
        """Wait until ``predicate(self)`` holds; the test fails if it never does."""
        with self._changed:
            assert self._changed.wait_for(lambda: predicate(self), timeout_s), \
                (self.types(), self.events)

    def wait_for_requests(self, n):
        """Wait until ``n`` requests have arrived."""
        self.wait_for(lambda peer: len(peer.requests) >= n)

    def types(self):
        """Return the commands so far."""
        return [request['type'] for request in self.requests]

    def messages(self, command):
        """Return the bodies of all requests of one kind."""
        return [request['message'] for request in self.requests if request['type'] == command]

    def drop_sensor(self):
        """Hang up on all readers."""
        self._drop(self._readers)

    def drop_control(self):
        """Hang up on all control connections."""
        self._drop(self._controls)

    def _drop(self, connections):
        with self._changed:
            for connection in connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def close(self):
        """End everything."""
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.drop_sensor()
        self.drop_control()
        for thread in self._threads:
            thread.join(AWAIT_S)


class InBackground:
    """Work that is done while a program runs in the main thread."""

    def __init__(self, work):
        self._thread = threading.Thread(target=work, daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *unused):
        self._thread.join(AWAIT_S)
        assert not self._thread.is_alive()


def interrupting(number, peer, condition):
    """Send ourselves a signal once ``condition(peer)`` holds."""
    def work():
        peer.wait_for(condition)
        signal.pthread_kill(threading.main_thread().ident, number)

    return InBackground(work)


@contextmanager
def serving(payloads, *, stays=False):
    """Send some frames to each reader and hang up, or stay silent; gives the sensor port."""
    packets = b''.join(map(packed, payloads, count()))

    clients = []

    def serve():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with suppress(OSError):
                client.sendall(packets)
            if stays:
                clients.append(client)
            else:
                client.close()

    with socket.create_server(('127.0.0.1', 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for client in clients:
                client.close()

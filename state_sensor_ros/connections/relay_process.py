# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The process of a relay: forwards TCP connections, and copies the frames of one port to the node.

    client  <--->  listener k  | this process |  port k of the server  <--->  server
                                     | frames and events, one way
                                     v
                                   node

It is a process of its own, so that the interpreter lock of the node delays no byte, and imports
nothing of the package, so that it starts in a few milliseconds. Each connection of a client gets a
connection to the server; each direction has a thread, which blocks in system calls only. Frames
wait for the node in a queue of limited size, from which the oldest is dropped.

The frames of the copied port are messages with their lengths, uint32 little-endian, and an empty
message ends a frame: doc/protocol/carla.md#ports. Those of the described port are single messages.
What is written to the node is laid out as:

    0 kind uint8 | 1 length uint64 | 9 body

    kind 0: event, JSON; 1: frame, as received; 2: message of the described port

The process ends when the node closes its end, or ends in any way.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
import json
import os
import socket
import struct
import sys
import threading
import time
from typing import Any

EVENT, FRAME, MESSAGE = 0, 1, 2
HEAD = struct.Struct('<BQ')
_RETRY_S = 0.05
_CONNECT_TIMEOUT_S = 5.0
_CHUNK_BYTES = 2 ** 18
# Small buffers: what waits in them is old when a slow client reads it.
_SOCKET_BUFFER_BYTES = 2 ** 19
# The newest frame always has room in the queue.
_QUEUE_BYTES = 2 ** 24
_QUEUE_LENGTH = 4096
# A scene has a few hundred start spots of less than a hundred bytes.
_MAX_MESSAGE_BYTES = 2 ** 22
_LENGTH = struct.Struct('<I')


class NodeLink:
    """
    The queue of frames and events, and their way to the node.

    :param link: connected to the node.
    """

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._changed = threading.Condition()
        self._queue: deque[tuple[int, bytes | bytearray]] = deque()
        self._n_frames = self._n_bytes = self._n_dropped = 0

    def put_event(self, **event: object) -> None:
        """Append an event; none is dropped."""
        with self._changed:
            self._queue.append((EVENT, json.dumps(event).encode()))
            self._changed.notify()

    def put_message(self, message: bytes) -> None:
        """
        Append a message of the described port; none is dropped.

        :param message: without its length.
        """
        with self._changed:
            self._queue.append((MESSAGE, message))
            self._changed.notify()

    def put_frame(self, frame: bytes | bytearray) -> None:
        """
        Append a frame; drop the oldest ones where there is no room.

        :param frame: of the copied port, complete.
        """
        with self._changed:
            while self._n_frames and (self._n_bytes + len(frame) > _QUEUE_BYTES
                                      or self._n_frames >= _QUEUE_LENGTH):
                self._drop_oldest()
            self._queue.append((FRAME, frame))
            self._n_frames += 1
            self._n_bytes += len(frame)
            self._changed.notify()

    def _drop_oldest(self) -> None:
        oldest = next(i for i, (kind, _) in enumerate(self._queue) if kind == FRAME)
        self._n_bytes -= len(self._queue[oldest][1])
        self._n_frames -= 1
        self._n_dropped += 1
        del self._queue[oldest]

    def run(self) -> None:
        """Write until the node closes its end."""
        n_reported = 0
        with suppress(OSError):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._queue)
                    if self._n_dropped > n_reported:
                        n_reported = self._n_dropped
                        event = json.dumps({'event': 'dropped', 'n': n_reported}).encode()
                        self._queue.appendleft((EVENT, event))
                    kind, body = self._queue.popleft()
                    if kind == FRAME:
                        self._n_frames -= 1
                        self._n_bytes -= len(body)
                self._link.sendall(HEAD.pack(kind, len(body)))
                self._link.sendall(body)


class FrameCutter:
    """
    Cut the bytes of one connection into frames.

    :param link: that takes the frames.
    :param max_frame_bytes: longer frames are not copied.
    """

    def __init__(self, link: NodeLink, max_frame_bytes: int) -> None:
        self._link = link
        self._max = max_frame_bytes
        self._frame = bytearray()
        self._length = bytearray()
        self._n_frame = 0
        self._n_left = 0

    @property
    def n_bytes(self) -> int:
        """Return the number of bytes since the end of the last frame."""
        return self._n_frame

    def feed(self, data: memoryview) -> None:
        """
        Take the next bytes of the stream.

        :param data: of any length.
        """
        at = 0
        begin = 0  # of the bytes that are not copied yet
        while at < len(data):
            if self._n_left:
                n = min(self._n_left, len(data) - at)
                self._n_left -= n
                at += n
                self._n_frame += n
                continue
            n = min(_LENGTH.size - len(self._length), len(data) - at)
            self._length += data[at:at + n]
            at += n
            self._n_frame += n
            if len(self._length) < _LENGTH.size:
                continue
            (self._n_left,) = _LENGTH.unpack(self._length)
            self._length.clear()
            if not self._n_left:
                self._copy(data[begin:at])
                begin = at
                self._end_frame()
        self._copy(data[begin:])

    def _copy(self, data: memoryview) -> None:
        if self._n_frame <= self._max:
            self._frame += data
        else:
            self._frame.clear()

    def _end_frame(self) -> None:
        if self._n_frame <= self._max:
            self._link.put_frame(self._frame)
        else:
            self._link.put_event(event='too long', n=self._n_frame)
        self._frame = bytearray()
        self._n_frame = 0


class MessageCutter:
    """
    Cut the bytes of one connection into messages.

    :param link: that takes the messages.
    """

    n_bytes = 0

    def __init__(self, link: NodeLink) -> None:
        self._link = link
        self._data = bytearray()

    def feed(self, data: memoryview) -> None:
        """
        Take the next bytes of the stream; none after a message that is too long.

        :param data: of any length.
        """
        if len(self._data) > _MAX_MESSAGE_BYTES:
            return
        self._data += data
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            end = _LENGTH.size + length
            if len(self._data) < end:
                return
            self._link.put_message(bytes(self._data[_LENGTH.size:end]))
            del self._data[:end]


class Forwarding:
    """
    One connection of a client, and its connection to the server.

    :param client: accepted.
    :param address: of the server's port.
    :param number: of the port, from 0.
    :param link: that takes the events.
    :param cutter: takes what the server sends; None where it is not copied.
    :param patience_s: how long a refused connect is tried again, s.
    """

    def __init__(self, client: socket.socket, address: tuple[str, int], number: int,
                 link: NodeLink, cutter: FrameCutter | MessageCutter | None,
                 patience_s: float) -> None:
        self._client, self._address, self._number = client, address, number
        self._patience_s = patience_s
        self._link, self._cutter = link, cutter
        self._closing = threading.Lock()
        self._closed_by = ''

    def run(self) -> None:
        """Connect to the server and forward until either side closes."""
        error = ''
        try:
            server = self._connect()
        except OSError as failure:
            self._client.close()
            error = os.strerror(failure.errno) if failure.errno else str(failure)
            self._link.put_event(event='refused', port=self._number, error=error)
            return
        if server is None:
            self._client.close()
            self._link.put_event(event='left', port=self._number)
            return
        self._link.put_event(event='connected', port=self._number)
        with self._client, server:
            upward = threading.Thread(target=self._forward, daemon=True,
                                      args=(self._client, server, None, 'client'))
            upward.start()
            self._forward(server, self._client, self._cutter, 'server')
            upward.join()
        n_cut = 0 if self._cutter is None else self._cutter.n_bytes
        self._link.put_event(event='closed', port=self._number, by=self._closed_by, n=n_cut)

    def _connect(self) -> socket.socket | None:
        """
        Connect to the server; a refused connect is tried again while the client stays.

        :returns: None where the client has closed its connection.
        """
        until_s = time.monotonic() + self._patience_s
        is_reported = False
        while True:
            try:
                return _connected(self._address)
            except ConnectionRefusedError:
                if time.monotonic() >= until_s:
                    raise
            if not is_reported:
                is_reported = True
                self._link.put_event(event='waiting', port=self._number)
            if self._is_gone():
                return None
            time.sleep(_RETRY_S)

    def _is_gone(self) -> bool:
        try:
            return not self._client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _forward(self, source: socket.socket, target: socket.socket,
                 cutter: FrameCutter | MessageCutter | None, name: str) -> None:
        """Forward the bytes of one direction until its source closes, then close both sides."""
        buffer = memoryview(bytearray(_CHUNK_BYTES))
        try:
            while n_bytes := source.recv_into(buffer):
                try:
                    target.sendall(buffer[:n_bytes])
                except OSError:
                    name = 'server' if name == 'client' else 'client'
                    break
                # After the client has its bytes: copying delays only the next ones.
                if cutter is not None:
                    cutter.feed(buffer[:n_bytes])
        except OSError:
            pass  # a reset ends the direction as well as a close
        with self._closing:
            self._closed_by = self._closed_by or name
        for side in (source, target):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)


def _connected(address: tuple[str, int]) -> socket.socket:
    """Connect to the first address that accepts, with a receive buffer set before."""
    failure = OSError('no address')
    for family, kind, protocol, _, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        server = socket.socket(family, kind, protocol)
        try:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER_BYTES)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.settimeout(_CONNECT_TIMEOUT_S)
            server.connect(place)
            if server.getsockname() == server.getpeername():
                raise ConnectionRefusedError('connected to itself')
            server.settimeout(None)
            return server
        except OSError as error:
            server.close()
            failure = error
    raise failure


def _accept(listener: socket.socket, number: int, link: NodeLink, options: dict[str, Any]) -> None:
    """Accept the connections of a port until the process ends."""
    address = options['host'], options['ports'][number]
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            time.sleep(_RETRY_S)  # no free file descriptor
            continue
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER_BYTES)
        cutter: FrameCutter | MessageCutter | None = None
        if number == options['copied']:
            cutter = FrameCutter(link, options['max_frame_bytes'])
        elif number == options['described']:
            cutter = MessageCutter(link)
        forwarding = Forwarding(client, address, number, link, cutter, options['patience_s'])
        threading.Thread(target=forwarding.run, daemon=True).start()


def run(options: dict[str, Any]) -> None:
    """
    Forward until the node closes its end.

    :param options: ``link`` and ``listeners``, open file descriptors; ``host`` and ``ports`` of
        the server, one for each listener; ``copied``, number of the port whose frames the node
        gets; ``described``, number of the port whose messages from the server it gets;
        ``max_frame_bytes``; ``patience_s`` how long a refused connect is tried again.
    """
    with socket.socket(fileno=options['link']) as node:
        link = NodeLink(node)
        for number, listener in enumerate(options['listeners']):
            threading.Thread(target=_accept, daemon=True, args=(
                socket.socket(fileno=listener), number, link, options)).start()
        threading.Thread(target=link.run, daemon=True).start()
        # The node writes nothing: this returns when it has closed its end.
        with suppress(OSError):
            node.recv(1)
        os._exit(0)


if __name__ == '__main__':
    run(json.loads(sys.argv[1]))

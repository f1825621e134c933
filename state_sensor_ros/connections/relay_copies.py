# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What a relay copies for the node: frames and messages, and the queue in which they wait."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import suppress
import json
import socket
import struct
import threading
from typing import Protocol

EVENT, FRAME, MESSAGE = 0, 1, 2
HEAD = struct.Struct('<BQ')
# Limits for what waits; the newest frame and the newest message are always kept.
_MAX_BYTES = {FRAME: 2 ** 24, MESSAGE: 2 ** 23}
_MAX_FRAMES = 4096
_LENGTH = struct.Struct('<I')
# A scene has a few hundred start spots of less than a hundred bytes.
_MAX_MESSAGE_BYTES = 2 ** 22


class NodeLink:

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._changed = threading.Condition()
        self._queue: deque[tuple[int, bytes | bytearray]] = deque()
        self._n_items: Counter[int] = Counter()
        self._n_bytes: Counter[int] = Counter()
        self._n_dropped = 0

    def put_event(self, **event: object) -> None:
        """Append an event; none is dropped."""
        with self._changed:
            self._append(EVENT, json.dumps(event).encode())

    def put_message(self, message: bytes) -> None:
        """Append a message of the described port; drop the oldest ones if there is no room."""
        with self._changed:
            self._make_room(MESSAGE, len(message))
            self._append(MESSAGE, message)

    def put_frame(self, frame: bytes | bytearray) -> None:
        """Append a frame; drop the oldest ones if there is no room."""
        with self._changed:
            self._n_dropped += self._make_room(FRAME, len(frame))
            self._append(FRAME, frame)

    def _append(self, kind: int, body: bytes | bytearray) -> None:
        self._queue.append((kind, body))
        self._n_items[kind] += 1
        self._n_bytes[kind] += len(body)
        self._changed.notify()

    def _make_room(self, kind: int, n_bytes: int) -> int:
        """Drop the oldest items of a kind; return how many."""
        n_dropped = 0
        while self._n_items[kind] and (self._n_bytes[kind] + n_bytes > _MAX_BYTES[kind]
                                       or self._n_items[kind] >= _MAX_FRAMES):
            oldest = next(i for i, (other, _) in enumerate(self._queue) if other == kind)
            self._note_removed(*self._queue[oldest])
            del self._queue[oldest]
            n_dropped += 1
        return n_dropped

    def _note_removed(self, kind: int, body: bytes | bytearray) -> None:
        self._n_items[kind] -= 1
        self._n_bytes[kind] -= len(body)

    def run(self) -> None:
        """Write until the node closes its end."""
        n_reported = 0
        with suppress(OSError):
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._queue)
                    n_dropped = self._n_dropped
                    kind, body = self._queue.popleft()
                    self._note_removed(kind, body)
                if n_dropped > n_reported:
                    n_reported = n_dropped
                    self._write(EVENT, json.dumps({'event': 'dropped', 'n': n_dropped}).encode())
                self._write(kind, body)

    def _write(self, kind: int, body: bytes | bytearray) -> None:
        self._link.sendall(HEAD.pack(kind, len(body)))
        self._link.sendall(body)


class Cutter(Protocol):
    """Cuts the bytes of one connection."""

    @property
    def n_bytes(self) -> int:
        """Return the number of bytes since the end of the last frame."""

    def feed(self, data: memoryview) -> None:
        """Take the next bytes of the stream."""


class FrameCutter:
    """Cut the bytes of one connection into frames; those that are too long are not kept."""

    def __init__(self, link: NodeLink, max_frame_bytes: int) -> None:
        self._link, self._max = link, max_frame_bytes
        self._frame = bytearray()
        self._length = bytearray()
        self.n_bytes = 0
        self._n_left = 0

    def feed(self, data: memoryview) -> None:
        """Take the next bytes of the stream."""
        at = 0
        begin = 0  # of the bytes that are not copied yet
        while at < len(data):
            if self._n_left:
                n = min(self._n_left, len(data) - at)
                self._n_left -= n
                at += n
                self.n_bytes += n
                continue
            n = min(_LENGTH.size - len(self._length), len(data) - at)
            self._length += data[at:at + n]
            at += n
            self.n_bytes += n
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
        if self.n_bytes > self._max:
            self._frame = bytearray()
        else:
            self._frame += data

    def _end_frame(self) -> None:
        if self.n_bytes > self._max:
            self._link.put_event(event='too long', n=self.n_bytes)
        else:
            self._link.put_frame(self._frame)
        self._frame = bytearray()
        self.n_bytes = 0


class MessageCutter:
    """Cut the bytes of one connection into messages, up to the first one that is too long."""

    n_bytes = 0

    def __init__(self, link: NodeLink) -> None:
        self._link = link
        self._data = bytearray()
        self._is_too_long = False

    def feed(self, data: memoryview) -> None:
        """Take the next bytes of the stream."""
        if self._is_too_long:
            return
        self._data += data
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            if length > _MAX_MESSAGE_BYTES:
                self._is_too_long = True
                self._data = bytearray()
                return
            end = _LENGTH.size + length
            if len(self._data) < end:
                return
            self._link.put_message(bytes(self._data[_LENGTH.size:end]))
            del self._data[:end]

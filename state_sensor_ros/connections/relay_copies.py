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

from abc import ABC, abstractmethod
from collections import Counter, deque
from contextlib import suppress
import json
import socket
import struct
import threading

EVENT, FRAME, MESSAGE = 0, 1, 2
HEAD = struct.Struct('<BQ')
# Limits for what waits; the newest frame and the newest message are always kept.
_MAX_BYTES = {FRAME: 2 ** 24, MESSAGE: 2 ** 23}
_MAX_FRAMES = 4096
# So many events wait only if the node has not read during thousands of connections.
_MANY_EVENTS = 2 ** 16
_LENGTH = struct.Struct('<I')
# A scene has a few hundred start spots of less than a hundred bytes.
MAX_MESSAGE_BYTES = 2 ** 22


class NodeLink:

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._changed = threading.Condition()
        self._queue: deque[tuple[int, bytes | bytearray]] = deque()
        self._n_items: Counter[int] = Counter()
        self._n_bytes: Counter[int] = Counter()
        self._n_dropped = 0

    @property
    def has_room_for_events(self) -> bool:
        """Whether the events of another connection may be appended."""
        return self._n_items[EVENT] < _MANY_EVENTS

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

    def count_dropped_frame(self) -> None:
        """Count a frame that was given up before it was complete."""
        with self._changed:
            self._n_dropped += 1

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


class CopyMemory:
    """
    The memory for incomplete frames and messages of all connections together.

    When it is full, the other connection that uses most of it gives up its bytes.
    """

    def __init__(self, max_bytes: int) -> None:
        self.lock = threading.Lock()
        self._max_bytes = max_bytes
        self._cutters: set[Cutter] = set()

    def make_room(self, cutter: Cutter, n_bytes: int) -> None:
        """Have other connections give up bytes; called with the lock."""
        self._cutters.add(cutter)
        while sum(other.n_held for other in self._cutters) + n_bytes > self._max_bytes:
            greatest = max(self._cutters, key=lambda other: other is not cutter and other.n_held)
            if greatest is cutter or not greatest.n_held:
                return
            greatest.give_up()

    def forget(self, cutter: Cutter) -> None:
        """Free the bytes of a connection that has ended."""
        with self.lock:
            self._cutters.discard(cutter)


class Cutter(ABC):
    """Cut the bytes of one connection."""

    def __init__(self, link: NodeLink, memory: CopyMemory) -> None:
        self._link, self._memory = link, memory

    def feed(self, data: memoryview) -> None:
        """Take the next bytes of the stream."""
        with self._memory.lock:
            self._feed(data)

    def end(self) -> None:
        """Free what is incomplete."""
        self._memory.forget(self)

    @property
    @abstractmethod
    def n_bytes(self) -> int:
        """Return the number of bytes since the end of the last frame."""

    @property
    @abstractmethod
    def n_held(self) -> int:
        """Return the number of bytes in memory."""

    @abstractmethod
    def give_up(self) -> None:
        """Free the memory; what is incomplete is not copied."""

    @abstractmethod
    def _feed(self, data: memoryview) -> None:
        """Take bytes, with the lock of the memory."""


class FrameCutter(Cutter):
    """Cut the bytes of one connection into frames."""

    def __init__(self, link: NodeLink, memory: CopyMemory, max_frame_bytes: int) -> None:
        super().__init__(link, memory)
        self._max = max_frame_bytes
        self._frame = bytearray()
        self._length = bytearray()
        self._n_frame = 0
        self._n_left = 0
        self._is_given_up = False

    @property
    def n_bytes(self) -> int:
        """Return the number of bytes since the end of the last frame."""
        return self._n_frame

    @property
    def n_held(self) -> int:
        """Return the number of bytes in memory."""
        return len(self._frame)

    def give_up(self) -> None:
        """Free the memory; the frame is not copied."""
        self._is_given_up = self._n_frame > 0
        self._frame = bytearray()

    def _feed(self, data: memoryview) -> None:
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
        if self._n_frame > self._max:
            self._frame = bytearray()
        elif not self._is_given_up:
            self._memory.make_room(self, len(data))
            self._frame += data

    def _end_frame(self) -> None:
        if self._n_frame > self._max:
            self._link.put_event(event='too long', n=self._n_frame)
        elif self._is_given_up:
            self._link.count_dropped_frame()
        else:
            self._link.put_frame(self._frame)
        self._frame = bytearray()
        self._n_frame = 0
        self._is_given_up = False


class MessageCutter(Cutter):
    """Cut the bytes of one connection into messages, up to the first one that is too long."""

    n_bytes = 0

    def __init__(self, link: NodeLink, memory: CopyMemory) -> None:
        super().__init__(link, memory)
        self._data = bytearray()
        self._is_given_up = False

    @property
    def n_held(self) -> int:
        """Return the number of bytes in memory."""
        return len(self._data)

    def give_up(self) -> None:
        """Free the memory; no further message is copied."""
        self._is_given_up = len(self._data) > 0
        self._data = bytearray()

    def _feed(self, data: memoryview) -> None:
        if self._is_given_up:
            return
        self._memory.make_room(self, len(data))
        self._data += data
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            if length > MAX_MESSAGE_BYTES:
                self.give_up()
                return
            end = _LENGTH.size + length
            if len(self._data) < end:
                return
            self._link.put_message(bytes(self._data[_LENGTH.size:end]))
            del self._data[:end]

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The queue of a relay's frames, messages and events, which it writes to the node.

Layout of what is written to the node:

    0 kind uint8 | 1 length uint64 | 9 body

    kind 0: event, JSON; 1: frame, as received; 2: message of the described port
"""

from __future__ import annotations

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


class NodeLink:
    """
    The queue and its writer.

    :param link: socket connected to the node.
    """

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
        """
        Append a message of the described port; drop the oldest ones if there is no room.

        :param message: body of the message, without its length.
        """
        with self._changed:
            self._make_room(MESSAGE, len(message))
            self._append(MESSAGE, message)

    def put_frame(self, frame: bytes | bytearray) -> None:
        """
        Append a frame; drop the oldest ones if there is no room.

        :param frame: complete frame of the copied port.
        """
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
What a relay copies for the node: the frames of one port, the messages of another.

A message begins with its length, uint32 little-endian. A frame of the copied port is a sequence of
messages that ends with an empty one; the messages of the described port stand alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
import struct
import threading

from state_sensor_ros.connections.node_link import NodeLink

_LENGTH = struct.Struct('<I')
# A scene has a few hundred start spots of less than a hundred bytes.
MAX_MESSAGE_BYTES = 2 ** 22


class CopyMemory:
    """
    The memory for incomplete frames and messages of all connections together.

    When it is full, the other connection that uses most of it gives up its bytes.

    :param max_bytes: most bytes of all connections together.
    """

    def __init__(self, max_bytes: int) -> None:
        self.lock = threading.Lock()
        self._max_bytes = max_bytes
        self._cutters: set[Cutter] = set()

    def make_room(self, cutter: Cutter, n_bytes: int) -> None:
        """
        Have other connections give up bytes; called with the lock.

        :param cutter: cutter that stores the bytes next.
        :param n_bytes: number of these bytes.
        """
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
    """
    Cut the bytes of one connection.

    :param link: queue for what is complete.
    :param memory: shared with the other connections.
    """

    def __init__(self, link: NodeLink, memory: CopyMemory) -> None:
        self._link, self._memory = link, memory

    def feed(self, data: memoryview) -> None:
        """
        Take the next bytes of the stream.

        :param data: bytes, any number.
        """
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
    """
    Cut the bytes of one connection into frames.

    :param link: queue for the frames.
    :param memory: shared with the other connections.
    :param max_frame_bytes: longer frames are not copied.
    """

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
    """
    Cut the bytes of one connection into messages, up to the first one that is too long.

    :param link: queue for the messages.
    :param memory: shared with the other connections.
    """

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

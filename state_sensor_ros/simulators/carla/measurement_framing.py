# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Cut the bytes of CARLA's measurements port into frames: a measurement and its images.

    length 1 | measurement | length 2 | image | ... | 0     lengths: uint32, little-endian

A length does not count itself; a length of 0 ends the frame: doc/protocol/carla.md#ports.
"""

from __future__ import annotations

from collections.abc import Iterable
import math
import struct

from state_sensor_ros.simulators import bad_length, counted, DecodeError, Packet, TransportError

_LENGTH = struct.Struct('<I')
LENGTH_BYTES = _LENGTH.size


class MeasurementFramer:
    """
    Cut one connection's bytes into frames without touching a socket.

    The payload of a packet is the frame as sent, with the lengths, and then the scene, for
    :func:`split_frame`. The header values of a packet are unset, because CARLA sends them in the
    measurement.

    :param max_frame_bytes: longest accepted frame, with images and lengths.
    :param where: name of the stream in errors, such as ``host:port``.
    :param scene: protobuf SceneDescription with the sensors, empty if it is not known.
    """

    def __init__(self, max_frame_bytes: int, where: str = 'stream', scene: bytes = b'') -> None:
        self._max = max_frame_bytes
        self._where = where
        self._scene = scene
        self._offset = 0  # of the current frame in the stream
        self._begin()

    def _begin(self) -> None:
        self._parts: list[bytearray] = []
        self._n_bytes = 0
        self._filled = 0
        self._expect(LENGTH_BYTES)

    def _expect(self, n_bytes: int) -> None:
        part = bytearray(n_bytes)
        self._parts.append(part)
        self._view = memoryview(part)
        self._n_bytes += n_bytes

    def buffer(self) -> memoryview:
        """Return the memory for the next bytes; never empty."""
        return self._view

    def advance(self, n_bytes: int) -> Packet | None:
        """
        Accept ``n_bytes`` that were written to the start of :meth:`buffer`.

        :returns: the frame that they complete, ``None`` if there is none.
        :raises FramingError: when a length exceeds the limit; the rest of the stream is unusable.
        """
        self._filled += n_bytes
        self._view = self._view[n_bytes:]
        if len(self._view):
            return None
        (length,) = _LENGTH.unpack_from(self._parts[-1], len(self._parts[-1]) - LENGTH_BYTES)
        if length:
            if self._n_bytes + length + LENGTH_BYTES > self._max:
                raise bad_length(
                    self._where, b'' if self._offset else bytes(self._parts[0][:LENGTH_BYTES]),
                    f'message length {length} at byte {self._offset + self._filled}',
                    f'a frame of at most max_frame_bytes, {self._max}')
            # Each message is followed by another length: one buffer for both saves a read.
            self._expect(length + LENGTH_BYTES)
            return None
        payload = b''.join((*self._parts, self._scene)) if len(self._parts) > 1 else b''
        self._offset += self._filled
        self._begin()
        return Packet(payload, math.nan, 0, 0)

    def end(self) -> None:
        """
        Accept the end of the stream.

        :raises TransportError: when it ends inside a frame.
        """
        if self._filled:
            raise TransportError(self._where,
                                 f'the end of the stream {counted(self._filled, "byte")} into a '
                                 'frame',
                                 'its other messages and the empty one')


def join_messages(messages: Iterable[bytes | memoryview]) -> bytes:
    """
    Return the payload of a frame.

    :param messages: the measurement, then images; none of them empty.
    """
    parts: list[bytes | memoryview] = []
    for message in messages:
        parts += (_LENGTH.pack(len(message)), message)
    return b''.join((*parts, _LENGTH.pack(0)))


def split_messages(payload: bytes | bytearray | memoryview) -> list[memoryview]:
    """
    Split the payload of a frame without a scene.

    :param payload: result of :func:`join_messages`.
    :returns: views of its messages, the measurement first.
    :raises DecodeError: if the lengths do not fit the payload, or there is no message.
    """
    messages, scene = split_frame(payload)
    if scene:
        raise _wrong_lengths(scene.nbytes, 'behind the messages')
    return messages


def split_frame(payload: bytes | bytearray | memoryview) -> tuple[list[memoryview], memoryview]:
    """
    Split the payload of a frame.

    :param payload: payload of a :class:`MeasurementFramer`.
    :returns: views of its messages, the measurement first, and of the scene after them.
    :raises DecodeError: if the lengths do not fit the payload, or there is no message.
    """
    view = memoryview(payload)
    messages: list[memoryview] = []
    at, length = 0, 1
    while length and at + LENGTH_BYTES <= len(view):
        (length,) = _LENGTH.unpack_from(view, at)
        at += LENGTH_BYTES + length
        if length:
            messages.append(view[at - length:at])
    if not messages or length or at > len(view):
        raise _wrong_lengths(len(view), 'with an end elsewhere than that of the messages')
    return messages, view[at:]


def _wrong_lengths(n_bytes: int, text: str) -> DecodeError:
    return DecodeError('payload', f'{counted(n_bytes, "byte")} {text}',
                       'messages with their lengths, then a length of 0')

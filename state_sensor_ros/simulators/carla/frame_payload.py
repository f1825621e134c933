# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The payload of a frame: a measurement, then the messages of sensors.

As the measurements port sends it::

    length 1 | measurement | length 2 | image | ... | 0     lengths: uint32, little-endian

A length does not count itself; a length of 0 ends the frame: doc/protocol/carla.md#ports.

A message of a sensor::

    id | frame number | header of the camera or lidar | pixels or points

A server names its sensors once, in the scene: doc/protocol/carla.md#sensors.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
import re
import struct
from typing import Final

from google.protobuf.message import DecodeError as ProtobufError
import msgspec
import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators import bad_length, counted, DecodeError, TransportError
from state_sensor_ros.simulators.carla.carla_data import (
    DataFormat,
    EncodedImage,
    EncodedPoints,
    SensorData,
)
from state_sensor_ros.simulators.carla.carla_schema import SceneDescription
from state_sensor_ros.simulators.carla.sensors import (
    camera_name,
    DEPTH,
    POINTS,
    RGB,
    SEGMENTATION,
    topic_token,
)

_LENGTH = struct.Struct('<I')
LENGTH_BYTES = _LENGTH.size


class MeasurementFramer:
    """
    Cut one connection's bytes into frames without touching a socket.

    A payload is the frame as sent, with the lengths, and then the scene, for :func:`split_frame`.

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

    def advance(self, n_bytes: int) -> bytes | None:
        """Accept ``n_bytes`` that were written to the start of :meth:`buffer`."""
        # Returns the frame that they complete, ``None`` if there is none.
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
        return payload

    def end(self) -> None:
        """Accept the end of the stream."""
        if self._filled:
            raise TransportError(self._where,
                                 f'the end of the stream {counted(self._filled, "byte")} into a '
                                 'frame',
                                 'its other messages and the empty one')


def split_frame(payload: bytes | bytearray | memoryview) -> tuple[list[memoryview], memoryview]:
    """Split the payload of a frame."""
    # Returns views of its messages, the measurement first, and of the scene after them.
    view = memoryview(payload)
    messages: list[memoryview] = []
    at, length = 0, 1
    while length and at + LENGTH_BYTES <= len(view):
        (length,) = _LENGTH.unpack_from(view, at)
        at += LENGTH_BYTES + length
        if length:
            messages.append(view[at - length:at])
    if not messages or length or at > len(view):
        raise DecodeError(
            'payload', f'{counted(len(view), "byte")} with an end elsewhere than that of the '
            'messages', 'messages with their lengths, then a length of 0')
    return messages, view[at:]


_ID: Final = struct.Struct('<I')
_FRAME_NUMBER: Final = struct.Struct('<Q')
# Width, height, type, horizontal field of view in degrees.
_CAMERA: Final = struct.Struct('<IIIf')
# Horizontal angle in degrees, number of channels.
_LIDAR: Final = struct.Struct('<fI')
_CHANNEL_BYTES: Final = 4
_PIXEL_BYTES: Final = 4
_KIND_OF_TYPE: Final = (RGB, RGB, DEPTH, SEGMENTATION)
_TYPE_LIDAR: Final = 2


class SensorFile(msgspec.Struct, array_like=True):
    """A file of a sensor in a dataset: its image or points."""

    name: str  # name, kind: of the sensor as in topics
    kind: str
    fov_deg: float  # NaN if it is unknown
    data: memoryview


class DatasetPayload(msgspec.Struct, array_like=True):
    measurement: memoryview  # JSON text
    sensors: list[SensorFile]
    # Of the metadata.json of an episode by name, JSON texts; None but in its first frame.
    members: dict[str, str] | None = None

    def pack(self) -> bytes:
        return msgspec.msgpack.encode(self)

    def sensor_data(self) -> SensorData:
        """Return the images and points of its sensors."""
        return SensorData(
            tuple([EncodedImage(file.name, file.kind, file.data, fov_deg=file.fov_deg)
                   for file in self.sensors if file.kind != POINTS]),
            tuple([EncodedPoints(file.name, file.data)
                   for file in self.sensors if file.kind == POINTS]))


_DATASET_PAYLOAD: Final = msgspec.msgpack.Decoder(DatasetPayload)


def unpack_dataset(payload: bytes | bytearray | memoryview) -> DatasetPayload:
    """Return the parts of :meth:`DatasetPayload.pack`."""
    try:
        return _DATASET_PAYLOAD.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DecodeError('payload', str(error), 'a frame of a dataset') from error


def sensors_of_reply(reply: bytes) -> bytes | None:
    """Return the sensors of a scene, for :class:`ServerSensors`."""
    # Returns protobuf SceneDescription with nothing else; None for another reply.
    try:
        scene = SceneDescription.FromString(reply)
    except ProtobufError:
        return None
    if not (scene.sensors or scene.player_start_spots or scene.map_name):
        return None
    data: bytes = SceneDescription(sensors=scene.sensors).SerializeToString()
    return data


class ServerSensors:
    """Parse the messages of sensors of one server."""

    def __init__(self) -> None:
        self._scene = b''
        self._names: dict[int, tuple[str, bool]] = {}

    def parse(self, messages: Sequence[memoryview], scene: memoryview) -> SensorData:
        """Return the images and points of a frame; their data are views."""
        # scene: protobuf SceneDescription with the sensors; empty if it is not known.
        if scene != self._scene:
            self._names = _names_of(scene)
            self._scene = bytes(scene)
        images: list[EncodedImage] = []
        points: list[EncodedPoints] = []
        errors: list[DecodeError] = []
        if messages and not self._names:
            errors.append(DecodeError(
                'sensors', f'{counted(len(messages), "message")} in a frame, whose sensors have '
                'no names', 'the scene of the episode, which control_port or relay_port receives'))
        for message in messages if self._names else ():
            try:
                name, is_lidar = self._name(message)
                if is_lidar:
                    points.append(_points(name, message[_ID.size:]))
                else:
                    images.append(_image(name, message[_ID.size:]))
            except DecodeError as error:
                errors.append(error)
        return SensorData(tuple(images), tuple(points), tuple(errors))

    def _name(self, message: memoryview) -> tuple[str, bool]:
        if len(message) < _ID.size:
            raise DecodeError('sensor', counted(len(message), 'byte'), 'an id and data')
        (id_,) = _ID.unpack_from(message)
        if id_ not in self._names:
            raise DecodeError('sensor', f'the id {id_}', 'one of a sensor of the scene')
        return self._names[id_]


def _names_of(scene: memoryview) -> dict[int, tuple[str, bool]]:
    """Return by id the name of each sensor, and whether it is a lidar."""
    try:
        sensors = SceneDescription.FromString(bytes(scene)).sensors
    except ProtobufError as error:
        raise DecodeError('scene', f'{counted(len(scene), "byte")} ({error})',
                          'a protobuf SceneDescription') from error
    return {sensor.id: (sensor.name, sensor.type == _TYPE_LIDAR) for sensor in sensors}


def _image(name: str, body: memoryview) -> EncodedImage:
    """Parse the message of a camera after its id."""
    # Servers before 0.8.2 send no frame number: the two formats differ in length.
    for number_bytes in (_FRAME_NUMBER.size, 0):
        head_bytes = number_bytes + _CAMERA.size
        if len(body) < head_bytes:
            continue
        width, height, type_, fov_deg = _CAMERA.unpack_from(body, number_bytes)
        if len(body) != head_bytes + _PIXEL_BYTES * width * height:
            continue
        if type_ >= len(_KIND_OF_TYPE) or not width * height:
            raise DecodeError(f'sensor {name}', f'type {type_}, {width} x {height} pixels',
                              f'a type below {len(_KIND_OF_TYPE)}, and pixels')
        kind = _KIND_OF_TYPE[type_]
        number = _FRAME_NUMBER.unpack_from(body)[0] if number_bytes else None
        return EncodedImage(camera_name(name, kind), kind, body[head_bytes:], DataFormat.WIRE,
                            (width, height), fov_deg if math.isfinite(fov_deg) else math.nan,
                            number)
    raise DecodeError(f'sensor {name}', counted(len(body), 'byte'), 'the header of an image and '
                      'four bytes for each of its pixels')


def _points(name: str, body: memoryview) -> EncodedPoints:
    """Parse the message of a lidar after its id."""
    for number_bytes in (_FRAME_NUMBER.size, 0):
        if len(body) < number_bytes + _LIDAR.size:
            continue
        _, n_channels = _LIDAR.unpack_from(body, number_bytes)
        begin = number_bytes + _LIDAR.size
        end = begin + _CHANNEL_BYTES * n_channels
        if end > len(body):
            continue
        n_points = int(np.frombuffer(body[begin:end], '<u4').sum(dtype=np.uint64))
        if len(body) == end + POINT_BYTES * n_points:
            return EncodedPoints(topic_token(name), body[end:], DataFormat.WIRE)
    raise DecodeError(f'sensor {name}', counted(len(body), 'byte'), 'the header of a lidar and '
                      'twelve bytes for each of its points')


POINT_BYTES: Final = 12
_HEAD_END: Final = b'end_header'
_MAX_HEAD_BYTES: Final = 4096
_VERTICES: Final = re.compile(r'element vertex (\d{1,9})')
_PROPERTY: Final = 'property '
_FORMAT: Final = 'format ascii 1.0'
_XYZ: Final = ['x', 'y', 'z']
# x, y, z of the server are right, backward, down; forward, left, up are the negative of y, x, z.
_FORWARD_LEFT_UP: Final = (1, 0, 2)
_EXPECTED: Final = 'an ASCII PLY file with x, y, z of each vertex'


def decode_points(points: EncodedPoints) -> bytes:
    """Decode the points of a lidar."""
    # Returns x forward, y left, z up in meters, three float32, little-endian, for each point.
    if points.data_format is DataFormat.MESSAGE:
        return bytes(points.data)
    rows = _ply_rows(points) if points.data_format is DataFormat.FILE else _rows(points)
    return _turned(rows).tobytes()


def server_points(points: EncodedPoints) -> npt.NDArray[np.float32]:
    """Return the points in the axes of the server, (N, 3), m."""
    rows = _rows(points)
    return rows if points.data_format is DataFormat.WIRE else _turned(rows)


def _rows(points: EncodedPoints) -> npt.NDArray[np.float32]:
    return np.frombuffer(points.data, '<f4').reshape(-1, 3)


def _turned(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Convert points, (N, 3), from the axes of the server to REP 103, or back."""
    # A difference, because a negative 0 would be -0.0.
    return np.subtract(np.float32(0.0), rows[:, _FORWARD_LEFT_UP], dtype='<f4')


def _ply_rows(points: EncodedPoints) -> npt.NDArray[np.float32]:
    """Return the coordinates in a PLY file, (N, 3)."""
    where, data = f'{points.lidar} points', bytes(points.data)
    end = data.find(_HEAD_END, 0, _MAX_HEAD_BYTES)
    head = data[:max(end, 0)].decode('ascii', 'replace').splitlines()
    if end < 0 or head[:2] != ['ply', _FORMAT]:
        raise DecodeError(where, f'{counted(len(data), "byte")} with another beginning', _EXPECTED)
    counts = [match[1] for line in head if (match := _VERTICES.fullmatch(line))]
    names = [line.split()[-1] for line in head if line.startswith(_PROPERTY)]
    if len(counts) != 1 or names[:3] != _XYZ:
        raise DecodeError(where, f'{counted(len(counts), "vertex element")} with the properties '
                          f'{", ".join(names) or "none"}', _EXPECTED)
    body = data[end + len(_HEAD_END):]
    try:
        numbers = np.array(body.split(), np.float32)
        return numbers.reshape(int(counts[0]), len(names))[:, :3]
    except ValueError as error:
        raise DecodeError(where, f'{counted(len(body), "byte")} for a count of '
                          f'{counts[0]} ({error})',
                          f'{len(names)} numbers for each vertex') from error

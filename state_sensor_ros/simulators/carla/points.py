# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Decode the points of a lidar, PLY files of a dataset or as a server sends them.

Axes: doc/protocol/carla.md#lidar.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators import counted, DecodeError
from state_sensor_ros.simulators.carla.carla_data import EncodedPoints, Form

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
    """
    Decode the points of a lidar.

    :param points: a MESSAGE is returned unchanged.
    :returns: x forward, y left, z up in metres, three float32, little-endian, for each point.
    :raises DecodeError: if the data are not a PLY file of the collector.
    """
    if points.form is Form.MESSAGE:
        return bytes(points.data)
    rows = _ply_rows(points) if points.form is Form.FILE else _rows(points)
    return _turned(rows).tobytes()


def server_points(points: EncodedPoints) -> npt.NDArray[np.float32]:
    """
    Return the points in the axes of the server, (N, 3), m.

    :param points: in the form WIRE or MESSAGE.
    """
    rows = _rows(points)
    return rows if points.form is Form.WIRE else _turned(rows)


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

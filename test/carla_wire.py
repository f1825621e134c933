# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
CARLA's messages written by hand from the field tables of the protocol, for tests.

Shares nothing with the package: numbers and types of fields are typed out a second time here.
"""

import struct


def framed(*messages):
    """Put its length before each message."""
    return b''.join(struct.pack('<I', len(each)) + each for each in messages)


def join_messages(messages):
    """Return a frame of the measurements port."""
    return framed(*messages) + bytes(4)


def varint(value):
    out = bytearray()
    while True:
        value, low = value >> 7, value & 0x7f
        out.append(low | (0x80 if value else 0))
        if not value:
            return bytes(out)


def integer(number, value):
    return varint(number << 3) + varint(value) if value else b''


def fixed32(number, value):
    return varint(number << 3 | 5) + struct.pack('<I', value) if value else b''


def real(number, value):
    return varint(number << 3 | 5) + struct.pack('<f', value) if value else b''


def sub(number, body):
    return varint(number << 3 | 2) + varint(len(body)) + body


def vector(x=0.0, y=0.0, z=0.0):
    return real(1, x) + real(2, y) + real(3, z)


def transform(location=(0.0, 0.0, 0.0), roll=0.0, pitch=0.0, yaw=0.0):
    rotation = real(1, pitch) + real(2, yaw) + real(3, roll)
    return sub(1, vector(*location)) + sub(2, vector(1.0)) + sub(3, rotation)


def box(extent, location=(0.0, 0.0, 0.0), **angles):
    return sub(1, transform(location, **angles)) + sub(2, vector(*extent))


def control(steer=0.0, throttle=0.0, brake=0.0, hand_brake=False, reverse=False):
    return real(1, steer) + real(2, throttle) + real(3, brake) + integer(4, hand_brake) \
        + integer(5, reverse)


def mover(number, id_, at, speed, bounding_box):
    return sub(4, fixed32(1, id_) + sub(number, sub(1, at) + real(3, speed)
                                        + sub(4, bounding_box)))


def vehicle(id_, at, speed, bounding_box):
    return mover(2, id_, at, speed, bounding_box)


def pedestrian(id_, at, speed, bounding_box):
    return mover(3, id_, at, speed, bounding_box)


def traffic_light(id_, at, state):
    return sub(4, fixed32(1, id_) + sub(4, sub(1, at) + integer(2, state)))


def speed_limit_sign(id_, at, limit):
    return sub(4, fixed32(1, id_) + sub(5, sub(1, at) + real(2, limit)))


def player(at, *, bounding_box=None, acceleration=(0.0, 0.0, 0.0), speed=0.0,
           collisions=(0.0, 0.0, 0.0), otherlane=0.0, offroad=0.0, autopilot=b''):
    return sub(3, sub(1, at) + sub(3, vector(*acceleration)) + real(4, speed)
               + b''.join(real(5 + i, value) for i, value in enumerate(collisions))
               + real(8, otherlane) + real(9, offroad) + sub(10, autopilot)
               + (b'' if bounding_box is None else sub(12, bounding_box)))


def measurements(frame_number, game_timestamp, platform_timestamp, *parts):
    return integer(1, platform_timestamp) + integer(2, game_timestamp) + b''.join(parts) \
        + integer(5, frame_number)


def exactly(connection, size):
    """Receive ``size`` bytes; raise EOFError where the connection ends before."""
    data = b''
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def read_message(connection):
    """Receive one message with its length in front."""
    (length,) = struct.unpack('<I', exactly(connection, 4))
    return exactly(connection, length)

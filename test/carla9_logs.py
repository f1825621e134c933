# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A writer of small recorder logs of CARLA 0.9."""

import math
import struct

import numpy as np

MIRROR = np.diag((1.0, -1.0, 1.0))


def text(value):
    data = value.encode()
    return struct.pack('<H', len(data)) + data


def packet(number, content=b''):
    return struct.pack('<BI', number, len(content)) + content


def counted(number, records):
    return packet(number, struct.pack('<H', len(records)) + b''.join(records))


def header(town='Town01', date=1637671165, version=1):
    return struct.pack('<H', version) + text('CARLA_RECORDER') + struct.pack('<q', date) + text(
        town)


def added(number, type_id, pose=(0.0,) * 6, kind=1, **attributes):
    return (struct.pack('<IB6fI', number, kind, *pose, 7) + text(type_id)
            + struct.pack('<H', len(attributes)) + b''.join(
                b'\0' + text(name) + text(value) for name, value in attributes.items()))


def vectors(number, *values):
    return struct.pack('<I6f', number, *values)


def frame(number, elapsed, *packets, duration=0.05):
    return packet(0, struct.pack('<Qdd', number, duration, elapsed)) + b''.join(
        packets) + packet(1)


def drive(n_frames=6, *, has_more=True, step=0.05):
    """Return a log: a hero that climbs in a curve, a truck, a person, a light, a sign, a cone."""
    parts = [header()]
    for i in range(n_frames):
        t = i * step
        yaw = 30.0 + 20.0 * t
        packets = []
        if i == 0:
            packets += [counted(2, [
                added(1, 'spectator', kind=0), added(8, 'vehicle.tesla.model3', role_name='hero',
                                                     number_of_wheels='4'),
                added(9, 'vehicle.carlamotors.firetruck', role_name='autopilot'),
                added(5, 'walker.pedestrian.0001', kind=2),
                added(6, 'traffic.traffic_light', (1000.0, -200.0, 10.0, 0.0, 0.0, 90.0), 3),
                added(7, 'traffic.speed_limit.30', (0.0, 500.0, 0.0, 1.0, 2.0, -90.0), 4),
                added(3, 'static.prop.trafficcone01', kind=0),
                added(4, 'static.prop.mesh', kind=0)])]
        packets += [counted(6, [
            vectors(1, 5.0, 6.0, 700.0, 0.0, -30.0, 0.0),
            vectors(9, 2000.0 + 500.0 * t, -300.0, 30.0, 0.5, 0.0, 180.0),
            vectors(8, 100.0 + 900.0 * t, 200.0 + 300.0 * t, 40.0 + 50.0 * t, 3.0, 5.0, yaw),
            vectors(5, 300.0, 400.0 - 150.0 * t, 95.0, 0.0, 0.0, -90.0),
            *[vectors(number, 10.0, 20.0, 3.0, 0.0, 0.0, 0.0) for number in (3, 3, 4)]]),
            # Low beam and left; low beam and hazard lights.
            counted(10, [struct.pack('<II', 8, 0x22), struct.pack('<II', 9, 0x32)])]
        packets += [counted(7, [struct.pack('<IBfB', 6, 0, t, i % 5)])]
        packets += [counted(8, [struct.pack('<IfffBi', 8, 0.25, 0.5, 0.0, 0, 2),
                                struct.pack('<IfffBi', 9, -0.5, 0.0, 1.0, 1, 0)])]
        if has_more:
            packets += [counted(12, [
                vectors(8, 9.0, 3.0, 0.5, 1.0, -2.0, 20.0), vectors(5, 0.0, -1.5, 0.0, 0, 0, 0),
                vectors(9, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0)])]
            if i == 0:
                infinite = (math.nan,) * 3 + (-math.inf,) * 3
                packets += [counted(13, [
                    vectors(8, 4.0, 1.0, 70.0, 240.0, 100.0, 75.0), vectors(1, *infinite),
                    vectors(9, 0.0, 0.0, 150.0, 400.0, 130.0, 160.0),
                    vectors(5, 0.0, 0.0, 0.0, 18.0, 18.0, 93.0)])]
            packets += [counted(22, [struct.pack('<II', 8, 4) + b''.join(
                struct.pack('<Bff', k, 10.0 + k if k < 2 else 0.0, 0.0) for k in range(4))])]
        parts.append(frame(i + 1, t, *packets))
    return b''.join(parts)


def matrix(roll, pitch, yaw):
    """Return a rotation as the matrix of CARLA has it: its columns are the axes."""
    cr, sr = math.cos(math.radians(roll)), math.sin(math.radians(roll))
    cp, sp = math.cos(math.radians(pitch)), math.sin(math.radians(pitch))
    cy, sy = math.cos(math.radians(yaw)), math.sin(math.radians(yaw))
    return np.array([[cp * cy, cy * sp * sr - sy * cr, -cy * sp * cr - sy * sr],
                     [cp * sy, sy * sp * sr + cy * cr, -sy * sp * cr + cy * sr],
                     [sp, -cp * sr, cp * cr]])

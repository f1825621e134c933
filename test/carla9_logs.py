# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A writer of small recorder logs of CARLA 0.9, and another reader of all logs.

The reader shares no code with the package and computes in matrices. As a program this module
compares both readers on genuine logs.
"""

import math
import struct
import sys

import numpy as np

MIRROR = np.diag((1.0, -1.0, 1.0))
# Records of one size by packet.
LISTS = {3: 'I', 6: 'I6f', 7: 'IBfB', 8: 'IfffBi', 12: 'I6f', 13: 'I6f'}
COLORS = {0: 'red', 1: 'yellow', 2: 'green'}


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


class Cursor:
    """A position in bytes."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, layout):
        values = struct.unpack_from('<' + layout, self.data, self.at)
        self.at += struct.calcsize('<' + layout)
        return values if len(values) > 1 or layout == 'I' else values[0]

    def text(self):
        length = self.take('H')
        self.at += length
        return self.data[self.at - length:self.at].decode()


def read(data):
    """
    Yield (time, actors, lights, ego id) of each frame of a log.

    ``actors`` by id: type, 4x4 matrix (m, REP-103), velocity and rate in the axes of the world
    (None if the log has none), box as matrix and size, and controls. ``lights`` by id a color.
    """
    cursor = Cursor(data)
    assert cursor.take('H') == 1
    assert cursor.text() == 'CARLA_RECORDER'
    cursor.take('q')
    cursor.text()
    known = {}
    while cursor.at < len(data):
        number, length = cursor.take('BI')
        end = cursor.at + length
        if number == 0:
            _, _, elapsed = cursor.take('Qdd')
            lists = {}
        elif number == 1:
            for actor in lists.get(3, ()):
                known.pop(actor[0])
            for actor, *box in lists.get(13, ()):
                if actor in known:
                    known[actor]['box'] = box
            lights = {actor: COLORS[state] for actor, _, _, state in lists.get(7, ())
                      if state in COLORS}
            yield elapsed, _actors(known, lists), lights, _ego(known)
        elif number == 2:
            for _ in range(cursor.take('H')):
                _add(cursor, known)
        elif number in LISTS:
            lists[number] = [cursor.take(LISTS[number]) for _ in range(cursor.take('H'))]
        cursor.at = end


def _add(cursor, known):
    actor, _, *pose, _ = cursor.take('IB6fI')
    type_id = cursor.text()
    more = {}
    for _ in range(cursor.take('H')):
        cursor.take('B')
        name = cursor.text()
        more[name] = cursor.text()
    known[actor] = {'type': type_id, 'pose': pose, 'more': more, 'box': None}


def _ego(known):
    return next((actor for actor, one in known.items()
                 if one['more'].get('role_name') == 'hero'), None)


def _placed(pose):
    whole = np.eye(4)
    whole[:3, :3] = MIRROR @ matrix(*pose[3:]) @ MIRROR
    whole[:3, 3] = MIRROR @ np.array(pose[:3]) / 100.0
    return whole


def _actors(known, lists):
    moves, speeds = ({actor: values for actor, *values in lists.get(number, ())}
                     for number in (6, 12))
    controls = {actor: (throttle, brake, -steer)
                for actor, steer, throttle, brake, _, _ in lists.get(8, ())}
    actors = {}
    for number, one in known.items():
        group = one['type'].split('.')[0]
        is_fixed = group == 'traffic'
        if group not in ('vehicle', 'walker', 'static', 'traffic') \
                or one['type'] == 'static.prop.mesh' or not (is_fixed or number in moves):
            continue
        whole = _placed(moves.get(number, one['pose']))
        speed = speeds.get(number)
        if is_fixed:
            speed = [0.0] * 6
        box = one['box']
        if is_fixed or (box is not None and not np.isfinite(box).all()):
            box = None
        if box is not None:
            middle = np.eye(4)
            middle[:3, 3] = MIRROR @ np.array(box[:3]) / 100.0
            box = (whole @ middle, np.array(box[3:]) / 50.0)
        actors[number] = {
            'type': one['type'], 'whole': whole, 'box': box, 'controls': controls.get(number),
            'velocity': None if speed is None else MIRROR @ np.array(speed[:3]),
            'rate': None if speed is None else -MIRROR @ np.radians(speed[3:])}
    return actors


def _matrix_of(quaternion):
    x, y, z, w = quaternion
    vector = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2.0 * w * vector + 2.0 * vector @ vector


def compare(path):
    """
    Compare all frames of a log as the library and as :func:`read` give them.

    :returns: numbers of frames, actors, velocities, boxes, lights, frames with an ego that were
        compared, the largest differences of position (m), rotation, velocity, rate and box, and
        the largest difference between a velocity of the log and the movement.
    """
    import state_sensor_ros as sensor
    with open(path, 'rb') as file:
        expected = list(read(file.read()))
    counts = dict.fromkeys(('frames', 'actors', 'velocities', 'boxes', 'lights', 'egos',
                            'controls'), 0)
    worst = dict.fromkeys(('position', 'rotation', 'velocity', 'rate', 'box', 'controls'), 0.0)

    def note(kind, found, wanted):
        worst[kind] = max(worst[kind], float(np.abs(np.asarray(found) - wanted).max()))

    with sensor.open_recording(path) as recording:
        for found, (elapsed, actors, lights, ego) in zip(recording, expected, strict=True):
            counts['frames'] += 1
            assert (found.game_time, found.generation) == (elapsed, 'carla9')
            assert len(found) == len(actors)
            ids = {number: found.row('hero') if number == ego and number in actors
                   else found.row(f'{one["type"]}_{number}') for number, one in actors.items()}
            assert found.ego == (ids[ego] if ego in actors else None)
            counts['egos'] += found.ego is not None
            of_box = dict(zip(found.boxes.actor.tolist(), range(len(found.boxes)), strict=True))
            for number, one in actors.items():
                row = ids[number]
                counts['actors'] += 1
                note('position', found.position_xyz[row], one['whole'][:3, 3])
                note('rotation', _matrix_of(found.orientation_xyzw[row]), one['whole'][:3, :3])
                if one['velocity'] is not None:
                    counts['velocities'] += 1
                    note('velocity', found.velocity_xyz[row], one['velocity'])
                    note('rate', found.angular_velocity_xyz[row], one['rate'])
                # That of a person without one is assumed.
                assert (one['box'] is not None) == (
                    row in of_box and not found.is_derived(2)[row])
                if one['box'] is not None:
                    counts['boxes'] += 1
                    box = of_box[row]
                    note('box', found.boxes.position_xyz[box], one['box'][0][:3, 3])
                    note('box', found.boxes.size_xyz[box], one['box'][1])
                    note('box', _matrix_of(found.boxes.orientation_xyzw[box]),
                         one['box'][0][:3, :3])
                assert (one['controls'] is not None) == bool(
                    np.isfinite(found.inputs[row, :3]).all())
                if one['controls'] is not None:
                    counts['controls'] += 1
                    note('controls', found.inputs[row, :3], one['controls'])
            shown = found.traffic_lights
            names = ('green', 'yellow', 'red')
            assert {int(number): names[state] for number, state in zip(
                shown.ids, shown.states, strict=True)} == lights
            counts['lights'] += len(lights)
            for number, place in zip(shown.ids.tolist(), shown.poses, strict=True):
                note('position', place[:3], actors[number]['whole'][:3, 3])
    return counts, worst


if __name__ == '__main__':
    for name in sys.argv[1:]:
        sys.stdout.write(f'{name} {compare(name)}\n')

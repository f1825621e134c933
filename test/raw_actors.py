# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The actors of a trajectory file, read from its JSON by formulas of their own.

Nothing here is shared with the package: scalars and products of quaternions.
"""

from dataclasses import dataclass, field
import math

import numpy as np

CAR = (4.6, 1.85, 1.5)
PERSON = (0.6, 0.6, 1.75)


@dataclass
class RawActor:
    """One actor; SI units, x forward, y left, z up."""

    name: str
    tags: tuple
    is_vehicle: bool
    position: tuple
    orientation: tuple
    velocity: tuple
    rate: tuple
    boxes: list = field(default_factory=list)
    wheels: dict = field(default_factory=dict)
    steering: float = math.nan


def number(value):
    return 0.0 if value is None else float(value)


def polar(values):
    x, y, z = map(number, values)
    return x / 100.0, -y / 100.0, z / 100.0


def rotation(values):
    x, y, z, w = values
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    return -x / norm, y / norm, -z / norm, w / norm


def axial(values):
    x, y, z = map(number, values)
    return -x, y, -z


def xyz(member):
    return [member[axis] for axis in 'xyz']


def xyzw(member):
    return [member[axis] for axis in 'xyzw']


def nested(state, is_vehicle, wheels=()):
    odometry = state['odometry']
    pose = odometry['pose']
    actor = RawActor(
        state['name'], tuple(state['tags']), is_vehicle, polar(xyz(pose['position'])),
        rotation(xyzw(pose['orientation'])), polar(xyz(odometry['linear_velocity'])),
        axial(xyz(odometry['angular_velocity'])))
    for box in state['oriented_bounding_box']:
        actor.boxes.append((polar(xyz(box['center'])), rotation(xyzw(box['orientation'])),
                            tuple(abs(edge) for edge in polar(xyz(box['extents'])))))
    for wheel in wheels:
        actor.wheels[wheel['id']] = (polar(xyz(wheel['pose']['position'])),
                                     rotation(xyzw(wheel['pose']['orientation'])))
    return actor


def flat(state, name):
    tags = tuple(state['tags'])
    actor = RawActor(
        name, tags, 'vehicle' in tags, polar(state['position']), rotation(state['orientation']),
        polar(state['velocity']), axial(state['angular_velocity']))
    if 'steering_direction' in state:
        actor.steering = -math.radians(state['steering_direction'])
    for wheel in state.get('wheels', ()):
        # Front wheels have the ids 1 and 2 in this generation; it has no positions.
        actor.wheels[wheel['id'] - 1] = (None, rotation(wheel['orientation']))
    return actor


def frames_of(elements):
    """
    Return time and actors by name of each frame whose clock has advanced.

    :param elements: of a trajectory of generation v0, v1 or v2.
    """
    frames = []
    for element in elements:
        if frames and element['game_time'] <= frames[-1][0]:
            continue
        content = element.get('frame')
        if isinstance(content, dict):
            actors = [nested(each, False) for each in content['objects']]
            actors += [nested(each['state'], True, each['wheels']) for each in content['vehicles']]
        elif content is not None:
            actors = [flat(each, each['name']) for each in content]
        else:
            actors = [flat(each, name) for name, each in element.items()
                      if name not in ('game_time', 'time', 'sample_count')]
        frames.append((element['game_time'], {actor.name: actor for actor in actors}))
    return frames


def product(a, b):
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (aw * bx + ax * bw + ay * bz - az * by, aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw, aw * bw - ax * bx - ay * by - az * bz)


def conjugate(q):
    return -q[0], -q[1], -q[2], q[3]


def turned(q, v):
    """Rotate v by q."""
    return product(product(q, (*v, 0.0)), conjugate(q))[:3]


def matrix_of(q):
    """Return the axes of a body as columns."""
    return np.array([turned(q, axis) for axis in np.eye(3)]).T


def into(q, v):
    """Return v, in the axes of the global frame, in those of a body with orientation q."""
    return turned(conjugate(q), v)


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def plus(a, b, factor=1.0):
    return tuple(x + factor * y for x, y in zip(a, b, strict=True))


def center_and_size(actor):
    """Return center of the largest box and edge lengths along the actor's axes."""
    if not actor.boxes:
        size = PERSON if 'pedestrian' in actor.tags else CAR
        return plus(actor.position, turned(actor.orientation, (0.0, 0.0, size[2] / 2.0))), size
    center, orientation, edges = max(actor.boxes, key=lambda box: math.prod(box[2]))
    size = [0.0, 0.0, 0.0]
    for axis in range(3):
        edge = [0.0, 0.0, 0.0]
        edge[axis] = edges[axis]
        along = into(actor.orientation, turned(orientation, edge))
        size = [length + abs(part) for length, part in zip(size, along, strict=True)]
    return center, tuple(size)


def velocity_at(actor, point):
    return plus(actor.velocity, cross(actor.rate, plus(point, actor.position, -1.0)))

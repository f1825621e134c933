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


def numbers_of(value, axes='xyz'):
    return [value[axis] for axis in axes] if isinstance(value, dict) else value


def states_of(element):
    """Return the states of a frame of any generation, with the wheels of v2, the names of v0."""
    content = element.get('frame')
    if isinstance(content, dict):
        return [*content['objects'], *({**each['state'], 'wheels': each['wheels']}
                                       for each in content['vehicles'])]
    return content or [{'name': name, **each} for name, each in element.items()
                       if isinstance(each, dict)]


def actor_of(state):
    """Return an actor; what a state does not have is 0."""
    odometry, tags = state.get('odometry', state), tuple(state['tags'])
    is_flat, pose, unknown = odometry is state, odometry.get('pose', state), (None,) * 3
    actor = RawActor(
        state['name'], tags, 'vehicle' in tags if is_flat else 'wheels' in state,
        polar(numbers_of(pose['position'])), rotation(numbers_of(pose['orientation'], 'xyzw')),
        polar(numbers_of(odometry.get('linear_velocity', odometry.get('velocity', unknown)))),
        axial(numbers_of(odometry.get('angular_velocity', unknown))),
        steering=-math.radians(state.get('steering_direction', math.nan)))
    for box in state.get('oriented_bounding_box', ()):
        actor.boxes.append((
            polar(numbers_of(box['center'])), rotation(numbers_of(box['orientation'], 'xyzw')),
            tuple(abs(edge) for edge in polar(numbers_of(box['extents'])))))
    for wheel in state.get('wheels', ()):
        # Front wheels have the ids 1 and 2 in flat generations, which have no positions.
        own = wheel if is_flat else wheel['pose']
        actor.wheels[wheel['id'] - is_flat] = (
            None if is_flat else polar(numbers_of(own['position'])),
            rotation(numbers_of(own['orientation'], 'xyzw')))
    return actor


def actors_of(element):
    """Return the actors of a frame of any generation by name."""
    return {state['name']: actor_of(state) for state in states_of(element)}


def frames_of(elements):
    """Return time and actors by name of each frame whose clock has advanced."""
    frames = []
    for element in elements:
        if not frames or element['game_time'] > frames[-1][0]:
            frames.append((element['game_time'], actors_of(element)))
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

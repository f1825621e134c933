# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The bodies of the world: types that clients can spawn, and what moves by itself, at one instant.

Units and axes of CARLA: meters, degrees, x forward, y right, z up. A positive pitch raises the
nose, a positive yaw turns right, a positive roll lowers the right side.
"""

from dataclasses import dataclass
import re

import numpy as np

# Columns of the numbers of an actor: position, pitch yaw roll, velocity and acceleration in the
# axes of the world, angular velocity about them in degrees.
POSITION, ROTATION, VELOCITY = slice(0, 3), slice(3, 6), slice(6, 9)
ANGULAR_VELOCITY, ACCELERATION = slice(9, 12), slice(12, 15)
N_NUMBERS = 15
RED, YELLOW, GREEN, OFF, UNKNOWN = range(5)
# Types of the values of attributes.
INT, TEXT, COLOR = 2, 4, 5
# Tag of an actor, type, CARLA's word for its base, wheels, class, half edge lengths (m), in the
# order in which they are chosen.
VEHICLES = (
    ('truck', 'vehicle.carlamotors.carlacola', 'truck', 4, 15, (3.6, 1.2, 1.4)),
    ('bus', 'vehicle.mitsubishi.fusorosa', 'bus', 4, 16, (5.1, 1.3, 1.5)),
    ('motorcycle', 'vehicle.yamaha.yzf', 'motorcycle', 2, 18, (1.1, 0.4, 0.8)),
    ('bicycle', 'vehicle.bh.crossbike', 'bicycle', 2, 19, (0.85, 0.3, 0.85)),
    ('suv', 'vehicle.jeep.wrangler_rubicon', 'car', 4, 14, (2.4, 1.0, 0.75)),
    ('crossover', 'vehicle.nissan.patrol', 'car', 4, 14, (2.4, 1.0, 0.75)),
    ('compact', 'vehicle.audi.a2', 'car', 4, 14, (2.4, 1.0, 0.75)),
    ('subcompact', 'vehicle.micro.microlino', 'car', 4, 14, (2.4, 1.0, 0.75)),
    ('van', 'vehicle.volkswagen.t2', 'van', 4, 14, (2.5, 1.05, 1.0)),
    ('car', 'vehicle.tesla.model3', 'car', 4, 14, (2.4, 1.0, 0.75)))
# Type and class of what else there is.
WALKER, LIGHT = ('walker.pedestrian.0001', 12), ('traffic.traffic_light', 7)
SIGN, CONE = ('traffic.speed_limit.90', 8), ('static.prop.trafficcone01', 20)
WALKER_EXTENT, CONE_EXTENT = (0.19, 0.19, 0.93), (0.16, 0.16, 0.32)
NOWHERE = (0.0, 0.0, 0.0)
NO_BOX = NOWHERE, NOWHERE, NOWHERE


@dataclass(frozen=True)
class Body:
    """What of an actor stays the same."""

    name: str  # unique among those that move by themselves
    type_id: str  # such as ``vehicle.tesla.model3``
    attributes: tuple = ()  # (name, type, value) of each
    center: tuple = NOWHERE  # of its box from its origin
    extent: tuple = NOWHERE  # half edge lengths, m
    tilt: tuple = NOWHERE  # pitch yaw roll of the box on it
    semantic_tags: tuple = ()  # numbers of CARLA's classes
    sign_id: str = ''  # of a light or a sign in the map

    @property
    def family(self):
        """First word of the type: vehicle, walker, traffic, static."""
        return self.type_id.partition('.')[0]

    @property
    def is_light(self):
        return self.type_id == LIGHT[0]

    def attribute(self, name):
        """Return the value of an attribute, '' if it has none of this name."""
        return next((value for key, _, value in self.attributes if key == name), '')


@dataclass(frozen=True)
class SceneFrame:
    """The actors that move by themselves, at one instant."""

    time_s: float  # since the scene began
    bodies: tuple  # N of Body, the same tuple as long as they are the same
    numbers: np.ndarray  # (N, 15) float64
    controls: np.ndarray  # (N, 3) float64, throttle and brake 0..1, steer -1..1, + = right
    # (N,) uint8, states of traffic lights, None if they follow their own times.
    lights: np.ndarray | None = None


def rotations_of_axes(axes):
    """Convert body axes (N, 3, 3), rows x y z, to rotators (N, 3): pitch, yaw, roll, degrees."""
    forward, right, up = axes[:, 0], axes[:, 1], axes[:, 2]
    return np.degrees(np.stack([
        np.arcsin(np.clip(forward[:, 2], -1.0, 1.0)), np.arctan2(forward[:, 1], forward[:, 0]),
        np.arctan2(-right[:, 2], up[:, 2])], axis=-1))


def axes_of_rotation(rotation):
    """Undo :func:`rotations_of_axes` of one rotation."""
    (sp, sy, sr), (cp, cy, cr) = np.sin(np.radians(rotation)), np.cos(np.radians(rotation))
    return np.array([(cp * cy, cp * sy, sp),
                     (sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, -sr * cp),
                     (-cr * sp * cy - sr * sy, cy * sr - cr * sp * sy, cr * cp)])


def vehicle_attributes(kind, role_name):
    return (('role_name', TEXT, role_name), ('color', COLOR, '120,120,120'),
            ('number_of_wheels', INT, str(kind[3])), ('base_type', TEXT, kind[2]))


def body_of(name, tags, box=NO_BOX, *, is_vehicle=False, is_ego=False, model=''):
    """Return a body of the type that fits the tags; ``model`` counts before these."""
    words = {tag.lower() for tag in tags}
    kind = next((kind for kind in VEHICLES if kind[0] == model.lower()), None) or next(
        (kind for kind in VEHICLES if kind[0] in words), VEHICLES[-1] if is_vehicle else None)
    if kind is not None:
        type_id, label = kind[1], kind[4]
        attributes = vehicle_attributes(kind, 'hero' if is_ego else 'autopilot')
    else:
        type_id, label = (WALKER if words & {'pedestrian', 'walker', 'person'}
                          else LIGHT if 'traffic_light' in words
                          else SIGN if 'traffic_sign' in words else CONE)
        attributes = (('role_name', TEXT, 'hero' if is_ego else re.sub(r'\W+', '_', name)),)
    center, extent, tilt = box
    return Body(name, type_id, attributes, center, extent, tilt, semantic_tags=(label,))


# Types that a client can spawn.
BLUEPRINTS = {body.type_id: body for body in (
    *(Body('', kind[1], vehicle_attributes(kind, 'autopilot'), (0.0, 0.0, kind[5][2]), kind[5],
           semantic_tags=(kind[4],)) for kind in VEHICLES),
    Body('', WALKER[0], (('role_name', TEXT, 'pedestrian'),), NOWHERE, WALKER_EXTENT,
         semantic_tags=WALKER[1:]),
    Body('', CONE[0], (('role_name', TEXT, 'prop'),), (0.0, 0.0, CONE_EXTENT[2]), CONE_EXTENT,
         semantic_tags=CONE[1:]))}

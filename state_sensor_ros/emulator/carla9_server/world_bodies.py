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

from __future__ import annotations

from dataclasses import dataclass
import re
from typing import Protocol

import numpy as np
import numpy.typing as npt

from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.traffic.road import FloatArray

# Columns of the numbers of an actor: position, pitch yaw roll, velocity and acceleration in the
# axes of the world, angular velocity about them in degrees.
POSITION, ROTATION, VELOCITY = slice(0, 3), slice(3, 6), slice(6, 9)
ANGULAR_VELOCITY, ACCELERATION = slice(9, 12), slice(12, 15)
N_NUMBERS = 15
RED, YELLOW, GREEN, OFF, UNKNOWN = range(5)
# Types of the values of attributes.
BOOL, INT, FLOAT, TEXT, COLOR = 1, 2, 3, 4, 5

Attributes = tuple[tuple[str, int, str], ...]
Triple = tuple[float, float, float]
Box = tuple[Triple, Triple, Triple]
EnvironmentObject = tuple[tuple[Triple, Triple], list[object], int, str, int]
# Half edge lengths of a vehicle by CARLA's word for its base, m.
_EXTENTS: dict[str, Triple] = {
    'car': (2.4, 1.0, 0.75), 'van': (2.5, 1.05, 1.0), 'truck': (3.6, 1.2, 1.4),
    'bus': (5.1, 1.3, 1.5), 'motorcycle': (1.1, 0.4, 0.8), 'bicycle': (0.85, 0.3, 0.85)}
# Half edge lengths of a walker, m.
WALKER_EXTENT: Triple = (0.19, 0.19, 0.93)
_WALKER_ATTRIBUTES: Attributes = (
    ('role_name', TEXT, 'pedestrian'), ('is_invincible', BOOL, 'true'), ('speed', FLOAT, '1.4'),
    ('gender', TEXT, 'female'), ('age', TEXT, 'adult'), ('generation', INT, '1'))
_CONE_EXTENT: Triple = (0.16, 0.16, 0.32)
_ROLE: Attributes = (('role_name', TEXT, 'autopilot'),)
# Sensors exist and are attached; they never send.
_SENSORS = (
    'sensor.camera.rgb', 'sensor.camera.depth', 'sensor.camera.semantic_segmentation',
    'sensor.lidar.ray_cast', 'sensor.other.collision', 'sensor.other.gnss', 'sensor.other.imu',
    'sensor.other.lane_invasion', 'sensor.other.obstacle', 'sensor.other.radar')
_SENSOR_ATTRIBUTES: Attributes = (
    ('role_name', TEXT, 'front'), ('sensor_tick', FLOAT, '0.0'), ('image_size_x', INT, '800'),
    ('image_size_y', INT, '600'), ('fov', FLOAT, '90.0'))


@dataclass(frozen=True, slots=True)
class Body:
    """What of an actor stays the same."""

    name: str  # unique among those that move by themselves
    type_id: str  # such as ``vehicle.tesla.model3``
    attributes: Attributes = ()
    center: Triple = (0.0, 0.0, 0.0)  # of its box from its origin
    extent: Triple = (0.0, 0.0, 0.0)  # half edge lengths, m
    tilt: Triple = (0.0, 0.0, 0.0)  # pitch yaw roll of the box on it
    semantic_tags: tuple[int, ...] = ()  # numbers of CARLA's classes
    sign_id: str = ''  # of a light or a sign in the map
    group: int = -1  # of a light that changes with others, and its ``pole_index`` there
    pole_index: int = 0

    @property
    def family(self) -> str:
        """First word of the type: vehicle, walker, traffic, static, sensor."""
        return self.type_id.partition('.')[0]

    @property
    def is_light(self) -> bool:
        return self.type_id == 'traffic.traffic_light'

    def attribute(self, name: str) -> str:
        """Return the value of an attribute, '' if it has none of this ``name``."""
        return next((value for key, _, value in self.attributes if key == name), '')


@dataclass(frozen=True, slots=True)
class SceneFrame:
    """The actors that move by themselves, at one instant."""

    time_s: float  # since the scene began
    bodies: tuple[Body, ...]  # N, the same tuple as long as they are the same
    numbers: FloatArray  # (N, 15) float64
    controls: FloatArray  # (N, 3) float64, throttle and brake 0..1, steer -1..1, + = right
    # (N,) uint8, states of traffic lights, None if they follow their own times.
    lights: npt.NDArray[np.uint8] | None = None


class MovingScene(Protocol):
    """A sequence of frames."""

    ego: str  # name of the body that clients can drive, '' for none
    xodr: str
    spawn_points: list[tuple[Triple, Triple]]  # position and rotation of each
    # Of each object of the map that is not an actor: its transform, its box in the world, id, name
    # and class.
    environment: list[EnvironmentObject]

    def first(self) -> SceneFrame | None:
        """Return the frame at the begin of an episode, None if there is none."""

    def advance(self, elapsed_s: float | None) -> SceneFrame | None:
        """Return the next frame, None after the last one."""
        # elapsed_s: simulated time since the frame before, s; None for that of the scene.

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego from now on, steering to the right positive."""


def rotations_of_axes(axes: FloatArray) -> FloatArray:
    """Convert body axes to rotators."""
    # axes: (N, 3, 3) unit axes as rows x, y, z.
    # Returns (N, 3) pitch, yaw, roll, degrees.
    forward, right, up = axes[:, 0], axes[:, 1], axes[:, 2]
    rotations: FloatArray = np.degrees(np.stack([
        np.arcsin(np.clip(forward[:, 2], -1.0, 1.0)), np.arctan2(forward[:, 1], forward[:, 0]),
        np.arctan2(-right[:, 2], up[:, 2])], axis=-1))
    return rotations


def axes_of_rotation(rotation: FloatArray) -> FloatArray:
    """Undo :func:`rotations_of_axes`."""
    # rotation: (3,) pitch, yaw, roll, degrees.
    # Returns (3, 3) unit axes as rows x, y, z.
    (sp, sy, sr), (cp, cy, cr) = np.sin(np.radians(rotation)), np.cos(np.radians(rotation))
    return np.array([(cp * cy, cp * sy, sp),
                     (sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, -sr * cp),
                     (-cr * sp * cy - sr * sy, cy * sr - cr * sp * sy, cr * cp)])


# Types that exist, in the order in which they are chosen: tag of an actor, type, CARLA's word for
# its base, wheels, class.
VEHICLE_TYPES = (
    ('truck', 'vehicle.carlamotors.carlacola', 'truck', 4, 15),
    ('bus', 'vehicle.mitsubishi.fusorosa', 'bus', 4, 16),
    ('motorcycle', 'vehicle.yamaha.yzf', 'motorcycle', 2, 18),
    ('bicycle', 'vehicle.bh.crossbike', 'bicycle', 2, 19),
    ('suv', 'vehicle.jeep.wrangler_rubicon', 'car', 4, 14),
    ('crossover', 'vehicle.nissan.patrol', 'car', 4, 14),
    ('compact', 'vehicle.audi.a2', 'car', 4, 14),
    ('subcompact', 'vehicle.micro.microlino', 'car', 4, 14),
    ('van', 'vehicle.volkswagen.t2', 'van', 4, 14),
    ('car', 'vehicle.tesla.model3', 'car', 4, 14))
CAR = VEHICLE_TYPES[-1]
WALKER, WALKER_TAG = 'walker.pedestrian.0001', 12
LIGHT, LIGHT_TAG = 'traffic.traffic_light', 7
SIGN, SIGN_TAG = 'traffic.speed_limit.90', 8
CONE, PROP_TAG = 'static.prop.trafficcone01', 20
HERO, OTHERS = 'hero', 'autopilot'
_NOWHERE: Triple = (0.0, 0.0, 0.0)
NO_BOX: Box = (_NOWHERE, _NOWHERE, _NOWHERE)
# Colors of paints by a word in their name.
_PAINTS = {'Red': '180,20,20', 'DarkGrey': '60,60,60', 'White': '240,240,240',
           'Blue': '20,40,160', 'Silver': '190,190,195', 'Green': '20,120,40'}
_PAINT = '120,120,120'


def vehicle_attributes(kind: tuple[str, str, str, int, int], role_name: str,
                       color: str) -> Attributes:
    """Return the attributes of a vehicle; ``role_name``: such as ``hero``."""
    return (('role_name', TEXT, role_name), ('color', COLOR, color),
            ('number_of_wheels', INT, str(kind[3])), ('base_type', TEXT, kind[2]),
            ('special_type', TEXT, ''), ('generation', INT, '1'),
            ('object_type', TEXT, ''), ('has_lights', BOOL, 'true'),
            ('sticky_control', BOOL, 'true'))


def body_of(name: str, tags: tuple[str, ...], box: Box = NO_BOX, *,
            is_vehicle: bool = False, is_ego: bool = False, paint: str = '',
            model: str = '') -> Body:
    """Return a body of the type that fits the tags."""
    # is_ego: whether its role is ``hero``.
    # model: word that counts before the tags.
    words = {tag.lower() for tag in tags}
    kind = next((kind for kind in VEHICLE_TYPES if kind[0] == model.lower()), None) or next(
        (kind for kind in VEHICLE_TYPES if kind[0] in words), CAR if is_vehicle else None)
    role: Attributes = (('role_name', TEXT, HERO if is_ego else re.sub(r'\W+', '_', name)),)
    if kind is not None:
        color = next((value for word, value in _PAINTS.items() if word in paint), _PAINT)
        type_id, label = kind[1], kind[4]
        attributes = vehicle_attributes(kind, HERO if is_ego else OTHERS, color)
    elif not words.isdisjoint(('pedestrian', 'walker', 'person')):
        type_id, label = WALKER, WALKER_TAG
        attributes = (*role, ('is_invincible', BOOL, 'false'), ('gender', TEXT, 'female'),
                      ('age', TEXT, 'adult'), ('generation', INT, '1'))
    elif 'traffic_light' in words:
        type_id, label, attributes = LIGHT, LIGHT_TAG, role
    elif 'traffic_sign' in words:
        type_id, label, attributes = SIGN, SIGN_TAG, role
    else:
        type_id, label, attributes = CONE, PROP_TAG, (*role, ('size', TEXT, 'small'))
    center, extent, tilt = box
    return Body(name, type_id, attributes, center, extent, tilt, semantic_tags=(label,))


def _bodies() -> dict[str, Body]:
    bodies = [Body('', kind[1], vehicle_attributes(kind, 'autopilot', '17,37,103'),
                   (0.0, 0.0, _EXTENTS[kind[2]][2]), _EXTENTS[kind[2]],
                   semantic_tags=(kind[4],))
              for kind in VEHICLE_TYPES]
    bodies.append(Body('', WALKER, _WALKER_ATTRIBUTES, (0.0, 0.0, 0.0), WALKER_EXTENT,
                       semantic_tags=(WALKER_TAG,)))
    bodies.append(Body('', CONE, (('role_name', TEXT, 'prop'), ('size', TEXT, 'small')),
                       (0.0, 0.0, _CONE_EXTENT[2]), _CONE_EXTENT,
                       semantic_tags=(PROP_TAG,)))
    bodies.append(Body('', 'controller.ai.walker', _ROLE))
    bodies += [Body('', name, _SENSOR_ATTRIBUTES) for name in _SENSORS]
    return {body.type_id: body for body in bodies}


BLUEPRINTS = _bodies()


def definitions() -> list[object]:
    """Return the types with their attributes in the client's arrays."""
    return [[uid, body.type_id, body.type_id.replace('.', ','),
             [[name, kind, value, [], True, False] for name, kind, value in body.attributes]]
            for uid, body in enumerate(BLUEPRINTS.values(), 1)]

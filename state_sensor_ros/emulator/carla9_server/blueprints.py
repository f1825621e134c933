# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The types of actors that clients can spawn, with attributes and boxes."""

from __future__ import annotations

from state_sensor_ros.emulator.carla9_server.bodies_in_motion import (
    Attributes,
    Body,
    BOOL,
    CONE,
    FLOAT,
    INT,
    PROP_TAG,
    TEXT,
    Triple,
    vehicle_attributes,
    VEHICLE_TYPES,
    WALKER,
    WALKER_TAG,
)

# Half edge lengths of a vehicle by CARLA's word for its base, m.
_EXTENTS: dict[str, Triple] = {
    'car': (2.4, 1.0, 0.75), 'van': (2.5, 1.05, 1.0), 'truck': (3.6, 1.2, 1.4),
    'bus': (5.1, 1.3, 1.5), 'motorcycle': (1.1, 0.4, 0.8), 'bicycle': (0.85, 0.3, 0.85)}
_WALKER_EXTENT: Triple = (0.19, 0.19, 0.93)
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


def _bodies() -> dict[str, Body]:
    bodies = [Body('', kind[1], vehicle_attributes(kind, 'autopilot', '17,37,103'),
                   (0.0, 0.0, _EXTENTS[kind[2]][2]), _EXTENTS[kind[2]],
                   semantic_tags=(kind[4],))
              for kind in VEHICLE_TYPES]
    bodies.append(Body('', WALKER, _WALKER_ATTRIBUTES, (0.0, 0.0, 0.0), _WALKER_EXTENT,
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

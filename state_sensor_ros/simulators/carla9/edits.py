# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Actors that are moved, added or removed on request.

A vehicle keeps its velocity where it is put, and falls to the ground; what has driven it, such as
the traffic manager, drives it on from there.
"""

from __future__ import annotations

import math

from state_sensor_ros.errors import line_of
from state_sensor_ros.simulators.carla9 import actors, frames
from state_sensor_ros.simulators.carla9.world_reader import CarlaObject, WorldReader
from state_sensor_ros.source import DELETE, EntityEdit, SPAWN

# So high above the ground a body is put, m: the map is not exact, and both must not touch.
_CLEARANCE_M = 0.2
_UNKNOWN = (math.nan,) * 7


def make(edit: EntityEdit, reader: WorldReader) -> str:
    """Make a change between two steps; return why it was not made, empty if it was."""
    try:
        if edit.kind == SPAWN:
            _add(edit, reader)
        elif (actor := reader.find(edit.name)) is None:
            return f'found {edit.name} as a part of the level, or gone; expected an actor'
        elif edit.kind != DELETE:
            _move(edit, actor, reader)
        elif actor.destroy():
            reader.forget(actor)
        else:
            return f'CARLA does not remove {edit.name}'
        # An answer shows that what was sent before has been received.
        reader.world.get_settings()
    except Exception as error:  # noqa: BLE001
        # Those of the library have several classes.
        return line_of(error)
    return ''


def _add(edit: EntityEdit, reader: WorldReader) -> None:
    tags = actors.tags_of(edit.resource, {}, with_level=False)
    if not tags:
        raise ValueError(f'found the type {edit.resource!r}; expected a vehicle, person or prop')
    if edit.name in actors.SHARED_ROLES:
        raise ValueError(f'found {edit.name!r}, a role of many actors; expected another name')
    blueprint = reader.world.get_blueprint_library().find(edit.resource)
    # The name in frames.
    blueprint.set_attribute('role_name', edit.name)
    place = _place(edit, reader)
    # A prop does not fall.
    place.location.z += _CLEARANCE_M * (tags != ('prop',))
    reader.world.spawn_actor(blueprint, place)


def _move(edit: EntityEdit, actor: CarlaObject, reader: WorldReader) -> None:
    if edit.pose is not None:
        there = _place(edit, reader)
        if math.isnan(edit.pose[2]):
            here = actor.get_location()
            there.location.z = here.z
            # Seen from another height, the nearest road may not be that of the place.
            there.location.z = reader.road_z(there.location)
            # As high above the road as it is here.
            there.location.z = reader.road_z(there.location) + _CLEARANCE_M \
                + here.z - reader.road_z(here)
        actor.set_transform(there)
    if edit.twist is not None:
        numbers = frames.from_rep103((*_UNKNOWN, *edit.twist)).tolist()
        actor.set_target_velocity(reader.carla.Vector3D(*numbers[6:9]))
        actor.set_target_angular_velocity(reader.carla.Vector3D(*numbers[9:]))


def _place(edit: EntityEdit, reader: WorldReader) -> CarlaObject:
    *xyz, roll, pitch, yaw = frames.from_rep103((*(edit.pose or ()), *_UNKNOWN[:6]))[:6].tolist()
    return reader.carla.Transform(reader.carla.Location(*xyz),
                                  reader.carla.Rotation(pitch, yaw, roll))

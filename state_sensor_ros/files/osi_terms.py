# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The terms of ASAM OSI that reading and writing share: the types of objects, and rates of angles.

The numbers are those of osi_object.proto, OSI 3.8. The tags of an actor name its type, the most
specific one last.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from state_sensor_ros.classes import CLASSES
from state_sensor_ros.frame import Floats

# Tag of all stationary objects of a trace.
STATIONARY = 'stationary'
# Type of the ExternalReference whose only identifier is the name of an actor.
NAME_REFERENCE = 'state_sensor_ros'
# MovingObject.Type; all that are not one of the others are vehicles.
_VEHICLE = 2
_OTHERS = {1: 'unknown', 3: 'pedestrian', 4: 'animal'}
# MovingObject.VehicleClassification.Type; of several with one tag, the first one is written.
_VEHICLES = {
    4: 'car', 2: 'car', 3: 'car', 5: 'car', 6: 'van', 7: 'truck', 16: 'truck', 9: 'trailer',
    8: 'trailer', 10: 'motorcycle', 11: 'bicycle', 12: 'bus', 13: 'tram', 14: 'train',
    15: 'wheelchair', 17: 'scooter', 18: 'micromobility', 19: 'work_machine', 20: 'watercraft',
    21: 'aircraft', 22: 'land_vehicle'}
# StationaryObject.Classification.Type.
_STATIONARY = dict(enumerate((
    'other_structure', 'bridge', 'building', 'pole', 'pylon', 'delineator', 'tree', 'barrier',
    'vegetation', 'curbstone', 'wall', 'vertical_structure', 'rectangular_structure',
    'overhead_structure', 'reflective_structure', 'construction_site_element', 'speed_bump',
    'emitting_structure'), 1))
# What the classes of objects are called here, and tags that are called otherwise here.
_OF_CLASSES = {'person': 'pedestrian', 'cyclist': 'bicycle'}
_OTHER_TAGS = {'rail': 'train'}


class OsiType(NamedTuple):
    """The type of an object."""

    number: int  # of MovingObject.Type, or of StationaryObject.Classification.Type
    vehicle: int = 0  # of VehicleClassification.Type, 0 for no vehicle
    is_stationary: bool = False


_BY_TAG = {tag: OsiType(number) for number, tag in _OTHERS.items()} | {
    tag: OsiType(_VEHICLE, number) for number, tag in reversed(_VEHICLES.items())}
_BY_STATIONARY_TAG = {tag: OsiType(number, 0, True) for number, tag in _STATIONARY.items()}
# Those that no class of objects has.
_SPECIAL_TAGS = (_BY_TAG.keys() | _OTHER_TAGS) - {
    tag for known in CLASSES for tag in (*known.tags, known.name)}


def is_vehicle(moving_type: int) -> bool:
    """Return whether a moving object is a vehicle; ``moving_type``: of MovingObject.Type."""
    return moving_type not in _OTHERS


def moving_tags(moving_type: int, vehicle_type: int) -> tuple[str, ...]:
    """Return the tags of a moving object."""
    if not is_vehicle(moving_type):
        return tuple(tag for tag in (_OTHERS[moving_type],) if tag != 'unknown')
    return ('vehicle', _VEHICLES[vehicle_type]) if vehicle_type in _VEHICLES else ('vehicle',)


def stationary_tags(stationary_type: int) -> tuple[str, ...]:
    """Return the tags of a stationary object."""
    return (STATIONARY, *filter(None, (_STATIONARY.get(stationary_type, ''),)))


@lru_cache(maxsize=1024)
def type_of(class_name: str, tags: Iterable[str]) -> OsiType:
    """Return the type of an actor of a class of :data:`CLASSES`."""
    lower = [tag.lower() for tag in tags]
    if STATIONARY in lower:
        return next((_BY_STATIONARY_TAG[tag] for tag in lower if tag in _BY_STATIONARY_TAG),
                    _BY_STATIONARY_TAG['other_structure'])
    tag = _OF_CLASSES.get(class_name, class_name)
    if tag in ('car', 'unknown'):
        tag = next((each for each in lower if each in _SPECIAL_TAGS), tag)
    return _BY_TAG[_OTHER_TAGS.get(tag, tag)]


def angular_velocity_of(rates: Floats, angles: Floats) -> Floats:
    """
    Return angular velocities about the axes of the global frame.

    :param rates: (N, 3) float64, changes of roll, pitch and yaw, rad/s.
    :param angles: (N, 3) float64, roll, pitch and yaw, rad.
    """
    roll, pitch, yaw = rates.T
    ahead = roll * np.cos(angles[:, 1])
    cosine, sine = np.cos(angles[:, 2]), np.sin(angles[:, 2])
    return np.stack((ahead * cosine - pitch * sine, ahead * sine + pitch * cosine,
                     yaw - roll * np.sin(angles[:, 1])), axis=-1)


def rates_of(angular_velocity_xyz: Floats, angles: Floats) -> Floats:
    """Undo :func:`angular_velocity_of`; NaN or infinite for a vertical axis."""
    x, y, z = angular_velocity_xyz.T
    cosine, sine = np.cos(angles[:, 2]), np.sin(angles[:, 2])
    roll = (x * cosine + y * sine) / np.cos(angles[:, 1])
    return np.stack((roll, y * cosine - x * sine, z + roll * np.sin(angles[:, 1])), axis=-1)

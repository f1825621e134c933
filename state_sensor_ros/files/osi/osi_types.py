# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The types of objects in OSI and the tags of actors, in both directions.

A vehicle without a tag of a class counts as a car: vans, trams, aircraft and vehicles of an
unknown type. The numbers are those of osi_object.proto, OSI 3.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from state_sensor_ros.classes import CLASSES

# Tag of all stationary objects of a trace.
STATIONARY = 'stationary'
# MovingObject.Type. An unknown one is a vehicle.
_OTHER, _VEHICLE, _PEDESTRIAN, _ANIMAL = 1, 2, 3, 4
_NO_VEHICLES: Mapping[int, tuple[str, ...]] = {
    _OTHER: (), _PEDESTRIAN: ('pedestrian',), _ANIMAL: ('animal',)}
# MovingObject.VehicleClassification.Type, of ROLE_CIVIL.
_VEHICLES: Mapping[int, str] = {
    2: 'car', 3: 'car', 4: 'car', 5: 'car', 6: 'van', 7: 'truck', 8: 'trailer', 9: 'trailer',
    10: 'motorcycle', 11: 'bicycle', 12: 'bus', 13: 'tram', 14: 'train', 15: 'wheelchair',
    16: 'truck', 17: 'scooter', 18: 'micromobility', 19: 'work_machine', 20: 'watercraft',
    21: 'aircraft', 22: 'land_vehicle'}
# StationaryObject.Classification.Type.
_STATIONARY: Mapping[int, str] = {
    1: 'other_structure', 2: 'bridge', 3: 'building', 4: 'pole', 5: 'pylon', 6: 'delineator',
    7: 'tree', 8: 'barrier', 9: 'vegetation', 10: 'curbstone', 11: 'wall',
    12: 'vertical_structure', 13: 'rectangular_structure', 14: 'overhead_structure',
    15: 'reflective_structure', 16: 'construction_site_element', 17: 'speed_bump',
    18: 'emitting_structure'}


def is_vehicle(moving_type: int) -> bool:
    """
    Return whether a moving object is a vehicle.

    :param moving_type: number of MovingObject.Type.
    """
    return moving_type not in _NO_VEHICLES


def moving_tags(moving_type: int, vehicle_type: int) -> tuple[str, ...]:
    """
    Return the tags of a moving object, the most specific last.

    :param moving_type: number of MovingObject.Type.
    :param vehicle_type: number of MovingObject.VehicleClassification.Type.
    """
    if not is_vehicle(moving_type):
        return _NO_VEHICLES[moving_type]
    tag = _VEHICLES.get(vehicle_type, '')
    return ('vehicle', tag) if tag else ('vehicle',)


def stationary_tags(stationary_type: int) -> tuple[str, ...]:
    """
    Return the tags of a stationary object, the most specific last.

    :param stationary_type: number of StationaryObject.Classification.Type.
    """
    tag = _STATIONARY.get(stationary_type, '')
    return (STATIONARY, tag) if tag else (STATIONARY,)


@dataclass(frozen=True, slots=True)
class OsiType:
    """
    The type of an object in a trace.

    ``number`` of MovingObject.Type, or of StationaryObject.Classification.Type if
    ``is_stationary``; ``vehicle`` number of VehicleClassification.Type, 0 for no vehicle.
    """

    number: int
    vehicle: int = 0
    is_stationary: bool = False


# First those of CLASSES, in their order; then those of tags.
_OF_CLASSES = {
    'person': OsiType(_PEDESTRIAN), 'unknown': OsiType(_OTHER),
    **{name: OsiType(_VEHICLE, number) for name, number in (
        ('cyclist', 11), ('motorcycle', 10), ('bus', 12), ('truck', 7), ('trailer', 9),
        ('car', 4))}}
_OF_TAGS = {
    'animal': OsiType(_ANIMAL),
    **{tag: OsiType(_VEHICLE, number) for number, tag in _VEHICLES.items() if number == 6
       or number in range(13, 16) or number > 16}, 'rail': OsiType(_VEHICLE, 14)}
_OF_STATIONARY = {tag: OsiType(number, is_stationary=True)
                  for number, tag in _STATIONARY.items()}
OSI_TYPES: tuple[OsiType, ...] = (
    *(_OF_CLASSES[known.name] for known in CLASSES), *_OF_TAGS.values(),
    *_OF_STATIONARY.values())


def type_of(class_index: int, tags: Iterable[str]) -> int:
    """
    Return the type of an actor in a trace.

    :param class_index: index in CLASSES of an actor without a more specific tag.
    :param tags: tags as sent; compared as a whole, in lower case.
    :returns: index in OSI_TYPES.
    """
    lower = [tag.lower() for tag in tags]
    if STATIONARY in lower:
        stationary = next((_OF_STATIONARY[tag] for tag in lower if tag in _OF_STATIONARY),
                          _OF_STATIONARY['other_structure'])
        return OSI_TYPES.index(stationary)
    if CLASSES[class_index].name in ('car', 'unknown'):
        special = next((_OF_TAGS[tag] for tag in lower if tag in _OF_TAGS), None)
        if special is not None:
            return OSI_TYPES.index(special)
    return class_index

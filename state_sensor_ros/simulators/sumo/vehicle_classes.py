# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tags and usual sizes by SUMO's vehicle class (vClass), as SUMO's documentation lists them."""

from collections.abc import Mapping

_CLASSES_BY_TAG: Mapping[str, tuple[str, ...]] = {
    'car': ('passenger', 'private', 'taxi', 'evehicle', 'hov', 'emergency', 'authority', 'army',
            'vip', 'custom1', 'custom2'),
    'truck': ('delivery', 'truck', 'trailer'),
    'bus': ('bus', 'coach'),
    'tram': ('tram',),
    'rail': ('rail', 'rail_urban', 'rail_electric', 'rail_fast', 'subway', 'cable_car'),
    'bicycle': ('bicycle',),
    'motorcycle': ('moped', 'motorcycle', 'scooter'),
    'pedestrian': ('pedestrian', 'wheelchair')}
_TAGS = {vclass: tag for tag, classes in _CLASSES_BY_TAG.items() for vclass in classes}
PEDESTRIAN = 'pedestrian'
PASSENGER = 'passenger'
# Length, width and height (m) of a type that states none.
_USUAL_SIZES = {
    'passenger': (5.0, 1.8, 1.5), 'pedestrian': (0.215, 0.478, 1.719),
    'wheelchair': (0.8, 0.7, 1.5), 'bicycle': (1.6, 0.65, 1.7), 'moped': (2.1, 0.8, 1.7),
    'motorcycle': (2.2, 0.9, 1.5), 'scooter': (1.2, 0.5, 1.7), 'delivery': (6.5, 2.16, 2.86),
    'truck': (7.1, 2.4, 2.4), 'trailer': (16.5, 2.55, 4.0), 'bus': (12.0, 2.5, 3.4),
    'coach': (14.0, 2.6, 4.0), 'tram': (22.0, 2.4, 3.2), 'rail_urban': (109.5, 3.0, 3.6),
    'subway': (109.5, 3.0, 3.6), 'rail': (135.0, 2.84, 3.75), 'rail_electric': (200.0, 2.95, 3.89),
    'rail_fast': (200.0, 2.95, 3.89), 'emergency': (6.5, 2.16, 2.86)}


def tags_of(vclass: str) -> tuple[str, ...]:
    """
    Return the tags of an actor, its class first.

    :param vclass: SUMO's vehicle class.
    """
    tag = _TAGS.get(vclass, '')
    general = () if tag == PEDESTRIAN else ('vehicle',)
    return (*general, tag) if tag else general


def is_vehicle(vclass: str) -> bool:
    """
    Return whether actors of a class are vehicles, not people.

    :param vclass: SUMO's vehicle class.
    """
    return _TAGS.get(vclass) != PEDESTRIAN


def usual_size(vclass: str) -> tuple[float, float, float]:
    """
    Return length, width and height, m, of a type that states none.

    :param vclass: SUMO's vehicle class.
    """
    return _USUAL_SIZES.get(vclass, _USUAL_SIZES[PASSENGER])

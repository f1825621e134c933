# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Kinds of actors that are drawn differently."""

from __future__ import annotations

from state_sensor_ros.classes import PERSON, UNKNOWN

VEHICLE, PEDESTRIAN, LIGHT, SIGN, OBJECT = range(5)
# In the order of the constants; the plural has an `s`.
KIND_NAMES = ('vehicle', 'pedestrian', 'traffic light', 'speed limit sign', 'object')
# Tags of kinds without a class, in lower case.
_BY_TAG = {'traffic_light': LIGHT, 'speed_limit_sign': SIGN}


def kind_of(actor_class: int, tags: tuple[str, ...]) -> int:
    """
    Return the kind of an actor.

    :param actor_class: index in CLASSES.
    :param tags: tags of the actor, in any case.
    :returns: VEHICLE … OBJECT; a person is a PEDESTRIAN, any other class a VEHICLE.
    """
    if actor_class == UNKNOWN:
        return next((_BY_TAG[tag] for tag in map(str.lower, tags) if tag in _BY_TAG), OBJECT)
    return PEDESTRIAN if actor_class == PERSON else VEHICLE

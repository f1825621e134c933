# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The lights in a message of OSI: traffic lights that are lit, and turn signals of vehicles.

Each bulb of a traffic light is an object. One whose mode is unknown, off or flashing shows no
color.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from state_sensor_ros.frame import (
    INDICATORS_BOTH,
    INDICATORS_LEFT,
    INDICATORS_OFF,
    INDICATORS_RIGHT,
    INDICATORS_UNKNOWN,
    LIGHT_CIRCLE,
    LIGHT_GREEN,
    LIGHT_PEDESTRIAN,
    LIGHT_RED,
    LIGHT_YELLOW,
    TrafficLights,
)
from state_sensor_ros.rotations import quaternion_from_rpy
from state_sensor_ros.simulators.osi.messages import text_of

if TYPE_CHECKING:
    from osi3.osi_object_pb2 import MovingObject
    from osi3.osi_trafficlight_pb2 import TrafficLight

# Numbers of osi_trafficlight.proto.
_COLORS = {2: LIGHT_RED, 3: LIGHT_YELLOW, 4: LIGHT_GREEN}
_LIT_MODES = frozenset((3, 5))
# Arrows as autoware_perception_msgs/TrafficLightElement; a diagonal one points up, too.
_SHAPES = {2: LIGHT_CIRCLE, 3: 4, 4: 2, 5: 5, 6: 5, 7: 3, 8: 6, 9: 6, 11: 7, 12: 8, 13: 9,
           15: LIGHT_PEDESTRIAN, 16: LIGHT_PEDESTRIAN, 17: LIGHT_PEDESTRIAN}
_UNKNOWN_SHAPE = 0
_OPEN_DRIVE = 'net.asam.opendrive'
_MAX_ID = 2**32 - 1
# Numbers of MovingObject.VehicleClassification.LightState.
_INDICATORS = {2: INDICATORS_OFF, 3: INDICATORS_LEFT, 4: INDICATORS_RIGHT, 5: INDICATORS_BOTH}


def lit_lights(lights: Iterable[TrafficLight]) -> TrafficLights:
    """Return the traffic lights that show a color."""
    # One whose id is not unique is as the first one.
    shown = {light.id.value: light for light in reversed([*lights])
             if light.classification.mode in _LIT_MODES
             and light.classification.color in _COLORS and light.id.value <= _MAX_ID}
    ids = sorted(shown)
    poses = np.full((len(ids), 7), np.nan)
    for row, number in enumerate(ids):
        place, angles = shown[number].base.position, shown[number].base.orientation
        if shown[number].base.HasField('position'):
            poses[row, :3] = place.x, place.y, place.z
        poses[row, 3:] = quaternion_from_rpy(
            np.array([[angles.roll, angles.pitch, angles.yaw]]))[0]
    of = [shown[number].classification for number in ids]
    return TrafficLights(
        np.array(ids, np.int64), tuple(f'traffic_light_{number}' for number in ids),
        np.array([_COLORS[each.color] for each in of], np.uint8), poses,
        np.array([_SHAPES.get(each.icon, _UNKNOWN_SHAPE) for each in of], np.uint8),
        open_drive_ids=tuple(_signal_of(shown[number]) for number in ids))


def _signal_of(light: TrafficLight) -> str:
    """Return the id of the signal in OpenDRIVE, '' if it is unknown."""
    # With esmini after a name and a colon.
    return next((text_of(each.identifier[0]).rpartition(':')[2] for each in light.source_reference
                 if each.type == _OPEN_DRIVE and each.identifier), '')


def indicators_of(moving: MovingObject) -> int:
    """Return the turn signals of a vehicle."""
    if not moving.vehicle_classification.HasField('light_state'):
        return INDICATORS_UNKNOWN
    return _INDICATORS.get(moving.vehicle_classification.light_state.indicator_state,
                           INDICATORS_UNKNOWN)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Serialized messages of OSI as ground truth, and what their parts say.

A lane of OSI has an id of its own. Its source reference of the type net.asam.opendrive has, in
this order, the id of the road, the distance at which the lane section begins, and the id of the
lane, each with its name before it as esmini writes them (``road_id:3``), or without. A name of a
scenario is the second identifier of a reference of the type net.asam.openscenario, with esmini
``entity_name:Ego`` at any place.

Each bulb of a traffic light is an object. One whose mode is unknown, off or flashing shows no
color.
"""

from __future__ import annotations

from collections.abc import Iterable
import math
from typing import Any, NamedTuple, TYPE_CHECKING

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.files.osi_writer import NAME_REFERENCE
from state_sensor_ros.frame import TrafficLights
from state_sensor_ros.rotations import quaternion_from_rpy

if TYPE_CHECKING:
    from osi3.osi_common_pb2 import ExternalReference
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_object_pb2 import MovingObject
    from osi3.osi_trafficlight_pb2 import TrafficLight

# Types of messages with ground truth, as the schemas of MCAP name them.
GROUND_TRUTH, SENSOR_VIEW = SCHEMAS = 'osi3.GroundTruth', 'osi3.SensorView'
_OPENSCENARIO, _OPENDRIVE = 'net.asam.openscenario', 'net.asam.opendrive'
_NAME_MARKS = 'entity_name:', 'object_name:'
_PLACE_MARKS = 'road_id:', 'road_s:', 'lane_id:'
MAX_INT32 = 2**31 - 1
# Numbers of osi_trafficlight.proto.
_COLORS = {2: frames.LIGHT_RED, 3: frames.LIGHT_YELLOW, 4: frames.LIGHT_GREEN}
_LIT_MODES = frozenset((3, 5))
# Arrows as autoware_perception_msgs/TrafficLightElement; a diagonal one points up, too. Others
# are unknown, 0.
_SHAPES = {2: frames.LIGHT_CIRCLE, 3: 4, 4: 2, 5: 5, 6: 5, 7: 3, 8: 6, 9: 6, 11: 7, 12: 8, 13: 9,
           15: frames.LIGHT_PEDESTRIAN, 16: frames.LIGHT_PEDESTRIAN, 17: frames.LIGHT_PEDESTRIAN}
# Numbers of MovingObject.VehicleClassification.LightState.
_INDICATORS = {2: frames.INDICATORS_OFF, 3: frames.INDICATORS_LEFT, 4: frames.INDICATORS_RIGHT,
               5: frames.INDICATORS_BOTH}


class Truth(NamedTuple):
    """The ground truth of a message."""

    message: GroundTruth
    game_time: float  # s, NaN without a timestamp
    host: int | None  # id of the host vehicle, None without one
    schema: str  # of SCHEMAS

    @property
    def n_placed(self) -> int:
        """Return the number of objects with a position."""
        return sum(thing.base.HasField('position') for objects in (
            self.message.moving_object, self.message.stationary_object) for thing in objects)


def parse(data: bytes, schema: str = '') -> Truth:
    """
    Return the ground truth of a serialized message.

    Messages of Protobuf do not name their type, and parsing skips members that a type does not
    have: where the schema is not known, the one with objects that have positions is right.

    :param schema: of SCHEMAS, empty if it is not known.
    :raises DecodeError: if it cannot be parsed.
    """
    # Imported here: other recordings need no library of OSI.
    from google.protobuf.message import DecodeError as ProtobufError
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_sensorview_pb2 import SensorView
    kinds: dict[str, Any] = {GROUND_TRUTH: GroundTruth, SENSOR_VIEW: SensorView}
    tried, found = (schema,) if schema else SCHEMAS, []
    for name in tried:
        try:
            message = kinds[name].FromString(data)
        except ProtobufError:
            continue
        truth = message.global_ground_truth if name == SENSOR_VIEW else message
        time_s, host = _time_of(truth), _host_of(truth)
        found.append(Truth(truth, _time_of(message) if math.isnan(time_s) else time_s,
                           _host_of(message) if host is None else host, name))
    if not found:
        raise DecodeError('message', f'{len(data)} bytes that cannot be parsed',
                          f'an {" or ".join(tried)}')
    return found[0] if len(found) == 1 else max(found, key=lambda each: each.n_placed)


def _time_of(message: Any) -> float:  # noqa: ANN401
    if not message.HasField('timestamp'):
        return math.nan
    # One division: the float that is nearest to the nanoseconds.
    stamp = message.timestamp
    return float((stamp.seconds * frames.NS_PER_S + stamp.nanos) / frames.NS_PER_S)


def _host_of(message: Any) -> int | None:  # noqa: ANN401
    return message.host_vehicle_id.value if message.HasField('host_vehicle_id') else None


def _texts_of(reference: ExternalReference) -> list[str]:
    """Return the identifiers; those that are not UTF-8 are bytes."""
    identifiers: Iterable[str | bytes] = reference.identifier
    return [text.decode(errors='replace') if isinstance(text, bytes) else text
            for text in identifiers]


def scenario_name(references: Iterable[ExternalReference]) -> str:
    """Return the name of an actor or of an entity of a scenario, empty without one."""
    for reference in references:
        if reference.type == NAME_REFERENCE and reference.identifier:
            return _texts_of(reference)[0]
        if reference.type != _OPENSCENARIO:
            continue
        texts = _texts_of(reference)
        for text in texts:
            for mark in _NAME_MARKS:
                if text.startswith(mark):
                    return text.removeprefix(mark)
        if len(texts) > 1 and ':' not in texts[0]:
            return texts[1]
    return ''


class LanePlace(NamedTuple):
    """The place of a lane in OpenDRIVE."""

    road: str
    section_s: float  # m along the road, at which its section begins
    lane: int


def place_of(references: Iterable[ExternalReference]) -> LanePlace | None:
    """Return the place of a lane, None without a usable reference."""
    for reference in references:
        if reference.type == _OPENDRIVE and len(reference.identifier) >= len(_PLACE_MARKS):
            road, s, lane = (text.removeprefix(mark) for text, mark in zip(
                _texts_of(reference), _PLACE_MARKS, strict=False))
            try:
                place = LanePlace(road, float(s), int(lane))
            except ValueError:
                continue
            if math.isfinite(place.section_s) and abs(place.lane) <= MAX_INT32:
                return place
    return None


def is_of_map(thing: Any) -> bool:  # noqa: ANN401
    """Return whether an object is one of OpenDRIVE."""
    return any(each.type == _OPENDRIVE for each in thing.source_reference)


def lit_lights(lights: Iterable[TrafficLight]) -> TrafficLights:
    """Return the traffic lights that show a color."""
    # One whose id is not unique is as the first one.
    shown = {light.id.value: light for light in reversed([*lights])
             if light.classification.mode in _LIT_MODES
             and light.classification.color in _COLORS and light.id.value <= frames.MAX_ID}
    ids = sorted(shown)
    poses, of = np.full((len(ids), 7), np.nan), [shown[number].classification for number in ids]
    for row, number in enumerate(ids):
        place, angles = shown[number].base.position, shown[number].base.orientation
        if shown[number].base.HasField('position'):
            poses[row, :3] = place.x, place.y, place.z
        poses[row, 3:] = quaternion_from_rpy(
            np.array([[angles.roll, angles.pitch, angles.yaw]]))[0]
    return TrafficLights(
        np.array(ids, np.int64), tuple(f'traffic_light_{number}' for number in ids),
        np.array([_COLORS[each.color] for each in of], np.uint8), poses,
        np.array([_SHAPES.get(each.icon, 0) for each in of], np.uint8),
        open_drive_ids=tuple(_signal_of(shown[number]) for number in ids))


def _signal_of(light: TrafficLight) -> str:
    """Return the id of the signal in OpenDRIVE, '' if it is unknown."""
    # With esmini after a name and a colon.
    return next((_texts_of(each)[0].rpartition(':')[2] for each in light.source_reference
                 if each.type == _OPENDRIVE and each.identifier), '')


def indicators_of(moving: MovingObject) -> int:
    """Return the turn signals of a vehicle."""
    return _INDICATORS.get(moving.vehicle_classification.light_state.indicator_state,
                           frames.INDICATORS_UNKNOWN)

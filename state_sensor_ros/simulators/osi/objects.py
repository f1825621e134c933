# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The objects of OSI, whose ids are numbers: names, tags, the wheels of vehicles, and their lanes.

An object has the name of its scenario, which is the second identifier of a source reference of
the type net.asam.openscenario (with esmini ``entity_name:Ego``, at any place). Without one it is
named by its type and id, such as ``truck_12``.

Lanes of OSI have ids of their own. A source reference of the type net.asam.opendrive has, in this
order, the id of the road, the distance at which the lane section begins, and the id of the lane,
each with its name before it as esmini writes them (``road_id:3``), or without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
import math
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from state_sensor_ros.files.frame_builder import lane_states
from state_sensor_ros.files.osi.osi_objects import (
    is_vehicle,
    moving_tags,
    NAME_REFERENCE,
    stationary_tags,
)
from state_sensor_ros.frame import (
    FRONT_LEFT,
    FRONT_RIGHT,
    Lanes,
    NO_WHEELS,
    REAR_LEFT,
    REAR_RIGHT,
    Wheels,
)
from state_sensor_ros.rotations import quaternion_from_rpy
from state_sensor_ros.simulators.osi.messages import text_of

if TYPE_CHECKING:
    from osi3.osi_common_pb2 import ExternalReference
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_lane_pb2 import Lane
    from osi3.osi_logicallane_pb2 import LogicalLane
    from osi3.osi_object_pb2 import MovingObject, StationaryObject

# By axle, counted from the front, and index on it, counted from the right.
_PLACES = {(0, 0): FRONT_RIGHT, (0, 1): FRONT_LEFT, (1, 0): REAR_RIGHT, (1, 1): REAR_LEFT}
# Actor, wheel, its number in the message, position xyz, roll pitch yaw, speed.
_N_COLUMNS = 10
_OPENSCENARIO = 'net.asam.openscenario'
_NAME_MARKS = 'entity_name:', 'object_name:'
OPENDRIVE = 'net.asam.opendrive'
_MAX_INT32 = 2**31 - 1
_MAX_DIGITS = 10
# Id of a road, place of a section, m, id of a lane.
_Place = tuple[str, float, int]


@dataclass(frozen=True, slots=True)
class KnownObject:
    """What seldom changes of an object."""

    name: str
    tags: tuple[str, ...]
    is_vehicle: bool
    types: tuple[int, int]  # those that determine the tags


class ObjectNames:
    """The objects of a message; names and tags are kept from the message before."""

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self._last: dict[int, KnownObject] = {}
        self._now: dict[int, KnownObject] = {}

    def begin(self) -> None:
        self._last, self._now = self._now, {}
        self.taken = set()

    def __contains__(self, id_: int) -> bool:
        return id_ in self._now

    def of_moving(self, moving: MovingObject) -> KnownObject | None:
        """Return what is known of a moving object."""
        # Returns None if another object of the message has its id or its name.
        types = moving.type, moving.vehicle_classification.type
        known = self._last.get(moving.id.value)
        if known is None or known.types != types:
            tags = moving_tags(*types)
            known = KnownObject(_name_of(moving, tags), tags, is_vehicle(types[0]), types)
        return self._entered(moving.id.value, known)

    def of_stationary(self, still: StationaryObject) -> KnownObject | None:
        types = still.classification.type, 0
        tags = stationary_tags(types[0])
        known = KnownObject(_name_of(still, tags), tags, False, types)
        return self._entered(still.id.value, known)

    def _entered(self, id_: int, known: KnownObject) -> KnownObject | None:
        if id_ in self._now:
            return None
        if known.name in self.taken:
            known = replace(known, name=f'{known.name}_{id_}')
            if known.name in self.taken:
                return None
        self._now[id_] = known
        self.taken.add(known.name)
        return known


def _name_of(thing: MovingObject | StationaryObject, tags: tuple[str, ...]) -> str:
    return _scenario_name(thing.source_reference) \
        or f'{tags[-1] if tags else "object"}_{thing.id.value}'


def _scenario_name(references: Iterable[ExternalReference]) -> str:
    """Return the name of an actor or of an entity of a scenario, empty without one."""
    for reference in references:
        if reference.type == NAME_REFERENCE and reference.identifier:
            return text_of(reference.identifier[0])
        if reference.type != _OPENSCENARIO:
            continue
        texts = [text_of(text) for text in reference.identifier]
        for text in texts:
            for mark in _NAME_MARKS:
                if text.startswith(mark):
                    return text.removeprefix(mark)
        if len(texts) > 1 and ':' not in texts[0]:
            return texts[1]
    return ''


class AxleWheels:
    """Collects the wheels of the vehicles of a message."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []

    def add(self, row: int, vehicle: MovingObject) -> None:
        """Add the wheels of a car, or the ends of the rear axle of another vehicle."""
        attributes, size = vehicle.vehicle_attributes, vehicle.base.dimension
        # Places in OSI are counted from the center of the box.
        up = size.height / 2.0
        wheels = attributes.wheel_data
        if len(wheels) == len(_PLACES) and \
                {(wheel.axle, wheel.index) for wheel in wheels} == _PLACES.keys():
            for number, wheel in enumerate(wheels):
                place, angles = wheel.position, wheel.orientation
                self._rows.append((
                    row, _PLACES[wheel.axle, wheel.index], number, place.x, place.y, place.z + up,
                    angles.roll, angles.pitch, angles.yaw,
                    wheel.rotation_rate if wheel.HasField('rotation_rate') else np.nan))
        elif attributes.HasField('bbcenter_to_rear'):
            axle = attributes.bbcenter_to_rear
            # Assumed: an axle is as long as the vehicle is wide. Only its middle is used.
            for wheel_place, side in ((REAR_LEFT, 0.5), (REAR_RIGHT, -0.5)):
                self._rows.append((row, wheel_place, -1, axle.x, axle.y + side * size.width,
                                   axle.z + up, *(np.nan,) * 4))

    def wheels(self) -> Wheels:
        if not self._rows:
            return NO_WHEELS
        rows = np.array(self._rows).reshape(-1, _N_COLUMNS)
        return Wheels(
            rows[:, 0].astype(np.int64), rows[:, 1].astype(np.uint8),
            rows[:, 2].astype(np.int32), rows[:, 3:6].copy(), quaternion_from_rpy(rows[:, 6:9]),
            np.isfinite(rows[:, 3:6]).all(axis=1), np.isfinite(rows[:, 6:9]).all(axis=1),
            rows[:, 9].copy())


class LaneTable:
    """Road, section and lane by the ids of logical and of physical lanes."""

    def __init__(self) -> None:
        self.logical: dict[int, tuple[int, int, int]] = {}
        self.physical: dict[int, tuple[int, int, int]] = {}
        self.road_names: dict[int, str] = {}

    def update(self, truth: GroundTruth) -> None:
        """Take the lanes of a message; one without lanes changes nothing."""
        if truth.logical_lane:
            self.logical = self._numbered(truth.logical_lane)
        if truth.lane:
            self.physical = self._numbered(truth.lane)

    def _numbered(self, lanes: Iterable[Lane] | Iterable[LogicalLane],
                  ) -> dict[int, tuple[int, int, int]]:
        places: dict[int, _Place] = {}
        for lane in lanes:
            if lane.source_reference:
                place = _place_of(lane.source_reference)
                if place is not None:
                    places[lane.id.value] = place
        sections: dict[str, dict[float, int]] = {}
        for road, s in sorted({place[:2] for place in places.values()}):
            begins = sections.setdefault(road, {})
            begins[s] = len(begins)
        return {id_: (self._number_of(road), sections[road][s], lane)
                for id_, (road, s, lane) in places.items()}

    def _number_of(self, road: str) -> int:
        if road.isascii() and road.isdigit() and len(road) <= _MAX_DIGITS \
                and int(road) <= _MAX_INT32:
            return int(road)
        number = crc32(road.encode()) & _MAX_INT32
        self.road_names[number] = road
        return number


class LaneStates:
    """Collects the lanes of the actors of a message."""

    def __init__(self, table: LaneTable) -> None:
        self._table = table
        self._rows: list[int] = []
        self._ids: list[tuple[int, int, int]] = []
        self._s: list[float] = []

    def add(self, row: int, moving: MovingObject) -> None:
        """Add the lane of an actor: by its logical lane, else by its physical one."""
        ids, s = None, math.nan
        classification = moving.moving_object_classification
        if self._table.logical:
            for place in classification.logical_lane_assignment:
                ids = self._table.logical.get(place.assigned_lane_id.value)
                if ids is not None:
                    s = place.s_position if place.HasField('s_position') else math.nan
                    break
        if ids is None and self._table.physical:
            assigned = classification.assigned_lane_id or moving.assigned_lane_id
            ids = next((self._table.physical[lane.value] for lane in assigned
                        if lane.value in self._table.physical), None)
        if ids is not None:
            self._rows.append(row)
            self._ids.append(ids)
            self._s.append(s)

    def states(self) -> Lanes:
        return lane_states(self._rows, np.array(self._ids).reshape(-1, 3), self._s,
                           road_names=self._table.road_names)


def _place_of(references: Iterable[ExternalReference]) -> _Place | None:
    """Return the place in OpenDRIVE, None without a usable reference."""
    for reference in references:
        if reference.type == OPENDRIVE and len(reference.identifier) >= len(_NAMES):
            road, s, lane = _values(reference.identifier)
            try:
                place = road, float(s), int(lane)
            except ValueError:
                continue
            if math.isfinite(place[1]) and abs(place[2]) <= _MAX_INT32:
                return place
    return None


_NAMES = ('road_id:', 'road_s:', 'lane_id:')


def _values(identifiers: Sequence[str | bytes]) -> list[str]:
    return [text_of(text).removeprefix(name)
            for text, name in zip(identifiers, _NAMES, strict=False)]

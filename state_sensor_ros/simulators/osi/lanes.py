# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The lanes of OpenDRIVE that the lanes of OSI are made of.

Lanes of OSI have ids of their own. A source reference of the type net.asam.opendrive has, in this
order, the id of the road, the distance at which the lane section begins, and the id of the lane,
each with its name before it as esmini writes them (``road_id:3``), or without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import math
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from state_sensor_ros.simulators import lane_states, Lanes
from state_sensor_ros.simulators.osi.messages import text_of

if TYPE_CHECKING:
    from osi3.osi_common_pb2 import ExternalReference
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_lane_pb2 import Lane
    from osi3.osi_logicallane_pb2 import LogicalLane
    from osi3.osi_object_pb2 import MovingObject

OPENDRIVE = 'net.asam.opendrive'
_MAX_INT32 = 2**31 - 1
_MAX_DIGITS = 10
# Id of a road, place of a section, m, id of a lane.
_Place = tuple[str, float, int]


class LaneTable:
    """
    Road, section and lane by the ids of logical and of physical lanes.

    :ivar logical: by the id of a logical lane.
    :ivar physical: by the id of a lane.
    :ivar road_names: id of each road whose id is not a number, by the number that stands for it.
    """

    def __init__(self) -> None:
        self.logical: dict[int, tuple[int, int, int]] = {}
        self.physical: dict[int, tuple[int, int, int]] = {}
        self.road_names: dict[int, str] = {}

    def update(self, truth: GroundTruth) -> None:
        """
        Take the lanes of a message; one without lanes changes nothing.

        :param truth: ground truth of the message.
        """
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
    """
    Collects the lanes of the actors of a message.

    :param table: table of the lanes so far.
    """

    def __init__(self, table: LaneTable) -> None:
        self._table = table
        self._rows: list[int] = []
        self._ids: list[tuple[int, int, int]] = []
        self._s: list[float] = []

    def add(self, row: int, moving: MovingObject) -> None:
        """
        Add the lane of an actor: by its logical lane, else by its physical one.

        :param row: row of the actor.
        :param moving: moving object of this message.
        """
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
        """Return the lanes of all actors."""
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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The lane changes of a recording, by the lanes of the actors."""

from __future__ import annotations

from dataclasses import dataclass

from state_sensor_ros.frame import direction_of_change, Frame


@dataclass(frozen=True, slots=True)
class LaneChange:
    """
    A change of an actor to another lane of the same road section since its frame before.

    ``name`` raw; ``game_time`` of the first frame in the new lane, s; ``from_lane`` and
    ``to_lane`` OpenDRIVE ids; ``direction`` ``left`` or ``right``, in the direction of driving.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     changes: list[sensor.LaneChange] = recording.lane_changes()
    >>> changes
    []
    """

    name: str
    game_time: float
    from_lane: int
    to_lane: int
    direction: str


class LaneChangeFinder:
    """Finds the lane changes in frames in their order."""

    def __init__(self) -> None:
        self.changes: list[LaneChange] = []
        self._lanes: dict[str, tuple[int, int, int]] = {}

    def add(self, frame: Frame) -> None:
        """Add a frame."""
        lanes = frame.lanes
        for row, (road, section, lane) in zip(lanes.actor.tolist(), lanes.ids.tolist(),
                                              strict=True):
            name, ids = frame.names[row], (road, section, lane)
            last = self._lanes.get(name, ids)
            direction = direction_of_change(last, ids)
            if direction is not None:
                self.changes.append(LaneChange(name, frame.game_time, last[2], lane, direction))
            self._lanes[name] = ids

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The map of CARLA's client: its text, and its lanes as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from state_sensor_ros.simulators import MapLine
from state_sensor_ros.simulators.open_drive import parse_lanes


class TownMap(NamedTuple):
    """A map: the middles of its lanes, and its OpenDRIVE document."""

    lines: tuple[MapLine, ...] = ()
    open_drive: str = ''


def read_town(text: str) -> tuple[TownMap, str]:
    """
    Return a map, and why it has no lanes.

    CARLA mirrors y of OpenDRIVE, as REP 103 does that of CARLA: the axes are those of the file.
    """
    lines: Sequence[MapLine] = ()
    problem = ''
    try:
        lines = parse_lanes(text)
    except ValueError as error:
        problem = f'the map is not shown: {error}'
    return TownMap(tuple(lines), text), problem

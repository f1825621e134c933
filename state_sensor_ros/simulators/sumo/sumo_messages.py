# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Messages between the driver and the process that runs SUMO, pickled, both ways over a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from state_sensor_ros.simulators import EgoCommand, Frame
from state_sensor_ros.simulators.process_source import Restart, StepPace
from state_sensor_ros.simulators.sumo.map import RoadNetwork
from state_sensor_ros.simulators.sumo.parameters import SumoParameters


@dataclass(frozen=True, slots=True)
class Run:
    """
    What the process does.

    ``own`` parameters of SUMO: it starts the scenario ``config``, or joins a running SUMO if that
    is empty; ``rate`` times real time, 0 as fast as possible; ``is_paused`` whether it makes steps
    only on request.
    """

    own: SumoParameters
    rate: float
    is_paused: bool


@dataclass(frozen=True, slots=True)
class Started:
    """SUMO runs; ``network`` its roads."""

    network: RoadNetwork


@dataclass(frozen=True, slots=True)
class Stepped:
    """
    One step.

    ``frame`` its actors; ``lights`` states of traffic lights by id, None if no light changed;
    ``is_first`` whether it is the first one after a restart.
    """

    frame: Frame
    lights: Mapping[str, str] | None
    is_first: bool = False


Request: TypeAlias = StepPace | Restart | EgoCommand

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Messages between the driver and the process with CARLA's client, pickled, over two pipes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from state_sensor_ros.simulators import MapLine
from state_sensor_ros.simulators.carla9.actors import ActorRows
from state_sensor_ros.simulators.carla9.parameters import Carla9Parameters
from state_sensor_ros.simulators.frame_arrays import Rows

# Numbers of an actor in a step.
N_NUMBERS: Final = 15


@dataclass(frozen=True, slots=True)
class StepSettings:
    """
    The settings of a world that ticking changes.

    ``is_synchronous`` whether it waits for a client; ``step_s`` simulated time of a step, s, None
    if it varies.
    """

    is_synchronous: bool
    step_s: float | None

    def __str__(self) -> str:
        step = 'steps of any length' if self.step_s is None else f'steps of {self.step_s:g} s'
        return f'{"synchronous" if self.is_synchronous else "asynchronous"} mode, {step}'


@dataclass(frozen=True, slots=True)
class Needed:
    """A request: what is used of further frames, ``lanes`` and ``inputs``."""

    lanes: bool
    inputs: bool


@dataclass(frozen=True, slots=True)
class ClientRun:
    """
    What the process does.

    ``own`` parameters; ``rate`` times real time, 0 as fast as possible; ``is_paused`` whether
    steps are made on request only; ``found`` settings to restore at the end, which an earlier
    process found, None if there was none; ``is_restore`` whether to restore them and end.
    """

    own: Carla9Parameters
    rate: float
    is_paused: bool
    needed: Needed
    found: StepSettings | None = None
    is_restore: bool = False


@dataclass(frozen=True, slots=True)
class EpisodeBegun:
    """
    A world was found.

    ``town`` its map, and ``lines`` of it; ``found`` settings to restore at the end; ``is_new``
    whether it replaces another one.
    """

    town: str
    lines: tuple[MapLine, ...]
    found: StepSettings
    is_new: bool


class StepActors(NamedTuple):
    """
    The actors of the steps that follow, until the next scene.

    ``rows`` their properties, in the order of the steps; ``lights`` (K,) rows of traffic lights.
    """

    rows: ActorRows
    lights: Rows


class WorldStep(NamedTuple):
    """
    One step; a tuple of bytes, since pickling a frame takes as long as reading its snapshot.

    ``game_time`` s since the episode began; ``number`` of the frame, below 2^32; ``is_first`` of
    its episode; ``numbers`` (N, 15) float32 of the library: position m, roll pitch yaw degrees,
    velocity m/s, angular velocity degrees/s, acceleration m/s2, CARLA's axes; ``lights`` (K,)
    uint8, states; ``controls`` (N, 4) float64 as of ``to_inputs``, empty if they are not needed;
    ``lanes`` (L, 6) float64 row, road, section, lane, s m, speed to the right m/s, None if they
    are those of the step before.
    """

    game_time: float
    number: int
    is_first: bool
    numbers: bytes
    lights: bytes
    controls: bytes
    lanes: bytes | None


@dataclass(frozen=True, slots=True)
class WorldNote:
    """A line for the log, ``kind`` as of :data:`Report`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class WorldSilence:
    """Why there are no steps, ``text`` empty once there are some."""

    text: str

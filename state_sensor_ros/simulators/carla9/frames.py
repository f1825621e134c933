# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Frames of what CARLA 0.9 says of its actors, in SI units and REP-103 axes.

CARLA's world is left-handed (x forward, y right, z up), in degrees; its angular velocity is the
axial vector of these axes (doc/protocol/carla9.md#units-and-axes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators import (
    build_frame,
    Frame,
    Lanes,
    LIGHT_GREEN,
    LIGHT_RED,
    LIGHT_YELLOW,
    MapLine,
    TrafficLights,
)
from state_sensor_ros.simulators.carla9.actors import ActorRows, GENERATION, WorldActors
from state_sensor_ros.simulators.frame_arrays import (
    Floats,
    mirrored_vectors,
    NO_LANES,
    Rows,
    to_rep103_rotator,
)

# CARLA's states in the order of its numbers; a light that is off or unknown has none here.
_LIGHTS = (LIGHT_RED, LIGHT_YELLOW, LIGHT_GREEN)
_COLORS = {LIGHT_RED: 'red', LIGHT_YELLOW: 'yellow', LIGHT_GREEN: 'green'}
# A rotation is an axial vector: a mirror of y negates x and z.
_RATE: Floats = np.radians((-1.0, 1.0, -1.0))
_N_INPUTS = 4


@dataclass(frozen=True, slots=True)
class Displays:
    """What the actors of a frame display: ``texts`` N strings, of lights their color."""

    texts: tuple[str, ...]

    def select(self, rows: Rows) -> Displays:
        """Return the texts of the actors at ``rows``."""
        return Displays(tuple(self.texts[i] for i in rows.tolist()))

    def displays(self) -> tuple[str, ...]:
        """Return the texts."""
        return self.texts


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """
    Times of a frame.

    ``game_time`` s since the episode or the recording began; ``number`` of the frame, below 2^32;
    ``time`` s since the Unix epoch, 0 if it is unknown.
    """

    game_time: float
    number: int
    time: int = 0


@dataclass(frozen=True, slots=True)
class LightStates:
    """States of K lights: ``numbers`` (K,) ids of their actors; ``states`` (K,) as CARLA's."""

    numbers: Rows
    states: npt.NDArray[np.uint8]


NO_LIGHTS: Final = LightStates(np.zeros(0, np.int64), np.zeros(0, np.uint8))


def to_rep103(poses: Floats, velocities: Floats, rates: Floats) -> Floats:
    """
    Convert poses and velocities of actors.

    :param poses: (N, 6) float64, CARLA's axes: position xyz m, roll pitch yaw degrees.
    :param velocities: (N, 3) float64, m/s, axes of the world.
    :param rates: (N, 3) float64, angular velocity, degrees/s, axes of the world.
    :returns: (N, 13) float64, REP-103: as :attr:`Frame.kinematics`; NaN stays NaN.
    """
    kinematics = np.empty((len(poses), 13))
    kinematics[:, 0:3] = mirrored_vectors(poses[:, 0:3])
    kinematics[:, 3:7] = to_rep103_rotator(poses[:, 3:6])
    kinematics[:, 7:10] = mirrored_vectors(velocities)
    kinematics[:, 10:13] = rates * _RATE + 0.0
    return kinematics


def to_inputs(controls: Floats) -> Floats:
    """
    Convert the controls of vehicles.

    :param controls: (N, 4) float64: throttle 0..1, brake 0..1, steer -1..1 (+ = right), angle of
        the front wheels, degrees (+ = right); NaN if unknown.
    :returns: (N, 4) float64, as :attr:`Frame.inputs`.
    """
    inputs = np.empty((len(controls), _N_INPUTS))
    inputs[:, 0:2] = np.clip(controls[:, 0:2], 0.0, 1.0)
    inputs[:, 2] = np.clip(-controls[:, 2], -1.0, 1.0) + 0.0
    inputs[:, 3] = np.radians(-controls[:, 3]) + 0.0
    return inputs


def make_frame(table: WorldActors, clock: FrameTimes, numbers: Rows, kinematics: Floats, *,
               inputs: Floats, lights: LightStates = NO_LIGHTS,
               accelerations: Floats | None = None, lanes: Lanes = NO_LANES,
               map_lines: tuple[MapLine, ...] = ()) -> Frame:
    """
    Make the frame of N actors.

    :param table: all actors that exist.
    :param clock: times of the frame.
    :param numbers: (N,) ids of the actors, all in the table.
    :param kinematics: (N, 13) from :func:`to_rep103`.
    :param inputs: (N, 4) from :func:`to_inputs`.
    :param lights: states of the lights; those that are not in the frame are dropped.
    :param accelerations: (N, 3) m/s2, REP-103 axes of the world, None if they are unknown.
    :param lanes: lane states of the actors.
    :param map_lines: the map.
    """
    rows = table.rows(numbers)
    shown, extension = _lights(rows, numbers, kinematics, lights)
    frame = build_frame(
        GENERATION, clock.game_time, rows.names, kinematics[:, 0:3],
        orientation_xyzw=kinematics[:, 3:7], velocity_xyz=kinematics[:, 7:10],
        angular_velocity_xyz=kinematics[:, 10:13], tags=rows.tags, is_vehicle=rows.are_vehicles,
        size_xyz=rows.size_xyz, box_center_xyz=rows.center_xyz, lanes=lanes, inputs=inputs,
        traffic_lights=shown, map_lines=map_lines, time=clock.time, sample_count=clock.number)
    return replace(frame, accelerations=accelerations, extension=extension)


def _lights(rows: ActorRows, numbers: Rows, kinematics: Floats,
            lights: LightStates) -> tuple[TrafficLights, Displays | None]:
    """Return the lights that show a color, and what all actors display."""
    known = lights.states < len(_LIGHTS)
    _, of_actor, of_light = np.intersect1d(
        numbers, lights.numbers[known], return_indices=True)
    states = np.array(_LIGHTS, np.uint8)[lights.states[known][of_light]]
    shown = TrafficLights(
        numbers[of_actor], tuple(rows.names[i] for i in of_actor.tolist()), states,
        kinematics[of_actor, 0:7])
    if not len(states) and not any(rows.displays):
        return shown, None
    texts = list(rows.displays)
    for i, state in zip(of_actor.tolist(), states.tolist(), strict=True):
        texts[i] = _COLORS[state]
    return shown, Displays(tuple(texts))

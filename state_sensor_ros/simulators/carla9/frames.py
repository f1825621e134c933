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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators import (
    Boxes,
    Decoded,
    Frame,
    INDICATORS_LEFT,
    INDICATORS_RIGHT,
    INDICATORS_UNKNOWN,
    lane_states,
    Lanes,
    LateFrame,
    LIGHT_GREEN,
    LIGHT_RED,
    LIGHT_YELLOW,
    MapLine,
    Needs,
    TrafficLights,
)
from state_sensor_ros.simulators.carla9.actors import ActorRows, GENERATION
from state_sensor_ros.simulators.frame_arrays import (
    Floats,
    global_from_unit,
    mirrored_vectors,
    NO_LANES,
    NO_WHEELS,
    quaternion_from_rpy,
    Rows,
    to_rep103_rotator,
)
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


# Numbers of an actor in a step.
N_NUMBERS: Final = 15
# CARLA's states in the order of its numbers; a light that is off or unknown has none here.
_LIGHTS = (LIGHT_RED, LIGHT_YELLOW, LIGHT_GREEN)
# Bits of the lights of a vehicle.
RIGHT_BLINKER: Final = 0x10
LEFT_BLINKER: Final = 0x20
_COLORS = {LIGHT_RED: 'red', LIGHT_YELLOW: 'yellow', LIGHT_GREEN: 'green'}
# A rotation is an axial vector: a mirror of y negates x and z.
_RATE: Floats = np.radians((-1.0, 1.0, -1.0))
_N_INPUTS = 4
_NO_TOWN = TownMap()
# Of the columns of a step.
_TO_REP103: Floats = np.concatenate((
    (1.0, -1.0, 1.0), np.radians((1.0, -1.0, -1.0)), (1.0, -1.0, 1.0), _RATE,
    (1.0, -1.0, 1.0)))
# Speed across the lane above which a vehicle changes it, m/s: a drift within the lane is slower.
_LANE_CHANGE_SPEED = 0.4


@dataclass(frozen=True, slots=True)
class Displays:
    """What the actors of a frame display."""

    texts: tuple[str, ...]  # N strings, of lights their color

    def select(self, rows: Rows) -> Displays:
        """Return the texts of the actors at ``rows``."""
        return Displays(tuple(self.texts[i] for i in rows.tolist()))

    def displays(self) -> tuple[str, ...]:
        return self.texts


class ShownLights(NamedTuple):
    """The lights that show a color, None for unknown, and what all actors display."""

    shown: TrafficLights | None
    displays: Displays | None


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
    """Convert the controls of vehicles."""
    # controls: (N, 4) float64: throttle 0..1, brake 0..1, steer -1..1 (+ = right), angle of the
    # front wheels, degrees (+ = right); NaN if unknown.
    # Returns (N, 4) float64, as :attr:`Frame.inputs`.
    inputs = np.empty((len(controls), _N_INPUTS))
    inputs[:, 0:2] = np.clip(controls[:, 0:2], 0.0, 1.0)
    inputs[:, 2] = np.clip(-controls[:, 2], -1.0, 1.0) + 0.0
    inputs[:, 3] = np.radians(-controls[:, 3]) + 0.0
    return inputs


def make_frame(rows: ActorRows, kinematics: Floats, *, game_time: float, number: int,
               time: int = 0, inputs: Floats, lights: ShownLights,
               accelerations: Floats | None = None, lanes: Lanes = NO_LANES,
               town: TownMap = _NO_TOWN, with_boxes: bool = True,
               indicators: npt.NDArray[np.int8] | None = None) -> Frame:
    """
    Make the frame of N actors.

    :param kinematics: (N, 13) from :func:`to_rep103`.
    :param game_time: s since the episode or the recording began.
    :param number: of the frame, below 2^32.
    :param time: s since the Unix epoch, 0 if it is unknown.
    :param inputs: (N, 4) from :func:`to_inputs`.
    :param accelerations: (N, 3) m/s2, REP-103 axes of the world, None if they are unknown.
    """
    n_actors, boxes, block = len(kinematics), None, kinematics
    if with_boxes:
        # Actors and boxes in one block, which saves the frame a copy, with few calls of numpy.
        block = rows.block.copy()
        block[:n_actors] = kinematics
        places = kinematics[rows.boxed, 0:7]
        block[n_actors:, 0:7] = places
        block[n_actors:, 0:3] += np.einsum(
            'nij,nj->ni', global_from_unit(places[:, 3:7]), rows.center_xyz)
        boxes = Boxes(rows.boxed, rows.box_names, block[n_actors:])
    frame = Frame(
        GENERATION, game_time, time, number, rows.names, rows.kinds, rows.tags,
        block[:n_actors], lanes, boxes, NO_WHEELS, inputs,
        accelerations=accelerations, derived=rows.derived, extension=lights.displays,
        has_exact_time=True, ids=rows.ids, indicators=indicators,
        traffic_lights=lights.shown, map_lines=town.lines, open_drive=town.open_drive)
    frame.set_rows(block)
    is_known = frame.bodies().usable_boxes
    if is_known.all():
        return frame
    return replace(frame, boxes=Boxes(
        rows.boxed[is_known], rows.box_names[:is_known.sum()], block[n_actors:][is_known]))


def matched(numbers: Rows, others: Rows) -> tuple[Rows, Rows]:
    """Return the indices of the common ids in both; of one that is there twice, the first."""
    _, first, second = np.intersect1d(numbers, others, return_indices=True)
    return first, second


def indicators_of(numbers: Rows, vehicles: Rows,
                  lights: npt.NDArray[np.uint32]) -> npt.NDArray[np.int8] | None:
    """Return the turn signals (N,) of actors, None if none is known."""
    # numbers: (N,) ids; vehicles: (K,) ids of those whose lights (K,) are known, CARLA's bits.
    rows, found = matched(numbers, vehicles)
    if not len(rows):
        return None
    indicators = np.full(len(numbers), INDICATORS_UNKNOWN, np.int8)
    indicators[rows] = (np.where(lights[found] & LEFT_BLINKER, INDICATORS_LEFT, 0)
                        + np.where(lights[found] & RIGHT_BLINKER, INDICATORS_RIGHT, 0))
    return indicators


def shown_lights(rows: ActorRows, kinematics: Floats, light_rows: Rows,
                 states: npt.NDArray[np.uint8], signals: tuple[str, ...] = ()) -> ShownLights:
    """Return the traffic lights of a frame."""
    # kinematics: (N, 13) from :func:`to_rep103`.
    # light_rows: (K,) rows of lights.
    # states: (K,) their states as CARLA's; one without a color is dropped.
    # signals: K ids in OpenDRIVE, empty if they are unknown.
    known = states < len(_LIGHTS)
    shown_rows, colors = light_rows[known], np.array(_LIGHTS, np.uint8)[states[known]]
    shown = TrafficLights(
        rows.numbers[shown_rows], tuple(rows.names[row] for row in shown_rows.tolist()), colors,
        kinematics[shown_rows, 0:7],
        open_drive_ids=tuple(compress(signals, known)))
    if not len(colors) and not any(rows.displays):
        return ShownLights(shown, None)
    texts = list(rows.displays)
    for row, color in zip(shown_rows.tolist(), colors.tolist(), strict=True):
        texts[row] = _COLORS[color]
    return ShownLights(shown, Displays(tuple(texts)))


class StepActors(NamedTuple):
    """The actors of the steps that follow, until the next scene."""

    rows: ActorRows
    lights: Rows  # (K,) rows of traffic lights
    signals: tuple[str, ...] = ()  # their K ids in OpenDRIVE


class WorldStep(NamedTuple):
    """One step; a tuple of bytes, since pickling a frame takes as long as reading its snapshot."""

    game_time: float  # s since the episode began
    number: int  # of the frame, below 2^32
    is_first: bool  # of its episode
    # (N, 15) float32 of the library: position m, roll pitch yaw degrees, velocity m/s, angular
    # velocity degrees/s, acceleration m/s2, CARLA's axes.
    numbers: bytes
    lights: bytes  # (K,) uint8, states
    controls: bytes  # (N, 4) float64 as of ``to_inputs``, empty if they are not needed
    # (L, 6) float64 row, road, section, lane, s m, speed to the right m/s, None if they are those
    # of the step before.
    lanes: bytes | None
    indicators: bytes = b''  # (N,) int8 as of ``indicators_of``, empty if they are unknown


class WorldFrames:
    """Makes the frames of the steps of one scene."""

    def __init__(self, scene: StepActors) -> None:
        self._scene = scene
        n_actors = len(scene.rows.numbers)
        self._no_inputs = np.full((n_actors, _N_INPUTS), np.nan)
        # Parts that seldom change.
        self._states: bytes | None = None
        self._lights = ShownLights(None, None)
        self._lanes: Lanes = NO_LANES

    def late(self, step: WorldStep, town: TownMap) -> LateFrame:
        if step.lights != self._states:
            # The lights themselves do not move.
            with np.errstate(all='ignore'):
                kinematics, _ = _kinematics(step)
            self._states, self._lights = step.lights, shown_lights(
                self._scene.rows, kinematics, self._scene.lights,
                np.frombuffer(step.lights, np.uint8), self._scene.signals)
        if step.lanes is not None:
            self._lanes = _lanes_of(np.frombuffer(step.lanes).reshape(-1, 6))
        return partial(self._decoded, step, town, self._lights, self._lanes)

    # A physics engine that fails sends NaN and infinite numbers: such a pose is not published.
    @np.errstate(all='ignore')
    def _decoded(self, step: WorldStep, town: TownMap, lights: ShownLights,
                 lanes: Lanes, needs: Needs) -> Decoded:
        kinematics, accelerations = _kinematics(step)
        return Decoded(make_frame(
            self._scene.rows, kinematics, game_time=step.game_time, number=step.number,
            inputs=to_inputs(np.frombuffer(step.controls).reshape(-1, _N_INPUTS))
            if step.controls else self._no_inputs, lights=lights, accelerations=accelerations,
            lanes=lanes, town=town, with_boxes=needs.boxes,
            indicators=np.frombuffer(step.indicators, np.int8) if step.indicators else None), ())


def _kinematics(step: WorldStep) -> tuple[Floats, Floats]:
    """Return kinematics (N, 13) and accelerations (N, 3) as of :func:`make_frame`."""
    # The product of 0.0 and -1.0 is -0.0; adding 0.0 makes it 0.0.
    numbers = np.frombuffer(step.numbers, np.float32).reshape(-1, N_NUMBERS) * _TO_REP103 + 0.0
    kinematics = np.empty((len(numbers), 13))
    kinematics[:, 0:3] = numbers[:, 0:3]
    kinematics[:, 3:7] = quaternion_from_rpy(numbers[:, 3:6])
    kinematics[:, 7:13] = numbers[:, 6:12]
    return kinematics, numbers[:, 12:15]


def _lanes_of(columns: Floats) -> Lanes:
    """Return lane states; ``columns``: (L, 6) as of :attr:`WorldStep.lanes`."""
    across = columns[:, 5]
    return lane_states(
        columns[:, 0], columns[:, 1:4], columns[:, 4],
        np.stack((across < -_LANE_CHANGE_SPEED, across > _LANE_CHANGE_SPEED), 1))

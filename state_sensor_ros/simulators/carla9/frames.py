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

from dataclasses import replace
from itertools import compress
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from state_sensor_ros import frame as parts
from state_sensor_ros.files.frame_builder import lane_states
from state_sensor_ros.frame import Floats, Frame, Rows
from state_sensor_ros.rotations import global_from_unit, quaternion_from_rpy, rpy_from_quaternion
from state_sensor_ros.simulators.carla9.actors import ActorRows, GENERATION
from state_sensor_ros.simulators.open_drive import parse_lanes

# Numbers of an actor: position m, roll pitch yaw degrees, velocity m/s, angular velocity
# degrees/s, acceleration m/s2, CARLA's axes; and what converts them to REP 103. A rotation is an
# axial vector: a mirror of y negates x and z.
N_NUMBERS: Final = 15
_TO_REP103: Floats = np.concatenate((
    (1.0, -1.0, 1.0), np.radians((1.0, -1.0, -1.0)), (1.0, -1.0, 1.0),
    np.radians((-1.0, 1.0, -1.0)), (1.0, -1.0, 1.0)))
_TO_INPUTS: Floats = np.array((1.0, 1.0, -1.0, -np.radians(1.0)))
# CARLA's states in the order of its numbers; a light that is off or unknown has none here.
_LIGHTS = (parts.LIGHT_RED, parts.LIGHT_YELLOW, parts.LIGHT_GREEN)
_COLORS = {parts.LIGHT_RED: 'red', parts.LIGHT_YELLOW: 'yellow', parts.LIGHT_GREEN: 'green'}
# Bits of the lights of a vehicle.
RIGHT_BLINKER: Final = 0x10
LEFT_BLINKER: Final = 0x20
# Speed across the lane above which a vehicle changes it, m/s: a drift within the lane is slower.
_LANE_CHANGE_SPEED = 0.4


class TownMap(NamedTuple):
    """A map: the middles of its lanes, and its OpenDRIVE document."""

    lines: tuple[parts.MapLine, ...] = ()
    open_drive: str = ''


def read_town(text: str) -> tuple[TownMap, str]:
    """
    Return a map, and why it has no lanes.

    CARLA mirrors y of OpenDRIVE, as REP 103 does that of CARLA: the axes are those of the file.
    """
    try:
        return TownMap(tuple(parse_lanes(text)), text), ''
    except ValueError as error:
        return TownMap((), text), f'the map is not shown: {error}'


class Displays(NamedTuple):
    """What the actors of a frame display."""

    texts: tuple[str, ...]  # N strings, of lights their color

    def select(self, rows: Rows) -> Displays:
        """Return the texts of the actors at ``rows``."""
        return Displays(tuple(self.texts[i] for i in rows.tolist()))

    def displays(self) -> tuple[str, ...]:
        return self.texts


class ShownLights(NamedTuple):
    """The lights that show a color, None for unknown, and what all actors display."""

    shown: parts.TrafficLights | None
    displays: Displays | None


def to_rep103(numbers: Floats | npt.NDArray[np.float32]) -> Floats:
    """
    Convert numbers of actors.

    :param numbers: (N, 12 or more) float, CARLA's, NaN if unknown.
    :returns: (N, 13) float64, as :attr:`Frame.kinematics`.
    """
    # The product of 0.0 and -1.0 is -0.0; adding 0.0 makes it 0.0.
    numbers = numbers[:, :12] * _TO_REP103[:12] + 0.0
    return np.concatenate((numbers[:, :3], quaternion_from_rpy(numbers[:, 3:6]), numbers[:, 6:]),
                          axis=1)


def from_rep103(kinematics: tuple[float, ...]) -> Floats:
    """Undo :func:`to_rep103` of one actor: 13 numbers, NaN if unknown, to 12."""
    row: Floats = np.array(kinematics)
    return np.concatenate((row[:3], rpy_from_quaternion(row[3:7]), row[7:])) / _TO_REP103[:12]


def to_inputs(controls: Floats) -> Floats:
    """
    Convert the controls of vehicles.

    :param controls: (N, 4) float64: throttle 0..1, brake 0..1, steer -1..1 (+ = right), angle of
        the front wheels, degrees (+ = right); NaN if unknown.
    :returns: (N, 4) float64, as :attr:`Frame.inputs`.
    """
    return np.clip(controls * _TO_INPUTS, (0.0, 0.0, -1.0, -np.inf), (1.0, 1.0, 1.0, np.inf)) + 0.0


def make_frame(rows: ActorRows, kinematics: Floats, *, game_time: float, number: int,
               time: int = 0, inputs: Floats, lights: ShownLights,
               town: TownMap, accelerations: Floats | None = None,
               lanes: parts.Lanes = parts.NO_LANES, with_boxes: bool = True,
               indicators: npt.NDArray[np.int8] | None = None) -> Frame:
    """
    Make the frame of N actors.

    :param kinematics: (N, 13) float64 as :attr:`Frame.kinematics`.
    :param game_time: s since the episode or the recording began.
    :param number: of the frame, below 2^32.
    :param time: s since the Unix epoch, 0 if it is unknown.
    :param inputs: (N, 4) from :func:`to_inputs`.
    :param accelerations: (N, 3) m/s2, REP-103 axes of the world, None if they are unknown.
    """
    n_actors, boxes, block = len(kinematics), None, kinematics
    blank = ('',) * n_actors
    if with_boxes:
        # Actors and boxes in one block, which saves the frame a copy, with few calls of numpy.
        block = rows.block.copy()
        block[:n_actors] = kinematics
        places = kinematics[rows.boxed, 0:7]
        block[n_actors:, 0:7] = places
        block[n_actors:, 0:3] += np.einsum(
            'nij,nj->ni', global_from_unit(places[:, 3:7]), rows.center_xyz)
        boxes = parts.Boxes(rows.boxed, blank[:len(rows.boxed)], block[n_actors:])
    frame = Frame(
        GENERATION, game_time, time, number, rows.names, rows.kinds, rows.tags,
        block[:n_actors], lanes, boxes, parts.NO_WHEELS, inputs,
        accelerations=accelerations, derived=rows.derived, extension=lights.displays,
        has_exact_time=True, ids=rows.ids, indicators=indicators,
        traffic_lights=lights.shown, map_lines=town.lines, open_drive=town.open_drive)
    frame.set_rows(block)
    is_known = frame.bodies().usable_boxes
    if is_known.all():
        return frame
    return replace(frame, boxes=parts.Boxes(
        rows.boxed[is_known], blank[:is_known.sum()], block[n_actors:][is_known]))


def matched(numbers: Rows, others: Rows) -> tuple[Rows, Rows]:
    """Return the indices of the common ids in both; of one that is there twice, the first."""
    _, first, second = np.intersect1d(numbers, others, return_indices=True)
    return first, second


def indicators_of(numbers: Rows, vehicles: Rows, lights: Rows) -> npt.NDArray[np.int8] | None:
    """
    Return the turn signals (N,) of actors, None if none is known.

    :param numbers: (N,) ids.
    :param vehicles: (K,) ids of the vehicles whose lights (K,) are known, CARLA's bits.
    """
    rows, found = matched(numbers, vehicles)
    if not len(rows):
        return None
    indicators = np.full(len(numbers), parts.INDICATORS_UNKNOWN, np.int8)
    indicators[rows] = (np.where(lights[found] & LEFT_BLINKER, parts.INDICATORS_LEFT, 0)
                        + np.where(lights[found] & RIGHT_BLINKER, parts.INDICATORS_RIGHT, 0))
    return indicators


def shown_lights(rows: ActorRows, kinematics: Floats, light_rows: Rows,
                 states: npt.NDArray[np.uint8], signals: tuple[str, ...] = ()) -> ShownLights:
    """
    Return the traffic lights of a frame.

    :param kinematics: (N, 13) float64 as :attr:`Frame.kinematics`.
    :param light_rows: (K,) rows of lights.
    :param states: (K,) their states as CARLA's; one without a color is dropped.
    :param signals: K ids in OpenDRIVE, empty if they are unknown.
    """
    known = states < len(_LIGHTS)
    shown_rows, colors = light_rows[known], np.array(_LIGHTS, np.uint8)[states[known]]
    shown = parts.TrafficLights(
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
    """One step; its columns are bytes, which take the least time to send."""

    game_time: float  # s since the episode began
    number: int  # of the frame, below 2^32
    is_first: bool  # of its episode
    numbers: bytes  # (N, 15) float32
    lights: bytes  # (K,) uint8, states
    controls: bytes  # (N, 4) float64 as of ``to_inputs``, empty if they are not needed
    # (L, 6) float64 row, road, section, lane, s m, speed to the right m/s.
    lanes: bytes
    indicators: bytes = b''  # (N,) int8 as of ``indicators_of``, empty if they are unknown
    n_proven: int = 0  # number of the order whose pedals it shows


class WorldFrames:
    """Makes the frames of the steps of one scene."""

    def __init__(self, scene: StepActors) -> None:
        self._scene = scene
        # States of the lights, which seldom change, and these lights.
        self._states: bytes | None = None
        self._lights = ShownLights(None, None)

    # A physics engine that fails sends NaN and infinite numbers: such a pose is not published.
    @np.errstate(all='ignore')
    def frame(self, step: WorldStep, town: TownMap, *, details: bool = True) -> Frame:
        """Return the frame of a step; ``details`` is whether boxes are used."""
        rows = self._scene.rows
        numbers = np.frombuffer(step.numbers, np.float32).reshape(-1, N_NUMBERS)
        kinematics = to_rep103(numbers)
        if step.lights != self._states:
            # The lights themselves do not move.
            self._states, self._lights = step.lights, shown_lights(
                rows, kinematics, self._scene.lights, np.frombuffer(step.lights, np.uint8),
                self._scene.signals)
        columns = np.frombuffer(step.lanes).reshape(-1, 6)
        across = columns[:, 5]
        return make_frame(
            rows, kinematics, game_time=step.game_time, number=step.number,
            inputs=to_inputs(np.frombuffer(step.controls).reshape(-1, 4))
            if step.controls else np.full((len(numbers), 4), np.nan), lights=self._lights,
            accelerations=numbers[:, 12:15] * _TO_REP103[12:15] + 0.0,
            lanes=lane_states(columns[:, 0], columns[:, 1:4], columns[:, 4], np.stack(
                (across < -_LANE_CHANGE_SPEED, across > _LANE_CHANGE_SPEED), 1)),
            town=town, with_boxes=details,
            indicators=np.frombuffer(step.indicators, np.int8) if step.indicators else None)

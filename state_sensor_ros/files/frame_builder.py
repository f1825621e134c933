# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Frames made of what a simulator has: positions, angles, sizes, lanes, wheels.

All values are SI, in the axes of REP-103 (x forward, y left, z up; angles counter-clockwise) and
in the global frame unless said otherwise. A number that is not known is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import math
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import Kind
from state_sensor_ros.errors import StateError
from state_sensor_ros.frame import (
    Boxes,
    Floats,
    Frame,
    Lanes,
    MapLine,
    NO_BOXES,
    NO_LANES,
    NO_ROADS,
    NO_SOURCE_ID,
    NO_WHEELS,
    Rows,
    TrafficLights,
    Wheels,
)
from state_sensor_ros.rotations import (
    global_from_unit,
    IDENTITY_XYZW,
    normalized,
    quaternion_from_rpy,
)

Triple = tuple[float, float, float]
UNKNOWN: Triple = (math.nan,) * 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorLane:
    """The lane that an actor is in."""

    # A number; where roads have names, any number that stays the same in every run, with its name
    # in ``road_names`` of the frame.
    road_id: int
    section_id: int = 0  # from 0
    lane_id: int = 0  # as OpenDRIVE counts, -1 the innermost lane of right-hand traffic
    s: float = math.nan  # meters along the road
    is_changing_left: bool = False
    is_changing_right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorWheel:
    """One wheel of an actor."""

    wheel: int  # FRONT_LEFT, FRONT_RIGHT, REAR_LEFT or REAR_RIGHT
    position_xyz: Triple = UNKNOWN  # meters, in the axes of the actor, from its origin
    roll_pitch_yaw: Triple = UNKNOWN  # rad, likewise, where yaw is the steering angle
    speed: float = math.nan  # rad/s, + = forward


def build_frame(generation: str, game_time: float, names: Sequence[str],
                position_xyz: npt.ArrayLike, *,
                roll_pitch_yaw: npt.ArrayLike | None = None,
                orientation_xyzw: npt.ArrayLike | None = None,
                velocity_xyz: npt.ArrayLike | None = None,
                angular_velocity_xyz: npt.ArrayLike | None = None,
                tags: Sequence[Sequence[str]] | None = None,
                is_vehicle: npt.ArrayLike = True,
                size_xyz: npt.ArrayLike | None = None,
                box_center_xyz: npt.ArrayLike | None = None,
                lanes: Lanes = NO_LANES, wheels: Wheels = NO_WHEELS,
                inputs: npt.ArrayLike | None = None,
                traffic_lights: TrafficLights | None = None,
                map_lines: tuple[MapLine, ...] = (),
                ids: npt.ArrayLike | None = None,
                derived: npt.ArrayLike | None = None,
                time: int = 0, sample_count: int = 0) -> Frame:
    """
    Make a frame of N actors from arrays.

    :param generation: name of the simulator.
    :param game_time: s since the simulation started.
    :param names: N names, each of one actor.
    :param position_xyz: (N, 3) origins of the actors, m: for a vehicle or a person, best the
        middle of its footprint on the ground.
    :param roll_pitch_yaw: (N, 3) rad; level and along x by default.
    :param orientation_xyzw: (N, 4) in its place.
    :param velocity_xyz: (N, 3) m/s; unknown by default.
    :param angular_velocity_xyz: (N, 3) rad/s; unknown by default.
    :param tags: N sequences of strings, such as ``('car', 'ego')``; none by default.
    :param is_vehicle: (N,) bool, or one for all.
    :param size_xyz: (N, 3) lengths of the edges of the boxes along the axes of the actors, m; NaN
        for an actor without a box; no boxes by default.
    :param box_center_xyz: (N, 3) middles of the boxes in the axes of the actors, from their
        origins, m; by default half of the height above the origin.
    :param lanes: of :func:`lane_states`.
    :param wheels: of the actors.
    :param inputs: (N, 4) throttle 0..1, brake 0..1, steering -1..1 (+ = left), steering angle
        (rad, + = left); unknown by default.
    :param traffic_lights: those that are no actors.
    :param map_lines: the map, best the same object for all frames.
    :param ids: (N,) ids of the actors, 0 to 2^32 - 1, each of one actor, -1 for an actor without
        a usable one; by default the actors are numbered.
    :param derived: (N,) the sum of DERIVED_VELOCITY and DERIVED_SIZE for each actor whose velocity
        is derived from positions or whose size is that of its class; none by default.
    :param time: s since the Unix epoch; 0 where the simulator has no wall time.
    :param sample_count: number of the frame; 0 where the simulator does not count.
    :raises StateError: on unequal lengths or a wrong shape.
    """
    n_actors = len(names)
    kinematics = np.empty((n_actors, 13))
    kinematics[:, 0:3] = _rows('position_xyz', position_xyz, n_actors, 3)
    kinematics[:, 3:7] = _orientations(roll_pitch_yaw, orientation_xyzw, n_actors)
    kinematics[:, 7:10] = _rows('velocity_xyz', velocity_xyz, n_actors, 3)
    kinematics[:, 10:13] = _rows('angular_velocity_xyz', angular_velocity_xyz, n_actors, 3)
    boxes = NO_BOXES if size_xyz is None else Boxes(*_boxes(
        kinematics, _rows('size_xyz', size_xyz, n_actors, 3),
        None if box_center_xyz is None else _rows('box_center_xyz', box_center_xyz, n_actors, 3)))
    return Frame(
        generation, game_time, time, sample_count, tuple(names),
        np.where(np.broadcast_to(is_vehicle, n_actors), Kind.VEHICLE, Kind.OBJECT).astype(
            np.uint8),
        ((),) * n_actors if tags is None else tuple(map(tuple, tags)), kinematics, lanes, boxes,
        wheels, _rows('inputs', inputs, n_actors, 4),
        has_exact_time=True, ids=None if ids is None else np.array(ids, np.int64),
        derived=None if derived is None else np.array(derived, np.uint8),
        traffic_lights=traffic_lights, map_lines=map_lines)


def lane_states(actor: npt.ArrayLike, ids: npt.ArrayLike, s: npt.ArrayLike,
                is_changing: npt.ArrayLike = False,
                road_names: Mapping[int, str] = NO_ROADS) -> Lanes:
    """
    Make the lanes of the L actors that are in one.

    :param actor: (L,) rows of the actors, ascending.
    :param ids: (L, 3) int32 of road, section and lane, as :class:`ActorLane` has them.
    :param s: (L,) meters along the road.
    :param is_changing: (L, 2) bool, whether a change to the left and to the right is under way.
    :param road_names: names of roads by their ids, of this frame and all before.
    :raises StateError: on unequal lengths or a wrong shape.
    """
    rows = np.array(actor, np.int64)
    return Lanes(rows, np.broadcast_to(is_changing, (len(rows), 2)).astype(np.bool_),
                 _rows('ids', ids, len(rows), 3).astype(np.int32),
                 _rows('s', np.reshape(s, (-1, 1)), len(rows), 1)[:, 0],
                 MappingProxyType(dict(road_names)))


class FrameBuilder:
    """
    A frame that is made actor by actor, for simulators that have no arrays.

    >>> from state_sensor_ros.simulators import ActorLane, FrameBuilder
    >>> builder = FrameBuilder('toy', game_time=0.05)
    >>> builder.add('car 1', (10.0, 2.0, 0.0), yaw=0.1, velocity_xyz=(5.0, 0.0, 0.0),
    ...             tags=('car', 'ego'), size_xyz=(4.5, 1.8, 1.5),
    ...             lane=ActorLane(road_id=3, s=12.0))
    >>> builder.frame().position_xyz.shape
    (1, 3)

    :param generation: as of :func:`build_frame`, like the others.
    :param road_names: as of :func:`lane_states`.
    """

    def __init__(self, generation: str, game_time: float, *, time: int = 0, sample_count: int = 0,
                 road_names: Mapping[int, str] = NO_ROADS,
                 traffic_lights: TrafficLights | None = None,
                 map_lines: tuple[MapLine, ...] = ()) -> None:
        self._generation, self._game_time = generation, game_time
        self._time, self._sample_count = time, sample_count
        self._road_names, self._traffic_lights = road_names, traffic_lights
        self._map_lines = map_lines
        self._names: list[str] = []
        self._tags: list[tuple[str, ...]] = []
        self._is_vehicle: list[bool] = []
        # Position, angles, velocity, angular velocity, size, middle of the box, inputs.
        self._numbers: list[tuple[float, ...]] = []
        self._lanes: list[tuple[int, ActorLane]] = []
        self._wheels: list[tuple[int, ActorWheel]] = []

    def add(self, name: str, position_xyz: Triple, *, yaw: float = 0.0, pitch: float = 0.0,
            roll: float = 0.0, velocity_xyz: Triple = UNKNOWN,
            angular_velocity_xyz: Triple = UNKNOWN, tags: Sequence[str] = (),
            is_vehicle: bool = True, size_xyz: Triple = UNKNOWN,
            box_center_xyz: Triple | None = None, lane: ActorLane | None = None,
            wheels: Sequence[ActorWheel] = (),
            inputs: tuple[float, float, float, float] = (math.nan,) * 4) -> None:
        """
        Add an actor.

        :param name: of this actor only.
        :param position_xyz: as of :func:`build_frame`, like the others.
        """
        row = len(self._names)
        self._names.append(name)
        self._tags.append(tuple(tags))
        self._is_vehicle.append(is_vehicle)
        middle = (0.0, 0.0, size_xyz[2] / 2.0) if box_center_xyz is None else box_center_xyz
        self._numbers.append((*position_xyz, roll, pitch, yaw, *velocity_xyz,
                              *angular_velocity_xyz, *size_xyz, *middle, *inputs))
        if lane is not None:
            self._lanes.append((row, lane))
        self._wheels += [(row, wheel) for wheel in wheels]

    def frame(self) -> Frame:
        """Return the frame of the actors so far."""
        numbers = np.array(self._numbers, float).reshape(-1, 22)
        return build_frame(
            self._generation, self._game_time, self._names, numbers[:, 0:3],
            roll_pitch_yaw=numbers[:, 3:6], velocity_xyz=numbers[:, 6:9],
            angular_velocity_xyz=numbers[:, 9:12], tags=self._tags, is_vehicle=self._is_vehicle,
            size_xyz=numbers[:, 12:15], box_center_xyz=numbers[:, 15:18],
            lanes=self._lane_states(), wheels=self._wheel_states(), inputs=numbers[:, 18:22],
            traffic_lights=self._traffic_lights, map_lines=self._map_lines, time=self._time,
            sample_count=self._sample_count)

    def _lane_states(self) -> Lanes:
        lanes = [lane for _, lane in self._lanes]
        return lane_states(
            [row for row, _ in self._lanes],
            np.array([(lane.road_id, lane.section_id, lane.lane_id) for lane in lanes]).reshape(
                -1, 3), [lane.s for lane in lanes],
            np.array([(lane.is_changing_left, lane.is_changing_right)
                      for lane in lanes]).reshape(-1, 2), self._road_names)

    def _wheel_states(self) -> Wheels:
        wheels = [wheel for _, wheel in self._wheels]
        positions = np.array([wheel.position_xyz for wheel in wheels]).reshape(-1, 3)
        angles = np.array([wheel.roll_pitch_yaw for wheel in wheels]).reshape(-1, 3)
        return Wheels(
            np.array([row for row, _ in self._wheels], np.int64),
            np.array([wheel.wheel for wheel in wheels], np.uint8),
            np.full(len(wheels), NO_SOURCE_ID, np.int32), positions, quaternion_from_rpy(angles),
            np.isfinite(positions).all(axis=1), np.isfinite(angles).all(axis=1),
            np.array([wheel.speed for wheel in wheels], float))


def _rows(name: str, values: npt.ArrayLike | None, n_rows: int, width: int) -> Floats:
    """Return numbers as (n_rows, width) float64, all NaN where there are none."""
    if values is None:
        return np.full((n_rows, width), np.nan)
    rows = np.asarray(values, np.float64)
    if not n_rows and not rows.size:
        return np.zeros((0, width))
    if rows.shape != (n_rows, width):
        raise StateError(name, f'shape {rows.shape}', f'({n_rows}, {width})')
    return rows


def _orientations(roll_pitch_yaw: npt.ArrayLike | None, orientation_xyzw: npt.ArrayLike | None,
                  n_actors: int) -> Floats:
    if orientation_xyzw is not None:
        return _rows('orientation_xyzw', orientation_xyzw, n_actors, 4)
    if roll_pitch_yaw is None:
        return np.broadcast_to(IDENTITY_XYZW, (n_actors, 4))
    return quaternion_from_rpy(_rows('roll_pitch_yaw', roll_pitch_yaw, n_actors, 3))


def _boxes(kinematics: Floats, sizes: Floats,
           middles: Floats | None) -> tuple[Rows, tuple[str, ...], Floats]:
    """Return the boxes of the actors whose size is known, in their axes."""
    actor = np.flatnonzero(np.isfinite(sizes).all(axis=1) & np.isfinite(
        kinematics[:, 0:7]).all(axis=1) & kinematics[:, 3:7].any(axis=1))
    if middles is None:
        middles = sizes * (0.0, 0.0, 0.5)
    rows = np.ones((len(actor), 13))
    rotations = global_from_unit(normalized(kinematics[actor, 3:7]))
    rows[:, 0:3] = kinematics[actor, 0:3] + np.einsum('nij,nj->ni', rotations, middles[actor])
    rows[:, 3:7] = kinematics[actor, 3:7]
    rows[:, 7:10] = sizes[actor]
    return actor, ('',) * len(actor), rows

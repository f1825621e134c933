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
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from state_sensor_ros import errors, rotations
from state_sensor_ros import frame as frames
from state_sensor_ros.classes import Kind


def build_frame(generation: str, game_time: float, names: Sequence[str],
                position_xyz: npt.ArrayLike, *,
                orientation_xyzw: npt.ArrayLike | None = None,
                velocity_xyz: npt.ArrayLike | None = None,
                angular_velocity_xyz: npt.ArrayLike | None = None,
                tags: Sequence[Sequence[str]] | None = None,
                is_vehicle: npt.ArrayLike = True,
                size_xyz: npt.ArrayLike | None = None,
                lanes: frames.Lanes = frames.NO_LANES,
                traffic_lights: frames.TrafficLights | None = None,
                map_lines: tuple[frames.MapLine, ...] = (),
                ids: npt.ArrayLike | None = None,
                derived: npt.ArrayLike | None = None) -> frames.Frame:
    """
    Make a frame of N actors from arrays; :func:`dataclasses.replace` sets its other fields.

    :param generation: name of the simulator.
    :param game_time: s since the simulation started.
    :param names: N names, each of one actor.
    :param position_xyz: (N, 3) origins of the actors, m: for a vehicle or a person, best the
        middle of its footprint on the ground.
    :param orientation_xyzw: (N, 4), such as those of :func:`rotations.quaternion_from_rpy`; level
        and along x by default.
    :param velocity_xyz: (N, 3) m/s; unknown by default.
    :param angular_velocity_xyz: (N, 3) rad/s; unknown by default.
    :param tags: N sequences of strings, such as ``('car', 'ego')``; none by default.
    :param is_vehicle: (N,) bool, or one for all.
    :param size_xyz: (N, 3) lengths of the edges of the boxes along the axes of the actors, m; the
        origins are in the middle of their lower faces. NaN for an actor without a box; no boxes by
        default.
    :param lanes: of :func:`lane_states`.
    :param traffic_lights: those that are no actors.
    :param map_lines: the map, best the same object for all frames.
    :param ids: (N,) ids of the actors, 0 to 2^32 - 1, each of one actor, -1 for an actor without
        a usable one; by default the actors are numbered.
    :param derived: (N,) the sum of DERIVED_VELOCITY and DERIVED_SIZE for each actor whose velocity
        is derived from positions or whose size is that of its class; none by default.
    :raises StateError: on unequal lengths or a wrong shape.
    """
    n_actors = len(names)
    if orientation_xyzw is None:
        orientation_xyzw = np.broadcast_to(rotations.IDENTITY_XYZW, (n_actors, 4))
    kinematics = np.concatenate([
        _rows('position_xyz', position_xyz, n_actors, 3),
        _rows('orientation_xyzw', orientation_xyzw, n_actors, 4),
        _rows('velocity_xyz', velocity_xyz, n_actors, 3),
        _rows('angular_velocity_xyz', angular_velocity_xyz, n_actors, 3)], axis=1)
    boxes = frames.NO_BOXES
    if size_xyz is not None:
        sizes = _rows('size_xyz', size_xyz, n_actors, 3)
        # The actors whose size and pose are known have boxes, in their axes.
        actor = np.flatnonzero(np.isfinite(sizes).all(axis=1) & np.isfinite(
            kinematics[:, 0:7]).all(axis=1) & kinematics[:, 3:7].any(axis=1))
        rows = np.ones((len(actor), 13))
        axes = rotations.global_from_unit(rotations.normalized(kinematics[actor, 3:7]))
        rows[:, 0:3] = kinematics[actor, 0:3] + axes[:, :, 2] * sizes[actor, 2:] / 2.0
        rows[:, 3:7] = kinematics[actor, 3:7]
        rows[:, 7:10] = sizes[actor]
        boxes = frames.Boxes(actor, ('',) * len(actor), rows)
    return frames.Frame(
        generation, game_time, 0, 0, tuple(names),
        np.where(np.broadcast_to(is_vehicle, n_actors), Kind.VEHICLE, Kind.OBJECT).astype(
            np.uint8),
        ((),) * n_actors if tags is None else tuple(map(tuple, tags)), kinematics, lanes, boxes,
        frames.NO_WHEELS, np.full((n_actors, 4), np.nan), has_exact_time=True,
        ids=None if ids is None else np.array(ids, np.int64),
        derived=None if derived is None else np.array(derived, np.uint8),
        traffic_lights=traffic_lights, map_lines=map_lines)


def lane_states(actor: npt.ArrayLike, ids: npt.ArrayLike, s: npt.ArrayLike,
                is_changing: npt.ArrayLike = False,
                road_names: Mapping[int, str] = frames.NO_ROADS) -> frames.Lanes:
    """
    Make the lanes of the L actors that are in one.

    :param actor: (L,) rows of the actors, ascending.
    :param ids: (L, 3) int32 of road, section (from 0) and lane, as OpenDRIVE counts them: -1 is
        the innermost lane of right-hand traffic. Where roads have names, a road has any number
        that is the same in every run.
    :param s: (L,) meters along the road.
    :param is_changing: (L, 2) bool, whether a change to the left and to the right is under way.
    :param road_names: names of roads by their ids, of this frame and all before.
    :raises StateError: on unequal lengths or a wrong shape.
    """
    rows = np.array(actor, np.int64)
    return frames.Lanes(
        rows, np.broadcast_to(is_changing, (len(rows), 2)).astype(np.bool_),
        _rows('ids', ids, len(rows), 3).astype(np.int32),
        _rows('s', np.reshape(s, (-1, 1)), len(rows), 1)[:, 0],
        MappingProxyType(dict(road_names)))


def _rows(name: str, values: npt.ArrayLike | None, n_rows: int, width: int) -> frames.Floats:
    """Return numbers as (n_rows, width) float64, all NaN where there are none."""
    if values is None:
        return np.full((n_rows, width), np.nan)
    rows = np.asarray(values, np.float64)
    if not n_rows and not rows.size:
        return np.zeros((0, width))
    if rows.shape != (n_rows, width):
        raise errors.StateError(name, f'shape {rows.shape}', f'({n_rows}, {width})')
    return rows

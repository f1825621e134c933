# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The actors of one step of SUMO as a frame in SI units and REP-103 axes.

SUMO's axes are x east, y north, z up, meters; angles are degrees clockwise from north, slopes
degrees uphill. Its position is the middle of the front bumper; an actor's origin here is the
middle of its footprint, on the ground. The velocity is SUMO's: its speed along the heading and its
lateral speed to the left. Nothing is added for the rotation, and nothing is derived from
positions. The yaw rate is that of the headings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros import frame as frames
from state_sensor_ros.classes import EGO_TAG
from state_sensor_ros.files.frame_builder import build_frame, lane_states
from state_sensor_ros.frame import Floats, Frame
from state_sensor_ros.rotations import global_from_unit, quaternion_from_rpy, wrapped
from state_sensor_ros.simulators.sumo.map import PEDESTRIAN, RoadNetwork

GENERATION = 'sumo'
FIRST_EGO = 'first'
# Columns of numbers of an actor, as SUMO gives them.
COLUMNS = ('x', 'y', 'z', 'angle', 'slope', 'speed', 'speedLat', 'pos', 'signals')
X, Y, Z, ANGLE, SLOPE, SPEED, LATERAL_SPEED, LANE_POSITION, SIGNALS = range(9)
# SUMO's "no value" (INVALID_DOUBLE_VALUE); its coordinates are greater.
NO_VALUE = -1073741824.0
# A drift within the lane is slower, a lane change of the usual 3 s faster (about 1 m/s).
# Not 0.1, which is frequent, and which SUMO gives as 0.10000000000000002 and writes as 0.10.
LANE_CHANGE_SPEED = 0.0999
# A heading that snaps at a kink of a lane would mean more across, m/s2: no rate is known then.
_MOST_ACROSS = 10.0
# Turn signals by the lowest bits of SIGNALS: 1 right, 2 left, 4 hazard lights.
_INDICATORS = np.array((frames.INDICATORS_OFF, frames.INDICATORS_RIGHT, frames.INDICATORS_LEFT,
                        *[frames.INDICATORS_BOTH] * 5), np.int8)
# Longer is only what bends, which one box cannot show, m.
_LONGEST_BODY_M = 20.0

# Tag, and length, width and height (m) of a type that states none, by SUMO's vehicle classes.
_CLASSES: Mapping[str, tuple[str, float, float, float]] = {name: row for names, row in {
    'passenger private taxi evehicle hov authority army vip custom1 custom2': (
        'car', 5.0, 1.8, 1.5),
    'emergency': ('car', 6.5, 2.16, 2.86), 'delivery': ('truck', 6.5, 2.16, 2.86),
    'truck': ('truck', 7.1, 2.4, 2.4), 'trailer': ('truck', 16.5, 2.55, 4.0),
    'bus': ('bus', 12.0, 2.5, 3.4), 'coach': ('bus', 14.0, 2.6, 4.0),
    'tram': ('tram', 22.0, 2.4, 3.2), 'rail': ('rail', 135.0, 2.84, 3.75),
    'rail_urban subway': ('rail', 109.5, 3.0, 3.6),
    'rail_electric rail_fast': ('rail', 200.0, 2.95, 3.89), 'cable_car': ('rail', 5.0, 1.8, 1.5),
    'bicycle': ('bicycle', 1.6, 0.65, 1.7), 'moped': ('motorcycle', 2.1, 0.8, 1.7),
    'motorcycle': ('motorcycle', 2.2, 0.9, 1.5), 'scooter': ('motorcycle', 1.2, 0.5, 1.7),
    PEDESTRIAN: (PEDESTRIAN, 0.215, 0.478, 1.719), 'wheelchair': (PEDESTRIAN, 0.8, 0.7, 1.5),
}.items() for name in names.split()}
PASSENGER = 'passenger'
_OTHER = ('', *_CLASSES[PASSENGER][1:])


def usual_size(vclass: str) -> tuple[float, float, float]:
    """Return length, width and height, m, of a type that states none."""
    return _CLASSES.get(vclass, _OTHER)[1:]


@dataclass(frozen=True, slots=True)
class ActorType:
    """The constant properties of an actor."""

    vclass: str  # SUMO's vehicle class
    size_xyz: tuple[float, float, float]  # length, width, height, m
    is_person: bool = False  # whether its id is one of those of persons
    is_assumed: bool = False  # whether no file declares the type
    is_vehicle: bool = field(init=False)  # whether its actors are vehicles, not people
    tags: tuple[str, ...] = field(init=False)  # of its actors, the class first

    def __post_init__(self) -> None:
        """Compute once what each of its actors has in each frame."""
        tag = _CLASSES.get(self.vclass, _OTHER)[0]
        object.__setattr__(self, 'is_vehicle', tag != PEDESTRIAN)
        object.__setattr__(self, 'tags', (
            *(('vehicle',) if self.is_vehicle else ()), *((tag,) if tag else ()),
            *(('articulated',) if self.size_xyz[0] > _LONGEST_BODY_M else ())))


@dataclass(slots=True)
class Run:
    """What the steps of a run so far say about later ones."""

    time_s: float = math.nan
    yaws: dict[str, float] = field(default_factory=dict)  # of the last step, rad, by name
    # Names by whether the id is that of a person, and the id: a vehicle may have the same. Entries
    # are added and never change, so that copies of a run share them.
    names: dict[tuple[bool, str], str] = field(default_factory=dict)
    first: str = ''  # name of the ego that is the first vehicle
    # Speeds, m/s, by name, in the next step: to SUMO, a move is a movement.
    moved: dict[str, float] = field(default_factory=dict)


class Steps:
    """
    Makes the frames of one run, in their order.

    :param ego: id of the ego; ``first`` for the first vehicle, and the next one after it has left;
        empty for none.
    :param run: what the steps before the first one say.
    """

    def __init__(self, network: RoadNetwork, ego: str = '', run: Run | None = None) -> None:
        self.network, self.run, self._ego = network, run or Run(), ego

    def frame(self, time_s: float, ids: Sequence[str], types: Sequence[ActorType],
              places: Sequence[str], columns: Floats) -> Frame:
        """
        Make the frame of one step.

        :param places: N names of the lanes of vehicles and the edges of persons, empty for none.
        :param columns: (N, 9) float64, numbers as SUMO gives them, in the order of COLUMNS.
        """
        columns = np.where(columns <= NO_VALUE, np.nan, columns)
        kept = np.flatnonzero(np.isfinite(columns[:, [X, Y]]).all(axis=1))
        if len(kept) < len(columns):
            columns = columns[kept]
            ids, types, places = ([column[i] for i in kept] for column in (ids, types, places))
        names = self._names(ids, types)
        lanes = [self.network.sidewalks.get(place, '') if kind.is_person else place
                 for place, kind in zip(places, types, strict=True)]
        sizes = np.array([kind.size_xyz for kind in types], float).reshape(-1, 3)
        is_person = np.array([kind.is_person for kind in types], bool)
        # People stand upright.
        slopes = np.radians(np.where(is_person, 0.0, np.nan_to_num(columns[:, SLOPE])))
        yaws = np.radians(90 - columns[:, ANGLE])
        # Uphill is positive in SUMO, nose down is positive in REP 103.
        orientation_xyzw = quaternion_from_rpy(np.column_stack((0.0 * slopes, -slopes, yaws)))
        axes = global_from_unit(orientation_xyzw)
        lateral = np.nan_to_num(columns[:, LATERAL_SPEED]) * self.network.side
        speeds = columns[:, SPEED]
        if self.run.moved:
            speeds[:] = [self.run.moved.pop(name, speed)
                         for name, speed in zip(names, speeds, strict=True)]
        ego = self._ego_of(ids, names, types)
        is_assumed = np.array([kind.is_assumed for kind in types], bool)
        frame = build_frame(
            GENERATION, time_s, names,
            np.nan_to_num(columns[:, :3]) - axes[:, :, 0] * sizes[:, :1] / 2,
            orientation_xyzw=orientation_xyzw,
            velocity_xyz=speeds[:, None] * axes[:, :, 0] + lateral[:, None] * axes[:, :, 1],
            angular_velocity_xyz=self._rates(time_s, names, yaws, speeds),
            size_xyz=sizes, tags=[(*kind.tags, EGO_TAG) if i == ego else kind.tags
                                  for i, kind in enumerate(types)],
            is_vehicle=np.array([kind.is_vehicle for kind in types], bool),
            lanes=lane_states(*self._places_on_lanes(lanes, columns)),
            map_lines=self.network.lines,
            derived=frames.DERIVED_SIZE * is_assumed if is_assumed.any() else None)
        return replace(frame, indicators=_indicators(columns[:, SIGNALS]))

    def _rates(self, time_s: float, names: Sequence[str], yaws: Floats,
               speeds: Floats) -> Floats:
        """Return angular velocities (N, 3), rad/s, NaN if unknown."""
        run = self.run
        last = np.array([run.yaws.get(name, math.nan) for name in names], float)
        step_s = time_s - run.time_s
        rates = wrapped(yaws - last) / (step_s if step_s > 0.0 else math.nan)
        rates[np.abs(rates * speeds) > _MOST_ACROSS] = math.nan
        run.time_s, run.yaws = time_s, dict(zip(names, yaws.tolist(), strict=True))
        still = 0.0 * rates
        return np.column_stack((still, still, rates))

    def _names(self, ids: Sequence[str], types: Sequence[ActorType]) -> Sequence[str]:
        """Return a name for each actor, other than its id if a vehicle and a person share it."""
        known = self.run.names
        if not known and not any(kind.is_person for kind in types):
            return ids
        names = []
        for name, kind in zip(ids, types, strict=True):
            key = kind.is_person, name
            if key not in known:
                # The ego is moved by its id.
                is_taken = (not kind.is_person, name) in known or (
                    kind.is_person and name == self._ego)
                known[key] = f'{"person" if kind.is_person else "vehicle"}_{name}' if is_taken \
                    else name
            names.append(known[key])
        return names

    def _ego_of(self, ids: Sequence[str], names: Sequence[str],
                types: Sequence[ActorType]) -> int | None:
        """Return the row of the ego; a vehicle if a person has the same id."""
        if self._ego != FIRST_EGO:
            rows = [i for i, name in enumerate(ids) if name == self._ego]
            return next((i for i in rows if not types[i].is_person), rows[0] if rows else None)
        if self.run.first not in names:
            # One that shares its id with a person could not be moved.
            self.run.first = next((name for name, own, kind in zip(ids, names, types, strict=True)
                                   if kind.is_vehicle and name == own), '')
        return names.index(self.run.first) if self.run.first else None

    def _places_on_lanes(self, lanes: Sequence[str], columns: Floats) -> tuple[
            list[int], npt.NDArray[np.int64], Floats, npt.NDArray[np.bool_], Mapping[int, str]]:
        """Return what :func:`lane_states` takes."""
        known = self.network.lane_ids
        rows = [i for i, lane in enumerate(lanes) if lane in known]
        ids = [(road, 0, lane) for road, lane in (known[lanes[i]] for i in rows)]
        lateral = columns[rows, LATERAL_SPEED] * self.network.side
        is_changing = np.stack((lateral > LANE_CHANGE_SPEED, lateral < -LANE_CHANGE_SPEED), 1)
        return (rows, np.array(ids, np.int64).reshape(-1, 3), columns[rows, LANE_POSITION],
                is_changing, self.network.road_names)


def _indicators(signals: Floats) -> npt.NDArray[np.int8] | None:
    """Return the turn signals of vehicles by SUMO's bits (N,), None if all are unknown."""
    is_known = np.isfinite(signals)
    if not is_known.any():
        return None
    lit = _INDICATORS[np.where(is_known, signals, 0.0).astype(np.int64) % len(_INDICATORS)]
    lit[~is_known] = frames.INDICATORS_UNKNOWN
    return lit

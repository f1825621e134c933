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
middle of its footprint, on the ground.
Velocities are those of the middles of their footprints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators import (
    build_frame,
    EGO_TAG,
    Frame,
    INDICATORS_BOTH,
    INDICATORS_LEFT,
    INDICATORS_OFF,
    INDICATORS_RIGHT,
    INDICATORS_UNKNOWN,
    lane_states,
    Lanes,
)
from state_sensor_ros.simulators.frame_arrays import (
    Bools,
    DERIVED_SIZE,
    DERIVED_VELOCITY,
    Floats,
    global_from_unit,
    quaternion_from_rpy,
    Rows,
    wrapped,
)
from state_sensor_ros.simulators.sumo.map import PEDESTRIAN, RoadNetwork

# Columns of numbers of an actor, as SUMO gives them.
X, Y, Z, ANGLE, SLOPE, SPEED, LATERAL_SPEED, LANE_POSITION, SIGNALS = range(9)
N_COLUMNS = 9
# Bits of SIGNALS.
_RIGHT, _LEFT, _HAZARD = 1, 2, 4
# Movement between two frames beyond twice the speed and this is a jump, such as a teleport, m.
_JUMP_M = 3.0
# Greatest speed of a vehicle whose speed is not known, and of a person who walks, m/s.
_FASTEST, FASTEST_PERSON = 100.0, 5.0
# A greater speed to the side, or difference from the speed along the heading, is a jump, m/s.
_MOST_LATERAL_SPEED = 5.0
# Largest change of what the speed along the heading lacks of SUMO's, m/s2.
_EASING = 2.0


@dataclass(frozen=True, slots=True)
class SumoStep:
    """What SUMO says of one step, in the axes of REP 103."""

    time_s: float
    names: Sequence[str]  # of N actors
    lanes: Sequence[str]  # N names of lanes, empty for none
    columns: Floats  # (N, 9) float64, numbers as SUMO gives them, NaN for none
    is_person: Bools  # (N,)
    slopes: Floats  # (N,) rad, positive uphill, 0 for people
    yaws: Floats  # (N,) rad
    middle_xyz: Floats  # (N, 3) m, middles of the footprints
    rounding_m: float  # least difference of two positions


@dataclass(frozen=True, slots=True)
class _LastStep:
    """What a step says about the next one."""

    time_s: float
    rows: Mapping[str, int]  # of N actors by name
    front_xy: Floats  # (N, 2) m, middles of their front bumpers
    middle_xyz: Floats  # (N, 3) m
    yaws: Floats  # (N,) rad
    missing: Floats  # (N,) m/s, what the speed along the heading lacked of SUMO's, NaN off lanes


_NO_STEP = _LastStep(math.nan, {}, np.zeros((0, 2)), np.zeros((0, 3)), np.zeros(0), np.zeros(0))


@dataclass(slots=True)
class StepHistory:
    """What the steps of a run so far say about later ones."""

    last: _LastStep = _NO_STEP
    first: str = ''  # name of the ego that is the first vehicle
    # Names by SUMO's ids, which are those of vehicles or of people: two may have the same.
    people: dict[str, str] = field(default_factory=dict)
    names_of_people: set[str] = field(default_factory=set)
    renamed_vehicles: dict[str, str] = field(default_factory=dict)
    # Place and angle of actors without an angle, at the last step in which they moved.
    headings: dict[str, tuple[float, float, float]] = field(default_factory=dict)


class Movements:
    """
    The motion of the actors of one run.

    SUMO moves the middle of the front bumper along the lane and to its side, and turns the body
    about its rear: the heading is not the direction of movement. Where the lane or the lateral
    speed is unknown, as without a network, an actor that moves to its side has the velocity of
    this movement.
    """

    def __init__(self, network: RoadNetwork, history: StepHistory) -> None:
        self._network, self._history = network, history

    def velocities(self, step: SumoStep) -> tuple[Floats, Floats]:
        """Return how the middles of the footprints move."""
        # Returns velocities, m/s, and angular velocities, rad/s, each (N, 3), global frame.
        rows = self._history.last.rows
        before = np.array([rows.get(name, -1) for name in step.names], np.int64)
        moved, front_moved, rates = self._changes(step, before)
        speeds = step.columns[:, SPEED]
        is_unknown = np.isnan(speeds)
        if is_unknown.any():
            # SUMO's speed is the way of the front along the lane.
            ways = np.hypot(*front_moved.T) / np.cos(step.slopes)
            lateral = np.nan_to_num(step.columns[:, LATERAL_SPEED])
            speeds = np.where(is_unknown, np.sqrt(np.maximum(ways**2 - lateral**2, 0.0)), speeds)
            step.columns[:, SPEED] = speeds
        climbed = moved[:, 2]
        # People turn on the spot: their middles then move, and they do not.
        moved = np.where(step.is_person[:, None], front_moved, moved[:, :2])
        ahead, left = _axes(step.yaws)
        lateral = np.nan_to_num(step.columns[:, LATERAL_SPEED])
        velocity = (np.cos(step.slopes) * np.hypot(speeds, lateral))[:, None] * ahead
        # SUMO's speed of people is without steps to their sides, of which they take some alone.
        to_side = np.where(step.is_person, np.hypot(*(moved - velocity).T),
                           np.sum(moved * left, 1))
        is_sideways = (np.abs(to_side) < _MOST_LATERAL_SPEED) & self._is_beyond_rounding(
            step, to_side) & (np.abs(np.sum(moved * ahead, 1) - speeds) < _MOST_LATERAL_SPEED)
        velocity[is_sideways] = moved[is_sideways]
        along_lane, missing = self._along_lanes(step, before, front_moved, rates)
        is_known = np.isfinite(along_lane).all(axis=1)
        velocity[is_known] = along_lane[is_known]
        still = np.zeros(len(speeds))
        is_climbing = step.is_person & (np.abs(climbed) < speeds) & self._is_beyond_rounding(
            step, climbed)
        upward = np.where(is_climbing, climbed, np.sin(step.slopes) * speeds)
        self._history.last = _LastStep(
            step.time_s, dict(zip(step.names, range(len(speeds)), strict=True)),
            step.columns[:, [X, Y]], step.middle_xyz, step.yaws, missing)
        return (np.column_stack((velocity, upward)), np.column_stack((still, still, rates)))

    def _changes(self, step: SumoStep, before: Rows) -> tuple[Floats, Floats, Floats]:
        """Return what has changed since the last step, by its duration."""
        # before: (N,) rows of the actors in the last step, -1 for none.
        # Returns movements of the middles (N, 3) and the fronts (N, 2), m/s, NaN for a new actor
        # or after a jump; (N,) turning, rad/s, 0 for a new actor, NaN after a jump.
        n_actors = len(step.names)
        moved, front_moved = np.full((n_actors, 3), np.nan), np.full((n_actors, 2), np.nan)
        rates = np.zeros(n_actors)
        last = self._history.last
        if step.time_s > last.time_s:
            step_s = step.time_s - last.time_s
            rows = np.flatnonzero(before >= 0)
            ways = step.columns[rows][:, [X, Y]] - last.front_xy[before[rows]]
            speeds = step.columns[rows, SPEED]
            fastest = np.where(step.is_person[rows], FASTEST_PERSON, _FASTEST)
            is_steady = np.hypot(ways[:, 0], ways[:, 1]) < np.where(
                np.isnan(speeds), step_s * fastest, 2 * step_s * np.abs(speeds)) + _JUMP_M
            rates[rows[~is_steady]] = math.nan
            rows, ways = rows[is_steady], ways[is_steady]
            before = before[rows]
            front_moved[rows] = ways / step_s
            moved[rows] = (step.middle_xyz[rows] - last.middle_xyz[before]) / step_s
            rates[rows] = wrapped(step.yaws[rows] - last.yaws[before]) / step_s
        return moved, front_moved, rates

    def _along_lanes(self, step: SumoStep, before: Rows, front_moved: Floats,
                     rates: Floats) -> tuple[Floats, Floats]:
        """Return velocities (N, 2) of vehicles by the directions of their lanes, else NaN."""
        # Returns also (N,) what the speed along the heading lacks of SUMO's.
        yaws, scales = self._network.directions.at(step.lanes, step.columns[:, LANE_POSITION])
        # One that drives against its lane, as to overtake, is none that the lane guides.
        yaws[step.is_person | ~(np.cos(yaws - step.yaws) > 0.0)] = math.nan
        ahead, left = _axes(yaws)
        side = -1.0 if self._network.is_left_hand else 1.0
        lateral = step.columns[:, LATERAL_SPEED] * side
        to_side = np.sum(front_moved * left, 1)
        is_said = np.isfinite(lateral)
        is_moved = (np.abs(to_side) < _MOST_LATERAL_SPEED) & self._is_beyond_rounding(
            step, to_side)
        lateral = np.where(is_said, lateral, np.where(is_moved, to_side, 0.0))
        along = np.cos(step.slopes) * step.columns[:, SPEED] * scales
        to_middle = step.middle_xyz[:, :2] - step.columns[:, [X, Y]]
        turning = np.nan_to_num(rates)[:, None] * np.column_stack(
            (-to_middle[:, 1], to_middle[:, 0]))
        velocities = along[:, None] * ahead + lateral[:, None] * left + turning
        # Where a lane has a kink, SUMO moves the front along it in one step, and the heading
        # follows in several: what is lost of the speed changes slowly, or it were a hard braking.
        forward, _ = _axes(step.yaws)
        missing = along * (1.0 - np.sum(ahead * forward, 1))
        eased, last = missing.copy(), self._history.last
        rows = np.flatnonzero((before >= 0) & np.isfinite(missing))
        lacked = np.nan_to_num(last.missing[before[rows]])
        most = _EASING * abs(step.time_s - last.time_s)
        eased[rows] = np.clip(missing[rows], lacked - most, lacked + most)
        velocities += (missing - eased)[:, None] * forward
        return velocities, eased

    def _is_beyond_rounding(self, step: SumoStep, speeds: Floats) -> Bools:
        """Return whether movements since the last step (N,) are more than rounding; not if NaN."""
        step_s = step.time_s - self._history.last.time_s
        # Two positions that are rounded differ by up to 1.42 of it more than they should.
        return np.asarray(np.abs(speeds) * step_s > 1.5 * step.rounding_m)


def _axes(yaws: Floats) -> tuple[Floats, Floats]:
    """Return unit vectors (N, 2) ahead and to the left."""
    cos, sin = np.cos(yaws), np.sin(yaws)
    return np.column_stack((cos, sin)), np.column_stack((-sin, cos))


GENERATION = 'sumo'
# SUMO's "no value" (INVALID_DOUBLE_VALUE); its coordinates are greater.
NO_VALUE = -1073741824.0
# A drift within the lane is slower, a lane change of the usual 3 s faster (about 1 m/s).
# Not 0.1, which is frequent, and which SUMO gives as 0.10000000000000002 and writes as 0.10.
LANE_CHANGE_SPEED = 0.0999
FIRST_EGO = 'first'
# Steeper is no slope: shapes have kinks where lanes meet that are centimeters higher, for which
# SUMO says up to 90 degrees for a step, most of them on the paths of people.
_STEEPEST_DEG = 45.0
# A movement has a direction from this length on: the usual rounding is 1 cm.
_LEAST_WAY_M = 0.5
# Less is none: the same for live frames and FCD output of 9 decimals, m.
_ROUNDING_M = 1e-6
# Longer is only what bends, which one box cannot show, m.
_LONGEST_BODY_M = 20.0
_ARTICULATED_TAG = 'articulated'


@dataclass(frozen=True, slots=True)
class ActorType:
    """The constant properties of an actor."""

    vclass: str  # SUMO's vehicle class
    size_xyz: tuple[float, float, float]  # length, width, height, m
    is_person: bool = False  # whether its id is one of those of persons
    is_assumed: bool = False  # whether no file declares the type

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags of an actor, its class first."""
        is_long = self.size_xyz[0] > _LONGEST_BODY_M
        return (*tags_of(self.vclass), *((_ARTICULATED_TAG,) if is_long else ()))


def _indicators(signals: Floats) -> npt.NDArray[np.int8] | None:
    """Return the turn signals of vehicles by SUMO's bits (N,), None if all are unknown."""
    is_known = np.isfinite(signals)
    if not is_known.any():
        return None
    bits = np.where(is_known, signals, 0.0).astype(np.int64)
    left = np.where(bits & _LEFT, INDICATORS_LEFT, INDICATORS_OFF)
    right = np.where(bits & _RIGHT, INDICATORS_RIGHT, INDICATORS_OFF)
    lit: npt.NDArray[np.int8] = (left | right).astype(np.int8)
    lit[(bits & _HAZARD) > 0] = INDICATORS_BOTH
    lit[~is_known] = INDICATORS_UNKNOWN
    return lit


def with_roads(frame: Frame, network: RoadNetwork) -> Frame:
    """Return a frame with the names of the roads and the map, which are the same in each."""
    return replace(frame, lanes=replace(frame.lanes, road_names=network.road_names),
                   map_lines=network.lines)


class StepFrames:
    """Makes the frames of one run, in their order."""

    # ego: id of the ego, `first` for the first vehicle and the next one after it has left, empty
    # for none.

    def __init__(self, network: RoadNetwork, ego: str = '',
                 history: StepHistory | None = None) -> None:
        self.network, self._ego = network, ego
        self._history = StepHistory() if history is None else history
        self._movements = Movements(network, self._history)

    def frame(self, time_s: float, ids: Sequence[str], types: Sequence[ActorType],
              places: Sequence[str], columns: Floats, rounding_m: float = _ROUNDING_M) -> Frame:
        """Make the frame of one step."""
        # places: N names of the lanes of vehicles and the edges of persons, empty for none.
        # columns: (N, 9) float64, numbers as SUMO gives them, in the order of the columns.
        # rounding_m: least difference of two positions, m.
        columns = np.where(columns <= NO_VALUE, np.nan, columns)
        is_here = np.isfinite(columns[:, [X, Y]]).all(axis=1)
        if not is_here.all():
            kept = np.flatnonzero(is_here)
            columns = columns[kept]
            ids, types, places = ([column[i] for i in kept] for column in (ids, types, places))
        names = self._names(ids, types)
        ego = self._ego_of(ids, names, types)
        lanes = [self.network.sidewalks.get(place, '') if kind.is_person else place
                 for place, kind in zip(places, types, strict=True)]
        columns[:, ANGLE] = self._angles(names, lanes, columns)
        sizes = np.array([kind.size_xyz for kind in types], float).reshape(-1, 3)
        is_person = np.array([kind.is_person for kind in types], bool)
        # People stand upright.
        slopes = np.radians(np.where(~is_person & (np.abs(columns[:, SLOPE]) < _STEEPEST_DEG),
                                     columns[:, SLOPE], 0.0))
        angles = np.zeros((len(names), 3))
        # Uphill is positive in SUMO, nose down is positive in REP 103.
        angles[:, 1] = -slopes
        angles[:, 2] = np.radians(90 - columns[:, ANGLE])
        orientation_xyzw = quaternion_from_rpy(angles)
        forward = global_from_unit(orientation_xyzw)[:, :, 0]
        position_xyz = np.nan_to_num(columns[:, :3]) - forward * sizes[:, :1] / 2
        has_no_speed = np.isnan(columns[:, SPEED])
        velocity_xyz, angular_velocity_xyz = self._movements.velocities(
            SumoStep(time_s, names, lanes, columns, is_person, slopes, angles[:, 2],
                     position_xyz, max(rounding_m, _ROUNDING_M)))
        derived = DERIVED_VELOCITY * (has_no_speed & np.isfinite(velocity_xyz[:, 0])) \
            + DERIVED_SIZE * np.array([kind.is_assumed for kind in types], bool)
        frame = build_frame(
            GENERATION, time_s, names, position_xyz,
            orientation_xyzw=orientation_xyzw, velocity_xyz=velocity_xyz,
            angular_velocity_xyz=angular_velocity_xyz, size_xyz=sizes,
            tags=[(*kind.tags, EGO_TAG) if i == ego else kind.tags
                  for i, kind in enumerate(types)],
            is_vehicle=np.array([is_vehicle(kind.vclass) for kind in types], bool),
            lanes=self._lanes(lanes, columns),
            derived=derived if derived.any() else None)
        return replace(frame, indicators=_indicators(columns[:, SIGNALS]))

    def _angles(self, names: Sequence[str], lanes: Sequence[str], columns: Floats) -> Floats:
        """Return the angles, degrees: where there are none that of the lane, else the movement."""
        angles: Floats = columns[:, ANGLE]
        if np.isfinite(angles).all():
            return angles
        yaws, _ = self.network.directions.at(lanes, columns[:, LANE_POSITION])
        angles = np.where(np.isfinite(angles), angles, 90.0 - np.degrees(yaws))
        headings = self._history.headings
        for i in np.flatnonzero(~np.isfinite(angles)).tolist():
            x, y = columns[i, [X, Y]].tolist()
            last_x, last_y, angle = headings.get(names[i], (x, y, math.nan))
            if math.hypot(x - last_x, y - last_y) > _LEAST_WAY_M:
                angle = 90.0 - math.degrees(math.atan2(y - last_y, x - last_x))
            elif (x, y) != (last_x, last_y):
                # Too short for a direction: it counts together with the next one.
                x, y = last_x, last_y
            headings[names[i]] = x, y, angle
            angles[i] = angle
        return angles

    def _names(self, ids: Sequence[str], types: Sequence[ActorType]) -> Sequence[str]:
        """Return a name for each actor, other than its id if a vehicle and a person share it."""
        history = self._history
        people = [i for i, kind in enumerate(types) if kind.is_person]
        if not people and not history.people:
            return ids
        names = list(ids)
        vehicles = dict(zip(ids, range(len(ids)), strict=True)) if not people else {
            name: i for i, name in enumerate(ids) if not types[i].is_person}
        for i in people:
            if ids[i] not in history.people:
                # The ego is moved by its id.
                is_taken = ids[i] in vehicles or ids[i] in (self._ego, *history.names_of_people)
                name = f'person_{ids[i]}' if is_taken else ids[i]
                while name in history.names_of_people or (is_taken and name in vehicles):
                    name += '_'
                history.people[ids[i]] = name
                history.names_of_people.add(name)
            names[i] = history.people[ids[i]]
        for name in vehicles.keys() & history.names_of_people:
            other = f'vehicle_{name}'
            while other in vehicles or other in history.names_of_people:
                other += '_'
            names[vehicles[name]] = history.renamed_vehicles.setdefault(name, other)
        return names

    def _ego_of(self, ids: Sequence[str], names: Sequence[str],
                types: Sequence[ActorType]) -> int | None:
        """Return the row of the ego; a vehicle if a person has the same id."""
        if self._ego != FIRST_EGO:
            rows = [i for i, name in enumerate(ids) if name == self._ego]
            return next((i for i in rows if not types[i].is_person), rows[0] if rows else None)
        history = self._history
        if history.first in names:
            return names.index(history.first)
        # One that shares its id with a person could not be moved.
        row = next((i for i, kind in enumerate(types)
                    if is_vehicle(kind.vclass) and names[i] == ids[i]), None)
        history.first = '' if row is None else names[row]
        return row

    def _lanes(self, lanes: Sequence[str], columns: Floats) -> Lanes:
        known = self.network.lane_ids
        rows = [i for i, lane in enumerate(lanes) if lane in known]
        ids = [(road, 0, lane) for road, lane in (known[lanes[i]] for i in rows)]
        lateral = columns[rows, LATERAL_SPEED] * (-1 if self.network.is_left_hand else 1)
        is_changing = np.stack((lateral > LANE_CHANGE_SPEED, lateral < -LANE_CHANGE_SPEED), 1)
        return lane_states(rows, np.array(ids).reshape(-1, 3), columns[rows, LANE_POSITION],
                           is_changing)


_CLASSES_BY_TAG: Mapping[str, tuple[str, ...]] = {
    'car': ('passenger', 'private', 'taxi', 'evehicle', 'hov', 'emergency', 'authority', 'army',
            'vip', 'custom1', 'custom2'),
    'truck': ('delivery', 'truck', 'trailer'),
    'bus': ('bus', 'coach'),
    'tram': ('tram',),
    'rail': ('rail', 'rail_urban', 'rail_electric', 'rail_fast', 'subway', 'cable_car'),
    'bicycle': ('bicycle',),
    'motorcycle': ('moped', 'motorcycle', 'scooter'),
    'pedestrian': ('pedestrian', 'wheelchair')}
_TAGS = {vclass: tag for tag, classes in _CLASSES_BY_TAG.items() for vclass in classes}
PASSENGER = 'passenger'
# Length, width and height (m) of a type that states none.
_USUAL_SIZES = {
    'passenger': (5.0, 1.8, 1.5), 'pedestrian': (0.215, 0.478, 1.719),
    'wheelchair': (0.8, 0.7, 1.5), 'bicycle': (1.6, 0.65, 1.7), 'moped': (2.1, 0.8, 1.7),
    'motorcycle': (2.2, 0.9, 1.5), 'scooter': (1.2, 0.5, 1.7), 'delivery': (6.5, 2.16, 2.86),
    'truck': (7.1, 2.4, 2.4), 'trailer': (16.5, 2.55, 4.0), 'bus': (12.0, 2.5, 3.4),
    'coach': (14.0, 2.6, 4.0), 'tram': (22.0, 2.4, 3.2), 'rail_urban': (109.5, 3.0, 3.6),
    'subway': (109.5, 3.0, 3.6), 'rail': (135.0, 2.84, 3.75), 'rail_electric': (200.0, 2.95, 3.89),
    'rail_fast': (200.0, 2.95, 3.89), 'emergency': (6.5, 2.16, 2.86)}


def tags_of(vclass: str) -> tuple[str, ...]:
    """Return the tags of an actor, its class first."""
    tag = _TAGS.get(vclass, '')
    general = () if tag == PEDESTRIAN else ('vehicle',)
    return (*general, tag) if tag else general


def is_vehicle(vclass: str) -> bool:
    """Return whether actors of a class are vehicles, not people."""
    return _TAGS.get(vclass) != PEDESTRIAN


def usual_size(vclass: str) -> tuple[float, float, float]:
    """Return length, width and height, m, of a type that states none."""
    return _USUAL_SIZES.get(vclass, _USUAL_SIZES[PASSENGER])

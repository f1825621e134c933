# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Ground truth of OSI as frames.

OSI has meters, radians and the axes of REP-103. Its reference point is the center of the box; an
actor's origin here is the middle of its footprint. Accelerations are as given.

What a message may leave out is kept until another run begins: the clock goes back, or the host or
the version of OSI or the type of the messages is another one::

    message      lanes  stationary  host  the frame has
    0.0 s        1, 2   15, 16      3     lanes 1, 2; objects 15, 16; host 3
    0.1 s                                 the same
    0.2 s               17                objects 15, 16, 17: none of them is there again
    0.3 s               15, 17            objects 15, 17: from now on each list replaces the last
    0.0 s                                 nothing
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
import math
from typing import Any, Generic, NamedTuple, TYPE_CHECKING, TypeVar
from zlib import crc32

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.classes import EGO_TAG, GHOST_TAG
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.files import osi_writer
from state_sensor_ros.files.frame_builder import build_frame, lane_states
from state_sensor_ros.frame import Boxes, Floats, Frame, NO_WHEELS, Rows, Wheels
from state_sensor_ros.rotations import global_from_unit, quaternion_from_rpy
from state_sensor_ros.simulators.osi import CENTER, messages, OsiParameters, REAR_AXLE
from state_sensor_ros.simulators.osi.messages import LanePlace, Truth
from state_sensor_ros.source import DROPPED, DUPLICATE, Faults, OTHER_POINT

if TYPE_CHECKING:
    from osi3.osi_object_pb2 import MovingObject

Entry = TypeVar('Entry')
_Numbers = tuple[float, ...]
_UNKNOWN = (math.nan,) * 3
# End of the names that esmini gives the ghosts of its actors, which are ahead of them in time.
_GHOST = '_ghost'
_AT_REST = (0.0,) * 12
# Velocities are compared with displacements of two points that differ by at least so much, m, over
# at most this time, s; so many of one point and few of the other tell whose velocities they are.
_LEAST_TURN_M, _LONGEST_STEP_S, _N_ALIKE = 0.001, 0.5, 20
# Center, roll pitch yaw, size, velocity, place of the rear axle from the center in the axes of the
# actor, rates of the angles, acceleration.
_N_COLUMNS = 21
_CENTER, _ANGLES, _SIZE, _VELOCITY, _REAR, _RATES, _ACCELERATION = (
    slice(i, i + 3) for i in range(0, _N_COLUMNS, 3))
# By axle, counted from the front, and index on it, counted from the right.
_PLACES = {(0, 0): frames.FRONT_RIGHT, (0, 1): frames.FRONT_LEFT,
           (1, 0): frames.REAR_RIGHT, (1, 1): frames.REAR_LEFT}
_N_WHEEL_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Kept(Generic[Entry]):
    """A list by ids that a message may leave out."""

    entries: Mapping[int, Entry] = field(default_factory=dict)
    is_repeated: bool = False  # whether each list replaces the one before, rather than adds

    def after(self, new: Mapping[int, Entry]) -> Kept[Entry]:
        """Return the list after a message that has ``new``."""
        if not new:
            return self
        is_repeated = self.is_repeated or not self.entries.keys().isdisjoint(new)
        return Kept(new if is_repeated else {**self.entries, **new}, is_repeated)


@dataclass(frozen=True, slots=True)
class Lanes:
    """Road, section and lane by the ids of lanes."""

    places: Kept[LanePlace] = Kept()
    numbers: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)
    road_names: Mapping[int, str] = field(default_factory=dict)

    def after(self, lanes: Iterable[Any]) -> Lanes:
        """Return the lanes after a message."""
        places = self.places.after({
            lane.id.value: place for lane in lanes
            if (place := messages.place_of(lane.source_reference)) is not None})
        if places is self.places:
            return self
        sections: dict[str, dict[float, int]] = {}
        for road, s in sorted({(road, s) for road, s, _ in places.entries.values()}):
            begins = sections.setdefault(road, {})
            begins[s] = len(begins)
        roads = {road: _road_number(road) for road in sections}
        return Lanes(places, {id_: (roads[road], sections[road][s], lane)
                              for id_, (road, s, lane) in places.entries.items()},
                     {number: road for road, number in roads.items() if str(number) != road})


def _road_number(road: str) -> int:
    most = messages.MAX_INT32
    is_number = road.isascii() and road.isdigit() and len(road) <= len(str(most))
    return int(road) if is_number and int(road) <= most else crc32(road.encode()) & most


class Known(NamedTuple):
    """What seldom changes of an object."""

    name: str
    tags: tuple[str, ...]
    is_vehicle: bool
    types: tuple[int, int]  # those that determine the tags


class _Actor(NamedTuple):
    known: Known
    number: int  # its id
    row: _Numbers  # in the order of the columns
    is_ego: bool = False


class Motion(NamedTuple):
    """The moving objects of a message, and how many pairs of them moved as one of two points."""

    time_s: float = math.nan
    ids: tuple[int, ...] = ()
    points: Floats = np.zeros((2, 0, 3))  # those whose velocities are expected, and the others, m
    velocities: Floats = np.zeros((0, 3))  # as given, m/s
    n_alike: Rows = np.zeros(2, np.int64)

    def after(self, new: Motion) -> Motion:
        """Return the next message with the pairs up to it."""
        elapsed_s = new.time_s - self.time_s
        if new.ids != self.ids or not 0.0 < elapsed_s <= _LONGEST_STEP_S:
            return new._replace(n_alike=self.n_alike)
        moved = new.points - self.points
        # Of the step before, of the next one, or of the moment.
        given = np.stack((new.velocities, self.velocities, (
            new.velocities + self.velocities) / 2.0)) * elapsed_s
        errors = np.linalg.norm(moved[:, None] - given, axis=3).min(axis=1)
        are_apart = np.linalg.norm(moved[1] - moved[0], axis=1) > _LEAST_TURN_M
        return new._replace(n_alike=self.n_alike + (
            are_apart & (errors < errors[::-1] / 4.0)).sum(axis=1))

    @property
    def is_other(self) -> bool:
        """Whether the velocities are those of the other points."""
        expected, other = self.n_alike.tolist()
        return bool(other >= max(_N_ALIKE, 4 * expected))


_NO_MOTION = Motion()


@dataclass(frozen=True, slots=True)
class Run:
    """What is known of a run of the simulator after a message, and of what it sends."""

    schema: str = ''  # of the last message with objects
    version: bytes = b''  # of OSI, as it is serialized
    game_time: float = -math.inf
    host: int | None = None
    is_host_missing: bool = False
    motion: Motion = _NO_MOTION
    known: Mapping[int, Known] = field(default_factory=dict)  # moving objects of the last message
    stationary: Kept[_Actor] = Kept()
    logical: Lanes = Lanes()
    physical: Lanes = Lanes()


class Decoder:
    """
    Makes frames of the messages of one trace or stream.

    :param own: the parameters of OSI.
    :param run: what is known of the messages before.
    :param faults: takes what is wrong with single objects.
    :param schema: type of all messages; empty if it may change from run to run.
    :ivar details: whether wheels are read.
    """

    def __init__(self, own: OsiParameters, run: Run, faults: Faults, schema: str = '') -> None:
        self._own, self.run, self._faults, self._schema = own, run, faults, schema
        self.details = True

    def _parsed(self, data: bytes) -> Truth:
        """Parse a message as the last one, or as the type by which it has objects."""
        if self._schema or not self.run.schema:
            return messages.parse(data, self._schema)
        found = None
        with suppress(DecodeError):
            found = messages.parse(data, self.run.schema)
        if found is not None and found.n_placed:
            return found
        other = messages.parse(data)
        return other if found is None or other.n_placed else found

    def frame(self, data: bytes) -> Frame:
        """
        Return the frame of a serialized message.

        :raises DecodeError: if it cannot be parsed.
        """
        truth = self._parsed(data)
        self._begin(truth)
        names = _Names(self.run.known)
        rows: list[tuple[MovingObject, _Actor]] = []
        for moving in truth.message.moving_object:
            id_, types = moving.id.value, (moving.type, moving.vehicle_classification.type)
            known = names.known(moving, types, osi_writer.moving_tags(*types),
                                osi_writer.is_vehicle(types[0]))
            if known is None:
                self._duplicate('moving_object', moving)
            else:
                rows.append((moving, _Actor(known, id_, self._numbers_of(moving),
                                            self._is_ego(id_, known.name))))
        self.run = replace(self.run, known=names.now)
        self._check_host()
        actors = [actor for _, actor in rows]
        for each in self.run.stationary.entries.values():
            if each.known.name not in names.taken:
                actors.append(each)
            else:
                self._faults.add(DUPLICATE, DecodeError(
                    f'stationary_object {each.known.name}', 'the name of a moving object',
                    'another name'))
        return self._frame_of(truth, [moving for moving, _ in rows], actors)

    def _begin(self, truth: Truth) -> None:
        """Take from a message what later ones need not repeat; another run ends all."""
        run, message = self.run, truth.message
        version = message.version.SerializeToString()
        if truth.game_time < run.game_time or version not in (b'', run.version or version) \
                or (run.host is not None and truth.host not in (None, run.host)) \
                or (run.schema not in ('', truth.schema) and truth.n_placed):
            run = Run()
        still, names = dict[int, _Actor](), _Names({})
        for each in message.stationary_object:
            types = each.classification.type, 0
            known = names.known(each, types, osi_writer.stationary_tags(types[0]), False)
            if known is None:
                self._duplicate('stationary_object', each)
            else:
                still[each.id.value] = _Actor(known, each.id.value, (*_pose_of(each), *_AT_REST))
        self.run = replace(
            run, schema=truth.schema if run.schema != truth.schema and truth.n_placed
            else run.schema,
            version=version or run.version,
            game_time=run.game_time if math.isnan(truth.game_time) else truth.game_time,
            host=run.host if truth.host is None else truth.host,
            stationary=run.stationary.after(still),
            logical=run.logical.after(message.logical_lane),
            physical=run.physical.after(message.lane))

    def _duplicate(self, member: str, thing: Any) -> None:  # noqa: ANN401
        self._faults.add(DUPLICATE, DecodeError(
            f'{member} {thing.id.value}', 'a second object of this id or name', 'one'))

    def _is_ego(self, id_: int, name: str) -> bool:
        if self._own.ego or self.run.host is None:
            return self._own.ego in (name, str(id_))
        return id_ == self.run.host

    def _check_host(self) -> None:
        host = self.run.host
        is_missing = not (self._own.ego or host is None or host in self.run.known)
        if is_missing and not self.run.is_host_missing:
            self._faults.add(DROPPED, DecodeError(
                'host_vehicle_id', f'{host}, the id of no moving object',
                'that of a moving object, or the parameter osi.ego'))
        self.run = replace(self.run, is_host_missing=is_missing)

    def _check_velocities(self, motion: Motion) -> None:
        """Name velocities that are those of another point than is set, once in a run."""
        order = -1 if self._own.velocity_at == REAR_AXLE else 1
        points, names = motion.points[::order], [CENTER, REAR_AXLE][::order]
        last, now = self.run.motion, self.run.motion.after(motion._replace(points=points))
        if now.is_other and not last.is_other:
            expected, found = (name.replace('_', ' ') for name in names)
            self._faults.add(OTHER_POINT, DecodeError(
                'velocity', f'velocities of the {found} of vehicles that turn',
                f'those of the {expected}, or the parameter osi.velocity_at: {names[1]}'))
        self.run = replace(self.run, motion=now)

    def _numbers_of(self, moving: MovingObject) -> _Numbers:
        """Return a row; what the message does not have is NaN."""
        base, rear = moving.base, moving.vehicle_attributes.bbcenter_to_rear
        velocity, rate, change = base.velocity, base.orientation_rate, base.acceleration
        return (*_pose_of(moving),
                *((velocity.x, velocity.y, velocity.z) if base.HasField('velocity') else _UNKNOWN),
                rear.x, rear.y, rear.z,
                *((rate.roll, rate.pitch, rate.yaw) if base.HasField('orientation_rate')
                  else _UNKNOWN),
                *((change.x, change.y, change.z) if base.HasField('acceleration') else _UNKNOWN))

    def _frame_of(self, truth: Truth, moving: list[MovingObject], actors: list[_Actor]) -> Frame:
        rows = np.array([actor.row for actor in actors]).reshape(-1, _N_COLUMNS)
        centers, sizes, angles = rows[:, _CENTER], rows[:, _SIZE], rows[:, _ANGLES]
        with np.errstate(all='ignore'):
            # A negative size is unknown.
            sizes[(sizes < 0.0).any(axis=1)] = math.nan
            orientation_xyzw = quaternion_from_rpy(angles)
            axes = global_from_unit(orientation_xyzw)
            downward = np.nan_to_num(sizes[:, 2:], posinf=0.0) / -2.0 * axes[:, :, 2]
            turning = osi_writer.angular_velocity_of(rows[:, _RATES], angles)
            rears = (axes @ rows[:, _REAR, None])[:, :, 0]
            # From the point whose velocity is given; it stays where the turning is unknown.
            arms = downward - rears * (self._own.velocity_at == REAR_AXLE)
            velocities = rows[:, _VELOCITY] + np.cross(np.nan_to_num(turning), arms)
            self._check_velocities(Motion(
                truth.game_time, tuple([actor.number for actor in actors]),
                np.stack((centers, centers + rears)), rows[:, _VELOCITY]))
        frame = build_frame(
            'osi', truth.game_time, [actor.known.name for actor in actors], centers + downward,
            orientation_xyzw=orientation_xyzw, velocity_xyz=velocities,
            angular_velocity_xyz=turning,
            tags=[(*actor.known.tags, EGO_TAG) if actor.is_ego else actor.known.tags
                  for actor in actors],
            is_vehicle=np.array([actor.known.is_vehicle for actor in actors], np.bool_),
            lanes=lane_states(*self._lanes_of(moving), road_names={
                **self.run.physical.road_names, **self.run.logical.road_names}),
            ids=_ids_of(actors),
            traffic_lights=messages.lit_lights(truth.message.traffic_light)
            if truth.message.traffic_light else None)
        indicators = [*map(messages.indicators_of, moving),
                      *[frames.INDICATORS_UNKNOWN] * (len(actors) - len(moving))]
        # The boxes with exactly the given centers; the origins are rounded.
        owners = np.flatnonzero(np.isfinite(sizes).all(axis=1) & frame.has_pose())
        boxes = np.hstack((centers, orientation_xyzw, sizes, np.ones_like(sizes)))[owners]
        return replace(
            frame, boxes=Boxes(owners, ('',) * len(owners), boxes),
            wheels=_wheels_of(moving) if self.details else None,
            accelerations=rows[:, _ACCELERATION].copy()
            if np.isfinite(rows[:, _ACCELERATION]).any() else None,
            indicators=np.array(indicators, np.int8)
            if any(lit != frames.INDICATORS_UNKNOWN for lit in indicators) else None)

    def _lanes_of(self, moving: list[MovingObject]) -> tuple[Rows, Rows, Floats]:
        """Return rows, ids and s of the lanes: by the logical ones, else by the physical ones."""
        logical, physical, found = self.run.logical.numbers, self.run.physical.numbers, []
        for row, each in enumerate(moving):
            of = each.moving_object_classification
            place = next((lane for lane in of.logical_lane_assignment
                          if lane.assigned_lane_id.value in logical), None)
            if place is not None:
                found.append((row, logical[place.assigned_lane_id.value],
                              place.s_position if place.HasField('s_position') else math.nan))
            elif lanes := [physical[lane.value] for lane in (
                    of.assigned_lane_id or each.assigned_lane_id) if lane.value in physical]:
                found.append((row, lanes[0], math.nan))
        return (np.array([row for row, _, _ in found], np.int64),
                np.array([ids for _, ids, _ in found], np.int64).reshape(-1, 3),
                np.array([s for _, _, s in found], np.float64))


def _ids_of(actors: list[_Actor]) -> Rows:
    """Return the ids of the actors, -1 for one that is too great, or that one before it has."""
    first = {actor.number: row for row, actor in reversed([*enumerate(actors)])}
    return np.array([actor.number if first[actor.number] == row and actor.number <= frames.MAX_ID
                     else -1 for row, actor in enumerate(actors)], np.int64)


class _Names:
    """Names the objects of a message; names and tags stay those of the message before."""

    def __init__(self, last: Mapping[int, Known]) -> None:
        self._last = last
        self.now: dict[int, Known] = {}
        self.taken: set[str] = set()

    def known(self, thing: Any, types: tuple[int, int], tags: tuple[str, ...],  # noqa: ANN401
              is_vehicle: bool) -> Known | None:
        """Return what is known of an object; None if the message has another one of its id."""
        id_ = thing.id.value
        known = self._last.get(id_)
        if known is None or known.types != types:
            name = messages.scenario_name(thing.source_reference) \
                or f'{tags[-1] if tags else "object"}_{id_}'
            known = Known(name, (*tags, GHOST_TAG) if name.endswith(_GHOST) else tags, is_vehicle,
                          types)
        if known.name in self.taken:
            known = known._replace(name=f'{known.name}_{id_}')
        if id_ in self.now or known.name in self.taken:
            return None
        self.now[id_] = known
        self.taken.add(known.name)
        return known


def _pose_of(thing: Any) -> _Numbers:  # noqa: ANN401
    """
    Return center, angles and size; a missing angle is 0.

    An outline gives center and size where it alone has one, and those of objects of a map: with
    esmini, the center of the box of these is the origin of the outline, which may be a corner.
    """
    base = thing.base
    place, angles, size = base.position, base.orientation, base.dimension
    center = (place.x, place.y, place.z) if base.HasField('position') else _UNKNOWN
    sizes = (size.length, size.width, size.height) if base.HasField('dimension') else _UNKNOWN
    if base.base_polygon and (not (size.length and size.width) or messages.is_of_map(thing)):
        outline = np.array([(point.x, point.y) for point in base.base_polygon])
        low, high = outline.min(axis=0), outline.max(axis=0)
        x, y = ((low + high) / 2.0).tolist()
        cosine, sine = math.cos(angles.yaw), math.sin(angles.yaw)
        center = (center[0] + cosine * x - sine * y, center[1] + sine * x + cosine * y, center[2])
        sizes = (*(high - low).tolist(), sizes[2])
    return (*center, angles.roll, angles.pitch, angles.yaw, *sizes)


def _wheels_of(moving: list[MovingObject]) -> Wheels:
    # esmini gives people a rear axle, too.
    numbers = [row for i, each in enumerate(moving) if osi_writer.is_vehicle(each.type)
               for row in _wheel_rows(i, each)]
    if not numbers:
        return NO_WHEELS
    rows = np.array(numbers).reshape(-1, _N_WHEEL_COLUMNS)
    return Wheels(
        rows[:, 0].astype(np.int64), rows[:, 1].astype(np.uint8), rows[:, 2].astype(np.int32),
        rows[:, 3:6].copy(), quaternion_from_rpy(rows[:, 6:9]),
        np.isfinite(rows[:, 3:6]).all(axis=1), np.isfinite(rows[:, 6:9]).all(axis=1),
        rows[:, 9].copy())


def _wheel_rows(row: int, vehicle: MovingObject) -> Iterator[_Numbers]:
    """Yield row, wheel, number, place, angles, speed: of a car's wheels, else of a rear axle."""
    attributes, size = vehicle.vehicle_attributes, vehicle.base.dimension
    # Places in OSI are counted from the center of the box.
    up, wheels = size.height / 2.0, attributes.wheel_data
    if len(wheels) == len(_PLACES) and \
            {(wheel.axle, wheel.index) for wheel in wheels} == _PLACES.keys():
        for number, wheel in enumerate(wheels):
            place, angles = wheel.position, wheel.orientation
            yield (row, _PLACES[wheel.axle, wheel.index], number, place.x, place.y, place.z + up,
                   angles.roll, angles.pitch, angles.yaw,
                   wheel.rotation_rate if wheel.HasField('rotation_rate') else math.nan)
    elif attributes.HasField('bbcenter_to_rear'):
        axle = attributes.bbcenter_to_rear
        # Assumed: an axle is as long as the vehicle is wide. Only its middle is used.
        for place, side in ((frames.REAR_LEFT, 0.5), (frames.REAR_RIGHT, -0.5)):
            yield (row, place, -1, axle.x, axle.y + side * size.width, axle.z + up,
                   *(math.nan,) * 4)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
One frame of ground truth as a struct of arrays, in SI units and REP-103 axes.

A part that nothing uses is not decoded and ``None``; a number that the source does not have is
NaN. All arrays of a frame are read-only, so that results computed from them stay valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
import math
from types import MappingProxyType
from typing import Protocol, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from state_sensor_ros import classes
from state_sensor_ros.classes import EGO_TAG, Kind
from state_sensor_ros.errors import StateError
from state_sensor_ros.fields import actor, Columns, flat, OfActors, row, rows_of, TEXT, TEXTS, View
from state_sensor_ros.parameters import near_names
from state_sensor_ros.rotations import global_from_body, IDENTITY_XYZW
from state_sensor_ros.texts import counted

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]
Texts = tuple[str, ...]

NO_ROADS: Mapping[int, str] = MappingProxyType({})
FRONT_LEFT, FRONT_RIGHT, REAR_LEFT, REAR_RIGHT = range(4)
NO_SOURCE_ID = -1
# Ids of actors and lights are uint32 in messages and tables.
MAX_ID = 2**32 - 1
# Turn signals of a vehicle; both are hazard lights.
INDICATORS_OFF, INDICATORS_LEFT, INDICATORS_RIGHT, INDICATORS_BOTH = range(4)
INDICATORS_UNKNOWN = -1
DERIVED_VELOCITY, DERIVED_SIZE = 1, 2
LIGHT_GREEN, LIGHT_YELLOW, LIGHT_RED = range(3)
# What a light shows: a full disc, or an arrow as numbered by Autoware; or a light for pedestrians.
LIGHT_CIRCLE, LIGHT_PEDESTRIAN = 1, 11
# Coordinates of maps in the axes of a projection reach 1e7 m.
_MAX_COORDINATE = 1e9
# Instants and spans whose names end with ``_ns`` are integers, others are in s.
NS_PER_S = 1_000_000_000

# Plain integers: a comparison with a member of Kind takes five times as long.
KIND_OBJECT, KIND_VEHICLE = int(Kind.OBJECT), int(Kind.VEHICLE)
# A quaternion whose length is outside these bounds is not a rotation. Recordings of the simulator
# are within 2e-7 of 1.
QUATERNION_NORM_MIN, QUATERNION_NORM_MAX = 0.9, 1.1
# Square of the tolerance of the squared length on either side of 1.
_SQUARED_TOLERANCE = (1.0 - QUATERNION_NORM_MIN ** 2) ** 2
# Products of two numbers within these bounds are positive numbers of float32.
_LEAST, _MOST = 1e-18, 1e18
# Edges that have a volume, m.
_MIN_EDGE, _MAX_EDGE = 1e-6, 1e6


@dataclass(frozen=True, slots=True, repr=False)
class Boxes(OfActors):
    """
    Oriented bounding boxes of all actors, in the order of the actors.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     boxes: sensor.Boxes = recording[0].boxes
    >>> boxes.size_xyz.shape == (len(boxes), 3)
    True
    """

    actor: Rows = row('box', 'i8', 'row of the owner, ascending')
    names: Texts = row('box', TEXT, 'names')
    rows: Floats = row('box', 'f8', 'block of the numbers below', width=13)
    position_xyz = View[Floats]('rows', 0, 'x y z', 'center, global frame', 'm')
    orientation_xyzw = View[Floats]('rows', 3, 'qx qy qz qw', 'global frame, not normalized')
    size_xyz = View[Floats]('rows', 7, 'length width height', 'edges along the axes of the box',
                            'm')
    scale_xyz = View[Floats]('rows', 10, 'scale_x scale_y scale_z', 'scale factors as sent')


NO_BOXES = Boxes(*flat(Boxes))


@dataclass(frozen=True, slots=True, repr=False)
class Wheels(OfActors):
    """
    Wheels of all actors, in the order of the actors; those of one actor as in the source.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     frame = recording[0]
    >>> wheels: sensor.Wheels = frame.wheels
    >>> len(wheels.rows_of(frame.ego_row))
    4
    """

    actor: Rows = row('wheel', 'i8', 'row of the owner, ascending')
    wheel: Kinds = row('wheel', 'u1', 'FRONT_LEFT, FRONT_RIGHT, REAR_LEFT or REAR_RIGHT')
    source_id: Ints = row('wheel', 'i4', 'id of the wheel in the source, -1 if it has none')
    position_xyz: Floats = row('wheel', 'f8', "actor's frame, if known", unit='m', width=3)
    orientation_xyzw: Floats = row('wheel', 'f8', "actor's frame, if known", width=4)
    position_known: Bools = row('wheel', '?', 'whether the position is known')
    orientation_known: Bools = row('wheel', '?', 'whether the orientation is known')
    speed: Floats = row('wheel', 'f8', 'of the spin, + = forward', unit='rad/s')

    def known_orientation_xyzw(self) -> Floats:
        """(W, 4) float64, actor's frame, not normalized; the identity if it is unknown."""
        return np.where(self.orientation_known[:, None], self.orientation_xyzw, IDENTITY_XYZW)

    def rows_of(self, actor: int) -> range:
        """Return the rows of the wheels of the actor at row ``actor``."""
        return range(*self.actor.searchsorted((actor, actor + 1)).tolist())


NO_WHEELS = Wheels(*flat(Wheels))


@dataclass(frozen=True, slots=True, repr=False)
class Lanes(OfActors):
    """
    OpenDRIVE lane state (``control_state``) of the actors that have one.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     lanes: sensor.Lanes = recording[0].lanes
    >>> len(lanes), lanes.road_id.shape
    (12, (12,))
    """

    actor: Rows = row('lane', 'i8', 'row of the owner, ascending')
    is_changing: Bools = row('lane', '?', 'block of the changes', width=2)
    ids: Ints = row('lane', 'i4', 'block of the ids', width=3)
    s: Floats = row('lane', 'f8', 'distance along the road', unit='m', columns='s')
    road_names: Mapping[int, str] = row('frame', '', 'names of all roads so far by their ids',
                                        default=NO_ROADS, part='names of roads')
    lane_change_left = View[Bools]('is_changing', 0, 'lane_change_left',
                                   'whether a lane change to the left is under way')
    lane_change_right = View[Bools]('is_changing', 1, 'lane_change_right',
                                    'whether a lane change to the right is under way')
    road_id = View[Ints]('ids', 0, 'road_id', 'OpenDRIVE road')
    section_id = View[Ints]('ids', 1, 'section_id', 'section of the road')
    lane_id = View[Ints]('ids', 2, 'lane_id', 'lane of the section, negative to the right')

    def __reduce__(self) -> tuple[object, ...]:
        # A proxy of a mapping cannot be pickled.
        return Lanes, (self.actor, self.is_changing, self.ids, self.s, dict(self.road_names))

    def __repr__(self) -> str:
        n_lanes = len(np.unique(self.ids, axis=0))
        return f'Lanes({counted(len(self), "actor")} in {counted(n_lanes, "lane")})'


NO_LANES = Lanes(*flat(Lanes))


@dataclass(frozen=True, slots=True)
class TrafficLights(Columns):
    """Traffic lights that are not actors, such as one for each lane at its stop line."""

    ids: Rows = row('light', 'i8', 'the same in each frame', bounds=(0, MAX_ID))
    names: Texts = row('light', TEXT, 'names')
    states: Kinds = row('light', 'u1', 'LIGHT_GREEN, LIGHT_YELLOW or LIGHT_RED')
    poses: Floats = row('light', 'f8', 'position xyz (m), orientation xyzw, global frame', width=7)
    # An arrow: 2 to 9 as in autoware_perception_msgs/TrafficLightElement.
    shapes: Kinds | None = row('light', 'u1', 'LIGHT_CIRCLE, LIGHT_PEDESTRIAN, an arrow, 0 if '
                               'unknown; None if all are circles', default=None)
    are_at_stop_lines: bool = row('frame', '', 'whether the poses are those of stop lines',
                                  default=False)
    open_drive_ids: Texts = row('light', TEXT, "ids of signals, '' if unknown", default=())

    def __len__(self) -> int:
        """Return the number of lights, K."""
        return len(self.names)


@dataclass(frozen=True, slots=True, eq=False)
class MapLine:
    """One line of the map, such as the middle of a lane."""

    # A word that similar lines share, preferably a lane type of OpenDRIVE (``driving``,
    # ``biking``, ``sidewalk``, ``shoulder``, ...) or ``border``.
    kind: str
    points_xyz: Floats  # (P, 3) float64, m, global frame, at least two
    width: float = 0.0  # m, of the lane whose middle the line is, 0 for any other line
    road: str = ''  # road, lane_id: the ids that lane states have, '' and 0 if the map has none
    lane_id: int = 0

    def __post_init__(self) -> None:
        """
        Check the shape, and make the array read-only.

        :raises StateError: for a wrong shape, fewer than two points, or one not on Earth.
        """
        if self.points_xyz.ndim != 2 or self.points_xyz.shape[1] != 3 or len(self.points_xyz) < 2:
            raise StateError('points_xyz', f'shape {self.points_xyz.shape}',
                             '(P, 3), at least two points')
        with np.errstate(invalid='ignore'):
            is_on_earth = np.abs(self.points_xyz).max() < _MAX_COORDINATE
        if not is_on_earth:
            raise StateError('points_xyz', 'a point that is NaN or far away',
                             f'coordinates below {_MAX_COORDINATE:g} m')
        self.points_xyz.setflags(write=False)


def usable_poses(position_xyz: Floats, orientation_xyzw: Floats) -> Bools:
    """Return which poses can be published: numbers, and a quaternion of any length near 1."""
    norm2 = np.einsum('ij,ij->i', orientation_xyzw, orientation_xyzw)
    usable: Bools = (norm2 >= QUATERNION_NORM_MIN ** 2) & (norm2 <= QUATERNION_NORM_MAX ** 2) \
        & np.isfinite(np.einsum('ij->i', position_xyz))
    return usable


class Bodies:
    """
    The actors of a frame, then its boxes, in one block.

    One pass for both: below about ten actors the overhead of numpy's calls dominates
    (bench/README.md#a-frame-of-few-actors).

    ``usable`` (N,) bool, actors with a pose that can be published; ``usable_boxes`` (M,) likewise.
    ``is_finite`` whether all numbers are finite, and small enough that a product of two of them
    is. ``is_plain`` whether that holds and all poses are usable.

    :param rows: (N + M, 13) float64, with position xyz and orientation xyzw in the first columns.
    """

    __slots__ = ('_drawable_boxes', '_norm2', '_rows', 'is_finite', 'is_plain', 'usable',
                 'usable_boxes')

    def __init__(self, rows: Floats, n_actors: int) -> None:
        self._rows = rows
        self._drawable_boxes: Bools | None = None
        # einsum: neither warns of an overflow nor starts threads, as products of BLAS do.
        self.is_finite = math.isfinite(np.einsum('ij,ij->', rows, rows))
        self._norm2: Floats = np.einsum('ij,ij->i', rows[:, 3:7], rows[:, 3:7])
        # Fast path: a small summed error of the lengths and a finite sum of the positions prove
        # that every pose is usable. A comparison with NaN is false.
        deviation = self._norm2 - 1.0
        are_usable = np.einsum('i,i', deviation, deviation) <= _SQUARED_TOLERANCE \
            and (self.is_finite or math.isfinite(np.einsum('ij->', rows[:, 0:3])))
        usable = np.ones(len(rows), np.bool_) if are_usable \
            else usable_poses(rows[:, 0:3], rows[:, 3:7])
        self.usable, self.usable_boxes = usable[:n_actors], usable[n_actors:]
        self.is_plain = self.is_finite and bool(are_usable)

    def drawable_boxes(self) -> Bools:
        """Return which boxes have a pose that can be published, and edges that displays draw."""
        # Returns (M,) bool: edges, scales and their products are positive numbers of float32.
        if self._drawable_boxes is None:
            sizes = self._rows[len(self.usable):, 7:]
            self._drawable_boxes = self.usable_boxes
            # Usually all sizes are within these bounds. A comparison with NaN is false.
            if not (sizes.min(initial=1.0) >= _LEAST and sizes.max(initial=1.0) <= _MOST):
                limits = np.finfo(np.float32)
                with np.errstate(all='ignore'):
                    scaled = sizes[:, :3] * sizes[:, 3:]
                    self._drawable_boxes = self.usable_boxes & (sizes > 0.0).all(axis=1) \
                        & (scaled >= limits.tiny).all(axis=1) & (scaled <= limits.max).all(axis=1)
        return self._drawable_boxes

    def normalized(self) -> Floats:
        """Return (N + M, 13) float64, a copy with orientations of unit length."""
        rows = self._rows.copy()
        rows[:, 3:7] /= np.sqrt(self._norm2)[:, None]
        return rows


class Extension(Protocol):
    """Data of one simulator beyond the common frame; only its own encoder reads all of it."""

    def select(self, rows: Rows) -> Extension:
        """Return the data of the actors at ``rows`` only."""

    def displays(self) -> Texts:
        """Return what each of the N actors displays, for pictures."""
        # Returns N strings: ``red``, ``yellow`` or ``green`` for a traffic light, the number on a
        # sign, ``''`` for any other actor.


class LaneChangeFinder:
    """
    Finds the lane changes in frames in their order.

    OpenDRIVE numbers lanes from the middle of the road: negative to the right, for traffic along
    the road; positive to the left, for traffic against it, or for left-hand traffic along it.
    """

    def __init__(self) -> None:
        # By name: the last lane, and the place along its road.
        self._lanes: dict[str, tuple[list[int], float]] = {}

    def changes(self, frame: Frame) -> Iterator[tuple[int, int, int, str]]:
        """
        Yield the changes of actors to another lane of the same road section.

        :returns: row of the actor, the lane before, the lane now, and the direction as the driver
            sees it, ``left`` or ``right``.
        """
        for i, now, s in zip(frame.lanes.actor.tolist(), frame.lanes.ids.tolist(),
                             frame.lanes.s.tolist(), strict=True):
            last, last_s = self._lanes.get(frame.names[i], (now, s))
            self._lanes[frame.names[i]] = now, s
            if last[:2] == now[:2] and last[2] != now[2]:
                is_along = last[2] < 0 or s > last_s
                yield i, last[2], now[2], 'left' if (now[2] > last[2]) == is_along else 'right'


@dataclass(slots=True, eq=False)
class FutureFrame:
    """The poses in a frame of a recording, and the next frame of the same run."""

    game_time: float  # s
    names: Texts  # N raw names
    # (N, 7) float64, centers of the actors' boxes xyz (m) and orientations xyzw of the actors,
    # global frame.
    poses: Floats
    are_usable: Bools  # (N,) bool
    # None at the end of the run. It is set before the frames within a horizon before it are read,
    # and does not change afterward.
    following: FutureFrame | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Frame(Columns):
    """
    All actors at one instant; what it has is in the lines of this class.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     frame: sensor.Frame = next(iter(recording))
    >>> 'ego' in frame.tags[frame.ego]
    True
    >>> frame.select([0, 1]).position_xyz.shape
    (2, 3)
    >>> len(frame), frame.names[0] in frame, frame.row(frame.names[2])
    (21, True, 2)
    >>> frame.position_xyz[frame.kinds == sensor.Kind.VEHICLE].shape
    (12, 3)
    """

    generation: str = row('frame', '', "schema of a simulator's frames, or the simulator's name")
    game_time: float = row('frame', '', 'time since the simulation started, NaN: none', unit='s')
    time: int = row('frame', '', 'time since the Unix epoch, 0: none', unit='s',
                    part='time and sample_count')
    sample_count: int = row('frame', '', '0: none', part='time and sample_count')
    names: Texts = row('actor', TEXT, 'raw names')
    kinds: Kinds = row('actor', 'u1', 'see Kind')
    tags: tuple[Texts, ...] = row('actor', TEXTS, 'tags as sent')
    kinematics: Floats = row('actor', 'f8', 'block of the numbers below', width=13)
    lanes: Lanes = row('frame', '', 'of the actors that have one', part='lane states')
    boxes: Boxes | None = row('frame', '', 'None: not decoded', default=None, part='*')
    wheels: Wheels | None = row('frame', '', 'None: not decoded', default=None, part='*')
    inputs: Floats | None = actor('f8', 'throttle 0..1, brake 0..1, steering -1..1 (+ = left), '
                                  'steering angle (rad, + = left)', columns='', width=4,
                                  part='pedals and steering')
    colors: Texts | None = actor(TEXT, "paint, '' if unknown", columns='',
                                 part='colors and replay classes')
    replay_classes: Texts | None = actor(TEXT, "blueprint, '' if unknown", columns='',
                                         part='colors and replay classes')
    forward_speed: Floats | None = actor(
        'f8', "along the actor's own x axis, where the source measures only this component: then "
        'all velocities are NaN', columns='', unit='m/s', part='')
    accelerations: Floats | None = actor(
        'f8', "the source's, else central difference of the velocity, global axes",
        columns='ax ay az', unit='m/s2')
    derived: Kinds | None = actor(
        'u1', "what is not the source's: velocity (from positions), size (of the class)",
        part='which velocities and sizes are derived')
    extension: Extension | None = row('frame', '', 'data of one simulator', default=None,
                                      part='what only this simulator sends')
    has_exact_time: bool = row('frame', '', 'whether game_time was never rounded to 32 bits',
                               default=False)
    # If two frames have the same game_time, it shows whether the second one is another run.
    identity: int | None = row('frame', '', 'a number that no other frame of the simulator has',
                               default=None)
    ids: Rows | None = actor('i8', 'ids in the source, -1 for an actor without a usable one',
                             columns='', unknown=-1, bounds=(-1, MAX_ID))
    traffic_lights: TrafficLights | None = row('frame', '', 'lights that are not actors',
                                               default=None, part='*')
    map_lines: tuple[MapLine, ...] = row(
        'frame', '', 'lines of the map so far, the same object until there are more', default=(),
        part='the map')
    open_drive: str = row('frame', '', 'document of the map', default='',
                          part='the OpenDRIVE document')
    indicators: npt.NDArray[np.int8] | None = actor(
        'i1', 'turn signals: INDICATORS_OFF, _LEFT, _RIGHT, _BOTH or _UNKNOWN', columns='',
        unknown=INDICATORS_UNKNOWN, part='turn signals')
    # Whether a restart that was asked for precedes it.
    is_behind_gap: bool = field(default=False, compare=False)
    # Its poses and those that follow, of a recording that is read ahead.
    upcoming: FutureFrame | None = field(default=None, compare=False)
    position_xyz = View[Floats]('kinematics', 0, 'x y z', 'position of the origin, global frame',
                                'm')
    orientation_xyzw = View[Floats]('kinematics', 3, 'qx qy qz qw',
                                    'orientation, global frame, not normalized')
    velocity_xyz = View[Floats]('kinematics', 7, 'vx vy vz',
                                'velocity of the origin, axes of the global frame', 'm/s')
    angular_velocity_xyz = View[Floats]('kinematics', 10, 'wx wy wz',
                                        'angular velocity, axes of the global frame', 'rad/s')
    _bodies: Bodies | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def n_actors(self) -> int:
        """Return the number of actors, N."""
        return len(self.names)

    def __len__(self) -> int:
        """Return the number of actors, N."""
        return len(self.names)

    def __bool__(self) -> bool:
        """Return True: a frame without actors is a frame."""
        return True

    def __contains__(self, name: object) -> bool:
        """Return whether there is an actor of this raw name."""
        return name in self.names

    def __repr__(self) -> str:
        ego = '' if self.ego is None else f', ego={self.names[self.ego]!r}'
        return (f'Frame({self.generation}, t={self.game_time:.2f} s, '
                f'{counted(len(self), "actor")}{ego})')

    def _repr_html_(self) -> str:
        # The library of the users of this method, which is above this module.
        from state_sensor_ros.library.notebook import frame_html
        return frame_html(self)

    def row(self, name: str) -> int:
        """
        Return the row of an actor in all arrays.

        :param name: its raw name.
        :raises StateError: if there is no such actor.
        """
        if name not in self.names:
            raise StateError('names', f'no actor {name!r}',
                             f'a name in frame.names{near_names([name], self.names)}')
        return self.names.index(name)

    @property
    def acceleration_xyz(self) -> Floats:
        """(N, 3) float64, m/s2, axes of the global frame; NaN from a source without them."""
        return np.full((self.n_actors, 3), np.nan) if self.accelerations is None \
            else self.accelerations

    def is_derived(self, number: int) -> Bools:
        """
        Return for which actors a number is not the source's.

        :param number: DERIVED_VELOCITY or DERIVED_SIZE.
        :returns: (N,) bool.
        """
        found: Bools = np.zeros(self.n_actors, np.bool_) if self.derived is None \
            else (self.derived & number) > 0
        return found

    @property
    def ego(self) -> int | None:
        """Row of the first actor tagged ``ego``, ignoring case; None if there is none."""
        return classes.ego_row(self.tags)

    @property
    def ego_row(self) -> int:
        """
        Row of the ego; raises StateError in a frame without one.

        In a frame without an ego, ``frame.position_xyz[frame.ego]`` is not an error: numpy takes
        None as a new axis. Check ``frame.ego is not None``, or use this property.
        """
        row = self.ego
        if row is None:
            raise StateError('tags', 'no ego', f'an actor tagged {EGO_TAG}')
        return row

    def to_pandas(self) -> pd.DataFrame:
        """
        Return a table with a row for each actor and the columns of `state_sensor convert`.

        Accelerations are NaN unless the source has them: computing them needs the frames before
        and after. Needs pandas and pyarrow.

        :raises MissingLibraryError: if one of them is not installed.
        """
        from state_sensor_ros.library.recording import read_table
        table: pd.DataFrame = read_table(self).to_pandas()
        return table

    def begins_run(self, game_time: float, identity: int | None) -> bool:
        """
        Return whether this frame begins another run of the simulator, by its clock.

        :param game_time: time of the frame before, s.
        :param identity: identity of the frame before.
        :returns: True if the clock went back, or if a different frame has the same time.
        """
        if self.game_time == game_time:
            return None not in (self.identity, identity) and self.identity != identity
        return self.game_time < game_time

    def has_pose(self) -> Bools:
        """
        Return which actors have a pose that can be published.

        :returns: (N,) bool, False for NaN in the pose and for a quaternion that is not a rotation.
        """
        return self.bodies().usable

    def bodies(self) -> Bodies:
        """Return the poses of actors and boxes; computed at the first call."""
        if self._bodies is None:
            self.set_rows(self.kinematics if self.boxes is None
                          else np.concatenate((self.kinematics, self.boxes.rows)))
        assert self._bodies is not None
        return self._bodies

    def set_rows(self, rows: Floats) -> None:
        """
        Compute the poses from ``rows``, which saves a copy if they are in one block.

        :param rows: (N + M, 13) float64, ``kinematics`` and the ``rows`` of the boxes, if any.
        """
        object.__setattr__(self, '_bodies', Bodies(rows, self.n_actors))

    def largest_boxes(self) -> Rows:
        """
        Return the largest usable box by volume of each actor that has one.

        :returns: (K,) int64, rows of ``boxes``, in the order of the actors.
        """
        if self.boxes is None:
            return np.zeros(0, np.int64)
        owners, edges = self.boxes.actor, self.boxes.size_xyz
        # A comparison with NaN is false.
        rows: Rows = np.flatnonzero(self.bodies().usable_boxes & (
            (edges >= _MIN_EDGE) & (edges <= _MAX_EDGE)).all(axis=1))
        # Usually each actor has one.
        if len(rows) < 2 or (np.diff(owners[rows]) > 0).all():
            return rows
        # The first of equal volumes counts.
        order = np.lexsort((rows, -np.prod(edges[rows], axis=1), owners[rows]))
        largest: Rows = rows[order[np.diff(owners[rows], prepend=-1) > 0]]
        return largest

    def select(self, rows: Rows | Sequence[int]) -> Frame:
        """
        Return a frame of the actors at ``rows``, with their boxes, wheels and lane states.

        :param rows: (K,) int64, ascending.
        :returns: a frame of K actors.
        """
        rows = np.asarray(rows, np.int64)
        new_row = np.full(self.n_actors, -1, np.int64)
        new_row[rows] = np.arange(len(rows))
        columns = self.taken(rows)
        columns |= {name: part.of_actors(new_row) for name in ('lanes', 'boxes', 'wheels')
                    if (part := getattr(self, name)) is not None}
        if self.extension is not None:
            columns['extension'] = self.extension.select(rows)
        return replace(self, **columns)


# Names of the fields that not every format carries.
EVERY_PART = frozenset(field.name for kind in (Frame, Lanes) for field in rows_of(kind)
                       if field.part)


def speed_along(frame: Frame, row: int) -> float:
    """Return the speed of an actor along its own x axis."""
    # Returns m/s, negative backward; NaN if its pose or velocity is not known.
    if frame.forward_speed is not None:
        return float(frame.forward_speed[row])
    if not frame.has_pose()[row]:
        return math.nan
    return float(_forward(frame, row) @ frame.velocity_xyz[row])


def speed_by_positions(before: Frame, row_before: int, frame: Frame, row: int) -> float:
    """Return the speed of an actor along its own x axis since an earlier frame, m/s."""
    moved = frame.position_xyz[row] - before.position_xyz[row_before]
    return float(_forward(frame, row) @ moved) / (frame.game_time - before.game_time)


def climb_of(frame: Frame, row: int) -> float:
    """Return the angle of an actor's x axis above the horizontal: rad, positive if it looks up."""
    return math.asin(min(max(float(_forward(frame, row)[2]), -1.0), 1.0))


def _forward(frame: Frame, row: int) -> Floats:
    forward: Floats = global_from_body(frame.orientation_xyzw[row:row + 1])[0, :, 0]
    return forward

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
import math
from types import MappingProxyType
from typing import Any, Protocol, TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from state_sensor_ros.bodies import Bodies, largest_boxes
from state_sensor_ros.classes import ego_row as first_ego
from state_sensor_ros.classes import EGO_TAG, Kind
from state_sensor_ros.errors import StateError
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

# Instants and spans whose names end with ``_ns`` are integers, others are in s.
NS_PER_S = 1_000_000_000

# Plain integers: a comparison with a member of Kind takes five times as long.
KIND_OBJECT, KIND_VEHICLE = int(Kind.OBJECT), int(Kind.VEHICLE)

_NO_ROWS: Rows = np.zeros(0, np.int64)

FRONT_LEFT, FRONT_RIGHT, REAR_LEFT, REAR_RIGHT = range(4)
NO_SOURCE_ID = -1


@dataclass(frozen=True, slots=True)
class Needs:
    """
    The optional parts of a frame that are used; decoding the others is skipped.

    Names, kinds, tags, kinematics and the rows of lane states are always decoded.
    """

    boxes: bool = True
    wheels: bool = True
    inputs: bool = True
    appearance: bool = True  # includes the names of boxes
    lanes: bool = True

    @classmethod
    def of(cls, *, boxes: bool = False, wheels: bool = False, inputs: bool = False,
           appearance: bool = False, lanes: bool = False) -> Needs:
        """Return the need for these parts alone."""
        return cls(boxes, wheels, inputs, appearance, lanes)

    def __or__(self, other: Needs) -> Needs:
        """Return the need for the parts of both."""
        return Needs(self.boxes or other.boxes, self.wheels or other.wheels,
                     self.inputs or other.inputs, self.appearance or other.appearance,
                     self.lanes or other.lanes)


EVERYTHING = Needs()
NO_ROADS: Mapping[int, str] = MappingProxyType({})


def _freeze(*arrays: npt.NDArray[Any]) -> None:
    """Make arrays read-only."""
    for array in arrays:
        array.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Boxes:
    """
    Oriented bounding boxes of all actors, in the order of the actors.

    ``actor`` (M,) int64 row of the owner, ascending; ``names`` M strings, empty if the appearance
    is not decoded; ``rows`` (M, 13) float64: center xyz (m) and orientation xyzw of the axes of
    the box, global frame; full edge lengths xyz (m) along these axes; scale factors xyz as sent.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     boxes: sensor.Boxes = recording[0].boxes
    >>> boxes.size_xyz.shape == (len(boxes), 3)
    True
    """

    actor: Rows
    names: tuple[str, ...]
    rows: Floats

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        _freeze(self.actor, self.rows)

    def __len__(self) -> int:
        """Return the number of boxes, M."""
        return len(self.actor)

    def __repr__(self) -> str:
        return f'Boxes({len(self)} of {counted(len(np.unique(self.actor)), "actor")})'

    @property
    def position_xyz(self) -> Floats:
        """(M, 3) float64, box center, meters, global frame."""
        return self.rows[:, 0:3]

    @property
    def orientation_xyzw(self) -> Floats:
        """(M, 4) float64, axes of the box in the global frame, not normalized."""
        return self.rows[:, 3:7]

    @property
    def size_xyz(self) -> Floats:
        """(M, 3) float64, full edge lengths, meters, along the axes of the box."""
        return self.rows[:, 7:10]

    @property
    def scale_xyz(self) -> Floats:
        """(M, 3) float64, scale factors as sent."""
        return self.rows[:, 10:13]


NO_BOXES = Boxes(np.zeros(0, np.int64), (), np.zeros((0, 13)))


@dataclass(frozen=True, slots=True)
class Wheels:
    """
    Wheels of all actors, in the order of the actors; those of one actor as in the source.

    ``actor`` (W,) int64 row of the owner, ascending; ``wheel`` (W,) uint8 FRONT_LEFT …
    REAR_RIGHT; ``source_id`` (W,) int32 id of the wheel in the source, -1 if it has none;
    ``position_xyz`` (W, 3) meters and ``orientation_xyzw`` (W, 4), both in the actor's frame and
    valid only in rows whose ``position_known`` or ``orientation_known`` (W,) is true;
    ``speed`` (W,) rad/s, + = forward, NaN unknown.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     frame = recording[0]
    >>> wheels: sensor.Wheels = frame.wheels
    >>> len(wheels.rows_of(frame.ego_row))
    4
    """

    actor: Rows
    wheel: npt.NDArray[np.uint8]
    source_id: Ints
    position_xyz: Floats
    orientation_xyzw: Floats
    position_known: Bools
    orientation_known: Bools
    speed: Floats

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        _freeze(self.actor, self.wheel, self.source_id, self.position_xyz, self.orientation_xyzw,
                self.position_known, self.orientation_known, self.speed)

    def known_orientation_xyzw(self) -> Floats:
        """(W, 4) float64, actor's frame, not normalized; the identity if it is unknown."""
        return np.where(self.orientation_known[:, None], self.orientation_xyzw, IDENTITY_XYZW)

    def __len__(self) -> int:
        """Return the number of wheels, W."""
        return len(self.actor)

    def __repr__(self) -> str:
        return f'Wheels({len(self)} of {counted(len(np.unique(self.actor)), "actor")})'

    def rows_of(self, actor: int) -> range:
        """Return the rows of the wheels of the actor at row ``actor``."""
        return range(*self.actor.searchsorted((actor, actor + 1)).tolist())


NO_WHEELS = Wheels(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.int32),
                   np.zeros((0, 3)), np.zeros((0, 4)), np.zeros(0, np.bool_),
                   np.zeros(0, np.bool_), np.zeros(0))


@dataclass(frozen=True, slots=True)
class Lanes:
    """
    OpenDRIVE lane state (``control_state``) of the actors that have one.

    ``actor`` (L,) int64 row of the owner, ascending; ``is_changing`` (L, 2) bool, whether a lane
    change to the left and to the right is under way; ``ids`` (L, 3) int32 of road, section and
    lane; ``s`` (L,) float64, meters along the road. If lanes are not decoded, all arrays but
    ``actor`` are blank (false, zero, NaN). ``road_names`` maps ids to the names of all roads so
    far, including those without actors, if the source names its roads instead of numbering them.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     lanes: sensor.Lanes = recording[0].lanes
    >>> len(lanes), lanes.road_id.shape
    (12, (12,))
    """

    actor: Rows
    is_changing: Bools
    ids: Ints
    s: Floats
    road_names: Mapping[int, str] = field(default_factory=lambda: NO_ROADS)

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        _freeze(self.actor, self.is_changing, self.ids, self.s)

    def __reduce__(self) -> tuple[object, ...]:
        # A proxy of a mapping cannot be pickled.
        return Lanes, (self.actor, self.is_changing, self.ids, self.s, dict(self.road_names))

    def __len__(self) -> int:
        """Return the number of actors with a lane state, L."""
        return len(self.actor)

    def __repr__(self) -> str:
        n_lanes = len(np.unique(self.ids, axis=0))
        return f'Lanes({counted(len(self), "actor")} in {counted(n_lanes, "lane")})'

    @property
    def lane_change_left(self) -> Bools:
        """(L,) bool, whether a lane change to the left is under way."""
        return self.is_changing[:, 0]

    @property
    def lane_change_right(self) -> Bools:
        """(L,) bool, whether a lane change to the right is under way."""
        return self.is_changing[:, 1]

    @property
    def road_id(self) -> Ints:
        """(L,) int32, OpenDRIVE id of the road."""
        return self.ids[:, 0]

    @property
    def section_id(self) -> Ints:
        """(L,) int32, number of the lane section."""
        return self.ids[:, 1]

    @property
    def lane_id(self) -> Ints:
        """(L,) int32, OpenDRIVE id of the lane: negative to the right of the middle."""
        return self.ids[:, 2]


NO_LANES = Lanes(np.zeros(0, np.int64), np.zeros((0, 2), np.bool_), np.zeros((0, 3), np.int32),
                 np.zeros(0))


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
        _freeze(self.points_xyz)


# Coordinates of maps in the axes of a projection reach 1e7 m.
_MAX_COORDINATE = 1e9
# Turn signals of a vehicle; both are hazard lights.
INDICATORS_OFF, INDICATORS_LEFT, INDICATORS_RIGHT, INDICATORS_BOTH = range(4)
INDICATORS_UNKNOWN = -1
DERIVED_VELOCITY, DERIVED_SIZE = 1, 2
LIGHT_GREEN, LIGHT_YELLOW, LIGHT_RED = range(3)
# What a light shows: a full disc, or an arrow as numbered by Autoware; or a light for pedestrians.
LIGHT_CIRCLE, LIGHT_PEDESTRIAN = 1, 11
# Ids of actors and lights are uint32 in messages and tables.
MAX_ID = 2**32 - 1


@dataclass(frozen=True, slots=True)
class TrafficLights:
    """Traffic lights that are not actors, such as one for each lane at its stop line."""

    ids: Rows  # (K,) int64, 0 to 2^32 - 1, the same in each frame
    names: tuple[str, ...]
    states: npt.NDArray[np.uint8]  # (K,) uint8 LIGHT_GREEN, LIGHT_YELLOW or LIGHT_RED
    poses: Floats  # (K, 7) float64, position xyz (m) and orientation xyzw, global frame
    # (K,) uint8, LIGHT_CIRCLE, LIGHT_PEDESTRIAN or an arrow, 2 to 9 as in
    # autoware_perception_msgs/TrafficLightElement, 0 if unknown; None if all are circles.
    shapes: npt.NDArray[np.uint8] | None = None
    # Whether the poses are those of stop lines, not of light heads.
    are_at_stop_lines: bool = False
    # K ids of signals in OpenDRIVE, '' for an unknown one; empty if all are unknown.
    open_drive_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """
        Check that all parts have K lights, and make the arrays read-only.

        :raises StateError: on unequal lengths or a wrong shape.
        """
        n_lights = len(self.names)
        if (self.ids.shape, self.states.shape, self.poses.shape) != (
                (n_lights,), (n_lights,), (n_lights, 7)):
            raise StateError('traffic_lights', f'shapes {self.ids.shape}, {self.states.shape}, '
                             f'{self.poses.shape}', f'({n_lights},) twice and ({n_lights}, 7)')
        if n_lights and not 0 <= self.ids.min() <= self.ids.max() <= MAX_ID:
            raise StateError('traffic_lights', f'ids {self.ids.min()} to {self.ids.max()}',
                             f'0 to {MAX_ID}')
        _freeze(self.ids, self.states, self.poses)
        if self.shapes is not None:
            if self.shapes.shape != (n_lights,):
                raise StateError('traffic_lights.shapes', f'shape {self.shapes.shape}',
                                 f'({n_lights},)')
            _freeze(self.shapes)


def direction_of_change(last: tuple[int, int, int], now: tuple[int, int, int],
                        moved_s: float) -> str | None:
    """
    Return the direction of a lane change, as the driver sees it.

    OpenDRIVE numbers lanes from the middle of the road: negative to the right, for traffic along
    the road; positive to the left, for traffic against it, or for left-hand traffic along it.

    :param moved_s: distance that the actor moved along the road, NaN if unknown.
    :returns: ``left`` or ``right``; None without a change, or if the road or section is another.
    """
    if last[:2] != now[:2] or last[2] == now[2]:
        return None
    is_along = last[2] < 0 or moved_s > 0.0
    return 'left' if (now[2] > last[2]) == is_along else 'right'


@dataclass(frozen=True, slots=True)
class Appearance:
    """Paint and blueprint of each actor, ``''`` if the source has none: N strings each."""

    colors: tuple[str, ...]
    replay_classes: tuple[str, ...]


class Extension(Protocol):
    """Data of one simulator beyond the common frame; only its own encoder reads all of it."""

    def select(self, rows: Rows) -> Extension:
        """Return the data of the actors at ``rows`` only."""

    def displays(self) -> tuple[str, ...]:
        """Return what each of the N actors displays, for pictures."""
        # Returns N strings: ``red``, ``yellow`` or ``green`` for a traffic light, the number on a
        # sign, ``''`` for any other actor.


@dataclass(frozen=True, slots=True)
class Frame:
    """
    All actors at one instant.

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

    #: schema of a simulator's frames, such as v2, or the simulator's name
    generation: str
    #: s since the simulation started; NaN: the source has none
    game_time: float
    #: s since the Unix epoch; 0: the source has none
    time: int
    #: 0: the source has none
    sample_count: int
    #: N raw names
    names: tuple[str, ...]
    #: (N,) uint8, see :class:`Kind`
    kinds: Kinds
    #: N tuples of strings as sent
    tags: tuple[tuple[str, ...], ...]
    #: (N, 13) float64: position xyz (m), orientation xyzw (not normalized), velocity xyz (m/s),
    #: angular velocity xyz (rad/s), all in the axes of the global frame, NaN if unknown
    kinematics: Floats
    #: lane states of the actors that have one
    lanes: Lanes
    #: None if there are none or they were not decoded
    boxes: Boxes | None = None
    #: None if there are none or they were not decoded
    wheels: Wheels | None = None
    #: (N, 4): throttle 0..1, brake 0..1, steering -1..1 (+ = left), steering angle (rad,
    #: + = left), NaN if unknown
    inputs: Floats | None = None
    appearance: Appearance | None = None
    #: (N,) m/s along the actor's own x axis, from a source that measures only this component: then
    #: all velocities in ``kinematics`` are NaN
    forward_speed: Floats | None = None
    #: (N, 3) m/s2, axes of the global frame, NaN if unknown; None from a source without them: they
    #: are computed from the velocities
    accelerations: Floats | None = None
    #: (N,) uint8, which numbers the source does not have: the sum of DERIVED_VELOCITY (from
    #: positions) and DERIVED_SIZE (of the class); None for none
    derived: npt.NDArray[np.uint8] | None = None
    extension: Extension | None = None
    #: whether ``game_time`` was never rounded to a 32-bit number
    has_exact_time: bool = False
    #: a number that no other frame of the simulator has, None for none: if two frames have the
    #: same ``game_time``, it shows whether the second one is the first again or another run
    identity: int | None = None
    #: (N,) int64, ids of the actors in the source, 0 to 2^32 - 1, -1 for an actor without a usable
    #: one; None from a source without ids
    ids: Rows | None = None
    #: those that are not actors, None if the source has none
    traffic_lights: TrafficLights | None = None
    #: the lines of the map so far, the same object until there are more; empty from most sources
    map_lines: tuple[MapLine, ...] = ()
    #: OpenDRIVE document of the map, '' from most sources
    open_drive: str = ''
    #: (N,) int8, turn signals: INDICATORS_OFF, INDICATORS_LEFT, INDICATORS_RIGHT, INDICATORS_BOTH,
    #: or INDICATORS_UNKNOWN; None from a source without them
    indicators: npt.NDArray[np.int8] | None = None
    _bodies: Bodies | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """
        Check that all parts have the same N actors, and make the arrays read-only.

        :raises StateError: on unequal lengths or a wrong shape.
        """
        n_actors = len(self.names)
        if self.kinematics.shape != (n_actors, 13):
            raise StateError('kinematics', f'shape {self.kinematics.shape}', f'({n_actors}, 13)')
        if len(self.kinds) != n_actors or len(self.tags) != n_actors:
            raise StateError('kinds, tags', f'{len(self.kinds)}, {len(self.tags)} entries',
                             f'{n_actors}, one per actor')
        _freeze(self.kinds, self.kinematics)
        for name, column, shape in (('inputs', self.inputs, (n_actors, 4)),
                                    ('forward_speed', self.forward_speed, (n_actors,)),
                                    ('ids', self.ids, (n_actors,)),
                                    ('derived', self.derived, (n_actors,)),
                                    ('indicators', self.indicators, (n_actors,)),
                                    ('accelerations', self.accelerations, (n_actors, 3))):
            if column is not None:
                if column.shape != shape:
                    raise StateError(name, f'shape {column.shape}', str(shape))
                _freeze(column)
        if self.ids is not None and n_actors and not (
                self.ids.min() >= -1 and self.ids.max() <= MAX_ID):
            raise StateError('ids', f'{self.ids.min()} to {self.ids.max()}', f'-1 to {MAX_ID}')

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
    def position_xyz(self) -> Floats:
        """(N, 3) float64, meters, global frame."""
        return self.kinematics[:, 0:3]

    @property
    def orientation_xyzw(self) -> Floats:
        """(N, 4) float64, global frame, not normalized."""
        return self.kinematics[:, 3:7]

    @property
    def velocity_xyz(self) -> Floats:
        """(N, 3) float64, m/s, axes of the global frame."""
        return self.kinematics[:, 7:10]

    @property
    def angular_velocity_xyz(self) -> Floats:
        """(N, 3) float64, rad/s, axes of the global frame."""
        return self.kinematics[:, 10:13]

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
        return first_ego(self.tags)

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
        from state_sensor_ros.library.table_reading import read_table
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

    def largest_boxes(self) -> Rows:
        """
        Return the largest usable box by volume of each actor that has one.

        :returns: (K,) int64, rows of ``boxes``, in the order of the actors.
        """
        if self.boxes is None:
            return _NO_ROWS
        return largest_boxes(self.boxes.actor, self.boxes.size_xyz, self.bodies().usable_boxes)

    def set_rows(self, rows: Floats, *, has_lengths: bool | None = None) -> None:
        """
        Compute the poses from ``rows``, which saves a copy if they are in one block.

        :param rows: (N + M, 13) float64, ``kinematics`` and the ``rows`` of the boxes, if any.
        :param has_lengths: argument of :class:`Bodies`.
        """
        object.__setattr__(self, '_bodies', Bodies(rows, self.n_actors, has_lengths))

    def select(self, rows: Rows | Sequence[int]) -> Frame:
        """
        Return a frame of the actors at ``rows``, with their boxes, wheels and lane states.

        :param rows: (K,) int64, ascending.
        :returns: a frame of K actors.
        """
        rows = np.asarray(rows, np.int64)
        new_row = np.full(self.n_actors, -1, np.int64)
        new_row[rows] = np.arange(len(rows))
        parts: dict[str, Any] = {name: _take(column, rows) for name in (
            'names', 'kinds', 'tags', 'kinematics', 'inputs', 'forward_speed', 'accelerations',
            'derived', 'ids', 'indicators')
            if (column := getattr(self, name)) is not None}
        parts |= {name: _select_part(part, new_row) for name in ('lanes', 'boxes', 'wheels')
                  if (part := getattr(self, name)) is not None}
        if self.appearance is not None:
            parts['appearance'] = Appearance(_take(self.appearance.colors, rows),
                                             _take(self.appearance.replay_classes, rows))
        if self.extension is not None:
            parts['extension'] = self.extension.select(rows)
        return replace(self, **parts)


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


Part = TypeVar('Part', Boxes, Wheels, Lanes)


def _select_part(part: Part, new_row: Rows) -> Part:
    """Keep the entries whose actor stays; ``new_row`` maps old rows to new ones, -1 = removed."""
    actor = new_row[part.actor]
    keep = np.flatnonzero(actor >= 0)
    columns: dict[str, Any] = {
        column.name: _take(getattr(part, column.name), keep) for column in fields(part)
        if column.name not in ('actor', 'road_names')}
    return replace(part, actor=actor[keep], **columns)


Column = TypeVar('Column', npt.NDArray[Any], tuple[Any, ...])


def _take(column: Column, keep: Rows) -> Column:
    if isinstance(column, tuple):
        return tuple([column[i] for i in keep])
    return column[keep]

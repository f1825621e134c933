# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A recording as arrays to draw, built from its frames.

While a long recording is read, instants are omitted evenly. Of tracks, the vertices are kept from
which no position and no speed is far (Douglas and Peucker 1973, over time).
"""

from __future__ import annotations

from dataclasses import dataclass
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import class_of, ego_row
from state_sensor_ros.drawing import shapes
from state_sensor_ros.drawing.shapes import Area, FARTHEST_M
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import (
    Bools,
    DERIVED_SIZE,
    direction_of_change,
    Floats,
    Frame,
    Ints,
    Kinds,
    MapLine,
    Rows,
)
from state_sensor_ros.jumps import MAX_SPEED
from state_sensor_ros.rotations import global_from_body, plane_rotations, rpy_from_quaternion
from state_sensor_ros.texts import counted, seconds

LEFT, RIGHT, NO_LANE = 1, -1, -1
Lane = tuple[int, int, int]
# More lines cannot be told apart; of more actors, those that come nearest to the ego have lines.
MAX_LINES, _N_NEAREST = 12, 5
# Number of times at which the band has an edge.
_N_TIMES = 600
# Tolerance for a duration copied from printed text, which is rounded, s.
_TOLERANCE_S = 0.05
# Above one of these limits, 15 MB, every second instant is omitted: a screen does not show more.
MAX_INSTANTS, MAX_SAMPLES = 3000, 300_000
# Time between the last frame before a restart of the simulator and the first one after it.
_RESTART_S = 1e-3
# Largest difference of x and of y (m), and of the speed (m/s), from a track. Samples that are
# thinned out together, 40 MB.
TOLERANCE, _N_PENDING = 0.1, 1_000_000
# Less is rounding, m.
_ROUNDING_M = 0.2
# An object that was never faster than this, m/s, is static, such as a sign or a cone.
_STANDING_MPS = 0.1
# Static objects are shown if the extents become at most this many times as large.
_MAX_GROWTH = 1.5
# A sample of an actor, as in :class:`Scene`; and one of its track.
_SAMPLE = np.dtype([
    ('actor', np.int64), ('position_xy', np.float32, 2), ('yaw', np.float32),
    ('speed', np.float32), ('lane', np.int32), ('display', np.int32)])
_POINT = np.dtype([('actor', np.int64), ('frame', np.int64), ('time_s', np.float64),
                   ('xy', np.float64, 2), ('mps', np.float64)])
_VERTEX = np.dtype([*_POINT.descr, ('is_joined', np.bool_), ('is_jump', np.bool_)])


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """V vertices of the tracks of all actors, one actor after the other, in order of time."""

    actor: Rows  # (V,) index
    time_s: Floats  # (V,) since the first frame
    position_xy: npt.NDArray[np.float32]  # (V, 2) m, global frame
    speed: npt.NDArray[np.float32]  # (V,) m/s, NaN unknown
    # (V,) whether a line connects it with the vertex before: not after an absence or a jump.
    is_joined: Bools
    is_jump: Bools  # (V,) whether no possible motion leads from the vertex before to it

    def are_beyond_reach(self) -> Bools:
        """Return (V,) which vertices no possible motion reaches or leaves."""
        are_beyond: Bools = self.is_jump & np.append(self.is_jump[1:], False)
        return are_beyond

    def segments(self, chosen: Bools) -> tuple[Rows, Rows]:
        """Return the vertices at begin and end of each segment of the actors ``chosen`` (A,)."""
        end = np.flatnonzero(self.is_joined & chosen[self.actor])
        return end - 1, end


@dataclass(frozen=True, slots=True)
class LaneChangeMark:
    time_s: float  # since the first frame
    actor: int
    position_xy: tuple[float, float]  # m
    yaw: float  # rad, global frame
    side: int  # LEFT or RIGHT

    @property
    def heading(self) -> float:
        """Direction of the neighboring lane, rad, global frame."""
        return self.yaw + self.side * math.pi / 2


@dataclass(frozen=True, slots=True)
class Scene:
    """The drawn content of a recording: T instants, A actors, K samples of an actor."""

    generation: str
    n_frames: int
    time_s: Floats  # (T,) since the first frame, ascending
    row_start: Rows  # (T + 1,) index of the first sample of each instant
    actor: Rows  # (K,) index
    position_xy: npt.NDArray[np.float32]  # (K, 2) m
    yaw: npt.NDArray[np.float32]  # (K,) rad, global frame
    speed: npt.NDArray[np.float32]  # (K,) m/s, NaN unknown
    lane: Ints  # (K,) index in ``lanes`` or NO_LANE
    display: Ints  # (K,) index in ``displays``
    lanes: tuple[Lane, ...]  # ids (road, section, lane)
    displays: tuple[str, ...]  # colors of lights and numbers of signs, the first one blank
    names: tuple[str, ...]  # (A,)
    is_ego: Bools
    kind: Kinds  # (A,) one of shapes.py
    actor_class: Kinds  # (A,) index in CLASSES
    has_size: Bools  # (A,) whether the size is not an assumed one
    footprint_xy: Floats  # (A, 4, 2) m, in its own axes
    lane_changes: tuple[LaneChangeMark, ...]
    tracks: Tracks
    moves: Bools  # (A,) whether it is a vehicle or has moved
    map_lines: tuple[MapLine, ...] = ()  # global frame, empty if it is not known

    @property
    def duration_s(self) -> float:
        """Return the time between the first and the last instant, s."""
        return float(self.time_s[-1]) if len(self.time_s) else 0.0

    @property
    def is_vehicle(self) -> Bools:
        """Return which actors are vehicles, (A,)."""
        is_vehicle: Bools = self.kind == shapes.VEHICLE
        return is_vehicle

    @property
    def has_speeds(self) -> bool:
        """Return whether the speed of an actor that moves, or of a vehicle, is known."""
        return bool(np.isfinite(self.tracks.speed[self.moves[self.tracks.actor]]).any())

    @property
    def has_curves(self) -> bool:
        """Return whether there are speeds over time, which one instant does not have."""
        return bool(self.duration_s) and self.has_speeds

    def area(self) -> Area:
        """
        Return the area of the tracks with a margin around them.

        It contains static objects that are near, and all actors if none moves.
        """
        shown = ~self.tracks.are_beyond_reach()
        everything = shapes.extent(self.tracks.position_xy[shown])
        moving = self.moves[self.tracks.actor] & shown
        area = shapes.extent(self.tracks.position_xy[moving])
        is_near = everything.width <= _MAX_GROWTH * area.width \
            and everything.height <= _MAX_GROWTH * area.height
        return everything if is_near or not moving.any() else area

    def facts(self) -> list[str]:
        """Return generation, duration and numbers of frames and actors as texts."""
        counts = np.bincount(self.kind, minlength=len(shapes.KIND_NAMES)).tolist()
        facts = [self.generation, counted(self.n_frames, 'frame'), seconds(self.duration_s)]
        facts += [counted(number, noun)
                  for number, noun in zip(counts, shapes.KIND_NAMES, strict=True) if number]
        if n_jumps := int(self.tracks.is_jump.sum()):
            facts.append(f'{counted(n_jumps, "jump")} beyond {MAX_SPEED:g} m/s')
        if n_beyond := int(self.tracks.are_beyond_reach().sum()):
            facts.append(f'{counted(n_beyond, "position")} beyond {MAX_SPEED:g} m/s outside')
        return [fact for fact in facts if fact]

    def check_time(self, time_s: float | None, option: str, recording: str) -> None:
        """Raise ConfigError, with the name of an option, unless a time is within the scene."""
        if time_s is not None and not 0.0 <= time_s <= self.duration_s + _TOLERANCE_S:
            raise ConfigError(option, f'{time_s:g} s', f'0 to {seconds(self.duration_s)} '
                              f'after the first drawn frame of {recording}')

    def instant_at(self, time_s: float | None) -> int:
        """
        Return the instant nearest to a time, -1 without instants.

        :param time_s: s since the first frame; None for the last instant that has the ego, or,
            without an ego, most of the actors that move.
        """
        if not len(self.time_s):
            return -1
        if time_s is not None:
            return int(np.abs(self.time_s - time_s).argmin())
        has_ego = bool(self.is_ego.any())
        shown = (self.is_ego if has_ego else self.moves)[self.actor]
        counts = np.bincount(self.instants(), shown, len(self.time_s))
        if has_ego:
            counts = np.minimum(counts, 1)
        return int(np.flatnonzero(counts == counts.max())[-1])

    def instants(self) -> Rows:
        """Return the instant of each sample, (K,)."""
        return np.repeat(np.arange(len(self.time_s)), np.diff(self.row_start))

    def samples_at(self, instant: int) -> slice:
        """Return the samples of ``instant``; none for -1."""
        if instant < 0:
            return slice(0, 0)
        return slice(int(self.row_start[instant]), int(self.row_start[instant + 1]))

    def outlines(self, samples: slice | Rows) -> Floats:
        """Return the footprints at samples: (n, 4, 2) float64, m, global frame."""
        turned: Floats = np.einsum(
            'nij,nkj->nki', plane_rotations(self.yaw[samples].astype(np.float64)),
            self.footprint_xy[self.actor[samples]])
        return turned + self.position_xy[samples][:, None, :]


@dataclass(frozen=True, slots=True)
class SpeedBand:
    """The lines and the band of the speeds of A actors."""

    has_line: Bools  # (A,)
    n_others: int  # number of moving actors in the band, 0 for no band
    time_s: Floats  # (T,) since the first frame
    # slowest, median, fastest: (T,) m/s, NaN while none of the others has a known speed.
    slowest: Floats
    median: Floats
    fastest: Floats

    @property
    def text(self) -> str:
        noun = 'others' if self.has_line.any() else 'actors'
        return f'{self.n_others} {noun}: slowest, median, fastest'


def speed_band(scene: Scene) -> SpeedBand:
    """Choose the lines; compute the band."""
    time_s: Floats = np.linspace(0.0, scene.duration_s, _N_TIMES, dtype=np.float64)
    has_line: Bools = scene.moves.copy()
    if np.count_nonzero(scene.moves) > MAX_LINES:
        distance = np.where(scene.moves & ~scene.is_ego, _least_distances(scene), np.inf)
        nearest = np.argsort(distance, kind='stable')[:_N_NEAREST]
        has_line &= scene.is_ego
        has_line[nearest[np.isfinite(distance[nearest])]] = True
    others = np.flatnonzero(scene.moves & ~has_line)
    speeds = np.full((len(others), len(time_s)), np.nan)
    drawn = scene.tracks
    for row, actor in zip(speeds, others, strict=True):
        vertices = slice(*np.searchsorted(drawn.actor, [actor, actor + 1]))
        row[:] = _speeds_at(time_s, drawn.time_s[vertices], drawn.speed[vertices],
                            drawn.is_joined[vertices])
    edges = np.full((3, len(time_s)), np.nan)
    has_any = np.isfinite(speeds).any(axis=0)
    if has_any.any():
        known = speeds[:, has_any]
        edges[:, has_any] = (np.nanmin(known, axis=0), np.nanmedian(known, axis=0),
                             np.nanmax(known, axis=0))
    return SpeedBand(has_line, len(others), time_s, *edges)


def _speeds_at(time_s: Floats, times: Floats, speeds: npt.NDArray[np.float32],
               is_joined: Bools) -> Floats:
    """Return the speeds at times (T,) on the segments of a track, NaN between two of them."""
    after = np.searchsorted(times, time_s)
    inside = np.minimum(after, len(times) - 1)
    is_known = (after < len(times)) & (is_joined[inside] | (times[inside] == time_s))
    return np.where(is_known, np.interp(time_s, times, speeds), np.nan)


def _least_distances(scene: Scene) -> Floats:
    """Return the least distance of each actor from an ego at the same instant, (A,) m."""
    least: Floats = np.full(len(scene.names), np.inf)
    instant, is_ego = scene.instants(), scene.is_ego[scene.actor]
    ego_xy = np.full((len(scene.time_s), 2), np.nan)
    ego_xy[instant[is_ego]] = scene.position_xy[is_ego]
    distance = np.hypot(*(scene.position_xy - ego_xy[instant]).T)
    is_known = np.isfinite(distance)
    np.minimum.at(least, scene.actor[is_known], distance[is_known])
    return least


class TrackBuilder:
    """Builds tracks from the samples of a recording, in their order."""

    def __init__(self) -> None:
        self._pending: list[npt.NDArray[np.void]] = []
        self._n_pending = 0
        self._vertices = [np.empty(0, _VERTEX)]

    def add(self, frame: int, time_s: float, actor: Rows, xy: Floats, mps: Floats) -> None:
        """Add a frame; ``frame``: its number, more than one above the last one after a restart."""
        # actor: (n,) index of each.
        # xy: (n, 2) m.
        # mps: (n,) m/s, NaN unknown.
        points = np.empty(len(actor), _POINT)
        points['actor'], points['frame'], points['time_s'] = actor, frame, time_s
        points['xy'], points['mps'] = xy, mps
        self._pending.append(points)
        self._n_pending += len(points)
        if self._n_pending > _N_PENDING:
            self._thin_out()
            # The tracks go on from here.
            self._pending, self._n_pending = [points], len(points)

    def finish(self) -> Tracks:
        self._thin_out()
        all_ = np.concatenate(self._vertices)
        all_ = all_[np.argsort(all_['actor'], kind='stable')]
        return Tracks(all_['actor'].copy(), all_['time_s'].copy(), all_['xy'].astype(np.float32),
                      all_['mps'].astype(np.float32), all_['is_joined'].copy(),
                      all_['is_jump'].copy())

    def _thin_out(self) -> None:
        """Append the vertices of what is pending."""
        points = np.concatenate([np.empty(0, _POINT), *self._pending])
        points = points[np.lexsort((points['frame'], points['actor']))]
        steps = {name: np.diff(points[name], axis=0)
                 for name in ('actor', 'frame', 'time_s', 'xy')}
        is_next = (steps['actor'] == 0) & (steps['frame'] == 1)
        is_jump = is_next & (np.hypot(*steps['xy'].T) > MAX_SPEED * steps['time_s'] + _ROUNDING_M)
        # With the speed, of which an unknown one is far from all others.
        values = np.column_stack((points['xy'], np.nan_to_num(points['mps'], nan=-1e3)))
        ends = np.flatnonzero(np.concatenate(([True], ~(is_next & ~is_jump), [True])))
        for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            if first == len(points):
                break
            rows = first + thinned(points['time_s'][first:last], values[first:last])
            vertices = np.empty(len(rows), _VERTEX)
            for name in _POINT.names or ():
                vertices[name] = points[name][rows]
            vertices['is_joined'] = rows > first
            vertices['is_jump'] = [first > 0 and bool(is_jump[first - 1])] + [False] * (
                len(rows) - 1)
            self._vertices.append(vertices)


def thinned(time_s: Floats, values: Floats) -> Rows:
    """Return rows whose polyline over time is nowhere farther than TOLERANCE from all values."""
    # time_s: (n,) ascending.
    # values: (n, D).
    is_vertex = np.zeros(len(time_s), np.bool_)
    is_vertex[[0, -1]] = True
    parts = [(0, len(time_s) - 1)]
    while parts:
        first, last = parts.pop()
        if last - first > 1:
            inner = slice(first + 1, last)
            share = (time_s[inner] - time_s[first]) / (time_s[last] - time_s[first])
            off = np.abs(values[inner] - values[first]
                         - share[:, None] * (values[last] - values[first])).max(axis=1)
            middle = first + 1 + int(off.argmax())
            if off[middle - first - 1] > TOLERANCE:
                is_vertex[middle] = True
                parts += [(first, middle), (middle, last)]
    return np.flatnonzero(is_vertex)


@dataclass(slots=True)
class _Actor:
    is_ego: bool
    actor_class: int
    kind: int
    footprint_xy: Floats
    has_box: bool = False
    has_size: bool = False
    has_moved: bool = False
    lane: tuple[Lane, float] | None = None  # of the last frame, with the distance along the road
    side: int = 0  # to which it was changing lanes


class SceneBuilder:
    """
    Builds a scene from frames in their order.

    A frame without ``game_time``, or with that of the last frame, is omitted.
    """

    def __init__(self, ego_tag: str, map_lines: tuple[MapLine, ...] = ()) -> None:
        self._ego_tag = ego_tag
        self._map_lines, self._is_map_given = map_lines, bool(map_lines)
        self._instants: list[tuple[float, npt.NDArray[np.void]]] = []
        self._newest: tuple[float, npt.NDArray[np.void]] | None = None
        self._stride = 1
        self._n_advanced = self._n_frames = self._n_samples = 0
        self._generation = ''
        self._start_s = math.nan  # game_time at time_s 0 of this run of the simulator
        self._n_runs = 0
        self._last: tuple[float, int | None] = (math.nan, None)  # game_time and identity
        self._columns: dict[str, int] = {}
        self._actors: list[_Actor] = []
        self._lanes: dict[Lane, int] = {}
        self._displays = {'': 0}
        self._flagged: list[LaneChangeMark] = []
        self._crossed: list[LaneChangeMark] = []
        self._tracks = TrackBuilder()

    # Invalid numbers give NaN, which is not drawn.
    @np.errstate(all='ignore')
    def add(self, frame: Frame) -> None:
        """Add a frame."""
        # frame: frame in SI units and REP-103 axes; an actor without a box has a default footprint
        # until a later frame has its box.
        self._n_frames += 1
        self._generation = self._generation or frame.generation
        if frame.map_lines and not self._is_map_given:
            self._map_lines = frame.map_lines
        if math.isnan(frame.game_time):
            return
        time_s = self._time_of(frame)
        if self._newest is not None and time_s == self._newest[0]:
            return
        is_drawn = frame.has_pose() & (np.abs(frame.position_xyz) < FARTHEST_M).all(axis=1)
        rows, actor = np.flatnonzero(is_drawn), self._actors_of(frame)
        self._take_footprints(frame, actor)
        lane = np.full(frame.n_actors, NO_LANE, np.int32)
        yaw = rpy_from_quaternion(frame.orientation_xyzw)[:, 2]
        self._take_lanes(frame, actor, yaw, time_s, lane, is_drawn)
        samples, speed = np.empty(len(rows), _SAMPLE), _speed_of(frame)[rows]
        samples['actor'], samples['position_xy'] = actor[rows], frame.position_xyz[rows, :2]
        samples['yaw'], samples['speed'], samples['lane'] = yaw[rows], speed, lane[rows]
        samples['display'] = self._displays_of(frame)[rows]
        for i in actor[rows][speed > _STANDING_MPS].tolist():
            self._actors[i].has_moved = True
        self._newest = time_s, samples
        self._tracks.add(self._n_advanced + self._n_runs, time_s, actor[rows],
                         frame.position_xyz[rows, :2], speed)
        if self._n_advanced % self._stride == 0:
            self._instants.append(self._newest)
            self._n_samples += len(samples)
            if len(self._instants) > MAX_INSTANTS or self._n_samples > MAX_SAMPLES:
                del self._instants[1::2]
                self._stride *= 2
                self._n_samples = sum(len(each) for _, each in self._instants)
        self._n_advanced += 1

    def finish(self) -> Scene:
        """Return the scene of all added frames."""
        instants = self._instants
        if self._newest is not None and instants[-1] is not self._newest:
            instants = [*instants, self._newest]
        sizes = [len(samples) for _, samples in instants]
        samples = np.concatenate([np.empty(0, _SAMPLE), *(each for _, each in instants)])
        kind = np.array([actor.kind for actor in self._actors], np.uint8)
        return Scene(
            generation=self._generation, n_frames=self._n_frames,
            time_s=np.array([time_s for time_s, _ in instants]),
            row_start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            **{name: samples[name].copy() for name in _SAMPLE.names or ()},
            lanes=tuple(self._lanes), displays=tuple(self._displays), names=tuple(self._columns),
            is_ego=np.array([actor.is_ego for actor in self._actors], np.bool_), kind=kind,
            actor_class=np.array([actor.actor_class for actor in self._actors], np.uint8),
            has_size=np.array([actor.has_size for actor in self._actors], np.bool_),
            footprint_xy=np.array(
                [actor.footprint_xy for actor in self._actors]).reshape(-1, 4, 2),
            # Changes of the lane's id count only if the simulator flags no lane change.
            lane_changes=tuple(self._flagged or self._crossed), tracks=self._tracks.finish(),
            moves=np.array([actor.has_moved for actor in self._actors], np.bool_)
            | (kind == shapes.VEHICLE), map_lines=self._map_lines)

    def _time_of(self, frame: Frame) -> float:
        """Return the time since the first frame, continued over restarts of the simulator."""
        if math.isnan(self._start_s):
            self._start_s = frame.game_time
        elif self._newest is not None and frame.begins_run(*self._last):
            self._start_s = frame.game_time - self._newest[0] - _RESTART_S
            self._n_runs += 1
        self._last = frame.game_time, frame.identity
        return frame.game_time - self._start_s

    def _actors_of(self, frame: Frame) -> Rows:
        ego = ego_row(frame.tags, self._ego_tag)
        for i, name in enumerate(frame.names):
            if name not in self._columns:
                actor_class = class_of(int(frame.kinds[i]), frame.tags[i])
                self._columns[name] = len(self._columns)
                self._actors.append(_Actor(
                    i == ego, actor_class, shapes.kind_of(actor_class, frame.tags[i]),
                    shapes.default_footprint(actor_class)))
        return np.array([self._columns[name] for name in frame.names], np.int64)

    def _displays_of(self, frame: Frame) -> Ints:
        """Return the text or color that each actor displays, (N,) indices in ``displays``."""
        if frame.extension is None:
            return np.zeros(frame.n_actors, np.int32)
        return np.array([self._displays.setdefault(text, len(self._displays))
                         for text in frame.extension.displays()], np.int32)

    def _take_footprints(self, frame: Frame, actor: Rows) -> None:
        # Bodies are rigid: the first box of an actor is used for the whole scene.
        if frame.boxes is None or all(self._actors[i].has_box for i in actor[frame.boxes.actor]):
            return
        rows, footprints = shapes.box_footprints(frame)
        are_known = ~frame.is_derived(DERIVED_SIZE)[rows]
        for i, footprint, is_known in zip(
                actor[rows].tolist(), footprints, are_known.tolist(), strict=True):
            boxed = self._actors[i]
            if not boxed.has_box:
                boxed.footprint_xy, boxed.has_box, boxed.has_size = footprint, True, is_known

    def _take_lanes(self, frame: Frame, actor: Rows, yaw: Floats, time_s: float,
                    lane: Ints, is_drawn: Bools) -> None:
        lanes = frame.lanes
        for row, i, (road, section, id_), (left, right), s in zip(
                lanes.actor.tolist(), actor[lanes.actor].tolist(), lanes.ids.tolist(),
                lanes.is_changing.tolist(), lanes.s.tolist(), strict=True):
            ids = (road, section, id_)
            lane[row] = self._lanes.setdefault(ids, len(self._lanes))
            if not is_drawn[row]:
                continue
            driver, side = self._actors[i], LEFT if left else RIGHT if right else 0
            x, y, _ = frame.position_xyz[row].tolist()
            if side and side != driver.side:
                self._flagged.append(LaneChangeMark(time_s, i, (x, y), float(yaw[row]), side))
            last, last_s = driver.lane or (ids, s)
            direction = direction_of_change(last, ids, s - last_s)
            if direction is not None:
                self._crossed.append(LaneChangeMark(
                    time_s, i, (x, y), float(yaw[row]), LEFT if direction == 'left' else RIGHT))
            driver.side, driver.lane = side, (ids, s)


def _speed_of(frame: Frame) -> Floats:
    # Along the actor's own x axis, as in tables.
    speed: Floats = np.abs(
        frame.forward_speed if frame.forward_speed is not None else np.einsum(
            'ni,ni->n', frame.velocity_xyz, global_from_body(frame.orientation_xyzw)[:, :, 0]))
    return np.where(speed < FARTHEST_M, speed, np.nan)

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A recording as arrays to draw, built from its frames: instants, tracks, footprints, lanes.

Of a long recording, instants are omitted evenly. Of tracks, the vertices are kept from which no
position and no speed is far (Douglas and Peucker 1973, over time).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros import classes, errors, jumps, settings
from state_sensor_ros import frame as frames
from state_sensor_ros.frame import Bools, Floats, Frame, Ints, Kinds, MapLine, Rows
from state_sensor_ros.objects.object_maker import centers_of, default_sizes
from state_sensor_ros.rotations import global_from_body, plane_rotations, rpy_from_quaternion
from state_sensor_ros.texts import counted, seconds

VEHICLE, PEDESTRIAN, LIGHT, SIGN, OTHER_SIGN, OBJECT = range(6)
# In the order of the constants; the plural has an `s`.
KIND_NAMES = ('vehicle', 'pedestrian', 'traffic light', 'speed limit sign', 'traffic sign',
              'object')
# Tags of kinds without a class, in lower case; of several tags, the first here counts.
_BY_TAG = {'traffic_light': LIGHT, 'speed_limit_sign': SIGN, 'traffic_sign': OTHER_SIGN}
LEFT, RIGHT, NO_LANE = 1, -1, -1
Lane = tuple[int, int, int]
# Positions (m), sizes (m) and speeds (m/s) beyond this are invalid and not drawn.
FARTHEST_M = 1e7
# Length, width and height, m, by class; an actor without a class and without a box is a cone.
SIZES = default_sizes(settings.DEFAULTS)
SIZES[classes.UNKNOWN] = 0.5, 0.5, 0.7
# Signs of the half edges at front left, front right, rear right and rear left.
_CORNERS = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)])
# More lines cannot be told apart; of more actors, those that come nearest to the ego have lines.
MAX_LINES, _N_NEAREST = 12, 5
# Tolerance for a duration copied from printed text, which is rounded, s.
_TOLERANCE_S = 0.05
# Instants and samples of actors that are drawn, 15 MB: a screen does not show more.
MAX_INSTANTS, MAX_SAMPLES = 3000, 300_000
# Time between the last frame before a restart of the simulator and the first one after it.
_RESTART_S = 1e-3
# Largest difference of x and of y (m), and of the speed (m/s), from a track.
TOLERANCE = 0.1
# Less is rounding, m.
_ROUNDING_M = 0.2
# An object that was never faster than this, m/s, is static, such as a sign or a cone.
_STANDING_MPS = 0.1
# Static objects are shown if the extents become at most this many times as large.
_MAX_GROWTH = 1.5
# Margin around points: m at each side, and a fraction of their extent. Width of an empty map, m.
_MARGIN_M, _MARGIN, _EMPTY_M = 8.0, 0.04, 50.0
# A sample of an actor, as in :class:`Scene`.
_SAMPLE = np.dtype([
    ('actor', np.int32), ('position_xy', np.float32, 2), ('yaw', np.float32),
    ('speed', np.float32), ('lane', np.int32), ('display', np.int32)])


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of the ground: center and extents, m."""

    x: float
    y: float
    width: float
    height: float

    @property
    def x_range(self) -> tuple[float, float]:
        return self.x - self.width / 2, self.x + self.width / 2

    @property
    def y_range(self) -> tuple[float, float]:
        return self.y - self.height / 2, self.y + self.height / 2

    def contains(self, position_xy: Floats | npt.NDArray[np.float32]) -> Bools:
        """Return which points are inside; ``position_xy``: (n, 2) m."""
        inside: Bools = np.logical_and.reduce(
            np.abs(position_xy - (self.x, self.y)) <= (self.width / 2, self.height / 2), axis=1)
        return inside


def extent(position_xy: npt.NDArray[np.float32]) -> Area:
    """Return the area of some points (n, 2), m, with a margin around them."""
    if not len(position_xy):
        return Area(0.0, 0.0, _EMPTY_M, _EMPTY_M / 2)
    low, high = position_xy.min(axis=0).astype(float), position_xy.max(axis=0).astype(float)
    (x, y), (width, height) = (low + high) / 2, (1 + _MARGIN) * (high - low) + 2 * _MARGIN_M
    return Area(float(x), float(y), float(width), float(height))


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

    def speeds_over_time(self) -> Floats:
        """Return (V, 2) times and speeds, s and m/s."""
        return np.column_stack((self.time_s, self.speed))

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
    actor: Ints  # (K,) index
    position_xy: npt.NDArray[np.float32]  # (K, 2) m
    yaw: npt.NDArray[np.float32]  # (K,) rad, global frame
    speed: npt.NDArray[np.float32]  # (K,) m/s, NaN unknown
    lane: Ints  # (K,) index in ``lanes`` or NO_LANE
    display: Ints  # (K,) index in ``displays``
    lanes: tuple[Lane, ...]  # ids (road, section, lane)
    displays: tuple[str, ...]  # colors of lights and numbers of signs, the first one blank
    names: tuple[str, ...]  # (A,)
    is_ego: Bools
    kind: Kinds  # (A,) one of the constants of this module
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
        is_vehicle: Bools = self.kind == VEHICLE
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
        moving = self.moves[self.tracks.actor] & shown
        everything, area = (extent(self.tracks.position_xy[rows]) for rows in (shown, moving))
        is_near = everything.width <= _MAX_GROWTH * area.width \
            and everything.height <= _MAX_GROWTH * area.height
        return everything if is_near or not moving.any() else area

    def facts(self) -> list[str]:
        """Return generation, duration and numbers of frames and actors as texts."""
        counts = np.bincount(self.kind, minlength=len(KIND_NAMES)).tolist()
        facts = [self.generation, counted(self.n_frames, 'frame'), seconds(self.duration_s)]
        facts += [counted(number, noun)
                  for number, noun in zip(counts, KIND_NAMES, strict=True) if number]
        if n_jumps := int(self.tracks.is_jump.sum()):
            facts.append(f'{counted(n_jumps, "jump")} beyond {jumps.MAX_SPEED:g} m/s')
        return [fact for fact in facts if fact]

    def check_time(self, time_s: float | None, option: str, recording: str) -> None:
        """Raise ConfigError, with the name of an option, unless a time is within the scene."""
        if time_s is not None and not 0.0 <= time_s <= self.duration_s + _TOLERANCE_S:
            raise errors.ConfigError(option, f'{time_s:g} s', f'0 to {seconds(self.duration_s)} '
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

    def samples_at(self, instant: int) -> Rows:
        """Return the samples of ``instant``; none for -1."""
        first, end = self.row_start[[instant, instant + 1]] if instant >= 0 else (0, 0)
        return np.arange(first, end)

    def outlines(self, samples: Rows) -> Floats:
        """Return the footprints at samples: (n, 4, 2) float64, m, global frame."""
        turned: Floats = np.einsum(
            'nij,nkj->nki', plane_rotations(self.yaw[samples].astype(np.float64)),
            self.footprint_xy[self.actor[samples]])
        return turned + self.position_xy[samples][:, None, :]


@dataclass(frozen=True, slots=True)
class SpeedBand:
    """Which of A actors have lines of their speeds, and the band of the others."""

    has_line: Bools  # (A,)
    n_others: int  # number of moving actors in the band, 0 for no band
    # (3, T) slowest, median, fastest, m/s, NaN while none of the others has a known speed.
    edges: Floats

    @property
    def text(self) -> str:
        noun = 'others' if self.has_line.any() else 'actors'
        return f'{self.n_others} {noun}: slowest, median, fastest'


def speed_band(scene: Scene) -> SpeedBand:
    """Choose the lines; compute the band."""
    instant, n_instants = scene.instants(), len(scene.time_s)
    has_line: Bools = scene.moves.copy()
    if np.count_nonzero(scene.moves) > MAX_LINES:
        is_ego = scene.is_ego[scene.actor]
        ego_xy = np.full((n_instants, 2), np.nan)
        ego_xy[instant[is_ego]] = scene.position_xy[is_ego]
        least = np.full(len(scene.names), np.inf)
        np.fmin.at(least, scene.actor, np.hypot(*(scene.position_xy - ego_xy[instant]).T))
        least[~scene.moves | scene.is_ego] = np.inf
        nearest = np.argsort(least, kind='stable')[:_N_NEAREST]
        has_line &= scene.is_ego
        has_line[nearest[np.isfinite(least[nearest])]] = True
    is_other = scene.moves & ~has_line
    known = np.where(is_other[scene.actor] & np.isfinite(scene.speed), scene.speed, np.nan)
    edges = np.full((3, n_instants), np.nan)
    for i, (first, end) in enumerate(pairwise(scene.row_start.tolist())):
        speeds = known[first:end][np.isfinite(known[first:end])]
        if len(speeds):
            edges[:, i] = speeds.min(), np.median(speeds), speeds.max()
    return SpeedBand(has_line, int(is_other.sum()), edges)


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


def _tracks_of(samples: npt.NDArray[np.void], instant: Rows, time_s: Floats, run: Rows) -> Tracks:
    """Return the tracks; ``instant``: of each sample; ``time_s``, ``run``: of each instant."""
    order = np.lexsort((instant, samples['actor']))
    samples, instant, time_s = samples[order], instant[order], time_s[instant[order]]
    # With the speed, of which an unknown one is far from all others.
    values = np.column_stack((samples['position_xy'], np.nan_to_num(samples['speed'], nan=-1e3))
                             ).astype(np.float64)
    is_next = (np.diff(samples['actor']) == 0) & (np.diff(instant + run[instant]) == 1)
    moved = np.hypot(*np.diff(values[:, :2], axis=0).T)
    is_jump = is_next & (moved > jumps.MAX_SPEED * np.diff(time_s) + _ROUNDING_M)
    starts = np.flatnonzero(np.append(True, ~is_next | is_jump)[:len(samples)])
    vertices = np.concatenate([np.zeros(0, np.int64), *(
        first + thinned(time_s[first:end], values[first:end])
        for first, end in zip(starts, np.append(starts[1:], len(samples)), strict=False))])
    chosen = samples[vertices]
    return Tracks(chosen['actor'].astype(np.int64), time_s[vertices], chosen['position_xy'].copy(),
                  chosen['speed'].copy(), ~np.isin(vertices, starts),
                  np.append(False, is_jump)[vertices])


@dataclass(slots=True)
class _Actor:
    number: int
    is_ego: bool
    actor_class: int
    kind: int
    footprint_xy: Floats
    has_box: bool = False
    has_size: bool = False
    has_moved: bool = False


class SceneBuilder:
    """
    Builds a scene from frames in their order.

    A frame without ``game_time``, or with that of the last frame, is omitted.
    """

    def __init__(self, ego_tag: str, map_lines: tuple[MapLine, ...] = ()) -> None:
        self._ego_tag = ego_tag
        self._map_lines, self._is_map_given = map_lines, bool(map_lines)
        self._times: list[float] = []  # of the instants, since the first frame
        self._runs: list[int] = []  # of the simulator, of the instants
        self._samples: list[npt.NDArray[np.void]] = [np.empty(0, _SAMPLE)]
        self._n_frames, self._generation = 0, ''
        self._start_s = math.nan  # game_time at time_s 0 of this run of the simulator
        self._run = 0
        self._last: tuple[float, int | None] = (math.nan, None)  # game_time and identity
        self._actors: dict[str, _Actor] = {}
        self._lanes: dict[Lane, int] = {}
        self._displays = {'': 0}
        self._finder, self._lane_changes = frames.LaneChangeFinder(), list[LaneChangeMark]()

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
        if self._times and time_s == self._times[-1]:
            return
        is_drawn = frame.has_pose() & (np.abs(frame.position_xyz) < FARTHEST_M).all(axis=1)
        actors, speed = self._actors_of(frame), _speed_of(frame)
        yaw = rpy_from_quaternion(frame.orientation_xyzw)[:, 2]
        self._take_footprints(frame, actors, yaw)
        samples = np.empty(frame.n_actors, _SAMPLE)
        samples['actor'] = [actor.number for actor in actors]
        samples['position_xy'], samples['speed'] = frame.position_xyz[:, :2], speed
        samples['yaw'] = yaw
        samples['display'] = 0 if frame.extension is None else [
            self._displays.setdefault(text, len(self._displays))
            for text in frame.extension.displays()]
        self._take_lanes(frame, actors, samples, time_s, is_drawn)
        for row in np.flatnonzero(is_drawn & (speed > _STANDING_MPS)).tolist():
            actors[row].has_moved = True
        self._times.append(time_s)
        self._runs.append(self._run)
        self._samples.append(samples[is_drawn])

    def finish(self) -> Scene:
        """Return the scene of all added frames."""
        time_s, samples = np.array(self._times), np.concatenate(self._samples)
        sizes = np.array([len(each) for each in self._samples[1:]], np.int64)
        instant = np.repeat(np.arange(len(time_s)), sizes)
        tracks = _tracks_of(samples, instant, time_s, np.array(self._runs, np.int64))
        step = max(math.ceil(len(time_s) / MAX_INSTANTS), math.ceil(len(samples) / MAX_SAMPLES), 1)
        is_kept = np.arange(len(time_s)) % step == 0
        is_kept[-1:] = True
        samples, actors = samples[is_kept[instant]], list(self._actors.values())
        kind = np.array([actor.kind for actor in actors], np.uint8)
        return Scene(
            generation=self._generation, n_frames=self._n_frames, time_s=time_s[is_kept],
            row_start=np.append(0, np.cumsum(sizes[is_kept])),
            **{name: samples[name].copy() for name in _SAMPLE.names or ()},
            lanes=tuple(self._lanes), displays=tuple(self._displays), names=tuple(self._actors),
            is_ego=np.array([actor.is_ego for actor in actors], np.bool_), kind=kind,
            actor_class=np.array([actor.actor_class for actor in actors], np.uint8),
            has_size=np.array([actor.has_size for actor in actors], np.bool_),
            footprint_xy=np.array([actor.footprint_xy for actor in actors]).reshape(-1, 4, 2),
            lane_changes=tuple(self._lane_changes), tracks=tracks,
            moves=np.array([actor.has_moved for actor in actors], np.bool_) | (kind == VEHICLE),
            map_lines=self._map_lines)

    def _time_of(self, frame: Frame) -> float:
        """Return the time since the first frame, continued over restarts of the simulator."""
        if math.isnan(self._start_s):
            self._start_s = frame.game_time
        elif self._times and frame.begins_run(*self._last):
            self._start_s = frame.game_time - self._times[-1] - _RESTART_S
            self._run += 1
        self._last = frame.game_time, frame.identity
        return frame.game_time - self._start_s

    def _actors_of(self, frame: Frame) -> list[_Actor]:
        ego = classes.ego_row(frame.tags, self._ego_tag)
        for i, name in enumerate(frame.names):
            if name not in self._actors:
                actor_class = classes.class_of(int(frame.kinds[i]), frame.tags[i])
                self._actors[name] = _Actor(
                    len(self._actors), i == ego, actor_class, kind_of(actor_class, frame.tags[i]),
                    0.5 * _CORNERS * SIZES[actor_class, :2])
        return [self._actors[name] for name in frame.names]

    def _take_footprints(self, frame: Frame, actors: Sequence[_Actor], yaw: Floats) -> None:
        """Take the first box of each actor: bodies are rigid."""
        boxed = () if frame.boxes is None else np.unique(frame.boxes.actor).tolist()
        if all(actors[row].has_box for row in boxed):
            return
        centers = centers_of(frame, SIZES, np.array([a.actor_class for a in actors], np.uint8))
        moved = np.einsum('nij,nj->ni', plane_rotations(-yaw),
                          centers.poses[:, :2] - frame.position_xyz[:, :2])
        footprints = 0.5 * _CORNERS * centers.sizes[:, None, :2] + moved[:, None]
        is_found = centers.have_boxes & (np.abs(footprints) < FARTHEST_M).all(axis=(1, 2))
        is_derived = frame.is_derived(frames.DERIVED_SIZE)
        for row, actor in enumerate(actors):
            if is_found[row] and not actor.has_box:
                actor.footprint_xy, actor.has_box = footprints[row], True
                actor.has_size = not is_derived[row]

    def _take_lanes(self, frame: Frame, actors: Sequence[_Actor], samples: npt.NDArray[np.void],
                    time_s: float, is_drawn: Bools) -> None:
        samples['lane'] = NO_LANE
        samples['lane'][frame.lanes.actor] = [
            self._lanes.setdefault(tuple(ids), len(self._lanes))
            for ids in frame.lanes.ids.tolist()]
        for row, _, _, direction in self._finder.changes(frame):
            if is_drawn[row]:
                x, y, _ = frame.position_xyz[row].tolist()
                self._lane_changes.append(LaneChangeMark(
                    time_s, actors[row].number, (x, y), float(samples['yaw'][row]),
                    LEFT if direction == 'left' else RIGHT))


def _speed_of(frame: Frame) -> Floats:
    # Along the actor's own x axis, as in tables.
    speed: Floats = np.abs(
        frame.forward_speed if frame.forward_speed is not None else np.einsum(
            'ni,ni->n', frame.velocity_xyz, global_from_body(frame.orientation_xyzw)[:, :, 0]))
    return np.where(speed < FARTHEST_M, speed, np.nan)


def kind_of(actor_class: int, tags: tuple[str, ...]) -> int:
    if actor_class == classes.UNKNOWN:
        lower = {tag.lower() for tag in tags}
        return next((kind for tag, kind in _BY_TAG.items() if tag in lower), OBJECT)
    return PEDESTRIAN if actor_class == classes.PERSON else VEHICLE


# Gap between two lanes, which separates them in the picture; width of a mere line, m.
_GAP_M, _LINE_M = 0.3, 0.2
# Largest distance of the edge from the middle of a band at a sharp bend, in half widths.
_MOST_MITRE = 3.0
# Kinds of lanes that are drawn as roads; others, such as sidewalks and verges, are paler.
_ROADS = frozenset(('driving', 'junction', 'entry', 'exit', 'onRamp', 'offRamp',
                    'connectingRamp', 'bidirectional', 'slipLane', 'taxi', 'bus', 'HOV', 'stop'))
_LINES = frozenset(('border', 'mark', 'stop line'))
# Margin that a film that follows the ego shows around the tracks, m.
_AROUND_M = 50.0


def bands_of(lines: Sequence[MapLine], area: Area | None = None) -> tuple[
        list[Floats], list[Floats], list[Floats]]:
    """Return the bands around lines, in the order in which they are drawn."""
    # Returns outlines, (n, 2) m, of other lanes, of roads and of mere lines, those near ``area``.
    bands: tuple[list[Floats], list[Floats], list[Floats]] = [], [], []
    for line in lines:
        left, right = edges_of(line.points_xyz[:, :2], max(line.width - _GAP_M, _LINE_M)
                               if line.width else _LINE_M)
        # Clockwise from the begin on the left.
        outline = np.concatenate((left, right[::-1]))
        if not len(outline):
            continue
        low, high = outline.min(axis=0) - _AROUND_M, outline.max(axis=0) + _AROUND_M
        if area is None or (
                low[0] <= area.x_range[1] and high[0] >= area.x_range[0]
                and low[1] <= area.y_range[1] and high[1] >= area.y_range[0]):
            is_line = not line.width or line.kind in _LINES
            bands[2 if is_line else line.kind in _ROADS].append(outline)
    return bands


def edges_of(points: Floats, width: float) -> tuple[Floats, Floats]:
    """Return the left and the right edge of a band around a line."""
    # points: (n, 2) or (n, 3) m; points that are not finite or repeat the one before are omitted.
    # width: width of the band, m.
    # Returns (k, 2) or (k, 3) m each; empty for a line of no length.
    points = points[np.isfinite(points).all(axis=1)]
    steps = np.diff(points[:, :2], axis=0)
    lengths = np.hypot(steps[:, 0], steps[:, 1])
    moved = lengths > 0
    if not moved.any():
        return points[:0], points[:0]
    points = np.concatenate((points[:1], points[1:][moved]))
    steps = steps[moved] / lengths[moved][:, None]
    normals = np.stack((-steps[:, 1], steps[:, 0]), 1)
    before, after = np.concatenate((normals[:1], normals)), np.concatenate((normals, normals[-1:]))
    # The edges of two parts meet on the line that halves the angle between them.
    both = before + after
    half = np.maximum(np.hypot(both[:, 0], both[:, 1]) / 2, 1 / _MOST_MITRE)
    offsets = np.zeros_like(points)
    offsets[:, :2] = width / 2 * both / 2 / half[:, None] ** 2
    return points + offsets, points - offsets

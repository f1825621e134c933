# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A recording as arrays to draw, and which of its speeds are lines over time."""

from __future__ import annotations

from dataclasses import dataclass
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros.drawing import shapes
from state_sensor_ros.drawing.tracks import segments, Tracks
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import Bools, Floats, Ints, Kinds, MapLine, Rows
from state_sensor_ros.jumps import MAX_SPEED
from state_sensor_ros.rotations import plane_rotations
from state_sensor_ros.texts import counted, seconds

LEFT, RIGHT = 1, -1
NO_LANE = -1
# A larger error of the tracks is a fact of the picture, m.
MAX_ERROR_M = 0.2
Lane = tuple[int, int, int]
# More lines cannot be told apart; of more actors, those that come nearest to the ego have lines.
MAX_LINES, _N_NEAREST = 12, 5
# Number of times at which the band has an edge.
_N_TIMES = 600
# Tolerance for a duration copied from printed text, which is rounded, s.
_TOLERANCE_S = 0.05


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
    # Of the map, global frame, empty if it is not known. Instants may be omitted from a long
    # recording, but not of ``tracks``.
    map_lines: tuple[MapLine, ...] = ()

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

    def facts(self) -> list[str]:
        """Return generation, duration and numbers of frames and actors as texts."""
        counts = np.bincount(self.kind, minlength=len(shapes.KIND_NAMES)).tolist()
        facts = [self.generation, counted(self.n_frames, 'frame'), seconds(self.duration_s)]
        facts += [counted(number, noun)
                  for number, noun in zip(counts, shapes.KIND_NAMES, strict=True) if number]
        if self.tracks.error_m > MAX_ERROR_M:
            facts.append(f'tracks within {self.tracks.error_m:g} m')
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
        shown = (self.is_ego if self.is_ego.any() else self.moves)[self.actor]
        counts = np.bincount(np.repeat(np.arange(len(self.time_s)), np.diff(self.row_start)),
                             shown, len(self.time_s))
        if self.is_ego.any():
            counts = np.minimum(counts, 1)
        return int(np.flatnonzero(counts == counts.max())[-1])

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
    others = scene.moves & ~has_line
    slowest, median, fastest = _range(scene, others, time_s)
    return SpeedBand(has_line, int(np.count_nonzero(others)), time_s, slowest, median, fastest)


def _least_distances(scene: Scene) -> Floats:
    """Return the least distance of each actor from an ego at the same instant, (A,) m."""
    least: Floats = np.full(len(scene.names), np.inf)
    instant = np.repeat(np.arange(len(scene.time_s)), np.diff(scene.row_start))
    is_ego = scene.is_ego[scene.actor]
    ego_xy = np.full((len(scene.time_s), 2), np.nan)
    ego_xy[instant[is_ego]] = scene.position_xy[is_ego]
    distance = np.hypot(*(scene.position_xy - ego_xy[instant]).T)
    is_known = np.isfinite(distance)
    np.minimum.at(least, scene.actor[is_known], distance[is_known])
    return least


def _range(scene: Scene, chosen: Bools, time_s: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the slowest, median and fastest speed of the actors ``chosen`` (A,), (T,) each."""
    drawn = scene.tracks
    begin, end = segments(drawn, chosen)
    speeds = np.full((np.count_nonzero(chosen), len(time_s)), np.nan)
    row_of = np.cumsum(chosen) - 1
    first = np.searchsorted(time_s, drawn.time_s[begin], 'left')
    n_times = np.searchsorted(time_s, drawn.time_s[end], 'right') - first
    # One entry for each time within each segment.
    i_segment = np.repeat(np.arange(len(begin)), n_times)
    column = np.arange(n_times.sum()) - np.repeat(np.cumsum(n_times) - n_times, n_times) \
        + first[i_segment]
    low, high = begin[i_segment], end[i_segment]
    # Two vertices can have one time: a corner at the begin of a track.
    duration = np.maximum(drawn.time_s[high] - drawn.time_s[low], np.finfo(np.float64).tiny)
    share = (time_s[column] - drawn.time_s[low]) / duration
    speeds[row_of[drawn.actor[high]], column] = drawn.speed[low] + share * (
        drawn.speed[high] - drawn.speed[low])
    slowest, median, fastest = (np.full(len(time_s), np.nan) for _ in range(3))
    has_any = np.isfinite(speeds).any(axis=0)
    if not has_any.any():
        return slowest, median, fastest
    known = speeds[:, has_any]
    slowest[has_any], fastest[has_any] = np.nanmin(known, axis=0), np.nanmax(known, axis=0)
    median[has_any] = np.nanmedian(known, axis=0)
    return slowest, median, fastest

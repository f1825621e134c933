# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
r"""
Tracks of actors as lines of vertices, thinned out while a recording is read.

A vertex is kept if the line from the vertex before would otherwise miss a point of the track, or
its speed, by more than the tolerance. Each point takes constant time: the directions in which a
line from the last vertex passes all points since then are a sector, and so are the slopes of the
speed::

    vertex o---.---.---o  the next point lies outside the sector: the last one becomes a vertex
                        \
                         .
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Bools, Floats, Rows

# A track is drawn within twice this tolerance of the positions, m; speeds within this, m/s.
TOLERANCE_M, TOLERANCE_MPS = 0.08, 0.1
# The color of a segment is that of its end: a larger change of the speed is a vertex, m/s.
_MAX_CHANGE_MPS = 0.5
# At each multiple of this number of vertices, 50 MB, the tolerances double.
_MAX_VERTICES = 1_000_000
# A larger distance between two instants is a jump: JUMP_M (m) plus JUMP_FACTOR times the distance
# at the actor's speed.
JUMP_M = 3.0
JUMP_FACTOR = 2.0
# An object that was never faster than this, m/s, is static, such as a sign or a cone.
_STANDING_MPS = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """
    V vertices of the tracks of all actors, one actor after the other, in order of time.

    ``actor`` (V,) index; ``time_s`` (V,) since the first frame; ``position_xy`` (V, 2) m, global
    frame; ``speed`` (V,) m/s, NaN unknown; ``is_joined`` (V,) whether a line connects it with the
    vertex before: not after an absence or a jump. ``error_m`` largest distance of a position from
    the track, m.
    """

    actor: Rows
    time_s: Floats
    position_xy: npt.NDArray[np.float32]
    speed: npt.NDArray[np.float32]
    is_joined: Bools
    error_m: float


def is_jump(moved_m: Floats, speed: Floats, period_s: Floats | float) -> Bools:
    """
    Return which actors jump between two instants; without a known speed there are no jumps.

    :param moved_m: (n,) distance between the positions.
    :param speed: (n,) the greater one of both instants, m/s, NaN unknown.
    :param period_s: (n,) or one, time between the instants.
    """
    reach = JUMP_M + JUMP_FACTOR * np.nan_to_num(speed, nan=np.inf) * period_s
    jumps: Bools = moved_m > reach
    return jumps


@dataclass(slots=True, eq=False)
class _OpenTracks:
    """
    The state of the track of each actor, (A,) each, or (A, 2) for positions.

    ``anchor_*`` the last vertex and ``last_*`` the last point; ``frame`` number of its frame;
    ``base_xy`` unit vector, zero until a point is away from the anchor; ``low``, ``high`` the
    sector, rad from ``base_xy``; ``slope_low``, ``slope_high`` of the speed, m/s2; ``reach``
    greatest distance from the anchor, m.
    """

    anchor_s: Floats
    anchor_xy: Floats
    anchor_mps: Floats
    last_s: Floats
    last_xy: Floats
    last_mps: Floats
    frame: Floats
    base_xy: Floats
    low: Floats
    high: Floats
    slope_low: Floats
    slope_high: Floats
    reach: Floats

    @classmethod
    def empty(cls, size: int) -> _OpenTracks:
        """Return the state of ``size`` actors without points."""
        return cls(*(np.full((size, 2) if name.name.endswith('xy') else size, -np.inf)
                     for name in fields(cls)))

    def grown(self, size: int) -> _OpenTracks:
        """Return a copy for ``size`` actors."""
        larger = _OpenTracks.empty(size)
        for column in fields(self):
            old = getattr(self, column.name)
            getattr(larger, column.name)[:len(old)] = old
        return larger


# Columns of vertices: actor, time, position, speed, whether they are joined.
_Piece = tuple[Rows, Floats, Floats, Floats, Bools]
# More pieces are joined to a block, because each piece has some overhead.
_MAX_PIECES = 1024


def _joined(pieces: list[_Piece]) -> _Piece:
    empty = (np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2)), np.zeros(0),
             np.zeros(0, np.bool_))
    actor, time_s, position_xy, speed, is_joined = (
        np.concatenate(parts) for parts in zip(empty, *pieces, strict=True))
    return actor, time_s, position_xy, speed, is_joined


class TrackBuilder:
    """Builds tracks from the instants of a recording, in their order."""

    def __init__(self) -> None:
        self._state = _OpenTracks.empty(64)
        self._n_frames = 0
        self._scale = 1.0
        self._pieces: list[_Piece] = []
        self._blocks: list[_Piece] = []
        self._n_vertices = 0
        self._has_moved: Bools = np.zeros(64, np.bool_)

    # Comparisons with NaN are false.
    @np.errstate(all='ignore')
    def add(self, time_s: float, actor: Rows, position_xy: Floats, speed: Floats) -> None:
        """
        Add an instant.

        :param time_s: since the first frame, above that of the instant before.
        :param actor: (n,) indices of the actors that are present.
        :param position_xy: (n, 2) m.
        :param speed: (n,) m/s, NaN unknown.
        """
        if len(actor) and actor.max() >= len(self._has_moved):
            size = 2 * (int(actor.max()) + 1)
            self._state = self._state.grown(size)
            self._has_moved = np.pad(self._has_moved, (0, size - len(self._has_moved)))
        self._has_moved[actor[speed > _STANDING_MPS]] = True
        state = self._state
        period_s = time_s - state.last_s[actor]
        moved = np.hypot(*(position_xy - state.last_xy[actor]).T)
        goes_on = (state.frame[actor] == self._n_frames - 1) & ~is_jump(
            moved, np.fmax(speed, state.last_mps[actor]), period_s)
        # Absences and jumps end a track and begin the next.
        begins = actor[~goes_on]
        self._end(begins)
        self._emit(begins, np.full(len(begins), time_s), position_xy[~goes_on], speed[~goes_on],
                   is_joined=False)
        self._anchor(begins, np.full(len(begins), time_s), position_xy[~goes_on],
                     speed[~goes_on])
        going = np.flatnonzero(goes_on)
        self._go_on(actor[going], time_s, position_xy[going], speed[going])
        state.last_s[actor], state.last_xy[actor], state.last_mps[actor] = (
            time_s, position_xy, speed)
        state.frame[actor] = self._n_frames
        self._n_frames += 1

    def finish(self, n_actors: int) -> tuple[Tracks, Bools]:
        """
        Return the tracks, and (A,) which actors have moved.

        :param n_actors: A.
        """
        self._end(np.arange(min(n_actors, len(self._has_moved)), dtype=np.int64))
        actor, time_s, position_xy, speed, is_joined = _joined([*self._blocks, *self._pieces])
        order = np.argsort(actor, kind='stable')
        moved = np.zeros(n_actors, np.bool_)
        moved[:len(self._has_moved)] = self._has_moved[:n_actors]
        return Tracks(actor[order], time_s[order], position_xy[order].astype(np.float32),
                      speed[order].astype(np.float32), is_joined[order],
                      2.0 * TOLERANCE_M * self._scale), moved

    def _go_on(self, actor: Rows, time_s: float, position_xy: Floats, speed: Floats) -> None:
        """Add points of tracks that are not interrupted."""
        fits, _ = self._fit(actor, time_s, position_xy, speed)
        corners = actor[~fits]
        state = self._state
        self._emit(corners, state.last_s[corners], state.last_xy[corners],
                   state.last_mps[corners], is_joined=True)
        self._anchor(corners, state.last_s[corners], state.last_xy[corners],
                     state.last_mps[corners])
        _, narrowed = self._fit(actor, time_s, position_xy, speed)
        (state.base_xy[actor], state.low[actor], state.high[actor], state.slope_low[actor],
         state.slope_high[actor], state.reach[actor]) = narrowed

    def _fit(self, actor: Rows, time_s: float, position_xy: Floats,
             speed: Floats) -> tuple[Bools, tuple[Floats, ...]]:
        """Return which points may follow their anchors, and the sectors with these points."""
        state, tolerance = self._state, TOLERANCE_M * self._scale
        way = position_xy - state.anchor_xy[actor]
        distance = np.hypot(*way.T)
        is_far = distance > tolerance
        base = state.base_xy[actor]
        is_first = is_far & ~base.any(axis=1)
        base = np.where(is_first[:, None], way / distance[:, None], base)
        angle = np.arctan2(base[:, 0] * way[:, 1] - base[:, 1] * way[:, 0],
                           base[:, 0] * way[:, 0] + base[:, 1] * way[:, 1])
        half = np.arcsin(np.minimum(tolerance / distance, 1.0))
        low, high, reach = state.low[actor], state.high[actor], state.reach[actor]
        fits = ~is_far | ((angle >= low) & (angle <= high))
        # The point must not go back by more than the tolerance.
        fits &= distance >= reach - tolerance
        elapsed, change = time_s - state.anchor_s[actor], speed - state.anchor_mps[actor]
        slope, share = change / elapsed, TOLERANCE_MPS * self._scale / elapsed
        slope_low, slope_high = state.slope_low[actor], state.slope_high[actor]
        both_unknown = np.isnan(speed) & np.isnan(state.anchor_mps[actor])
        fits &= both_unknown | ((slope >= slope_low) & (slope <= slope_high)
                                & (np.abs(change) <= _MAX_CHANGE_MPS * self._scale))
        return fits, (
            base, np.where(is_far, np.fmax(low, angle - half), low),
            np.where(is_far, np.fmin(high, angle + half), high),
            np.fmax(slope_low, slope - share), np.fmin(slope_high, slope + share),
            np.maximum(reach, distance))

    def _anchor(self, actor: Rows, time_s: Floats, position_xy: Floats, speed: Floats) -> None:
        """Begin the next segment of tracks."""
        state = self._state
        state.anchor_s[actor], state.anchor_xy[actor], state.anchor_mps[actor] = (
            time_s, position_xy, speed)
        state.base_xy[actor], state.reach[actor] = 0.0, 0.0
        state.low[actor] = state.slope_low[actor] = -np.inf
        state.high[actor] = state.slope_high[actor] = np.inf

    def _end(self, actor: Rows) -> None:
        """Make the last points of actors vertices if they are not vertices yet."""
        state = self._state
        ending = actor[state.last_s[actor] > state.anchor_s[actor]]
        self._emit(ending, state.last_s[ending], state.last_xy[ending], state.last_mps[ending],
                   is_joined=True)

    def _emit(self, actor: Rows, time_s: Floats, position_xy: Floats, speed: Floats, *,
              is_joined: bool) -> None:
        if not len(actor):
            return
        self._pieces.append((actor, time_s.copy(), position_xy.copy(), speed.copy(),
                             np.full(len(actor), is_joined)))
        self._n_vertices += len(actor)
        if len(self._pieces) > _MAX_PIECES:
            self._blocks.append(_joined(self._pieces))
            self._pieces = []
        if self._n_vertices > _MAX_VERTICES:
            self._n_vertices = 0
            self._scale *= 2.0


Values = Floats | npt.NDArray[np.float32]

# Value in a row of vertices at which the line is interrupted.
BREAK = -1


def segments(tracks: Tracks, chosen: Bools) -> tuple[Rows, Rows]:
    """
    Return the straight segments of the tracks of some actors.

    :param chosen: (A,) bool, the actors.
    :returns: vertices at the begin and at the end of each segment, (S,) int64 each.
    """
    end = np.flatnonzero(tracks.is_joined & chosen[tracks.actor])
    return end - 1, end


def polylines(tracks: Tracks, chosen: Bools) -> Rows:
    """
    Return the tracks of some actors as vertices with BREAK between them.

    :param chosen: (A,) bool, the actors.
    """
    rows = np.flatnonzero(chosen[tracks.actor])
    begins = np.flatnonzero(~tracks.is_joined[rows])
    lines: Rows = np.insert(rows, begins[1:], BREAK)
    return lines


def along(values: Values, lines: Rows) -> Floats:
    """
    Return the values of the vertices of :func:`polylines`.

    :param values: (V,) values of all vertices.
    :returns: (len(lines),) float64, NaN at each BREAK.
    """
    taken = values[lines].astype(np.float64)
    taken[lines == BREAK] = np.nan
    return taken

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

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.jumps import MAX_SPEED

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
    """V vertices of the tracks of all actors, one actor after the other, in order of time."""

    actor: Rows  # (V,) index
    time_s: Floats  # (V,) since the first frame
    position_xy: npt.NDArray[np.float32]  # (V, 2) m, global frame
    speed: npt.NDArray[np.float32]  # (V,) m/s, NaN unknown
    # (V,) whether a line connects it with the vertex before: not after an absence or a jump.
    is_joined: Bools
    error_m: float  # largest distance of a position from the track, m

    def are_beyond_reach(self) -> Bools:
        """Return (V,) which vertices no possible motion reaches or leaves: outside the limits."""
        moved = np.hypot(*np.diff(self.position_xy.astype(np.float64), axis=0).T)
        is_far = (np.diff(self.actor) == 0) & (
            moved > JUMP_M + MAX_SPEED * np.abs(np.diff(self.time_s)))
        # What another actor's track begins or ends with has one side only.
        is_beyond: Bools = np.zeros(len(self.actor), np.bool_)
        is_beyond[1:-1] = is_far[:-1] & is_far[1:]
        return is_beyond


def is_jump(moved_m: Floats, speed: Floats, period_s: Floats | float) -> Bools:
    """Return which actors jump between two instants; without a known speed there are no jumps."""
    # speed: (n,) the greater one of both instants, m/s, NaN unknown.
    reach = JUMP_M + JUMP_FACTOR * np.nan_to_num(speed, nan=np.inf) * period_s
    jumps: Bools = moved_m > reach
    return jumps


_POINT = np.dtype([('time_s', np.float64), ('xy', np.float64, 2), ('mps', np.float64)])
_VERTEX = np.dtype([('actor', np.int64), ('point', _POINT), ('is_joined', np.bool_)])
# The state of the track of an actor: the last vertex, the last point and the number of its frame;
# unit vector from the vertex, zero until a point is away from it; the sector, rad from that; the
# slopes of the speed, m/s2; greatest distance from the vertex, m.
_TRACK = np.dtype([
    ('anchor', _POINT), ('last', _POINT), ('frame', np.float64), ('base_xy', np.float64, 2),
    ('low', np.float64), ('high', np.float64), ('slope_low', np.float64),
    ('slope_high', np.float64), ('reach', np.float64), ('has_moved', np.bool_)])
_Records = npt.NDArray[np.void]
# More pieces are joined to a block, because each piece has some overhead.
_MAX_PIECES = 1024


def _new_tracks(size: int) -> _Records:
    """Return the state of ``size`` actors without points."""
    state = np.full(size, -np.inf, _TRACK)
    state['has_moved'] = False
    return state


class TrackBuilder:
    """Builds tracks from the instants of a recording, in their order."""

    def __init__(self) -> None:
        self._state = _new_tracks(64)
        self._n_frames = 0
        self._scale = 1.0
        self._pieces: list[_Records] = []
        self._blocks: list[_Records] = [np.empty(0, _VERTEX)]
        self._n_vertices = 0

    # Comparisons with NaN are false.
    @np.errstate(all='ignore')
    def add(self, time_s: float, actor: Rows, position_xy: Floats, speed: Floats) -> None:
        """Add an instant."""
        # time_s: since the first frame, above that of the instant before.
        # position_xy: (n, 2) m.
        # speed: (n,) m/s, NaN unknown.
        n_known = int(actor.max(initial=-1)) + 1
        if n_known > len(self._state):
            self._state = np.concatenate((
                self._state, _new_tracks(2 * n_known - len(self._state))))
        state = self._state
        state['has_moved'][actor[speed > _STANDING_MPS]] = True
        points = np.empty(len(actor), _POINT)
        points['time_s'], points['xy'], points['mps'] = time_s, position_xy, speed
        last = state['last'][actor]
        moved = np.hypot(*(position_xy - last['xy']).T)
        goes_on = (state['frame'][actor] == self._n_frames - 1) & ~is_jump(
            moved, np.fmax(speed, last['mps']), time_s - last['time_s'])
        # Absences and jumps end a track and begin the next.
        self._end(actor[~goes_on])
        self._emit(actor[~goes_on], points[~goes_on], is_joined=False)
        self._go_on(actor[goes_on], points[goes_on])
        state['last'][actor], state['frame'][actor] = points, self._n_frames
        self._n_frames += 1

    def finish(self, n_actors: int) -> tuple[Tracks, Bools]:
        """Return the tracks, and (A,) which actors have moved."""
        state = self._state
        self._end(np.arange(min(n_actors, len(state)), dtype=np.int64))
        vertices = np.concatenate([*self._blocks, *self._pieces])
        vertices = vertices[np.argsort(vertices['actor'], kind='stable')]
        points = vertices['point']
        has_moved = np.zeros(n_actors, np.bool_)
        has_moved[:len(state)] = state['has_moved'][:n_actors]
        return Tracks(vertices['actor'].copy(), points['time_s'].copy(),
                      points['xy'].astype(np.float32), points['mps'].astype(np.float32),
                      vertices['is_joined'].copy(), 2.0 * TOLERANCE_M * self._scale), has_moved

    def _go_on(self, actor: Rows, points: _Records) -> None:
        fits, _ = self._fit(actor, points)
        corners = actor[~fits]
        state = self._state
        self._emit(corners, state['last'][corners], is_joined=True)
        _, narrowed = self._fit(actor, points)
        for name, column in zip(('base_xy', 'low', 'high', 'slope_low', 'slope_high', 'reach'),
                                narrowed, strict=True):
            state[name][actor] = column

    def _fit(self, actor: Rows, points: _Records) -> tuple[Bools, tuple[Floats, ...]]:
        """Return which points may follow their anchors, and the sectors with these points."""
        state, tolerance = self._state[actor], TOLERANCE_M * self._scale
        anchor, speed = state['anchor'], points['mps']
        way = points['xy'] - anchor['xy']
        distance = np.hypot(*way.T)
        is_far = distance > tolerance
        base = state['base_xy']
        is_first = is_far & ~base.any(axis=1)
        base = np.where(is_first[:, None], way / distance[:, None], base)
        angle = np.arctan2(base[:, 0] * way[:, 1] - base[:, 1] * way[:, 0],
                           base[:, 0] * way[:, 0] + base[:, 1] * way[:, 1])
        half = np.arcsin(np.minimum(tolerance / distance, 1.0))
        low, high, reach = state['low'], state['high'], state['reach']
        fits = ~is_far | ((angle >= low) & (angle <= high))
        # The point must not go back by more than the tolerance.
        fits &= distance >= reach - tolerance
        elapsed, change = points['time_s'] - anchor['time_s'], speed - anchor['mps']
        slope, share = change / elapsed, TOLERANCE_MPS * self._scale / elapsed
        slope_low, slope_high = state['slope_low'], state['slope_high']
        both_unknown = np.isnan(speed) & np.isnan(anchor['mps'])
        fits &= both_unknown | ((slope >= slope_low) & (slope <= slope_high)
                                & (np.abs(change) <= _MAX_CHANGE_MPS * self._scale))
        return fits, (
            base, np.where(is_far, np.fmax(low, angle - half), low),
            np.where(is_far, np.fmin(high, angle + half), high),
            np.fmax(slope_low, slope - share), np.fmin(slope_high, slope + share),
            np.maximum(reach, distance))

    def _end(self, actor: Rows) -> None:
        """Make the last points of actors vertices if they are not vertices yet."""
        state = self._state[actor]
        is_open = state['last']['time_s'] > state['anchor']['time_s']
        self._emit(actor[is_open], state['last'][is_open], is_joined=True)

    def _emit(self, actor: Rows, points: _Records, *, is_joined: bool) -> None:
        """Add vertices, with which the next segments of their tracks begin."""
        if not len(actor):
            return
        state = self._state
        state['anchor'][actor] = points
        state['base_xy'][actor], state['reach'][actor] = 0.0, 0.0
        state['low'][actor] = state['slope_low'][actor] = -np.inf
        state['high'][actor] = state['slope_high'][actor] = np.inf
        vertices = np.empty(len(actor), _VERTEX)
        vertices['actor'], vertices['point'], vertices['is_joined'] = actor, points, is_joined
        self._pieces.append(vertices)
        self._n_vertices += len(actor)
        if len(self._pieces) > _MAX_PIECES:
            self._blocks.append(np.concatenate(self._pieces))
            self._pieces = []
        if self._n_vertices > _MAX_VERTICES:
            self._n_vertices = 0
            self._scale *= 2.0


Values = Floats | npt.NDArray[np.float32]

# Value in a row of vertices at which the line is interrupted.
BREAK = -1


def segments(tracks: Tracks, chosen: Bools) -> tuple[Rows, Rows]:
    """Return the straight segments of the tracks of some actors."""
    # Returns vertices at the begin and at the end of each segment, (S,) int64 each.
    end = np.flatnonzero(tracks.is_joined & chosen[tracks.actor])
    return end - 1, end


def polylines(tracks: Tracks, chosen: Bools) -> Rows:
    """Return the tracks of some actors as vertices with BREAK between them."""
    rows = np.flatnonzero(chosen[tracks.actor])
    begins = np.flatnonzero(~tracks.is_joined[rows])
    lines: Rows = np.insert(rows, begins[1:], BREAK)
    return lines


def along(values: Values, lines: Rows) -> Floats:
    """Return the values of the vertices of :func:`polylines`."""
    # values: (V,) values of all vertices.
    # Returns (len(lines),) float64, NaN at each BREAK.
    taken = values[lines].astype(np.float64)
    taken[lines == BREAK] = np.nan
    return taken

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Which speeds are lines over time: of many actors the ego's and its nearest, else a band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.tracks import segments
from state_sensor_ros.frame import Bools, Floats

# More lines cannot be told apart; of more actors, those that come nearest to the ego have lines.
MAX_LINES, _N_NEAREST = 12, 5
# Number of times at which the band has an edge.
_N_TIMES = 600


@dataclass(frozen=True, slots=True)
class SpeedBand:
    """
    The lines and the band of the speeds of A actors.

    ``has_line`` (A,); ``n_others`` number of moving actors in the band, 0 for no band; ``time_s``
    (T,) since the first frame; ``slowest``, ``median``, ``fastest`` (T,) m/s, NaN while none of
    the others has a known speed.
    """

    has_line: Bools
    n_others: int
    time_s: Floats
    slowest: Floats
    median: Floats
    fastest: Floats

    @property
    def text(self) -> str:
        """Return what the band is, for a legend."""
        return f'{self.n_others} others: slowest, median, fastest'


def speed_band(scene: Scene) -> SpeedBand:
    """
    Choose the lines; compute the band.

    :param scene: the recording.
    """
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

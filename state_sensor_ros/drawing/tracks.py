# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tracks of actors as lines of samples, interrupted where an actor was absent or jumped."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.frame import Bools, Floats, Rows

Values = Floats | npt.NDArray[np.float32]

# A larger distance between two instants is a jump: JUMP_M (m) plus JUMP_FACTOR times the distance
# at the actor's speed.
JUMP_M = 3.0
JUMP_FACTOR = 2.0
# An object that was never faster than this, m/s, is static, such as a sign or a cone.
STANDING_SPEED = 0.1
# In a row of samples: the line is interrupted.
BREAK = -1


def instants_of_samples(scene: Scene) -> Rows:
    """
    Return the instant of each sample.

    :param scene: the recording.
    :returns: (K,) int64, indices into ``scene.time_s``.
    """
    return np.repeat(np.arange(len(scene.time_s)), np.diff(scene.row_start))


def actors_in_motion(scene: Scene) -> Bools:
    """
    Return which actors have a line: all vehicles, and objects that moved.

    :param scene: the recording; an object moved if the speed of a sample is above STANDING_SPEED.
    :returns: (A,) bool.
    """
    moving = scene.is_vehicle.copy()
    with np.errstate(invalid='ignore'):
        moving[scene.actor[scene.speed > STANDING_SPEED]] = True
    return moving


def segments(scene: Scene, chosen: Bools) -> tuple[Rows, Rows]:
    """
    Return the straight segments of the tracks of some actors.

    :param chosen: (A,) bool, the actors.
    :returns: samples at the begin and at the end of each segment, (S,) int64 each.
    """
    rows, is_joined = _tracks(scene, chosen)
    return rows[:-1][is_joined], rows[1:][is_joined]


def polylines(scene: Scene, chosen: Bools, max_points: int) -> Rows:
    """
    Return the tracks of some actors as samples with BREAK between them.

    :param chosen: (A,) bool, the actors.
    :param max_points: above it samples are left out evenly; the result may be slightly longer.
    """
    rows, is_joined = _tracks(scene, chosen)
    if not len(rows):
        return rows
    stride = -(-len(rows) // max_points)
    begins = np.flatnonzero(np.append(True, ~is_joined))
    lengths = np.diff(np.append(begins, len(rows)))
    place = np.arange(len(rows)) - np.repeat(begins, lengths)
    is_last = np.append(~is_joined, True)
    keep = (place % stride == 0) | is_last
    breaks = np.cumsum(keep)[is_last][:-1]
    lines: Rows = np.insert(rows[keep], breaks, BREAK)
    return lines


def along(values: Values, lines: Rows) -> Floats:
    """
    Return the values of the samples of :func:`polylines`.

    :param values: (K,) of all samples.
    :returns: (len(lines),) float64, NaN at each BREAK.
    """
    taken = values[lines].astype(np.float64)
    taken[lines == BREAK] = np.nan
    return taken


def _tracks(scene: Scene, chosen: Bools) -> tuple[Rows, Bools]:
    """
    Return the samples of some actors, one actor after the other, in order of time.

    :returns: samples (n,), and for each but the last (n - 1,) whether a line joins it to the next
        one: same actor, next instant, no jump.
    """
    instant = instants_of_samples(scene)
    rows = np.flatnonzero(chosen[scene.actor])
    rows = rows[np.lexsort((instant[rows], scene.actor[rows]))]
    begin, end = rows[:-1], rows[1:]
    is_joined = (scene.actor[begin] == scene.actor[end]) & (instant[end] == instant[begin] + 1)
    period_s = scene.time_s[instant[end]] - scene.time_s[instant[begin]]
    moved = np.linalg.norm(scene.position_xy[end] - scene.position_xy[begin], axis=1)
    # Without a known speed there are no jumps.
    speed = np.nan_to_num(np.fmax(scene.speed[begin], scene.speed[end]), nan=np.inf)
    is_joined &= moved <= JUMP_M + JUMP_FACTOR * speed * period_s
    return rows, is_joined

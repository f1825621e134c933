# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The lines of a scene: tracks over ground and speeds over time, broken where an actor was away.

May know: scenes. Must not know: what draws them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.frame import Bools, Floats, Rows

Column = Floats | npt.NDArray[np.float32]

# Farther than this from one instant to the next is a jump, not a ride: slack (m) and factor on
# what the speeds explain.
JUMP_M = 3.0
JUMP_FACTOR = 2.0
# An object that was never faster than this stands: signs, cones. m/s.
STANDING_SPEED = 0.1
# Stands in a row of samples for: lift the pen.
BREAK = -1


def instants_of_samples(scene: Scene) -> Rows:
    """Return the instant that each sample belongs to: (K,) int64."""
    return np.repeat(np.arange(len(scene.time_s)), np.diff(scene.row_start))


def actors_in_motion(scene: Scene) -> Bools:
    """Return who is worth a line: (A,) bool, all vehicles and whatever else ever moved."""
    moving = scene.is_vehicle.copy()
    with np.errstate(invalid='ignore'):
        moving[scene.actor[scene.speed > STANDING_SPEED]] = True
    return moving


def segments(scene: Scene, who: Bools) -> tuple[Rows, Rows]:
    """
    Return the pieces of the tracks of some actors.

    :param who: (A,) bool.
    :returns: samples at the begin and at the end of each piece, (S,) int64 each.
    """
    rows, is_joined = _tracks(scene, who)
    return rows[:-1][is_joined], rows[1:][is_joined]


def polylines(scene: Scene, who: Bools, max_points: int) -> Rows:
    """
    Return the tracks of some actors as rows of samples with BREAK between them.

    :param who: (A,) bool.
    :param max_points: samples are left out, evenly, until there are about so few.
    """
    rows, is_joined = _tracks(scene, who)
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


def along(values: Column, lines: Rows) -> Floats:
    """
    Return the values of samples along :func:`polylines`.

    :param values: (K,) of all samples.
    :returns: float64, NaN where the pen is lifted.
    """
    taken = values[lines].astype(np.float64)
    taken[lines == BREAK] = np.nan
    return taken


def _tracks(scene: Scene, who: Bools) -> tuple[Rows, Bools]:
    """
    Return the samples of the actors in ``who``, one actor after the other, in order of time.

    :returns: rows (n,) and, between two that follow each other (n - 1,), whether the first is
        joined to the second: the same actor, the next instant, no jump.
    """
    instant = instants_of_samples(scene)
    rows = np.flatnonzero(who[scene.actor])
    rows = rows[np.lexsort((instant[rows], scene.actor[rows]))]
    begin, end = rows[:-1], rows[1:]
    is_joined = (scene.actor[begin] == scene.actor[end]) & (instant[end] == instant[begin] + 1)
    period_s = scene.time_s[instant[end]] - scene.time_s[instant[begin]]
    moved = np.linalg.norm(scene.position_xy[end] - scene.position_xy[begin], axis=1)
    # Where no speed is known, nothing counts as a jump.
    speed = np.nan_to_num(np.fmax(scene.speed[begin], scene.speed[end]), nan=np.inf)
    is_joined &= moved <= JUMP_M + JUMP_FACTOR * speed * period_s
    return rows, is_joined

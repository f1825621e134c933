# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Wheel entries to wheels and back: three index conventions (doc/protocol/frames.md#wheels).

Wheels are 0 front left, 1 front right, 2 rear left, 3 rear right. Wheel of each entry::

    convention        entry ids   poses of the entries belong to      speeds belong to
    usual             0 1 2 3     FL FR RL RR                         FL FR RL RR
    front, alone      1 2         FL FR                               FL FR RL RR, a list apart
    shifted samples   0 1 2 3     -- FL FR RL                         FL FR RL RR

A vehicle is a shifted sample when no entry has a position, entry 0 is an identity rotation and yet
its wheel turns (> 0.1 rad/s). Its rows, with poses p and speeds s::

    wheel            FL    FR    RL    RR
    entry read       p0 s0 p1 s1 p2 s2 p3 s3
    pose of wheel    p1    p2    p3    p0     roll by one; p0 is kept for writing, marked unknown
    speed of wheel   s0    s1    s2    s3
    source_id        1     2     3     -1     the id of the entry with the pose
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Floats, FRONT_RIGHT, Ints, NO_SOURCE_ID, Rows, Wheels
from state_sensor_ros.rep103 import from_rep103_wheels, to_rep103_wheels
from state_sensor_ros.simulators import json_text
from state_sensor_ros.simulators.monodrive.schema import Flat, NAN, Number, Wheel

# Entry 0 of a shifted sample is an identity rotation although its wheel turns.
_IDENTITY_WITHIN = 1e-6
_TURNING_ABOVE = 0.1
# Source ids of the wheels of a shifted sample; entry 0 belongs to no wheel.
_SHIFTED_SOURCE_IDS = (1, 2, 3, NO_SOURCE_ID)
_NO_POSE = (NAN,) * 7
_IDENTITY = np.array((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
_POSITION, _ORIENTATION, _POSE, _SPEED = slice(0, 3), slice(3, 7), slice(0, 7), 7

WheelNumbers = npt.NDArray[np.uint8]


def nested_wheels(owned: Sequence[Sequence[Wheel]], i_first: int) -> Wheels:
    """Collect the wheels of each vehicle of v2; ``i_first``: row of the first vehicle."""
    wheels = [*chain.from_iterable(owned)]
    numbers: list[Number] = []
    for wheel in wheels:
        p, q = wheel.pose.position, wheel.pose.orientation
        numbers += (p.x, p.y, p.z, q.x, q.y, q.z, q.w, wheel.speed)
    entries = _entries(i_first, tuple(map(len, owned)), tuple([wheel.id for wheel in wheels]))
    return _placed(*entries, json_text.rows_of(numbers, 8))


# Most frames of a stream have the same entries: the arrays are shared.
@lru_cache(maxsize=8)
def _entries(i_first: int, counts: tuple[int, ...],
             ids: tuple[int, ...]) -> tuple[Rows, WheelNumbers, Ints, Rows]:
    """Return the first four arguments of :func:`_placed`, read-only."""
    actor, source_id = np.repeat(np.arange(i_first, i_first + len(counts)), counts), np.array(
        ids, np.int64)
    if len(set(zip(actor.tolist(), ids, strict=True))) < len(ids):
        raise DecodeError('wheels', 'an id twice', 'each id once per vehicle')
    # Entries 1 and 2 alone are the front wheels, else ids are wheels.
    wheel = source_id.copy()
    pairs = _groups(actor, source_id, 2)
    wheel[pairs[(source_id[pairs] == (1, 2)).all(1)]] -= 1
    shared = (actor, wheel.astype(np.uint8), source_id.astype(np.int32),
              _groups(actor, source_id, 4))
    for column in shared:
        column.setflags(write=False)
    return shared


def flat_wheels(actors: Iterable[Flat]) -> Wheels:
    """Collect the wheels of v1, whose speeds are a list apart from the entries."""
    rows: list[tuple[int, int, int]] = []
    numbers: list[Number] = []
    for i_actor, actor in enumerate(actors):
        speeds = actor.wheel_speed
        entries = {entry.id: (NAN, NAN, NAN, *entry.orientation) for entry in actor.wheels}
        if len(entries) < len(actor.wheels):
            raise DecodeError('wheels', 'an id twice', 'each id once per actor')
        first = 1 if set(entries) == {1, 2} else 0
        for wheel in sorted({each - first for each in entries} | set(range(len(speeds)))):
            source_id = wheel + first if wheel + first in entries else NO_SOURCE_ID
            rows.append((i_actor, wheel, source_id))
            numbers += entries.get(source_id, _NO_POSE)
            numbers.append(speeds[wheel] if wheel < len(speeds) else NAN)
    actor_rows, wheels, ids = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    return _placed(actor_rows, wheels.astype(np.uint8), ids.astype(np.int32),
                   _groups(actor_rows, wheels, 4), json_text.rows_of(numbers, 8))


def _placed(actor: Rows, wheel: WheelNumbers, source_id: Ints, fours: Rows,
            source: Floats) -> Wheels:
    """Make wheels of entries, and move the poses of shifted samples to their wheels."""
    # fours: (K, 4), by ascending wheel, the rows of the actors that have four wheels.
    # source: (W, 8) position cm, orientation xyzw, speed; all NaN when absent.
    rows = to_rep103_wheels(source)
    position_known, orientation_known = np.ones((2, len(actor)), np.bool_)
    unknown = np.isnan(source)
    if unknown.any():
        position_known, orientation_known = (
            np.logical_not(unknown[:, part].any(1)) for part in (_POSITION, _ORIENTATION))
        for part in (_POSITION, _ORIENTATION):
            rows[unknown[:, part].all(1), part] = _IDENTITY[part]
    shifted = _shifted(fours, source_id, source)
    if len(shifted):
        # Poses move by one wheel, speeds stay. The pose of entry 0 is stored with the rear right
        # wheel, marked as unknown, so that it can be written again.
        entries = np.roll(shifted, -1, axis=1)
        rows[shifted, _POSE] = rows[entries, _POSE]
        orientation_known[shifted] = orientation_known[entries]
        orientation_known[shifted[:, -1]] = False
        position_known[shifted] = False
        source_id = source_id.copy()
        source_id[shifted] = _SHIFTED_SOURCE_IDS
    return Wheels(actor, wheel, source_id, rows[:, _POSITION], rows[:, _ORIENTATION],
                  position_known, orientation_known, rows[:, _SPEED])


def _groups(actor: Rows, wheel: Rows, size: int) -> Rows:
    """Return (K, size), by ascending wheel, the rows of actors that have ``size`` wheels."""
    starts = np.flatnonzero(np.diff(actor, prepend=-1))
    counts = np.diff(starts, append=len(actor))
    groups = starts[counts == size][:, None] + np.arange(size)
    return np.take_along_axis(groups, np.argsort(wheel[groups], axis=1), axis=1)


def _shifted(fours: Rows, source_id: Ints, source: Floats) -> Rows:
    """Return the vehicles of ``fours`` that are shifted samples."""
    # Most frames have none: that is seen from the first entries' x, which is neither 0 nor NaN.
    fours = fours[np.logical_not(np.abs(source[fours[:, 0], 0]) > 0.0)]
    first, positions = source[fours[:, 0]], source[fours, _POSITION]
    # Shifted samples have all orientations; a frame converted from v1 to v2 may have two.
    shifted: Rows = fours[
        (np.abs(first[:, 3:6]) < _IDENTITY_WITHIN).all(1)
        & (np.abs(first[:, _SPEED]) > _TURNING_ABOVE)
        & (source_id[fours] == np.arange(4)).all(1)
        & ((positions == 0.0) | np.isnan(positions)).all((1, 2))
        & ~np.isnan(source[fours, _ORIENTATION]).any((1, 2))]
    return shifted


def wheel_entries(wheels: Wheels, *, from_flat: bool | None, to_flat: bool) -> tuple[Ints, Floats]:
    """Return the entries that reading would turn into ``wheels``."""
    # from_flat: whether the frame was read from v0 or v1; None for one of another simulator, whose
    # ids have another meaning.
    # Returns ids (W,), -1 for wheels without an entry; (W, 8) source, position cm, orientation
    # xyzw, speed rad/s, all NaN when absent.
    wheel = wheels.wheel.astype(np.int32)
    # Recordings of v1 have entries for the front wheels only, and begin with 1.
    ids = wheels.source_id.copy() if from_flat == to_flat else np.where(
        wheel <= FRONT_RIGHT, wheel + 1, NO_SOURCE_ID) if to_flat else wheel
    source = from_rep103_wheels(np.hstack((
        wheels.position_xyz, wheels.orientation_xyzw, wheels.speed[:, None])))
    stored = source.copy()
    for part, known in ((_POSITION, wheels.position_known),
                        (_ORIENTATION, wheels.orientation_known)):
        # Unknown without a null among the numbers: the pose was absent.
        source[~known & ~np.isnan(stored[:, part]).any(1), part] = NAN
    fours = _groups(wheels.actor, wheels.wheel.astype(np.int64), 4)
    shifted = fours[(wheels.source_id[fours] == _SHIFTED_SOURCE_IDS).all(1)]
    source[shifted, _POSE] = stored[np.roll(shifted, 1, axis=1), _POSE]
    ids[shifted] = np.arange(4)
    return ids, source

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Which wheel an entry means: the three index conventions of PROTOCOL 4.7.

May know: ids, their order, where poses are missing. Must not know: axes and units of the result
(rep103.py), how a frame was parsed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import (
    Floats,
    FRONT_RIGHT,
    Ints,
    NO_SOURCE_ID,
    REAR_RIGHT,
    Rows,
    Wheels,
)
from state_sensor_ros.json_values import as_rows, NAN, Number
from state_sensor_ros.monodrive.generations.wire import FlatActor, Vehicle, WHEEL_MAX
from state_sensor_ros.rep103 import from_rep103_wheels, to_rep103_wheels

# PROTOCOL 4.7: wheel 0 of a shifted sample is an identity rotation although it turns.
_IDENTITY_WITHIN = 1e-6
_TURNING_ABOVE = 0.1

# Source ids of the wheels of a shifted sample; entry 0 belongs to none of them.
_SHIFTED_SOURCE_IDS = (1, 2, 3, NO_SOURCE_ID)

_NO_POSE = (NAN,) * 7
_IDENTITY = np.array((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
_POSITION, _ORIENTATION, _POSE, _SPEED = slice(0, 3), slice(3, 7), slice(0, 7), 7


def read_wheels(vehicles: Iterable[Vehicle], i_first: int) -> Wheels:
    """
    Collect the wheels of v2.

    :param vehicles: in the order of the frame.
    :param i_first: row of the first of them.
    :raises DecodeError: where two wheels of a vehicle have the same id.
    """
    actors: list[int] = []
    ids: list[int] = []
    numbers: list[Number] = []
    extend = numbers.extend
    for i_actor, vehicle in enumerate(vehicles, i_first):
        for wheel in vehicle.wheels:
            p, q = wheel.pose.position, wheel.pose.orientation
            actors.append(i_actor)
            ids.append(wheel.id)
            extend((p.x, p.y, p.z, q.x, q.y, q.z, q.w, wheel.speed))
    actor, entry_ids = np.array(actors, np.int64), np.array(ids, np.int64)
    source_ids, rows = entry_ids.astype(np.int32), as_rows(numbers, 8)
    if _all_in_order(actor, ids):
        every_four = np.arange(len(ids)).reshape(-1, 4)
        return _placed(actor, entry_ids, source_ids, rows, every_four)
    if len(np.unique(actor * (WHEEL_MAX + 1) + entry_ids)) < len(actor):
        raise DecodeError('wheels', 'an id twice', 'each id once a vehicle')
    return _placed(actor, _front_wheels_alone(actor, entry_ids), source_ids, rows,
                   _groups(actor, entry_ids, 4))


def _all_in_order(actor: Rows, ids: list[int]) -> bool:
    """Tell whether every actor has wheels 0 to 3, as nearly all have; saves most of the time."""
    return ids == [0, 1, 2, 3] * (len(ids) // 4) and bool((actor[0::4] == actor[3::4]).all())


def read_flat_wheels(actors: Iterable[FlatActor]) -> Wheels:
    """
    Collect the wheels of v0 and v1, whose speeds are a list apart from the entries.

    :param actors: in the order of the frame.
    :raises DecodeError: where two entries of an actor have the same id.
    """
    rows: list[int] = []
    wheel_ids: list[int] = []
    source_ids: list[int] = []
    numbers: list[Number] = []
    for i_actor, actor in enumerate(actors):
        if not actor.wheels and not actor.wheel_speed:
            continue
        entries = {entry.id: (NAN, NAN, NAN, *entry.orientation) for entry in actor.wheels}
        if len(entries) < len(actor.wheels):
            raise DecodeError('wheels', 'an id twice', 'each id once an actor')
        for wheel, source_id in _source_ids(entries.keys(), len(actor.wheel_speed)).items():
            rows.append(i_actor)
            wheel_ids.append(wheel)
            source_ids.append(source_id)
            numbers += entries.get(source_id, _NO_POSE)
            numbers.append(actor.wheel_speed[wheel] if wheel < len(actor.wheel_speed) else NAN)
    actor_rows, wheels = np.array(rows, np.int64), np.array(wheel_ids, np.int64)
    return _placed(actor_rows, wheels, np.array(source_ids, np.int32), as_rows(numbers, 8),
                   _groups(actor_rows, wheels, 4))


def _source_ids(ids: Iterable[int], n_speeds: int) -> dict[int, int]:
    """Map each wheel of a v1 actor, ascending, to the id of its entry."""
    first = 1 if set(ids) == {1, 2} else 0
    by_wheel = {wheel_id - first: wheel_id for wheel_id in ids}
    return {wheel: by_wheel.get(wheel, NO_SOURCE_ID)
            for wheel in sorted(by_wheel.keys() | set(range(n_speeds)))}


def _placed(actor: Rows, wheel: Rows, source_id: Ints, source: Floats, fours: Rows) -> Wheels:
    """
    Make wheels of entries that are in the right place, or all one too late.

    :param source: (W, 8) position cm, orientation xyzw, speed; all NaN where absent.
    :param fours: (K, 4), by ascending wheel, the wheels of the actors that have four.
    """
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
        # Poses move one wheel down, speeds stay. What entry 0 has goes to the wheel that has no
        # entry, where nobody takes it for known, so that it can be written again.
        entries = np.roll(shifted, -1, axis=1)
        rows[shifted, _POSE] = rows[entries, _POSE]
        orientation_known[shifted] = orientation_known[entries]
        orientation_known[shifted[:, REAR_RIGHT]] = False
        position_known[shifted] = False
        source_id[shifted] = _SHIFTED_SOURCE_IDS
    return Wheels(actor, wheel.astype(np.uint8), source_id, rows[:, _POSITION],
                  rows[:, _ORIENTATION], position_known, orientation_known, rows[:, _SPEED])


def _groups(actor: Rows, wheel: Rows, size: int) -> Rows:
    """Return (K, size), by ascending wheel, the wheels of actors that have ``size`` of them."""
    starts = np.flatnonzero(np.diff(actor, prepend=-1))
    counts = np.diff(starts, append=len(actor))
    groups = starts[counts == size][:, None] + np.arange(size)
    return np.take_along_axis(groups, np.argsort(wheel[groups], axis=1), axis=1)


def _front_wheels_alone(actor: Rows, ids: Rows) -> Rows:
    """Return wheels for ids: entries 1 and 2 alone are the front wheels, else ids are wheels."""
    pairs = _groups(actor, ids, 2)
    wheel = ids.copy()
    wheel[pairs[(ids[pairs] == (1, 2)).all(1)]] -= 1
    return wheel


def _shifted(fours: Rows, source_id: Ints, source: Floats) -> Rows:
    """Return those of ``fours`` whose entries are one too late."""
    first = source[fours[:, 0]]
    still = (np.abs(first[:, 3:6]) < _IDENTITY_WITHIN).all(1)
    fours = fours[still & (np.abs(first[:, _SPEED]) > _TURNING_ABOVE)]
    if not len(fours):
        return fours
    fours = fours[(source_id[fours] == np.arange(4)).all(1)]
    positions = source[fours, _POSITION]
    unplaced = ((positions == 0.0) | np.isnan(positions)).all((1, 2))
    # All samples have all orientations; a frame of v1 made into one of v2 may have two.
    oriented = ~np.isnan(source[fours, _ORIENTATION]).any((1, 2))
    shifted: Rows = fours[unplaced & oriented]
    return shifted


def entry_ids(wheels: Wheels, *, from_flat: bool, to_flat: bool) -> Ints:
    """
    Choose the ids of the entries to write.

    :param from_flat: whether the frame came from v0 or v1.
    :param to_flat: whether it goes there.
    :returns: (W,) int32; -1 where there is to be no entry.
    """
    if from_flat == to_flat:
        return wheels.source_id
    wheel = wheels.wheel.astype(np.int32)
    # Recordings of v1 have entries for the front wheels only, and begin with 1.
    return np.where(wheel <= FRONT_RIGHT, wheel + 1, NO_SOURCE_ID) if to_flat else wheel


def wheel_entries(wheels: Wheels, ids: Ints) -> tuple[Ints, Floats]:
    """
    Undo what reading does.

    :param ids: (W,) int32, of the entries to write, -1 where there is to be none.
    :returns: ids (W,), with those of shifted samples put right; (W, 8) source, position cm,
        orientation xyzw, speed rad/s, all NaN where absent.
    """
    source = from_rep103_wheels(np.hstack((
        wheels.position_xyz, wheels.orientation_xyzw, wheels.speed[:, None])))
    ids, stored = ids.copy(), source.copy()
    for part, known in ((_POSITION, wheels.position_known),
                        (_ORIENTATION, wheels.orientation_known)):
        # Not known, and not so because of a null in it: there was nothing.
        source[~known & ~np.isnan(stored[:, part]).any(1), part] = NAN
    fours = _groups(wheels.actor, wheels.wheel.astype(np.int64), 4)
    shifted = fours[(wheels.source_id[fours] == _SHIFTED_SOURCE_IDS).all(1)]
    source[shifted, _POSE] = stored[np.roll(shifted, 1, axis=1), _POSE]
    ids[shifted] = np.arange(4)
    return ids, source

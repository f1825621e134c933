# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Outliers: values of an actor, or of the clock, in one frame that fit neither frame beside it.

A value is an outlier if it changes by more than is possible into its frame and out of it again,
while both neighbors fit each other; in the first or last frame of an actor, if it changes by far
more, and the other side of its only neighbor is ordinary. A change that stays, such as a crash or
a teleport, is none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
import math
from typing import Generic, TypeVar

import numpy as np

from state_sensor_ros.frame import Bools, DERIVED_VELOCITY, Floats, Frame, KIND_VEHICLE, Rows
from state_sensor_ros.texts import counted, figure

Place = TypeVar('Place')

# No road vehicle changes its speed by more, m/s2: cars of Formula 1 brake with up to 6 g.
MAX_ACCELERATION = 60.0
# Beside that, m/s: rounded velocities at high rates.
_SPEED_NOISE = 0.2
# An actor is elsewhere than its velocity leads to by more than this, m, and that acceleration;
# without a velocity, by more than it goes at this speed, m/s.
_NOISE_M, _MAX_SPEED = 2.0, 70.0
# A vehicle does not turn by more in a step, rad and rad/s2, at most the third, rad; at the ends of
# its track also at this rate, rad/s.
_TURN, _TURN_ACCELERATION, _MOST_TURN, _TURN_RATE = 0.05, 10.0, 1.0, 2.0
_YAW_RATE = 6.0  # rad/s, a change of the yaw rate
_SIZE_M = 0.5  # a change of an edge of the box, or of the distance of its middle
# A step of the clock at an end of a recording, s, and in steps beside it.
_MAX_STEP_S, _MAX_STEPS = 3600.0, 1000.0
POSITION, HEADING, SPEED, YAW_RATE, BOX, CLOCK = (
    'position', 'heading', 'speed', 'yaw rate', 'box', 'clock')
_POSES, _VELOCITIES = (POSITION, HEADING), (SPEED, YAW_RATE)
# Changes that count at the ends of a track.
_FAR = ', far'
_KINDS = (*_POSES, *_VELOCITIES, BOX)
_NOTHING: dict[str, frozenset[str]] = {}


@dataclass(slots=True)
class Jumps(Generic[Place]):
    """Outliers of one kind: their count, the place, frame, name and value of the first."""

    count: int
    place: Place
    frame: int
    name: str
    value: str


@dataclass(slots=True, eq=False)
class _Entry(Generic[Place]):
    frame: Frame
    place: Place
    number: int
    # Whether the clock begins another run; names of the actors by kind of impossible change into
    # this frame.
    begins: bool = False
    wild: dict[str, frozenset[str]] = field(default_factory=lambda: _NOTHING)
    _rows: dict[str, int] | None = None

    @property
    def rows(self) -> dict[str, int]:
        if self._rows is None:
            self._rows = {name: row for row, name in enumerate(self.frame.names)}
        return self._rows

    def repeats(self, other: _Entry[Place] | None) -> bool:
        return other is not None and self.frame.game_time == other.frame.game_time

    def wild_of(self, kind: str) -> frozenset[str]:
        return self.wild.get(kind, frozenset())


class Outliers(Generic[Place]):
    """
    Frames in which outliers are unknown, two frames after they were added.

    A heading that is an outlier is NaN, a position or box makes the position NaN, a time
    ``game_time`` and all positions.
    """

    def __init__(self) -> None:
        self.jumps: dict[str, Jumps[Place]] = {}
        self._n_frames = 0
        self._clock: deque[_Entry[Place] | None] = deque([None, None])
        self._values: deque[_Entry[Place] | None] = deque([None, None])
        self._last: _Entry[Place] | None = None

    def add(self, frame: Frame, place: Place) -> list[tuple[Frame, Place]]:
        """Add a frame and its place; return those that are complete now."""
        self._n_frames += 1
        return self._push(_Entry(frame, place, self._n_frames - 1))

    def finish(self) -> list[tuple[Frame, Place]]:
        """Return the remaining frames."""
        found = [*self._push(None), *self._push(None)]
        for _ in range(2):
            found += self._push_values(None)
        return found

    @property
    def lines(self) -> list[str]:
        """Return a line for each kind of outlier."""
        return [f'{counted(jumps.count, "jump")} of the {kind}, '
                f'{"the first " if jumps.count > 1 else ""}{jumps.value} '
                f'({jumps.name + ", " if jumps.name else ""}frame {jumps.frame})'
                for kind, jumps in self.jumps.items()]

    def _push(self, entry: _Entry[Place] | None) -> list[tuple[Frame, Place]]:
        self._clock.append(entry)
        if len(self._clock) < 5:
            return []
        found = tuple(self._clock)
        self._clock.popleft()
        if found[2] is None:
            return []
        checked = found[2]
        if _is_clock_wild([math.nan if each is None else each.frame.game_time
                           for each in found]):
            self._note(CLOCK, checked, '', f'{checked.frame.game_time:.6g} s')
            checked.frame = _blank(checked.frame, range(checked.frame.n_actors), (), (),
                                   game_time=math.nan)
        return self._push_values(checked)

    def _push_values(self, entry: _Entry[Place] | None) -> list[tuple[Frame, Place]]:
        if entry is not None and not math.isnan(entry.frame.game_time):
            if self._last is not None:
                entry.begins = entry.frame.begins_run(
                    self._last.frame.game_time, self._last.frame.identity)
                # A repeated frame has the changes of the one before.
                entry.wild = _NOTHING if entry.begins else self._last.wild \
                    if entry.repeats(self._last) else _changes(self._last, entry)
            self._last = entry
        self._values.append(entry)
        if len(self._values) < 5:
            return []
        first, before, checked, after, last = self._values
        self._values.popleft()
        if checked is None:
            return []
        if any(each is not None and each.wild for each in (before, checked, after, last)):
            checked.frame = self._checked(first, before, checked, after, last)
        return [(checked.frame, checked.place)]

    def _checked(self, first: _Entry[Place] | None, before: _Entry[Place] | None,
                 entry: _Entry[Place], after: _Entry[Place] | None,
                 last: _Entry[Place] | None) -> Frame:
        """Return the frame of an entry without outliers."""
        is_repeated = entry.repeats(before) and not entry.begins
        first, before, after, last = _neighbors(first, before, entry, after, last)
        blank: dict[str, set[int]] = {kind: set() for kind in _KINDS}
        frame = entry.frame
        for kind in _KINDS:
            into = entry.wild_of(kind)
            out = frozenset() if after is None else after.wild_of(kind)
            for name in (into | out) & entry.rows.keys():
                row = entry.rows[name]
                if not _is_outlier(kind, name, first, before, entry, after, last) or (
                        kind == BOX and any(row in blank[pose] for pose in _POSES)):
                    continue
                blank[kind].add(row)
                if not is_repeated:
                    self._note(kind, entry, name, _value(kind, frame, row))
        # Velocities may be derived from a pose that is an outlier.
        for kind in _VELOCITIES:
            for name in (entry.wild_of(kind) | (
                    frozenset() if after is None else after.wild_of(kind))) & entry.rows.keys():
                if any(_is_spike(pose, name, *triple) for pose in _POSES for triple in (
                        (first, before, entry), (before, entry, after), (entry, after, last))):
                    blank[kind].add(entry.rows[name])
        return _blank(frame, blank[POSITION] | blank[BOX], blank[HEADING],
                      blank[SPEED] | blank[YAW_RATE]) if any(blank.values()) else frame

    def _note(self, kind: str, entry: _Entry[Place], name: str, value: str) -> None:
        known = self.jumps.setdefault(kind, Jumps(0, entry.place, entry.number, name, value))
        known.count += 1


def without_outliers(frames: Iterable[Frame]) -> Iterator[Frame]:
    """Yield frames in which outliers are unknown."""
    outliers = Outliers[None]()
    for frame in frames:
        for found, _ in outliers.add(frame, None):
            yield found
    for found, _ in outliers.finish():
        yield found


def _neighbors(first: _Entry[Place] | None, before: _Entry[Place] | None, entry: _Entry[Place],
               after: _Entry[Place] | None, last: _Entry[Place] | None,
               ) -> tuple[_Entry[Place] | None, ...]:
    """Return the two frames before and after one in its run, without repeated ones beside it."""
    if entry.begins:
        first = before = None
    elif entry.repeats(before):
        first, before = None, None if before is not None and before.begins else first
    elif before is not None and before.begins:
        first = None
    if after is None or after.begins:
        after = last = None
    elif after.repeats(entry):
        after, last = last, None
    return first, before, None if after is not None and after.begins else after, \
        None if last is not None and last.begins else last


def _is_clock_wild(times: list[float]) -> bool:
    """Return whether the middle one of five times is an outlier; NaN for no frame."""
    first, before, now, after, last = times
    if before < after:
        return not before <= now <= after and not math.isnan(now)
    limits = (_MAX_STEP_S, _MAX_STEPS * (last - after)), (_MAX_STEP_S, _MAX_STEPS * (
        before - first))
    return (math.isnan(before) and last > after and abs(after - now) > max(limits[0])) or (
        math.isnan(after) and before > first and abs(now - before) > max(limits[1]))


def _is_spike(kind: str, name: str, before: _Entry[Place] | None, entry: _Entry[Place] | None,
              after: _Entry[Place] | None) -> bool:
    return before is not None and entry is not None and after is not None \
        and name in entry.wild_of(kind) and name in after.wild_of(kind) \
        and name in before.rows and name not in _changes(before, after, name, 2).get(kind, ())


def _is_outlier(kind: str, name: str, first: _Entry[Place] | None,
                before: _Entry[Place] | None, entry: _Entry[Place],
                after: _Entry[Place] | None, last: _Entry[Place] | None) -> bool:
    has_before, has_after = (each is not None and name in each.rows for each in (before, after))
    if (has_before and has_after) or (kind == BOX and math.isnan(
            _boxes_of(entry.frame)[entry.rows[name], 0])):
        return _is_spike(kind, name, before, entry, after)
    if has_after:
        return after is not None and name in after.wild_of(kind + _FAR) and last is not None \
            and name in last.rows and name not in last.wild_of(kind)
    return before is not None and name in entry.wild_of(kind + _FAR) and first is not None \
        and name in first.rows and name not in before.wild_of(kind)


# Overflow and NaN of unusual numbers are no change.
@np.errstate(all='ignore')
def _changes(before: _Entry[Place], now: _Entry[Place], name: str = '',
             n_steps: int = 1) -> dict[str, frozenset[str]]:
    """Return the names of the actors with an impossible change, by kind; of one ``name``."""
    # n_steps: number of steps; between neighbors, the change of one of them is possible.
    rows: tuple[Rows | slice, Rows | slice]
    if not name and before.frame.names == now.frame.names:
        rows, names = (slice(None), slice(None)), now.frame.names
    else:
        names = (name,) if name else tuple(
            each for each in now.frame.names if each in before.rows)
        rows = (np.array([before.rows[each] for each in names], np.int64),
                np.array([now.rows[each] for each in names], np.int64))
    found = {kind: are_wild for kind, are_wild in _wild_changes(
        before.frame, now.frame, *rows, n_steps=n_steps).items() if are_wild.any()}
    return {kind: frozenset(names[i] for i in np.flatnonzero(are_wild).tolist())
            for kind, are_wild in found.items()} if found else _NOTHING


def _wild_changes(last: Frame, frame: Frame, rows_last: Rows | slice, rows: Rows | slice,
                  *, n_steps: int) -> dict[str, Bools]:
    elapsed = frame.game_time - last.game_time
    old, new = (np.where(each.has_pose()[some][:, None], each.kinematics[some], np.nan)
                for each, some in ((last, rows_last), (frame, rows)))
    step_s = elapsed / n_steps
    reach = MAX_ACCELERATION * step_s
    known = ~(last.is_derived(DERIVED_VELOCITY)[rows_last]
              | frame.is_derived(DERIVED_VELOCITY)[rows])
    moved = new[:, :3] - old[:, :3]
    errors = [np.where(known, _norm(moved - elapsed * each[:, 7:10]), np.nan)
              for each in (old, new)]
    error = np.fmin(*errors)
    turned = 2.0 * np.arccos(np.minimum(np.abs(np.einsum('ij,ij->i', old[:, 3:7], new[:, 3:7])) / (
        _norm(old[:, 3:7]) * _norm(new[:, 3:7])), 1.0))
    speeds = _norm(new[:, 7:10] - old[:, 7:10])
    if frame.forward_speed is not None and last.forward_speed is not None:
        speeds = np.fmax(speeds, np.abs(frame.forward_speed[rows] - last.forward_speed[rows_last]))
    are_far = _norm(moved) > _NOISE_M + _MAX_SPEED * step_s
    are_vehicles = frame.kinds[rows] == KIND_VEHICLE
    found: dict[str, Bools] = {
        POSITION: np.where(np.isnan(error), are_far, error > _NOISE_M + 0.5 * reach * step_s),
        POSITION + _FAR: are_far,
        HEADING: are_vehicles & (turned > min(_TURN + _TURN_ACCELERATION * step_s ** 2,
                                              _MOST_TURN)),
        HEADING + _FAR: are_vehicles & (turned > max(_MOST_TURN, _TURN_RATE * step_s)),
        SPEED: speeds > _SPEED_NOISE + reach,
        SPEED + _FAR: speeds > max(_MAX_SPEED, reach),
        YAW_RATE: are_vehicles & (np.abs(new[:, 12] - old[:, 12]) > _YAW_RATE)}
    if frame.boxes is not None and last.boxes is not None:
        boxes, old_boxes = _boxes_of(frame)[rows], _boxes_of(last)[rows_last]
        found[BOX] = (np.abs(boxes - old_boxes) > _SIZE_M).any(axis=1) \
            | (np.isnan(boxes[:, 0]) != np.isnan(old_boxes[:, 0]))
        found[BOX + _FAR] = found[BOX]
    return found


def _boxes_of(frame: Frame) -> Floats:
    """Return (N, 4) the edges of the boxes of actors and the distance of their middles, m."""
    found: Floats = np.full((frame.n_actors, 4), np.nan)
    rows = frame.largest_boxes()
    if frame.boxes is not None and len(rows):
        actor = frame.boxes.actor[rows]
        found[actor, :3] = frame.boxes.size_xyz[rows]
        found[actor, 3] = _norm(frame.boxes.position_xyz[rows] - frame.position_xyz[actor])
    return found


def _value(kind: str, frame: Frame, row: int) -> str:
    if kind == POSITION:
        return '({}) m'.format(', '.join(figure(x) for x in frame.position_xyz[row].tolist()))
    if kind == HEADING:
        x, y, z, w = frame.orientation_xyzw[row].tolist()
        yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        return f'{figure(math.degrees(yaw))} degrees'
    if kind == SPEED:
        speed = frame.forward_speed[row] if frame.forward_speed is not None \
            else math.hypot(*frame.velocity_xyz[row].tolist())
        return f'{figure(float(speed))} m/s'
    if kind == YAW_RATE:
        return f'{figure(float(frame.angular_velocity_xyz[row, 2]))} rad/s'
    *size, away = _boxes_of(frame)[row].tolist()
    return f'{" x ".join(map(figure, size))} m, {figure(away)} m away'


def _blank(frame: Frame, positions: Iterable[int], headings: Iterable[int],
           velocities: Iterable[int], *, game_time: float | None = None) -> Frame:
    """Return a frame in which the positions, headings and velocities of some rows are NaN."""
    kinematics = frame.kinematics.copy()
    kinematics[list(positions), :3] = np.nan
    kinematics[list(headings), 3:7] = np.nan
    kinematics[list(velocities), 7:] = np.nan
    speeds = frame.forward_speed
    if speeds is not None:
        speeds = speeds.copy()
        speeds[list(velocities)] = np.nan
    return replace(frame, kinematics=kinematics, forward_speed=speeds,
                   game_time=frame.game_time if game_time is None else game_time)


def _norm(vectors: Floats) -> Floats:
    norm: Floats = np.sqrt(np.einsum('ij,ij->i', vectors, vectors))
    return norm

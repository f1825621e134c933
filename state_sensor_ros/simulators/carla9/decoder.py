# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Frames of a recorder log: what each frame says, joined with what earlier ones have said.

A log lists an actor and its box when it appears; lights and signs have no place in later frames.
Velocities are those of the log, or differences of positions if it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators import Decoded, DecodeError, DROPPED, Fault, RIVAL, TruncatedError
from state_sensor_ros.simulators.carla9 import packets
from state_sensor_ros.simulators.carla9.actors import box_of, MAX_ACTORS, WorldActors
from state_sensor_ros.simulators.carla9.frames import (
    indicators_of,
    make_frame,
    matched,
    shown_lights,
    to_inputs,
    to_rep103,
)
from state_sensor_ros.simulators.carla9.packets import LoggedFrame, LogHeader
from state_sensor_ros.simulators.frame_arrays import (
    DERIVED_VELOCITY,
    Floats,
    rotation_vectors,
    Rows,
)

_CM = 100.0
# Longest time between frames, and largest speed, m/s, that a difference of positions stands for:
# beyond it the actor was put somewhere else.
_MAX_STEP_S = 1.0
_MAX_SPEED = 200.0


@dataclass(slots=True)
class _Moment:
    """A frame without the velocities that the log does not have."""

    decoded: Decoded
    serials: Rows  # (N,) of its actors
    kinematics: Floats  # (N, 13), NaN if a velocity is unknown


@dataclass(slots=True)
class _PlaceTable:
    """Where the actors of a frame come from, the same until an actor comes or goes."""

    key: bytes  # ids of the records of positions
    numbers: Rows  # (N,) ids of the actors, ascending
    rows: Rows  # in the frame of those that have a record
    records: Rows  # which
    fixed_rows: Rows  # rows of lights and signs without a record
    fixed: Floats  # (K, 6) their places
    unknown: list[int]  # ids of records without an actor


@dataclass(frozen=True, slots=True)
class LogHistory:
    """What the frames of a log so far say about later ones."""

    table: WorldActors
    # Places of lights and signs: position xyz cm, roll pitch yaw degrees.
    fixed: dict[int, tuple[float, ...]] = field(default_factory=dict)


class LogDecoder:
    """Decodes the frames of one log, in their order."""

    def __init__(self, header: LogHeader, history: LogHistory) -> None:
        self._date = header.date
        self._table, self._fixed = history.table, history.fixed
        self._layout: _PlaceTable | None = None

    def frames(self, items: Iterable[LoggedFrame | DecodeError | TruncatedError],
               ) -> Iterator[Decoded | DecodeError]:
        last: _Moment | None = None
        now: _Moment | None = None
        for item in items:
            if isinstance(item, DecodeError | TruncatedError):
                if now is not None:
                    yield _completed(last, now, None)
                last = now = None
                if isinstance(item, TruncatedError):
                    raise item
                yield item
                continue
            following = self._moment(item)
            if now is not None:
                yield _completed(last, now, following)
            last, now = now, following
        if now is not None:
            yield _completed(last, now, None)

    def _moment(self, logged: LoggedFrame) -> _Moment:
        faults: list[Fault] = []
        self._take_events(logged, faults)
        numbers, poses = self._places(logged, faults)
        n_actors = len(numbers)
        self._count_unused(logged, numbers, faults)
        if logged.added:
            self._name_rivals({added.number for added in logged.added}, numbers, faults)
        kinematics = to_rep103(poses, *self._velocities(logged, numbers))
        lights, vehicles = logged.of(packets.LIGHTS), logged.of(packets.VEHICLE_LIGHTS)
        controls = np.full((n_actors, 4), np.nan)
        records = logged.of(packets.CONTROLS)
        rows, found = matched(numbers, records['id'].astype(np.int64))
        for i, name in enumerate(('throttle', 'brake', 'steer')):
            controls[rows, i] = records[name][found]
        if logged.steering:
            controls[:, 3] = [logged.steering.get(number, math.nan) for number in numbers.tolist()]
        table = self._table.rows(numbers)
        of_actor, of_light = matched(numbers, lights['id'].astype(np.int64))
        frame = make_frame(
            table, kinematics, game_time=logged.elapsed_s,
            number=logged.number if logged.number < 1 << 32 else 0,
            time=int(self._date + logged.elapsed_s) if self._date else 0,
            inputs=to_inputs(controls),
            lights=shown_lights(table, kinematics, of_actor, lights['state'][of_light]),
            indicators=indicators_of(numbers, vehicles['id'].astype(np.int64), vehicles['state']))
        return _Moment(Decoded(frame, tuple(faults)), table.serials, kinematics)

    def _take_events(self, logged: LoggedFrame, faults: list[Fault]) -> None:
        """Add and remove actors, and set their boxes."""
        if logged.added or len(logged.removed):
            self._layout = None
        replaced: set[int] = set()
        for added in logged.added:
            if added.number in self._table:
                replaced.add(added.number)
                self._fixed.pop(added.number, None)
            if not self._table.add(added.number, added.type_id, added.attributes):
                faults.append(_fault(added.number, f'more than {MAX_ACTORS} actors', 'fewer'))
                continue
            actor = self._table.get(added.number)
            if actor is not None and actor.is_fixed:
                self._fixed[added.number] = added.pose
        for number in logged.removed.tolist():
            # Additions are written first, so that the removal of an id that is used again in the
            # same frame is that of the earlier actor.
            if number in replaced:
                replaced.discard(number)
            elif number not in self._table:
                faults.append(_fault(number, 'a removal', 'an actor that was added'))
            else:
                self._table.remove(number)
                self._fixed.pop(number, None)
        for record in logged.of(packets.BOXES):
            if int(record['id']) not in self._table:
                faults.append(_fault(int(record['id']), 'a box', 'an actor that was added'))
            with np.errstate(invalid='ignore'):
                self._table.set_box(int(record['id']), box_of(
                    (record['first'].astype(float) / _CM).tolist(),
                    (record['second'].astype(float) / _CM).tolist()))

    def _places(self, logged: LoggedFrame, faults: list[Fault]) -> tuple[Rows, Floats]:
        """Return ids, ascending, and poses (N, 6) in m and degrees, of the actors of the frame."""
        records = logged.of(packets.POSITIONS)
        layout = self._layout
        if layout is None or layout.key != records['id'].tobytes():
            layout = self._layout = self._laid_out(records['id'])
        for number in layout.unknown:
            faults.append(_fault(number, 'a position', 'an actor that was added'))
        poses = np.empty((len(layout.numbers), 6))
        poses[layout.rows, 0:3] = records['first'][layout.records]
        poses[layout.rows, 3:6] = records['second'][layout.records]
        poses[layout.fixed_rows] = layout.fixed
        poses[:, :3] /= _CM
        return layout.numbers, poses

    def _count_unused(self, logged: LoggedFrame, numbers: Rows, faults: list[Fault]) -> None:
        """Add a fault for each record of an actor that the frame does not have."""
        for packet, what in ((packets.KINEMATICS, 'a velocity'), (packets.LIGHTS, 'a light'),
                             (packets.CONTROLS, 'controls'),
                             (packets.VEHICLE_LIGHTS, 'lights of a vehicle')):
            ids = logged.of(packet)['id'].astype(np.int64)
            for number in np.setdiff1d(ids, numbers).tolist():
                # Sensors and the spectator are known, and no actors of frames.
                if number not in self._table or self._table.get(number) is not None:
                    faults.append(_fault(number, what, 'an actor with a position'))
        for number in logged.steering.keys() - set(numbers.tolist()):
            faults.append(_fault(number, 'wheels', 'an actor with a position'))

    def _name_rivals(self, added: set[int], numbers: Rows, faults: list[Fault]) -> None:
        """Add a fault for each new vehicle that has the role of the ego and is not the ego."""
        egos = self._table.egos_of(numbers.tolist())
        for number in egos[1:] if not added.isdisjoint(egos) else ():
            actor = self._table.get(number)
            assert actor is not None
            faults.append(_fault(
                number, f'role name {actor.role!r} as actor {egos[0]}, which is the ego',
                f'one; -p carla9.ego:={number} selects it', RIVAL))

    def _laid_out(self, ids: npt.NDArray[np.uint32]) -> _PlaceTable:
        # Some versions write an actor that is neither vehicle nor person twice.
        moved, first = np.unique(ids.astype(np.int64), return_index=True)
        is_shown = np.array([self._table.get(number) is not None for number in moved.tolist()],
                            bool)
        unknown = [number for number in moved[~is_shown].tolist() if number not in self._table]
        moved, first = moved[is_shown], first[is_shown]
        fixed = np.setdiff1d(np.array(list(self._fixed), np.int64), moved)
        numbers = np.union1d(moved, fixed)
        return _PlaceTable(
            ids.tobytes(), numbers, np.searchsorted(numbers, moved), first,
            np.searchsorted(numbers, fixed),
            np.array([self._fixed[number] for number in fixed.tolist()]).reshape(-1, 6), unknown)

    def _velocities(self, logged: LoggedFrame, numbers: Rows) -> tuple[Floats, Floats]:
        """Return velocities (N, 3), m/s, and angular ones (N, 3), degrees/s, NaN if unknown."""
        velocities, rates = np.full((2, len(numbers), 3), np.nan)
        is_fixed = self._table.rows(numbers).are_fixed
        velocities[is_fixed] = rates[is_fixed] = 0.0
        records = logged.of(packets.KINEMATICS)
        rows, found = matched(numbers, records['id'].astype(np.int64))
        velocities[rows], rates[rows] = records['first'][found], records['second'][found]
        return velocities, rates


def _fault(number: int, found: str, expected: str, kind: str = DROPPED) -> Fault:
    return Fault(kind, DecodeError(f'actor {number}', found, expected))


def _completed(last: _Moment | None, now: _Moment, following: _Moment | None) -> Decoded:
    """
    Return a frame with the velocities that differences give, if the log has none.

    The difference is that of the next and the last frame, or of one of these and this one.
    """
    is_unknown = np.isnan(now.kinematics[:, 7:10]).any(axis=1) \
        & np.isfinite(now.kinematics[:, 0:7]).all(axis=1)
    if not is_unknown.any():
        return now.decoded
    rows = np.flatnonzero(is_unknown)
    time_s = now.decoded.frame.game_time
    poses = now.kinematics[rows, 0:7]
    begin, end = poses.copy(), poses.copy()
    begin_s, end_s = np.full((2, len(rows)), time_s)
    for other, ends, times in ((last, begin, begin_s), (following, end, end_s)):
        if other is None:
            continue
        step_s = abs(time_s - other.decoded.frame.game_time)
        mine, others = matched(now.serials[rows], other.serials)
        distances = np.linalg.norm(
            other.kinematics[others, 0:3] - poses[mine, 0:3], axis=1)
        # NaN compares false.
        is_near = (distances <= _MAX_SPEED * step_s) & (0.0 < step_s <= _MAX_STEP_S)
        ends[mine[is_near]] = other.kinematics[others[is_near], 0:7]
        times[mine[is_near]] = other.decoded.frame.game_time
    elapsed_s = end_s - begin_s
    elapsed_s[elapsed_s <= 0.0] = math.nan
    kinematics = now.kinematics.copy()
    kinematics[rows, 7:10] = (end[:, :3] - begin[:, :3]) / elapsed_s[:, None]
    kinematics[rows, 10:13] = rotation_vectors(begin[:, 3:7], end[:, 3:7]) / elapsed_s[:, None]
    frame = now.decoded.frame
    derived = np.zeros(len(kinematics), np.uint8) if frame.derived is None \
        else frame.derived.copy()
    derived[rows[np.isfinite(kinematics[rows, 7])]] |= DERIVED_VELOCITY
    return replace(now.decoded, frame=replace(frame, kinematics=kinematics, derived=derived))

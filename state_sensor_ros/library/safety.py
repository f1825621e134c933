# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Measures of safety of one actor over a recording, and the events that they show."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
import math
from typing import TYPE_CHECKING

import numpy as np

from state_sensor_ros.classes import ego_row, EGO_TAG
from state_sensor_ros.errors import ConfigError, importing, StateError
from state_sensor_ros.frame import Bools, Floats, Frame, speed_along
from state_sensor_ros.objects.assumptions import Assumptions
from state_sensor_ros.objects.criticality import (
    Criticality,
    joined,
    overlap,
    path_of,
    PlanarBoxes,
    share_height,
    Situation,
)
from state_sensor_ros.objects.object_maker import MAX_GAP_S
from state_sensor_ros.rotations import global_from_body
from state_sensor_ros.texts import counted

if TYPE_CHECKING:
    import pandas as pd

EGO = 'ego'
# Longest post-encroachment time by default, s.
HORIZON_S = 5.0
# Paths that differ by less, rad, follow or meet each other and do not cross.
_CROSSING = math.radians(30.0)
# A cut-in is a movement to the side of at least this much, m, within this time, s.
_MOVED_ASIDE, _ASIDE_S = 0.3, 1.0
# Runs of one kind and actor that are apart by no more, s, are one event.
_MERGED_S = 1.0


@dataclass(frozen=True, slots=True)
class SafetyEvent:
    """
    A stretch of frames in which a measure is beyond its threshold.

    :ivar kind: ``hard_braking``, ``cut_in``, ``near_miss`` or ``collision``.
    :ivar start: game time of its first frame, s.
    :ivar end: game time of its last frame, s.
    :ivar actor: raw name of the other actor, ``''`` for none.
    :ivar measure: name of the measure, an array of :class:`Safety`.
    :ivar value: worst value of the measure in the event; for a collision, the ``impact_speed`` in
        its first frame.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     events: list[sensor.SafetyEvent] = recording.safety().events()
    >>> events
    []
    """

    kind: str
    start: float
    end: float
    actor: str
    measure: str
    value: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Safety:
    """
    Safety measures of one actor in the T frames of a recording.

    All arrays are (T,) float64 and NaN if a measure is undefined, as in frames without the actor;
    names are ``''`` there. An actor without a box has the size of its class.

    :ivar name: raw name of the actor.
    :ivar game_time: times of the frames, s.
    :ivar gap: distance along the lane from its front to the rear of the lead vehicle, m.
    :ivar time_headway: gap divided by its speed, s; defined from 0.1 m/s.
    :ivar time_to_collision: time until its box touches another one if all velocities stay, s.
    :ivar post_encroachment_time: time from the moment when one of two actors on crossing paths
        has left a place until the other one reaches it, s.
    :ivar required_deceleration: deceleration to the speed of the lead vehicle within the gap,
        m/s2.
    :ivar closest_distance: distance to the nearest box, m; 0 for a contact.
    :ivar acceleration: acceleration along its x axis, m/s2.
    :ivar impact_speed: speed relative to the closest actor, m/s.
    :ivar lead: raw names of the lead vehicles.
    :ivar collision_partner: raw names of the actors of ``time_to_collision``.
    :ivar crossing_actor: raw names of the actors of ``post_encroachment_time``.
    :ivar closest_actor: raw names of the actors of ``closest_distance``.
    :ivar assumptions: a line for each kind of number that is assumed, derived or unknown, such as
        sizes of the class.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     safety: sensor.Safety = recording.safety()
    >>> safety.gap.shape, len(safety.lead)
    ((10,), 10)
    """

    name: str
    game_time: Floats
    gap: Floats
    time_headway: Floats
    time_to_collision: Floats
    post_encroachment_time: Floats
    required_deceleration: Floats
    closest_distance: Floats
    acceleration: Floats
    impact_speed: Floats
    lead: tuple[str, ...]
    collision_partner: tuple[str, ...]
    crossing_actor: tuple[str, ...]
    closest_actor: tuple[str, ...]
    assumptions: tuple[str, ...]
    _cut_ins: Bools

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (*self._columns().values(), self._cut_ins):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    def __len__(self) -> int:
        """Return the number of frames, T."""
        return len(self.game_time)

    def __repr__(self) -> str:
        return f'Safety({self.name!r}, {counted(len(self), "frame")})'

    def _repr_html_(self) -> str:
        from state_sensor_ros.library.notebook import safety_html
        return safety_html(self)

    def _columns(self) -> dict[str, Floats | tuple[str, ...]]:
        return {member.name: getattr(self, member.name) for member in fields(self)
                if member.name not in ('name', 'assumptions', '_cut_ins')}

    def to_pandas(self) -> pd.DataFrame:
        """
        Return a table with a row for each frame, and the arrays as columns.

        :raises MissingLibraryError: if pandas is not installed.
        """
        with importing('to_pandas'):
            import pandas as pd
        return pd.DataFrame(self._columns())

    def events(self, *, deceleration: float = 3.5, cut_in_headway: float = 2.0,
               time_to_collision: float = 1.5, post_encroachment_time: float = 1.0,
               ) -> list[SafetyEvent]:
        """
        Return the events, in the order of their beginnings.

        :param deceleration: hard braking decelerates by more, m/s2; by default the limit of
            adaptive cruise control in ISO 15622.
        :param cut_in_headway: a vehicle cuts in if it moves from the side into the path, becomes
            the lead vehicle, and the time headway is less, s.
        :param time_to_collision: near miss: it is less without a collision with that actor, s.
        :param post_encroachment_time: near miss on crossing paths: likewise, s.
        :raises ConfigError: if a threshold is NaN or negative.
        """
        for name, value in (('deceleration', deceleration), ('cut_in_headway', cut_in_headway),
                            ('time_to_collision', time_to_collision),
                            ('post_encroachment_time', post_encroachment_time)):
            if not value >= 0.0:
                raise ConfigError(name, str(value), 'a number of 0 or more')
        alone = ('',) * len(self)
        is_contact = self.closest_distance == 0.0
        found = [
            *self._runs('hard_braking', self.acceleration < -deceleration, alone, 'acceleration'),
            *self._runs('collision', is_contact, self.closest_actor, 'impact_speed'),
            *self._runs('cut_in', self._cut_in_frames(cut_in_headway), self.lead,
                        'time_headway')]
        hit = {name for name, touches in zip(self.closest_actor, is_contact, strict=True)
               if touches}
        found += [event for event in (
            *self._runs('near_miss', self.time_to_collision < time_to_collision,
                        self.collision_partner, 'time_to_collision'),
            *self._runs('near_miss', self.post_encroachment_time < post_encroachment_time,
                        self.crossing_actor, 'post_encroachment_time')) if event.actor not in hit]
        return sorted(found, key=lambda event: event.start)

    def _cut_in_frames(self, headway: float) -> Bools:
        """Return (T,) whether a vehicle that cut in still leads closer than ``headway``, s."""
        frames: Bools = np.zeros(len(self), np.bool_)
        is_close = self.time_headway < headway
        for i in range(len(self)):
            stays = i > 0 and frames[i - 1] and self.lead[i] == self.lead[i - 1]
            frames[i] = is_close[i] and (self._cut_ins[i] or stays)
        return frames

    def _runs(self, kind: str, is_in: Bools, actors: tuple[str, ...],
              measure: str) -> Iterator[SafetyEvent]:
        """Yield an event for each stretch of frames with one actor."""
        values, times = getattr(self, measure), self.game_time
        runs: dict[str, list[list[int]]] = {}
        for i in np.flatnonzero(is_in).tolist():
            of_actor = runs.setdefault(actors[i], [])
            if of_actor and 0.0 <= times[i] - times[of_actor[-1][-1]] <= _MERGED_S:
                of_actor[-1].append(i)
            else:
                of_actor.append([i])
        for actor, run in ((actor, run) for actor, of_actor in runs.items() for run in of_actor):
            worst = values[run[0]] if kind == 'collision' else values[run].min()
            yield SafetyEvent(kind, float(times[run[0]]), float(times[run[-1]]), actor, measure,
                              float(worst))


@dataclass(slots=True, eq=False)
class _Past:
    """A frame that paths may cross: its number and time, s, and the boxes of its objects."""

    i: int
    game_time: float
    own: PlanarBoxes
    others: PlanarBoxes
    names: tuple[str, ...]


class SafetyCollector:
    """Measure one actor in frames in their order."""

    # actor: raw name of the actor, or ``ego`` for the ego.
    # horizon: longest post-encroachment time, s.

    def __init__(self, actor: str, horizon: float, ego_tag: str = EGO_TAG) -> None:
        self._actor, self._horizon, self._ego_tag = actor, horizon, ego_tag
        self._name = ''
        self._times: list[float] = []
        self._rows: list[Criticality] = []
        self._names: list[tuple[str, str, str]] = []
        self._speeds: list[tuple[float, float, float]] = []
        self._crossings: list[tuple[float, str]] = []
        self._cut_ins: list[bool] = []
        self._past: deque[_Past] = deque()
        self._assumptions = Assumptions()

    def add(self, frame: Frame) -> None:
        row = self._row_of(frame)
        self._assumptions.add(frame)
        i, now = len(self._times), frame.game_time
        if i and not now >= self._times[-1]:
            # Another run of the simulator.
            self._past.clear()
        self._times.append(now)
        self._crossings.append((math.nan, ''))
        self._cut_ins.append(False)
        if row is None:
            self._add_measures(frame, Criticality(), (math.nan,) * 3)
            return
        self._name = frame.names[row]
        situation = Situation(frame)
        found = situation.criticality(row)
        self._add_measures(frame, found, (
            speed_along(frame, row), _forward_acceleration(frame, row),
            _impact_speed(situation.boxes, row, found.closest)))
        if not situation.are_objects[row]:
            return
        rows = situation.others(row)
        here = _Past(i, now, situation.boxes.at(slice(row, row + 1)), situation.boxes.at(rows),
                     tuple(frame.names[k] for k in rows.tolist()))
        if self._past and now == self._past[-1].game_time:
            return
        while self._past and now - self._past[0].game_time > self._horizon:
            self._past.popleft()
        if found.lead >= 0:
            self._cut_ins[i] = self._is_cut_in(here, frame.names[found.lead])
        self._cross(here)
        self._past.append(here)

    def _row_of(self, frame: Frame) -> int | None:
        row = ego_row(frame.tags, self._ego_tag) if self._actor == EGO else None
        if row is None and self._actor in frame:
            row = frame.row(self._actor)
        return row

    def passing(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        for frame in frames:
            self.add(frame)
            yield frame

    def _add_measures(self, frame: Frame, found: Criticality,
                      speeds: tuple[float, float, float]) -> None:
        def name_of(row: int) -> str:
            return frame.names[row] if row >= 0 else ''

        self._rows.append(found)
        self._names.append((name_of(found.lead), name_of(found.partner), name_of(found.closest)))
        self._speeds.append(speeds)

    def _cross(self, here: _Past) -> None:
        """Note by how much the actor and others miss each other where their paths cross."""
        if not self._past:
            return
        past = list(self._past)
        counts = [len(each.others) for each in past]
        came = _may_cross(here.own, joined([each.others for each in past])).nonzero()[0]
        owners = np.repeat(np.arange(len(past)), counts)
        begins = np.cumsum([0, *counts])
        went = [_may_cross(each.own, here.others).nonzero()[0] for each in past] \
            if len(here.others) else []
        pairs = [(here.i, here.own, past[owner], row - begins[owner], past[owner])
                 for owner, row in zip(owners[came].tolist(), came.tolist(), strict=True)]
        pairs += [(each.i, each.own, here, row, each)
                  for each, rows in zip(past, went, strict=False) for row in rows.tolist()]
        for i, own, others, row, earlier in pairs:
            other = others.others.at(slice(row, row + 1))
            elapsed = here.game_time - earlier.game_time
            if not self._crossings[i][0] <= elapsed and overlap(own, other)[0] \
                    and share_height(own, other)[0]:
                self._crossings[i] = elapsed, others.names[row]

    def _is_cut_in(self, here: _Past, lead: str) -> bool:
        """Return whether a new lead vehicle, and not the actor, has moved into the path."""
        before = next((past for past in self._past
                       if here.game_time - past.game_time <= _ASIDE_S), None)
        if before is None or self._names[here.i - 1][0] == lead or lead not in before.names:
            return False
        then = before.others.at(slice(k := before.names.index(lead), k + 1))
        now = here.others.at(slice(k := here.names.index(lead), k + 1))
        [aside_then], [aside_now], [own_aside] = (
            np.abs(path_of(before.own, boxes)[1]) for boxes in (then, now, here.own))
        return bool(aside_then - aside_now >= max(_MOVED_ASIDE, own_aside))

    @property
    def has_actor(self) -> bool:
        return bool(self._name)

    def safety(self) -> Safety:
        if not self._name:
            found = f'no actor {self._actor!r}'
            if self._actor == EGO:
                found = 'no ego' if self._ego_tag == EGO_TAG \
                    else f'no actor tagged {self._ego_tag!r}'
            raise StateError('actor', found, 'an actor of the recording')
        times, speeds = np.array(self._times), np.array(self._speeds)
        acceleration = np.where(np.isnan(speeds[:, 1]), _differences(times, speeds[:, 0]),
                                speeds[:, 1])
        measures = {name: np.array([getattr(row, name) for row in self._rows])
                    for name in ('gap', 'time_headway', 'time_to_collision',
                                 'required_deceleration', 'closest_distance')}
        leads, partners, closest = zip(*self._names, strict=True)
        crossings, crossing_actors = zip(*self._crossings, strict=True)
        return Safety(
            self._name, times, **measures, post_encroachment_time=np.array(crossings),
            acceleration=acceleration, impact_speed=speeds[:, 2], lead=leads,
            collision_partner=partners, crossing_actor=crossing_actors, closest_actor=closest,
            assumptions=tuple(self._assumptions.lines), _cut_ins=np.array(self._cut_ins))


def check_horizon(horizon: float) -> None:
    """Check the longest post-encroachment time."""
    if not 0.0 <= horizon < math.inf:
        raise ConfigError('horizon', str(horizon), 'a finite time of 0 or more')


def _forward_acceleration(frame: Frame, row: int) -> float:
    """Return the acceleration of the source along the x axis, m/s2, NaN if it has none."""
    if frame.accelerations is None or not frame.has_pose()[row]:
        return math.nan
    forward = global_from_body(frame.orientation_xyzw[row:row + 1])[0, :, 0]
    return float(forward @ frame.accelerations[row])


def _impact_speed(boxes: PlanarBoxes, row: int, other: int) -> float:
    """Return the relative speed of two actors, m/s, NaN if there is no other one."""
    return float(np.hypot(*(boxes.velocities[row] - boxes.velocities[other]))) if other >= 0 \
        else math.nan


def _may_cross(own: PlanarBoxes, others: PlanarBoxes) -> Bools:
    """Return (K,) whether boxes near an actor's place are of another direction."""
    way = others.centers - own.centers[0]
    radii = np.hypot(own.halves[0, 0], own.halves[0, 1]) + np.hypot(*others.halves.T)
    crossing: Bools = (np.hypot(*way.T) <= radii) & (
        np.abs(others.headings @ own.headings[0]) < math.cos(_CROSSING))
    return crossing


def _differences(times: Floats, speeds: Floats) -> Floats:
    """Return (T,) central differences of a speed, m/s2, NaN at both ends and beside gaps."""
    # A repeated frame has the acceleration of the one before.
    advances = np.diff(times, prepend=-np.inf) > 0.0
    if not advances.any():
        return np.full(len(times), np.nan)
    numbers = np.maximum(np.cumsum(advances) - 1, 0)
    times, speeds = times[advances], speeds[advances]
    elapsed = np.diff(times)
    is_near = (elapsed > 0.0) & (elapsed <= MAX_GAP_S)
    inner = np.full(len(times), np.nan)
    if len(times) > 2:
        inner[1:-1] = np.where(is_near[:-1] & is_near[1:],
                               (speeds[2:] - speeds[:-2]) / (times[2:] - times[:-2]), np.nan)
    found: Floats = inner[numbers]
    return found

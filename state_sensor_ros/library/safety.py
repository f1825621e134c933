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
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import chain
import math
from typing import TYPE_CHECKING

import numpy as np

from state_sensor_ros.classes import ego_row, EGO_TAG
from state_sensor_ros.errors import ConfigError, importing, StateError
from state_sensor_ros.frame import Bools, DERIVED_SIZE, Floats, Frame, speed_along
from state_sensor_ros.jumps import Jumps, MAX_ACCELERATION, POSITION, SPEED
from state_sensor_ros.library.notebook import safety_html
from state_sensor_ros.objects.assumptions import Assumptions
from state_sensor_ros.objects.criticality import (
    Criticality,
    path_of,
    PlanarBoxes,
    share_height,
    Situation,
    times_to_collision,
    to_axes,
)
from state_sensor_ros.objects.object_maker import MAX_GAP_S
from state_sensor_ros.parameters import near_names
from state_sensor_ros.rotations import global_from_body
from state_sensor_ros.texts import counted

if TYPE_CHECKING:
    import pandas as pd

EGO = 'ego'
# Longest post-encroachment time by default, s.
HORIZON_S = 5.0
# Paths that differ by less, rad, follow or meet each other and do not cross.
_CROSSING = math.radians(30.0)
# A cut-in is a movement to the side of at least this much, m, within this time, s; the path of the
# actor is known for this time after it, s, in steps of so many m.
_MOVED_ASIDE, _ASIDE_S = 0.5, 4.0
_PATH_S, _STEP_M = 10.0, 0.2
# An actor is towed, a part of the measured one, that is behind it and touches it, as a trailer
# within so many m, in all frames with both, while it drives so many m.
_HITCH_M, _DRIVEN_M = 1.5, 10.0
# Nearest objects of a frame that are noted beside those in contact.
_N_NEAREST = 4
# Moments of a movement that are compared, in so many rounds: to a thousandth of a step.
_N_MOMENTS, _N_ROUNDS = 33, 3
_NOWHERE: Floats = np.full(2, np.nan)
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
    :ivar is_size_assumed: whether one of both actors has the size of its class.

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
    is_size_assumed: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Safety:
    """
    Safety measures of one actor in the T frames of a recording.

    All arrays are (T,) float64 and NaN if a measure is undefined, as in frames without the actor;
    names are ``''`` there. An actor without a box has the size of its class. A motion from one
    frame to the next of more than 150 m/s or 60 m/s2 gives no acceleration and no event.

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
    _times: ActorValues
    _contacts: ActorValues
    _crossings: ActorValues
    _assumed: frozenset[str]

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
        return safety_html(self)

    def _columns(self) -> dict[str, Floats | tuple[str, ...]]:
        return {member.name: getattr(self, member.name) for member in fields(self)
                if member.name != 'assumptions' and not member.name.startswith('_')
                and isinstance(getattr(self, member.name), np.ndarray | tuple)}

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
        hits = list(_runs('collision', self._contacts, 'impact_speed', self.game_time))
        misses = [*_runs('near_miss', self._times.below(time_to_collision), 'time_to_collision',
                         self.game_time),
                  *_runs('near_miss', self._crossings.below(post_encroachment_time),
                         'post_encroachment_time', self.game_time)]
        found = [
            *_runs('hard_braking', ActorValues.of(np.where(
                np.abs(self.acceleration) <= MAX_ACCELERATION, self.acceleration, np.nan),
                alone).below(-deceleration), 'acceleration', self.game_time),
            *_runs('cut_in', ActorValues.of(np.where(
                self._cut_in_frames(cut_in_headway), self.time_headway, np.nan),
                self.lead), 'time_headway', self.game_time),
            *hits, *(miss for miss in misses if not any(
                hit.actor == miss.actor and hit.start - _MERGED_S <= miss.end
                and miss.start <= hit.end + _MERGED_S for hit in hits))]
        return sorted((replace(event, is_size_assumed=bool(event.actor) and not
                               self._assumed.isdisjoint((event.actor, self.name)))
                       for event in found), key=lambda event: event.start)

    def _cut_in_frames(self, headway: float) -> Bools:
        """Return (T,) whether a vehicle that cut in still leads closer than ``headway``, s."""
        frames: Bools = np.zeros(len(self), np.bool_)
        is_close = self.time_headway < headway
        for i in range(len(self)):
            # The actor or the lead vehicle may be missing in a frame.
            stays = any(frames[k] and self.lead[i] == self.lead[k]
                        for k in range(max(i - 2, 0), i))
            frames[i] = is_close[i] and (self._cut_ins[i] or stays)
        return frames


def _runs(kind: str, values: ActorValues, measure: str, times: Floats) -> Iterator[SafetyEvent]:
    """Yield an event for each stretch of frames with one actor."""
    runs: dict[str, list[list[tuple[int, float]]]] = {}
    for i, actor, value in sorted(zip(values.frames, values.actors, values.values, strict=True)):
        of_actor = runs.setdefault(actor, [])
        if of_actor and 0.0 <= times[i] - times[of_actor[-1][-1][0]] <= _MERGED_S:
            of_actor[-1].append((i, value))
        else:
            of_actor.append([(i, value)])
    for actor, run in ((actor, run) for actor, of_actor in runs.items() for run in of_actor):
        worst = run[0][1] if kind == 'collision' else min(value for _, value in run)
        yield SafetyEvent(kind, float(times[run[0][0]]), float(times[run[-1][0]]), actor, measure,
                          float(worst))


@dataclass(slots=True)
class ActorValues:
    """Numbers of a measure for other actors: index of the frame, raw name and number of each."""

    frames: list[int] = field(default_factory=list)
    actors: list[str] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    @staticmethod
    def of(values: Floats, actors: tuple[str, ...]) -> ActorValues:
        """
        Return the known numbers of an array.

        :param values: (T,) float64.
        :param actors: T raw names.
        """
        known = np.flatnonzero(~np.isnan(values)).tolist()
        return ActorValues(known, [actors[i] for i in known], values[known].tolist())

    def add(self, frame: int, actor: str, value: float) -> None:
        """Add a number."""
        self.frames.append(frame)
        self.actors.append(actor)
        self.values.append(value)

    def below(self, limit: float) -> ActorValues:
        """Return the numbers below a limit."""
        return self.where(value < limit for value in self.values)

    def without(self, actors: Container[str]) -> ActorValues:
        """Return the numbers of other actors."""
        return self.where(actor not in actors for actor in self.actors)

    def where(self, chosen: Iterable[bool]) -> ActorValues:
        """Return the chosen numbers."""
        rows = [i for i, is_chosen in enumerate(chosen) if is_chosen]
        return ActorValues([self.frames[i] for i in rows], [self.actors[i] for i in rows],
                           [self.values[i] for i in rows])

    def least(self, n_frames: int) -> tuple[Floats, tuple[str, ...]]:
        """Return the least number of each frame, NaN for none, and its actor."""
        values: Floats = np.full(n_frames, np.nan)
        names = [''] * n_frames
        for i, actor, value in zip(self.frames, self.actors, self.values, strict=True):
            if not values[i] <= value:
                values[i], names[i] = value, actor
        return values, tuple(names)


@dataclass(slots=True, eq=False)
class _Past:
    """A frame: number, time, s, boxes of the actor and of the others, their names and lanes."""

    i: int
    game_time: float
    own: PlanarBoxes
    others: PlanarBoxes
    names: dict[str, int]
    own_lane: Floats
    lanes: Floats


@dataclass(slots=True, eq=False)
class _Motion:
    """The actor and the others from one frame to the next: first and last boxes."""

    past: _Past
    end_time: float
    own: tuple[PlanarBoxes, PlanarBoxes]
    others: tuple[PlanarBoxes, PlanarBoxes]
    names: list[str]
    own_reach: Floats
    other_reach: Floats


class SafetyCollector:
    """Measure one actor in frames in their order."""

    # actor: raw name of the actor, or ``ego`` for the ego.
    # horizon: longest post-encroachment time, s.

    def __init__(self, actor: str, horizon: float, ego_tag: str = EGO_TAG) -> None:
        self._actor, self._horizon, self._ego_tag = actor, horizon, ego_tag
        self._name = ''
        # Names of other actors, or tags of all, for the error.
        self._others: set[str] = set()
        self._times: list[float] = []
        self._clock = math.nan
        self._rows: list[Criticality] = []
        self._leads: list[str] = []
        self._speeds: list[tuple[float, float]] = []
        self._places: list[Floats] = []
        # Distances to the nearest objects, times to collisions, speeds of contacts, and PET.
        self._near, self._collisions = ActorValues(), ActorValues()
        self._contacts, self._crossings = ActorValues(), ActorValues()
        self._impacts: dict[tuple[int, str], float] = {}
        # For each other actor whether it may be towed.
        self._towed: dict[str, bool] = {}
        # Frames with a new lead vehicle that moved aside, with its places then and now.
        self._aside: list[tuple[int, list[tuple[Floats, Floats]]]] = []
        self._cut_ins: set[int] = set()
        self._past: deque[_Past] = deque()
        self._motions: deque[_Motion] = deque()
        self._assumptions, self._jumps = Assumptions(), Jumps()
        # Frames into which an actor has an impossible motion.
        self._wild: dict[str, set[tuple[int, str]]] = {POSITION: set(), SPEED: set()}
        self._assumed: set[str] = set()

    def add(self, frame: Frame) -> None:
        """Add a frame."""
        self._assumptions.add(frame)
        for kind, names in self._jumps.add(frame).items():
            self._wild[kind] |= {(len(self._times), name) for name in names}
        row = self._row_of(frame)
        i, now = len(self._times), frame.game_time
        if now < self._clock:
            # Another run of the simulator.
            self._past.clear()
            self._motions.clear()
        self._clock = self._clock if math.isnan(now) else now
        self._times.append(now)
        self._places.append(_NOWHERE)
        self._leads.append('')
        if row is None:
            self._rows.append(Criticality())
            self._speeds.append((math.nan, math.nan))
            if not self._name:
                self._others.update(frame.names if self._actor != EGO else chain(*frame.tags))
            return
        self._name = frame.names[row]
        situation = Situation(frame)
        is_object = bool(situation.are_objects[row])
        rows = situation.others(row) if is_object else np.zeros(0, np.int64)
        here = _Past(i, now, situation.boxes.at(slice(row, row + 1)), situation.boxes.at(rows),
                     {frame.names[k]: j for j, k in enumerate(rows.tolist())},
                     situation.lanes[row], situation.lanes[rows])
        found = situation.criticality(row, self._turning(here))
        are_assumed = ~situation.have_boxes | frame.is_derived(DERIVED_SIZE)
        self._assumed.update(frame.names[k] for k in np.append(rows, row).tolist()
                             if are_assumed[k])
        self._rows.append(found)
        self._speeds.append((speed_along(frame, row), _forward_acceleration(frame, row)))
        self._add_objects(frame, found, situation.boxes, row)
        if not is_object:
            return
        self._places[i] = here.own.centers[0]
        if found.lead >= 0:
            self._leads[i] = frame.names[found.lead]
        if self._past and now == self._past[-1].game_time:
            return
        while self._past and now - self._past[0].game_time > max(self._horizon, _ASIDE_S):
            self._past.popleft()
        while self._motions and now - self._motions[0].end_time > self._horizon:
            self._motions.popleft()
        if found.lead >= 0:
            self._note_cut_in(here, self._leads[i])
        if self._past and now - self._past[-1].game_time <= MAX_GAP_S:
            self._cross(here)
        self._past.append(here)

    def _turning(self, here: _Past) -> float:
        """Return the yaw rate of the actor since the last frame, rad/s, NaN if unknown."""
        if not self._past or not 0.0 < here.game_time - self._past[-1].game_time <= MAX_GAP_S:
            return math.nan
        (x, y), = to_axes(here.own.headings, self._past[-1].own.headings)
        return math.atan2(y, x) / (here.game_time - self._past[-1].game_time)

    def _add_objects(self, frame: Frame, found: Criticality, boxes: PlanarBoxes,
                     row: int) -> None:
        """Note the numbers of the other actors in a frame."""
        i, rows = len(self._times) - 1, found.rows
        nearest = np.argsort(found.distances, kind='stable')
        for place, k in enumerate(nearest.tolist()):
            name, distance = frame.names[rows[k]], float(found.distances[k])
            if distance > 0.0 and place >= _N_NEAREST:
                break
            self._near.add(i, name, distance)
            impact = _impact_speed(boxes, row, int(rows[k]))
            self._impacts[i, name] = impact
            if distance == 0.0:
                self._contacts.add(i, name, impact)
        for k in np.flatnonzero(~np.isnan(found.times)).tolist():
            self._collisions.add(i, frame.names[rows[k]], float(found.times[k]))
        for k, distance in zip(rows.tolist(), found.distances.tolist(), strict=True):
            is_behind = float((boxes.centers[k] - boxes.centers[row]) @ boxes.headings[row]) < 0.0
            name = frame.names[k]
            may_tow = is_behind and distance <= (
                _HITCH_M if 'trailer' in frame.tags[k] else 0.0)
            self._towed[name] = self._towed.get(name, True) and may_tow

    def _row_of(self, frame: Frame) -> int | None:
        row = ego_row(frame.tags, self._ego_tag) if self._actor == EGO else None
        if row is None and self._actor in frame:
            row = frame.row(self._actor)
        return row

    def passing(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        for frame in frames:
            self.add(frame)
            yield frame

    def _cross(self, here: _Past) -> None:
        """Note by how much the actor and others miss each other where their paths cross."""
        before = self._past[-1]
        names = [name for name in here.names if name in before.names]
        own = before.own, here.own
        moving = (before.others.at(np.array([before.names[name] for name in names], np.int64)),
                  here.others.at(np.array([here.names[name] for name in names], np.int64)))
        motion = _Motion(before, here.game_time, own, moving, names, _reach(own), _reach(moving))
        self._motions.append(motion)
        motions = list(self._motions)
        owners = np.repeat(np.arange(len(motions)), [len(each.names) for each in motions])
        begins = np.cumsum([0, *(len(each.names) for each in motions)])
        came = _may_cross(np.concatenate([each.other_reach for each in motions]),
                          motion.own_reach).nonzero()[0]
        went = _may_cross(np.concatenate([each.own_reach for each in motions]),
                          motion.other_reach).nonzero()
        pairs = [(here.i, motions[k], motions[k].others, row - begins[k], own, 0,
                  motions[k].names[row - begins[k]])
                 for k, row in zip(owners[came].tolist(), came.tolist(), strict=True)]
        pairs += [(motions[k].past.i, motions[k], motions[k].own, 0, moving, row, names[row])
                  for k, row in zip(went[0].tolist(), went[1].tolist(), strict=True)]
        best: dict[tuple[int, str], float] = {}
        for i, first, some, row, others, k, name in pairs:
            elapsed = _elapsed(
                [boxes.at(slice(row, row + 1)) for boxes in some],
                (first.past.game_time, first.end_time),
                [boxes.at(slice(k, k + 1)) for boxes in others],
                (before.game_time, here.game_time))
            best[i, name] = min(elapsed, best.get((i, name), math.inf))
        for (i, name), elapsed in best.items():
            if elapsed <= self._horizon:
                self._crossings.add(i, name, elapsed)

    def _note_cut_in(self, here: _Past, lead: str) -> None:
        """Note a new lead vehicle that has moved aside in its road, else from its own path."""
        # Either may be missing in a frame.
        last = next((past for past in reversed(self._past) if lead in past.names), None)
        if not self._past or (last is not None and self._leads[last.i] == lead):
            return
        now = here.names[lead]
        place, lane = here.others.at(slice(now, now + 1)), here.lanes[now]
        found = []
        for past in self._past:
            if lead not in past.names or here.game_time - past.game_time > _ASIDE_S:
                continue
            then = past.names[lead]
            if (past.lanes[then, :2] == lane[:2]).all():
                # A cut-in is a lane change of the lead, not of the actor itself.
                if past.lanes[then, 2] != lane[2] and here.own_lane[2] == lane[2]:
                    self._cut_ins.add(here.i)
                    return
                continue
            box = past.others.at(slice(then, then + 1))
            if np.isnan(box.turning[0]):
                box = replace(box, turning=np.zeros(1))
            if abs(path_of(box, place)[1][0]) >= _MOVED_ASIDE:
                found.append((box.centers[0], place.centers[0]))
        if found:
            self._aside.append((here.i, found))

    def _has_cut_in(self, i: int, moves: list[tuple[Floats, Floats]]) -> bool:
        """Return whether one of the movements of a lead vehicle ended nearer to the whole path."""
        elapsed = np.array(self._times) - self._times[i]
        path = np.array([self._places[k] for k in np.flatnonzero(
            (elapsed >= -_ASIDE_S) & (elapsed < _PATH_S)) if np.isfinite(self._places[k]).all()])
        steps = np.hypot(*np.diff(path, axis=0).T)
        path = path[np.append(True, steps > _STEP_M)]
        if len(path) < 2:
            return False
        # It may end before the place of the lead vehicle.
        path = np.vstack((path, path[-1] + 100.0 * (path[-1] - path[-2])))
        return any(_distance_to(path, then) - _distance_to(path, now) >= _MOVED_ASIDE
                   for then, now in moves)

    @property
    def has_actor(self) -> bool:
        return bool(self._name)

    def safety(self) -> Safety:
        if not self._name:
            found, others = f'no actor {self._actor!r}', near_names([self._actor], self._others)
            if self._actor == EGO:
                found, others = ('no ego', '') if self._ego_tag == EGO_TAG else (
                    f'no actor tagged {self._ego_tag!r}',
                    near_names([self._ego_tag], self._others))
            raise StateError('actor', found, f'an ego, or the name of an actor{others}')
        times, speeds = np.array(self._times), np.array(self._speeds)
        derived, n_skipped = _differences(times, speeds[:, 0])
        acceleration = np.where(np.isnan(speeds[:, 1]), derived, speeds[:, 1])
        lines = self._jumps.lines
        if n_skipped:
            lines.append(f'{counted(n_skipped, "pair")} of frames skipped: the speed of '
                         f'{self._name} changes by more than {MAX_ACCELERATION:g} m/s2')
        towed = self._towed_actors()
        near, collisions, contacts, crossings = (values.without(towed) for values in (
            self._near, self._collisions, self._contacts, self._crossings))
        distances, closest = near.least(len(times))
        time_to_collision, partners = collisions.least(len(times))
        encroachment, crossing_actors = crossings.least(len(times))
        cut_ins: Bools = np.zeros(len(times), np.bool_)
        cut_ins[[*self._cut_ins, *(i for i, moves in self._aside
                                   if self._has_cut_in(i, moves))]] = True
        cut_ins[[i for i, name in self._wild[POSITION]
                 if name in (self._name, self._leads[i])]] = False
        measures = {name: np.array([getattr(row, name) for row in self._rows])
                    for name in ('gap', 'time_headway', 'required_deceleration')}
        return Safety(
            self._name, times, **measures, time_to_collision=time_to_collision,
            post_encroachment_time=encroachment, closest_distance=distances,
            acceleration=acceleration, impact_speed=np.array([
                self._impacts.get((i, name), math.nan) for i, name in enumerate(closest)]),
            lead=tuple(self._leads), collision_partner=partners, crossing_actor=crossing_actors,
            closest_actor=closest, assumptions=(*self._assumptions.lines, *lines, *(
                f'{name} is towed: part of {self._name}' for name in sorted(towed))),
            _cut_ins=cut_ins, _times=self._possible(collisions, POSITION, SPEED),
            _contacts=self._possible(contacts, POSITION),
            _crossings=self._possible(crossings, POSITION),
            _assumed=frozenset(self._assumed))

    def _possible(self, values: ActorValues, *kinds: str) -> ActorValues:
        """Return the numbers of frames into which neither actor has an impossible motion."""
        wild = set[tuple[int, str]]().union(*(self._wild[kind] for kind in kinds))
        return values.where((i, actor) not in wild and (i, self._name) not in wild
                            for i, actor in zip(values.frames, values.actors, strict=True))

    def _towed_actors(self) -> set[str]:
        """Return the actors that were behind the actor and at it all the time that it drove."""
        places = np.array([place for place in self._places if np.isfinite(place).all()])
        driven_m = float(np.hypot(*np.diff(places, axis=0).T).sum()) if len(places) > 1 else 0.0
        return {name for name, is_towed in self._towed.items() if is_towed} \
            if driven_m >= _DRIVEN_M else set()


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


def _reach(boxes: tuple[PlanarBoxes, PlanarBoxes]) -> Floats:
    """Return (K, 5) the middles of movements, the distances that they reach, m, and headings."""
    first, last = boxes
    return np.column_stack((
        0.5 * (first.centers + last.centers), np.hypot(*first.halves.T) + 0.5 * np.hypot(*(
            last.centers - first.centers).T), first.headings))


def _may_cross(some: Floats, others: Floats) -> Bools:
    """Return (K, M) whether movements of another direction may reach the same place."""
    apart = some[:, None, :2] - others[:, :2]
    crossing: Bools = (np.hypot(apart[..., 0], apart[..., 1]) <= some[:, None, 2] + others[:, 2]) \
        & (np.abs(some[:, 3:] @ others[:, 3:].T) < math.cos(_CROSSING))
    return crossing


def _elapsed(some: list[PlanarBoxes], times: tuple[float, float], others: list[PlanarBoxes],
             other_times: tuple[float, float]) -> float:
    """
    Return the least time from the moment when a box leaves a place until another one reaches it.

    :param some: the box at two times, between which it moves uniformly.
    :param times: these times, s.
    :param others: the other box at two times.
    :param other_times: these times, s, not before the others.
    :returns: infinite if their places have no common point.
    """
    if not share_height(some[0], others[0])[0]:
        return math.inf
    other_s = other_times[1] - other_times[0]
    moving = replace(others[0], velocities=(others[1].centers - others[0].centers) / other_s)
    low, high, least = 0.0, 1.0, math.inf
    for _ in range(_N_ROUNDS):
        shares = np.linspace(low, high, _N_MOMENTS)
        places = some[0].centers + shares[:, None] * (some[1].centers - some[0].centers)
        still = PlanarBoxes(places, *(np.repeat(column, _N_MOMENTS, axis=0) for column in (
            some[0].headings, some[0].halves, np.zeros((1, 2)), some[0].turning,
            some[0].heights)))
        reached = times_to_collision(still, moving)
        elapsed = other_times[0] + reached - (times[0] + shares * (times[1] - times[0]))
        elapsed = np.where((reached <= other_s) & (elapsed >= 0.0), elapsed, np.inf)
        best = int(elapsed.argmin())
        least = min(least, float(elapsed[best]))
        if math.isinf(least):
            break
        low, high = shares[max(best - 1, 0)], shares[min(best + 1, _N_MOMENTS - 1)]
    return least


def _distance_to(path: Floats, place: Floats) -> float:
    """Return the distance of a place (2,) from a line (N, 2), m."""
    steps = np.diff(path, axis=0)
    shares = (((place - path[:-1]) * steps).sum(axis=1) / np.square(steps).sum(axis=1)).clip(0, 1)
    return float(np.hypot(*(path[:-1] + shares[:, None] * steps - place).T).min())


def _differences(times: Floats, speeds: Floats) -> tuple[Floats, int]:
    """
    Return (T,) central differences of a speed, m/s2, and the number of impossible steps.

    They are NaN at both ends, and beside gaps and impossible steps.
    """
    known = ~np.isnan(times)
    if not known.all():
        some = np.full(len(times), np.nan)
        some[known], n_skipped = _differences(times[known], speeds[known])
        return some, n_skipped
    # A repeated frame has the acceleration of the one before.
    advances = np.diff(times, prepend=-np.inf) > 0.0
    if not advances.any():
        return np.full(len(times), np.nan), 0
    numbers = np.maximum(np.cumsum(advances) - 1, 0)
    times, speeds = times[advances], speeds[advances]
    elapsed = np.diff(times)
    is_near = (elapsed > 0.0) & (elapsed <= MAX_GAP_S)
    is_wild = is_near & (np.abs(np.diff(speeds)) > MAX_ACCELERATION * elapsed)
    is_near &= ~is_wild
    inner = np.full(len(times), np.nan)
    if len(times) > 2:
        inner[1:-1] = np.where(is_near[:-1] & is_near[1:],
                               (speeds[2:] - speeds[:-2]) / (times[2:] - times[:-2]), np.nan)
    return inner[numbers], int(is_wild.sum())

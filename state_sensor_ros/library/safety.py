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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
import math
from typing import NamedTuple, TYPE_CHECKING

import numpy as np

from state_sensor_ros import classes, errors, parameters, rotations
from state_sensor_ros.frame import Bools, DERIVED_SIZE, Floats, Frame, Rows, speed_along
from state_sensor_ros.jumps import Jumps, MAX_ACCELERATION, POSITION, SPEED
from state_sensor_ros.library.notebook import safety_html
from state_sensor_ros.objects import criticality
from state_sensor_ros.objects.object_maker import MAX_GAP_S
from state_sensor_ros.texts import counted, figure, seconds

if TYPE_CHECKING:
    import pandas as pd

EGO = 'ego'
# A cut-in is a movement to the side of at least this much, m, within this time, s; the path of the
# actor is known for this time after it, s, in steps of so many m.
_MOVED_ASIDE, _ASIDE_S, _PATH_S, _STEP_M = 0.5, 4.0, 10.0, 0.2
# An actor is towed, a part of the measured one, that is behind it and touches it, as a trailer
# within so many m, in all frames with both, while it drives so many m.
_HITCH_M, _DRIVEN_M = 1.5, 10.0
# Nearest objects of a frame that are noted beside those in contact.
_N_NEAREST = 4
# Runs of one kind and actor that are apart by no more, s, are one event.
_MERGED_S = 1.0
_COLLISION, _NEAR_MISS = 'collision', 'near_miss'
# Heading and unit of the measures, whether less is worse, and the array of the other actors.
MEASURES = {
    'closest_distance': ('closest distance', 'm', True, 'closest_actor'),
    'gap': ('gap', 'm', True, 'lead'), 'time_headway': ('time headway', 's', True, 'lead'),
    'time_to_collision': ('time to collision', 's', True, 'collision_partner'),
    'required_deceleration': ('required deceleration', 'm/s2', False, 'lead')}
_UNITS = {'acceleration': 'm/s2', 'impact_speed': 'm/s', 'time_headway': 's',
          'time_to_collision': 's'}
# Number of a frame, raw name of another actor, and the value of a measure.
_Values = list[tuple[int, str, float]]


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

    @property
    def texts(self) -> tuple[str, str, str, str]:
        """Return kind, times, the other actor, and the worst value."""
        times = seconds(self.start) if self.end == self.start \
            else f'{seconds(self.start)} to {seconds(self.end)}'
        return self.kind.replace('_', ' '), times, self.actor, \
            f'{self.measure.replace("_", " ")} {figure(self.value)} {_UNITS[self.measure]}' + (
                ', size assumed' if self.is_size_assumed else '')


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
    :ivar required_deceleration: deceleration to the speed of the lead vehicle within the gap,
        m/s2.
    :ivar closest_distance: distance to the nearest box, m; 0 for a contact.
    :ivar acceleration: acceleration along its x axis, m/s2.
    :ivar impact_speed: speed relative to the closest actor, m/s.
    :ivar lead: raw names of the lead vehicles.
    :ivar collision_partner: raw names of the actors of ``time_to_collision``.
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
    required_deceleration: Floats
    closest_distance: Floats
    acceleration: Floats
    impact_speed: Floats
    lead: tuple[str, ...]
    collision_partner: tuple[str, ...]
    closest_actor: tuple[str, ...]
    assumptions: tuple[str, ...]
    _cut_ins: Bools
    _times: _Values
    _contacts: _Values
    _assumed: frozenset[str]

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for member in fields(self):
            if isinstance(array := getattr(self, member.name), np.ndarray):
                array.setflags(write=False)

    def __len__(self) -> int:
        """Return the number of frames, T."""
        return len(self.game_time)

    def __repr__(self) -> str:
        return f'Safety({self.name!r}, {counted(len(self), "frame")})'

    def _repr_html_(self) -> str:
        return safety_html(self, [*worst_rows(self)], [event.texts for event in self.events()])

    def to_pandas(self) -> pd.DataFrame:
        """
        Return a table with a row for each frame, and the arrays as columns.

        :raises MissingLibraryError: if pandas is not installed.
        """
        with errors.importing('to_pandas'):
            import pandas as pd
        names = [member.name for member in fields(self)]
        return pd.DataFrame({name: getattr(self, name) for name in names[1:names.index(
            'assumptions')]})

    def events(self, *, deceleration: float = 3.5, cut_in_headway: float = 2.0,
               time_to_collision: float = 1.5) -> list[SafetyEvent]:
        """
        Return the events, in the order of their beginnings.

        :param deceleration: hard braking decelerates by more, m/s2; by default the limit of
            adaptive cruise control in ISO 15622.
        :param cut_in_headway: a vehicle cuts in if it moves from the side into the path, becomes
            the lead vehicle, and the time headway is less, s.
        :param time_to_collision: near miss: it is less without a collision with that actor, s.
        :raises ConfigError: if a threshold is NaN or negative.
        """
        for name, value in (('deceleration', deceleration), ('cut_in_headway', cut_in_headway),
                            ('time_to_collision', time_to_collision)):
            if not value >= 0.0:
                raise errors.ConfigError(name, str(value), 'a number of 0 or more')
        braking = np.where(np.abs(self.acceleration) > MAX_ACCELERATION, np.nan, self.acceleration)
        found = [event for kind, measure, values, limit in (
            ('hard_braking', 'acceleration', _known(braking, [''] * len(self)), -deceleration),
            ('cut_in', 'time_headway', self._cut_in_frames(cut_in_headway), math.inf),
            (_COLLISION, 'impact_speed', self._contacts, math.inf),
            (_NEAR_MISS, 'time_to_collision', self._times, time_to_collision))
            # The speed of a collision may be unknown.
            for event in self._runs(kind, measure, [each for each in values
                                                    if not each[2] >= limit])]
        hits = [event for event in found if event.kind == _COLLISION]
        return sorted((event for event in found if event.kind != _NEAR_MISS or not any(
            hit.actor == event.actor and hit.start - _MERGED_S <= event.end
            and event.start <= hit.end + _MERGED_S for hit in hits)),
            key=lambda event: event.start)

    def _runs(self, kind: str, measure: str, values: _Values) -> Iterator[SafetyEvent]:
        """Yield an event for each stretch of frames with one actor."""
        times, runs = self.game_time, dict[str, list[_Values]]()
        for each in sorted(values):
            of_actor = runs.setdefault(each[1], [])
            if of_actor and 0.0 <= times[each[0]] - times[of_actor[-1][-1][0]] <= _MERGED_S:
                of_actor[-1].append(each)
            else:
                of_actor.append([each])
        for actor, run in ((actor, run) for actor, of_actor in runs.items() for run in of_actor):
            numbers = [number for _, _, number in run]
            yield SafetyEvent(
                kind, float(times[run[0][0]]), float(times[run[-1][0]]), actor, measure,
                float(numbers[0] if kind == _COLLISION else min(numbers)),
                bool(actor) and not self._assumed.isdisjoint((actor, self.name)))

    def _cut_in_frames(self, headway: float) -> _Values:
        """Return the frames in which a vehicle that cut in still leads closer than ``headway``."""
        frames: Bools = self._cut_ins & (self.time_headway < headway)
        for i in np.flatnonzero(self.time_headway < headway).tolist():
            # The actor or the lead vehicle may be missing in a frame.
            frames[i] |= any(frames[k] and self.lead[i] == self.lead[k]
                             for k in range(max(i - 2, 0), i))
        return _known(np.where(frames, self.time_headway, np.nan), self.lead)


def _known(values: Floats, actors: Sequence[str]) -> _Values:
    return [(i, actors[i], float(values[i])) for i in np.flatnonzero(~np.isnan(values)).tolist()]


def _least(values: _Values, n_frames: int) -> tuple[Floats, tuple[str, ...]]:
    """Return the least number of each frame, NaN for none, and its actor."""
    least: Floats = np.full(n_frames, np.nan)
    names = [''] * n_frames
    for i, actor, value in values:
        if not least[i] <= value:
            least[i], names[i] = value, actor
    return least, tuple(names)


class _Past(NamedTuple):
    """A frame: number, time, s, boxes of the actor and of the others, their names and lanes."""

    i: int
    time_s: float
    own: criticality.PlanarBoxes
    others: criticality.PlanarBoxes
    names: dict[str, int]
    own_lane: Floats
    lanes: Floats


class SafetyCollector:
    """Measure one actor in frames in their order."""

    # actor: raw name of the actor, or ``ego`` for the ego.

    def __init__(self, actor: str, ego_tag: str = classes.EGO_TAG) -> None:
        self._actor, self._ego_tag = actor, ego_tag
        self._name, self._clock = '', math.nan
        # Names of other actors, for the error.
        self._others: set[str] = set()
        # Of each frame: time, measures, lead vehicle, speed and acceleration, place.
        self._times: list[float] = []
        self._rows: list[criticality.Criticality] = []
        self._leads: list[str] = []
        self._speeds: list[tuple[float, float]] = []
        self._places: list[Floats] = []
        # Distances to the nearest objects and those in contact, times to collisions.
        self._near, self._collisions = _Values(), _Values()
        self._impacts: dict[tuple[int, str], float] = {}
        # For each other actor whether it may be towed.
        self._towed: dict[str, bool] = {}
        # Frames with a new lead vehicle that moved aside, with its places then and now.
        self._aside: list[tuple[int, list[tuple[Floats, Floats]]]] = []
        self._cut_ins: set[int] = set()
        self._past: deque[_Past] = deque()
        self._assumptions, self._jumps = criticality.Assumptions(), Jumps()
        # Frames into which an actor has an impossible motion.
        self._wild: dict[str, set[tuple[int, str]]] = {POSITION: set(), SPEED: set()}
        self._assumed: set[str] = set()

    def add(self, frame: Frame) -> None:
        """Add a frame."""
        self._assumptions.add(frame)
        i, now = len(self._times), frame.game_time
        for kind, names in self._jumps.add(frame).items():
            self._wild[kind] |= {(i, name) for name in names}
        if now < self._clock:
            # Another run of the simulator.
            self._past.clear()
        self._clock = self._clock if math.isnan(now) else now
        row = self._row_of(frame)
        self._times.append(now)
        self._rows.append(criticality.Criticality())
        self._leads.append('')
        self._speeds.append((math.nan, math.nan))
        self._places.append(np.full(2, np.nan))
        if row is not None:
            self._name = frame.names[row]
            self._measure(frame, row, i)
        elif not self._name:
            self._others.update(frame.names)

    def _row_of(self, frame: Frame) -> int | None:
        row = classes.ego_row(frame.tags, self._ego_tag) if self._actor == EGO else None
        if row is None and self._actor in frame:
            row = frame.row(self._actor)
        return row

    def _measure(self, frame: Frame, row: int, i: int) -> None:
        """Measure the actor, at ``row`` of the frame number ``i``."""
        situation = criticality.Situation(frame)
        is_object = bool(situation.are_objects[row])
        rows = situation.others(row) if is_object else np.zeros(0, np.int64)
        here = _Past(i, frame.game_time, situation.boxes.at(slice(row, row + 1)),
                     situation.boxes.at(rows),
                     {frame.names[k]: j for j, k in enumerate(rows.tolist())},
                     situation.lanes[row], situation.lanes[rows])
        found = self._rows[i] = situation.criticality(row, self._turning(here))
        are_assumed = ~situation.have_boxes | frame.is_derived(DERIVED_SIZE)
        self._assumed.update(frame.names[k] for k in np.append(rows, row).tolist()
                             if are_assumed[k])
        self._speeds[i] = speed_along(frame, row), _forward_acceleration(frame, row)
        self._add_objects(frame, found, situation.boxes, row)
        if not is_object:
            return
        self._places[i] = here.own.centers[0]
        if found.lead >= 0:
            self._leads[i] = frame.names[found.lead]
        if self._past and here.time_s == self._past[-1].time_s:
            return
        while self._past and here.time_s - self._past[0].time_s > _ASIDE_S:
            self._past.popleft()
        if found.lead >= 0:
            self._note_cut_in(here, self._leads[i])
        self._past.append(here)

    def _turning(self, here: _Past) -> float:
        """Return the yaw rate of the actor since the last frame, rad/s, NaN if unknown."""
        if not self._past or not 0.0 < here.time_s - self._past[-1].time_s <= MAX_GAP_S:
            return math.nan
        (x, y), = criticality.to_axes(here.own.headings, self._past[-1].own.headings)
        return math.atan2(y, x) / (here.time_s - self._past[-1].time_s)

    def _add_objects(self, frame: Frame, found: criticality.Criticality,
                     boxes: criticality.PlanarBoxes, row: int) -> None:
        """Note the numbers of the other actors in a frame."""
        i, names = len(self._times) - 1, [frame.names[k] for k in found.rows.tolist()]
        impacts = np.hypot(*(boxes.velocities[row] - boxes.velocities[found.rows]).T)
        for place, k in enumerate(np.argsort(found.distances, kind='stable').tolist()):
            distance = float(found.distances[k])
            if distance > 0.0 and place >= _N_NEAREST:
                break
            self._near.append((i, names[k], distance))
            self._impacts[i, names[k]] = float(impacts[k])
        self._collisions += [(i, names[k], time_s) for k, _, time_s in _known(found.times, names)]
        are_behind = (boxes.centers[found.rows] - boxes.centers[row]) @ boxes.headings[row] < 0.0
        for k, (name, distance) in enumerate(zip(names, found.distances.tolist(), strict=True)):
            reach = _HITCH_M if 'trailer' in frame.tags[found.rows[k]] else 0.0
            self._towed[name] = self._towed.get(name, True) and bool(
                are_behind[k]) and distance <= reach

    def _note_cut_in(self, here: _Past, lead: str) -> None:
        """Note a new lead vehicle that has moved aside in its road, else from its own path."""
        # Either may be missing in a frame.
        last = next((past for past in reversed(self._past) if lead in past.names), None)
        if not self._past or (last is not None and self._leads[last.i] == lead):
            return
        now, found = here.names[lead], []
        place, lane = here.others.at(slice(now, now + 1)), here.lanes[now]
        for past in self._past:
            if lead not in past.names or here.time_s - past.time_s > _ASIDE_S:
                continue
            then = past.names[lead]
            if (past.lanes[then, :2] == lane[:2]).all():
                # A cut-in is a lane change of the lead, not of the actor itself.
                if past.lanes[then, 2] != lane[2] and here.own_lane[2] == lane[2]:
                    self._cut_ins.add(here.i)
                    return
                continue
            box = past.others.at(slice(then, then + 1))
            box = replace(box, turning=np.nan_to_num(box.turning))
            if abs(criticality.path_of(box, place)[1][0]) >= _MOVED_ASIDE:
                found.append((box.centers[0], place.centers[0]))
        if found:
            self._aside.append((here.i, found))

    def _has_cut_in(self, i: int, moves: list[tuple[Floats, Floats]]) -> bool:
        """Return whether one of the movements of a lead vehicle ended nearer to the whole path."""
        elapsed = np.array(self._times) - self._times[i]
        path = np.array([self._places[k] for k in np.flatnonzero(
            (elapsed >= -_ASIDE_S) & (elapsed < _PATH_S)) if np.isfinite(self._places[k]).all()])
        path = path[np.append(True, np.hypot(*np.diff(path, axis=0).T) > _STEP_M)]
        if len(path) < 2:
            return False
        # It may end before the place of the lead vehicle.
        path = np.vstack((path, path[-1] + 100.0 * (path[-1] - path[-2])))
        return any(_distance_to(path, then) - _distance_to(path, now) >= _MOVED_ASIDE
                   for then, now in moves)

    def safety(self) -> Safety:
        if not self._name:
            found, others = ('no ego', '') if self._actor == EGO else (
                f'no actor {self._actor!r}', parameters.near_names([self._actor], self._others))
            raise errors.StateError('actor', found, f'an ego, or the name of an actor{others}')
        times, speeds = np.array(self._times), np.array(self._speeds)
        derived = _differences(times, speeds[:, 0])
        towed = self._towed_actors()
        near, collisions = ([each for each in values if each[1] not in towed]
                            for values in (self._near, self._collisions))
        contacts = [(i, name, self._impacts[i, name]) for i, name, distance in near
                    if distance == 0.0]
        distances, closest = _least(near, len(times))
        time_to_collision, partners = _least(collisions, len(times))
        cut_ins: Bools = np.zeros(len(times), np.bool_)
        cut_ins[[*self._cut_ins, *(i for i, moves in self._aside
                                   if self._has_cut_in(i, moves))]] = True
        cut_ins[[i for i, name in self._wild[POSITION]
                 if name in (self._name, self._leads[i])]] = False
        measures = {name: np.array([getattr(row, name) for row in self._rows])
                    for name in ('gap', 'time_headway', 'required_deceleration')}
        return Safety(
            self._name, times, **measures, time_to_collision=time_to_collision,
            closest_distance=distances,
            acceleration=np.where(np.isnan(speeds[:, 1]), derived, speeds[:, 1]),
            impact_speed=np.array([self._impacts.get((i, name), math.nan)
                                   for i, name in enumerate(closest)]),
            lead=tuple(self._leads), collision_partner=partners, closest_actor=closest,
            assumptions=(*self._assumptions.lines, *self._jumps.lines, *(
                f'{name} is towed: part of {self._name}' for name in sorted(towed))),
            _cut_ins=cut_ins, _times=self._possible(collisions, POSITION, SPEED),
            _contacts=self._possible(contacts, POSITION),
            _assumed=frozenset(self._assumed))

    def _possible(self, values: _Values, *kinds: str) -> _Values:
        """Return the numbers of frames into which neither actor has an impossible motion."""
        wild = set[tuple[int, str]]().union(*(self._wild[kind] for kind in kinds))
        return [each for each in values if wild.isdisjoint(((each[0], each[1]),
                                                            (each[0], self._name)))]

    def _towed_actors(self) -> set[str]:
        """Return the actors that were behind the actor and at it all the time that it drove."""
        places = np.array([place for place in self._places if np.isfinite(place).all()])
        driven_m = float(np.hypot(*np.diff(places, axis=0).T).sum()) if len(places) > 1 else 0.0
        return {name for name, is_towed in self._towed.items()
                if is_towed and driven_m >= _DRIVEN_M}


def _forward_acceleration(frame: Frame, row: int) -> float:
    """Return the acceleration of the source along the x axis, m/s2, NaN if it has none."""
    if frame.accelerations is None or not frame.has_pose()[row]:
        return math.nan
    forward = rotations.global_from_body(frame.orientation_xyzw[row:row + 1])[0, :, 0]
    return float(forward @ frame.accelerations[row])


def _distance_to(path: Floats, place: Floats) -> float:
    """Return the distance of a place (2,) from a line (N, 2), m."""
    steps = np.diff(path, axis=0)
    shares = (((place - path[:-1]) * steps).sum(axis=1) / np.square(steps).sum(axis=1)).clip(0, 1)
    return float(np.hypot(*(path[:-1] + shares[:, None] * steps - place).T).min())


def _differences(times: Floats, speeds: Floats) -> Floats:
    """
    Return (T,) central differences of a speed, m/s2.

    They are NaN at both ends, and beside gaps and impossible steps; a repeated frame has that of
    the one before.
    """
    found, known = np.full(len(times), np.nan), np.flatnonzero(~np.isnan(times))
    rows: Rows = known[np.diff(times[known], prepend=-np.inf) > 0.0]
    elapsed, changes = np.diff(times[rows]), np.diff(speeds[rows])
    is_usable = (elapsed > 0.0) & (elapsed <= MAX_GAP_S) & ~(
        np.abs(changes) > MAX_ACCELERATION * elapsed)
    found[rows[1:-1]] = np.where(
        is_usable[:-1] & is_usable[1:],
        (speeds[rows[2:]] - speeds[rows[:-2]]) / (times[rows[2:]] - times[rows[:-2]]), np.nan)
    if len(known):
        found[known] = found[rows[np.searchsorted(rows, known, 'right') - 1]]
    return found


def _worst(safety: Safety) -> dict[str, tuple[float, float, str]]:
    """Return the worst number of each measure that has one, its game time and the other actor."""
    found = {}
    for name, (_, _, is_less, others) in MEASURES.items():
        values: Floats = getattr(safety, name)
        if not np.isnan(values).all():
            i = int(np.nanargmin(values) if is_less else np.nanargmax(values))
            found[name] = float(values[i]), float(safety.game_time[i]), getattr(safety, others)[i]
    return found


def worst_rows(safety: Safety) -> Iterator[tuple[str, str, str, str]]:
    """Yield heading, worst value, its time and the other actor of each measure that has one."""
    for name, (value, time_s, other) in _worst(safety).items():
        yield MEASURES[name][0], f'{figure(value)} {MEASURES[name][1]}', seconds(time_s), other


def safety_rows(safety: Safety) -> list[tuple[str, str]]:
    """Return headings, each with a line of text."""
    lines = [f'{heading} {value} at {time}' + (f' ({other})' if other else '')
             for heading, value, time, other in worst_rows(safety)] + [*safety.assumptions]
    events = [f'{kind}, {times}' + (f', {actor}' if actor else '') + f': {value}'
              for kind, times, actor, value in (event.texts for event in safety.events())]
    return [('' if i else heading, line) for heading, of_heading in (
        ('safety', lines or ['nothing to measure']), ('events', events or ['none']))
        for i, line in enumerate(of_heading)]


def safety_record(safety: Safety) -> dict[str, object]:
    """Return measures and events for JSON, None for what is undefined in all frames."""
    worst = {name: {'value': value if math.isfinite(value) else None, 'game_time': time_s,
                    'actor': other} for name, (value, time_s, other) in _worst(safety).items()}
    return {'actor': safety.name, 'worst': {name: worst.get(name) for name in MEASURES},
            'events': [asdict(event) for event in safety.events()],
            'assumptions': list(safety.assumptions)}

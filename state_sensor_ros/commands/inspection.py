# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The content of a recording: rates, actors, parts, anomalies, and whether it can be replayed.

Memory grows with the number of actors, not of frames.

Memory does not grow with the number of steps: equal steps are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
import json
import math
import re

import msgspec
import numpy as np

from state_sensor_ros import source
from state_sensor_ros.classes import ego_row, EGO_TAG, has_ego_tag
from state_sensor_ros.commands.reading import again
from state_sensor_ros.errors import DecodeError, no_frames, TrajectoryFormatError
from state_sensor_ros.frame import Bools, DERIVED_SIZE, DERIVED_VELOCITY, Frame, KIND_VEHICLE
from state_sensor_ros.jumps import UNITS
from state_sensor_ros.library.frame_recording import Recording
from state_sensor_ros.pipeline.checks import Checks
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.texts import counted, figure, shortened

# Bounds the memory if each frame has new names: actors that are described, and those counted.
_MAX_NAMES, _MAX_COUNTED = 10_000, 5_000_000
# Frames between two evaluations: the check averages over about twenty pairs of frames.
_CHECK_PERIOD = 20

NOT_STRICT = 'frames that are not strict JSON'
NO_FRAME = 'entries that are not frames'
_FAULTS = {source.DROPPED: 'actors dropped', source.DUPLICATE: 'duplicate names',
           source.OTHER_ID: 'ids that are not kept', source.LOST: NO_FRAME,
           source.IGNORED: 'members ignored',
           source.RIDER: 'people in vehicles dropped',
           source.RIVAL: 'more vehicles with the role of the ego',
           source.MISSING: 'files not found',
           source.MEMBER: 'unknown members'}
NO_EGO = 'frames without an ego'
NO_REPLAY_EGO = 'frames without the ego of Replay Mode'

_STRICT_JSON, _JSON = msgspec.json.Decoder(msgspec.Raw), msgspec.json.Decoder()
_KEY = re.compile(rb'"\s*:')
_NUMBER = re.compile(r'-?\d[\d.e+-]*')
# Steps are counted with a resolution of 10 us, up to this many different ones.
_STEPS_PER_S = 100_000
_MAX_DIFFERENT = 10_000
# A step of more than this many times the median is a jump.
_JUMP = 5.0
# A step is usual between these multiples of the median.
_USUAL = (0.5, 1.5)


@dataclass(slots=True)
class Anomaly:
    """An anomaly: its count, and the place and text of the first."""

    count: int
    place: str
    text: str


@dataclass(slots=True)
class ActorSummary:
    """One actor: its number of frames, and its kind and tags in the first of them."""

    n_frames: int
    is_vehicle: bool
    tags: tuple[str, ...]


class Inspector:
    """
    The figures of a recording, computed frame by frame.

    ``first_game_time``, ``last_game_time`` s; ``first_time`` s since 1970; ``generations``,
    ``parts`` name to number of frames; ``anomalies`` by kind; ``actors`` by name, the first ten
    thousand; ``n_vehicles`` and ``n_objects`` numbers of all of them; ``complaints``
    of the checks, each with the place of the first one, of ``n_checks`` evaluations;
    ``refusal`` the error because of which it cannot be read or replayed.

    :param recording: recording to evaluate.
    :param replayable: generations of frames that Replay Mode takes.
    :param ego_tag: tag that marks the ego; Replay Mode always needs EGO_TAG.
    :param is_part: whether only a span of time is read.
    :param is_of_some: whether only some actors are read, so that the ego may not be among them.
    """

    def __init__(self, recording: Recording, replayable: Collection[str],
                 ego_tag: str = EGO_TAG, *, is_part: bool = False,
                 is_of_some: bool = False) -> None:
        self._recording = recording
        self._is_part, self._is_of_some = is_part, is_of_some
        self._ego_tag = ego_tag
        # Replay Mode has an ego tag of its own.
        self._replay_kind = NO_EGO if has_ego_tag([ego_tag]) else NO_REPLAY_EGO
        self._replayable = replayable
        self.n_frames = 0
        self.first_game_time = self.last_game_time = math.nan
        self.first_time = 0
        self.n_actors_least = self.n_actors_most = 0
        self.generations: Counter[str] = Counter()
        self.parts: Counter[str] = Counter()
        self.actors: dict[str, ActorSummary] = {}
        self.n_vehicles = self.n_objects = 0
        # Actors by tag; names of the actors with the tag of the ego, in order of appearance.
        self.tags: Counter[str] = Counter()
        self.egos: list[str] = []
        # Hashes of the names that are not in ``actors``.
        self._others: set[int] = set()
        self.anomalies: dict[str, Anomaly] = {}
        self.complaints: dict[str, Anomaly] = {}
        self.n_checks = 0
        self.refusal: TrajectoryFormatError | None = None
        self.pacing = Pacing()
        self.checks = Checks(math.inf)
        self._last_place = ''
        self._stamper = Stamper('game_time')
        self._sample_count = 0
        self._greatest_step_at = ''

    @property
    def is_replayable(self) -> bool | None:
        """Whether Replay Mode takes the recording; None where the question makes no sense."""
        if self.refusal is not None:
            return False
        return True if self._is_for_replay else None

    @property
    def has_replay_mode(self) -> bool:
        """Whether all frames are of generations that Replay Mode takes."""
        return self.generations.keys() <= set(self._replayable)

    @property
    def _is_for_replay(self) -> bool:
        """Whether all frames are of generations that Replay Mode takes, none without its ego."""
        return bool(self.egos or not self._is_of_some) and self.has_replay_mode

    def evaluate(self, frames: Iterable[Frame]) -> None:
        """
        Evaluate frames up to the end of the recording or to a damaged place.

        :param frames: frames of the recording; those without a time have NaN.
        """
        try:
            for frame in frames:
                if self._recording.format_name == 'trajectory':
                    if not _is_strict(self._recording.payload):
                        self._note(NOT_STRICT, 'JSON that only lenient readers accept')
                    key = _repeated_key(self._recording.payload)
                    if key:
                        self._note('keys that an object has twice',
                                   f'{shortened(key)!r}: readers keep one of the values')
                self._note_faults()
                self._add_frame(frame)
        except TrajectoryFormatError as error:
            self.refusal = error
        except KeyboardInterrupt:
            # The ordinary end of a stream.
            if self._recording.format_name != 'stream' or not self.n_frames:
                raise
        self._note_faults()
        self._conclude()

    def _note_faults(self) -> None:
        """Count the faults of the recording as anomalies."""
        faults = self._recording.faults
        for kind, count in faults.counts.items():
            name = _FAULTS.get(kind) or (
                f'actors of the undeclared type {kind.removeprefix(source.UNDECLARED)}'
                if kind.startswith(source.UNDECLARED) else None)
            if name is None:
                continue
            if name not in self.anomalies:
                first = next(fault for fault in faults if fault.kind == kind)
                self.anomalies[name] = Anomaly(0, _numbered(first.place, first.index), first.text)
            self.anomalies[name].count = count

    def _note(self, kind: str, text: str, place: str = '') -> None:
        """Count an anomaly at a place, by default of the last frame."""
        _note(self.anomalies, kind, place or self._place(), text)

    def _place(self) -> str:
        """Return the place of the last frame."""
        return _numbered(self._recording.place, self._recording.index)

    def _add_frame(self, frame: Frame) -> None:
        self.n_frames += 1
        self.generations[frame.generation] += 1
        self.n_actors_most = max(self.n_actors_most, frame.n_actors)
        self.n_actors_least = frame.n_actors if self.n_frames == 1 else min(
            self.n_actors_least, frame.n_actors)
        self.parts.update(_parts(frame))
        self._add_actors(frame)
        self._check_numbers(frame)
        self._check_clock(frame, self._place())

    def _add_actors(self, frame: Frame) -> None:
        n_egos = 0
        for name, kind, tags in zip(frame.names, frame.kinds.tolist(), frame.tags, strict=True):
            is_ego = has_ego_tag(tags, self._ego_tag)
            n_egos += is_ego
            known = self.actors.get(name)
            if known is not None:
                known.n_frames += 1
                continue
            if len(self.actors) < _MAX_NAMES:
                self.actors[name] = ActorSummary(1, kind == KIND_VEHICLE, tags)
            elif hash(name) in self._others or len(self._others) == _MAX_COUNTED:
                continue
            else:
                self._others.add(hash(name))
            self.n_vehicles += kind == KIND_VEHICLE
            self.n_objects += kind != KIND_VEHICLE
            self.tags.update(tag for tag in tags
                             if tag in self.tags or len(self.tags) < _MAX_DIFFERENT)
            if is_ego and len(self.egos) < _MAX_NAMES:
                self.egos.append(name)
        if not n_egos:
            self._note(NO_EGO, f'no actor tagged {self._ego_tag}')
        elif n_egos > 1:
            self._note('frames with several egos', f'{n_egos} actors tagged {self._ego_tag}')
        if self._replay_kind != NO_EGO and self._is_for_replay and ego_row(frame.tags) is None:
            self._note(NO_REPLAY_EGO, f'no actor tagged {EGO_TAG}')

    def _check_numbers(self, frame: Frame) -> None:
        usable = frame.has_pose()
        if not usable.all():
            known = np.isfinite(frame.kinematics[:, :7].sum(axis=1))
            self._note_actors(frame, np.logical_not(known), 'poses with unknown numbers')
            self._note_actors(frame, known & ~usable, 'quaternions that are not rotations')
        # Some generations have no such vectors.
        finite: Bools = np.isfinite(frame.kinematics[:, 7:]).reshape(-1, 2, 3)
        n_finite = np.count_nonzero(finite, axis=2)
        self._note_actors(frame, np.any((n_finite > 0) & (n_finite < 3), axis=1),
                          'velocities with unknown numbers')

    def _note_actors(self, frame: Frame, rows: Bools, kind: str) -> None:
        for i in np.flatnonzero(rows):
            self._note(kind, frame.names[i])

    def _check_clock(self, frame: Frame, place: str) -> None:
        last = self.last_game_time
        n_missing = frame.sample_count - self._sample_count - 1
        if n_missing > 0 and self._sample_count:
            self._note('gaps in sample_count', f'{counted(n_missing, "sample")} missing before it',
                       place)
        self._sample_count = frame.sample_count
        try:
            step = self._stamper.step(frame, 0)
        except DecodeError as error:
            self._note('frames without a usable time', str(error), place)
            return
        if math.isnan(last):
            self.first_game_time, self.first_time = frame.game_time, frame.time
        self.last_game_time = frame.game_time
        if step is Step.REPEATED:
            self._note('repeated frames', again(frame.game_time), place)
            return
        if step is Step.RESTARTED:
            self._note('restarts', f'game_time from {last:.6g} to {frame.game_time:.6g}',
                       place)
            # An episode of a dataset is a run; the results cover all runs.
            self._note_complaints(self._last_place)
            self.checks.begin_run()
        elif not math.isnan(last) and self.pacing.add(frame.game_time - last):
            self._greatest_step_at = place
        self.checks.add(frame, place)
        self._last_place = place
        if self._recording.index % _CHECK_PERIOD == 0:
            self._note_complaints(place)

    def _note_complaints(self, place: str) -> None:
        self.n_checks += 1
        for complaint in self.checks.complaints:
            # The same complaint may come again with other numbers.
            _note(self.complaints, _NUMBER.sub('#', complaint), place, complaint)

    def _conclude(self) -> None:
        """Set the results that depend on the whole recording."""
        jumps = self.checks.jumps
        for kind, (size, name, place) in jumps.greatest.items():
            self.anomalies[f'jumps of the {kind}'] = Anomaly(
                jumps.counts[kind], place, f'{name}: {figure(size)} {UNITS[kind]}')
        cut = self._recording.cut
        if cut is not None:
            place = cut.where.removeprefix(f'{self._recording.name}: ')
            self.anomalies[f'ends inside {cut.container}'] = Anomaly(1, place, cut.summary)
        self._note_complaints('end')
        if not self.egos and not self._is_for_replay:
            # A property of the recording or selection, not an anomaly of each of its frames.
            self.anomalies.pop(NO_EGO, None)
        pace = self.pacing.pace()
        if pace.n_jumps:
            self.anomalies['steps of the clock'] = Anomaly(
                pace.n_jumps, self._greatest_step_at,
                f'{pace.greatest:.6g} s after the previous frame, usually {pace.median:.6g} s')
        name = self._recording.name
        self.refusal = self.refusal or self._no_frame()
        # What Replay Mode refuses, and what it expects instead.
        refused = ((NOT_STRICT, 'strict JSON, which has no NaN or Infinity'),
                   (self._replay_kind,
                    f'an actor tagged {EGO_TAG} in each frame: Replay Mode needs it'))
        for kind, expected in refused if self._is_for_replay else ():
            if self.refusal is None and kind in self.anomalies:
                first = self.anomalies[kind]
                self.refusal = TrajectoryFormatError(f'{name}: {first.place}', first.text,
                                                     expected)
        if self.refusal is None and not self.n_frames:
            self.refusal = no_frames(name, is_part=self._is_part,
                                     end_s=self._recording.read_s)

    def _no_frame(self) -> TrajectoryFormatError | None:
        """Return the error of the first payload that is not a frame, None without one."""
        for fault in self._recording.faults:
            if fault.kind == source.LOST and fault.error is not None:
                return TrajectoryFormatError(
                    f'{self._recording.name}: {_numbered(fault.place, fault.index)}: '
                    f'{fault.error.where}', fault.error.found, fault.error.expected)
        return None


def _note(anomalies: dict[str, Anomaly], kind: str, place: str, text: str) -> None:
    known = anomalies.setdefault(kind, Anomaly(0, place, text))
    known.count += 1


def _is_strict(payload: bytes | bytearray) -> bool:
    try:
        _STRICT_JSON.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _numbered(place: str, index: int | None) -> str:
    """Return a place with the number of its frame, from 0."""
    frame = f'frame {index}'
    return place if place == frame else f'{place}: {frame}'


def _repeated_key(payload: bytes | bytearray) -> str:
    """Return a key that an object has twice, empty if there is none."""
    try:
        kept = msgspec.json.encode(_JSON.decode(payload))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ''
    if len(_KEY.findall(kept)) == len(_KEY.findall(payload)):
        return ''
    found: list[str] = []

    def noted(pairs: list[tuple[str, object]]) -> None:
        counts = Counter(key for key, _ in pairs)
        found.extend(key for key, count in counts.items() if count > 1)

    json.loads(payload, object_pairs_hook=noted)
    return found[0] if found else ''


def _parts(frame: Frame) -> list[str]:
    """Return the names of the parts that a frame has."""
    boxes, wheels, inputs = frame.boxes, frame.wheels, frame.inputs
    has_part = {
        'boxes': boxes is not None and len(boxes.actor) > 0,
        'lanes': len(frame.lanes.actor) > 0,
        'wheels': wheels is not None and len(wheels.actor) > 0,
        'wheel positions': wheels is not None and bool(wheels.position_known.any()),
        'inputs': inputs is not None and bool(np.isfinite(inputs).any()),
        'appearance': any((frame.colors or ()) + (frame.replay_classes or ())),
        'derived velocities': bool(frame.is_derived(DERIVED_VELOCITY).any()),
        'assumed sizes': bool(frame.is_derived(DERIVED_SIZE).any()),
        'sample counts': frame.sample_count > 0,
        'wall clock': frame.time > 0}
    return [part for part, is_there in has_part.items() if is_there]


@dataclass(frozen=True, slots=True)
class Pace:
    """
    Steps of a clock, s; all NaN if there are none.

    ``rate`` Hz, of the usual steps; ``jitter`` mean absolute deviation from the ``median``;
    ``n_jumps`` number of steps of more than five times the median.
    """

    n_steps: int
    rate: float
    median: float
    least: float
    greatest: float
    jitter: float
    n_jumps: int


class Pacing:
    """
    Collected steps of a clock.

    :ivar duration: sum of the steps, s.
    :ivar greatest: longest step, s.
    """

    def __init__(self) -> None:
        self.duration = 0.0
        self.greatest = 0.0
        self._steps: Counter[int] = Counter()

    def add(self, seconds: float) -> bool:
        """
        Add a step.

        :param seconds: its length, above 0.
        :returns: whether it is the longest so far.
        """
        self.duration += seconds
        step = round(seconds * _STEPS_PER_S)
        if step in self._steps or len(self._steps) < _MAX_DIFFERENT:
            self._steps[step] += 1
        is_greatest = seconds > self.greatest
        self.greatest = max(seconds, self.greatest)
        return is_greatest

    def pace(self) -> Pace:
        """Return the statistics of the steps so far."""
        if not self._steps:
            return Pace(0, *(math.nan,) * 5, n_jumps=0)
        different = sorted(self._steps)
        steps = np.array(different) / _STEPS_PER_S
        counts = np.array([self._steps[step] for step in different])
        n_steps = int(counts.sum())
        median = float(steps[np.searchsorted(np.cumsum(counts), n_steps / 2)])
        usual = (steps >= _USUAL[0] * median) & (steps <= _USUAL[1] * median)
        spent = float(steps[usual] @ counts[usual])
        return Pace(
            n_steps=n_steps, rate=float(counts[usual].sum()) / spent if spent else math.nan,
            median=median, least=float(steps[0]), greatest=self.greatest,
            jitter=float(np.abs(steps - median) @ counts / n_steps),
            n_jumps=int(counts[steps > _JUMP * median].sum()))

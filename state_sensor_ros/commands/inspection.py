# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
What is in a recording: figures, anomalies, consistency, and why Replay Mode would refuse it.

Memory grows with the number of actors, and by 8 bytes with each frame.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
import math
from typing import Any

import numpy as np

from state_sensor_ros import errors, source
from state_sensor_ros.classes import EGO_TAG, has_ego_tag
from state_sensor_ros.commands.reading import again
from state_sensor_ros.files import frame_selection, TRAJECTORY
from state_sensor_ros.frame import DERIVED_SIZE, DERIVED_VELOCITY, Frame, KIND_VEHICLE
from state_sensor_ros.jumps import UNITS
from state_sensor_ros.library.safety import SafetyCollector
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.pipeline.checks import Checks
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.simulators.json_text import is_strict
from state_sensor_ros.texts import counted, figure

# Frames between two evaluations: the check averages over about twenty pairs of frames.
_CHECK_PERIOD = 20
_NOT_STRICT, _NO_EGO = 'frames that are not strict JSON', 'frames without an ego'
_FAULTS = {source.DROPPED: 'actors dropped', source.DUPLICATE: 'duplicate names',
           source.LOST: 'entries that are not frames',
           source.IGNORED: 'members ignored', source.RIDER: 'people in vehicles dropped',
           source.MISSING: 'files not found', source.MEMBER: 'unknown members',
           source.OTHER_POINT: 'velocities of another point'}
# A step of the clock of more than five times the median is a jump; the rate is that of those near
# the median.
_JUMP, _USUAL = 5.0, (0.5, 1.5)


class Inspection:
    """
    The figures of a recording, computed frame by frame.

    ``refusal`` is the error because of which it cannot be read or replayed, None without one.

    :param recording: recording to read.
    :param selection: what of it is read.
    :param ego_tag: tag that marks the ego; Replay Mode needs EGO_TAG.
    """

    def __init__(self, recording: FrameLoop, selection: frame_selection.RecordingSelection,
                 ego_tag: str = EGO_TAG) -> None:
        self._recording, self._selection, self._ego_tag = recording, selection, ego_tag
        self.n_frames = self._sample_count = self._time = 0
        self._first_s = self._last_s = math.nan
        self._n_actors: tuple[int, int] | None = None
        self._generations, self._parts = Counter[str](), Counter[str]()
        self._actors: dict[str, dict[str, Any]] = {}
        self._anomalies: dict[str, dict[str, Any]] = {}
        self._complaints: list[dict[str, str]] = []
        self.refusal: errors.TrajectoryFormatError | None = None
        self.checks, self._stamper = Checks(math.inf), Stamper('game_time')
        self._steps = array('d')
        self._longest, self._last_place = (0.0, ''), ''

    @property
    def egos(self) -> list[str]:
        """Return the names of the actors with the tag of the ego, in order of appearance."""
        return [name for name, actor in self._actors.items()
                if has_ego_tag(actor['tags'], self._ego_tag)]

    @property
    def has_replay_mode(self) -> bool:
        """Whether all frames are of generations that Replay Mode takes."""
        return self._generations.keys() <= {*TRAJECTORY.generations}

    def read(self, frames: Iterable[Frame], collector: SafetyCollector | None) -> None:
        """
        Evaluate frames up to the end of the recording or to a damaged place.

        :param frames: frames of the recording; those without a time have NaN.
        :param collector: to which they are added, too.
        """
        recording = self._recording
        try:
            for frame in frames:
                place = _numbered(recording.place, recording.index)
                if recording.format_name == 'trajectory' and not is_strict(recording.payload):
                    self._note(_NOT_STRICT, place, 'JSON that only lenient readers accept')
                self._add(frame, place)
                if collector is not None:
                    collector.add(frame)
        except errors.TrajectoryFormatError as error:
            self.refusal = error
        except KeyboardInterrupt:
            # The ordinary end of a stream.
            if recording.format_name != 'stream' or not self.n_frames:
                raise
        self._conclude()

    def _note(self, kind: str, place: str, text: str, n: int = 1) -> None:
        """Count ``n`` anomalies; keep place and text of the first of their kind."""
        self._anomalies.setdefault(kind, {'count': 0, 'place': place, 'text': text})['count'] += n

    def _add(self, frame: Frame, place: str) -> None:
        self.n_frames += 1
        self._generations[frame.generation] += 1
        least, most = self._n_actors or (frame.n_actors, 0)
        self._n_actors = min(least, frame.n_actors), max(most, frame.n_actors)
        self._parts.update(_parts(frame))
        for name, kind, tags in zip(frame.names, frame.kinds.tolist(), frame.tags, strict=True):
            if name not in self._actors:
                self._actors[name] = {
                    'name': name, 'kind': 'vehicle' if kind == KIND_VEHICLE else 'object',
                    'tags': list(tags), 'frames': 0}
            self._actors[name]['frames'] += 1
        n_egos = sum(has_ego_tag(tags, self._ego_tag) for tags in frame.tags)
        if not n_egos:
            self._note(_NO_EGO, place, f'no actor tagged {self._ego_tag}')
        elif n_egos > 1:
            self._note('frames with several egos', place,
                       f'{n_egos} actors tagged {self._ego_tag}')
        usable, is_known = frame.has_pose(), np.isfinite(frame.kinematics)
        are_known = is_known[:, :7].all(axis=1)
        # Some generations have no velocities.
        n_known = np.count_nonzero(is_known[:, 7:].reshape(-1, 2, 3), axis=2)
        are_in_part = np.any((n_known > 0) & (n_known < 3), axis=1)
        for kind, rows in (('poses with unknown numbers', ~are_known),
                           ('quaternions that are not rotations', are_known & ~usable),
                           ('velocities with unknown numbers', are_in_part)):
            for i in np.flatnonzero(rows):
                self._note(kind, place, frame.names[i])
        self._add_time(frame, place)

    def _add_time(self, frame: Frame, place: str) -> None:
        last_s, n_missing = self._last_s, frame.sample_count - self._sample_count - 1
        if n_missing > 0 and self._sample_count:
            self._note('gaps in sample_count', place,
                       f'{counted(n_missing, "sample")} missing before it')
        self._sample_count = frame.sample_count
        try:
            step = self._stamper.step(frame, 0)
        except errors.DecodeError as error:
            self._note('frames without a usable time', place, str(error))
            return
        if math.isnan(last_s):
            self._first_s, self._time = frame.game_time, frame.time
        self._last_s = frame.game_time
        if step is Step.REPEATED:
            self._note('repeated frames', place, again(frame.game_time))
            return
        if step is Step.RESTARTED:
            self._note('restarts', place, f'game_time from {last_s:.6g} to {frame.game_time:.6g}')
            # An episode of a dataset is a run; the results cover all runs.
            self._note_complaints(self._last_place)
            self.checks.begin_run()
        elif not math.isnan(last_s):
            step_s = frame.game_time - last_s
            self._steps.append(step_s)
            if step_s > self._longest[0]:
                self._longest = step_s, place
        self.checks.add(frame, place)
        self._last_place = place
        if self._recording.index % _CHECK_PERIOD == 0:
            self._note_complaints(place)

    def _note_complaints(self, place: str) -> None:
        self._complaints += ({'place': place, 'text': text}
                             for text in self.checks.new_complaints())

    def _conclude(self) -> None:
        """Set the results that depend on the whole recording."""
        name, faults, cut = self._recording.name, self._recording.faults, self._recording.cut
        first = {fault.kind: fault for fault in reversed(faults)}
        for kind, count in faults.counts.items():
            text = _FAULTS.get(kind) or (
                f'actors of the undeclared type {kind.removeprefix(source.UNDECLARED)}'
                if kind.startswith(source.UNDECLARED) else '')
            if text:
                self._note(text, _numbered(first[kind].place, first[kind].index),
                           first[kind].text, count)
        for kind, (jump, actor, place) in self.checks.jumps.greatest.items():
            self._note(f'jumps of the {kind}', place, f'{actor}: {figure(jump)} {UNITS[kind]}',
                       self.checks.jumps.counts[kind])
        if cut is not None:
            self._note(f'ends inside {cut.container}', cut.where.removeprefix(f'{name}: '),
                       cut.summary)
        self._note_complaints('end')
        is_for_replay = self._is_for_replay()
        if not self.egos and not is_for_replay:
            # A property of the recording or selection, not an anomaly of each of its frames.
            self._anomalies.pop(_NO_EGO, None)
        pace = self._pace()
        if pace.get('n_jumps'):
            self._note('steps of the clock', self._longest[1], f'{self._longest[0]:.6g} s after '
                       f'the previous frame, usually {pace["median"]:.6g} s',
                       int(pace['n_jumps']))
        lost = first.get(source.LOST)
        if self.refusal is None and lost is not None and lost.error is not None:
            self.refusal = errors.TrajectoryFormatError(
                f'{name}: {_numbered(lost.place, lost.index)}: {lost.error.where}',
                lost.error.found, lost.error.expected)
        # What Replay Mode refuses, and what it expects instead.
        for kind, expected in (
                (_NOT_STRICT, 'strict JSON, which has no NaN or Infinity'),
                (_NO_EGO, f'an actor tagged {EGO_TAG} in each frame: Replay Mode needs it')):
            if is_for_replay and self.refusal is None and kind in self._anomalies:
                anomaly = self._anomalies[kind]
                self.refusal = errors.TrajectoryFormatError(
                    f'{name}: {anomaly["place"]}', anomaly['text'], expected)
        if self.refusal is None and not self.n_frames:
            self.refusal = self._recording.reader.without_frames()

    def _is_for_replay(self) -> bool:
        """Whether all frames are of generations that Replay Mode takes, none without its ego."""
        return self.has_replay_mode and has_ego_tag([self._ego_tag]) and bool(
            self.egos or self._selection.has_all_actors)

    def _pace(self) -> dict[str, float]:
        """Return figures of the steps of the clock, s, and the rate of the usual ones, Hz."""
        if not self._steps:
            return {}
        steps = np.array(self._steps)
        median = float(np.median(steps))
        usual = steps[(steps >= _USUAL[0] * median) & (steps <= _USUAL[1] * median)]
        return {'rate': 1.0 / float(usual.mean()) if len(usual) else math.nan, 'median': median,
                'least': float(steps.min()), 'greatest': self._longest[0],
                'jitter': float(np.abs(steps - median).mean()),
                'n_jumps': int((steps > _JUMP * median).sum())}

    def record(self) -> dict[str, Any]:
        """Return the summary as JSON, with null for unknown values."""
        recording, refusal, checks, pace = self._recording, self.refusal, self.checks, self._pace()
        of, (least, most) = checks.figures(of_all=True), self._n_actors or (0, 0)
        sensors: dict[str, dict[str, int]] = {}
        for (name, kind), count in (recording.sensor_counts or {}).items():
            sensors.setdefault(name, {})[kind] = count
        return {
            'file': recording.name, 'form': recording.format_name, 'frames': self.n_frames,
            'bytes': recording.n_bytes, 'generations': dict(self._generations),
            'duration_s': math.fsum(self._steps), 'rate_hz': _known(pace.get('rate')),
            'step_s': {name: _known(pace.get(name))
                       for name in ('median', 'least', 'greatest', 'jitter')},
            'game_time_s': {'first': _known(self._first_s), 'last': _known(self._last_s)},
            'time_s': self._time or None, 'actors_per_frame': {'least': least, 'most': most},
            'n_actors': len(self._actors), 'actors': [*self._actors.values()],
            'egos': self.egos, 'present': dict(self._parts),
            **({} if recording.sensor_counts is None else {'sensors': sensors}),
            'anomalies': [{'kind': kind, **anomaly}
                          for kind, anomaly in self._anomalies.items()],
            'truth': {
                'linear_slope': _known(of.displacement),
                'linear_residual_m': _known(of.linear_residual),
                'angular_slope': _known(of.rotation),
                'angular_residual_rad': _known(of.angular_residual), 'slip': _known(of.slip),
                'pairs': checks.n_pairs, 'compared': checks.n_compared,
                'not_compared': dict(checks.not_compared), 'complaints': self._complaints},
            'replayable': False if refusal else True if self._is_for_replay() else None,
            'refusal': None if refusal is None else {
                'where': refusal.where, 'found': refusal.found, 'expected': refusal.expected}}


def _numbered(place: str, index: int) -> str:
    """Return a place with the number of its frame, from 0."""
    frame = f'frame {index}'
    return place if place == frame else f'{place}: {frame}'


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


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

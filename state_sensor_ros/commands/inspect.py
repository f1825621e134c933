# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A005
"""
`state_sensor inspect`: one screen about a recording, or JSON.

The exit code is 1 if the recording cannot be read, or Replay Mode would refuse it. For a simulator
without a Replay Mode, only the former counts. Memory grows with the number of actors and of
different steps of the clock, not with that of frames.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timezone
import json
import math
from typing import Any

import numpy as np

from state_sensor_ros import errors, source
from state_sensor_ros.classes import EGO_TAG, has_ego_tag
from state_sensor_ros.commands import options
from state_sensor_ros.commands.reading import again, open_frames, read_frames
from state_sensor_ros.commands.terminal import print_output
from state_sensor_ros.files import frame_selection, search, TRAJECTORY
from state_sensor_ros.frame import DERIVED_SIZE, DERIVED_VELOCITY, Frame, KIND_VEHICLE
from state_sensor_ros.jumps import UNITS
from state_sensor_ros.library.safety import (
    EGO,
    MEASURES,
    safety_record,
    safety_rows,
    SafetyCollector,
)
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.pipeline.checks import Checks
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.simulators import schema_of
from state_sensor_ros.simulators.json_text import is_strict
from state_sensor_ros.texts import counted, figure, listed, one_line, seconds, size

_EPILOG = """examples:
  state_sensor inspect drive.json
  state_sensor inspect drive_bag --json --start 10 --actors EgoVehicle_0
  state_sensor inspect 'days/**/*.json' --parquet days.parquet"""

# Frames between two evaluations: the check averages over about twenty pairs of frames.
_CHECK_PERIOD = 20
_NOT_STRICT, _NO_EGO = 'frames that are not strict JSON', 'frames without an ego'
_FAULTS = {source.DROPPED: 'actors dropped', source.DUPLICATE: 'duplicate names',
           source.LOST: 'entries that are not frames',
           source.IGNORED: 'members ignored', source.RIDER: 'people in vehicles dropped',
           source.MISSING: 'files not found', source.MEMBER: 'unknown members',
           source.OTHER_POINT: 'velocities of another point'}
# Steps are counted with a resolution of 10 us. One of more than five times the median is a jump;
# the rate is that of those near the median.
_STEPS_PER_S, _JUMP, _USUAL = 100_000, 5.0, (0.5, 1.5)

# Columns of a row for each of many recordings: name, type, and path in the JSON.
_COLUMNS = (
    ('file', 'string', 'file'), ('form', 'string', 'form'), ('frames', 'int64', 'frames'),
    ('bytes', 'int64', 'bytes'), ('generations', 'string', 'generations'),
    ('duration_s', 'double', 'duration_s'), ('rate_hz', 'double', 'rate_hz'),
    ('step_median_s', 'double', 'step_s median'), ('time_s', 'int64', 'time_s'),
    ('game_time_first_s', 'double', 'game_time_s first'),
    ('game_time_last_s', 'double', 'game_time_s last'), ('n_actors', 'int64', 'n_actors'),
    ('actors_per_frame_most', 'int64', 'actors_per_frame most'),
    ('n_anomalies', 'int64', 'anomalies'), ('replayable', 'bool', 'replayable'))
_EVENTS = {'hard_brakings': 'hard_braking', 'cut_ins': 'cut_in', 'near_misses': 'near_miss',
           'collisions': 'collision'}
_SAFETY_COLUMNS = (
    ('ego', 'string', 'safety actor'),
    *((name, 'double', f'safety worst {name} value') for name in MEASURES),
    *((name, 'int64', '') for name in _EVENTS))
# Columns of a printed row.
_SHOWN = 'frames', 'duration_s', 'rate_hz', 'n_actors', 'n_anomalies'
_SHOWN_OF_SAFETY = 'closest_distance', 'time_to_collision', *_EVENTS


def add_inspect(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    options.add_input(parser, 'file', metavar='FILE', nargs='*',
                      more='; also folders of them or globs')
    parser.add_argument('--live', action='store_true',
                        help='read a live stream until --frames, --seconds or Ctrl-C')
    parser.add_argument('--json', action='store_true',
                        help='print JSON; `replayable` is null if there is no Replay Mode')
    parser.add_argument('--safety', action='store_true',
                        help='add safety measures and events of the ego')
    parser.add_argument('--parquet', metavar='OUT',
                        help='write a table with a row for each recording')
    options.add_force(parser)
    options.add_quiet(parser, 'print neither progress nor a line about OUT')
    options.add(parser, 'batch', 'bag', 'stream', 'selection')


def run_inspect(args: argparse.Namespace) -> None:
    """Print a summary of the recording, or a row for each of many."""
    if args.live == bool(args.file):
        raise errors.UsageError('expected either FILE, or --live for a running simulator')
    options.check_suffix('--parquet', args.parquet, ['.parquet'])
    if args.parquet or (args.file and options.are_many(args, args.file)):
        _inspect_many(args)
        return
    settings, reader = open_frames(args, args.file[0] if args.file else None)
    selection, safety = options.selection_of(args), None
    collector = SafetyCollector(EGO, settings.ego_tag) if args.safety else None
    with closing(FrameLoop(reader, is_timed=False, selection=selection)) as recording:
        found = Inspection(recording, selection, settings.ego_tag)
        found.read(read_frames(recording, 'inspect', is_quiet=args.quiet, warns=False), collector)
    failure: errors.StateSensorError | None = found.refusal
    simulator = args.source if args.live else recording.simulator
    if collector is not None and found.egos:
        safety = collector.safety()
    elif collector is not None:
        # What cannot be read has no ego, but that is not the reason.
        failure = failure or errors.StateError(
            recording.name, f'no actor tagged {settings.ego_tag}',
            f'an ego; {_ego_hint(simulator)}')
    record = found.record()
    if args.json:
        print_output(json.dumps(record if safety is None else {
            **record, 'safety': safety_record(safety)}, indent=2, allow_nan=False))
    elif found.n_frames:
        rows = _screen(found, record, simulator)
        if safety is not None:
            rows += safety_rows(safety)
            if not selection.has_all_actors:
                rows.append(('', 'measured only among the selected actors'))
        print_output('\n'.join(f'{heading:<12}{one_line(text)}' for heading, text in rows))
    if failure is not None:
        raise failure


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
        self.duration_s, self._steps = 0.0, Counter[int]()
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
            self.duration_s += step_s
            self._steps[round(step_s * _STEPS_PER_S)] += 1
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
        steps = np.array(sorted(self._steps)) / _STEPS_PER_S
        counts = np.array([self._steps[step] for step in sorted(self._steps)])
        median = float(steps[np.searchsorted(np.cumsum(counts), counts.sum() / 2)])
        usual = (steps >= _USUAL[0] * median) & (steps <= _USUAL[1] * median)
        spent_s = float(steps[usual] @ counts[usual])
        return {'rate': float(counts[usual].sum()) / spent_s if spent_s else math.nan,
                'median': median, 'least': float(steps[0]), 'greatest': self._longest[0],
                'jitter': float(np.abs(steps - median) @ counts / counts.sum()),
                'n_jumps': int(counts[steps > _JUMP * median].sum())}

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
            'duration_s': self.duration_s, 'rate_hz': _known(pace.get('rate')),
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


def _ego_hint(simulator: str) -> str:
    """Return how an ego is selected in a recording or stream without one."""
    name = f'{simulator}.ego'
    return f'-p {name}:=NAME selects one' if simulator and name in schema_of(simulator).names \
        else '--ego-tag TAG selects an actor by its tag'


def _screen(found: Inspection, record: Mapping[str, Any], simulator: str) -> list[tuple[str, str]]:
    """Return headings, empty for further lines of one, with their texts."""
    n_frames, vehicles, objects = record['frames'], list[str](), list[str]()
    for actor in record['actors']:
        (vehicles if actor['kind'] == 'vehicle' else objects).append(actor['name'])
    least, most = record['actors_per_frame'].values()
    actors = ', '.join(counted(len(names), noun)
                       for noun, names in (('vehicle', vehicles), ('object', objects)))
    tags = Counter(tag for actor in record['actors'] for tag in dict.fromkeys(actor['tags']))
    # Rows of a table and elements of XML are not counted.
    n_bytes = f', {size(record["bytes"])}' if record['bytes'] else ''
    replayable = {True: 'yes', False: 'no', None: 'does not apply: ' + (
        f'no actor tagged {EGO_TAG} is selected' if found.has_replay_mode
        else 'the simulator has no Replay Mode')}
    return [
        ('recording', f'{record["file"]} ({record["form"]})'),
        ('generation', _counted(record['generations'], n_frames)),
        ('frames', f'{n_frames}{n_bytes}'),
        *_clock_rows(record),
        ('actors', f'{record["n_actors"]}: {actors}; '
         + (f'{least} per frame' if least == most else f'{least} to {most} per frame')),
        *([('', listed([*vehicles, *objects]))] if record['actors'] else []),
        ('tags', listed([f'{tag} {count}' for tag, count in tags.most_common()]) or 'none'),
        ('ego', listed(record['egos']) or f'none; {_ego_hint(simulator)}'),
        ('present', _counted(record['present'], n_frames) or 'poses alone'),
        *_headed('sensors', [f'{name}: ' + ', '.join(
            f'{kind} {count}' for kind, count in counts.items())
            for name, counts in record.get('sensors', {}).items()]),
        *_headed('anomalies', [
            f'{each["kind"]}: {each["count"]}, first at {each["place"]}: {each["text"]}'
            for each in record['anomalies']] or ['none']),
        *_headed('consistency', _consistency(found.checks, record['truth'])),
        ('replayable', replayable[record['replayable']])]


def _headed(heading: str, lines: Iterable[str]) -> list[tuple[str, str]]:
    return [('' if i else heading, line) for i, line in enumerate(lines)]


def _counted(parts: Mapping[str, int], n_frames: int) -> str:
    return ', '.join(part if count == n_frames else f'{part} ({counted(count, "frame")})'
                     for part, count in parts.items())


def _clock_rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    first_s, last_s = record['game_time_s'].values()
    if first_s is None:
        return [('clock', 'no frame has a time')]
    start = f'game time {seconds(first_s)} to {seconds(last_s)}'
    if record['time_s']:
        start += f', started {datetime.fromtimestamp(record["time_s"], timezone.utc):%F %T} UTC'
    rows = [('duration', f'{seconds(record["duration_s"])} ({start})')]
    if record['step_s']['median'] is not None:
        median, least, greatest = (
            figure(1e3 * record['step_s'][name]) for name in ('median', 'least', 'greatest'))
        rate, jitter = record['rate_hz'], figure(1e3 * record['step_s']['jitter'], 3)
        steps = f'step {median} ms, from {least} to {greatest} ms, jitter {jitter} ms'
        rows.append(('rate', f'{"unknown" if rate is None else figure(rate)} Hz ({steps})'))
    return rows


def _consistency(checks: Checks, truth: Mapping[str, Any]) -> list[str]:
    """Return lines about velocities and what moved between frames."""
    if not checks.n_pairs:
        lines = [checks.reason]
    else:
        of = checks.figures(of_all=True)
        lines = [', '.join(
            f'{what} not compared' if math.isnan(slope) else
            f'{what} {figure(slope)} x {product} (residual {figure(residual)} {unit})'
            for what, product, slope, residual, unit in (
                ('displacement', 'velocity x time', of.displacement, of.linear_residual, 'm'),
                ('rotation', 'angular velocity x time', of.rotation, of.angular_residual,
                 'rad')))]
    if truth['not_compared']:
        lines.append(f'{counted(checks.n_compared, "pair")} of poses compared; not compared: '
                     + ', '.join(f'{n} {why}' for why, n in truth['not_compared'].items()))
    return lines + [f'{each["text"]} ({each["place"]})' for each in truth['complaints']]


def _inspect_many(args: argparse.Namespace) -> None:
    """Print or write a row for each recording."""
    from state_sensor_ros.commands.batch import job_of, records_of, refuse_failures, write_table
    found = search.find_recordings(args.file, has_results=False)
    jobs = [job_of('inspect', args, recording.path, file=[recording.path], json=True,
                   parquet=None) for recording in found]
    records = records_of(jobs, n_processes=args.jobs, dask=args.dask, is_json=args.json)
    columns = (*_COLUMNS, *(_SAFETY_COLUMNS if args.safety else ()), ('error', 'string', 'error'))
    rows = [_row(record, columns) for record in records]
    if args.parquet:
        import pyarrow as pa
        schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind, _ in columns])
        write_table(args, lambda: pa.Table.from_pylist(rows, schema=schema))
    elif not args.json:
        _print_rows(rows, (*_SHOWN, *(_SHOWN_OF_SAFETY if args.safety else ())))
    refuse_failures('inspect', records)


def _row(record: Mapping[str, Any], columns: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    """Return the values of a record by column; a list counts, a dict is its names."""
    events = (record.get('safety') or {}).get('events')
    row: dict[str, Any] = {}
    for name, _, path in columns:
        value: Any = record
        for key in path.split():
            value = value.get(key) if isinstance(value, dict) else None
        if name in _EVENTS:
            value = None if events is None else sum(
                event['kind'] == _EVENTS[name] for event in events)
        row[name] = len(value) if isinstance(value, list) else \
            ','.join(value) if isinstance(value, dict) else value
    row['file'] = row['file'].encode(errors='backslashreplace').decode()
    return row


def _print_rows(rows: Sequence[Mapping[str, Any]], shown: Sequence[str]) -> None:
    """Print the columns that are shown."""
    lines = [['recording', *shown], *([one_line(row['file']), *(
        '-' if row[key] is None else figure(row[key]) for key in shown)] for row in rows)]
    width = max(len(name) for name, *_ in lines)
    for name, *texts in lines:
        print_output('  '.join((f'{name:{width}}', *(
            f'{text:>{max(len(key), 9)}}' for key, text in zip(shown, texts, strict=True)))))

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
without a Replay Mode, only the former counts.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
import json
import math
import os
from pathlib import Path
from typing import Any

from state_sensor_ros import errors
from state_sensor_ros.commands import options
from state_sensor_ros.commands.batch import job_of, print_records, records_of
from state_sensor_ros.commands.inspection import Inspector
from state_sensor_ros.commands.live import open_frames
from state_sensor_ros.commands.reading import read_frames
from state_sensor_ros.commands.terminal import print_output, show_result, STANDARD_OUTPUT
from state_sensor_ros.files import TRAJECTORY
from state_sensor_ros.files.output import WholeFile
from state_sensor_ros.files.search import find_recordings, is_glob
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.frame_recording import Recording
from state_sensor_ros.library.safety import EGO, HORIZON_S, SafetyCollector
from state_sensor_ros.library.safety_texts import MEASURES, safety_record, safety_rows
from state_sensor_ros.simulators import schema_of
from state_sensor_ros.texts import counted, figure, listed, one_line, seconds, size

_EPILOG = """examples:
  state_sensor inspect drive.json
  state_sensor inspect drive_bag --json --start 10 --actors EgoVehicle_0
  state_sensor inspect 'days/**/*.json' --parquet days.parquet"""

# Columns of a printed row: heading and key.
_SHOWN = (('frames', 'frames'), ('duration', 'duration_s'), ('rate', 'rate_hz'),
          ('actors', 'n_actors'), ('anomalies', 'n_anomalies'))
# Columns of events: kind.
_EVENTS = {'hard_brakings': 'hard_braking', 'cut_ins': 'cut_in', 'near_misses': 'near_miss',
           'collisions': 'collision'}
_SHOWN_OF_SAFETY = (('closest', 'closest_distance'), ('TTC', 'time_to_collision'),
                    ('braking', 'hard_brakings'), ('cut-ins', 'cut_ins'),
                    ('near', 'near_misses'), ('contacts', 'collisions'))

def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    options.add_batch_options(parser)
    options.add_bag_options(parser)
    options.add_stream_options(parser)
    options.add_selection(parser)


def run(args: argparse.Namespace) -> None:
    """Print a summary of the recording."""
    if args.live == bool(args.file):
        raise errors.UsageError('expected either FILE, or --live for a running simulator')
    if args.json and args.parquet == STANDARD_OUTPUT:
        raise errors.UsageError('--parquet - and --json both write to standard output')
    if args.file and _is_batch(args):
        _inspect_many(args)
        return
    args.file = args.file[0] if args.file else None
    settings, reader = open_frames(args, args.file)
    selection = options.selection_of(args)
    with Recording(reader, is_timed=False, selection=selection) as recording:
        inspector = Inspector(recording, TRAJECTORY.generations, settings.ego_tag,
                              is_part=not selection.has_all_frames,
                              is_of_some=not selection.has_all_actors)
        frames: Iterable[Frame] = read_frames(recording, 'inspect', is_quiet=args.quiet,
                                              warns=False)
        collector = SafetyCollector(EGO, HORIZON_S, settings.ego_tag) if args.safety else None
        inspector.evaluate(frames if collector is None else collector.passing(frames))
    # What is unreadable has no ego: the reason is not that.
    is_unread = inspector.refusal is not None and not inspector.n_frames
    failure: errors.StateSensorError | None = inspector.refusal
    safety = None
    simulator = args.source if args.live else recording.simulator
    if collector is not None and not is_unread:
        try:
            safety = collector.safety()
        except errors.StateError as error:
            failure = failure or (error if inspector.egos else errors.StateError(
                recording.name, f'no actor tagged {settings.ego_tag}',
                f'an ego; {_ego_hint(simulator)}'))
    if args.json:
        members = {} if safety is None else {'safety': safety_record(safety)}
        print_output(json.dumps({**_record(recording, inspector), **members}, indent=2,
                                allow_nan=False))
    elif inspector.n_frames:
        rows = _screen(recording, inspector, simulator)
        rows += [] if safety is None else safety_rows(safety)
        if safety is not None and (
                selection.actors or selection.desired_tags or selection.undesired_tags):
            rows.append(('', 'measured only among the selected actors'))
        print_output('\n'.join([f'{heading:<12}{one_line(text)}' for heading, text in rows]))
    if failure is not None:
        raise failure


def _ego_hint(simulator: str) -> str:
    """Return how an ego is selected in a recording or stream without one."""
    name = f'{simulator}.ego'
    return f'-p {name}:=NAME selects one' if simulator and name in schema_of(simulator).names \
        else '--ego-tag TAG selects an actor by its tag'


def _screen(recording: Recording, inspector: Inspector, simulator: str) -> list[tuple[str, str]]:
    generations = ', '.join(
        f'{name} ({counted(count, "frame")})' if len(inspector.generations) > 1 else name
        for name, count in inspector.generations.items())
    # Rows of a table and elements of XML are not counted.
    n_bytes = f', {size(recording.n_bytes)}' if recording.n_bytes else ''
    rows = [('recording', f'{recording.name} ({recording.format_name})'),
            ('generation', generations),
            ('frames', f'{inspector.n_frames}{n_bytes}'),
            *_clock_rows(inspector), *_actor_rows(inspector, simulator),
            ('present', _counted(inspector.parts.items(), inspector.n_frames) or 'poses alone'),
            *_sensor_rows(recording)]
    rows += [('' if i else 'anomalies', line) for i, line in enumerate(
        [f'{kind}: {anomaly.count}, first at {anomaly.place}: {anomaly.text}'
         for kind, anomaly in inspector.anomalies.items()] or ['none'])]
    rows += _consistency_rows(inspector)
    replayable = {True: 'yes', False: 'no', None: 'does not apply: ' + (
        'no ego is selected' if inspector.has_replay_mode else 'the simulator has no Replay Mode')}
    return [*rows, ('replayable', replayable[inspector.is_replayable])]


def _sensor_rows(recording: Recording) -> list[tuple[str, str]]:
    if recording.sensor_counts is None:
        return []
    rows = [('sensors' if not i else '', f'{name}: ' + ', '.join(
        f'{kind} {count}' for kind, count in counts.items()))
        for i, (name, counts) in enumerate(_counts_by_sensor(recording).items())]
    n_ignored = len(recording.ignored)
    return [*rows, ('ignored', f'{counted(n_ignored, "file")}: {listed(recording.ignored)}')] \
        if n_ignored else rows


def _counts_by_sensor(recording: Recording) -> dict[str, dict[str, int]]:
    """Return the number of images by camera and kind."""
    counts: dict[str, dict[str, int]] = {}
    for (name, kind), count in (recording.sensor_counts or {}).items():
        counts.setdefault(name, {})[kind] = count
    return counts


def _clock_rows(inspector: Inspector) -> list[tuple[str, str]]:
    pace = inspector.pacing.pace()
    if math.isnan(inspector.first_game_time):
        return [('clock', 'no frame has a time')]
    start = (f'game time {seconds(inspector.first_game_time)} to '
             f'{seconds(inspector.last_game_time)}')
    if inspector.first_time:
        begun = datetime.fromtimestamp(inspector.first_time, timezone.utc)
        start += f', started {begun:%F %T} UTC'
    rows = [('duration', f'{seconds(inspector.pacing.duration)} ({start})')]
    if pace.n_steps:
        median, least, greatest = (
            figure(1e3 * step) for step in (pace.median, pace.least, pace.greatest))
        jitter = figure(1e3 * pace.jitter, 3)
        steps = f'step {median} ms, from {least} to {greatest} ms, jitter {jitter} ms'
        rows.append(('rate', f'{figure(pace.rate)} Hz ({steps})'))
    return rows


def _actor_rows(inspector: Inspector, simulator: str) -> list[tuple[str, str]]:
    actors = inspector.actors
    n_actors = inspector.n_vehicles + inspector.n_objects
    least, most = inspector.n_actors_least, inspector.n_actors_most
    a_frame = f'{most}' if least == most else f'{least} to {most}'
    vehicles, objects = (counted(number, noun) for number, noun in (
        (inspector.n_vehicles, 'vehicle'), (inspector.n_objects, 'object')))
    return [('actors', f'{n_actors}: {vehicles}, {objects}; {a_frame} per frame'),
            *([('', listed(sorted(actors, key=lambda name: not actors[name].is_vehicle),
                           n_items=n_actors))] if actors else []),
            ('tags', listed([f'{tag} {count}' for tag, count in inspector.tags.most_common()])
             or 'none'),
            ('ego', listed(inspector.egos) or f'none; {_ego_hint(simulator)}')]


def _consistency_rows(inspector: Inspector) -> list[tuple[str, str]]:
    checks = inspector.checks
    of = checks.figures(of_all=True)
    if not checks.n_pairs:
        text = checks.reason
    else:
        text = ', '.join((
            _compared('displacement', 'velocity x time', of.displacement,
                      f'{_figure(of.linear_residual)} m', 'velocities', 'move'),
            _compared('rotation', 'angular velocity x time', of.rotation,
                      f'{_figure(of.angular_residual)} rad', 'angular velocities', 'turn')))
    rows = [('consistency', text)]
    rows += [('', line) for line in checks.jumps.lines]
    if checks.not_compared:
        rest = ', '.join(f'{count} {reason}' for reason, count in checks.not_compared.items())
        rows.append(('', (f'{counted(checks.n_compared, "pair")} of poses compared; not compared: '
                          f'{rest}')))
    total = counted(inspector.n_checks, 'check')
    return rows + [('', f'{complaint.text} ({complaint.place}; in {complaint.count} of {total})')
                   for complaint in inspector.complaints.values()]


def _compared(what: str, product: str, slope: float, residual: str, names: str,
              does: str) -> str:
    """Describe the result of a comparison."""
    if math.isnan(slope):
        return f'{what} not compared'
    if math.isinf(slope):
        return f'{names} are 0 where actors {does} (by {residual} per step)'
    return f'{what} {figure(slope)} x {product} (residual {residual})'


def _counted(parts: Iterable[tuple[str, int]], n_frames: int) -> str:
    return ', '.join(part if count == n_frames else f'{part} ({counted(count, "frame")})'
                     for part, count in parts)


def _figure(value: float) -> str:
    return 'unknown' if math.isnan(value) else figure(value)


def _record(recording: Recording, inspector: Inspector) -> dict[str, object]:
    """Return the summary as JSON, with null for unknown values."""
    pace, refusal = inspector.pacing.pace(), inspector.refusal
    checks = inspector.checks
    of = checks.figures(of_all=True)
    return {
        'file': recording.name, 'form': recording.format_name, 'frames': inspector.n_frames,
        'bytes': recording.n_bytes, 'generations': dict(inspector.generations),
        'duration_s': inspector.pacing.duration, 'rate_hz': _known(pace.rate),
        'step_s': {'median': _known(pace.median), 'least': _known(pace.least),
                   'greatest': _known(pace.greatest), 'jitter': _known(pace.jitter)},
        'game_time_s': {'first': _known(inspector.first_game_time),
                        'last': _known(inspector.last_game_time)},
        'time_s': inspector.first_time or None,
        'actors_per_frame': {'least': inspector.n_actors_least, 'most': inspector.n_actors_most},
        'n_actors': inspector.n_vehicles + inspector.n_objects,
        'actors': [{'name': name, 'kind': 'vehicle' if actor.is_vehicle else 'object',
                    'tags': list(actor.tags), 'frames': actor.n_frames}
                   for name, actor in inspector.actors.items()],
        'egos': inspector.egos, 'present': dict(inspector.parts), **_sensor_members(recording),
        'anomalies': [{'kind': kind, **asdict(anomaly)}
                      for kind, anomaly in inspector.anomalies.items()],
        'truth': {
            'linear_slope': _known(of.displacement),
            'linear_residual_m': _known(of.linear_residual),
            'angular_slope': _known(of.rotation),
            'angular_residual_rad': _known(of.angular_residual),
            'slip': _known(of.slip), 'pairs': checks.n_pairs,
            'jumps': '; '.join(checks.jumps.lines), 'compared': checks.n_compared,
            'not_compared': dict(checks.not_compared),
            'complaints': [asdict(complaint) for complaint in inspector.complaints.values()]},
        'replayable': inspector.is_replayable,
        'refusal': None if refusal is None else {
            'where': refusal.where, 'found': refusal.found, 'expected': refusal.expected}}


def _sensor_members(recording: Recording) -> dict[str, object]:
    if recording.sensor_counts is None:
        return {}
    return {'sensors': _counts_by_sensor(recording), 'ignored_files': list(recording.ignored)}


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _is_batch(args: argparse.Namespace) -> bool:
    """Return whether the options name several recordings, or a table of rows."""
    if len(args.file) > 1 or args.parquet or args.jobs is not None or args.dask:
        return True
    [text] = args.file
    return is_glob(text) or (Path(text).is_dir() and _has_recordings(text))


def _has_recordings(folder: str) -> bool:
    try:
        found = find_recordings([folder], has_results=False)
        return [recording.path for recording in found] != [folder]
    except errors.ConfigError:
        # The error of a folder as a recording is more specific.
        return False


def _inspect_many(args: argparse.Namespace) -> None:
    """Print or write a row for each recording."""
    found = find_recordings(args.file, has_results=False)
    for recording in found:
        if args.parquet and os.path.realpath(args.parquet) == os.path.realpath(recording.path):
            raise errors.UsageError(f'--parquet {args.parquet} is one of the recordings')
    options.check_suffix('--parquet', args.parquet, ['.parquet'])
    jobs = [job_of('inspect', args, recording.path, file=[recording.path], json=True,
                   parquet=None) for recording in found]
    records = records_of(jobs, n_processes=args.jobs, dask=args.dask, is_json=args.json)
    if args.parquet:
        with WholeFile(args.parquet, force=args.force) as file:
            _write_rows([_row(record, args.safety) for record in records], file)
        show_result(args.parquet, [counted(len(records), 'recording')],
                    is_quiet=args.json or args.quiet)
    elif not args.json:
        shown = _SHOWN + _SHOWN_OF_SAFETY * args.safety
        print_records(records, 'recording', [heading for heading, _ in shown],
                      lambda record: _cells(record, args.safety, [key for _, key in shown]),
                      width=9)
    failed = [record['file'] for record in records if record['error'] is not None]
    if failed:
        raise errors.TrajectoryFormatError(
            'inspect', f'{len(failed)} of {len(records)} recordings cannot be read or replayed; '
            f'the first: {failed[0]}')


def _row(record: Mapping[str, object], has_safety: bool) -> dict[str, object]:
    def values_of(key: str) -> dict[str, object]:
        value = record.get(key)
        return value if isinstance(value, dict) else {}

    def length_of(key: str) -> int | None:
        value = record.get(key)
        return len(value) if isinstance(value, (list, dict)) else None

    return {
        'file': str(record['file']).encode(errors='backslashreplace').decode(),
        'form': record.get('form'), 'frames': record.get('frames'),
        'bytes': record.get('bytes'), 'generations': ','.join(values_of('generations')),
        'duration_s': record.get('duration_s'), 'rate_hz': record.get('rate_hz'),
        'step_median_s': values_of('step_s').get('median'),
        'game_time_first_s': values_of('game_time_s').get('first'),
        'game_time_last_s': values_of('game_time_s').get('last'), 'time_s': record.get('time_s'),
        'n_actors': record.get('n_actors'),
        'actors_per_frame_most': values_of('actors_per_frame').get('most'),
        'n_anomalies': length_of('anomalies'), 'replayable': record.get('replayable'),
        **(_safety_members(values_of('safety')) if has_safety else {}),
        'error': record['error']}


def _safety_members(safety: Mapping[str, Any]) -> dict[str, object]:
    """Return the worst numbers of a recording, and how many events of each kind it has."""
    worst = safety.get('worst', {})
    kinds = Counter(event['kind'] for event in safety['events']) if safety else None
    return {'ego': safety.get('actor'),
            **{name: (worst.get(name) or {}).get('value') for name in MEASURES},
            **{column: None if kinds is None else kinds[kind]
               for column, kind in _EVENTS.items()}}


def _write_rows(rows: Sequence[dict[str, object]], file: WholeFile) -> None:
    import pyarrow as pa
    from pyarrow import parquet
    numbers = {'frames', 'bytes', 'time_s', 'n_actors', 'actors_per_frame_most', 'n_anomalies',
               *_EVENTS}
    texts = {'file', 'form', 'generations', 'error', 'ego'}
    schema = pa.schema([(key, pa.int64() if key in numbers else pa.string() if key in texts
                         else pa.bool_() if key == 'replayable' else pa.float64())
                        for key in rows[0]])
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), file.handle,
                        write_page_checksum=True)


def _cells(record: Mapping[str, object], has_safety: bool, keys: Iterable[str]) -> list[str]:
    row = _row(record, has_safety)
    return [_text(key, row[key]) for key in keys]


def _text(key: str, value: object) -> str:
    if not isinstance(value, float):
        return '-' if value is None else str(value)
    return seconds(value) if key in ('duration_s', 'time_to_collision') \
        else f'{figure(value)} {"Hz" if key == "rate_hz" else "m"}'

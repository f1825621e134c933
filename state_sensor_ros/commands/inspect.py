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
from contextlib import closing
from datetime import datetime, timezone
import json
import math
from typing import Any

from state_sensor_ros import errors
from state_sensor_ros.classes import EGO_TAG
from state_sensor_ros.commands import options
from state_sensor_ros.commands.inspection import Inspection
from state_sensor_ros.commands.reading import open_frames, read_frames
from state_sensor_ros.commands.terminal import print_output
from state_sensor_ros.files import search
from state_sensor_ros.library import safety
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.pipeline.checks import Checks
from state_sensor_ros.simulators import schema_of
from state_sensor_ros.texts import counted, figure, listed, one_line, seconds, size

_EPILOG = """examples:
  state_sensor inspect drive.json
  state_sensor inspect drive_bag --json --start 10 --actors EgoVehicle_0
  state_sensor inspect 'days/**/*.json' --parquet days.parquet"""

# Columns of a row for each of many recordings: name, type, and path in the JSON; in a list, of the
# elements of a kind.
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
    *((name, 'double', f'safety worst {name} value') for name in safety.MEASURES),
    *((name, 'int64', f'safety events {kind}') for name, kind in _EVENTS.items()))
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
    options.check_suffix('--parquet', args.parquet, '.parquet')
    if args.parquet or (args.file and options.are_many(args, args.file)):
        _inspect_many(args)
        return
    settings, reader = open_frames(args, args.file[0] if args.file else None)
    selection, measured = options.selection_of(args), None
    collector = safety.SafetyCollector(safety.EGO, settings.ego_tag) if args.safety else None
    with closing(FrameLoop(reader, is_timed=False, selection=selection)) as recording:
        found = Inspection(recording, selection, settings.ego_tag)
        found.read(read_frames(recording, 'inspect', is_quiet=args.quiet, warns=False), collector)
    failure: errors.StateSensorError | None = found.refusal
    simulator = args.source if args.live else recording.simulator
    if collector is not None and found.egos:
        measured = collector.safety()
    elif collector is not None:
        # What cannot be read has no ego, but that is not the reason.
        failure = failure or errors.StateError(
            recording.name, f'no actor tagged {settings.ego_tag}',
            f'an ego; {_ego_hint(simulator)}')
    record = found.record()
    if args.json:
        print_output(json.dumps(record if measured is None else {
            **record, 'safety': safety.safety_record(measured)}, indent=2, allow_nan=False))
    elif found.n_frames:
        rows = _screen(found, record, simulator)
        if measured is not None:
            rows += safety.safety_rows(measured)
            if not selection.has_all_actors:
                rows.append(('', 'measured only among the selected actors'))
        print_output('\n'.join(f'{heading:<12}{one_line(text)}' for heading, text in rows))
    if failure is not None:
        raise failure


def _ego_hint(simulator: str) -> str:
    """Return how an ego is selected in a recording or stream without one."""
    name = f'{simulator}.ego'
    return f'-p {name}:=NAME selects one' if simulator and name in schema_of(simulator).names \
        else '--ego-tag TAG selects an actor by its tag'


def _screen(found: Inspection, record: Mapping[str, Any], simulator: str) -> list[tuple[str, str]]:
    """Return headings, empty for further lines of one, with their texts."""
    n_frames, (least, most) = record['frames'], record['actors_per_frame'].values()
    names = {kind: [actor['name'] for actor in record['actors'] if actor['kind'] == kind]
             for kind in ('vehicle', 'object')}
    actors = ', '.join(counted(len(of_kind), kind) for kind, of_kind in names.items())
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
        *([('', listed([*names['vehicle'], *names['object']]))] if record['actors'] else []),
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
    records = records_of(args, jobs)
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
    row: dict[str, Any] = {}
    for name, _, path in columns:
        value: Any = record
        for key in path.split():
            value = [each for each in value if each['kind'] == key] if isinstance(value, list) \
                else value.get(key) if isinstance(value, dict) else None
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

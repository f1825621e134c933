# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor inspect` of many recordings: a row for each."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
import os
from pathlib import Path
from typing import Any

from state_sensor_ros.commands.batch import job_of, print_records, records_of
from state_sensor_ros.commands.options import check_suffix
from state_sensor_ros.commands.terminal import show_result
from state_sensor_ros.errors import ConfigError, TrajectoryFormatError, UsageError
from state_sensor_ros.files.output import WholeFile
from state_sensor_ros.files.search import find_recordings, is_glob
from state_sensor_ros.library.safety_texts import MEASURES
from state_sensor_ros.texts import counted, figure, seconds

# Columns of a printed row: heading and key.
_SHOWN = (('frames', 'frames'), ('duration', 'duration_s'), ('rate', 'rate_hz'),
          ('actors', 'n_actors'), ('anomalies', 'n_anomalies'))
# Columns of events: kind.
_EVENTS = {'hard_brakings': 'hard_braking', 'cut_ins': 'cut_in', 'near_misses': 'near_miss',
           'collisions': 'collision'}
_SHOWN_OF_SAFETY = (('closest', 'closest_distance'), ('TTC', 'time_to_collision'),
                    ('braking', 'hard_brakings'), ('cut-ins', 'cut_ins'),
                    ('near', 'near_misses'), ('contacts', 'collisions'))


def is_batch(args: argparse.Namespace) -> bool:
    """Return whether the options name several recordings, or a table of rows."""
    if len(args.file) > 1 or args.parquet or args.jobs is not None or args.dask:
        return True
    [text] = args.file
    return is_glob(text) or (Path(text).is_dir() and _has_recordings(text))


def _has_recordings(folder: str) -> bool:
    try:
        found = find_recordings([folder], has_results=False)
        return [recording.path for recording in found] != [folder]
    except ConfigError:
        # The error of a folder as a recording is more specific.
        return False


def inspect_many(args: argparse.Namespace) -> None:
    """Print or write a row for each recording."""
    found = find_recordings(args.file, has_results=False)
    for recording in found:
        if args.parquet and os.path.realpath(args.parquet) == os.path.realpath(recording.path):
            raise UsageError(f'--parquet {args.parquet} is one of the recordings')
    check_suffix('--parquet', args.parquet, ['.parquet'])
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
        raise TrajectoryFormatError('inspect', f'{len(failed)} of {len(records)} recordings '
                                    f'cannot be read or replayed; the first: {failed[0]}')


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

# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor evaluate` of many bags: a process and a row for each."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
import json
from pathlib import Path
from statistics import fmean
from typing import Any

from state_sensor_ros.commands.batch import BatchJob, plain_options, print_records, records_of
from state_sensor_ros.commands.evaluate_outputs import join_tables
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.commands.summary import show_result, size_of
from state_sensor_ros.errors import ConfigError, TrajectoryFormatError
from state_sensor_ros.evaluation import evaluation_result
from state_sensor_ros.evaluation.pooling import pooled_result
from state_sensor_ros.files.bags.bag_metadata import is_bag
from state_sensor_ros.files.whole.output import print_output, temporary_folder
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.simulators.search import find_recordings, FoundRecording, is_glob
from state_sensor_ros.texts import counted, listed, one_line

# Heading and path of the numbers in a row.
_SHOWN = (('mAP', 'detection/map'), ('NDS', 'detection/nds'), ('HOTA', 'tracking/hota'),
          ('MOTA', 'tracking/mota'), ('IDF1', 'tracking/idf1'),
          ('ADE 3s', 'prediction/3.0/min_ade'), ('ATE', 'ego/ate_rmse'), ('frames', 'frames'))

# Options of tables, of which each bag writes a part.
_TABLES = ('parquet', 'curves')


def is_many(args: argparse.Namespace) -> bool:
    """
    Return whether the options name several bags.

    :param args: the parsed options.
    """
    [*others, text] = args.stack
    return bool(others or args.jobs is not None or args.dask) or is_glob(text) or (
        Path(text).is_dir() and not is_bag(Path(text)))


def evaluate_many(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Compare each bag with one ground truth, or with that at its place in a folder.

    :param args: the parsed options.
    :param interruption: signal handling of the program.
    :raises TrajectoryFormatError: if one cannot be evaluated, or a number is beyond its bound.
    :raises ConfigError: if there is no bag, or no ground truth for one.
    """
    stacks = find_recordings(args.stack)
    truths = _truths_of(args, stacks)
    earlier = _earlier_results(args, [stack.path for stack in stacks])
    with temporary_folder() as folder:
        jobs = [BatchJob('evaluate', {
            **plain_options(args), 'truth': truth, 'stack': [stack.path], 'json': True,
            'jobs': None, 'dask': '', 'html': None, 'force': False, 'quiet': True,
            'earlier': earlier.get(stack.path), 'pool': False,
            'part_of_pool': str(folder / f'pool_{i}') if args.pool else '',
            **{name: _part(folder, name, i) for name in _TABLES if getattr(args, name)}},
            stack.path) for i, (stack, truth) in enumerate(zip(stacks, truths, strict=True))]
        records = records_of(jobs, n_processes=args.jobs, dask=args.dask, is_json=args.json)
        pooled = []
        if args.pool:
            result = pooled_result([
                part for i in range(len(jobs)) if Path(part := str(folder / f'pool_{i}')).is_file()
            ], args.definition)
            pooled = [] if result is None else [{'file': 'pooled', 'error': None, **result}]
        for name in _TABLES:
            if getattr(args, name) is not None:
                _join(args, interruption, name, [
                    (record['file'], part) for i, record in enumerate(records)
                    if Path(part := _part(folder, name, i)).is_file()])
    if args.html is not None:
        from state_sensor_ros.evaluation.evaluation_page import write_scenes_page
        with interruption.writing(lambda: WholeFile(args.html, force=args.force)) as file:
            write_scenes_page(file.handle, records, pooled)
        show_result(args.html, size_of(args.html), is_quiet=args.quiet or args.json)
    if args.json:
        for record in pooled:
            print_output(json.dumps(record, allow_nan=False))
    elif not args.quiet:
        rows = records if len(records) < 2 else [*records, _mean(records), *pooled]
        print_records(rows, 'bag', [heading for heading, _ in _SHOWN], _cells, width=7)
        _print_changes(args, records, earlier)
    n_failed = sum(record['error'] is not None for record in records)
    if n_failed:
        if args.json or args.quiet:
            for record in records:
                if record['error'] is not None:
                    print_line(f'{record["file"]}: {record["error"]}')
        raise TrajectoryFormatError('evaluate', f'{n_failed} of {len(records)} bags failed')


def _part(folder: Path, name: str, i: int) -> str:
    return str(folder / f'{name}_{i}.parquet')


def _join(args: argparse.Namespace, interruption: Interruption, name: str,
          parts: list[tuple[str, str]]) -> None:
    """Write the tables of all bags as one."""
    path: str = getattr(args, name)
    with interruption.writing(lambda: WholeFile(path, force=args.force)) as file:
        n_rows = join_tables(parts, file.handle, is_csv=name == 'curves' and path.endswith('.csv'))
    show_result(path, [counted(n_rows, 'row'), *size_of(path)], is_quiet=args.quiet or args.json)


def _truths_of(args: argparse.Namespace, stacks: list[FoundRecording]) -> list[str]:
    """Return the ground truth of each bag: one for all, or the one at its place."""
    truths = find_recordings([args.truth])
    if [recording.path for recording in truths] == [args.truth]:
        return [args.truth] * len(stacks)
    by_place = {recording.place: recording.path for recording in truths}
    missing = [stack.place for stack in stacks if stack.place not in by_place]
    if missing:
        raise ConfigError('TRUTH', f'no recording {listed(missing)} in {args.truth}',
                          'a recording of the same name for each bag, such as '
                          f'{stacks[0].path}')
    return [by_place[stack.place] for stack in stacks]


def _earlier_results(args: argparse.Namespace, stacks: Sequence[str]) -> dict[str, Any]:
    """Return the earlier result of each bag; one without fails when it is evaluated."""
    if args.against is None:
        return {}
    results, found = evaluation_result.read_results(args.against), {}
    for stack in stacks:
        with suppress(TrajectoryFormatError):
            found[stack] = evaluation_result.result_of_bag(
                args.against, results, stack, definition=args.definition, alignment=args.align)
    return found


def _print_changes(args: argparse.Namespace, records: list[dict[str, Any]],
                   earlier: Mapping[str, Any]) -> None:
    """Print how many numbers of each bag got better and worse."""
    if args.against is None:
        return
    print_output(f'against {one_line(args.against)}:')
    for record in records:
        if evaluation_result.AGAINST in record:
            found = evaluation_result.changes(record, earlier[record['file']])
            n_better = sum(change.is_better for change in found)
            print_output(f'{one_line(record["file"])}: {counted(n_better, "number")} better, '
                         f'{len(found) - n_better} worse')


def _mean(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a record of the means over the bags that have the numbers, by their paths."""
    found = [dict(evaluation_result.numbers_of(record)) for record in records
             if record['error'] is None]
    return {'file': 'mean', 'error': None, **{
        path: fmean(numbers) for _, path in _SHOWN
        if (numbers := [number for each in found if (number := each.get(path)) is not None])}}


def _cells(record: Mapping[str, Any]) -> list[str]:
    numbers = dict(evaluation_result.numbers_of(record))
    return ['-' if (number := numbers.get(path)) is None
            else f'{number:.{4 if "/" in path else 0}f}' for _, path in _SHOWN]

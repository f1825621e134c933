# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The files that `state_sensor evaluate` writes: tables and pages."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
import os
from typing import Any, BinaryIO, TYPE_CHECKING

from state_sensor_ros.commands.format_options import check_suffix
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.summary import show_result, size_of
from state_sensor_ros.errors import UsageError
from state_sensor_ros.evaluation.detection_metrics import RECALLS
from state_sensor_ros.evaluation.evaluation_result import Change
from state_sensor_ros.evaluation.evaluator import MatchObserver, TopicResult
from state_sensor_ros.evaluation.frame_record import ERROR_NAMES, Matches
from state_sensor_ros.evaluation.matching import EVALUATED_CLASSES, MATCH_DISTANCES_M
from state_sensor_ros.files.whole.whole_file import STANDARD_OUTPUT, WholeFile
from state_sensor_ros.library.safety import Safety
from state_sensor_ros.library.safety_texts import event_texts, MEASURES, worst_rows
from state_sensor_ros.texts import one_line

if TYPE_CHECKING:
    from state_sensor_ros.evaluation.evaluation_plots import SafetySection

# Rows that are written at once.
_ROWS_OF_GROUP = 1 << 15
_STATES = ('x', 'y', 'z', 'yaw', 'vx', 'vy', 'length', 'width', 'height')


def check_outputs(args: argparse.Namespace, given: frozenset[str], *, is_many: bool) -> None:
    taken = {os.path.realpath(args.truth): 'TRUTH'}
    if not is_many:
        taken[os.path.realpath(args.stack[0])] = 'STACK'
    if 'force' in given and args.parquet is args.html is args.curves is None:
        raise UsageError('--force is for --parquet OUT, --html OUT or --curves OUT')
    if args.curves is not None and args.curves != STANDARD_OUTPUT and not args.curves.endswith(
            ('.parquet', '.csv')):
        raise UsageError(f'--curves {args.curves} ends with neither .parquet nor .csv')
    for name, path in (('--against', args.against), ('--parquet', args.parquet),
                       ('--html', args.html), ('--curves', args.curves)):
        if path is not None and taken.setdefault(os.path.realpath(path), name) != name:
            raise UsageError(f'{name} {path} is the file of {taken[os.path.realpath(path)]}')
        if path == STANDARD_OUTPUT and args.json:
            raise UsageError(f'{name} - and --json both write to standard output')
    check_suffix('--parquet', args.parquet, '.parquet')
    check_suffix('--html', args.html, '.html')
    if args.pool and (not is_many or args.dask):
        raise UsageError('--pool needs several bags, and is not for --dask')
    for name in ('html', 'parquet', 'curves') if is_many else ():
        if getattr(args, name) == STANDARD_OUTPUT:
            raise UsageError(f'--{name} - is for one STACK')
        if name != 'html' and args.dask and getattr(args, name) is not None:
            raise UsageError(f'--{name} is not for --dask')


def write_outputs(args: argparse.Namespace, interruption: Interruption, stack: str,
                  topic_results: list[TopicResult], result: dict[str, Any],
                  changes: list[Change] | None, safety: Safety | None) -> None:
    """Write the curves and the page, if the options name them."""
    # changes: what got better or worse, None without an earlier result.
    # safety: measures of the ego in the ground truth, None without an ego.
    is_quiet = args.quiet or args.json
    if args.curves is not None:
        with interruption.writing(lambda: WholeFile(args.curves, force=args.force)) as file:
            n_rows = _write_curves(topic_results, file.handle,
                                   is_csv=not args.curves.endswith('.parquet'))
        show_result(args.curves, [f'{n_rows} points', *size_of(args.curves)], is_quiet=is_quiet)
    if args.html is not None:
        from state_sensor_ros.evaluation.evaluation_page import write_page
        with interruption.writing(lambda: WholeFile(args.html, force=args.force)) as file:
            write_page(file.handle, one_line(stack), one_line(args.truth), topic_results, result,
                       changes, None if safety is None else _safety_section(safety))
        show_result(args.html, size_of(args.html), is_quiet=is_quiet)


def _safety_section(safety: Safety) -> SafetySection:
    # It needs matplotlib.
    from state_sensor_ros.evaluation.evaluation_plots import SafetySection
    events = safety.events()
    return SafetySection(
        safety.name, tuple(worst_rows(safety)), tuple(map(event_texts, events)),
        safety.game_time, {(heading, unit): getattr(safety, name)
                           for name, (heading, unit, _) in MEASURES.items()},
        tuple((event.start, event.end) for event in events))


class _Table:
    """A table in a Parquet or CSV file, which is opened when the first rows are written."""

    def __init__(self, opened: Callable[[], BinaryIO], *, is_csv: bool = False) -> None:
        self._opened, self._is_csv = opened, is_csv
        self._writer: Any = None
        self._waiting: list[Any] = []
        # One without rows, which may lack columns, is written alone only.
        self._empty: Any = None
        self.n_rows = self._n_written = 0

    def add(self, table: Any) -> None:  # noqa: ANN401
        if not table.num_rows:
            self._empty = table
            return
        self._waiting.append(table)
        self.n_rows += table.num_rows
        if self.n_rows - self._n_written >= _ROWS_OF_GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa
        from pyarrow import csv, parquet
        table = pa.concat_tables(self._waiting)
        if self._writer is None:
            make = csv.CSVWriter if self._is_csv else parquet.ParquetWriter
            self._writer = make(self._opened(), table.schema)
        self._writer.write_table(table)
        self._waiting, self._n_written = [], self.n_rows

    def finish(self) -> int:
        """Write the last rows and the end of the file; return the number of rows."""
        import pyarrow as pa
        if not self._waiting and self._writer is None:
            self._waiting.append(pa.table({'topic': pa.array([], pa.string())})
                                 if self._empty is None else self._empty)
        if self._waiting:
            self._flush()
        self._writer.close()
        return self.n_rows


def join_tables(parts: Iterable[tuple[str, str]], out: BinaryIO, *, is_csv: bool) -> int:
    """Write the rows of several tables as one, with the bag in the first column."""
    import pyarrow as pa
    from pyarrow import parquet
    joined = _Table(lambda: out, is_csv=is_csv)
    for bag, path in parts:
        table = parquet.read_table(path)
        joined.add(table.add_column(0, 'bag', pa.array([bag] * table.num_rows, pa.string())))
    return joined.finish()


@contextmanager
def matches_written(args: argparse.Namespace,
                    interruption: Interruption) -> Iterator[MatchObserver | None]:
    """Write the matches found in the block to ``--parquet``; yield what to call with them."""
    if args.parquet is None:
        yield None
        return
    with interruption.writing(lambda: WholeFile(args.parquet, force=args.force)) as file:
        table = _Table(lambda: file.handle)
        yield lambda topic, matches: table.add(_match_rows(topic, matches))
        table.finish()
    show_result(args.parquet, [f'{table.n_rows} matches', *size_of(args.parquet)],
                is_quiet=args.quiet or args.json)


def _match_rows(topic: str, matches: Matches) -> Any:  # noqa: ANN401
    """Return a row for each match at 2 m: ground truth, detection, errors."""
    import pyarrow as pa
    n_matches = len(matches.classes)
    columns = {
        'topic': pa.array([topic] * n_matches, pa.string()),
        'stamp_ns': pa.array([matches.stamp_ns] * n_matches, pa.int64()),
        'frame': pa.array([matches.frame] * n_matches, pa.int64()),
        'class': pa.array([EVALUATED_CLASSES[number] for number in matches.classes.tolist()],
                          pa.string()),
        'truth_id': pa.array(matches.truth_ids, pa.string()),
        'stack_id': pa.array(matches.stack_ids, pa.string()),
        'score': pa.array(matches.scores), 'ego_distance': pa.array(matches.distances)}
    columns |= {name: pa.array(matches.errors[:, i]) for i, name in enumerate(ERROR_NAMES)}
    for prefix, states in (('truth', matches.truth), ('stack', matches.stack)):
        columns |= {f'{prefix}_{name}': pa.array(states[:, i]) for i, name in enumerate(_STATES)}
    return pa.table(columns)


def _write_curves(topic_results: Sequence[TopicResult], file: BinaryIO, *, is_csv: bool) -> int:
    """Write a row for each class, match distance and recall: precision and confidence."""
    import pyarrow as pa
    rows = [(found.topic, scores.name, distance, *point)
            for found in topic_results for scores in found.classes or ()
            if (curves := scores.curves) is not None
            for distance, precisions, confidences in zip(
                MATCH_DISTANCES_M, curves.precisions, curves.confidences, strict=True)
            for point in zip(RECALLS.tolist(), precisions.tolist(), confidences.tolist(),
                             strict=True)]
    names = 'topic', 'class', 'match_distance', 'recall', 'precision', 'confidence'
    table = pa.Table.from_pylist(
        [dict(zip(names, row, strict=True)) for row in rows],
        pa.schema([(name, pa.string() if name in ('topic', 'class') else pa.float64())
                   for name in names]))
    curves_table = _Table(lambda: file, is_csv=is_csv)
    curves_table.add(table)
    return curves_table.finish()

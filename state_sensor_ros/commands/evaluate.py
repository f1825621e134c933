# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor evaluate`: the output of an autonomy stack, compared with ground truth."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from html import escape
import json
import math
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from state_sensor_ros.classes import CLASS_NAMES
from state_sensor_ros.commands.batch import job_of, records_of
from state_sensor_ros.commands.options import (
    above_zero,
    add_batch_options,
    add_force,
    add_quiet,
    add_selection,
    check_suffix,
    listed,
    number,
    selection_of,
    settings_of,
)
from state_sensor_ros.commands.reading import warn_of_unmatched
from state_sensor_ros.commands.terminal import (
    clock_shown,
    is_standard_output,
    print_line,
    print_output,
    show_result,
    size_of,
    STANDARD_OUTPUT,
)
from state_sensor_ros.commands.truth_reading import read_truth
from state_sensor_ros.errors import ConfigError, DecodeError, TrajectoryFormatError, UsageError
from state_sensor_ros.evaluation import report
from state_sensor_ros.evaluation.detection import ERROR_NAMES, error_rows, RECALLS
from state_sensor_ros.evaluation.evaluator import Evaluator, TopicResult
from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    MATCH_DISTANCES_M,
    Selection,
)
from state_sensor_ros.evaluation.messages import chosen_topics, FAULTS, ODOMETRY
from state_sensor_ros.evaluation.tracking import MAX_IDS
from state_sensor_ros.evaluation.truth import (
    FrameTransforms,
    GroundTruth,
    STATIC_TF_TOPIC,
    TF_TOPIC,
    TF_TYPE,
)
from state_sensor_ros.files import format_of
from state_sensor_ros.files.bag import Bag, is_bag
from state_sensor_ros.files.frame_selection import outside, RecordingSelection
from state_sensor_ros.files.output import WholeFile
from state_sensor_ros.files.search import find_recordings, FoundRecording, is_glob
from state_sensor_ros.texts import counted, one_line
from state_sensor_ros.texts import listed as listed_text

_EPILOG = """examples:
  state_sensor evaluate drive.json stack_bag
  state_sensor evaluate truth_bag 'stacks/*' --json"""
# Longer than the stamps of any recording reach, s.
_FOR_EVER_S = 2.0 ** 32
# A greater median error of the ego, m, or a smaller share of matches, is that of two drives.
_ANOTHER_M, _ANOTHER = 20.0, 0.05
# Options of tables, of which each of many bags writes a part.
_TABLES = ('parquet', 'curves')
_STATES = ('x', 'y', 'z', 'yaw', 'vx', 'vy', 'length', 'width', 'height')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('truth', metavar='TRUTH',
                        help='recording, or a bag of TrackedObjects; - is standard input')
    parser.add_argument('stack', metavar='STACK', nargs='+', help='bags with topics of the '
                        'stack; also folders or globs')
    parser.add_argument('--topic', action='append', default=[], metavar='NAME',
                        help='topic to evaluate; repeatable (default: one, and odometry)')
    parser.add_argument('--truth-topic', default='', metavar='NAME',
                        help='topic of the ground truth if TRUTH is a bag with several')
    parser.add_argument('--at', choices=('stamp', 'received'), default='stamp',
                        help='use ground truth at the stamps (default) or times of receipt')
    parser.add_argument('--definition', choices=('plain', 'nuscenes'), default='plain',
                        help='errors over matches (default), or over recall with AMOTA, AMOTP')
    parser.add_argument('--align', choices=('none', 'se3', 'sim3'), default='none',
                        help='align the poses of the ego, as in evo (default: none)')
    parser.add_argument('--horizons', type=_horizons, metavar='S,S...', default=[3.0, 5.0, 8.0],
                        help='horizons of predicted paths (default: 3,5,8)')
    parser.add_argument('--k', type=_path_counts, metavar='N,N...', default=[1, 6],
                        help='numbers of the likeliest paths that count (default: 1,6)')
    parser.add_argument('--range', type=above_zero, metavar='M', default=0.0,
                        help="evaluate objects up to M meters from the ego's origin")
    parser.add_argument('--classes', type=_classes, action='extend', default=[],
                        metavar='CLASS,...', help='evaluate these classes only')
    parser.add_argument('--json', action='store_true', help='print JSON')
    parser.add_argument('--format', choices=('text', 'csv', 'latex'), default='text',
                        help='print the tables as text (default), CSV or rows for LaTeX')
    parser.add_argument('--parquet', metavar='OUT', help='write a table: a row for each match')
    parser.add_argument('--html', metavar='OUT',
                        help='write a page with curves and the ten worst moments')
    parser.add_argument('--curves', metavar='OUT',
                        help='write the precision-recall curve of each class (.parquet, .csv)')
    add_force(parser)
    for name, what, path in (('below', 'less', 'detection/map=0.5'),
                             ('above', 'greater', 'detection/mate=0.5')):
        parser.add_argument(f'--fail-{name}', action='append', default=[], type=_bound,
                            metavar='PATH=VALUE',
                            help=f'exit with 1 if a result is {what}, such as {path}')
    add_quiet(parser, 'print neither progress nor results, except --json')
    add_selection(parser)
    add_batch_options(parser)


def _horizons(text: str) -> list[float]:
    return sorted({above_zero(part) for part in text.split(',')})


def _classes(text: str) -> list[str]:
    for name in (names := listed(text)):
        if name not in CLASS_NAMES:
            raise argparse.ArgumentTypeError(f'found {name}; expected one of '
                                             f'{", ".join(CLASS_NAMES)}')
    return names


def _path_counts(text: str) -> list[int]:
    counts = {number(part) for part in text.split(',')}
    if not all(count >= 1.0 and count == int(count) for count in counts):
        raise argparse.ArgumentTypeError(f'{text!r} is not N,N... of numbers from 1')
    return sorted(map(int, counts))


def _bound(text: str) -> str:
    path, _, value = text.rpartition('=')
    try:
        if path and float(value) == float(value):
            return text
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f'{text!r} is not PATH=VALUE, such as detection/map=0.5')


def run(args: argparse.Namespace) -> None:
    """
    Evaluate one bag, or many.

    :param args: the parsed options.
    :raises StateSensorError: if TRUTH or STACK cannot be read, have no common time, or a number
        is beyond its bound.
    """
    [*others, text] = args.stack
    is_many = bool(others or args.jobs is not None or args.dask) or is_glob(text) or (
        Path(text).is_dir() and not is_bag(Path(text)))
    _check_outputs(args, is_many=is_many)
    if is_many:
        _evaluate_many(args)
        return
    with clock_shown('evaluate', is_quiet=args.quiet):
        truth, found = _evaluated(args, text)
    result = report.result_of(
        found, len(truth.stamps_ns), definition=args.definition, alignment=args.align)
    tables = [*report.tables_of(result)]
    for each in found:
        _warn(text, each)
    for name, table_of in (('parquet', _match_table), ('curves', _curve_table)):
        if getattr(args, name) is not None:
            _write_table(args, name, partial(table_of, found))
    if args.html is not None:
        with WholeFile(args.html, force=args.force) as file:
            report.write_page(
                file.handle, f'Evaluation of {one_line(text)}', tables,
                (f'<p>Ground truth: {escape(one_line(args.truth))}.</p>',
                 f'<p>{report.heading_of(result)}.</p>',
                 *(part for each in found for part in report.sections(each))), result)
        show_result(args.html, size_of(args.html), is_quiet=args.quiet or args.json)
    if args.json:
        print_output(json.dumps(result, indent=2, allow_nan=False))
    elif not args.quiet:
        _print_tables(args, tables, report.heading_of(result))
    check_bounds(args, text, result)


def _print_tables(args: argparse.Namespace, tables: Iterable[report.Table],
                  heading: str = '') -> None:
    """Print tables in the format that is asked for, beside outputs on standard output."""
    is_taken = any(out is not None and is_standard_output(out)
                   for out in (args.parquet, args.html, args.curves))
    show = print_line if is_taken else print_output
    if heading and args.format == 'text':
        show(heading)
    for table in tables:
        for line in ('', *table.lines(args.format)) if heading else table.lines(args.format):
            show(line)


def _check_outputs(args: argparse.Namespace, *, is_many: bool) -> None:
    """Refuse outputs that are inputs, that have wrong names, or that share standard output."""
    taken = {os.path.realpath(path): name for name, path in (
        ('TRUTH', args.truth), *(('STACK', path) for path in args.stack))}
    for name, suffixes in (('parquet', ['.parquet']), ('html', ['.html']),
                           ('curves', ['.parquet', '.csv'])):
        path = getattr(args, name)
        if path is None:
            continue
        if taken.setdefault(os.path.realpath(path), f'--{name}') != f'--{name}':
            raise UsageError(f'--{name} {path} is the file of {taken[os.path.realpath(path)]}')
        if path == STANDARD_OUTPUT and (args.json or is_many):
            raise UsageError(f'--{name} - is for one STACK without --json')
        check_suffix(f'--{name}', path, suffixes)


def _evaluated(args: argparse.Namespace, stack: str) -> tuple[GroundTruth, list[TopicResult]]:
    settings = settings_of(args)
    with _opened(stack) as bag:
        keys = chosen_topics(stack, bag.with_messages(), args.topic)
        for key in keys:
            bag.check_definition(key)
        truth = read_truth(args, settings)
        evaluator = Evaluator(
            truth=truth, selection=_selection(args, truth), at=args.at,
            global_frame=settings.global_frame, alignment=args.align,
            with_nuscenes=args.definition == 'nuscenes', horizons_s=args.horizons,
            path_counts=args.k, open_transforms=lambda: FrameTransforms(_transforms(stack)))
        found = []
        for key in keys:
            if key[1] == ODOMETRY and truth.ego is None and len(keys) > 1 and not args.topic:
                continue
            evaluate_topic = evaluator.evaluate_ego if key[1] == ODOMETRY \
                else evaluator.evaluate_objects
            try:
                found.append(evaluate_topic(stack, key, (
                    (log_ns, data) for _, log_ns, data in bag.messages({key}))))
            except DecodeError as error:
                raise TrajectoryFormatError(f'{stack}: {key[0]}', error.found,
                                            error.expected) from error
    return truth, found


def _opened(stack: str) -> AbstractContextManager[Bag]:
    path = Path(stack)
    if not is_bag(path):
        if not path.exists():
            raise TrajectoryFormatError(stack, 'no such file or directory')
        raise TrajectoryFormatError(stack, format_of(stack).noun, 'a bag with the topics of the '
                                    'stack')
    return closing(Bag(path))


def _transforms(stack: str) -> Iterator[tuple[bytes, bool]]:
    """Yield the transform messages of a bag, each with whether it is static."""
    with _opened(stack) as bag:
        keys = {(name, TF_TYPE) for name in (TF_TOPIC, STATIC_TF_TOPIC)} & bag.topics.keys()
        for key in keys:
            bag.check_definition(key)
        for name, _, data in bag.messages(keys):
            yield data, name == STATIC_TF_TOPIC


def _selection(args: argparse.Namespace, truth: GroundTruth) -> Selection:
    if args.range and truth.ego is None:
        raise ConfigError('--range', f'{args.range:g} m from an ego, which {truth.name} does not '
                          'have', 'ground truth with an ego')
    first_ns = int(truth.stamps_ns[0])
    start_s, end_s = args.start, selection_of(args).end_s
    duration_s = (int(truth.stamps_ns[-1]) - first_ns) * 1e-9
    if start_s > duration_s:
        raise ConfigError('--start', f'{start_s:g} s', 'a time from the first frame to the last '
                          f'one, {duration_s:.6g} s, of {truth.name}')
    warn_of_unmatched(truth.name, outside(
        RecordingSelection(end_s=end_s), len(truth.stamps_ns), duration_s))
    times: dict[str, Any] = {f'{name}_ns': first_ns + _nanoseconds(value) for name, value in (
        ('start', args.start), ('end', args.end)) if 0.0 < value < math.inf}
    return Selection(**times, period_ns=_nanoseconds(1.0 / args.rate) if args.rate else 0,
                     range_m=args.range, classes=frozenset(args.classes))


def _nanoseconds(time_s: float) -> int:
    return round(min(time_s, _FOR_EVER_S) * 1e9)


def _warn(stack: str, found: TopicResult) -> None:
    """Print a line for each kind of fault of a topic."""
    lines = [f'{counted(n_found, FAULTS[kind][0])}{FAULTS[kind][1]}'
             for kind, n_found in found.faults.items() if n_found]
    if found.no_tracking:
        lines.append(f'{found.no_tracking}; tracks are not evaluated')
    elif found.tracking is not None and math.isnan(found.tracking.numbers['hota']) \
            and found.tracking.numbers['objects']:
        lines.append(f'more than {MAX_IDS} ids of both sides: HOTA and IDF1 are not computed')
    if found.n_unanswered:
        lines.append(f'{counted(found.n_unanswered, "frame")} of the ground truth without an '
                     'answer' + (', evaluated as without objects' if found.frames else '')
                     + '; --start and --end select another part')
    if found.unplaced_child:
        lines.append(f'the bag has no transform from base_link to {found.unplaced_child}, which '
                     'is evaluated as if it were base_link')
    median = 0.0 if found.ego is None else found.ego.statistics['ate/translation']['median']
    if _ANOTHER_M < median < math.inf:
        lines.append(f'half of the positions of the ego are more than {median:.0f} m off; are '
                     'TRUTH and STACK from the same drive, clock and global frame?')
    classes = found.classes or []
    n_matches = sum(each.n_matches for each in classes)
    if n_matches < _ANOTHER * sum(min(each.n_truths, each.n_detections) for each in classes):
        lines.append(f'fewer than {_ANOTHER:.0%} of the objects are within 2 m of one of their '
                     'class; are TRUTH and STACK from the same drive, clock and global frame?')
    for line in lines:
        print_line(f'warning: {stack}: {found.topic}: {line}')


def check_bounds(args: argparse.Namespace, stack: str, result: Mapping[str, Any]) -> None:
    """
    Check the numbers of a result against ``--fail-below`` and ``--fail-above``.

    :param args: the parsed options.
    :param stack: path of the bag.
    :param result: result of the bag.
    :raises TrajectoryFormatError: if a number is beyond its bound, undefined, or missing.
    """
    failures = []
    for bounds, word, sign in ((args.fail_below, 'least', -1.0), (args.fail_above, 'most', 1.0)):
        for text in bounds:
            path, _, limit = text.rpartition('=')
            try:
                found = report.number_at(result, path)
                value = 'no value' if found is None else f'{found:.6g}'
            except ConfigError as error:
                found, value = None, error.found
            if found is None or sign * (found - float(limit)) > 0.0:
                failures.append(TrajectoryFormatError(f'{stack}: {path}', value,
                                                      f'at {word} {limit}'))
    for failure in failures[1:]:
        print_line(f'error: {failure}')
    if failures:
        raise failures[0]


def _write_table(args: argparse.Namespace, name: str, table_of: Callable[[], Any]) -> None:
    """Write an Arrow table to the file of an option, in the format of its suffix."""
    from pyarrow import csv, parquet
    path: str = getattr(args, name)
    with WholeFile(path, force=args.force) as file:
        table = table_of()
        if path.endswith('.csv'):
            csv.write_csv(table, file.handle)
        else:
            parquet.write_table(table, file.handle)
    show_result(path, [counted(table.num_rows, 'row'), *size_of(path)],
                is_quiet=args.quiet or args.json)


def _match_table(results: Sequence[TopicResult]) -> Any:  # noqa: ANN401
    """Return a row for each match at 2 m: ground truth, detection, errors."""
    import pyarrow as pa
    rows = []
    for found in results:
        for i, frame in enumerate(found.frames):
            of_stack, of_truth = frame.matched
            stack, truth = frame.stack.states[of_stack], frame.truth.states[of_truth]
            errors = error_rows(stack, truth, frame.stack.classes[of_stack])
            for j, (a, b) in enumerate(zip(of_stack.tolist(), of_truth.tolist(), strict=True)):
                rows.append({
                    'topic': found.topic, 'stamp_ns': frame.stamp_ns, 'frame': i,
                    'class': EVALUATED_CLASSES[frame.stack.classes[a]],
                    'truth_id': frame.truth.ids[b], 'stack_id': frame.stack.ids[a],
                    'score': float(frame.stack.scores[a]),
                    'ego_distance': float(frame.distances[b]),
                    **dict(zip(ERROR_NAMES, errors[j].tolist(), strict=True)),
                    **{f'{side}_{name}': value for side, states in (
                        ('truth', truth), ('stack', stack))
                       for name, value in zip(_STATES, states[j].tolist(), strict=False)}})
    return pa.Table.from_pylist(rows) if rows else pa.table({'topic': pa.array([], pa.string())})


def _curve_table(results: Sequence[TopicResult]) -> Any:  # noqa: ANN401
    """Return a row for each class, match distance and recall: precision and confidence."""
    import pyarrow as pa
    names = 'topic', 'class', 'match_distance', 'recall', 'precision', 'confidence'
    return pa.Table.from_pylist(
        [dict(zip(names, (found.topic, scores.name, distance, *point), strict=True))
         for found in results for scores in found.classes or ()
         if (curves := scores.curves) is not None
         for distance, precisions, confidences in zip(
             MATCH_DISTANCES_M, curves.precisions, curves.confidences, strict=True)
         for point in zip(RECALLS.tolist(), precisions.tolist(), confidences.tolist(),
                          strict=True)],
        pa.schema([(name, pa.string() if name in ('topic', 'class') else pa.float64())
                   for name in names]))


def _evaluate_many(args: argparse.Namespace) -> None:
    """Compare each bag with one ground truth, or with that at its place in a folder."""
    stacks = find_recordings(args.stack)
    truths = _truths_of(args, stacks)
    with TemporaryDirectory() as folder:
        jobs = [job_of('evaluate', args, stack.path, truth=truth, stack=[stack.path], json=True,
                       html=None, force=False,
                       **{name: os.path.join(folder, f'{name}_{i}.parquet')
                          for name in _TABLES if getattr(args, name)})
                for i, (stack, truth) in enumerate(zip(stacks, truths, strict=True))]
        records = records_of(jobs, n_processes=args.jobs, dask=args.dask, is_json=args.json)
        for name in _TABLES:
            if getattr(args, name) is not None:
                parts = [(job.source, getattr(job.args, name)) for job in jobs]
                _write_table(args, name, partial(_joined, parts))
    tables = [report.bags_table(records)]
    if args.html is not None:
        with WholeFile(args.html, force=args.force) as file:
            report.write_page(file.handle, f'Evaluation of {counted(len(records), "bag")}', tables)
        show_result(args.html, size_of(args.html), is_quiet=args.quiet or args.json)
    if not (args.json or args.quiet):
        _print_tables(args, tables)
    failed = [record for record in records if record['error'] is not None]
    for record in failed:
        print_line(f'error: {record["file"]}: {record["error"]}')
    if failed:
        raise TrajectoryFormatError('evaluate', f'{len(failed)} of {len(records)} bags failed')


def _joined(parts: Iterable[tuple[str, str]]) -> Any:  # noqa: ANN401
    """Return the rows of several tables as one, with the bag in the first column."""
    import pyarrow as pa
    from pyarrow import parquet
    tables = [(bag, parquet.read_table(path)) for bag, path in parts if os.path.exists(path)]
    return pa.concat_tables([table.add_column(0, 'bag', pa.array(
        [bag] * table.num_rows, pa.string())) for bag, table in tables
        if table.num_rows] or [pa.table({'bag': pa.array([], pa.string())})])


def _truths_of(args: argparse.Namespace, stacks: list[FoundRecording]) -> list[str]:
    """Return the ground truth of each bag: one for all, or the one at its place."""
    truths = find_recordings([args.truth])
    if [recording.path for recording in truths] == [args.truth]:
        return [args.truth] * len(stacks)
    by_place = {recording.place: recording.path for recording in truths}
    missing = [stack.place for stack in stacks if stack.place not in by_place]
    if missing:
        raise ConfigError('TRUTH', f'no recording {listed_text(missing)} in {args.truth}',
                          'a recording of the same name for each bag, such as '
                          f'{stacks[0].path}')
    return [by_place[stack.place] for stack in stacks]

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
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
import json
import math
import os
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any, TYPE_CHECKING

from state_sensor_ros.classes import CLASS_NAMES
from state_sensor_ros.commands.batch import job_of, print_records, records_of
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
from state_sensor_ros.evaluation import evaluation_result
from state_sensor_ros.evaluation.detection_metrics import RECALLS
from state_sensor_ros.evaluation.evaluation_tables import change_lines, lines_of
from state_sensor_ros.evaluation.evaluator import Evaluator, MatchObserver, TopicResult
from state_sensor_ros.evaluation.frame_record import ERROR_NAMES, Matches
from state_sensor_ros.evaluation.frame_transforms import (
    FrameTransforms,
    STATIC_TF_TOPIC,
    TF_TOPIC,
    TF_TYPE,
)
from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    MATCH_DISTANCES_M,
    Selection,
)
from state_sensor_ros.evaluation.stack_messages import chosen_topics, ODOMETRY
from state_sensor_ros.files import format_of
from state_sensor_ros.files.bag import Bag, is_bag
from state_sensor_ros.files.frame_selection import outside, RecordingSelection
from state_sensor_ros.files.output import WholeFile
from state_sensor_ros.library.safety import EGO, HORIZON_S, Safety, SafetyCollector
from state_sensor_ros.library.safety_texts import event_texts, MEASURES, worst_rows
from state_sensor_ros.simulators.search import find_recordings, FoundRecording, is_glob
from state_sensor_ros.texts import counted, one_line
from state_sensor_ros.texts import listed as listed_text

if TYPE_CHECKING:
    from state_sensor_ros.evaluation.evaluation_plots import SafetySection
    from state_sensor_ros.evaluation.ground_truth import GroundTruth

_EPILOG = """examples:
  state_sensor evaluate drive.json stack_bag
  state_sensor evaluate truth_bag 'stacks/*' --json"""
# Longer than the stamps of any recording reach, s.
_FOR_EVER_S = 2.0 ** 32
# A greater median error of the ego, m, or a smaller share of matches, is that of two drives.
_ANOTHER_M, _ANOTHER = 20.0, 0.05
# Heading and path of the numbers in a row of many bags.
_SHOWN = (('mAP', 'detection/map'), ('NDS', 'detection/nds'), ('HOTA', 'tracking/hota'),
          ('MOTA', 'tracking/mota'), ('IDF1', 'tracking/idf1'),
          ('ADE 3s', 'prediction/3.0/min_ade'), ('ATE', 'ego/ate_rmse'), ('frames', 'frames'))
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
    parser.add_argument('--parquet', metavar='OUT', help='write a table: a row for each match')
    parser.add_argument('--html', metavar='OUT',
                        help='write a page with curves and the ten worst moments')
    parser.add_argument('--curves', metavar='OUT',
                        help='write the precision-recall curve of each class (.parquet, .csv)')
    parser.add_argument('--against', metavar='OLD.json',
                        help='compare with the --json output of an earlier run')
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
    _check_bound_names(args)
    if is_many:
        _evaluate_many(args)
        return
    # One of many bags has its earlier result from the process that has read the file.
    old = getattr(args, 'earlier', None)
    if old is None and args.against is not None:
        old = evaluation_result.result_of_bag(
            args.against, evaluation_result.read_results(args.against), text,
            definition=args.definition, alignment=args.align)
    with _matches_written(args) as observe, clock_shown('evaluate', is_quiet=args.quiet):
        truth, topic_results, safety = evaluated(args, text, observe)
    result = evaluation_result.result_of(
        topic_results, len(truth.stamps_ns), definition=args.definition, alignment=args.align)
    changed = None
    if old is not None:
        result[evaluation_result.AGAINST] = evaluation_result.against(result, old)
        changed = evaluation_result.changes(result, old)
    for found in topic_results:
        _warn(text, found)
    is_quiet = args.quiet or args.json
    if args.curves is not None:
        _write_table(args, 'curves', lambda: _curves(topic_results))
    if args.html is not None:
        from state_sensor_ros.evaluation.evaluation_page import write_page
        with WholeFile(args.html, force=args.force) as file:
            write_page(file.handle, one_line(text), one_line(args.truth), topic_results, result,
                       changed, None if safety is None else _safety_section(safety))
        show_result(args.html, size_of(args.html), is_quiet=is_quiet)
    if args.json:
        print_output(json.dumps(result, indent=2, allow_nan=False))
    elif not args.quiet:
        is_taken = any(out is not None and is_standard_output(out)
                       for out in (args.parquet, args.html, args.curves))
        for line in (*lines_of(result), *change_lines(args.against, changed)):
            (print_line if is_taken else print_output)(line)
    check_bounds(args, text, result)


def _check_outputs(args: argparse.Namespace, *, is_many: bool) -> None:
    """Refuse outputs that are inputs, that have wrong names, or that share standard output."""
    taken = {os.path.realpath(path): name for name, path in (
        ('TRUTH', args.truth), *(('STACK', path) for path in args.stack))}
    for name in ('against', 'parquet', 'html', 'curves'):
        path = getattr(args, name)
        if path is None:
            continue
        if taken.setdefault(os.path.realpath(path), f'--{name}') != f'--{name}':
            raise UsageError(f'--{name} {path} is the file of {taken[os.path.realpath(path)]}')
        if path == STANDARD_OUTPUT and (args.json or is_many):
            raise UsageError(f'--{name} - is for one STACK without --json')
    check_suffix('--curves', args.curves, ['.parquet', '.csv'])
    check_suffix('--parquet', args.parquet, ['.parquet'])
    check_suffix('--html', args.html, ['.html'])


def _check_bound_names(args: argparse.Namespace) -> None:
    """Refuse a bound of a number that no result can have before the evaluation."""
    bounds = [*(('--fail-below', text) for text in args.fail_below),
              *(('--fail-above', text) for text in args.fail_above)]
    if not bounds:
        return
    possible, with_all = (evaluation_result.possible_result(
        definition, has_earlier=has_earlier, horizons_s=args.horizons, path_counts=args.k)
        for definition, has_earlier in ((args.definition, args.against is not None),
                                        ('nuscenes', True)))
    for bound, text in bounds:
        path = text.rpartition('=')[0]
        try:
            evaluation_result.number_at(with_all, path)
        except ConfigError as error:
            ends = [name for name, _ in evaluation_result.numbers_of(with_all)
                    if name.endswith(f'/{path}')]
            raise UsageError(f'{bound} {path}: no {path} in the result; did you mean {ends[0]}?'
                             if ends else f'{bound} {error}') from None
        try:
            evaluation_result.number_at(possible, path)
        except ConfigError:
            option = '--against OLD.json' if path.startswith('against/') and not args.against \
                else '--definition nuscenes'
            raise UsageError(f'{bound} {path} is not computed; {option} adds it') from None


def evaluated(args: argparse.Namespace, stack: str, observe: MatchObserver | None,
              ) -> tuple[GroundTruth, list[TopicResult], Safety | None]:
    """Return ground truth, results and measures of safety, None without a page or an ego."""
    settings = settings_of(args)
    with _opened(args, stack) as bag:
        keys = chosen_topics(stack, bag.with_messages(), args.topic)
        for key in keys:
            bag.check_definition(key)
        collector = None if args.html is None else SafetyCollector(
            EGO, HORIZON_S, settings.ego_tag)
        truth = read_truth(args, settings, None if collector is None else collector.add)
        evaluator = Evaluator(
            truth=truth, selection=_selection(args, truth), at=args.at,
            global_frame=settings.global_frame, alignment=args.align,
            with_nuscenes=args.definition == 'nuscenes', horizons_s=args.horizons,
            path_counts=args.k,
            open_transforms=lambda: FrameTransforms(_transforms(args, stack)), observe=observe)
        topic_results = []
        for key in keys:
            if key[1] == ODOMETRY and truth.ego is None and len(keys) > 1 and not args.topic:
                continue
            evaluate_topic = evaluator.evaluate_ego if key[1] == ODOMETRY \
                else evaluator.evaluate_objects
            try:
                topic_results.append(evaluate_topic(stack, key, (
                    (log_ns, data) for _, log_ns, data in bag.messages({key}))))
            except DecodeError as error:
                raise TrajectoryFormatError(f'{stack}: {key[0]}', error.found,
                                            error.expected) from error
    return truth, topic_results, (
        None if collector is None or not collector.has_actor else collector.safety())


def _opened(args: argparse.Namespace, stack: str) -> AbstractContextManager[Bag]:
    path = Path(stack)
    if not is_bag(path):
        if not path.exists():
            raise TrajectoryFormatError(stack, 'no such file or directory')
        raise TrajectoryFormatError(stack, format_of(stack).noun, 'a bag with the topics of the '
                                    'stack')
    return closing(Bag(path))


def _transforms(args: argparse.Namespace, stack: str) -> Iterator[tuple[bytes, bool]]:
    """Yield the transform messages of a bag, each with whether it is static."""
    with _opened(args, stack) as bag:
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
    where = f'warning: {stack}: {found.topic}'
    if found.n_without_transform:
        print_line(f'{where}: dropped {counted(found.n_without_transform, "message")} without '
                   'a transform to the global frame')
    if found.unplaced_child:
        print_line(f'{where}: the bag has no transform from base_link to '
                   f'{one_line(found.unplaced_child)}, which is evaluated as if it were base_link')
    if found.n_unsorted:
        print_line(f'{where}: sorted {counted(found.n_unsorted, "stamp")} out of order')
    if found.n_repeated:
        print_line(f'{where}: {counted(found.n_repeated, "message")} with the time of the one '
                   'before, evaluated like the others')
    if found.n_wrong:
        print_line(f'{where}: {counted(found.n_wrong, "object")}: a negative size counts as '
                   'unknown, a confidence that is not a number as 0')
    median = 0.0 if found.ego is None else found.ego.statistics['ate/translation']['median']
    if _ANOTHER_M < median < math.inf:
        print_line(f'{where}: half of the positions of the ego are more than {median:.0f} m off; '
                   'are TRUTH and STACK from the same drive, clock and global frame?')
    classes = found.classes or []
    n_matches = sum(each.n_matches for each in classes)
    if n_matches < _ANOTHER * sum(min(each.n_truths, each.n_detections) for each in classes):
        print_line(f'{where}: fewer than {_ANOTHER:.0%} of the objects are within 2 m of one of '
                   'their class; are TRUTH and STACK from the same drive, clock and global '
                   'frame?')
    if found.n_unusable:
        print_line(f'{where}: dropped {counted(found.n_unusable, "pose")} that are not finite '
                   'or not rotations')


def check_bounds(args: argparse.Namespace, stack: str, result: dict[str, Any]) -> None:
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
                number_found = evaluation_result.number_at(result, path)
                value = 'no value' if number_found is None else f'{number_found:.6g}'
            except ConfigError as error:
                # These bags have none, such as of a class without objects.
                number_found, value = None, error.found
            if number_found is None or sign * (number_found - float(limit)) > 0.0:
                failures.append((path, value, f'at {word} {limit}'))
    for path, value, limit in failures[1:]:
        print_line(f'error: {stack}: {path}: found {value}; expected {limit}')
    if failures:
        path, value, limit = failures[0]
        raise TrajectoryFormatError(f'{stack}: {path}', value, limit)


def _safety_section(safety: Safety) -> SafetySection:
    # It needs matplotlib.
    from state_sensor_ros.evaluation.evaluation_plots import SafetySection
    events = safety.events()
    return SafetySection(
        safety.name, tuple(worst_rows(safety)), tuple(map(event_texts, events)),
        safety.game_time, {(heading, unit): getattr(safety, name)
                           for name, (heading, unit, _) in MEASURES.items()},
        tuple((event.start, event.end) for event in events))


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


@contextmanager
def _matches_written(args: argparse.Namespace) -> Iterator[MatchObserver | None]:
    """Write the matches found in the block to ``--parquet``; yield what to call with them."""
    if args.parquet is None:
        yield None
        return
    import pyarrow as pa
    tables: list[Any] = []
    yield lambda topic, matches: tables.append(_match_rows(topic, matches))
    _write_table(args, 'parquet', lambda: pa.concat_tables(
        tables or [pa.table({'topic': pa.array([], pa.string())})]))


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


def _curves(topic_results: Sequence[TopicResult]) -> Any:  # noqa: ANN401
    """Return a row for each class, match distance and recall: precision and confidence."""
    import pyarrow as pa
    names = 'topic', 'class', 'match_distance', 'recall', 'precision', 'confidence'
    return pa.Table.from_pylist(
        [dict(zip(names, (found.topic, scores.name, distance, *point), strict=True))
         for found in topic_results for scores in found.classes or ()
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
    earlier = _earlier_results(args, [stack.path for stack in stacks])
    with TemporaryDirectory() as folder:
        jobs = [job_of('evaluate', args, stack.path, truth=truth, stack=[stack.path], json=True,
                       html=None, force=False, earlier=earlier.get(stack.path),
                       **{name: os.path.join(folder, f'{name}_{i}.parquet')
                          for name in _TABLES if getattr(args, name)})
                for i, (stack, truth) in enumerate(zip(stacks, truths, strict=True))]
        records = records_of(jobs, n_processes=args.jobs, dask=args.dask, is_json=args.json)
        for name in _TABLES:
            if getattr(args, name) is not None:
                parts = [(job.source, getattr(job.args, name)) for job in jobs]
                _write_table(args, name, partial(_joined, parts))
    if args.html is not None:
        from state_sensor_ros.evaluation.evaluation_page import write_scenes_page
        with WholeFile(args.html, force=args.force) as file:
            write_scenes_page(file.handle, records)
        show_result(args.html, size_of(args.html), is_quiet=args.quiet or args.json)
    if not (args.json or args.quiet):
        rows = records if len(records) < 2 else [*records, _mean(records)]
        print_records(rows, 'bag', [heading for heading, _ in _SHOWN], _cells, width=7)
        _print_changes(args, records, earlier)
    failed = [record for record in records if record['error'] is not None]
    for record in failed if args.json or args.quiet else ():
        print_line(f'{record["file"]}: {record["error"]}')
    if failed:
        raise TrajectoryFormatError('evaluate', f'{len(failed)} of {len(records)} bags failed')


def _joined(parts: Iterable[tuple[str, str]]) -> Any:  # noqa: ANN401
    """Return the rows of several tables as one, with the bag in the first column."""
    import pyarrow as pa
    from pyarrow import parquet
    tables = [parquet.read_table(path) for _, path in parts if os.path.exists(path)]
    bags = [bag for bag, path in parts if os.path.exists(path)]
    return pa.concat_tables([table.add_column(0, 'bag', pa.array(
        [bag] * table.num_rows, pa.string())) for bag, table in zip(bags, tables, strict=True)
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

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
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
import json
import math
from pathlib import Path
from typing import Any, TYPE_CHECKING

from state_sensor_ros.commands.evaluate_many import evaluate_many, is_many
from state_sensor_ros.commands.evaluate_outputs import (
    check_outputs,
    matches_written,
    write_outputs,
)
from state_sensor_ros.commands.format_options import check_times, refuse_given
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.parameter_values import settings_of
from state_sensor_ros.commands.printing import clock_shown, print_line
from state_sensor_ros.commands.reading import warn_of_unmatched
from state_sensor_ros.commands.summary import is_standard_output
from state_sensor_ros.commands.truth_reading import read_areas, read_truth
from state_sensor_ros.errors import ConfigError, DecodeError, TrajectoryFormatError, UsageError
from state_sensor_ros.evaluation import evaluation_result
from state_sensor_ros.evaluation.confidence import intervals_of
from state_sensor_ros.evaluation.evaluation_tables import change_lines, lines_of
from state_sensor_ros.evaluation.evaluator import Evaluator
from state_sensor_ros.evaluation.frame_transforms import (
    FrameTransforms,
    STATIC_TF_TOPIC,
    TF_TOPIC,
    TF_TYPE,
)
from state_sensor_ros.evaluation.matching import Selection
from state_sensor_ros.evaluation.pooling import write_part
from state_sensor_ros.evaluation.stack_messages import chosen_topics, ODOMETRY
from state_sensor_ros.files.bags.bag_metadata import is_bag
from state_sensor_ros.files.bags.open_bag import OpenBag
from state_sensor_ros.files.frame_selection import outside, RecordingSelection
from state_sensor_ros.files.storage.storage_file import limits_of
from state_sensor_ros.files.whole.output import print_output
from state_sensor_ros.library.safety import EGO, HORIZON_S, SafetyCollector
from state_sensor_ros.simulators.opening import format_of
from state_sensor_ros.texts import counted, one_line

if TYPE_CHECKING:
    from state_sensor_ros.evaluation.evaluator import MatchObserver, TopicResult
    from state_sensor_ros.evaluation.ground_truth import GroundTruth
    from state_sensor_ros.library.safety import Safety

# Options that only topics of objects use.
_OF_OBJECTS = frozenset(('range', 'iou_bev', 'iou_3d', 'ignore_areas', 'classes', 'actors',
                         'desired_tags', 'undesired_tags', 'parquet', 'curves', 'definition'))

# Longer than the stamps of any recording reach, s.
_FOR_EVER_S = 2.0 ** 32

# A greater median error of the ego, m, is that of two drives.
_ANOTHER_M = 20.0
# A smaller share of matches is that of two drives.
_ANOTHER = 0.05


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Evaluate one bag, or many.

    :param args: the parsed options.
    :param interruption: signal handling of the program.
    :raises StateSensorError: if TRUTH or STACK cannot be read, have no common time, or a number
        is beyond its bound.
    """
    has_many = is_many(args)
    _check_options(args, is_many=has_many)
    _check_bound_names(args)
    if has_many:
        evaluate_many(args, interruption)
        return
    [stack] = args.stack
    # One of many bags has its earlier result from the process that has read the file.
    old = getattr(args, 'earlier', None)
    if old is None and args.against is not None:
        old = evaluation_result.result_of_bag(
            args.against, evaluation_result.read_results(args.against), stack,
            definition=args.definition, alignment=args.align)
    with matches_written(args, interruption) as observe, \
            clock_shown('evaluate', is_quiet=args.quiet):
        truth, topic_results, safety = evaluated(args, stack, observe)
    result = evaluation_result.result_of(
        topic_results, len(truth.stamps_ns), definition=args.definition, alignment=args.align)
    result['confidence'] = intervals_of(
        topic_results, dict(evaluation_result.numbers_of(result)), args.definition)
    if old is not None:
        result[evaluation_result.AGAINST] = evaluation_result.against(result, old)
    if getattr(args, 'part_of_pool', ''):
        write_part(args.part_of_pool, topic_results, len(truth.stamps_ns))
    for found in topic_results:
        _warn(stack, found)
    changed = None if old is None else evaluation_result.changes(result, old)
    write_outputs(args, interruption, stack, topic_results, result, changed, safety)
    if args.json:
        print_output(json.dumps(result, indent=2, allow_nan=False))
    elif not args.quiet:
        lines = [*lines_of(result), *change_lines(args.against, changed)]
        if any(out is not None and is_standard_output(out)
               for out in (args.parquet, args.html, args.curves)):
            for line in lines:
                print_line(line)
        else:
            print_output('\n'.join(lines))
    check_bounds(args, stack, result)


def _check_options(args: argparse.Namespace, *, is_many: bool) -> None:
    """Refuse options that are not used for the format of TRUTH, or for many bags."""
    given: frozenset[str] = getattr(args, 'given', frozenset())
    check_outputs(args, given, is_many=is_many)
    check_times(args)
    if is_many:
        return
    truth = format_of(args.truth)
    if 'truth_topic' in given and 'topic' not in truth.reads:
        raise UsageError(f'--truth-topic is for another format of TRUTH; {args.truth} is '
                         f'{truth.noun}')


def _check_bound_names(args: argparse.Namespace) -> None:
    """Refuse a bound of a number that no result can have before the evaluation."""
    bounds = [*(('--fail-below', text) for text in args.fail_below),
              *(('--fail-above', text) for text in args.fail_above)]
    if not bounds:
        return
    possible, with_all = (evaluation_result.possible_result(
        definition, has_earlier=has_earlier, horizons_s=args.horizons, path_counts=args.k,
        iou_thresholds=_iou_thresholds(args))
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
        keys = chosen_topics(stack, bag.with_messages(), args.topic, pattern=args.objects_topic,
                             with_tf=args.ego_tf)
        for key in keys:
            bag.check_definition(key)
        types = {type_name for _, type_name in keys} | ({ODOMETRY} if args.ego_tf else set())
        if types == {ODOMETRY}:
            refuse_given(args, _OF_OBJECTS, f'is for topics of objects; of {stack} only the '
                         'odometry of the ego is evaluated')
        if ODOMETRY not in types:
            refuse_given(args, ('align',), 'is for the odometry of the ego; of '
                         f'{stack} only objects are evaluated')
        collector = None if args.html is None else SafetyCollector(
            EGO, HORIZON_S, settings.ego_tag)
        truth = read_truth(args, settings, None if collector is None else collector.add)
        evaluator = Evaluator(
            truth=truth, selection=_selection(args, truth), at=args.at,
            global_frame=settings.global_frame, alignment=args.align,
            with_nuscenes=args.definition == 'nuscenes', horizons_s=args.horizons,
            path_counts=args.k, iou_thresholds=_iou_thresholds(args),
            is_pooled=bool(getattr(args, 'part_of_pool', '')),
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
    if args.ego_tf:
        topic_results.append(evaluator.evaluate_transforms(stack))
    return truth, topic_results, (
        None if collector is None or not collector.has_actor else collector.safety())


def _opened(args: argparse.Namespace, stack: str) -> AbstractContextManager[OpenBag]:
    path = Path(stack)
    if not is_bag(path):
        if not path.exists():
            raise TrajectoryFormatError(stack, 'no such file or directory')
        raise TrajectoryFormatError(stack, format_of(stack).noun, 'a bag with the topics of the '
                                    'stack')
    return closing(OpenBag(path, limits_of(args.max_bag_bytes)))


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
    start_s, end_s = args.start or 0.0, math.inf if args.end is None else args.end
    duration_s = (int(truth.stamps_ns[-1]) - first_ns) * 1e-9
    if start_s > duration_s:
        raise ConfigError('--start', f'{start_s:g} s', 'a time from the first frame to the last '
                          f'one, {duration_s:.6g} s, of {truth.name}')
    warn_of_unmatched(truth.name, outside(
        RecordingSelection(end_s=end_s), len(truth.stamps_ns), duration_s))
    times = {f'{name}_ns': first_ns + _nanoseconds(value) for name, value in (
        ('start', args.start), ('end', args.end)) if value is not None}
    return Selection(**times, period_ns=_nanoseconds(1.0 / args.rate) if args.rate else 0,
                     range_m=args.range, classes=frozenset(args.classes),
                     areas=() if args.ignore_areas is None else read_areas(args.ignore_areas))


def _iou_thresholds(args: argparse.Namespace) -> list[tuple[str, float]]:
    return [(kind, threshold) for kind in ('bev', '3d')
            for threshold in getattr(args, f'iou_{kind}')]


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

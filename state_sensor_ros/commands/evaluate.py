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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from html import escape
import json
import math
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from state_sensor_ros import errors, parameters, rotations
from state_sensor_ros.classes import CLASS_NAMES, TagRule
from state_sensor_ros.commands import options, reading, terminal
from state_sensor_ros.commands.batch import job_of, records_of, refuse_failures, write_table
from state_sensor_ros.evaluation import detection, matching, messages, report
from state_sensor_ros.evaluation import truth as truths
from state_sensor_ros.evaluation.evaluator import Evaluator, TopicResult
from state_sensor_ros.evaluation.tracking import MAX_IDS
from state_sensor_ros.evaluation.truth import EgoTrack, GroundTruth
from state_sensor_ros.files import bag_frames, format_of, frame_selection, open_any, ReadOptions
from state_sensor_ros.files.bag import Bag, is_bag
from state_sensor_ros.files.output import WholeFile
from state_sensor_ros.files.search import find_recordings, FoundRecording
from state_sensor_ros.frame import NS_PER_S
from state_sensor_ros.library.stream import FaultList, FrameFault, FrameLoop
from state_sensor_ros.settings import Settings
from state_sensor_ros.texts import counted, listed, one_line

_EPILOG = """examples:
  state_sensor evaluate drive.json stack_bag
  state_sensor evaluate truth_bag 'stacks/*' --json"""
# Longer than the stamps of any recording reach, s.
_FOR_EVER_S = 2.0 ** 32
# A greater median error of the ego, m, or a smaller share of matches, is that of two drives.
_ANOTHER_M, _ANOTHER = 20.0, 0.05
_STATES = ('x', 'y', 'z', 'yaw', 'vx', 'vy', 'length', 'width', 'height')


def add_evaluate(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument('--horizons', type=options.numbers(options.above_zero), metavar='S,...',
                        default='3,5,8', help='horizons of predicted paths (default: 3,5,8)')
    parser.add_argument('--k', type=options.numbers(options.count), metavar='N,...', default='1,6',
                        help='numbers of the likeliest paths that count (default: 1,6)')
    parser.add_argument('--range', type=options.above_zero, metavar='M', default=0.0,
                        help="evaluate objects up to M meters from the ego's origin")
    parser.add_argument('--classes', type=_classes, action='extend', default=[],
                        metavar='CLASS,...', help='evaluate these classes only')
    parser.add_argument('--json', action='store_true', help='print JSON')
    parser.add_argument('--format', choices=('text', 'csv', 'latex'), default='text',
                        help='print the tables as text (default), CSV or rows for LaTeX')
    parser.add_argument('--parquet', metavar='OUT', help='write a table: a row for each match')
    parser.add_argument('--html', metavar='OUT',
                        help='write a page with curves and the ten worst moments')
    options.add_force(parser)
    for name, what, path in (('below', 'less', 'detection/map=0.5'),
                             ('above', 'greater', 'detection/mate=0.5')):
        parser.add_argument(f'--fail-{name}', action='append', default=[], type=_bound,
                            metavar='PATH=VALUE',
                            help=f'exit with 1 if a result is {what}, such as {path}')
    options.add_quiet(parser, 'print neither progress nor results, except --json')
    options.add(parser, 'selection', 'batch')


def _classes(text: str) -> list[str]:
    for name in (names := options.listed(text)):
        if name not in CLASS_NAMES:
            raise argparse.ArgumentTypeError(f'found {name}; expected one of '
                                             f'{", ".join(CLASS_NAMES)}')
    return names


def _bound(text: str) -> tuple[str, float]:
    path, _, value = text.rpartition('=')
    with suppress(ValueError):
        if path and not math.isnan(float(value)):
            return path, float(value)
    raise argparse.ArgumentTypeError(f'{text!r} is not PATH=VALUE, such as detection/map=0.5')


def run_evaluate(args: argparse.Namespace) -> None:
    """Evaluate one bag, or many."""
    options.check_suffix('--parquet', args.parquet, '.parquet')
    options.check_suffix('--html', args.html, '.html')
    if options.are_many(args, args.stack):
        _evaluate_many(args)
        return
    [stack] = args.stack
    truth, found = _evaluated(args, stack)
    result = report.result_of(
        found, len(truth.stamps_ns), definition=args.definition, alignment=args.align)
    tables = [*report.tables_of(result)]
    for each in found:
        terminal.print_warnings(f'{stack}: {each.topic}', _warnings(each))
    if args.parquet is not None:
        write_table(args, lambda: _match_table(found))
    if args.html is not None:
        _write_page(args, f'Evaluation of {one_line(stack)}', tables, (
            f'<p>Ground truth: {escape(one_line(args.truth))}.</p>',
            f'<p>{report.heading_of(result)}.</p>',
            *(part for each in found for part in report.sections(each))), result)
    if args.json:
        terminal.print_output(json.dumps(result, indent=2, allow_nan=False))
    elif not args.quiet:
        _print_tables(args, tables, report.heading_of(result))
    _check_bounds(args, stack, result)


def _print_tables(args: argparse.Namespace, tables: Iterable[report.Table],
                  heading: str = '') -> None:
    """Print tables in the format that is asked for."""
    if heading and args.format == 'text':
        terminal.print_output(heading)
    for table in tables:
        for line in ('', *table.lines(args.format)) if heading else table.lines(args.format):
            terminal.print_output(line)


def _write_page(args: argparse.Namespace, title: str, tables: Sequence[report.Table],
                parts: Iterable[str] = (), result: report.Result | None = None) -> None:
    with WholeFile(args.html, force=args.force) as file:
        report.write_page(file.handle, title, tables, parts, result)
    terminal.show_result(args.html, terminal.size_of(args.html), is_quiet=args.quiet or args.json)


def _evaluated(args: argparse.Namespace, stack: str) -> tuple[GroundTruth, list[TopicResult]]:
    settings = options.settings_of(args)
    with _opened(stack) as bag:
        keys = messages.chosen_topics(stack, bag.with_messages(), args.topic)
        truth = _read_truth(args, settings)
        evaluator = Evaluator(
            truth=truth, selection=_selection(args, truth), at=args.at,
            global_frame=settings.global_frame, alignment=args.align,
            with_nuscenes=args.definition == 'nuscenes', horizons_s=args.horizons,
            path_counts=args.k,
            open_transforms=lambda: truths.FrameTransforms(_transforms(stack)))
        found = []
        for key in keys:
            is_ego = key[1] == messages.ODOMETRY
            if is_ego and truth.ego is None and len(keys) > 1 and not args.topic:
                continue
            evaluate = evaluator.evaluate_ego if is_ego else evaluator.evaluate_objects
            with _decoding(bag, key):
                found.append(evaluate(stack, key, (
                    (log_ns, data) for _, log_ns, data in bag.messages({key}))))
    return truth, found


def _opened(stack: str) -> closing[Bag]:
    path = Path(stack)
    if not path.exists():
        raise errors.TrajectoryFormatError(stack, 'no such file or directory')
    found = format_of(stack)
    if not is_bag(path):
        raise errors.TrajectoryFormatError(stack, found.noun, 'a bag with the topics of the stack')
    return closing(Bag(path))


def _transforms(stack: str) -> Iterator[tuple[bytes, bool]]:
    """Yield the transform messages of a bag, each with whether it is static."""
    with _opened(stack) as bag:
        names = truths.TF_TOPIC, truths.STATIC_TF_TOPIC
        keys = {(name, truths.TF_TYPE) for name in names} & bag.topics.keys()
        for key in keys:
            bag.check_definition(key)
        for name, _, data in bag.messages(keys):
            yield data, name == truths.STATIC_TF_TOPIC


def _selection(args: argparse.Namespace, truth: GroundTruth) -> matching.Selection:
    if args.range and truth.ego is None:
        raise errors.ConfigError('--range', f'{args.range:g} m from an ego, which {truth.name} '
                                 'does not have', 'ground truth with an ego')
    first_ns = int(truth.stamps_ns[0])
    duration_s = (int(truth.stamps_ns[-1]) - first_ns) * 1e-9
    if args.start > duration_s:
        raise errors.ConfigError('--start', f'{args.start:g} s', 'a time from the first frame to '
                                 f'the last one, {duration_s:.6g} s, of {truth.name}')
    terminal.print_warnings(truth.name, frame_selection.outside(
        frame_selection.RecordingSelection(end_s=options.selection_of(args).end_s),
        len(truth.stamps_ns), duration_s))
    times: dict[str, Any] = {f'{name}_ns': first_ns + _nanoseconds(value) for name, value in (
        ('start', args.start), ('end', args.end)) if 0.0 < value < math.inf}
    return matching.Selection(**times, period_ns=_nanoseconds(1.0 / args.rate) if args.rate else 0,
                              range_m=args.range, classes=frozenset(args.classes))


def _nanoseconds(time_s: float) -> int:
    return round(min(time_s, _FOR_EVER_S) * 1e9)


def _warnings(found: TopicResult) -> list[str]:
    """Return a line for each kind of fault of a topic."""
    lines = [f'{counted(n_found, messages.FAULTS[kind][0])}{messages.FAULTS[kind][1]}'
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
    if found.prediction is not None and found.prediction.n_pathless:
        lines.append(f'{counted(found.prediction.n_pathless, "matched object")} without a '
                     'predicted path, not part of the errors of paths')
    if found.unplaced_child:
        lines.append(f'the bag has no transform from base_link to {found.unplaced_child}, which '
                     'is evaluated as if it were base_link')
    same = 'are TRUTH and STACK from the same drive, clock and global frame?'
    median = 0.0 if found.ego is None else found.ego.statistics['ate']['translation']['median']
    if _ANOTHER_M < median < math.inf:
        lines.append(f'half of the positions of the ego are more than {median:.0f} m off; {same}')
    classes = found.classes or []
    n_matches = sum(each.n_matches for each in classes)
    if n_matches < _ANOTHER * sum(min(each.n_truths, each.n_detections) for each in classes):
        lines.append(f'fewer than {_ANOTHER:.0%} of the objects are within 2 m of one of their '
                     f'class; {same}')
    return lines


def _check_bounds(args: argparse.Namespace, stack: str, result: Mapping[str, Any]) -> None:
    """Refuse numbers of a result beyond ``--fail-below`` or ``--fail-above``, or missing."""
    failures = []
    for bounds, word, sign in ((args.fail_below, 'least', -1.0), (args.fail_above, 'most', 1.0)):
        for path, limit in bounds:
            try:
                found = report.number_at(result, path)
                value = 'no value' if found is None else f'{found:.6g}'
            except errors.ConfigError as error:
                found, value = None, error.found
            if found is None or sign * (found - limit) > 0.0:
                failures.append(errors.TrajectoryFormatError(f'{stack}: {path}', value,
                                                             f'at {word} {limit:.12g}'))
    for failure in failures[1:]:
        terminal.print_line(f'error: {failure}')
    if failures:
        raise failures[0]


def _match_table(results: Sequence[TopicResult]) -> Any:  # noqa: ANN401
    """Return a row for each match at 2 m: ground truth, detection, errors."""
    import pyarrow as pa
    rows = []
    for found in results:
        for i, frame in enumerate(found.frames):
            of_stack, of_truth = frame.matched
            stack, truth = frame.stack.states[of_stack], frame.truth.states[of_truth]
            errors = detection.error_rows(stack, truth, frame.stack.classes[of_stack])
            for j, (a, b) in enumerate(zip(of_stack.tolist(), of_truth.tolist(), strict=True)):
                rows.append({
                    'topic': found.topic, 'stamp_ns': frame.stamp_ns, 'frame': i,
                    'class': matching.EVALUATED_CLASSES[frame.stack.classes[a]],
                    'truth_id': frame.truth.ids[b], 'stack_id': frame.stack.ids[a],
                    'score': float(frame.stack.scores[a]),
                    'ego_distance': float(frame.distances[b]),
                    **dict(zip(detection.ERROR_NAMES, errors[j].tolist(), strict=True)),
                    **{f'{side}_{name}': value for side, states in (
                        ('truth', truth), ('stack', stack))
                       for name, value in zip(_STATES, states[j].tolist(), strict=False)}})
    return pa.Table.from_pylist(rows) if rows else pa.table({'topic': pa.array([], pa.string())})


def _evaluate_many(args: argparse.Namespace) -> None:
    """Compare each bag with one ground truth, or with that at its place in a folder."""
    stacks = find_recordings(args.stack)
    truths = _truths_of(args, stacks)
    with TemporaryDirectory() as folder:
        jobs = [job_of('evaluate', args, stack.path, truth=truth, stack=[stack.path], json=True,
                       html=None, force=False,
                       parquet=args.parquet and os.path.join(folder, f'{i}.parquet'))
                for i, (stack, truth) in enumerate(zip(stacks, truths, strict=True))]
        records = records_of(args, jobs)
        if args.parquet is not None:
            write_table(args, lambda: _joined([(job.source, job.args.parquet) for job in jobs]))
    tables = [report.bags_table(records)]
    if args.html is not None:
        _write_page(args, f'Evaluation of {counted(len(records), "bag")}', tables)
    if not (args.json or args.quiet):
        _print_tables(args, tables)
    refuse_failures('evaluate', records)


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
        raise errors.ConfigError('TRUTH', f'no recording {listed(missing)} in {args.truth}',
                                 'a recording of the same name for each bag, such as '
                                 f'{stacks[0].path}')
    return [by_place[stack.place] for stack in stacks]


def _read_truth(args: argparse.Namespace, settings: Settings) -> GroundTruth:
    """Read the ground truth: a recording of frames, or a bag of objects."""
    if settings.stamp_source == 'ros':
        raise errors.ConfigError(
            'stamp_source', 'ros', 'game_time or utc: a recording is not live')
    stamps_ns: list[int] | None = None
    # An OSI trace may be an MCAP file, too.
    if is_bag(Path(args.truth)) and format_of(args.truth).storage:
        with closing(Bag(Path(args.truth))) as bag:
            frames = [key for key in bag.with_messages() if key[1] == bag_frames.STATE_FRAME
                      and args.truth_topic in ('', key[0])]
            if not frames:
                return _checked(args, _of_objects(args, bag, settings))
            # ``game_time`` is rounded. A message too short for a stamp is no frame.
            stamps_ns = [seconds * NS_PER_S + nanoseconds for seconds, nanoseconds in (
                bag_frames.stamp_of(data) or (0, 0) for _, _, data in bag.messages({frames[0]}))]
    return _checked(args, _of_frames(args, settings, stamps_ns))


def _of_frames(args: argparse.Namespace, settings: Settings,
               stamps_ns: list[int] | None) -> GroundTruth:
    """Read a recording of frames; ``stamps_ns`` are the stamps of a bag, None for others."""
    selection = options.selection_of(args)
    rule, names = TagRule(selection.desired_tags, selection.undesired_tags), \
        frame_selection.SelectedNames(selection)
    tagged, faults = set[str](), FaultList()

    def selects(name: str, tags: tuple[str, ...]) -> bool:
        if rule.passes(tags):
            tagged.add(name)
            return not selection.actors or name in selection.actors
        return False

    reader = open_any(args.truth, ReadOptions(settings, args.truth_topic))
    with closing(FrameLoop(reader)) as recording:
        truth = truths.FrameGroundTruth(
            args.truth, settings, selects, lambda kind, text: faults.add(
                FrameFault(kind, recording.place, text)))
        for frame in reading.read_frames(recording, 'ground truth', is_quiet=args.quiet):
            names.add(frame)
            truth.add(frame, None if stamps_ns is None else stamps_ns[recording.index])
        found = truth.finish()
    terminal.print_warnings(args.truth, (
        *reading.fault_lines(faults), *truth.assumptions.lines, *truth.jumps.lines,
        *names.lines(is_empty=not rule.passes_all and not tagged)))
    return found


def _of_objects(args: argparse.Namespace, bag: Bag, settings: Settings) -> GroundTruth:
    """Read another program's bag of TrackedObjects, with the ego's odometry if the bag has it."""
    key = messages.truth_topic(args.truth, bag.with_messages(), args.truth_topic)
    if args.desired_tags or args.undesired_tags:
        raise errors.ConfigError(
            '--desired-tags, --undesired-tags', f'TRUTH {args.truth}, a bag of objects, which '
            'have no tags', 'TRUTH with frames, or --actors')
    builder, seen = truths.GroundTruthBuilder(args.truth), set[str]()
    with _decoding(bag, key):
        for _, _, data in bag.messages({key}):
            message = messages.objects_in(data, messages.TRACKED)
            if message.frame_id.removeprefix('/') not in ('', settings.global_frame):
                raise errors.DecodeError('frame_id', message.frame_id,
                                         f'{settings.global_frame}; -p global_frame:=NAME '
                                         'selects another')
            objects = message.in_frame(np.array(rotations.IDENTITY_XYZW), np.zeros(3))
            seen.update(objects.ids)
            builder.add(message.stamp_ns, objects, np.array(
                [not args.actors or name in args.actors for name in objects.ids], np.bool_))
    for name in sorted({*args.actors} - seen):
        terminal.print_line(f'warning: --actors {name}: the ground truth has no such object'
                            + parameters.near_names([name], seen))
    return builder.finish(_ego_of(bag))


def _ego_of(bag: Bag) -> EgoTrack | None:
    """Return the ego at base_link from its odometry, None without a pose."""
    key = messages.EGO_TOPIC, messages.ODOMETRY
    states: dict[int, tuple[float, ...]] = {}
    if key not in bag.topics:
        return None
    with _decoding(bag, key):
        for _, _, data in bag.messages({key}):
            message = messages.decode_flat(data, messages.ODOMETRY)
            pose = messages.unit_pose(message.pose.pose.values)
            if pose is not None:
                states[messages.nanoseconds(message.header.stamp)] = (
                    *pose, message.twist.twist.values[0], *pose[:3])
    if not states:
        return None
    stamps = sorted(states)
    return EgoTrack(np.array(stamps, np.int64), np.array([states[stamp] for stamp in stamps]),
                    frozenset(), np.zeros(3))


def _decoding(bag: Bag, key: tuple[str, str]) -> AbstractContextManager[None]:
    """Check the definition of a topic, and name the topic in errors of its messages."""
    bag.check_definition(key)
    return errors.restated(errors.TrajectoryFormatError, f'{bag.name}: {key[0]}')


def _checked(args: argparse.Namespace, truth: GroundTruth) -> GroundTruth:
    if not len(truth.stamps_ns):
        raise errors.no_frames(truth.name)
    if (args.actors or args.desired_tags or args.undesired_tags) and truth.names \
            and not truth.are_selected.any():
        raise errors.TrajectoryFormatError(truth.name, 'no selected object in any frame',
                                           'at least one selected object beside the ego')
    return truth
